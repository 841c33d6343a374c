package bench

import (
	"context"
	"fmt"
	"math"
	"time"
)

// excess is how much of the capacity is offered.
const excess = 1.5

// lateBound is the misfire threshold of an overload: what is late is to be run, and not to be
// skipped for its lateness, however long the load lasts.
const lateBound = 24 * time.Hour

// overload offers half as many runs again as come through.
func (b *bench) overload(ctx context.Context, r *Report) error {
	out := &OverloadReport{Capacity: b.cfg.Capacity}
	if out.Capacity == 0 {
		found := &Report{}
		err := b.on(ctx, func(st *backend) error { return b.drainOn(ctx, st, found, drainJobs, b.cfg.Runs) })
		if err != nil {
			return fmt.Errorf("find the capacity: %w", err)
		}
		if r.Audit = found.Audit; !r.Audit.Clean() {
			return nil // which the report says
		}
		out.Capacity, out.Measured = found.Completed, true
		b.say("%.0f runs a second come through", out.Capacity)
		b.lastEnd = time.Time{}
	}
	r.Overload = out
	r.Notes = append(r.Notes, fmt.Sprintf("the misfire threshold is %v instead of 15 s, so that what is late is run and not skipped", lateBound))
	err := b.on(ctx, func(st *backend) error {
		p := &paced{bench: b, backend: st, jobs: max(int(math.Round(excess*out.Capacity)), 1), spread: true, misfire: lateBound, report: r}
		if _, err := p.begin(ctx); err != nil {
			return err
		}
		return p.measure(ctx)
	})
	if err == nil {
		out.compare(r, b.lastEnd.Sub(b.last))
	}
	return err
}

// compare fills in what follows from the figures of the report.
func (o *OverloadReport) compare(r *Report, catchUp time.Duration) {
	o.DoneToOffered = r.Completed / r.Offered
	o.DoneToCapacity = r.Completed / o.Capacity
	o.FirstThird, o.LastThird = thirds(r.Timeline)
	if o.FirstThird > 0 {
		o.LastToFirst = o.LastThird / o.FirstThird
	}
	o.CatchUpSeconds = max(catchUp, 0).Seconds()
}
