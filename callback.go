package xxljob

// Input: results, from attached executors (Callback) and from the scheduler's
// own decisions (finishLater). Output: final states in the store; places for the
// runs that wait, to start.go. An executor's callback is answered only after its
// results are stored.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/duty"
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
	ctx = duty.Mark(ctx)
	retry := backoff{log: s.log, what: "storing results"}
	accepted, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.Finish(ctx, results) })
	for retry.failed(ctx, err) {
		if errors.Is(err, ErrLocked) {
			s.ended(accepted)
			s.finishLocked(without(results, accepted))
			return nil
		}
		if !sleep(ctx, retry.delay()) {
			return err
		}
		accepted, err = call(ctx, func(ctx context.Context) ([]Run, error) { return s.finishAgain(ctx, results) })
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

// finishLocked keeps results whose runs others have locked, and tries them by
// themselves: neither what is stored nor what comes after it must wait for a lock
// that somebody forgot. They are this process's from here on; should it die, their
// runs are interrupted, as those of handlers that have not ended.
func (s *scheduler) finishLocked(results []Result) {
	s.lockedOut.mu.Lock()
	s.lockedOut.results = append(s.lockedOut.results, results...)
	s.lockedOut.mu.Unlock()
	s.lockedWake.poke()
}

// lockedLoop stores what finishLocked was given until ctx ends.
func (s *scheduler) lockedLoop(ctx context.Context) {
	for retry := (backoff{log: s.log, what: "storing results of locked runs"}); ; {
		wait := time.Duration(forever)
		s.lockedOut.mu.Lock()
		batch := s.lockedOut.results
		s.lockedOut.results = nil
		s.lockedOut.mu.Unlock()
		if len(batch) > 0 {
			accepted, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.finishAgain(ctx, batch) })
			if retry.failed(ctx, err) {
				wait = retry.delay()
				s.lockedOut.mu.Lock()
				s.lockedOut.results = append(s.lockedOut.results, without(batch, accepted)...)
				s.lockedOut.mu.Unlock()
			} else {
				for _, r := range without(batch, accepted) {
					s.landedStart(r.RunID, r.Token) // it ended otherwise before
				}
			}
			s.ended(accepted)
		}
		if wait == forever {
			if !sleep(ctx, wait, s.lockedWake) {
				return
			}
		} else if !sleep(ctx, wait) {
			return
		}
	}
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

// finishing are results that the scheduler itself came to, on their way to the
// store.
type finishing struct {
	mu      sync.Mutex
	results []Result // guarded by mu
}

// finishLater hands a result to the finish loop.
func (s *scheduler) finishLater(r Result) {
	s.finishing.mu.Lock()
	s.finishing.results = append(s.finishing.results, r)
	s.finishing.mu.Unlock()
	s.finishWake.poke()
}

// finishLoop stores what finishLater was given, in batches, until ctx ends.
func (s *scheduler) finishLoop(ctx context.Context) {
	for sleep(ctx, forever, s.finishWake) {
		for {
			s.finishing.mu.Lock()
			batch := s.finishing.results
			if len(batch) > startBatch {
				batch = batch[:startBatch]
			}
			s.finishing.results = s.finishing.results[len(batch):]
			s.finishing.mu.Unlock()
			if len(batch) == 0 || s.finish(ctx, batch) != nil {
				break
			}
		}
	}
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

// watchLoop notices the end of runs at other nodes: of those that this node has
// started there, and of those that somebody here waits for. Those who wait for
// lines of a log it tells of each signal, which may stand for their answer.
func (s *scheduler) watchLoop(ctx context.Context) {
	retry := backoff{log: s.log, what: "looking after runs at other nodes"}
	for {
		s.desk.tell()
		ids := s.engine.awayIDs()
		wait := time.Duration(forever)
		if poll, _ := s.store.Poll(); len(ids) > 0 && poll > 0 {
			wait = poll
		}
		if err := s.watchOnce(ctx, ids); retry.failed(ctx, err) {
			wait = retry.delay()
		}
		if !sleep(ctx, wait, s.watchWake, s.signals.Ended) {
			return
		}
	}
}

func (s *scheduler) watchOnce(ctx context.Context, ids []int64) error {
	for len(ids) > 0 {
		page := ids[:min(len(ids), startBatch)]
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
