package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob"
)

const (
	stamp   = "2006-01-02 15:04:05.000"
	clock   = "15:04:05.000"
	columns = "%-40s  %-23s  %-12s  %9s  %s"
	preview = 5 // instants shown at the start
)

// printer writes what happens, line by line, and nothing but text: see asText.
type printer struct {
	zone  *time.Location
	store xxljob.Store

	mu    sync.Mutex
	out   io.Writer        // guarded by mu
	names map[int64]string // guarded by mu: of jobs, as far as they are known
}

// printf writes one line. It is the only way to the screen.
func (p *printer) printf(format string, args ...any) {
	line := asText(fmt.Sprintf(format, args...))
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.out, line)
}

// say writes a line about the program itself, marked as such.
func (p *printer) say(format string, args ...any) { p.printf("# "+format, args...) }

// begin says what will happen, and how to read it.
func (p *printer) begin(jobs []xxljob.Ensured) {
	p.learn(jobs)
	due := slices.DeleteFunc(slices.Clone(jobs), func(e xxljob.Ensured) bool { return e.Job.Next.IsZero() })
	slices.SortStableFunc(due, func(a, b xxljob.Ensured) int {
		return cmp.Or(a.Job.Next.Compare(b.Job.Next), cmp.Compare(a.Job.Key, b.Job.Key))
	})
	p.say("%d jobs, %d of them scheduled; times are in %s; the next:", len(jobs), len(due), p.zone)
	for _, e := range due[:min(preview, len(due))] {
		p.say("  %s  %s", e.Job.Next.In(p.zone).Format(stamp), e.Job.Key)
	}
	p.printf(columns, "job", "scheduled", "started", "late", "state")
}

// reloaded says what came of reading the file again.
func (p *printer) reloaded(jobs []xxljob.Ensured, gone int, err error) {
	if err != nil {
		p.say("not reloaded, the jobs stay as they are:")
		for line := range strings.Lines(err.Error()) {
			p.say("  %s", strings.TrimSpace(line))
		}
		return
	}
	p.learn(jobs)
	n := map[xxljob.Outcome]int{}
	for _, e := range jobs {
		n[e.Outcome]++
	}
	p.say("reloaded: %d created, %d changed, %d unchanged, %d gone and stopped",
		n[xxljob.Created], n[xxljob.Changed], n[xxljob.Unchanged], gone)
}

// runEnded is Hooks.RunEnded. A hook should be quick: writing a line is.
func (p *printer) runEnded(r xxljob.Run) {
	p.printf("%s", p.line(p.name(r.JobID), r))
}

// learn takes in the names of jobs.
func (p *printer) learn(jobs []xxljob.Ensured) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil {
		p.names = map[int64]string{}
	}
	for _, e := range jobs {
		p.names[e.Job.ID] = e.Job.Key
	}
}

// name is the name of a job. Of one that another process has added the store is
// asked, once.
func (p *printer) name(id int64) string {
	p.mu.Lock()
	name, ok := p.names[id]
	p.mu.Unlock()
	if ok {
		return name
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	j, err := p.store.Job(ctx, id)
	if err != nil {
		return fmt.Sprintf("job %d", id) // removed meanwhile
	}
	p.learn([]xxljob.Ensured{{Job: j}})
	return j.Key
}

// line is the line of a run.
func (p *printer) line(name string, r xxljob.Run) string {
	started, late := "-", "-"
	if at := began(r); !at.IsZero() {
		started = at.In(p.zone).Format(clock)
		late = fmt.Sprintf("%d ms", at.Sub(r.Scheduled).Milliseconds())
	}
	return fmt.Sprintf(columns, name, r.Scheduled.In(p.zone).Format(stamp), started, late, p.outcome(r))
}

// began is when the handler of a run began, as far as its row knows, or zero. The mark in
// the store is written a little ahead, so as not to be late, and where another node runs
// it, that takes the run later.
func began(r xxljob.Run) time.Time {
	if r.Started.IsZero() {
		return time.Time{}
	}
	return slices.MaxFunc([]time.Time{r.Scheduled, r.Started, r.Taken}, time.Time.Compare)
}

// outcome is the state of a run, and why or with what result.
func (p *printer) outcome(r xxljob.Run) string {
	text := r.HandleMsg
	switch r.State {
	case xxljob.StateSkipped:
		return fmt.Sprintf("skipped (%s): %d instants, %s to %s", r.Reason, r.Count,
			r.First.In(p.zone).Format(stamp), r.Last.In(p.zone).Format(stamp))
	case xxljob.StateCancelled:
		text = r.Reason
	}
	state := r.State.String()
	if r.Sharding.Total > 0 {
		state += " " + r.Sharding.String()
	}
	if text, _, _ = strings.Cut(text, "\n"); text != "" {
		state += ": " + text
	}
	return state
}
