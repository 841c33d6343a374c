package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/measure"
)

// drain measures how many runs a second come through that are all due already, from the first
// call of a handler to the last end that is stored.
func (b *bench) drain(ctx context.Context, r *Report) error {
	return b.on(ctx, func(st *backend) error { return b.drainOn(ctx, st, r, b.cfg.Jobs, b.cfg.Runs) })
}

func (b *bench) drainOn(ctx context.Context, st *backend, r *Report, jobs, runs int) error {
	base := time.Now().Truncate(time.Second)
	ids, err := addJobs(ctx, st.store, jobs, b.cfg.noop(appDue), nil)
	if err != nil {
		return err
	}
	n, err := newNode(ctx, b.cfg, st, newCalls(base), 0)
	if err != nil {
		return err
	}
	planned, used, err := b.drainNode(ctx, st, n, r, ids, runs)
	calls, stopped := n.stop()
	if err = errors.Join(err, stopped); err != nil {
		return err
	}
	return b.judgeDrain(ctx, st, n, r, planned, calls, used)
}

// drainNode plans the runs and has them drained by a scheduler that is not started yet.
func (b *bench) drainNode(ctx context.Context, st *backend, n *node, r *Report, jobs []int64, runs int) (planned []int64, used measure.Usage, err error) {
	if n.fleet != nil {
		// There is nobody yet with whom they could register.
		if err := st.store.SaveGroup(ctx, xxljob.Group{App: appDue, Title: appDue, Manual: true, Addresses: n.fleet.addresses()}); err != nil {
			return nil, used, err
		}
	}
	b.say("planning %d runs of %d jobs", runs, len(jobs))
	if planned, err = st.plan(ctx, jobs, runs); err != nil {
		return nil, used, fmt.Errorf("plan runs: %w", err)
	}
	if err := st.settle(ctx); err != nil {
		return nil, used, err
	}
	b.say("draining them")
	w := n.openWindow(ctx, b.meter)
	if _, err = n.start(ctx); err == nil {
		err = poll(ctx, time.Minute+b.cfg.Patience, 10*time.Millisecond, func() (bool, error) { return n.drained(ctx, runs) })
	}
	used = w.close(ctx, r, n.fleet)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		r.Notes = append(r.Notes, "not all runs had ended when patience had")
		err = nil
	}
	return planned, used, err
}

// drained reports whether all runs have ended. The store is not asked before all were called,
// where that is known.
func (n *node) drained(ctx context.Context, runs int) (bool, error) {
	if n.fleet == nil && n.calls.log.Len() < runs {
		return false, nil
	}
	open, err := n.store.Runs(ctx, xxljob.RunFilter{App: appDue, States: []xxljob.State{xxljob.StatePlanned, xxljob.StateStarted, xxljob.StateDispatched}, Limit: 1})
	return len(open) == 0, err
}

func (b *bench) judgeDrain(ctx context.Context, st *backend, n *node, r *Report, planned []int64, calls []call, used measure.Usage) error {
	a := newAuditor(newRunUnits(planned))
	base := time.UnixMilli(n.calls.base)
	first := time.Now()
	for _, c := range calls {
		a.called(base, c)
		if at := base.Add(time.Duration(c.called()) * time.Millisecond); at.Before(first) {
			first = at
		}
	}
	done := 0
	err := eachRun(ctx, st.store, func(run *xxljob.Run) {
		a.ran(run)
		if run.State == xxljob.StateSucceeded {
			done++
			b.lastEnd = laterOf(b.lastEnd, run.Ended)
		}
	})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	r.Audit = a.verdict()
	r.Cost = costOf(used, float64(done))
	// To the millisecond, as the store keeps times: a drain that takes none has taken one.
	r.Seconds = max(b.lastEnd.Sub(first), time.Millisecond).Seconds()
	r.Completed = float64(done) / r.Seconds
	return nil
}
