package xxljob

// Goroutines that are started and ended together.

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/xxljob/xxljob/internal/urgent"
)

// loops are goroutines that end together. Without what they ask of the store no run goes
// on, and their context says so to it (see internal/urgent).
type loops struct {
	group  *errgroup.Group
	ctx    context.Context
	cancel context.CancelFunc
	ending *ending
}

// ending is whether nothing more is to be started from outside of the loops.
type ending struct {
	mu  sync.Mutex
	set bool // guarded by mu
}

func newLoops() loops {
	ctx, cancel := context.WithCancel(urgent.Mark(context.Background()))
	return loops{group: &errgroup.Group{}, ctx: ctx, cancel: cancel, ending: &ending{}}
}

// run starts a loop; end waits for it. It is called by what end waits for, or before it.
func (l loops) run(loop func(context.Context)) {
	l.group.Go(func() error { loop(l.ctx); return nil })
}

// aside starts a loop whose calls of the store may wait.
func (l loops) aside(loop func(context.Context)) {
	l.run(func(ctx context.Context) { loop(urgent.Unmark(ctx)) })
}

// try is run for those who call at any time; it reports false once the loops are to end.
func (l loops) try(loop func(context.Context)) bool {
	l.ending.mu.Lock()
	defer l.ending.mu.Unlock()
	if !l.ending.set {
		l.run(loop)
	}
	return !l.ending.set
}

// end cancels the loops and waits until they have returned.
func (l loops) end() {
	l.cancel()
	l.ending.mu.Lock()
	l.ending.set = true
	l.ending.mu.Unlock()
	_ = l.group.Wait() // the loops return no errors
}
