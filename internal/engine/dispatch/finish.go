package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Input: results, from attached executors (Callback) and from the scheduler's
// own decisions (finishAsync). Output: final states in the store; places for the
// runs that wait, to start.go. An executor's callback is answered only after its
// results are stored.

// Finisher stores results, and acts on what was stored.
type Finisher struct {
	*core.Core
	engine    *queue.Queue
	teller    *events.Bus
	progress  *Progress
	finishing *loop.Batch[store.Result] // results that this node itself has come to
	lockedOut *loop.Batch[store.Result] // results whose runs others have locked
	rooms     finishRooms
}

func NewFinisher(s *core.Core, e *queue.Queue, t *events.Bus, progress *Progress) *Finisher {
	return &Finisher{Core: s, engine: e, teller: t, progress: progress, finishing: loop.NewBatch[store.Result](), lockedOut: loop.NewBatch[store.Result]()}
}

// AttachedAdmin is the admin side of an attached executor.
type AttachedAdmin struct {
	F    *Finisher
	Logs *runlog.Writer
}

// AsAdmin is what executors are bound to: they ask where lines go only if that is somewhere.
func (a AttachedAdmin) AsAdmin() wire.Admin {
	if a.Logs == nil {
		return a
	}
	return loggingAdmin{a}
}

// Callback stores the results; it returns once they are stored, or ctx ends. Those whose runs
// have lines that are still to be written are stored after the others, which do not wait for them.
func (a AttachedAdmin) Callback(ctx context.Context, reqs []wire.CallbackRequest) (wire.Return, error) {
	reqs, others, goals := a.Logs.Apart(reqs)
	if len(others) > 0 { // whose handlers have returned as well
		a.F.engine.LeavePlaces(a.flightsOf(nil, others))
	}
	err := a.finish(ctx, reqs)
	if err == nil && len(others) > 0 {
		a.Logs.Book.Settle(ctx, goals)
		err = a.finish(ctx, others)
	}
	if err != nil {
		return wire.Return{}, err
	}
	a.F.LetGather(ctx, len(reqs))
	return wire.Success(), nil
}

// finish stores the results of runs that are under way here.
func (a AttachedAdmin) finish(ctx context.Context, reqs []wire.CallbackRequest) error {
	room := a.F.rooms.take()
	room.results, room.known = slices.Grow(room.results, len(reqs)), slices.Grow(room.known, len(reqs))
	room.flights = a.flightsOf(room.flights, reqs)
	for i, at := range room.flights {
		if at == nil {
			continue
		}
		res := resultOf(at, room.knows(at), &reqs[i])
		if res.State == store.StateKilled {
			res.State = a.F.engine.Under.Killed(at)
		}
		room.results = append(room.results, res)
	}
	a.F.engine.LeavePlaces(room.flights)
	for a.F.engine.HerdFirst(a.F.Clock.Now()) && !a.F.Life.Draining.Load() && loop.Sleep(ctx, time.Millisecond) {
	}
	return a.F.finishIn(ctx, room, room.results)
}

// flightsOf appends the flights that results are of, in their order; nil where a run is not under
// way here, or is another one that had the id before.
func (a AttachedAdmin) flightsOf(dst []*queue.Flight, reqs []wire.CallbackRequest) []*queue.Flight {
	before := len(dst)
	dst = a.F.engine.Under.FlightsOf(dst, reqs)
	for i, at := range dst[before:] {
		if r := &reqs[i]; at != nil && r.Exact && !at.Run.IsOf(r.LogDateTim) {
			dst[before+i] = nil
		}
	}
	return dst
}

// Progress is told by executors of ours how far a run is: see executor.Executor.Bind.
func (a AttachedAdmin) Progress(logID, logDateTim int64, p wire.Progress) {
	a.F.progress.attached(logID, logDateTim, p)
}

// loggingAdmin is one where the lines of runs go as well, as Config.Logs says.
type loggingAdmin struct{ AttachedAdmin }

// OpenLog is asked by executors of ours before they call a handler: see executor.Executor.Bind.
func (a loggingAdmin) OpenLog(logID, logDateTim int64) (write func(time.Time, slog.Level, string), end func()) {
	f := a.F.engine.Under.Flight(logID)
	if f == nil || f.Remote || !f.Run.IsOf(logDateTim) {
		return nil, nil
	}
	p := &f.Run.Planned
	return a.Logs.Open(&f.Lines, p.ID, p.JobID, p.App)
}

// ForgetsResults says that Callback keeps nothing of what it was given: see package executor.
func (AttachedAdmin) ForgetsResults() {}

// Registry and RegistryRemove have nothing to do: the node's beats say who is
// attached.
func (AttachedAdmin) Registry(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (AttachedAdmin) RegistryRemove(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

// LetGather waits a moment before an executor hears that its results are stored, where several
// came at once: it sends none before, so that more of them go into the next transaction. Nobody
// else waits for that, unless runs wait for room, which the results would make.
func (f *Finisher) LetGather(ctx context.Context, results int) {
	if results > 1 && results < loop.StoreBatch/4 && !f.engine.Room.AnyWaits() && !f.Life.Draining.Load() {
		loop.Sleep(ctx, f.engine.Lead.Pause())
	}
}

// finish stores results and acts on those that were accepted. It tries until it
// has an answer from the store or ctx ends: an error means that they may be
// stored or not. It is a duty whoever brings them, such as an executor.
func (f *Finisher) finish(ctx context.Context, results []store.Result) error {
	return f.finishIn(ctx, f.rooms.take(), results)
}

// finishIn is finish with memory that it gives back.
func (f *Finisher) finishIn(ctx context.Context, room *finishRoom, results []store.Result) error {
	if len(results) == 0 {
		f.rooms.giveBack(room)
		return nil
	}
	ctx = urgent.Mark(ctx)
	backoff := loop.Backoff{Log: f.Logger, What: "storing results"}
	accepted, err := loop.CallUntil(ctx, &backoff,
		func(ctx context.Context) ([]store.Run, error) { return f.Store.Finish(ctx, room.answers, results) },
		func(ctx context.Context) ([]store.Run, error) {
			room = nil // it is left to the call before, which may still be under way
			return f.finishAgain(ctx, results)
		})
	switch {
	case errors.Is(err, store.ErrLocked):
		f.Ended(accepted)
		locked := without(results, accepted)
		for i := range locked {
			locked[i].Known = nil // it is in memory with all others of the batch
		}
		f.lockedOut.Add(locked...)
		return nil
	case err != nil:
		return err
	}
	f.Ended(accepted)
	if len(accepted) < len(results) {
		// What was not accepted is over all the same: it ended otherwise before.
		for _, r := range results {
			f.engine.LandStart(r.RunID, r.Token)
		}
	}
	if room != nil {
		room.answers = accepted
		f.rooms.giveBack(room)
	}
	return nil
}

// LockedLoop stores results whose runs others have locked, until ctx ends. They are by
// themselves: neither what is stored nor what comes after it must wait for a lock that
// somebody forgot. They are this process's from here on; should it die, their runs are
// interrupted, as those of handlers that have not ended.
func (f *Finisher) LockedLoop(ctx context.Context) {
	backoff := loop.Backoff{Log: f.Logger, What: "storing results of locked runs"}
	f.lockedOut.Loop(ctx, func(ctx context.Context, results []store.Result) ([]store.Result, time.Duration) {
		accepted, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return f.finishAgain(ctx, results) })
		rest := without(results, accepted)
		f.Ended(accepted)
		if backoff.Failed(ctx, err) {
			loop.Sleep(ctx, backoff.Delay()) // whatever else comes to be locked
			return rest, 0
		}
		for _, r := range rest {
			f.engine.LandStart(r.RunID, r.Token) // it ended otherwise before
		}
		return nil, 0
	})
}

// without are the results of other runs than those.
func without(results []store.Result, runs []store.Run) []store.Result {
	stored := make(map[int64]bool, len(runs))
	for _, r := range runs {
		stored[r.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(results), func(r store.Result) bool { return stored[r.RunID] })
}

// finishAgain repeats a Finish whose outcome is unknown: results that the first
// attempt stored count as accepted.
func (f *Finisher) finishAgain(ctx context.Context, results []store.Result) ([]store.Run, error) {
	accepted, err := f.Store.Finish(ctx, nil, results)
	if err != nil || len(accepted) == len(results) {
		return accepted, err
	}
	has := make(map[int64]bool, len(accepted))
	for _, r := range accepted {
		has[r.ID] = true
	}
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
		as := r.State == w.State && r.HandleMsg == w.HandleMsg || w.State == store.StateSnoozed && r.State == store.StateFailed && r.HandleMsg == store.TooManySnoozes
		if as && (w.Token == 0 || r.Token == w.Token) {
			accepted = append(accepted, r)
		}
	}
	return accepted, err
}

// finishAsync hands a result that the scheduler itself has come to to the finish loop.
func (f *Finisher) finishAsync(r store.Result) { f.finishing.Add(r) }

// FinishLoop stores what finishAsync was given, in batches, until ctx ends.
func (f *Finisher) FinishLoop(ctx context.Context) {
	f.finishing.Loop(ctx, func(ctx context.Context, results []store.Result) ([]store.Result, time.Duration) {
		_ = f.finish(ctx, results) // an error only where ctx has ended
		return nil, 0
	})
}

// Ended acts on runs whose final state this node has stored.
func (f *Finisher) Ended(runs []store.Run) {
	rearmed := false
	for i := range runs {
		f.teller.Ended(&runs[i], nil)
	}
	f.engine.LandAll(runs)
	for i := range runs {
		r := &runs[i]
		f.engine.Waiters.Notify(r)
		rearmed = rearmed || r.Type == store.TriggerFixDelay || r.Type == store.TriggerRetry
	}
	if rearmed {
		f.Life.Wakes.Scan.Poke() // a FixedDelay job has its next instant now
	}
}

// resultAt is a result that this node itself has come to about a flight, fenced by its
// start.
func (f *Finisher) resultAt(at *queue.Flight, res store.Result) store.Result {
	res.Incarnation = f.Leases.Incarnation
	if at.Remote {
		return concluded(at.Whole(), res)
	}
	res.RunID, res.Token = at.Run.Planned.ID, at.Run.Token
	return res
}

// AsSent are the runs that are as this node has sent them: see underWay.
func (f *Finisher) AsSent(ids []int64, within time.Duration) []*store.Run {
	return f.engine.Under.AsSent(ids, within)
}

// Memory for results on their way to the store, which one batch uses after the other.

// finishRoom has it. A batch whose storing has failed leaves it to the call, which may still be
// under way.
type finishRoom struct {
	flights []*queue.Flight
	known   []store.Run // the runs of flights
	results []store.Result
	answers []store.Run
}

// finishRooms are those that nobody uses. A batch has up to StoreBatch results, so a room takes some
// 1.5 MB at most. One is kept for as long as the process lives, since garbage is collected several
// times between two herds, and a collection takes the others. It is safe for concurrent use.
type finishRooms struct {
	one  atomic.Pointer[finishRoom]
	more sync.Pool // of *finishRoom
}

// take returns one, which is empty.
func (r *finishRooms) take() *finishRoom {
	if room := r.one.Swap(nil); room != nil {
		return room
	}
	if room, ok := r.more.Get().(*finishRoom); ok {
		return room
	}
	return &finishRoom{}
}

// giveBack takes one back, with whatever is in it.
func (r *finishRooms) giveBack(room *finishRoom) {
	if room = room.cleared(); !r.one.CompareAndSwap(nil, room) {
		r.more.Put(room)
	}
}

// cleared is the memory as it was before the batch.
func (r *finishRoom) cleared() *finishRoom {
	clear(r.flights)
	clear(r.known)
	clear(r.results)
	clear(r.answers)
	r.flights, r.known, r.results, r.answers = r.flights[:0], r.known[:0], r.results[:0], r.answers[:0]
	return r
}

// knows is the run of a flight, in memory for which room was made before.
func (r *finishRoom) knows(f *queue.Flight) *store.Run {
	r.known = r.known[:len(r.known)+1]
	known := &r.known[len(r.known)-1]
	f.Run.Fill(known, f.Job)
	return known
}
