//go:build unix

package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// definitions is the workload: what is due, how often, and how it is routed and
// blocked. Every shard has a job of the first kind, which is due so often that it
// can be seen how fast a shard is taken over.
//
// A cluster that has the machine to itself has all of it. One that shares the machine
// is due half as often, with one job a route: four times the whole of it is more than
// two cores can do, and how late the starts are would then say nothing of the fault.
func definitions(alone bool) []control.Job {
	var jobs []control.Job
	period, each := int64(500), 1
	if alone {
		period, each = 250, 2
	}
	add := func(n int, j control.Job) {
		name := j.Name
		for i := range n {
			j.Name = fmt.Sprintf("%s %d", name, i)
			jobs = append(jobs, j)
		}
	}
	add(shards, control.Job{Name: "rate", Kind: control.Rate, Period: period, Route: "NEAREST"})
	add(6, control.Job{Name: "cron", Kind: control.Cron, Period: 1000, Route: "NEAREST"})
	for _, route := range routes() {
		add(each, control.Job{Name: "by " + route, Kind: control.Cron, Period: 1000, Route: route})
	}
	add(1, control.Job{Name: "further app", App: "further", Kind: control.Cron, Period: 1000, Route: "RANDOM"})
	add(1, control.Job{Name: "broadcast, discard", Kind: control.Cron, Period: 2000, Route: "SHARDING_BROADCAST", Block: audit.BlockDiscard, Param: "takes=600"})
	add(1, control.Job{Name: "broadcast, cover", Kind: control.Cron, Period: 2000, Route: "SHARDING_BROADCAST", Block: audit.BlockCover, Param: "takes=600"})
	add(2, control.Job{Name: "long", Kind: control.Cron, Period: 5000, Route: "NEAREST", Param: "takes=3000"})
	add(1, control.Job{Name: "long round", Kind: control.Cron, Period: 2000, Route: "ROUND", Param: "takes=1200"})
	add(1, control.Job{Name: "discard", Kind: control.Cron, Period: 1000, Route: "NEAREST", Block: audit.BlockDiscard, Param: "takes=2300"})
	add(1, control.Job{Name: "cover", Kind: control.Cron, Period: 2000, Route: "NEAREST", Block: audit.BlockCover, Param: "takes=3500"})
	add(1, control.Job{Name: "concurrent", Kind: control.Cron, Period: 1000, Route: "NEAREST", Block: audit.BlockConcurrent, Max: 3, Param: "takes=1500"})
	add(1, control.Job{Name: "concurrent round", Kind: control.Cron, Period: 1000, Route: "ROUND", Block: audit.BlockConcurrent, Max: 3, Param: "takes=2500"})
	add(2, control.Job{Name: "delay", Kind: control.Delay, Period: 1000, Route: "ROUND", Param: "takes=200"})
	add(1, control.Job{Name: "fire once", Kind: control.Cron, Period: 1000, Route: "NEAREST", FireOnce: true})
	return jobs
}

// routes are the strategies that have serial jobs of their own, each due every
// second.
func routes() []string {
	return []string{"FIRST", "LAST", "ROUND", "RANDOM", "CONSISTENT_HASH", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED", "FAILOVER", "BUSYOVER", "SHARDING_BROADCAST", "NEAREST"}
}

// prompt reports whether nothing but a fault makes the runs of a definition late.
func prompt(d control.Job) bool {
	return (d.Kind == control.Cron || d.Kind == control.Rate) && d.Block == "" && d.Param == ""
}

// editedJobs are the jobs that are edited, stopped and removed all the time, and
// boundedJobs those that come to the end of their schedules.
const (
	editedJobs  = 3
	boundedJobs = 2
)

// workload adds the jobs and keeps operations going until ctx ends.
func (a *arena) workload(ctx context.Context) (wait func(), err error) {
	for _, d := range definitions(a.alone) {
		if a.slowly && d.Period > 0 {
			d.Period = max(d.Period, 1000)
		}
		if _, err := a.ensure(ctx, nil, d, prompt(d)); err != nil {
			return nil, err
		}
	}
	var manual []int64
	for _, d := range []control.Job{{Name: "by hand, round", Route: "ROUND"}, {Name: "by hand, nearest", Route: "NEAREST"}} {
		id, err := a.ensure(ctx, nil, d, false)
		if err != nil {
			return nil, err
		}
		manual = append(manual, id)
	}
	for i := range shards { // one in each, so that every node has runs to move
		id, err := a.ensure(ctx, nil, control.Job{Name: fmt.Sprintf("apart %d", i), Route: "NEAREST", LateAfter: 10_000}, false)
		if err != nil {
			return nil, err
		}
		a.apart = append(a.apart, id)
	}
	if err := errors.Join(a.addChains(ctx, 300), a.addFamily(ctx, 5000, 4)); err != nil {
		return nil, err
	}
	var g sync.WaitGroup
	g.Go(func() { a.chains(ctx, 1500*time.Millisecond) })
	g.Go(func() { a.triggers(ctx, manual) })
	g.Go(func() { a.transactions(ctx, manual) })
	for i := range editedJobs {
		g.Go(func() { a.edits(ctx, i) })
	}
	for i := range boundedJobs {
		g.Go(func() { a.bounded(ctx, i) })
	}
	a.manual = manual
	return g.Wait, nil
}

// prompt is a workload of nothing but jobs with short runs which nobody edits or triggers.
func (a *arena) prompt(ctx context.Context) (wait func(), err error) {
	for _, d := range definitions(a.alone) {
		if !prompt(d) {
			continue
		}
		if _, err := a.ensure(ctx, nil, d, true); err != nil {
			return nil, err
		}
	}
	return func() {}, nil
}

// ensure adds a job, at the first member if it is not nil, and journals it with the
// instants that it then has. Prompt is that of audit.Job.
func (a *arena) ensure(ctx context.Context, first *member, d control.Job, prompt bool) (int64, error) {
	d.Block = cmp.Or(d.Block, audit.BlockSerial)
	call := now()
	got, unknown, ok := a.insist(ctx, first, control.Request{Verb: control.Ensure, Job: d})
	if !ok {
		return 0, fmt.Errorf("chaos: job %q cannot be added: %s", d.Name, cmp.Or(got.Error, "no answer"))
	}
	j := audit.Job{ID: got.ID, Name: d.Name, Shard: got.Shard, Block: d.Block, Broadcast: d.Route == "SHARDING_BROADCAST", Nearest: d.Route == "NEAREST" && a.own == nil, Route: d.Route, Prompt: prompt,
		Remote: d.Remote, Max: d.Max, MaxRuns: d.MaxRuns, Again: again(d),
		Key: keyOf(d), Children: d.Children, ChildKeys: d.ChildKeys, After: d.After, AfterKeys: d.AfterKeys, Window: d.Window, AfterTimeout: d.AfterTimeout, LateAfter: d.LateAfter,
		App: cmp.Or(d.App, app), Nobody: d.Nobody, FireOnce: d.FireOnce, Chosen: d.Route == router}
	if d.Kind == control.Delay {
		j.Delay = d.Period
	}
	if d.App == nobody {
		j.Nobody = "" // it is not away for a while
	}
	a.journal.job(j)
	a.set(ctx, "ensure", got.ID, call, unknown, grid(d, got.Next))
	return got.ID, nil
}

// grid is when a definition is due, given one of its instants.
func grid(d control.Job, next int64) audit.Grid {
	switch d.Kind {
	case control.Cron:
		return audit.Grid{Period: d.Period, From: d.NotBefore, To: d.NotAfter}
	case control.Rate:
		return audit.Grid{Period: d.Period, Anchor: next}
	}
	return audit.Grid{}
}

// set journals an operation on a schedule that was answered at last. Where former
// attempts were not, they may still land: that time is waited for.
func (a *arena) set(ctx context.Context, verb string, job, call int64, unknown []*member, g audit.Grid) {
	a.settle(ctx, unknown)
	a.journal.op(audit.Op{Kind: audit.OpSet, Verb: verb, Job: job, Call: call, Return: now(), Outcome: audit.Done, Grid: g})
}

// zombie is how long a statement may go on after whoever sent it has gone.
const zombie = 3 * time.Second

// settle waits until what the members were asked and did not answer cannot take
// effect any more.
func (a *arena) settle(ctx context.Context, unknown []*member) {
	if len(unknown) == 0 {
		return
	}
	for _, m := range unknown {
		for m.alive() && m.isMute() && ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
	// Not cut short by ctx: what lands late would be held against the scheduler.
	time.Sleep(zombie)
}

// insist asks one node after the other, beginning with the given one if it is not
// nil, until one has done it, says that the job would never fire, or ctx ends. It returns those that gave no answer, or
// one that leaves the outcome open.
func (a *arena) insist(ctx context.Context, m *member, r control.Request) (got control.Answer, unknown []*member, ok bool) {
	for ; ctx.Err() == nil; m = nil {
		if m == nil {
			m = a.healthy()
		}
		if m == nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		got, err := m.ask(ctx, 5*time.Second, r)
		switch {
		case err == nil && got.Error == "":
			return got, unknown, true
		case err == nil && got.Never:
			return got, unknown, false
		case err != nil || !got.Refused:
			unknown = append(unknown, m)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return control.Answer{}, unknown, false
}
