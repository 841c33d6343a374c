package fairqueue

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
)

// Intake is a queue of numbers.
type Intake struct{ in *Queue[int] }

// NewIntake makes a queue with small bounds, and its loop.
func NewIntake(ofApp, inAll int) Intake {
	return Intake{New[int](Bounds{OfApp: ofApp, InAll: inAll, Batch: 20, BatchBytes: inAll, AtOnce: 5, Kept: time.Minute, Retries: true})}
}

// Run is the loop.
func (t Intake) Run(ctx context.Context, do func(context.Context, []*int) error) {
	t.in.Loop(ctx, time.Millisecond, loop.Backoff{Log: slog.New(slog.DiscardHandler), What: "testing"}, do)
}

// Store has items stored, or gives up after patience.
func (t Intake) Store(ctx context.Context, scope, app string, size int, patience time.Duration, items ...*int) error {
	p, err := t.in.Add(Origin{scope, app}, size-parcelSize, items...)
	if err != nil {
		return err
	}
	return p.Wait(ctx, patience)
}

// Size is how much is here, and Lines of how many apps; it panics where the books of the
// queue do not agree.
func (t Intake) Size() (size, lines int) {
	t.in.mu.Lock()
	defer t.in.mu.Unlock()
	turns := 0
	for name, s := range t.in.scopes {
		of := 0
		for app, l := range s.apps {
			own := 0
			for _, p := range l.waiting {
				own += p.size
			}
			of += l.size
			lines++
			if l.app != app || own > l.size || l.size > t.in.most.OfApp && len(l.waiting) > 1 || l.size == 0 || slices.Contains(s.turn, l) != (len(l.waiting) > 0) {
				panic(fmt.Sprintf("line %q: %+v", app, l))
			}
		}
		if s.name != name || of != s.size || slices.Contains(t.in.turn, s) != (len(s.turn) > 0) {
			panic(fmt.Sprintf("scope %q: %+v", name, s))
		}
		size, turns = size+s.size, turns+min(len(s.turn), 1)
	}
	if size != t.in.size || size > t.in.most.InAll || turns != len(t.in.turn) {
		panic(fmt.Sprintf("%d bytes of %d, %d of %d turns", size, t.in.size, turns, len(t.in.turn)))
	}
	return size, lines
}
