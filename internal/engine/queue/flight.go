package queue

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/idmap"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Runs that are under way: here, or at another node that this one waits for.

// inFlight has the flights of a node, and the runs of other nodes whose end it waits for.
type inFlight struct {
	mu      *sync.Mutex         // the lock of the Queue
	here    idmap.Map[*Flight]  // guarded by mu: runs that this node runs
	lately  compact.Shared      // guarded by mu: what flights have in common
	ended   recentlyEnded       // guarded by mu: starts that were under way here and are over
	remote  map[int64]remoteRun // guarded by mu: runs of other nodes whose end this node waits for
	answers map[int64]time.Time // guarded by mu: those of remote whose answers others wait for, and until when
	retries retryBarrier        // guarded by mu: retries that others wait for
	quiet   chan struct{}       // guarded by mu: closed when flights is empty; nil while nobody asks
}

func newInFlight(mu *sync.Mutex) *inFlight {
	return &inFlight{mu: mu, lately: compact.Shared{}, remote: map[int64]remoteRun{}, answers: map[int64]time.Time{}, retries: newRetryBarrier()}
}

// Flight is a run that this node has started at a remote executor, or started at or
// taken for one of its own attached executors. At a remote one it ends with the
// executor's answer, and the run goes on without it.
type Flight struct {
	*Destination // where it was sent to; others may have the same
	Run          compact.Started
	Job          *store.Job
	ref          *jobRef
	// Acked is when the store acknowledged the start, on the monotonic clock.
	Acked time.Time
	state flightState   // guarded by Queue.mu
	Lines core.StartLog // what its handler logs; guarded by the mu of the book of lines
}

// at is the address where it counts.
func (f *Flight) at() addressKey { return f.key(f.Run.Planned.App) }

// Whole is the run of a flight.
func (f *Flight) Whole() (r store.Run) {
	f.Run.Fill(&r, f.Job)
	return r
}

// flightState is how far a flight is. Its fields are guarded by Queue.mu.
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

// remoteRun is a run at another node, with what its end makes free.
type remoteRun struct {
	jobID    int64
	address  string
	places   addressKey // a place at its address, where app is not empty
	jobPlace WaitKey
}

// remoteAt is a run at another node that has no places here.
func remoteAt(r store.Run) remoteRun { return remoteRun{jobID: r.JobID, address: r.Address} }

// Of returns the flight of a run, nil when it is not under way here.
func (u *inFlight) Of(runID int64) *Flight {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.here.Of(runID)
}

// OfResults appends the flights of the runs that results are of, in their order; nil for those
// that are not under way here.
func (u *inFlight) OfResults(dst []*Flight, results []wire.CallbackRequest) []*Flight {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range results {
		dst = append(dst, u.here.Of(results[i].LogID))
	}
	return dst
}

// All returns the flights of this process.
func (u *inFlight) All() []*Flight {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make([]*Flight, 0, u.here.Len())
	for _, f := range u.here.All() {
		all = append(all, f)
	}
	return all
}

// noteOver notes that a run has ended; one that was killed may have to be killed at its executor
// yet. mu is held.
func (u *inFlight) noteOver(r *store.Run) {
	if f := u.here.Of(r.ID); f != nil && f.Run.Token == r.Token && r.State.Ended() && r.State != store.StateKilled {
		f.state.over = true
	}
}

// ToBeMarked reports whether the run of a flight is to be marked dispatched now: not where it has
// ended, as far as this node has stored its end, and not by a kill.
func (u *inFlight) ToBeMarked(f *Flight) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	f.state.marked = !f.state.over
	return f.state.marked
}

// AsSent returns the runs that this node has sent to executors elsewhere and that are as they were
// started, as far as it knows; nil for others. They were started within the given time.
func (u *inFlight) AsSent(ids []int64, within time.Duration) []*store.Run {
	runs := make([]*store.Run, len(ids))
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, id := range ids {
		f := u.here.Of(id)
		if f != nil && f.Remote && f.state.sent && !f.state.marked && !f.state.over && time.Since(f.Acked) <= within {
			run := f.Whole()
			runs[i] = &run
		}
	}
	return runs
}

// HasLanded reports whether this very start of the run was under way here and is
// over.
func (u *inFlight) HasLanded(run store.Run) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended.has(&run)
}

// MarkSent marks flights as handed to their executors. It returns, in place, those that are to be:
// the others were killed, or taken away, before.
func (u *inFlight) MarkSent(flights ...*Flight) []*Flight {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(flights, func(f *Flight) bool {
		f.state.sent = f.state.sent || !f.state.killed && !f.state.landed
		return f.state.killed || f.state.landed
	})
}

// Intercept keeps a flight from being sent; false when it has been.
func (u *inFlight) Intercept(f *Flight) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if f.state.sent || f.state.killed || f.state.landed {
		return false
	}
	f.state.killed = true
	return true
}

// toKill is a flight that is to be killed, and why.
type toKill struct {
	*Flight
	Reason string
}

// Accepted notes that executors have the runs. It returns those that are to be killed, which was asked
// for while they were being accepted.
func (u *inFlight) Accepted(flights ...*Flight) (kills []toKill) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range flights {
		if f.state.accepted = true; f.state.kill != "" {
			kills = append(kills, toKill{f, f.state.kill})
		}
	}
	return kills
}

// Kill notes that a flight is to be killed, and reports whether its executor can
// be asked now: it has accepted the run, and was not asked before.
func (u *inFlight) Kill(f *Flight, reason string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	first := f.state.kill == ""
	f.state.kill = reason
	return f.state.accepted && first
}

// CutOff notes that a flight is killed since this process ends, unless somebody has wanted it
// killed before.
func (u *inFlight) CutOff(f *Flight) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f.state.cutOff = f.state.kill == "" && !f.state.killed
}

// StateIfKilled is the state in which a flight ends that is killed.
func (u *inFlight) StateIfKilled(f *Flight) store.State {
	u.mu.Lock()
	defer u.mu.Unlock()
	if f.state.cutOff {
		return store.StateLost
	}
	return store.StateKilled
}

// Idle waits until no run is under way in this process.
func (u *inFlight) Idle(ctx context.Context) error {
	u.mu.Lock()
	if u.here.Len() == 0 {
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

// Add returns a channel that gets the run when it has ended, if drop was not called before.
func (w *waiters) Add(runID int64) chan store.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan store.Run, 1)
	w.by[runID] = append(w.by[runID], c)
	return c
}

func (w *waiters) Drop(runID int64, c chan store.Run) {
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

// Notify tells those who wait for the run, once.
func (w *waiters) Notify(r *store.Run) {
	w.mu.Lock()
	told := w.by[r.ID]
	delete(w.by, r.ID)
	w.mu.Unlock()
	for _, c := range told {
		c <- *r // has a buffer of one, and is sent to once
	}
}
