//go:build unix

package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// triggers runs jobs by hand, each with a key, so that it may be asked for again
// until it is answered. Some runs are kept apart for a moment, as those that are planned far
// ahead, where nodes tell each other of them: else they might move a minute later.
func (a *arena) triggers(ctx context.Context, jobs []int64) {
	for pause(ctx, a.between(100*time.Millisecond, 500*time.Millisecond)) {
		if a.lease != leaseRow && a.intn(3) == 0 {
			a.trigger(ctx, nil, a.apart[a.intn(len(a.apart))], true)
		} else {
			a.trigger(ctx, nil, jobs[a.intn(len(jobs))], false)
		}
	}
}

func (a *arena) trigger(ctx context.Context, first *member, job int64, ahead bool) {
	param := fmt.Sprintf("hand-%d", a.serial.Add(1))
	op := audit.Op{Kind: audit.OpTrigger, Verb: "trigger", Job: job, Call: now(), Outcome: audit.Unknown, Param: param}
	if got, _, ok := a.insist(ctx, first, control.Request{Verb: control.Trigger, ID: job, Param: param, Key: param, Ahead: ahead}); ok {
		op.Outcome, op.Run = audit.Done, got.Run
	}
	op.Return = now()
	a.journal.op(op)
}

// transactions runs jobs from transactions of the caller's, a third of which are
// rolled back. They have no key, so nobody asks twice.
func (a *arena) transactions(ctx context.Context, jobs []int64) {
	for pause(ctx, a.between(100*time.Millisecond, 600*time.Millisecond)) {
		if m := a.healthy(); m != nil {
			a.transaction(ctx, m, jobs[a.intn(len(jobs))], a.intn(3) > 0)
		}
	}
}

func (a *arena) transaction(ctx context.Context, m *member, job int64, commit bool) {
	param := fmt.Sprintf("tx-%d", a.serial.Add(1))
	op := audit.Op{Kind: audit.OpTx, Verb: "triggerTx", Job: job, Call: now(), Outcome: audit.Unknown, Param: param}
	got, err := m.ask(ctx, 5*time.Second, control.Request{Verb: control.Tx, ID: job, Param: param, Commit: commit})
	switch {
	case !commit || err == nil && got.Refused:
		op.Outcome = audit.Refused
	case err == nil && got.Error == "":
		op.Outcome, op.Run = audit.Done, got.Run
	}
	op.Return = now()
	a.journal.op(op)
}

// edits edits, stops, starts and removes one job after the other.
func (a *arena) edits(ctx context.Context, n int) {
	for ctx.Err() == nil {
		d := control.Job{Name: fmt.Sprintf("edited %d of %d", a.serial.Add(1), n), Kind: control.Cron, Period: 1000, Route: "NEAREST"}
		id, err := a.ensure(ctx, nil, d, false)
		if err != nil {
			return
		}
		for range 6 {
			if !pause(ctx, a.between(500*time.Millisecond, 5*time.Second)) {
				return
			}
			a.edit(ctx, id, &d)
		}
		a.change(ctx, nil, control.Request{Verb: control.Remove, ID: id}, audit.Grid{})
	}
}

// bounded makes one job after the other whose schedule ends: by a number of runs, or by
// times. The first kind is stopped for a while, the other gets another end, which may be
// later than the one that it has come to.
func (a *arena) bounded(ctx context.Context, n int) {
	for ctx.Err() == nil {
		d := control.Job{Name: fmt.Sprintf("bounded %d of %d", a.serial.Add(1), n), Kind: control.Cron, Period: 1000, Route: "NEAREST"}
		if n%2 == 0 {
			d.MaxRuns = 3 + a.intn(6)
		} else {
			d.NotBefore = now()/1000 + int64(a.intn(3000))
			d.NotAfter = d.NotBefore + 3000 + int64(a.intn(3000))
		}
		id, err := a.ensure(ctx, nil, d, false)
		if err != nil {
			continue // it took until the end was past, or ctx has ended
		}
		if !pause(ctx, a.between(500*time.Millisecond, 8*time.Second)) {
			return
		}
		if n%2 == 0 {
			a.change(ctx, nil, control.Request{Verb: control.Stop, ID: id}, audit.Grid{})
			_ = pause(ctx, a.between(0, 2*time.Second))
			a.change(ctx, nil, control.Request{Verb: control.Start, ID: id}, grid(d, 0))
		} else {
			d.NotAfter = now()/1000 + 1000 + int64(a.intn(5000))
			a.change(ctx, nil, control.Request{Verb: control.Update, ID: id, Job: d}, grid(d, 0))
		}
		if !pause(ctx, 9*time.Second) {
			return
		}
	}
}

// edit changes a job in one of the ways there are.
func (a *arena) edit(ctx context.Context, id int64, d *control.Job) {
	switch a.intn(4) {
	case 0:
		if a.change(ctx, nil, control.Request{Verb: control.Stop, ID: id}, audit.Grid{}) {
			_ = pause(ctx, a.between(0, 2*time.Second))
			a.change(ctx, nil, control.Request{Verb: control.Start, ID: id}, grid(*d, 0))
		}
	case 1: // the schedule
		d.Period = []int64{1000, 2000, 3000}[a.intn(3)]
		a.change(ctx, nil, control.Request{Verb: control.Update, ID: id, Job: *d}, grid(*d, 0))
	default: // anything else
		d.Param = fmt.Sprintf("takes=%d", a.intn(50))
		a.change(ctx, nil, control.Request{Verb: control.Update, ID: id, Job: *d}, grid(*d, 0))
	}
}

// change carries an operation out and journals it. When ctx ends before it was
// answered, its outcome stays unknown.
func (a *arena) change(ctx context.Context, first *member, r control.Request, g audit.Grid) bool {
	call := now()
	r.Job.Block = audit.BlockSerial
	_, unknown, ok := a.insist(ctx, first, r)
	if ok {
		a.set(ctx, r.Verb, r.ID, call, unknown, g)
		return true
	}
	a.settle(context.Background(), unknown)
	a.journal.op(audit.Op{Kind: audit.OpSet, Verb: r.Verb, Job: r.ID, Call: call, Return: now(), Outcome: audit.Unknown, Grid: g})
	return false
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
