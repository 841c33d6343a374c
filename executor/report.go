package executor

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// maxBatch is how many results travel in one callback.
const maxBatch = 1000

// Back-off after a failed callback.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

// exitWait is how long a cancelled callback has to return before Stop leaves it.
const exitWait = time.Second

// outbox holds results, in the order they were recorded, until the admin has taken
// them. While a callback is under way further results gather, so batches grow
// with the load. Its size is bounded by what Run accepts: see owed.
type outbox struct {
	log *slog.Logger

	// owed counts accepted runs whose result is not delivered: Run raises it, the
	// reporter lowers it.
	owed atomic.Int64

	ctx    context.Context // of the callbacks, cancelled when Stop has no more time
	cancel context.CancelFunc
	hurry  chan struct{} // closed when there is no time for a pause any more

	mu      sync.Mutex
	admin   wire.Admin
	pending []wire.CallbackRequest
	hint    int           // capacity of the next pending
	active  bool          // the reporter runs
	last    bool          // hurry is closed: one failure more and the reporter gives up
	lost    int           // results given up
	idle    chan struct{} // made by flush, closed by the reporter at its end
}

func newOutbox(cfg Config) *outbox {
	o := &outbox{log: cfg.Logger, hurry: make(chan struct{}), hint: 1}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// bind sets the admin and delivers to it what is there.
func (o *outbox) bind(admin wire.Admin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.admin = admin
	o.wake()
}

// add takes one result. It never blocks for an admin.
func (o *outbox) add(res wire.CallbackRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending == nil {
		o.pending = make([]wire.CallbackRequest, 0, o.hint)
	}
	o.pending = append(o.pending, res)
	o.wake()
}

// wake starts the reporter when there is something to do. It ends by itself when
// nothing is left; flush waits for it. mu is held.
func (o *outbox) wake() {
	if o.active || o.admin == nil || len(o.pending) == 0 {
		return
	}
	o.active = true
	go o.report()
}

// report delivers until nothing is left.
func (o *outbox) report() {
	fails := 0
	var batch []wire.CallbackRequest
	for {
		var admin wire.Admin
		var last bool
		if admin, batch, last = o.next(batch); batch == nil {
			return
		}
		err := deliver(o.ctx, admin, batch)
		if err == nil {
			if fails > 0 {
				o.log.Info("executor: results are delivered again", "failures", fails)
			}
			o.owed.Add(-int64(len(batch)))
			fails, batch = 0, nil
			continue
		}
		if fails++; fails == 1 {
			o.log.Warn("executor: results cannot be delivered, trying on", "results", len(batch), "error", err)
		}
		if last || o.ctx.Err() != nil {
			o.giveUp(batch)
			return
		}
		o.pause(fails)
	}
}

// deliver is one callback.
func deliver(ctx context.Context, admin wire.Admin, batch []wire.CallbackRequest) error {
	ret, err := admin.Callback(ctx, batch)
	if err == nil && !ret.OK() {
		err = fmt.Errorf("xxljob: executor: callback refused: code %d: %s", ret.Code, ret.Msg)
	}
	return err
}

// next returns what to send, to whom, and whether it is the last attempt: the
// batch that failed before, or else the oldest results. When there is nothing to
// do the batch is nil, and the reporter has ended for all others.
func (o *outbox) next(batch []wire.CallbackRequest) (wire.Admin, []wire.CallbackRequest, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.admin == nil { // unbound meanwhile
		o.pending = append(batch, o.pending...)
		o.end()
		return nil, nil, false
	}
	if batch == nil {
		n := min(len(o.pending), maxBatch)
		if n == 0 {
			o.end()
			return nil, nil, false
		}
		batch = o.pending[:n:n]
		if o.pending = o.pending[n:]; len(o.pending) == 0 {
			o.pending = nil
		}
		o.hint = n
	}
	return o.admin, batch, o.last
}

// end marks the reporter as ended. mu is held.
func (o *outbox) end() {
	o.active = false
	if o.idle != nil {
		close(o.idle)
		o.idle = nil
	}
}

// giveUp drops everything, at the end of Stop only.
func (o *outbox) giveUp(batch []wire.CallbackRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost += len(batch) + len(o.pending)
	o.pending = nil
	o.end()
}

// pause waits between attempts: 50 ms, doubled by each further failure up to 5 s, less
// up to a quarter so that many executors do not knock in step.
func (o *outbox) pause(fails int) {
	d := maxPause
	if fails < 8 { // 50 ms << 7 is over 5 s
		d = min(firstPause<<(fails-1), maxPause)
	}
	t := time.NewTimer(d - rand.N(d/4))
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.hurry:
	}
}

// hurryUp ends a pause, and lets the reporter try just once more.
func (o *outbox) hurryUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.last {
		o.last = true
		close(o.hurry)
	}
}

// flush waits until all results are delivered or ctx ends. Then each batch has one
// attempt, the first failure ends it, and all together have at most grace. It returns
// how many results were not delivered; without an admin nobody misses them.
func (o *outbox) flush(ctx context.Context, grace time.Duration) int {
	defer o.cancel()
	done := o.done()
	select {
	case <-done:
	case <-ctx.Done():
		o.hurryUp()
		if !within(done, grace) {
			o.cancel()
			within(done, exitWait)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.active { // a callback that cannot be cancelled
		return int(o.owed.Load())
	}
	return o.lost
}

// done returns a channel that is closed when the reporter does not run.
func (o *outbox) done() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	ch := make(chan struct{})
	if o.active {
		o.idle = ch
	} else {
		close(ch)
	}
	return ch
}

// within waits for done for at most d and reports whether it came.
func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
