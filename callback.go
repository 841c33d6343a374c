package xxljob

// Input: results, from attached executors (Callback) and from the scheduler's
// own decisions (finishAsync). Output: final states in the store; places for the
// runs that wait, to start.go. An executor's callback is answered only after its
// results are stored.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/wire"
)

// attachedAdmin is the admin side of an attached executor.
type attachedAdmin struct{ s *scheduler }

// Callback stores the results; it returns once they are stored, or ctx ends.
func (a attachedAdmin) Callback(ctx context.Context, reqs []wire.CallbackRequest) (wire.Return, error) {
	results := make([]Result, 0, len(reqs))
	for _, r := range reqs {
		if f := a.s.engine.flight(r.LogID); f != nil && (!r.Exact || sameDate(r.LogDateTim, f.run)) {
			results = append(results, resultOf(f, r))
		}
	}
	if err := a.s.finish(ctx, results); err != nil {
		return wire.Return{}, err
	}
	return wire.Success(), nil
}

// Registry and RegistryRemove have nothing to do: the node's beats say who is
// attached.
func (attachedAdmin) Registry(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (attachedAdmin) RegistryRemove(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

// resultOf reads the state out of a callback.
func resultOf(f *flight, r wire.CallbackRequest) Result {
	return withTimeout(Result{
		RunID: r.LogID, Incarnation: mustLocal(f.run.Address), Token: f.run.Token,
		State: stateOf(r), HandleMsg: r.HandleMsg, NoRetry: r.NoRetry,
	}, f.job)
}

// withTimeout has a result say which timeout was over. Executors do not: their text is
// XXL-JOB's, and fixed.
func withTimeout(res Result, job *Job) Result {
	if res.State == StateTimedOut && strings.TrimSpace(res.HandleMsg) == strings.TrimSpace(wire.MsgTimeout) && job.Timeout > 0 {
		res.HandleMsg = fmt.Sprintf("%safter %v", wire.MsgTimeout, job.Timeout)
	}
	return res
}

func mustLocal(addr string) string {
	inc, _ := LocalIncarnation(addr)
	return inc
}

// finish stores results and acts on those that were accepted. It tries until it
// has an answer from the store or ctx ends: an error means that they may be
// stored or not. It is a duty whoever brings them, such as an executor.
func (s *scheduler) finish(ctx context.Context, results []Result) error {
	if len(results) == 0 {
		return nil
	}
	ctx = urgent.Mark(ctx)
	retry := backoff{log: s.log, what: "storing results"}
	accepted, err := callUntil(ctx, &retry,
		func(ctx context.Context) ([]Run, error) { return s.store.Finish(ctx, results) },
		func(ctx context.Context) ([]Run, error) { return s.finishAgain(ctx, results) })
	switch {
	case errors.Is(err, ErrLocked):
		s.ended(accepted)
		s.lockedOut.add(without(results, accepted)...)
		return nil
	case err != nil:
		return err
	}
	s.ended(accepted)
	if len(accepted) < len(results) {
		// What was not accepted is over all the same: it ended otherwise before.
		for _, r := range results {
			s.landedStart(r.RunID, r.Token)
		}
	}
	return nil
}

// lockedLoop stores results whose runs others have locked, until ctx ends. They are by
// themselves: neither what is stored nor what comes after it must wait for a lock that
// somebody forgot. They are this process's from here on; should it die, their runs are
// interrupted, as those of handlers that have not ended.
func (s *scheduler) lockedLoop(ctx context.Context) {
	retry := backoff{log: s.log, what: "storing results of locked runs"}
	s.lockedOut.loop(ctx, func(ctx context.Context, results []Result) ([]Result, time.Duration) {
		accepted, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.finishAgain(ctx, results) })
		rest := without(results, accepted)
		s.ended(accepted)
		if retry.failed(ctx, err) {
			sleep(ctx, retry.delay()) // whatever else comes to be locked
			return rest, 0
		}
		for _, r := range rest {
			s.landedStart(r.RunID, r.Token) // it ended otherwise before
		}
		return nil, 0
	})
}

// without are the results of other runs than those.
func without(results []Result, runs []Run) []Result {
	stored := make(map[int64]bool, len(runs))
	for _, r := range runs {
		stored[r.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return stored[r.RunID] })
}

// finishAgain repeats a Finish whose outcome is unknown: results that the first
// attempt stored count as accepted.
func (s *scheduler) finishAgain(ctx context.Context, results []Result) ([]Run, error) {
	accepted, err := s.store.Finish(ctx, results)
	if err != nil || len(accepted) == len(results) {
		return accepted, err
	}
	has := make(map[int64]bool, len(accepted))
	for _, r := range accepted {
		has[r.ID] = true
	}
	want := map[int64]Result{}
	var ids []int64
	for _, r := range results {
		if !has[r.RunID] {
			want[r.RunID], ids = r, append(ids, r.RunID)
		}
	}
	runs, err := s.store.RunsByID(ctx, ids)
	for _, r := range runs {
		if w := want[r.ID]; r.State == w.State && (w.Token == 0 || r.Token == w.Token) && r.HandleMsg == w.HandleMsg {
			accepted = append(accepted, r)
		}
	}
	return accepted, err
}

// finishAsync hands a result that the scheduler itself has come to to the finish loop.
func (s *scheduler) finishAsync(r Result) { s.finishing.add(r) }

// finishLoop stores what finishAsync was given, in batches, until ctx ends.
func (s *scheduler) finishLoop(ctx context.Context) {
	s.finishing.loop(ctx, func(ctx context.Context, results []Result) ([]Result, time.Duration) {
		_ = s.finish(ctx, results) // an error only where ctx has ended
		return nil, 0
	})
}

// ended acts on runs whose final state this node has stored.
func (s *scheduler) ended(runs []Run) {
	rearmed := false
	for _, r := range runs {
		s.landed(r.ID)
		s.notify(r)
		s.hookEnded(r)
		rearmed = rearmed || r.Type == TriggerFixDelay
	}
	if rearmed {
		s.scanWake.poke() // a FixedDelay job has its next instant now
	}
}

// landed frees what a run held in this process.
func (s *scheduler) landed(runID int64) {
	if s.engine.land(runID) {
		s.startWake.poke()
	}
	s.inboxWake.pokeIf(s.inboxFull.Load())
}

// landedStart is landed for one start of a run: a later one that is under way here by now
// goes on.
func (s *scheduler) landedStart(runID, token int64) {
	if f := s.engine.flight(runID); f == nil || token == 0 || f.run.Token == token {
		s.landed(runID)
	}
}

// plannedAgain takes in that a run which was under way, of a serial job or not as far as
// that is known, is planned again. The owner of its shard holds it from then on: no scan
// need find it, and who put it back may have done so before the answer to its start had
// arrived here.
func (s *scheduler) plannedAgain(r Run, serial bool) {
	_, owned := s.leases.epoch(r.Shard)
	sooner, freed := s.engine.again(r, serial, owned)
	s.startWake.pokeIf(sooner || freed)
}

// notify tells those who wait for the run.
func (s *scheduler) notify(r Run) {
	for _, w := range s.engine.takeWaiters(r.ID) {
		w <- r // has a buffer of one, and is sent to once
	}
}

func (s *scheduler) hookStarted(r Run) {
	s.hooks.call("Hooks.RunStarted", s.cfg.Hooks.RunStarted, r)
}

func (s *scheduler) hookEnded(r Run) {
	s.hooks.call("Hooks.RunEnded", s.cfg.Hooks.RunEnded, r)
}

// watchDuty notices the end of runs at other nodes: of those that this node has
// started there, and of those that somebody here waits for. Those who wait for
// lines of a log it tells of each signal, which may stand for their answer.
func (s *scheduler) watchDuty() duty {
	return duty{
		what: "looking after runs at other nodes", wakes: []<-chan struct{}{s.watchWake, s.signals.Ended},
		once: func(ctx context.Context) (time.Duration, error) {
			s.desk.tell()
			ids := s.engine.awayIDs()
			wait := time.Duration(forever)
			if poll, _ := s.store.Poll(); len(ids) > 0 && poll > 0 {
				wait = poll
			}
			return wait, s.watch(ctx, ids)
		},
	}
}

// watch asks the store about runs at other nodes.
func (s *scheduler) watch(ctx context.Context, ids []int64) error {
	for len(ids) > 0 {
		page := ids[:min(len(ids), storeBatch)]
		ids = ids[len(page):]
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.RunsByID(ctx, page) })
		if err != nil {
			return err
		}
		there := make(map[int64]bool, len(runs))
		for _, r := range runs {
			there[r.ID] = true
			switch {
			case r.State.Ended():
				s.landed(r.ID)
				s.notify(r)
			case r.State == StatePlanned:
				s.plannedAgain(r, false)
			case !inTransit(r):
				s.startWake.pokeIf(s.engine.taken(r))
			}
		}
		for _, id := range page {
			if !there[id] { // it is over, and its record dropped
				s.landed(id)
				s.notify(Run{ID: id})
			}
		}
	}
	return nil
}
