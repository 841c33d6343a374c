package xxljob

// Input: planned runs that are due, from the ring. Output: runs that are marked
// started in the store, to send.go; or refused ones, to callback.go. Nothing
// is sent before the store has acknowledged the start.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/block"
)

const ()

// starter starts what is due. It belongs to the start loop.
type starter struct {
	*shared
	engine   *engine
	fitness  *fitness
	router   *router
	blockers *blockers
	sender   *sender
	inbox    *inbox
	inDoubt  *inDoubt
	finisher *finisher
	watcher  *watcher
	hooks    *hookQueue
	doubts   *doubts

	starting  backoff                     // of Store.Start
	herds     struct{ first, again herd } // starts that go apart
	offeredAt time.Time                   // see offerFreed
}

// startDuty starts runs at their time.
func (s *starter) startDuty() duty {
	return duty{what: "routing runs", wakes: []<-chan struct{}{s.wakes.start}, once: s.startOnce}
}

// startOnce starts what is due and returns how long nothing more will be.
func (s *starter) startOnce(ctx context.Context) (time.Duration, error) {
	for ctx.Err() == nil {
		now := s.clock.now()
		s.engine.takeDue(now.Add(s.engine.lead.get()))
		s.sender.deliverDue(now)
		some, locked, err := s.startPass(ctx)
		s.offerFreed()
		switch {
		case err != nil:
			return 0, err
		case locked:
			return min(lockedRetry, s.untilNext()), nil
		case some:
			continue
		case !s.leases.trusted(time.Now()):
			return s.untilNext(), nil // the lease loop pokes when the trust is back
		case !s.engine.isLeft():
			s.herds.first, s.herds.again = herd{}, herd{}
			return s.untilNext(), nil
		}
	}
	return s.untilNext(), nil
}

// startPass starts what is due, and behind it some of what goes apart. It reports whether
// there was something, and whether some rows have to be tried again after a pause.
func (s *starter) startPass(ctx context.Context) (some, locked bool, err error) {
	n, _, locked, err := s.startFrom(ctx, lot{kind: lotDue}, storeBatch)
	if err != nil {
		return n > 0, locked, err
	}
	some, stuck, err := s.startApart(ctx)
	return n > 0 || some, locked || stuck, err
}

// startFrom starts up to most entries from a lot, and returns how many the store was asked
// about, and how long that took.
func (s *starter) startFrom(ctx context.Context, from lot, most int) (n int, took time.Duration, locked bool, err error) {
	if from.kind != lotDue {
		if !s.engine.waits(from) {
			return 0, 0, false, nil
		}
		s.sender.deliverEarly(ctx) // these may take longer than the others can wait
	}
	if ctx.Err() != nil || !s.leases.trusted(time.Now()) {
		return 0, 0, false, nil
	}
	batch, err := s.collect(ctx, from, most)
	if err != nil || len(batch) == 0 {
		return 0, 0, false, err
	}
	began := time.Now()
	locked, err = s.startBatch(ctx, batch, from.kind == lotDue)
	return len(batch), time.Since(began), locked, err
}

// offerPause is how often the inbox is looked at for places that starts have given back: a
// start whose row is locked takes its place again and again.
const offerPause = 100 * time.Millisecond

// offerFreed has the inbox looked at again where starts that came to nothing have given
// places back for which runs wait there.
func (s *starter) offerFreed() {
	if now := time.Now(); now.Sub(s.offeredAt) >= offerPause && s.engine.takeFreed() {
		s.offeredAt = now
		s.wakes.inbox.pokeIf(s.engine.inboxFull.Load())
	}
}

// untilNext is the time until the ring, or the store's early answer to a start,
// has something due.
func (s *starter) untilNext() time.Duration {
	now := s.clock.now()
	wait := time.Duration(forever)
	if at, ok := s.engine.nextDue(); ok {
		wait = max(at.Sub(now)-s.engine.lead.get(), time.Microsecond)
	}
	if at, ok := s.sender.early.next(); ok {
		wait = min(wait, max(at.Sub(now), time.Microsecond))
	}
	if s.engine.hasFreed() {
		wait = min(wait, offerPause)
	}
	return wait
}

// collect takes entries from the due queue, or from a lot of those that go apart, routes
// them, and takes places for them. Those without room wait in lots, and so do those of the
// due queue that go apart.
func (s *starter) collect(ctx context.Context, from lot, most int) ([]attempt, error) {
	now := s.clock.now()
	for {
		batch, unknown := s.engine.pop(from, most)
		if len(unknown) > 0 {
			if err := s.loadJobs(ctx, unknown); err != nil {
				s.engine.putBack(from, batch)
				return nil, err
			}
			if len(batch) == 0 {
				continue
			}
		}
		if len(batch) == 0 {
			return nil, nil
		}
		ready := batch[:0] // the entries of batch move up as others wait
		for _, a := range batch {
			if _, owned := s.leases.epoch(a.run.Shard); !owned {
				s.engine.abandon(a.entry)
				continue
			}
			if from.kind != lotDue {
				s.turnBegins(&a)
			}
			if s.waitsItsTurn(a) {
				continue
			}
			if err := s.routeEntry(ctx, &a); err != nil {
				s.router.setAside(ctx, a.entry, err)
				continue
			}
			s.router.routedWell(ctx, a.run.App)
			if from.kind == lotDue && a.goesApart() {
				s.engine.waitApart(a.entry)
				continue
			}
			if s.reserve(&a, now) {
				ready = append(ready, a)
			}
		}
		if len(ready) > 0 || from.kind != lotDue {
			return ready, nil // those that wait for their turn are not to be routed long before it
		}
	}
}

// waitsItsTurn parks a run of a serial job that has to let an earlier one pass, or of
// which it is not known yet whether it has. It is routed when it goes on: a strategy is
// asked once about each run.
func (s *starter) waitsItsTurn(a attempt) bool {
	if a.job.Block != block.SerialExecution {
		return false
	}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	return s.waitsBehind(&a)
}

// routeEntry routes an entry, unless it has waited for room at an address, or for its turn:
// then it keeps what was decided.
func (s *starter) routeEntry(ctx context.Context, a *attempt) error {
	decided := (a.route.address != "" || a.route.refused != "") && a.routedFor == a.job.Version && !a.route.probing
	if decided && (a.goesApart() || !isPart(&a.run) && !s.leases.anyDoubted(a.route)) {
		return nil
	}
	r, err := s.router.route(ctx, a.entry, a.job)
	if err != nil {
		return err
	}
	a.routedAt = time.Now()
	if r.serial != a.route.serial {
		s.engine.changeSerial(a.entry)
	}
	a.route, a.routedFor = r, a.job.Version
	return nil
}

// reserve takes the places that the attempt needs and fills in its Start, or
// parks the entry.
func (s *starter) reserve(a *attempt, now time.Time) bool {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &a.route
	if s.isNotRouted(a) || r.refused == "" && r.ordered && (s.waitsBehind(a) || s.waitsForPart(a)) {
		return false
	}
	a.choice = nil // it is used up: one that waits behind another keeps its own
	if r.refused == "" {
		if r.lane != laneNone {
			r.lane = laneFast
			if ref := e.jobs[a.job.ID]; ref != nil && ref.slow.slow(now, s.cfg.SlowCount) {
				r.lane = laneSlow
			}
		}
		if !e.takeSerial(r.serial, &a.run) {
			e.park(r.serial, a.entry)
			return false
		}
		if full, ok := e.lanes.fits(r.lane, r.key(a.run.App), r.places); !ok {
			e.park(full, a.entry)
			return false
		}
		e.lanes.enter(r.lane, r.key(a.run.App), r.places)
		if r.ordered && (r.exec == nil || len(r.targets) > 0) { // parts of a broadcast go to other nodes
			e.transit.add(&a.run)
		}
	}
	if r.refused != "" || !a.from.isRoomOf(r.lane, r.key(a.run.App), r.places) {
		e.letGoOn(a.entry)
	}
	a.waited, a.starting = false, true
	a.start = s.startOf(a)
	return true
}

// isNotRouted reports whether an entry has no address yet, and parks it. Caller holds
// engine.mu.
func (s *starter) isNotRouted(a *attempt) bool {
	e, r := s.engine, &a.route
	switch {
	case r.probing && !s.router.probes.pending(a.job.ID):
		e.keepAhead(a.entry)
		e.due.push(a.entry) // the answers have come in meanwhile
	case r.probing:
		e.park(lot{kind: lotProbe, jobID: a.job.ID}, a.entry)
	case r.behind.ID != 0:
		e.parkBehindRun(r.behind, a.entry)
		s.wakes.watch.poke()
	case r.asks != nil:
		s.router.askRouter(a.entry, a.job, r.asks)
	default:
		return false
	}
	return true
}

// waitsBehind reports whether a run of a serial job has to wait for earlier ones, and
// parks it; that of another node's shard is forgotten. Caller holds engine.mu.
func (s *starter) waitsBehind(a *attempt) bool {
	e := s.engine
	open, owned := s.leases.isOpen(a.run.Shard)
	switch {
	case !owned: // it was lost while an address was looked for
		e.release(a.entry)
	case !open:
		e.parkBehind(lot{kind: lotSettle}, a.entry)
	case e.transit.isBehind(&a.run):
		e.parkBehind(lotOrderOf(a.run.JobID), a.entry)
		s.wakes.transit.poke()
	default:
		return false
	}
	return true
}

// waitsForPart reports whether a broadcast of a serial job has to wait for the start of an
// earlier run, which waits for room or for its turn at one of the addresses of the other
// parts, and parks it: those parts take no turn of their own. Caller holds engine.mu.
func (s *starter) waitsForPart(a *attempt) bool {
	e := s.engine
	for _, address := range a.route.targets {
		at := serialAt(a.job, address)
		for _, en := range []*entry{e.held[e.serial[at]], e.lots.head(at, a.run.App)} {
			if address != a.route.address && en != nil && keyOfRun(&en.run).before(keyOfRun(&a.run)) {
				e.keepAhead(en)
				e.parkBehind(lotOrderOf(a.run.JobID), a.entry)
				return true
			}
		}
	}
	return false
}

// startOf is what the store is asked for.
func (s *starter) startOf(a *attempt) Start {
	epoch, _ := s.leases.epoch(a.run.Shard)
	st := Start{
		RunID: a.run.ID, JobID: a.job.ID, Shard: a.run.Shard, Epoch: epoch, JobVersion: a.job.Version,
		State: StateStarted, Owner: s.incarnation, Token: s.leases.newToken(epoch),
		Address: a.route.address, Targets: a.route.targets,
		Serial:  a.route.ordered && !a.route.remote,
		Handler: a.job.Handler, Block: a.job.Block, Param: a.job.Param, Retries: a.job.Retries,
		Msg: shorten(plainText(a.route.msg), maxStartMsg-len("...")),
	}
	switch {
	case a.route.refused != "":
		st.State, st.HandleMsg = StateRefused, plainText(shorten(a.route.refused, maxAnswer))
	case a.route.remote:
		st.BootID = s.router.book.boot(a.run.App, st.Address)
		st.TargetBoots = s.bootsOf(a.run.App, st.Targets)
	}
	if a.run.ParamSet {
		st.Param = a.run.Param
	}
	if a.run.Retries >= 0 {
		st.Retries = a.run.Retries
	}
	return st
}

// bootsOf are the boot ids of executors at addresses, as far as they are known.
func (s *starter) bootsOf(app string, addrs []string) []string {
	var boots []string
	for _, a := range addrs {
		boots = append(boots, s.router.book.boot(app, a))
	}
	return boots
}

// startBatch asks the store and acts on each answer. locked reports that some
// rows have to be tried again after a pause. prompt says that how long the store takes
// tells how long before their time such runs are to be started.
func (s *starter) startBatch(ctx context.Context, batch []attempt, prompt bool) (locked bool, err error) {
	starts := make([]Start, len(batch))
	for i, a := range batch {
		starts[i] = a.start
	}
	began := s.fitness.begin(&s.fitness.starts)
	answers, err := detached(ctx, func(ctx context.Context) ([]Started, error) { return s.store.Start(ctx, starts) })
	s.fitness.end(ctx, &s.fitness.starts, began, err)
	if s.starting.failed(ctx, err) {
		s.doubts.start(batch)
		s.doubts.suspect()
		s.uncertain(ctx, batch)
		return false, nil
	}
	acked := time.Now()
	if prompt {
		s.engine.lead.sample(acked.Sub(began))
	}
	for i := range answers {
		s.doubts.received(answers[i].Siblings, 1) // a hook may take its time before they take off
	}
	var stale, busy []attempt
	for i, a := range batch {
		switch answers[i].Status {
		case StartOK:
			s.startedOK(a, answers[i], began)
		case StartGone:
			s.engine.giveUp(a)
			s.takeBack(answers[i].Run, a.job, began)
		case StartStale:
			stale = append(stale, a)
			s.engine.retry(a, true)
		case StartBusy:
			busy = append(busy, a)
		case StartFenced:
			s.engine.giveUp(a)
			s.leases.lose(a.run.Shard, a.start.Epoch)
			s.wakes.lease.poke()
		case StartNoNode:
			s.router.book.forget()
			s.wakes.lease.poke() // it brings the news of the other nodes
			s.engine.rerouted(a)
			locked = true
		case StartLocked:
			locked = true
			s.engine.retry(a, false)
		}
	}
	// What is started is under way by now: the reads below hold up no handler.
	locked = s.blockers.awaitBlockers(ctx, busy) || locked
	if len(stale) == 0 {
		return locked, nil
	}
	jobs, ids := make([]int64, len(stale)), make([]int64, len(stale))
	for i, a := range stale {
		jobs[i], ids[i] = a.run.JobID, a.run.ID
	}
	if err := s.loadJobs(ctx, jobs); err != nil {
		return locked, err
	}
	runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.RunsByID(ctx, ids) })
	if err != nil {
		return locked, err
	}
	s.engine.refreshRuns(runs)
	return locked, s.cancelStopped(ctx, stale)
}

// startedOK goes on with a run that the store has marked: it is this process's
// to run, or waits in another node's inbox, or was refused.
func (s *starter) startedOK(a attempt, answer Started, began time.Time) {
	if answer.Run.State.Ended() {
		s.engine.giveUp(a)
		s.finisher.ended([]Run{answer.Run})
		return
	}
	s.launch(a, answer.Run, began)
	for _, sibling := range answer.Siblings {
		s.launchSibling(a, sibling, began)
	}
	s.doubts.received(answer.Siblings, -1)
}

// launch moves an entry from the held to the flights, or to the away runs, and
// sends it when its time has come.
func (s *starter) launch(a attempt, run Run, began time.Time) {
	f := s.engine.takeOff(a, run, began)
	s.hooks.started(run)
	if f != nil {
		s.sender.deliverAt(f)
	} else {
		s.watcher.goneAway(run)
	}
}

// launchSibling does the same for a further part of a broadcast. It takes its
// place without asking: the parts of a broadcast start together.
func (s *starter) launchSibling(a attempt, run Run, began time.Time) {
	r := routed{address: run.Address}
	s.router.callees.equip(&r, a.job)
	if r.remote {
		r.lane, r.fanned = laneNone, true // takes its turn in fanOut instead
	}
	s.hooks.started(run)
	if f := s.engine.takeOffSibling(r, run, a.job, began); f != nil {
		s.sender.deliverAt(f)
	} else {
		s.watcher.goneAway(run)
	}
}

// cancelStopped cancels schedule-born runs of a job that was stopped without
// them: its schedule broke after they were planned.
func (s *starter) cancelStopped(ctx context.Context, stale []attempt) error {
	for _, a := range stale {
		job := s.engine.job(a.run.JobID)
		if job == nil || !job.Stopped || !a.run.Type.ScheduleBorn() {
			continue
		}
		if _, err := call(ctx, func(ctx context.Context) (Run, error) {
			return s.store.Kill(ctx, a.run.ID, "the job is stopped")
		}); err != nil && !isNotFound(err) {
			return err
		}
	}
	return nil
}

// loadJobs reads jobs anew. Entries of jobs that are gone are dropped: their
// runs were cancelled with them.
func (s *starter) loadJobs(ctx context.Context, ids []int64) error {
	jobs, err := s.readJobs(ctx, ids)
	s.engine.remember(jobs)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if jobs[id] == nil {
			s.engine.jobGone(id)
		}
	}
	return nil
}
