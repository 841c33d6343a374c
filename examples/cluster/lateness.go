package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/postgres"
)

// After a node was killed: how late the runs were that fell due next, by the
// strategy that chose their nodes. Not those that the killed node had taken: they
// are interrupted, and are not started again.

// patience is how long a run may take to be taken before the report goes without it.
const patience = 30 * time.Second

// kill is the moment at which a node was killed.
type kill struct {
	node string
	at   time.Time
}

// reporter reads the log table and prints what it finds.
type reporter struct {
	store  *postgres.Store
	window time.Duration // of instants after a kill
	out    io.Writer
}

// report waits for the runs of a kill's window, and prints a line for each route.
func (r *reporter) report(ctx context.Context, k kill) error {
	if !wait(ctx, time.Until(k.at.Add(r.window))) {
		return nil
	}
	deadline := time.Now().Add(patience)
	for {
		found, err := r.read(ctx, k)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !anyWaits(found) || time.Now().After(deadline) {
			fmt.Fprint(r.out, describe(k, r.window, found))
			return nil
		}
		wait(ctx, 200*time.Millisecond)
	}
}

// routeLateness is how late the runs of one strategy were, in order.
type routeLateness struct {
	late  []time.Duration
	waits int // runs that no node had taken yet
}

// read sorts the runs that fell due in the window by route.
func (r *reporter) read(ctx context.Context, k kill) (map[string]*routeLateness, error) {
	jobs, err := r.store.Jobs(ctx, xxljob.JobFilter{App: "cluster", Limit: 1000})
	if err != nil {
		return nil, err
	}
	found := map[string]*routeLateness{}
	for _, j := range jobs {
		runs, err := r.store.Runs(ctx, xxljob.RunFilter{JobID: j.ID, From: k.at, To: k.at.Add(r.window), Limit: 1000})
		if err != nil {
			return nil, err
		}
		if len(runs) > 0 && found[j.Route] == nil {
			found[j.Route] = &routeLateness{}
		}
		for _, run := range runs {
			found[j.Route].add(run)
		}
	}
	for _, l := range found {
		slices.Sort(l.late)
	}
	return found, nil
}

// add takes a run in. What was lost had been taken by a node that died.
func (l *routeLateness) add(run xxljob.Run) {
	switch {
	case run.State == xxljob.StateLost:
	case !run.Taken.IsZero():
		// The start of a run may be written up to 20 ms ahead of its time, and is its taking
		// where the starter executes it; no handler is called before.
		l.late = append(l.late, max(run.Taken.Sub(run.Scheduled), 0))
	case !run.State.Ended():
		l.waits++
	}
}

func anyWaits(found map[string]*routeLateness) bool {
	for _, l := range found {
		if l.waits > 0 {
			return true
		}
	}
	return false
}

// describe is the report in lines.
func describe(k kill, window time.Duration, found map[string]*routeLateness) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# node %s was killed at %s; runs due in the next %v that it had not taken:\n", k.node, k.at.UTC().Format(clock), window)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		l := found[name]
		fmt.Fprintf(&text, "#   %-21s  %3d runs", plain(name), len(l.late)+l.waits)
		if n := len(l.late); n > 0 {
			p99 := l.late[(n*99+99)/100-1]
			fmt.Fprintf(&text, "  late p99 %5d ms  at most %5d ms", p99.Milliseconds(), l.late[n-1].Milliseconds())
		}
		if l.waits > 0 {
			fmt.Fprintf(&text, "  %d still wait", l.waits)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// wait is false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
