package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
)

// Input: results, from attached executors (Callback) and from the scheduler's
// own decisions (finishAsync). Output: final states in the store; places for the
// runs that wait, to start.go.
//
// An executor of this process is answered once its results are stored, or taken over: those whose
// rows others have locked, and those that the store refuses, stay here in memory (lockedLoop), so
// that they hold up none of the others. That gives away nothing: the executor, which has them in memory
// as well, dies with this process, and then their runs end as lost either way. Until a result is
// stored its run is under way here: it keeps its place, Stop waits for it, and nobody is told that it
// has ended. Executors elsewhere, which would send a result again, are answered by room admin
// (results.go), and only once it is stored.

// finisher stores results, and acts on what was stored.
type finisher struct {
	*core.Core
	queue     *queue.Queue
	bus       *events.Bus
	finishing *loop.Batch[store.Result] // results that this node itself has come to
	lockedOut *loop.Batch[store.Result] // results whose runs others have locked
	buffers   finishBufferPool
	unstored  unstored
}

func newFinisher(s *core.Core, q *queue.Queue, bus *events.Bus) *finisher {
	return &finisher{Core: s, queue: q, bus: bus, finishing: loop.NewBatch[store.Result](), lockedOut: loop.NewBatch[store.Result]()}
}

// letGather waits a moment before an executor hears that its results are stored, where several
// came at once: it sends none before, so that more of them go into the next transaction. Nobody
// else waits for that, unless runs wait for room, which the results would make.
func (f *finisher) letGather(ctx context.Context, results int) {
	if results > 1 && results < loop.StoreBatch/4 && !f.queue.Due.AnyWaits() && !f.Life.Draining.Load() {
		loop.Sleep(ctx, f.queue.LeadTime.Pause())
	}
}

// finish stores results and acts on those that were accepted. It tries until it
// has an answer from the store or ctx ends: an error means that they may be
// stored or not. It is a duty whoever brings them, such as an executor.
func (f *finisher) finish(ctx context.Context, results []store.Result) error {
	return f.finishIn(ctx, f.buffers.take(), results)
}

// finishIn is finish with memory that it gives back.
func (f *finisher) finishIn(ctx context.Context, buffers *finishBuffers, results []store.Result) error {
	if len(results) == 0 {
		f.buffers.giveBack(buffers)
		return nil
	}
	ctx = urgent.Mark(ctx)
	backoff := loop.Backoff{Log: f.Logger, What: "storing results"}
	began := time.Now()
	answer, err := loop.CallUntil(ctx, &backoff,
		func(ctx context.Context) (storeAnswer, error) {
			return answerOf(f.Store.Finish(ctx, buffers.answers, results))
		},
		func(ctx context.Context) (storeAnswer, error) {
			buffers = nil // it is left to the call before, which may still be under way
			f.unstored.failed(results, began)
			return answerOf(f.finishAgain(ctx, results))
		})
	if buffers == nil {
		f.unstored.over(results)
	}
	switch {
	case errors.Is(err, store.ErrLocked):
		f.took(results, answer.accepted, true)
		return nil
	case err != nil:
		return err
	case answer.refused != nil:
		return f.finishApart(ctx, results)
	}
	f.took(results, answer.accepted, false)
	if buffers != nil {
		buffers.answers = answer.accepted
		f.buffers.giveBack(buffers)
	}
	return nil
}

// storeAnswer is what the store has answered: which runs have accepted what it was given, or that it
// refuses that.
type storeAnswer struct {
	accepted []store.Run
	refused  error
}

// answerOf takes a refusal for the answer that it is: to try the same once more is of no use.
func answerOf(accepted []store.Run, err error) (storeAnswer, error) {
	if errors.Is(err, store.ErrRefused) {
		return storeAnswer{refused: err}, nil
	}
	return storeAnswer{accepted: accepted}, err
}

// took acts on results of which the store has accepted these. Those that are left are over all the
// same, since they ended otherwise before, but where rows are locked.
func (f *finisher) took(results []store.Result, accepted []store.Run, locked bool) {
	f.ended(accepted)
	switch {
	case locked:
		f.leaveToLocked(without(results, accepted))
	case len(accepted) < len(results):
		for _, r := range results {
			f.queue.Land(r.RunID, r.Token)
		}
	}
}

// leaveToLocked leaves results, a list of the caller's own, to lockedLoop.
func (f *finisher) leaveToLocked(results []store.Result) {
	for i := range results {
		results[i].Known = nil // it is in memory with all others of the batch
	}
	f.lockedOut.Add(results...)
}

// lockedLoop stores results whose runs others have locked, until ctx ends. They are by
// themselves: neither what is stored nor what comes after it must wait for a lock that
// somebody forgot. They are this process's from here on; should it die, their runs are
// interrupted, as those of handlers that have not ended.
func (f *finisher) lockedLoop(ctx context.Context) {
	backoff := loop.Backoff{Log: f.Logger, What: "storing results of locked runs"}
	times, takes := map[int64]int{}, false // how often the store has refused a result alone, and whether it takes others
	f.lockedOut.Loop(ctx, func(ctx context.Context, results []store.Result) (rest []store.Result, pause time.Duration) {
		defer func() { f.unstored.settled(results, rest, times) }()
		accepted, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return f.finishAgain(ctx, results) })
		rest = without(results, accepted)
		f.ended(accepted)
		if errors.Is(err, store.ErrRefused) {
			// Those that are refused even without their texts come last, so that they do not use up the tries.
			slices.SortStableFunc(results, func(a, b store.Result) int {
				return min(times[a.RunID], loop.RefusedTries)/loop.RefusedTries - min(times[b.RunID], loop.RefusedTries)/loop.RefusedTries
			})
			alone, left, why, err := f.finishHalves(ctx, results, takes)
			for i := range alone {
				times[alone[i].RunID]++
			}
			if err == nil {
				rest, err = f.finishWithoutTexts(ctx, append(slices.Clone(alone), left...), times, why)
			}
			takes = len(rest) < len(results)
			if backoff.Failed(ctx, why); err != nil || len(rest) == 0 {
				return nil, 0 // a run whose result was not stored when ctx ended is interrupted
			}
			return rest, backoff.Delay()
		}
		if backoff.Failed(ctx, err) {
			loop.Sleep(ctx, backoff.Delay()) // whatever else comes to be locked
			return rest, 0
		}
		for _, r := range rest {
			f.queue.Land(r.RunID, r.Token) // it ended otherwise before
		}
		return nil, 0
	})
}

// without are the results of other runs than those.
func without(results []store.Result, runs []store.Run) []store.Result {
	stored := core.IdsOf(runs)
	return slices.DeleteFunc(slices.Clone(results), func(r store.Result) bool { return stored[r.RunID] })
}

// finishAgain repeats a Finish whose outcome is unknown: results that the first
// attempt stored count as accepted.
func (f *finisher) finishAgain(ctx context.Context, results []store.Result) ([]store.Run, error) {
	accepted, err := f.Store.Finish(ctx, nil, results)
	if err != nil || len(accepted) == len(results) {
		return accepted, err
	}
	has := core.IdsOf(accepted)
	want := map[int64]store.Result{}
	var ids []int64
	for _, r := range results {
		if !has[r.RunID] {
			want[r.RunID], ids = r, append(ids, r.RunID)
		}
	}
	runs, err := f.Store.RunsByID(ctx, ids)
	for _, r := range runs {
		w := want[r.ID]
		as := r.State == w.State && core.KeptAs(w.HandleMsg, r.HandleMsg) || w.State == store.StateSnoozed && r.State == store.StateFailed && r.HandleMsg == store.TooManySnoozes
		if as && (w.Token == 0 || r.Token == w.Token) {
			accepted = append(accepted, r)
		}
	}
	return accepted, err
}

// finishAsync hands a result that the scheduler itself has come to to the finish loop.
func (f *finisher) finishAsync(r store.Result) { f.finishing.Add(r) }

// loop stores what finishAsync was given, in batches, until ctx ends.
func (f *finisher) loop(ctx context.Context) {
	f.finishing.Loop(ctx, func(ctx context.Context, results []store.Result) ([]store.Result, time.Duration) {
		_ = f.finish(ctx, results) // an error only where ctx has ended
		return nil, 0
	})
}

// ended acts on runs whose final state this node has stored.
func (f *finisher) ended(runs []store.Run) {
	rearmed := false
	for i := range runs {
		f.bus.Ended(&runs[i], nil)
	}
	f.queue.LandAll(runs)
	for i := range runs {
		r := &runs[i]
		f.queue.Waiters.Notify(r)
		rearmed = rearmed || r.Type == store.TriggerFixDelay || r.Type == store.TriggerRetry
	}
	if rearmed {
		f.Life.Wakes.Scan.Poke() // a FixedDelay job has its next instant now
	}
}

// resultAt is a result that this node itself has come to about a flight, fenced by its
// start.
func (f *finisher) resultAt(at *queue.Flight, res store.Result) store.Result {
	res.Incarnation = f.Leases.Incarnation
	if at.Remote {
		return concluded(at.Whole(), res)
	}
	res.RunID, res.Token = at.Run.Planned.ID, at.Run.Token
	return res
}

// asSent are the runs that are as this node has sent them: see room queue, AsSent.
func (f *finisher) asSent(ids []int64, within time.Duration) []*store.Run {
	return f.queue.InFlight.AsSent(ids, within)
}
