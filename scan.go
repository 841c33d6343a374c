package xxljob

// Input: jobs that become due, and planned runs that others have inserted, from
// the store. Output: planned runs, in the store first and then on the ring, to
// start.go.

import (
	"context"
	"errors"
	"time"
)

// scanner plans what becomes due. It belongs to the scan loop.
type scanner struct {
	*shared
	engine     *engine
	fitness    *fitness
	reconciler *reconciler
	hooks      *hookQueue
	reload     *reloadSet
	window     planWindow
	unsettled  unsettled
	claiming   backoff // of Store.Claim
}

func newScanner(s *shared, e *engine, f *fitness, hooks *hookQueue, reload *reloadSet) *scanner {
	return &scanner{
		shared: s, engine: e, fitness: f, reconciler: &reconciler{shared: s, engine: e}, hooks: hooks, reload: reload,
		claiming: backoff{log: s.log, what: "claiming due jobs"},
	}
}

// scanGap is how long the end of the window stays where it is. It moves on in
// steps, so that a job with a short period is claimed once for several of its
// instants; and by half of the pre-read at most, so that nothing comes late by it.
func (s *scanner) scanGap() time.Duration { return s.cfg.PreRead / 2 }

// unsettled makes the loop read planned runs again and again for a while after a
// claim whose outcome is unknown: a commit that hangs in the database may land long
// after the answer was given up, and no scan returns what it has planned.
type unsettled struct{ until, last time.Time }

// unsettledEvery is how often it is read.
const unsettledEvery = 2 * time.Second

func (u *unsettled) due(now time.Time) bool {
	if u.until.IsZero() || now.Sub(u.last) < unsettledEvery {
		return false
	}
	u.last = now
	if now.After(u.until) {
		u.until = time.Time{} // once more, and then it is settled
	}
	return true
}

// planWindow is the time ahead that a scan plans.
type planWindow struct {
	set, end time.Time
	took     time.Duration // the last scan
}

// at returns the end of the window for a scan at the time. It moves on a little
// early where a hint has called for a scan shortly before it is due: the next one
// would have to wait until this one is over.
func (w *planWindow) at(now time.Time, preRead, gap time.Duration) time.Time {
	if since := now.Sub(w.set); since < 0 || since >= gap-2*w.took {
		w.set, w.end = now, now.Add(preRead)
	}
	return w.end
}

// scanDuty claims what becomes due. It is the only one that scans on this node, so no shard
// is scanned twice at once.
func (s *scanner) scanDuty(signals Signals) duty {
	return duty{
		what: "scanning for due jobs", wakes: []<-chan struct{}{signals.Scan, s.life.wakes.scan},
		once: func(ctx context.Context) (time.Duration, error) {
			wait, err := s.scanOnce(ctx)
			if err == nil && s.fitness.fails() {
				s.tryOut(ctx)
				wait = min(wait, s.cfg.Cluster.LeaseTTL/5)
			}
			return wait, err
		},
	}
}

// scanOnce plans everything up to the end of the window and returns when to look again.
func (s *scanner) scanOnce(ctx context.Context) (time.Duration, error) {
	if !s.leases.trusted(time.Now()) {
		return forever, nil // the lease loop pokes
	}
	shards := s.leases.owned()
	if len(shards) == 0 {
		return forever, nil
	}
	began := s.fitness.begin(&s.fitness.claims)
	wait, failed, err := s.scanShards(ctx, shards)
	s.fitness.end(ctx, &s.fitness.claims, began, errors.Join(err, failed))
	return wait, err
}

// scanShards is scanOnce for shards. Where the claim failed, and is spaced by itself, the
// error is the second result.
func (s *scanner) scanShards(ctx context.Context, shards []Shard) (wait time.Duration, failed, err error) {
	now := s.clock.now()
	before := s.window.at(now, s.cfg.PreRead, s.scanGap())
	defer func(began time.Time) { s.window.took = time.Since(began) }(time.Now())
	s.engine.jobs.tidy(now)
	if s.unsettled.due(time.Now()) {
		s.reload.add(shards)
	}
	if err := s.reloadPlanned(ctx, before); err != nil {
		return 0, nil, err
	}
	if err := s.reconciler.reconcile(ctx, shards); err != nil {
		return 0, nil, err
	}
	res, err := call(ctx, func(ctx context.Context) (ScanResult, error) {
		return s.store.Scan(ctx, ScanQuery{Shards: shards, Before: before, Jobs: s.cfg.Limits.ScanLimit, Runs: scanRuns})
	})
	if err != nil {
		s.reload.add(shards) // runs of others may be among what was not received
		return 0, nil, err
	}
	s.engine.hold(res.Runs, nil)
	next, missed, err := s.claim(ctx, shards, res.Jobs, now, before)
	if err != nil {
		return s.claiming.delay(), err, nil
	}
	res.Next = earlier(res.Next, next)
	return s.scanWait(res, missed), nil, nil
}

// scanWait is when the next scan is due.
func (s *scanner) scanWait(res ScanResult, missed bool) time.Duration {
	switch {
	case len(res.Jobs) == s.cfg.Limits.ScanLimit || len(res.Runs) == scanRuns:
		return 0
	case missed:
		return lockedRetry // an edit came between the scan and the claim
	}
	wait := s.reconciler.untilReconciled(time.Now())
	if poll, _ := s.store.Poll(); poll > 0 {
		wait = min(wait, poll)
	}
	if !s.unsettled.until.IsZero() {
		wait = min(wait, unsettledEvery)
	}
	if !res.Next.IsZero() {
		now := s.clock.now()
		wait = min(wait, max(res.Next.Sub(now)-s.cfg.PreRead, s.window.set.Add(s.scanGap()).Sub(now), time.Millisecond))
	}
	return wait
}

// earlier is the earlier of two times, of which the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// claim plans the jobs and writes the plans. It returns the earliest instant
// that is not planned yet; missed reports that some jobs were not as they had
// been read.
func (s *scanner) claim(ctx context.Context, shards []Shard, due []DueJob, now, before time.Time) (next time.Time, missed bool, err error) {
	if len(due) == 0 {
		return next, false, nil
	}
	epochs := make(map[int]int64, len(shards))
	for _, sh := range shards {
		epochs[sh.ID] = sh.Epoch
	}
	p := planner{now: now, before: before, preRead: s.cfg.PreRead, threshold: s.cfg.MisfireThreshold, catchUp: s.cfg.CatchUp, maxPlanned: s.cfg.Limits.MaxPlanned}
	plans := make([]Plan, len(due))
	jobs := make(map[int64]*Job, len(due))
	for i := range due {
		j := &due[i]
		plans[i] = p.plan(j, epochs[j.Shard])
		if plans[i].Stop != "" {
			s.log.Error("xxljob: stopped a job whose schedule cannot be evaluated", "job", j.ID, "name", j.Name, "error", plans[i].Stop)
		}
		jobs[j.ID] = &j.Job
		next = earlier(next, plans[i].Next)
	}
	if !s.leases.trusted(time.Now()) {
		return next, false, nil
	}
	runs, err := detached(ctx, func(ctx context.Context) ([]Run, error) { return s.store.Claim(ctx, plans) })
	if s.claiming.failed(ctx, err) {
		// The claim may have taken effect, or may yet: what it planned has to be read.
		s.reload.add(shards)
		s.unsettled.until = time.Now().Add(doubtLasts)
		return next, false, err
	}
	s.engine.hold(runs, jobs)
	for _, r := range runs {
		delete(jobs, r.JobID)
		if r.State.Ended() {
			s.hooks.ended(r)
		}
	}
	for _, pl := range plans {
		if _, none := jobs[pl.JobID]; none && len(pl.Runs) > 0 {
			return next, true, nil
		}
	}
	return next, false, nil
}

// reloadPlanned reads planned runs that the scan does not return: all of the
// shards in the reload set, and those of apps that have run dry here. Of a shard it
// reads as far ahead as any node plans: what a former owner has planned beyond this
// node's own window, no scan would find.
func (s *scanner) reloadPlanned(ctx context.Context, before time.Time) error {
	owned := s.leases.owned()
	s.reload.add(s.leases.unloaded())
	if shards := s.reload.take(owned); len(shards) > 0 {
		if err := s.readPlanned(ctx, PlannedQuery{Shards: shards, Before: before.Add(maxPreRead)}); err != nil {
			s.reload.add(shards)
			return err
		}
		s.leases.note(shards, func(h *hold) { h.loaded = true })
		s.engine.openSerial()
	}
	for app, after := range s.engine.held.thirsty() {
		// As far ahead as a reload: what was shed then is found only here.
		if err := s.readOn(ctx, owned, app, after, before.Add(maxPreRead)); err != nil {
			return err
		}
	}
	return nil
}

// readPlanned pages through planned runs and holds those there is room for.
func (s *scanner) readPlanned(ctx context.Context, q PlannedQuery) error {
	q.Limit = scanRuns
	for {
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.Planned(ctx, q) })
		if err != nil {
			return err
		}
		s.engine.hold(runs, nil)
		if len(runs) < q.Limit {
			return nil
		}
		last := runs[len(runs)-1]
		q.After, q.AfterID = last.Scheduled, last.ID
	}
}

// readOn reads an app's planned runs from behind its horizon, as far as there is
// room for them.
func (s *scanner) readOn(ctx context.Context, owned []Shard, app string, from ringEntry, before time.Time) error {
	q := PlannedQuery{Shards: owned, App: app, Before: before, After: time.UnixMilli(from.at).UTC(), AfterID: from.runID, Limit: scanRuns}
	if from == (ringEntry{}) {
		q.After = time.Time{}
	}
	for {
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.Planned(ctx, q) })
		if err != nil {
			return err
		}
		more := s.engine.held.holdNext(app, from, runs, len(runs) < q.Limit)
		s.life.wakes.start.poke()
		if !more {
			return nil
		}
		last := runs[len(runs)-1]
		q.After, q.AfterID, from = last.Scheduled, last.ID, keyOfRun(&last)
	}
}

// tryOut makes a claim and a start that change nothing, where nothing else shows whether
// they would succeed. It is called by the scan loop while the node fails.
func (s *scanner) tryOut(ctx context.Context) {
	f := s.fitness
	if !s.leases.trusted(time.Now()) {
		return
	}
	began := f.begin(&f.trials[0])
	_, err := detached(ctx, func(ctx context.Context) ([]Run, error) { return s.store.Claim(ctx, []Plan{{}}) }) // of no job
	f.end(ctx, &f.trials[0], began, err)
	if err != nil {
		return
	}
	began = f.begin(&f.trials[1])
	_, err = detached(ctx, func(ctx context.Context) ([]Started, error) {
		return s.store.Start(ctx, []Start{{State: StateStarted, Owner: s.leases.incarnation, Address: LocalAddress(s.leases.incarnation)}}) // of no run
	})
	f.end(ctx, &f.trials[1], began, err)
	if err == nil {
		f.good()
	}
}
