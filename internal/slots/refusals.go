package slots

import (
	"context"
	"sync/atomic"
	"time"
)

// One refusal in refusedEvery is answered to a network. Those that come meanwhile wait for their
// turn, refusedAhead of a network, which is two seconds, and refusedWaiting in all; further ones
// get no answer. Whose token is right never waits for any of them.
const (
	refusedEvery   = time.Second / 10
	refusedAhead   = 20
	refusedWaiting = 1000
)

// Refusals are the requests at one door whose token was refused: they are counted, the log has a line
// of each network now and then, and who guesses is slowed. It is safe for concurrent use.
type Refusals struct {
	count   *atomic.Uint64
	pace    *Pacer       // by network
	waiting atomic.Int64 // how many wait for their turn
	told    Rarely
}

// NewRefusals returns Refusals that are counted there.
func NewRefusals(count *atomic.Uint64) *Refusals {
	return &Refusals{count: count, pace: NewPacer(refusedEvery, refusedAhead)}
}

// Refuse counts a request of the network, calls tell with how many there were where the log is to have
// a line, and returns when it may be answered. It reports whether it may be at all: where it may not,
// its connection is to end.
func (f *Refusals) Refuse(ctx context.Context, network string, tell func(total uint64)) bool {
	total := f.count.Add(1)
	if f.told.May(network) {
		tell(total)
	}
	return f.Slow(ctx, network)
}

// Slow is Refuse for a request that is neither counted nor logged, since its token may be right.
func (f *Refusals) Slow(ctx context.Context, network string) bool {
	ahead, over := f.pace.Turn(network, time.Now())
	return over <= 0 && (ahead <= 0 || f.wait(ctx, ahead))
}

// wait waits for a turn, unless too many do or nobody waits for the answer any more.
func (f *Refusals) wait(ctx context.Context, ahead time.Duration) bool {
	defer f.waiting.Add(-1)
	if f.waiting.Add(1) > refusedWaiting {
		return false
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
