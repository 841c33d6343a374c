package executor

// The heartbeat: one cluster is told that the executor is there, until it leaves.

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// Between the beginnings of two attempts to register lies firstBackoff after a first
// failure, and twice as much after each further one, up to Config.Beat; where not all
// admins have answered, up to awayBackoff, or until the first of the two is over. Within
// one attempt, too, they are asked every awayBackoff: an admin that keeps its registrations
// in memory has forgotten them when it is back. With askedWithin that makes the 5 s within
// which an admin that is back hears of the executor.
const (
	firstBackoff = time.Second
	awayBackoff  = 3500 * time.Millisecond
)

// Bounds of a good-bye.
const (
	lastBeatWait = time.Second     // for a registration under way
	leaveWait    = 3 * time.Second // for all of it
)

// registration tells one cluster that the executor is there, for as long as it
// is.
type registration struct {
	log  *slog.Logger
	app  string
	addr string // what is registered; it never changes
	boot string
	beat time.Duration
	most time.Duration // of an attempt

	cluster *cluster
	after   func() // called after each success

	again  chan struct{} // has a buffer of one: register now
	quit   chan struct{} // closed by leave: no further registration
	done   chan struct{} // closed when loop has ended
	ctx    context.Context
	cancel context.CancelFunc // ends a registration under way
}

func newRegistration(e *Executor, o *origin, addr string) *registration {
	r := &registration{
		log: e.cfg.Logger.With("admin", o.name, "address", addr), app: e.cfg.App, addr: addr, boot: e.boot, beat: e.cfg.Beat,
		most:    max(e.cfg.CallTimeout, awayBackoff) + askedWithin, // so that the last node asked has its CallTimeout too
		cluster: o.cluster, after: o.out.adopt,
		again: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

func (r *registration) request() wire.RegistryRequest {
	return wire.RegistryRequest{
		RegistryGroup: wire.GroupExecutor, RegistryKey: r.app, RegistryValue: r.addr,
		BootID: r.boot, Capabilities: []string{wire.CapRepeat, wire.CapConcurrent, wire.CapBoot},
	}
}

// soon has the executor registered at once, and not when its beat comes: the admin is
// away, or was. It never blocks.
func (r *registration) soon() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// loop registers at once and again and again, until leave. An admin of G4 may
// refuse for half a minute after a group was made: any refusal is tried again.
func (r *registration) loop() {
	defer close(r.done)
	fails, was := 0, "executor: registered"
	for {
		began, pause := time.Now(), r.beat
		if err := r.attempt(); err == nil {
			if fails > 0 {
				r.log.Info(was, "failures", fails)
			}
			fails, was = 0, "executor: registered again"
			r.after()
		} else {
			if fails++; fails == 1 {
				r.log.Warn("executor: registration failed; retrying", "error", err)
			}
			most := r.beat
			if !errors.Is(err, errRefused) {
				most = min(most, awayBackoff)
			}
			pause = backoff(fails, firstBackoff, most)
		}
		if !r.rest(pause - time.Since(began)) {
			return
		}
	}
}

// attempt registers once.
func (r *registration) attempt() error {
	ctx, cancel := context.WithTimeout(r.ctx, r.most)
	defer cancel()
	_, err := r.cluster.register(ctx, r.quit, r.request())
	return err
}

// rest waits for so long, or until soon is called; false when it is time to leave. An
// attempt that took longer than its pause is followed by the next at once, without a timer:
// Go 1.26 crashes in a bubble, under the race detector, on one that is due when it is made.
func (r *registration) rest(d time.Duration) bool {
	if d <= 0 {
		return !closed(r.quit)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.again:
	case <-r.quit:
	}
	return !closed(r.quit)
}

// backoff is the pause after so many failures: first, doubled by each further one
// up to most, less up to a quarter so that many executors do not knock in step.
func backoff(fails int, first, most time.Duration) time.Duration {
	d := most
	if fails <= 16 {
		d = min(first<<(fails-1), most)
	}
	return d - rand.N(d/4+1)
}

// leave ends the loop and says good-bye, within leaveWait. A registration under way
// is waited for: behind the good-bye it would undo it.
func (r *registration) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWait)
	defer cancel()
	defer r.cancel()
	close(r.quit)
	if !within(r.done, lastBeatWait) {
		r.cancel()
		within(r.done, lastBeatWait)
	}
	if _, err := r.cluster.RegistryRemove(ctx, r.request()); err != nil {
		r.log.Warn("executor: could not deregister; the admin will notice the missing heartbeats", "error", err)
	}
}
