package core

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

// lifecycle is the state of Start and Stop.
type lifecycle struct {
	Mu          sync.Mutex
	Started     bool          // guarded by mu
	Stopping    bool          // guarded by mu
	Over        chan struct{} // closed when the loops have ended; made by New
	End         theEnd
	Fault       fatalFault
	shards      onceOK      // SetShards has succeeded
	Draining    atomic.Bool // Stop has begun: this node offers no executors, and takes nothing, any more
	Loops       stages
	Wakes       Wakes
	FaultCounts faultCounts
	Stalls      Stalls
}

// theEnd is how the first Stop has come out.
type theEnd struct {
	Done  chan struct{} // closed when it is over; made by it
	Err   error         // set before done is closed
	Given atomic.Bool   // it has returned, be it that it has given up
	// Returned says whether all handlers had returned when its time was over, once that was looked
	// at: those that are left are killed after it.
	Returned atomic.Pointer[bool]
	Unhook   func() bool // of Start's context
}

// fatalFault is why the scheduler cannot work at all, if so.
type fatalFault struct {
	err   error         // guarded by lifecycle.Mu
	Known chan struct{} // closed when err is set; made by New
}

// stages are the loops in the order in which they end: plan (scan, start, probes), then
// work (lanes, results, inbox), then lease (beats).
type stages struct{ Plan, Work, Lease loop.Group }

// MayStart is called with mu held.
func (l *lifecycle) MayStart(ctx context.Context) error {
	switch {
	case l.Stopping:
		return errs.ErrStopped
	case l.Started:
		return errs.ErrStarted
	}
	return ctx.Err()
}

// Stopped reports whether Stop is over. While it waits for handlers they may trigger,
// and wait, as before.
func (l *lifecycle) Stopped() bool {
	select {
	case <-l.Over:
		return true
	default:
		return l.End.Given.Load()
	}
}

// Running reports whether the loops run.
func (l *lifecycle) Running() bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Started && !l.Stopping
}

// WasStarted reports whether Start has been called, even if Stop has been since.
func (l *lifecycle) WasStarted() bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Started
}

// Judge adds why a scheduler that does not run is not ready.
func (l *lifecycle) Judge(e *NotReadyError) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	switch {
	case l.Fault.err != nil:
		e.Add(notReadyShards, l.Fault.err)
	case l.Stopping:
		e.Add(notReadyStopped, errs.ErrStopped)
	case !l.Started:
		e.Add(notReadyNotStarted, errors.New("not started"))
	}
}

func (l *lifecycle) FatalErr() error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Fault.err
}

func NewLife() *lifecycle {
	return &lifecycle{Over: make(chan struct{}), Fault: fatalFault{Known: make(chan struct{})}, Wakes: newWakes()}
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

// CannotWork records an error that no retry mends: ErrShards, of a store that did not
// answer when Start asked. It is called once, by the lease loop.
func (l *lifecycle) CannotWork(err error, log *slog.Logger) {
	log.Error("xxljob: this scheduler cannot work at all", "error", err)
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Fault.err = err
	close(l.Fault.Known)
}

// How loops are told that there is something to do.

// Wakes are the pokes of the loops, by whoever has news for them.
type Wakes struct {
	Scan, Start     loop.Wake // something may be due; something may start now
	Deliver         loop.Wake // something was started before its time
	Owed            loop.Wake // something may be owed in shards that are new to this node
	Ahead           loop.Wake // runs that are kept apart may have to move
	Lease, List     loop.Wake // a beat has something to tell, or to find out; lists of jobs
	Alarms          loop.Wake // messages have ended, or alarms may be in shards that are new to this node
	Misdated        loop.Wake // shards are new to this node, whose jobs a clock that was ahead may have planned
	Late            loop.Wake // a job may have come to have a LateAfter, or is in a shard that is new to this node
	Inbox           loop.Wake
	Watch, Transit  loop.Wake // runs at other nodes: how they end, and whether they were taken
	InDoubt         loop.Wake
	Unreported      loop.Wake // runs that executors have accepted
	AttachedChanged loop.Wake // for a Registry of the user's
	Abandoned       loop.Wake // an executor of this process has abandoned a handler
	Waiting         loop.Wake // a due run waits for something that has a bound
	Served          loop.Wake // executors have come or gone, or something waits for those of an app
}

func newWakes() Wakes {
	return Wakes{
		Scan: loop.NewWake(), Start: loop.NewWake(), Deliver: loop.NewWake(), Ahead: loop.NewWake(), Owed: loop.NewWake(), Alarms: loop.NewWake(), Late: loop.NewWake(), Lease: loop.NewWake(), List: loop.NewWake(), Inbox: loop.NewWake(),
		Watch: loop.NewWake(), Transit: loop.NewWake(), InDoubt: loop.NewWake(), Unreported: loop.NewWake(), AttachedChanged: loop.NewWake(), Misdated: loop.NewWake(), Abandoned: loop.NewWake(), Waiting: loop.NewWake(), Served: loop.NewWake(),
	}
}

// WakeLoops wakes the loops that sleep while this node has no shards, or is not trusted with
// them.
func (w *Wakes) WakeLoops() {
	w.Scan.Poke()
	w.Ahead.Poke()
	w.Owed.Poke()
	w.Alarms.Poke()
	w.Late.Poke()
	w.Misdated.Poke()
	w.Start.Poke()
	w.Inbox.Poke()
	w.Unreported.Poke()
}

// What should not happen, counted where it is logged. Input: from all parts. Output: for
// Scheduler.Stats.

// faultCounts are the counters of FaultStats that no part has by itself. They are safe for
// concurrent use.
type faultCounts struct {
	PickedUp, Adopted, Forgotten         atomic.Uint64
	Unplannable, Endless, Absent, Alarms atomic.Uint64
}

// Fill adds what was counted.
func (m *faultCounts) Fill(out *FaultStats) {
	out.PickedUp, out.Adopted, out.Forgotten = m.PickedUp.Load(), m.Adopted.Load(), m.Forgotten.Load()
	out.Unplannable, out.Endless, out.Absent = m.Unplannable.Load(), m.Endless.Load(), m.Absent.Load()
	out.AlarmsFailed = m.Alarms.Load()
}
