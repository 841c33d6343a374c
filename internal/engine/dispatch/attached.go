package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// What executors of this process say: results, progress, and the beginning of a handler's log.
// Output: results, to finish.go; progress, to progress.go.

// attachedAdmin is the admin side of an attached executor.
type attachedAdmin struct {
	finisher *finisher
	progress *progress
	lines    *runlog.Writer // nil for none
}

// asAdmin is what executors are bound to: they ask where lines go only if that is somewhere.
func (a attachedAdmin) asAdmin() wire.Admin {
	if a.lines == nil {
		return a
	}
	return loggingAdmin{a}
}

// Callback stores the results; it returns once they are stored, or taken over by this node (finish.go
// says which are), or ctx ends. Those whose runs
// have lines that are still to be written are stored after the others, which do not wait for them.
func (a attachedAdmin) Callback(ctx context.Context, reqs []wire.CallbackRequest) (wire.Return, error) {
	reqs, others, goals := a.lines.Apart(reqs)
	if len(others) > 0 { // whose handlers have returned as well
		a.finisher.queue.LeavePlaces(a.flightsOf(nil, others))
	}
	err := a.finish(ctx, reqs)
	if err == nil && len(others) > 0 {
		a.lines.Book.Settle(ctx, goals)
		err = a.finish(ctx, others)
	}
	if err != nil {
		return wire.Return{}, err
	}
	a.finisher.letGather(ctx, len(reqs))
	return wire.Success(), nil
}

// finish stores the results of runs that are under way here.
func (a attachedAdmin) finish(ctx context.Context, reqs []wire.CallbackRequest) error {
	buffers := a.finisher.buffers.take()
	buffers.results, buffers.known = slices.Grow(buffers.results, len(reqs)), slices.Grow(buffers.known, len(reqs))
	buffers.flights = a.flightsOf(buffers.flights, reqs)
	for i, at := range buffers.flights {
		if at == nil {
			continue
		}
		res := reportedResult(at, buffers.knows(at), &reqs[i])
		if res.State == store.StateKilled {
			res.State = a.finisher.queue.InFlight.StateIfKilled(at)
		}
		buffers.results = append(buffers.results, res)
	}
	a.finisher.queue.LeavePlaces(buffers.flights)
	for a.finisher.queue.ResultsWait(a.finisher.Clock.Now()) && !a.finisher.Life.Draining.Load() && loop.Sleep(ctx, time.Millisecond) {
	}
	return a.finisher.finishIn(ctx, buffers, buffers.results)
}

// flightsOf appends the flights that results are of, in their order; nil where a run is not under
// way here, or is another one that had the id before.
func (a attachedAdmin) flightsOf(dst []*queue.Flight, reqs []wire.CallbackRequest) []*queue.Flight {
	before := len(dst)
	dst = a.finisher.queue.InFlight.OfResults(dst, reqs)
	for i, at := range dst[before:] {
		if r := &reqs[i]; at != nil && r.Exact && !at.Run.IsOf(r.LogDateTim) {
			dst[before+i] = nil
		}
	}
	return dst
}

// attachedFlight is the flight of a run that an executor of this process speaks of; nil where that is
// not under way here, or is another one that had the id before.
func attachedFlight(q *queue.Queue, logID, logDateTim int64) *queue.Flight {
	if f := q.InFlight.Of(logID); f != nil && !f.Remote && f.Run.IsOf(logDateTim) {
		return f
	}
	return nil
}

// Progress is told by executors of ours how far a run is: see executor.Executor.Bind.
func (a attachedAdmin) Progress(logID, logDateTim int64, p wire.Progress) {
	a.progress.attached(logID, logDateTim, p)
}

// Abandoned is told by executors of ours when a handler was: see executor.Executor.Bind.
func (a attachedAdmin) Abandoned() { a.finisher.Life.Wakes.Abandoned.Poke() }

// ForgetsResults says that Callback keeps nothing of what it was given: see package executor.
func (attachedAdmin) ForgetsResults() {}

// Registry and RegistryRemove have nothing to do: the node's beats say who is
// attached.
func (attachedAdmin) Registry(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (attachedAdmin) RegistryRemove(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

// loggingAdmin is one where the lines of runs go as well, as Config.Logs says.
type loggingAdmin struct{ attachedAdmin }

// OpenLog is asked by executors of ours before they call a handler: see executor.Executor.Bind.
func (a loggingAdmin) OpenLog(logID, logDateTim int64) (write func(time.Time, slog.Level, string), end func()) {
	f := attachedFlight(a.finisher.queue, logID, logDateTim)
	if f == nil {
		return nil, nil
	}
	p := &f.Run.Planned
	return a.lines.Open(&f.Lines, p.ID, p.JobID, p.App)
}
