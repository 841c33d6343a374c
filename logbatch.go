package xxljob

// What of the lines that wait is written next, and what became of it.

import (
	"fmt"
	"time"
)

// logChunk is what a batch has of one run.
type logChunk struct {
	RunLines
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
		return forever
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
	c.RunLines = RunLines{RunID: r.of.run, JobID: r.of.job, App: r.of.app, First: r.first, Lines: r.lines[:n:n]}
	// The rest is copied, so that what is written is not kept with it.
	r.lines, r.first, r.bytes = append([]LogLine(nil), r.lines[n:]...), r.first+n, r.bytes-size
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
	r.put(LogLine{Time: time.Now(), Text: fmt.Sprintf("(the log is cut here: no more than %d bytes are kept of a job's runs of one day, or the store is full)", b.perJob)})
	if r.state.closed {
		b.hasten()
	}
	if c.End { // it is to be told once more
		b.stats.Waiting += logEndCost
	}
}

func (b *logBook) state() LogStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}
