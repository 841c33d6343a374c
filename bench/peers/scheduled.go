package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// plan is a situation in which jobs are due by a schedule.
type plan struct {
	jobs  int
	every time.Duration // of each job
	herd  bool          // all of them are due at one instant; otherwise they are spread evenly
}

// first is the first instant of a job.
func (p plan) first(began time.Time, i int) time.Time {
	if p.herd {
		return began
	}
	return began.Add(time.Duration(i) * p.every / time.Duration(p.jobs))
}

// window begins at an instant, or where all of them are one in the middle between two, so that a
// herd is not cut through.
func (p plan) window(from time.Time, length time.Duration) window {
	if p.herd {
		from = from.Add(-p.every / 2)
	}
	return window{from, length.Truncate(p.every), p.every}
}

// pace is how much time a round takes beside the measurement.
type pace struct {
	lead   time.Duration // from the insert of jobs to the first instant
	warmUp time.Duration // from the first instant to the measurement
	grace  time.Duration // behind it: what was due last has a moment to be called
}

func usualPace() pace {
	return pace{lead: 4 * time.Second, warmUp: 3 * time.Second, grace: time.Second}
}

// errLate says that the preparation of a round has taken until it was to be measured.
var errLate = errors.New("the preparation has taken too long")

// inTime does a round whose preparation has to be over within the lead, of so many rows: again
// with a longer one where it is not.
func (b *bench) inTime(ctx context.Context, rows int, round func(ctx context.Context, lead time.Duration) (sample, error)) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lead := b.pace.lead + time.Duration(rows)*100*time.Microsecond
	for {
		if s, err = round(ctx, lead); !errors.Is(err, errLate) {
			return s, err
		}
		lead *= 2
	}
}

// scheduled is one round of ours: jobs in a database, planned, fenced, started and recorded.
func (b *bench) scheduled(ctx context.Context, p plan) (sample, error) {
	return b.inTime(ctx, p.jobs, func(ctx context.Context, lead time.Duration) (s sample, err error) {
		err = b.withDatabase(ctx, func(dsn string, pool *pgxpool.Pool) error {
			d := oursData{pool}
			began := time.Now().Truncate(time.Second).Add(time.Second + lead)
			if err := d.jobs(ctx, p.jobs, p.every, func(i int) time.Time { return p.first(began, i) }); err != nil {
				return err
			}
			return b.withTeam(ctx, task{Who: ours, DSN: dsn, Conns: b.Conns}, 1, func(t team) error {
				w := p.window(began.Add(b.pace.warmUp.Truncate(p.every)+p.every), b.For)
				s, err = b.scheduledOurs(ctx, p, w, d, t)
				return err
			})
		})
		return s, err
	})
}

func (b *bench) scheduledOurs(ctx context.Context, p plan, w window, d oursData, t team) (s sample, err error) {
	if s, err = b.startAndMeasure(ctx, t, w); err != nil {
		return s, err
	}
	end, err := t.see(w)
	if err != nil {
		return s, err
	}
	s.lateness(end.Seen, p, w)
	found, err := d.states(ctx)
	s.Skipped = found.skipped
	if end.Seen.Gaps > found.skipped || end.Seen.Early > 0 {
		err = errors.Join(err, &auditError{found, *end.Seen})
	}
	return s, errors.Join(err, found.audit(end.Seen))
}

// startAndMeasure starts a team after a checkpoint, and measures what a window costs.
func (b *bench) startAndMeasure(ctx context.Context, t team, w window) (sample, error) {
	if err := b.server.checkpoint(ctx); err != nil {
		return sample{}, err
	}
	if _, _, err := t.do(order{Do: "start"}); err != nil {
		return sample{}, err
	}
	return b.during(ctx, t, b.server.meter(t), w)
}

// aside is how long before the instants of a herd costs are read: reading them takes some of the very
// time in which the herd is started, and from who records its runs most.
const aside = 300 * time.Millisecond

// during measures what a window costs, which must not have begun.
func (b *bench) during(ctx context.Context, t team, meter measure.Meter, w window) (s sample, err error) {
	read := w.From.Add(-aside)
	if time.Now().After(read) {
		return s, errLate
	}
	if err = sleepUntil(ctx, read); err != nil {
		return s, err
	}
	from := meter.Now(ctx)
	before, _, err := t.do(order{Do: "count"})
	if err != nil {
		return s, err
	}
	if err = sleepUntil(ctx, read.Add(w.For)); err != nil {
		return s, err
	}
	after, _, err := t.do(order{Do: "count"})
	if err != nil {
		return s, err
	}
	s.costs(from.To(meter.Now(ctx)), after.Alloc.Minus(before.Alloc), after.Calls-before.Calls)
	return s, sleep(ctx, b.pace.grace)
}

// lateness fills in what handlers have seen of a plan in a window.
func (s *sample) lateness(seen *seen, p plan, w window) {
	s.Scheduled = true
	s.Offered = float64(p.jobs) / p.every.Seconds()
	s.Rate = float64(seen.Called) / w.For.Seconds()
	s.Uncalled = max(p.jobs*int(w.For/p.every)-seen.Due, 0)
	if seen.Due > 0 {
		s.Late = &seen.Late
	}
	if seen.Thirds[0] > 0 {
		s.Steady = measure.Known(float64(seen.Thirds[2]) / float64(seen.Thirds[0]))
	}
}

// scheduledRiver is one round of River with as many jobs a second, each inserted with its time
// before the first is due. It ends when all of them are done, which may be long after the last
// was due.
func (b *bench) scheduledRiver(ctx context.Context, p plan) (sample, error) {
	n := p.jobs * int((b.pace.warmUp+b.For)/p.every)
	return b.inTime(ctx, n, func(ctx context.Context, lead time.Duration) (s sample, err error) {
		err = b.withDatabase(ctx, func(dsn string, pool *pgxpool.Pool) error {
			d := riverData{pool}
			began := time.Now().Truncate(time.Second).Add(time.Second + lead)
			if err := d.insert(ctx, n, func(i int) time.Time { return p.first(began, i).Truncate(time.Millisecond) }); err != nil {
				return err
			}
			return b.withTeam(ctx, task{Who: riverName, DSN: dsn, Conns: b.Conns}, 1, func(t team) error {
				w := p.window(began.Add(b.pace.warmUp), b.For)
				w.Every = 0 // its jobs are due once each
				if s, err = b.startAndMeasure(ctx, t, w); err != nil {
					return err
				}
				if err := untilCalled(ctx, t, n); err != nil {
					return err
				}
				end, err := t.see(w)
				if err != nil {
					return err
				}
				s.lateness(end.Seen, p, w)
				found, err := d.states(ctx)
				return errors.Join(err, found.audit(end.Seen))
			})
		})
		return s, err
	})
}

// untilCalled waits until handlers were called so often.
func untilCalled(ctx context.Context, t team, n int) error {
	for {
		sum, _, err := t.do(order{Do: "count"})
		if err != nil || sum.Calls >= n {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
