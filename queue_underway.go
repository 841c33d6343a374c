package xxljob

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/idmap"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Runs that are under way: here, or at another node that this one waits for.

// underWay has the flights of a node, and the runs of other nodes whose end it waits for.
type underWay struct {
	mu      *sync.Mutex        // the engine's
	flights idmap.Map[*flight] // guarded by mu: runs that this node runs
	lately  startedLately      // guarded by mu: what flights have in common
	landed  landings           // guarded by mu: starts that were under way here and are over
	away    map[int64]awayRun  // guarded by mu: runs of other nodes whose end this node waits for
	retries awaited            // guarded by mu: retries that others wait for
	quiet   chan struct{}      // guarded by mu: closed when flights is empty; nil while nobody asks
}

func newUnderWay(mu *sync.Mutex) *underWay {
	return &underWay{mu: mu, lately: startedLately{}, away: map[int64]awayRun{}, retries: newAwaited()}
}

// flight is a run that this node has started at a remote executor, or started at or
// taken for one of its own attached executors. At a remote one it ends with the
// executor's answer, and the run goes on without it.
type flight struct {
	*routed // where it was sent to; others may have the same
	run     startedRun
	job     *store.Job
	ref     *jobRef
	// acked is when the store acknowledged the start, on the monotonic clock.
	acked time.Time
	state flightState // guarded by engine.mu
	lines startLog    // what its handler logs; guarded by the mu of the book of lines
}

// at is the address where it counts.
func (f *flight) at() addressKey { return f.key(f.run.planned.App) }

// whole is the run of a flight.
func (f *flight) whole() (r store.Run) {
	f.run.fill(&r, f.job)
	return r
}

// flightState is how far a flight is. Its fields are guarded by engine.mu.
type flightState struct {
	counts   bool // it holds a place in lanes.running
	left     bool // it has left that, and counts in lanes.storing
	sent     bool
	landed   bool   // it is under way no more
	killed   bool   // not to be sent any more
	accepted bool   // the executor has the run
	kill     string // why it is to be killed, where it is
	cutOff   bool   // it is killed since this process ends
	over     bool   // its run has ended, and not by a kill
	marked   bool   // that its executor has the run is being stored
}

// awayRun is a run at another node, with what its end makes free.
type awayRun struct {
	jobID   int64
	address string
	places  addressKey // a place at its address, where app is not empty
	serial  lot
}

// awayAt is a run at another node that has no places here.
func awayAt(r store.Run) awayRun { return awayRun{jobID: r.JobID, address: r.Address} }

// flight returns the flight of a run, nil when it is not under way here.
func (u *underWay) flight(runID int64) *flight {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.flights.Of(runID)
}

// flightsOf appends the flights of the runs that results are of, in their order; nil for those
// that are not under way here.
func (u *underWay) flightsOf(dst []*flight, results []wire.CallbackRequest) []*flight {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range results {
		dst = append(dst, u.flights.Of(results[i].LogID))
	}
	return dst
}

// inFlight returns the flights of this process.
func (u *underWay) inFlight() []*flight {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make([]*flight, 0, u.flights.Len())
	for _, f := range u.flights.All() {
		all = append(all, f)
	}
	return all
}

// noteOver notes that a run has ended; one that was killed may have to be killed at its executor
// yet. mu is held.
func (u *underWay) noteOver(r *store.Run) {
	if f := u.flights.Of(r.ID); f != nil && f.run.Token == r.Token && r.State.Ended() && r.State != store.StateKilled {
		f.state.over = true
	}
}

// toBeMarked reports whether the run of a flight is to be marked dispatched now: not where it has
// ended, as far as this node has stored its end, and not by a kill.
func (u *underWay) toBeMarked(f *flight) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	f.state.marked = !f.state.over
	return f.state.marked
}

// asSent returns the runs that this node has sent to executors elsewhere and that are as they were
// started, as far as it knows; nil for others. They were started within the given time.
func (u *underWay) asSent(ids []int64, within time.Duration) []*store.Run {
	runs := make([]*store.Run, len(ids))
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, id := range ids {
		f := u.flights.Of(id)
		if f != nil && f.remote && f.state.sent && !f.state.marked && !f.state.over && time.Since(f.acked) <= within {
			run := f.whole()
			runs[i] = &run
		}
	}
	return runs
}

// hasLanded reports whether this very start of the run was under way here and is
// over.
func (u *underWay) hasLanded(run store.Run) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.landed.has(&run)
}

// send marks the flight as handed to its executor; false when it was killed or
// taken away before.
func (u *underWay) send(f *flight) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if f.state.killed || f.state.landed {
		return false
	}
	f.state.sent = true
	return true
}

// sendAll is send for many. It returns, in place, those that are to be handed on.
func (u *underWay) sendAll(flights []*flight) []*flight {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(flights, func(f *flight) bool {
		if !f.state.killed && !f.state.landed {
			f.state.sent = true
		}
		return !f.state.sent
	})
}

// intercept keeps a flight from being sent; false when it has been.
func (u *underWay) intercept(f *flight) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if f.state.sent || f.state.killed || f.state.landed {
		return false
	}
	f.state.killed = true
	return true
}

// accepted notes that the executor has the run, and returns the reason if it is
// to be killed.
func (u *underWay) accepted(f *flight) (kill string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f.state.accepted = true
	return f.state.kill
}

// toKill is a flight that is to be killed, and why.
type toKill struct {
	*flight
	reason string
}

// acceptedAll is accepted for many. It returns those that are to be killed.
func (u *underWay) acceptedAll(flights []*flight) (kills []toKill) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range flights {
		if f.state.accepted = true; f.state.kill != "" {
			kills = append(kills, toKill{f, f.state.kill})
		}
	}
	return kills
}

// kill notes that a flight is to be killed, and reports whether its executor can
// be asked now: it has accepted the run, and was not asked before.
func (u *underWay) kill(f *flight, reason string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	first := f.state.kill == ""
	f.state.kill = reason
	return f.state.accepted && first
}

// cutOff notes that a flight is killed since this process ends, unless somebody has wanted it
// killed before.
func (u *underWay) cutOff(f *flight) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f.state.cutOff = f.state.kill == "" && !f.state.killed
}

// killed is the state in which a flight ends that is killed.
func (u *underWay) killed(f *flight) store.State {
	u.mu.Lock()
	defer u.mu.Unlock()
	if f.state.cutOff {
		return store.StateLost
	}
	return store.StateKilled
}

// idle waits until no run is under way in this process.
func (u *underWay) idle(ctx context.Context) error {
	u.mu.Lock()
	if u.flights.Len() == 0 {
		u.mu.Unlock()
		return nil
	}
	if u.quiet == nil {
		u.quiet = make(chan struct{})
	}
	quiet := u.quiet
	u.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Those who wait for the end of a run.

// waiters are those of this process who wait for the ends of runs.
type waiters struct {
	mu sync.Mutex
	by map[int64][]chan store.Run // guarded by mu: by run
}

func newWaiters() *waiters { return &waiters{by: map[int64][]chan store.Run{}} }

// add returns a channel that gets the run when it has ended, if drop was not called before.
func (w *waiters) add(runID int64) chan store.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan store.Run, 1)
	w.by[runID] = append(w.by[runID], c)
	return c
}

func (w *waiters) drop(runID int64, c chan store.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.by[runID], func(o chan store.Run) bool { return o == c })
	if len(rest) == 0 {
		delete(w.by, runID)
		return
	}
	w.by[runID] = rest
}

// runs are those that somebody waits for.
func (w *waiters) runs() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.by))
}

// notify tells those who wait for the run, once.
func (w *waiters) notify(r *store.Run) {
	w.mu.Lock()
	told := w.by[r.ID]
	delete(w.by, r.ID)
	w.mu.Unlock()
	for _, c := range told {
		c <- *r // has a buffer of one, and is sent to once
	}
}
