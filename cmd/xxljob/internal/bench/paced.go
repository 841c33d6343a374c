package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/measure"
)

// paced measures jobs that are each due every second: steady, herd, and the due ones of the
// other shapes.
type paced struct {
	bench   *bench
	backend *backend
	jobs    int
	spread  bool
	misfire time.Duration // zero stands for the scheduler's own
	report  *Report

	// Since what is measured may come long after the scheduler's start.
	node *node
	base time.Time
}

// begin starts the scheduler.
func (p *paced) begin(ctx context.Context) (took time.Duration, err error) {
	p.base = time.Now().Truncate(time.Second)
	p.node, err = newNode(ctx, p.bench.cfg, p.backend, newCalls(p.base), p.misfire)
	if err != nil {
		return 0, err
	}
	if took, err = p.node.start(ctx); err == nil {
		err = p.node.registered(ctx)
	}
	if err != nil {
		_, stopped := p.node.stop()
		return 0, errors.Join(err, stopped)
	}
	return took, nil
}

// measure adds the jobs, waits until all of their instants have run, and stops the scheduler.
func (p *paced) measure(ctx context.Context) error {
	cal, ids, used, err := p.load(ctx)
	calls, stopped := p.node.stop()
	if err = errors.Join(err, stopped); err != nil {
		return err
	}
	p.bench.say("auditing %d calls", len(calls))
	return p.judge(ctx, cal, ids, calls, used)
}

// lead is how long before the first instant jobs are begun to be added: what the pre-read of
// the scheduler needs, and the adding itself, slow as it may be.
func lead(jobs int) time.Duration { return 2*time.Second + time.Duration(jobs)*200*time.Microsecond }

func (p *paced) load(ctx context.Context) (cal calendar, ids []int64, used measure.Usage, err error) {
	cfg := p.bench.cfg
	cal = newCalendar(p.jobs, p.spread, time.Now().Add(lead(p.jobs)), cfg.Warmup, cfg.Duration)
	job := cfg.noop(appDue)
	job.Schedule, job.NotAfter = xxljob.FixedRate(second), cal.last
	p.bench.say("adding %d jobs", p.jobs)
	if ids, err = addJobs(ctx, p.backend.store, p.jobs, job, cal.first); err != nil {
		return cal, ids, used, err
	}
	if err = p.backend.settle(ctx); err != nil {
		return cal, ids, used, err
	}
	p.bench.say("warming up for %v, then measuring for %v", time.Until(cal.from).Round(time.Second), cfg.Duration)
	if err = sleep(ctx, time.Until(cal.from)); err != nil {
		return cal, ids, used, err
	}
	w := p.node.openWindow(ctx, p.bench.meter)
	err = sleep(ctx, time.Until(cal.to))
	used = w.close(ctx, p.report, p.node.fleet)
	if err == nil {
		p.bench.say("waiting for what is late")
		err = p.end(ctx, cal)
	}
	return cal, ids, used, err
}

// end waits until all instants have run. Who runs out of patience audits what has.
func (p *paced) end(ctx context.Context, cal calendar) error {
	if err := sleep(ctx, time.Until(cal.last)); err != nil {
		return err
	}
	err := poll(ctx, p.bench.cfg.Patience, 100*time.Millisecond, func() (bool, error) { return p.node.allFinished(ctx) })
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		p.report.Notes = append(p.report.Notes, fmt.Sprintf("not all had ended %v after the last instant", p.bench.cfg.Patience))
		return nil
	}
	return err
}

// allFinished reports whether no job that was due has an instant or a run left: each is then
// stopped, since it has come to its NotAfter.
func (n *node) allFinished(ctx context.Context) (bool, error) {
	enabled := false
	left, err := n.store.Jobs(ctx, xxljob.JobFilter{App: appDue, Stopped: &enabled, Limit: 1})
	return len(left) == 0, err
}

// judge compares the calls with what is recorded, and fills in the report.
func (p *paced) judge(ctx context.Context, cal calendar, ids []int64, calls []call, used measure.Usage) error {
	a := newAuditor(newInstantUnits(cal, ids))
	s := newSeries(cal.from, cal.to)
	var late []int32
	for _, c := range calls {
		a.called(p.base, c)
		at := p.base.Add(time.Duration(c.At) * time.Millisecond)
		if !at.Before(cal.from) && at.Before(cal.to) {
			late = append(late, c.Late)
		}
		s.called(p.base.Add(time.Duration(c.called())*time.Millisecond), c.Late)
	}
	err := eachRun(ctx, p.backend.store, func(r *xxljob.Run) {
		a.ran(r)
		if r.State == xxljob.StateSucceeded {
			s.ended(r.Ended)
			p.bench.lastEnd = laterOf(p.bench.lastEnd, r.Ended)
		}
	})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	r := p.report
	r.Audit = a.verdict()
	r.Offered = float64(cal.offered()) / cal.to.Sub(cal.from).Seconds()
	r.Completed = float64(s.total()) / cal.to.Sub(cal.from).Seconds()
	r.Timeline = s.seconds()
	r.Cost = costOf(used, float64(s.total()))
	r.lateness(measure.NewDistribution(late))
	p.bench.last = cal.last
	return nil
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
