package scan

import (
	"context"
	"errors"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Input: jobs that become due, and planned runs that others have inserted, from
// the store. Output: jobs that are due, to claim.go, which has plan/plan.go say what becomes of
// them; the runs that the store has inserted then, to queue/held.go, on the ring, and from there to
// dispatch/start.go.
// Planned runs that this node does not hold are read by reload.go.

// Scanner plans what becomes due. It belongs to the scan loop.
type Scanner struct {
	*core.Core
	queue      *queue.Queue
	fitness    *lease.Fitness
	reconciler *reconciler
	reloader   *reloader
	claimer    *claimer
	window     planWindow
}

func NewScanner(s *core.Core, e *queue.Queue, serving Serving, f *lease.Fitness, t *events.Bus, reload *lease.ReloadSet) *Scanner {
	return &Scanner{
		Core: s, queue: e, fitness: f, reconciler: &reconciler{Core: s, queue: e}, reloader: &reloader{s, e, t, reload},
		claimer: &claimer{Core: s, queue: e, bus: t, reload: reload, stopping: map[int64]string{}, waiting: waitingJobs{serving: serving}, claiming: claimCalls{Backoff: loop.Backoff{Log: s.Logger, What: "claiming due jobs"}}},
	}
}

// planWindow is the time ahead that a scan plans.
type planWindow struct {
	set, end time.Time
	took     time.Duration              // the last scan
	jobs     loop.Scratch[store.DueJob] // found by the last scan
	runs     loop.Scratch[store.Run]
}

// at returns the end of the window for a scan at the time. It moves on a little
// early where a hint has called for a scan shortly before it is due: the next one
// would have to wait until this one is over.
func (w *planWindow) at(now time.Time, preRead time.Duration) time.Time {
	if now.Before(w.set) || !now.Before(w.moves(preRead).Add(-2*w.took)) {
		w.set, w.end = now, now.Add(preRead)
	}
	return w.end
}

// moves is when the window moves on. It does in steps, so that a job with a short period is
// claimed once for several of its instants; of about half of the pre-read, and two thirds at
// most, so that nothing comes late by it.
func (w *planWindow) moves(preRead time.Duration) time.Time {
	next := betweenSeconds(w.set.Add(preRead/2), preRead)
	if next.Sub(w.set) > preRead*2/3 {
		return next.Add(-time.Second)
	}
	return next
}

// betweenSeconds is the time, or up to a second later, where two whole seconds are equally far: those
// are the instants of crontabs, and to plan herds while others are started would make these late. A
// short pre-read leaves no room for that.
func betweenSeconds(t time.Time, preRead time.Duration) time.Time {
	if preRead < 4*time.Second {
		return t
	}
	const half = time.Second / 2
	return t.Add(half - 1).Truncate(time.Second).Add(half)
}

// scanning is the duty, as it is said.
const scanning = "scanning for due jobs"

// ScanDuty claims what becomes due. It is the only one that scans on this node, so no shard
// is scanned twice at once.
func (s *Scanner) ScanDuty(signals store.Signals) loop.Duty {
	return loop.Duty{
		What: scanning, Wakes: []<-chan struct{}{signals.Scan, s.Life.Wakes.Scan},
		Once: func(ctx context.Context) (time.Duration, error) {
			wait, err := s.scanOnce(ctx)
			if err == nil && s.fitness.Fails() {
				s.tryOut(ctx)
				wait = min(wait, s.Cfg.Cluster.LeaseTTL/5)
			}
			return wait, err
		},
	}
}

// scanOnce plans everything up to the end of the window and returns when to look again.
func (s *Scanner) scanOnce(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	if !s.Leases.Trusted(start) {
		s.NoteStall(ctx, scanning, start, nil) // Ready says why
		return loop.Forever, nil               // the lease loop pokes
	}
	shards := s.Leases.Owned()
	if len(shards) == 0 {
		s.NoteStall(ctx, scanning, start, nil)
		s.TellUnable(core.UnableDue, s.Clock.Now(), nil)
		s.TellUnable(core.UnableOwed, s.Clock.Now(), nil)
		if s.Unable.HasSent() {
			return unableEvery, nil
		}
		return loop.Forever, nil
	}
	began := s.fitness.Begin(&s.fitness.Claims)
	wait, failed, err := s.scanShards(ctx, shards)
	s.fitness.End(ctx, &s.fitness.Claims, began, errors.Join(err, failed))
	s.NoteStall(ctx, scanning, start, errors.Join(err, failed))
	return wait, err
}

// scanShards is scanOnce for shards. Where the claim failed, and is spaced by itself, the
// error is the second result.
func (s *Scanner) scanShards(ctx context.Context, shards []store.Shard) (wait time.Duration, failed, err error) {
	now := s.Clock.Now()
	before := s.window.at(now, s.Cfg.PreRead)
	s.claimer.claiming.rested = 0
	defer func(began time.Time) { s.window.took = time.Since(began) - s.claimer.claiming.rested }(time.Now())
	s.queue.Jobs.Tidy(now)
	if s.claimer.unconfirmed.due(time.Now()) {
		s.reloader.set.Add(shards)
	}
	if err := s.reloader.reloadPlanned(ctx, before); err != nil {
		return 0, nil, err
	}
	if err := s.reconciler.reconcile(ctx, shards); err != nil {
		return 0, nil, err
	}
	// Jobs that are left as they are come with each scan, and take no room from others.
	aside := s.claimer.unable + s.claimer.refusals.Len()
	from := s.claimer.waiting.from(shards, aside+len(s.claimer.stopping) > 0)
	limit := s.Cfg.Limits.ScanLimit + aside + s.claimer.waiting.count()
	memory := store.ScanResult{Jobs: s.window.jobs.Again(), Runs: s.window.runs.Again()}
	res, err := loop.Call(ctx, func(ctx context.Context) (store.ScanResult, error) {
		return s.Store.Scan(ctx, memory, store.ScanQuery{Shards: shards, From: from, Before: before, Jobs: limit, Runs: core.ScanRuns})
	})
	if err != nil {
		s.window.jobs.Drop() // the call may still be under way
		s.window.runs.Drop()
		s.reloader.set.Add(shards) // runs of others may be among what was not received
		s.claimer.waiting.again()
		return 0, nil, err
	}
	s.window.jobs.Used(res.Jobs)
	s.window.runs.Used(res.Runs)
	s.claimer.bus.Found(res.Runs)
	s.queue.Hold(res.Runs, nil)
	next, missed, err := s.claimer.claim(ctx, shards, res.Jobs, now, before)
	if err != nil {
		s.claimer.waiting.again()
		return s.claimer.claiming.Delay(), err, nil
	}
	s.claimer.waiting.looked(now, shards, len(res.Jobs) < limit && !missed)
	res.Next = core.Earlier(res.Next, next)
	return s.scanWait(res, limit, missed), nil, nil
}

// scanWait is when the next scan is due.
func (s *Scanner) scanWait(res store.ScanResult, limit int, missed bool) time.Duration {
	switch {
	case len(res.Jobs) == limit || len(res.Runs) == core.ScanRuns:
		return 0
	case missed:
		return core.LockedPause // an edit came between the scan and the claim
	}
	wait := s.reconciler.untilReconciled(time.Now())
	if poll, _ := s.Store.Poll(); poll > 0 {
		wait = min(wait, poll)
	}
	if s.claimer.refusals.Len() > 0 {
		wait = min(wait, loop.RefusedPause)
	}
	if s.Unable.HasSent() {
		wait = min(wait, unableEvery)
	}
	if !s.claimer.unconfirmed.until.IsZero() {
		wait = min(wait, unconfirmedEvery)
	}
	if !res.Next.IsZero() {
		now := s.Clock.Now()
		enters := betweenSeconds(res.Next.Add(-s.Cfg.PreRead), s.Cfg.PreRead)
		wait = min(wait, max(enters.Sub(now), s.window.moves(s.Cfg.PreRead).Sub(now), time.Millisecond))
	}
	return wait
}

// tryOut makes a claim and a start that change nothing, where nothing else shows whether
// they would succeed. It is called by the scan loop while the node fails.
func (s *Scanner) tryOut(ctx context.Context) {
	f := s.fitness
	if !s.Leases.Trusted(time.Now()) {
		return
	}
	began := f.Begin(&f.Trials[0])
	_, err := loop.Detached(ctx, func(ctx context.Context) ([]store.Run, error) { return s.Store.Claim(ctx, nil, []store.Plan{{}}) }) // of no job
	f.End(ctx, &f.Trials[0], began, err)
	if err != nil {
		return
	}
	began = f.Begin(&f.Trials[1])
	_, err = loop.Detached(ctx, func(ctx context.Context) ([]store.Started, error) {
		return s.Store.Start(ctx, nil, []store.Start{{State: store.StateStarted, Owner: s.Leases.Incarnation, Address: store.LocalAddress(s.Leases.Incarnation)}}) // of no run
	})
	f.End(ctx, &f.Trials[1], began, err)
	if err == nil {
		f.Good()
	}
}
