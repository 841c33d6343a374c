package runlog

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Lines of runs of this process that are not written yet. Input: lines, by handlers, who wait
// for room for a while. Output: batches, to writer.go.

const (
	// logLineCost is what a line takes in memory beside its text, and logEndCost what a run does
	// whose end is to be told.
	logLineCost, logEndCost = 64, 256
	// logBatch is how much of that one batch has, but for a line that is longer, and
	// logBatchRuns of how many runs.
	logBatch     = 2 << 20
	logBatchRuns = 250
	// logEvery is how long a line waits to be written.
	logEvery = time.Second
	// logPatient is how long handlers and results wait while nothing is written.
	logPatient = 2 * time.Second
)

// logBook keeps lines until they are written. It is safe for concurrent use.
type logBook struct {
	room, share, perRun int       // bytes: of all that waits, of the lines of a run; of the text of a run
	wake                loop.Wake // for who writes
	perJob              int64

	mu    sync.Mutex
	runs  map[int64]*runLog // guarded by mu: those that are open, or have lines
	fed   []*runLog         // guarded by mu: those with something to write, longest first
	hurry bool              // guarded by mu: somebody waits for it
	moved time.Time         // guarded by mu: when something was written, or began to wait
	freed chan struct{}     // guarded by mu: closed when something was written
	stats core.LogStats     // guarded by mu
}

// runLog is the log of one run. Its fields are guarded by the book's mu, but for the first.
type runLog struct {
	of      runLogOf
	writing sync.Mutex // held while a record is written: its lines stay together

	lines   []store.LogLine // which wait
	since   time.Time       // when the first of them came
	bytes   int             // that they take
	first   int             // the number of the first of them
	written int             // the number of the last that is written, or given up
	size    int             // of all text so far
	missing int             // lines that were dropped, since the last that was not
	state   runLogState
}

// runLogOf is which run it is.
type runLogOf struct {
	book     *logBook
	run, job int64
	app      string
}

// runLogState is what else is known of it.
type runLogState struct {
	fed    bool // it is in the book's list
	taken  bool // some of its lines are being written
	full   bool // nothing more is taken
	notice bool // what waits says that it was cut
	closed bool // its handler has returned
	told   bool // and who writes knows that
}

func NewBook(cfg core.LogConfig) *logBook {
	return &logBook{
		room: cfg.QueueBytes, share: cfg.QueueBytes / 8, perRun: cfg.RunBytes, perJob: cfg.JobBytes,
		wake: loop.NewWake(), runs: map[int64]*runLog{}, freed: make(chan struct{}),
	}
}

// of returns the log of a start of a run, which its first line opens; nil where the handler has
// returned, whose log never begins again.
func (b *logBook) of(l *core.StartLog, run, job int64, app string) *runLog {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.Log == nil && !l.Returned {
		r := &runLog{of: runLogOf{b, run, job, app}, first: 1}
		l.Log, b.runs[run] = r, r
	}
	r, _ := l.Log.(*runLog)
	return r
}

// returned is called when the handler has returned.
func (b *logBook) returned(l *core.StartLog) {
	b.mu.Lock()
	r, _ := l.Log.(*runLog)
	l.Log, l.Returned = nil, true
	b.mu.Unlock()
	if r != nil {
		r.end()
	}
}

// write takes a record: one line or more, each with its line feed. It waits for room while
// there is none and lines are written, and drops what there is no room for. A line that is kept
// has memory of its own, since the others of its record may be written or dropped long before.
func (r *runLog) write(line store.LogLine) {
	r.writing.Lock()
	defer r.writing.Unlock()
	rest, whole := strings.TrimSuffix(line.Text, "\n"), len(line.Text)
	for more := true; more; {
		line.Text, rest, more = strings.Cut(rest, "\n")
		line.Text = errs.PlainText(line.Text)
		switch {
		case len(line.Text) > core.LogBytes:
			line.Text = strings.ToValidUTF8(strings.Clone(line.Text[:core.LogBytes]), "")
		case len(line.Text)+1 < whole:
			line.Text = strings.Clone(line.Text)
		}
		for freed, left := r.add(&line); freed != nil; freed, left = r.add(&line) {
			waitFor(freed, left)
		}
	}
}

// add takes a line, or drops it where nothing is written. Where there may be room for it soon
// it returns what is closed when something is written, and for how long to wait for that.
func (r *runLog) add(line *store.LogLine) (freed <-chan struct{}, left time.Duration) {
	b, now := r.of.book, time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	cost := len(line.Text) + logLineCost
	switch {
	case r.state.closed:
	case r.state.full:
		b.stats.Cut++
	case b.hasRoom(cost, b.room/8) && (r.bytes == 0 || r.bytes+cost <= b.share):
		r.sayMissing()
		r.putWithin(line)
	case b.stuck(now):
		b.hasten()
		r.missing++
		b.stats.Dropped++
	default:
		b.hasten()
		return b.freed, b.moved.Add(logPatient).Sub(now)
	}
	return nil, 0
}

// hasRoom reports whether there is room for something that leaves so much of it. An eighth is
// for what says that lines are missing, and for ends of runs: for these nobody waits. mu is
// held.
func (b *logBook) hasRoom(cost, leaves int) bool { return b.stats.Waiting+cost <= b.room-leaves }

// putWithin adds a line, or what of it is within the bound of a run. mu is held.
func (r *runLog) putWithin(line *store.LogLine) {
	b := r.of.book
	fits := b.perRun - r.size
	if len(line.Text)+1 <= fits {
		r.put(*line)
		return
	}
	if fits > 1 {
		r.put(store.LogLine{Time: line.Time, Level: line.Level, Text: strings.ToValidUTF8(strings.Clone(line.Text[:fits-1]), "")})
	}
	r.put(store.LogLine{Time: line.Time, Level: line.Level, Text: fmt.Sprintf("(the log is cut here: no more than %d bytes are kept of a run)", b.perRun)})
	r.state.full = true
	b.stats.Cut++
}

// sayMissing adds a line about those that were dropped. mu is held.
func (r *runLog) sayMissing() {
	if n := r.missing; n > 0 {
		r.missing = 0
		r.put(store.LogLine{Time: time.Now(), Text: fmt.Sprintf("(%d lines are missing here: they could not be written in time)", n)})
	}
}

// put adds a line that there is room for. mu is held.
func (r *runLog) put(line store.LogLine) {
	b := r.of.book
	if len(r.lines) == 0 {
		r.since = time.Now()
	}
	cost := len(line.Text) + logLineCost
	r.lines, r.bytes, r.size = append(r.lines, line), r.bytes+cost, r.size+len(line.Text)+1
	b.waits(cost)
	b.feed(r)
	if b.stats.Waiting >= logBatch {
		b.hasten()
	}
}

// waits adds to what waits. Where nothing did, who writes has its time from now on, or from when
// it has rested. mu is held.
func (b *logBook) waits(cost int) {
	if now := time.Now(); b.stats.Waiting == 0 && b.moved.Before(now) {
		b.moved = now
	}
	b.stats.Waiting += cost
	b.stats.Peak = max(b.stats.Peak, b.stats.Waiting)
}

// feed puts a run among those with something to write. mu is held.
func (b *logBook) feed(r *runLog) {
	if !r.state.fed && !r.state.taken {
		r.state.fed = true
		b.fed = append(b.fed, r)
		if len(b.fed) == 1 {
			b.wake.Poke()
		}
	}
}

// hasten has what waits written at once. mu is held.
func (b *logBook) hasten() {
	if !b.hurry {
		b.hurry = true
		b.wake.Poke()
	}
}

// stuck reports whether nothing was written for too long. mu is held.
func (b *logBook) stuck(now time.Time) bool {
	return b.stats.Waiting > 0 && now.Sub(b.moved) >= logPatient
}

// waitFor waits until something is written, or nothing was for too long.
func waitFor(freed <-chan struct{}, left time.Duration) {
	t := time.NewTimer(max(left, 0))
	defer t.Stop()
	select {
	case <-freed:
	case <-t.C:
	}
}

// end is called when the handler has returned, once. Of a run that has nothing to be written nobody is
// told where there is no room for it.
func (r *runLog) end() {
	b := r.of.book
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hasRoom(2*logEndCost, 0) {
		r.sayMissing()
	}
	r.state.closed = true
	if len(r.lines) == 0 && !r.state.taken && (r.first == 1 || !b.hasRoom(logEndCost, 0)) {
		if b.runs[r.of.run] == r {
			delete(b.runs, r.of.run)
		}
		return
	}
	b.waits(logEndCost)
	b.feed(r)
	b.hasten()
}

// Settle waits until lines that runs had are written: see goals. It waits for logPatient at most,
// not at all where nothing is written, nor where whoever writes rests for longer than that, so
// that there is no more a second than Config.Logs says.
func (b *logBook) Settle(ctx context.Context, goals map[int64]logGoal) {
	ctx, cancel := context.WithTimeout(ctx, logPatient)
	defer cancel()
	for {
		freed, left := b.unwritten(goals)
		if left <= 0 || !loop.Sleep(ctx, left, freed) {
			return
		}
	}
}

// logGoal is the number of a line that is to be written.
type logGoal struct {
	of   *runLog
	line int
}

// goals are the last lines of those of the runs whose lines are not all written, and has them
// written at once; nil where there is none.
func (b *logBook) goals(runs []int64) (goals map[int64]logGoal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range runs {
		r := b.runs[id]
		if r == nil {
			continue
		}
		b.hasten()
		if last := r.first + len(r.lines) - 1; r.written < last {
			if goals == nil {
				goals = map[int64]logGoal{}
			}
			goals[id] = logGoal{r, last}
		}
	}
	return goals
}

// unwritten drops the goals that are reached. It returns what is closed when something is
// written, and for how long to wait for that: not at all where no goals are left.
func (b *logBook) unwritten(goals map[int64]logGoal) (freed chan struct{}, left time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, goal := range goals {
		if goal.of.written >= goal.line {
			delete(goals, id)
		}
	}
	rest := time.Until(b.moved)
	if len(goals) == 0 || rest > logPatient {
		return nil, 0
	}
	return b.freed, rest + logPatient
}

// What of the lines that wait is written next, and what became of it.

// logChunk is what a batch has of one run.
type logChunk struct {
	store.RunLines
	of     *runLog
	notice bool // it says that the log is cut
	bytes  int  // that its lines take in memory
}

// due is how long to wait until something is to be written: zero where it is time.
func (b *logBook) due(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.fed) == 0:
		b.hurry = false
		return loop.Forever
	case b.hurry:
		return 0
	}
	if wait := b.fed[0].since.Add(logEvery).Sub(now); wait > 0 {
		return wait
	}
	return 0
}

// take returns the lines that have waited for longest, at most a batch. They count as waiting
// until written.
func (b *logBook) take() (batch []logChunk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for size := 0; n < len(b.fed) && n < logBatchRuns && size < logBatch; n++ {
		c := b.fed[n].takeSome(logBatch - size)
		size += c.bytes
		batch = append(batch, c)
	}
	b.fed = append(b.fed[:0:0], b.fed[n:]...)
	b.hurry = b.hurry && len(b.fed) > 0
	return batch
}

// takeSome takes lines of a run, one at least if there is one. mu is held.
func (r *runLog) takeSome(most int) logChunk {
	n, size := 0, 0
	for n < len(r.lines) && (n == 0 || size+len(r.lines[n].Text)+logLineCost <= most) {
		size += len(r.lines[n].Text) + logLineCost
		n++
	}
	c := logChunk{of: r, notice: r.state.notice, bytes: size}
	c.RunLines = store.RunLines{RunID: r.of.run, JobID: r.of.job, App: r.of.app, First: r.first, Lines: r.lines[:n:n]}
	// The rest is copied, so that what is written is not kept with it.
	r.lines, r.first, r.bytes = append([]store.LogLine(nil), r.lines[n:]...), r.first+n, r.bytes-size
	r.since = time.Now()
	if c.End = r.state.closed && len(r.lines) == 0; c.End {
		c.bytes += logEndCost
	}
	r.state.fed, r.state.taken, r.state.told = false, true, c.End
	return c
}

// written notes that a batch is written, but for runs whose job has too much. Who waits for
// room, or for lines to be written, goes on; while who writes rests until then it is not stuck.
func (b *logBook) written(batch []logChunk, refused []int64, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	no := map[int64]bool{}
	for _, id := range refused {
		no[id] = true
	}
	for i := range batch {
		c := &batch[i]
		r := c.of
		r.state.taken = false
		b.stats.Waiting -= c.bytes
		if no[c.RunID] && !c.notice {
			b.cut(c)
		} else {
			b.stats.Written += uint64(len(c.Lines))
			r.written = c.First + len(c.Lines) - 1
		}
		switch {
		case len(r.lines) > 0 || r.state.closed && !r.state.told:
			b.feed(r)
		case r.state.closed && b.runs[r.of.run] == r:
			delete(b.runs, r.of.run)
		}
	}
	b.moved = until
	close(b.freed)
	b.freed = make(chan struct{})
}

// cut ends a log whose lines were refused with a line that says so. mu is held.
func (b *logBook) cut(c *logChunk) {
	r := c.of
	r.written = c.First + len(c.Lines) + len(r.lines) - 1 // nobody is to wait for them
	b.stats.Waiting -= r.bytes
	b.stats.Cut += uint64(len(c.Lines) + len(r.lines))
	r.lines, r.bytes, r.first, r.missing = nil, 0, c.First, 0
	r.state.full, r.state.notice, r.state.told = true, true, false
	r.put(store.LogLine{Time: time.Now(), Text: fmt.Sprintf("(the log is cut here: no more than %d bytes are kept of a job's runs of one day, or the store is full)", b.perJob)})
	if r.state.closed {
		b.hasten()
	}
	if c.End { // it is to be told once more
		b.stats.Waiting += logEndCost
	}
}

func (b *logBook) State() core.LogStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}

// Opened is how many logs of runs there are.
func (b *logBook) Opened() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.runs)
}
