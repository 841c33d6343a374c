package xxljob

// The inbox of a node. Input: runs that other nodes have started at an executor
// attached here, requests to kill, and questions for lines of logs (log.go). A run
// is taken, by a committed compare-and-set, before its handler is called.

import (
	"context"
	"errors"
	"time"
)

// inboxLimit is how many runs are taken at once.
const inboxLimit = 500

// inboxDuty looks into the inbox at each hint, and by itself where hints can be lost.
func (s *scheduler) inboxDuty(signals Signals) duty {
	return duty{
		what: "looking into the inbox", wakes: []<-chan struct{}{signals.Inbox, s.wakes.inbox},
		once: func(ctx context.Context) (time.Duration, error) {
			wait := time.Duration(forever)
			if _, poll := s.store.Poll(); poll > 0 {
				wait = poll
			}
			return wait, s.lookIntoInbox(ctx)
		},
	}
}

// lookIntoInbox goes through the inbox: it kills what is to be killed, has questions
// answered, and takes what there is room for.
func (s *scheduler) lookIntoInbox(ctx context.Context) error {
	if !s.leases.trusted(time.Now()) {
		return nil
	}
	full := false
	var failed error
	for after := int64(0); ; {
		box, err := call(ctx, func(ctx context.Context) (Inbox, error) {
			return s.store.Inbox(ctx, s.incarnation, after, inboxLimit)
		})
		if err != nil {
			return err
		}
		for _, r := range box.Kills {
			s.killHere(ctx, r)
		}
		if after == 0 {
			s.logs.answerLogs(box.Asks)
		}
		some, err := s.takeSome(ctx, box.Runs)
		full = full || some
		s.engine.inboxFull.Store(full)
		failed = errors.Join(failed, err)
		if len(box.Runs) < inboxLimit {
			return failed
		}
		after = box.Runs[len(box.Runs)-1].ID
	}
}

// takeSome takes those of the runs that there is room for, and sends them to
// their executors. full reports that there was not room for all.
func (s *scheduler) takeSome(ctx context.Context, runs []Run) (full bool, err error) {
	s.taking <- struct{}{}
	defer func() { <-s.taking }()
	if s.life.draining.Load() {
		return false, nil // the owners put back what waits here
	}
	places := map[string]int{} // asked for before the engine is locked
	for _, r := range runs {
		if _, asked := places[r.App]; !asked {
			places[r.App] = s.attached.placesOf(r.App)
		}
	}
	fit, full := s.engine.fitting(runs, places)
	if len(fit) == 0 {
		return full, nil
	}
	// First, so that nothing but the answer to Take is between it and the handlers.
	jobs, err := s.readJobs(ctx, jobsOf(runs))
	if err != nil {
		return full, err
	}
	began := time.Now()
	taken, err := detached(ctx, func(ctx context.Context) ([]Run, error) { return s.store.Take(ctx, s.incarnation, fit) })
	if err != nil {
		s.doubts.take(fit)
		s.doubts.suspect()
		return full, s.takenAfterAll(ctx, fit, err)
	}
	s.receive(taken, jobs, began)
	return full, nil
}

// takenAfterAll reads runs whose Take returned an error: it may have taken
// effect, and then nobody else will call their handlers.
func (s *scheduler) takenAfterAll(ctx context.Context, ids []int64, cause error) error {
	retry := backoff{log: s.log, what: "taking runs"}
	retry.failed(ctx, cause)
	for sleep(ctx, retry.delay()) {
		began := time.Now()
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.RunsByID(ctx, ids) })
		if retry.failed(ctx, err) {
			continue
		}
		var taken []Run
		for _, r := range runs {
			if r.State == StateStarted && r.Address == LocalAddress(s.incarnation) && !r.Taken.IsZero() {
				taken = append(taken, r)
			}
		}
		if err := s.receiveAfterAll(ctx, taken, began); err != nil || len(taken) == len(ids) {
			return err
		}
		return cause // no hint comes for the others a second time: the loop looks again
	}
	return ctx.Err()
}

// receiveAfterAll is receive for runs whose jobs are not at hand.
func (s *scheduler) receiveAfterAll(ctx context.Context, taken []Run, began time.Time) error {
	s.doubts.received(taken, 1)
	defer s.doubts.received(taken, -1)
	ids := jobsOf(taken)
	retry := backoff{log: s.log, what: "reading the jobs of taken runs"}
	read := func(ctx context.Context) (map[int64]*Job, error) { return s.readJobs(ctx, ids) }
	jobs, err := callUntil(ctx, &retry, read, read)
	if err != nil {
		s.doubts.suspect()
		return err
	}
	s.receive(taken, jobs, began)
	return nil
}

// receive sends taken runs to their executors.
func (s *scheduler) receive(taken []Run, jobs map[int64]*Job, began time.Time) {
	s.doubts.received(taken, 1)
	defer s.doubts.received(taken, -1)
	for _, r := range taken {
		switch {
		case r.State.Ended(): // killed before it was taken
			s.finisher.ended([]Run{r})
		case s.engine.flight(r.ID) != nil:
		default:
			s.receiveOne(r, jobs[r.JobID], began)
		}
	}
}

func (s *scheduler) receiveOne(r Run, job *Job, began time.Time) {
	if job == nil {
		// The job was removed: the run goes on with what the row says.
		job = &Job{ID: r.JobID, App: r.App, Handler: r.Handler, Block: r.Block, GlueType: GlueBean}
	}
	to := routed{address: r.Address}
	s.callees.equip(&to, job)
	switch {
	case to.refused != "":
		s.finisher.finishAsync(concluded(r, Result{State: StateRefused, HandleMsg: to.refused, TriggerMsg: to.refused}))
		return
	case to.exec == nil:
		why := "app " + r.App + " is not attached any more"
		s.finisher.finishAsync(Result{RunID: r.ID, Incarnation: s.incarnation, Token: r.Token, State: StateRefused, HandleMsg: why, TriggerMsg: why})
		return
	}
	to.serial = lot{} // the starter keeps serial runs apart
	if f := s.engine.takeOffSibling(to, r, job, began); f != nil {
		s.deliverAt(f)
	}
}

// giveBack puts runs that are started but not sent back to planned, at Stop,
// also those whose start this node was not sure of: another node starts them.
func (s *scheduler) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var verdicts []Verdict
	for _, f := range s.engine.inFlight() {
		// A run of a shard that is another's by now cannot be given back: it is sent.
		if _, owned := s.leases.epoch(f.run.Shard); owned && f.run.Owner == s.incarnation && s.engine.intercept(f) {
			verdicts = append(verdicts, s.leases.verdict(f.run, StatePlanned, "put back: node stopped"))
		}
	}
	if s.unsure.Load() {
		verdicts = append(verdicts, s.orphansOfMine(ctx)...)
	}
	if len(verdicts) == 0 {
		return
	}
	runs, err := s.store.Settle(ctx, verdicts)
	if err != nil {
		s.log.Warn("xxljob: could not put started runs back; the next owner of their shards will find them", "runs", len(verdicts), "error", err)
	}
	for _, r := range runs {
		s.engine.land(r.ID)
	}
	// What the store did not give back has ended otherwise, or is left to others.
	for _, v := range verdicts {
		s.engine.land(v.RunID)
	}
}

// orphansOfMine finds runs that the store has as started by this node for
// itself, but that nobody here knows.
func (s *scheduler) orphansOfMine(ctx context.Context) []Verdict {
	runs, err := s.store.StartedBy(ctx, s.leases.owned(), []string{s.incarnation}, 0, storeBatch)
	if err != nil {
		return nil
	}
	var verdicts []Verdict
	for _, r := range runs {
		if r.Owner == s.incarnation && r.Address == LocalAddress(s.incarnation) && s.engine.flight(r.ID) == nil {
			verdicts = append(verdicts, s.leases.verdict(r, StatePlanned, "put back: node stopped"))
		}
	}
	return verdicts
}
