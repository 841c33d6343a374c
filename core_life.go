package xxljob

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
)

// Whether a scheduler is started, and how far its end is.

// life is the state of Start and Stop.
type life struct {
	mu       sync.Mutex
	started  bool          // guarded by mu
	stopping bool          // guarded by mu
	over     chan struct{} // closed when the loops have ended; made by New
	end      theEnd
	fault    fatalFault
	shards   onceOK      // SetShards has succeeded
	draining atomic.Bool // Stop has begun: this node offers no executors, and takes nothing, any more
	loops    stages
	wakes    wakes
	mishaps  mishaps
}

// theEnd is how the first Stop has come out.
type theEnd struct {
	done   chan struct{} // closed when it is over; made by it
	err    error         // set before done is closed
	given  atomic.Bool   // it has returned, be it that it has given up
	unhook func() bool   // of Start's context
}

// fatalFault is why the scheduler cannot work at all, if so.
type fatalFault struct {
	err   error         // guarded by life.mu
	known chan struct{} // closed when err is set; made by New
}

// stages are the loops in the order in which they end: plan (scan, start, probes), then
// work (lanes, results, inbox), then lease (beats).
type stages struct{ plan, work, lease loop.Group }

// mayStart is called with mu held.
func (l *life) mayStart(ctx context.Context) error {
	switch {
	case l.stopping:
		return errs.ErrStopped
	case l.started:
		return errs.ErrStarted
	}
	return ctx.Err()
}

// stopped reports whether Stop is over. While it waits for handlers they may trigger,
// and wait, as before.
func (l *life) stopped() bool {
	select {
	case <-l.over:
		return true
	default:
		return l.end.given.Load()
	}
}

// running reports whether the loops run.
func (l *life) running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started && !l.stopping
}

// judge adds why a scheduler that does not run is not ready.
func (l *life) judge(e *NotReadyError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.fault.err != nil:
		e.add(notReadyShards, l.fault.err)
	case l.stopping:
		e.add(notReadyStopped, errs.ErrStopped)
	case !l.started:
		e.add(notReadyNotStarted, errors.New("not started"))
	}
}

func (l *life) fatalErr() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault.err
}

func newLife() *life {
	return &life{over: make(chan struct{}), fault: fatalFault{known: make(chan struct{})}, wakes: newWakes()}
}

// onceOK is done again until it has succeeded, by several at once where they come before
// that: who waits for the store keeps nobody else waiting.
type onceOK struct{ ok atomic.Bool }

func (o *onceOK) do(f func() error) error {
	if o.ok.Load() {
		return nil
	}
	err := f()
	if err == nil {
		o.ok.Store(true)
	}
	return err
}

// cannotWork records an error that no retry mends: ErrShards, of a store that did not
// answer when Start asked. It is called once, by the lease loop.
func (l *life) cannotWork(err error, log *slog.Logger) {
	log.Error("xxljob: this scheduler cannot work at all", "error", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault.err = err
	close(l.fault.known)
}

// How loops are told that there is something to do.

// wakes are the pokes of the loops, by whoever has news for them.
type wakes struct {
	scan, start     loop.Wake // something may be due; something may start now
	deliver         loop.Wake // something was started before its time
	owed            loop.Wake // something may be owed in shards that are new to this node
	ahead           loop.Wake // runs that are kept apart may have to move
	lease, list     loop.Wake // a beat has something to tell, or to find out; lists of jobs
	alarms          loop.Wake // messages have ended, or alarms may be in shards that are new to this node
	late            loop.Wake // a job may have come to have a LateAfter
	inbox           loop.Wake
	watch, transit  loop.Wake // runs at other nodes: how they end, and whether they were taken
	inDoubt         loop.Wake
	unreported      loop.Wake // runs that executors have accepted
	attachedChanged loop.Wake // for a Registry of the user's
}

func newWakes() wakes {
	return wakes{
		scan: loop.NewWake(), start: loop.NewWake(), deliver: loop.NewWake(), ahead: loop.NewWake(), owed: loop.NewWake(), alarms: loop.NewWake(), late: loop.NewWake(), lease: loop.NewWake(), list: loop.NewWake(), inbox: loop.NewWake(),
		watch: loop.NewWake(), transit: loop.NewWake(), inDoubt: loop.NewWake(), unreported: loop.NewWake(), attachedChanged: loop.NewWake(),
	}
}

// wakeLoops wakes the loops that sleep while this node has no shards, or is not trusted with
// them.
func (w *wakes) wakeLoops() {
	w.scan.Poke()
	w.ahead.Poke()
	w.owed.Poke()
	w.alarms.Poke()
	w.start.Poke()
	w.inbox.Poke()
	w.unreported.Poke()
}

// What should not happen, counted where it is logged. Input: from all parts. Output: for
// Scheduler.Stats.

// mishaps are the counters of FaultStats that no part has by itself. They are safe for
// concurrent use.
type mishaps struct {
	pickedUp, adopted, forgotten         atomic.Uint64
	unplannable, endless, absent, alarms atomic.Uint64
}

// fill adds what was counted.
func (m *mishaps) fill(out *FaultStats) {
	out.PickedUp, out.Adopted, out.Forgotten = m.pickedUp.Load(), m.adopted.Load(), m.forgotten.Load()
	out.Unplannable, out.Endless, out.Absent = m.unplannable.Load(), m.endless.Load(), m.absent.Load()
	out.AlarmsFailed = m.alarms.Load()
}
