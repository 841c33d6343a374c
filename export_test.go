package xxljob

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// What the tests, which are of package xxljob_test, see of the inside.

// Planner is the pure planner with its fields by name.
type Planner struct {
	Now, Before time.Time
	PreRead     time.Duration
	Threshold   time.Duration
	CatchUp     store.CatchUp
	MaxPlanned  int
}

// Plan plans one job.
func (p Planner) Plan(j *store.DueJob, epoch int64) store.Plan {
	return planner{
		now: p.Now, before: p.Before, preRead: p.PreRead, threshold: p.Threshold, catchUp: p.CatchUp, maxPlanned: p.MaxPlanned,
	}.plan(j, epoch)
}

// Overdue is the record of a job's instants that are past and not planned.
func Overdue(j store.Job, now time.Time) (store.NewRun, bool) { return overdue(j, now) }

// InstantAfter is the job's first instant after a time, within its bounds.
func InstantAfter(j store.Job, after time.Time) (time.Time, error) { return instantAfter(&j, after) }

// InstantInStep is the same where a period keeps step with an instant.
func InstantInStep(j store.Job, with, after time.Time) (time.Time, error) {
	return instantInStep(&j, with, after)
}

// Complete is the config as New uses it.
func (c Config) Complete() Config { return c.withDefaults() }

// Validate is what New finds wrong with the config.
func (c Config) Validate() error { return c.withDefaults().validate() }

// TrustWindow is how long a beat is trusted.
func (c Config) TrustWindow() time.Duration {
	complete := c.withDefaults()
	return newLeases("", timesOf(&complete.Cluster), nil).times.window
}

// RingSlots is the number of slots of NewTimeRing.
const RingSlots = ringSlots

// ScanPage is how many planned runs are read at a time: by so many may what a node
// holds of one app be over Config.Limits.MaxHeld.
const ScanPage = scanRuns

// Held is how many planned runs of an app a node holds, and whether there are
// more in the store only.
func Held(s Scheduler, app string) (n int, bounded bool) {
	e := s.(*scheduler).engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.held.apps[app]; h != nil {
		return h.n, h.bounded
	}
	return 0, false
}

// Clock is a node's estimate of the store's time.
type Clock struct{ clock clock }

// Sample takes in what the store's clock was, as read after it was asked for.
func (c *Clock) Sample(store, asked time.Time) { c.clock.sample(store, asked) }

// Now is the estimate.
func (c *Clock) Now() time.Time { return c.clock.now() }

// DialWith makes the scheduler speak to remote executors by other means than HTTP.
func DialWith(s Scheduler, dial func(app, address, token string) (wire.Executor, error)) {
	s.(*scheduler).remotes.dial = dial
}

// RunsInDoubt is how many runs the node has whose executor may or may not have them.
func RunsInDoubt(s Scheduler) int {
	o := &s.(*scheduler).inDoubt.list
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.runs)
}

// TakenUp is how many planned runs the node has found that nobody held.
func TakenUp(s Scheduler) int64 { return int64(s.(*scheduler).life.mishaps.pickedUp.Load()) }

// Unheld are those of the planned runs, all due within the window, that are the node's
// to start and that it neither holds nor is about to read.
func Unheld(n Scheduler, runs []store.Run) (missing []store.Run) {
	s := n.(*scheduler)
	s.scanner.reloader.set.mu.Lock()
	defer s.scanner.reloader.set.mu.Unlock()
	for _, r := range s.engine.held.unheld(runs) {
		if _, owned := s.leases.epoch(r.Shard); owned && r.State == store.StatePlanned && r.PlanEpoch != 0 && !s.scanner.reloader.set.shards[r.Shard] {
			missing = append(missing, r)
		}
	}
	return missing
}

// BadBooks says what is wrong with a node's books at a moment at which nothing is being
// called: runs that wait for what will not come, and places that nobody holds.
func BadBooks(n Scheduler) (faults []string) {
	s := n.(*scheduler)
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for at := range e.room.lots.all() {
		_, away := e.under.away[at.runID]
		switch {
		case at.kind == lotRunning && e.room.lanes.running[addressKey{at.app, at.address}] == 0,
			at.kind == lotAddress && e.room.lanes.address[addressLane{addressKey{at.app, at.address}, at.lane}] == 0,
			at.kind == lotApp && e.room.lanes.apps[appLane{at.app, at.lane}] == 0,
			at.kind == lotLane && e.room.lanes.used[at.lane] == 0,
			at.kind == lotSerial && at.most == 0 && e.room.serial.at(at) == 0,
			at.kind == lotSerial && at.most > 0 && len(e.room.beside[at]) < at.most,
			at.kind == lotProbe && !s.router.probes.pending(at.jobID),
			at.kind == lotRun && !away && e.under.flights.Of(at.runID) == nil,
			at.kind == lotOrder && len(e.room.transit[at.jobID]) == 0,
			at.kind == lotSettle && len(s.leases.unsettled())+len(s.leases.unloaded()) == 0:
			bad("runs wait for nothing in lot %+v", at)
		}
	}
	for at, l := range e.room.lots.all() {
		for _, q := range l.apps {
			for _, w := range *q {
				en := w.entry
				if (at.kind == lotOrder || at.kind == lotSettle) && e.room.serial.at(en.route.serial) == en.run.ID {
					bad("run %d waits in lot %+v with the place of a serial job in its hands", en.run.ID, at)
				}
			}
		}
	}
	places := map[addressKey]int{}
	for id, f := range e.under.flights.All() {
		if f.state.counts {
			places[f.at()]++
		}
		if f.serial.kind == lotSerial && f.serial.most == 0 && !f.remote && e.room.serial.at(f.serial) != id {
			bad("flight %d does not have its place in %+v", id, f.serial)
		}
		if _, has := e.room.beside[f.serial][id]; f.serial.most > 0 && !f.remote && !has {
			bad("flight %d does not have its place in %+v", id, f.serial)
		}
	}
	for _, a := range e.under.away {
		if a.places.app != "" {
			places[a.places]++
		}
	}
	for job, runs := range e.room.transit {
		for _, r := range runs {
			id := r.runID
			if _, away := e.under.away[id]; !away && e.held.runs.Of(id) == nil {
				bad("run %d of job %d is in transit to nowhere", id, job)
			}
		}
	}
	if !maps.Equal(places, e.room.lanes.running) {
		bad("places held are %v, and by the runs under way %v", e.room.lanes.running, places)
	}
	for at, runs := range e.room.beside {
		for id := range runs {
			if _, away := e.under.away[id]; !away && e.under.flights.Of(id) == nil && e.held.runs.Of(id) == nil {
				bad("run %d, which is not here, has a place in %+v", id, at)
			}
		}
	}
	for at, id := range e.room.serial.all() {
		_, away := e.under.away[id]
		if !away && e.under.flights.Of(id) == nil && e.held.runs.Of(id) == nil {
			bad("run %d, which is not here, has the place %+v", id, at)
		}
	}
	return faults
}

// HooksWaiting is how many calls of hooks wait at most.
const HooksWaiting = hooksWaiting

// HookCalls is a queue of calls of hooks that belongs to no scheduler.
func HookCalls() (call func(hook func(store.Run), run store.Run)) {
	var hooks sync.Map // by run
	q := &eventQueue{log: slog.New(slog.DiscardHandler), tell: func(w *waitingEvent) {
		hook, _ := hooks.Load(w.Run)
		hook.(func(store.Run))(*w.Run)
	}}
	return func(hook func(store.Run), run store.Run) {
		hooks.Store(&run, hook)
		q.add(waitingEvent{Event: Event{Kind: EventRunStarted, Run: &run}})
	}
}

// Rolled is how many registrations a node remembers.
func Rolled(s Scheduler) (n int) {
	r := s.(*scheduler).registrar
	r.regs.mu.Lock()
	defer r.regs.mu.Unlock()
	for _, list := range r.regs.roll.apps {
		n += len(list)
	}
	return max(n, len(r.regs.known))
}

// Goodbyes is how many addresses that are gone a node remembers.
func Goodbyes(s Scheduler) int {
	b := s.(*scheduler).book
	b.memory.mu.Lock()
	defer b.memory.mu.Unlock()
	return b.memory.gone.n
}

// Gone are addresses that are gone.
type Gone struct{ gone goneAddresses }

// MaxGone is how many of them are remembered.
const MaxGone = maxGone

// Note remembers one for a minute.
func (g *Gone) Note(app, address string, now time.Time) { g.gone.note(app, address, now, time.Minute) }

// Has reports whether one is remembered.
func (g *Gone) Has(app, address string) bool {
	_, has := g.gone.apps[app][address]
	return has
}

// Len is how many are remembered.
func (g *Gone) Len() (n int) {
	for _, list := range g.gone.apps {
		n += len(list)
	}
	return n
}

// KnownOfRun and SaidOfRun are what the judge of runs goes by that were accepted and not
// reported.
type KnownOfRun struct {
	Boot                                                  string
	Manual, Listed                                        bool
	Silent, Replaced, Watched, Age, Overdue, Absent, Deaf time.Duration
}

// SaidOfRun is what has come of a question about one.
type SaidOfRun struct {
	State wire.RunState
	Boot  string
	Busy  bool
	Err   error
}

func (k KnownOfRun) evidence() evidence {
	return evidence{
		standing: standing{manual: k.Manual, listed: k.Listed, silent: k.Silent, replaced: k.Replaced},
		boot:     k.Boot, watched: k.Watched, age: k.Age, overdue: k.Overdue, absent: k.Absent, deaf: k.Deaf,
	}
}

func unreportedBoundsOf(dead, lostAfter time.Duration) unreportedBounds {
	return newUnreportedBounds(&ClusterConfig{Dead: dead, LostAfter: lostAfter})
}

// JudgeUnreported is what is concluded, in a word.
func JudgeUnreported(dead, lostAfter time.Duration, k KnownOfRun, s SaidOfRun) string {
	c := unreportedBoundsOf(dead, lostAfter).conclude(k.evidence(), replyOf(answerAbout{state: s.State, boot: s.Boot, busy: s.Busy}, s.Err))
	switch {
	case c.lost != "":
		return "lost"
	case c.reread:
		return "reread"
	case c.overdue:
		return "overdue"
	}
	return ""
}

// AskUnreported is how long it is until the next question.
func AskUnreported(dead, lostAfter time.Duration, k KnownOfRun) time.Duration {
	return unreportedBoundsOf(dead, lostAfter).next(k.evidence())
}

// Replaced is for how long a process was replaced, in the last of these seconds. In each
// the process of one letter was heard of.
func Replaced(dead time.Duration, boot, boots string) time.Duration {
	began, now := time.Unix(0, 0), time.Unix(0, 0)
	at := &presence{since: began, wanted: map[string]bool{boot: true}}
	for i, b := range boots {
		if now = began.Add(time.Duration(i) * time.Second); b != '-' {
			at.register(string(b), now, now)
		}
	}
	return at.replaced(boot, now, dead)
}

// FairShare keeps at most so many runs, which are added in order of their ids and are each at
// an address. It returns those that are kept, and how many are not.
func FairShare(most int, ids []int64, address func(id int64) string) (kept []int64, left int) {
	share := fairShare{most: most}
	for _, id := range ids {
		share.add(store.Run{ID: id, Address: address(id)})
	}
	return slices.Sorted(maps.Keys(share.runs())), share.left
}

// Cycles are the ways round in a graph.
func Cycles(next map[string][]string) func(node string) string { return newCycles(next).through }

// FullLogBook has so many runs write a line each, and end, while nothing is written. It returns
// what is kept of them, and of how many.
func FullLogBook(room, runs int) (stats LogStats, open, fed int) {
	b := newLogBook(LogConfig{QueueBytes: room, RunBytes: 1 << 20})
	for i := range runs {
		r := b.of(&startLog{}, int64(i+1), 0, "")
		r.write(LogLine{Text: "a line"})
		r.end()
	}
	return b.state(), len(b.runs), len(b.fed)
}

// DrainLogBook is FullLogBook, after which everything is written.
func DrainLogBook(room, runs int) (stats LogStats, open int, lines map[int64]int) {
	b := newLogBook(LogConfig{QueueBytes: room, RunBytes: 1 << 20})
	for i := range runs {
		r := b.of(&startLog{}, int64(i+1), 0, "")
		r.write(LogLine{Text: "a line"})
		r.end()
	}
	lines = map[int64]int{}
	for b.due(time.Now()) < loop.Forever {
		batch := b.take()
		for _, c := range batch {
			lines[c.RunID] += len(c.Lines)
			if !c.End {
				lines[c.RunID] += 1000
			}
		}
		b.written(batch, nil, time.Now())
	}
	return b.state(), len(b.runs), lines
}

// AliasedLines writes a record to a log that nobody reads, and returns how many of its lines
// wait, and how many of these lie in the memory of the record although they are not all of it.
func AliasedLines(record string) (waiting, aliased int) {
	b := newLogBook(LogConfig{QueueBytes: 1 << 30, RunBytes: 1 << 30})
	r := b.of(&startLog{}, 1, 0, "")
	r.write(LogLine{Text: record})
	begin := uintptr(unsafe.Pointer(unsafe.StringData(record)))
	for _, line := range r.lines {
		at := uintptr(unsafe.Pointer(unsafe.StringData(line.Text)))
		if at >= begin && at < begin+uintptr(len(record)) && len(line.Text) > 0 && len(line.Text)+1 < len(record) {
			aliased++
		}
	}
	return len(r.lines), aliased
}

// SilentLogs opens and ends the log of a run so often, whose handler logs nothing. It returns how
// many allocations each took, and how many logs are in the book then.
func SilentLogs(times int) (allocs float64, open int) {
	all := &shared{cfg: Config{}.withDefaults(), life: newLife()}
	all.leases = newLeases("n-1", timesOf(&all.cfg.Cluster), func() []store.Attachment { return nil })
	k := &logKeeper{shared: all, book: newLogBook(LogConfig{QueueBytes: 1 << 20, RunBytes: 1 << 20})}
	f := &finisher{shared: all, engine: newEngine(all, nil)}
	f.engine.under.flights.Set(1, &flight{routed: &routed{}, run: startedRun{planned: plannedRun{ID: 1}}})
	admin := loggingAdmin{attachedAdmin{f, k}}
	allocs = testing.AllocsPerRun(times, func() {
		f.engine.under.flights.Of(1).lines = startLog{}
		_, end := admin.OpenLog(1, 0)
		end()
	})
	return allocs, len(k.book.runs)
}

// LinesOfPage are the lines from one on of a page that has these, and says that they are others.
func LinesOfPage(text string, first, last, from int) (string, error) {
	var w pageWriter
	pages, err := w.pages(RunLines{Lines: []LogLine{{Text: text}}}, false)
	if err != nil {
		return "", err
	}
	pages[0].FirstLine, pages[0].LastLine = first, last
	return linesOf(pages[0], from)
}

// Logless are the errors that say why there is no log of a run.
func Logless() []error {
	return []error{errNotStarted(), errNoneThere(), errNodeGone("n1"), noLog("as others say it")}
}
