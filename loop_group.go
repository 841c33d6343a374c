package xxljob

// Goroutines that are started and ended together.

import (
	"context"
	"log/slog"
	"sync"
	"time"

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

// What a started scheduler does again and again. The table of it is in node_node.go.

// duty is what a started scheduler does again and again, in a loop of its own.
type duty struct {
	what  string            // as it is said in the log of an error: "scanning for due jobs"
	wakes []<-chan struct{} // two at most: any of them ends a wait
	// once does it, and says how long to wait for the next time. After an error, which is
	// logged, the next time is soon.
	once func(context.Context) (wait time.Duration, err error)
	// loop is in the place of all these where that is not its shape.
	loop func(context.Context)
	// aside is set where what it asks of the store may wait: no run waits for it, and nothing is
	// missed for good.
	aside bool
}

// start starts duties.
func (l loops) start(log *slog.Logger, duties []duty) {
	for _, d := range duties {
		run := d.loop
		if run == nil {
			run = func(ctx context.Context) { d.repeat(ctx, log) }
		}
		if d.aside {
			l.aside(run)
		} else {
			l.run(run)
		}
	}
}

// repeat does a duty until ctx ends.
func (d duty) repeat(ctx context.Context, log *slog.Logger) {
	backoff := backoff{log: log, what: d.what}
	for {
		wait, err := d.once(ctx)
		if backoff.failed(ctx, err) {
			wait = backoff.delay()
		}
		if !sleep(ctx, wait, d.wakes...) {
			return
		}
	}
}

// Goroutines that are used again. Output: what is run on them.

// crewIdle is how many goroutines of a crew wait for more at most.
const crewIdle = 64

// crew runs what may take its time, each piece on a goroutine of its own for so long. A few of
// these wait for the next piece: a call over HTTP needs several times the stack that a goroutine
// begins with, and to grow it costs a good part of what the call does. It is safe for concurrent
// use.
type crew struct {
	next chan func(context.Context) // unbuffered: who waits takes it at once
	idle chan struct{}              // has one element for each that waits
}

func newCrew() crew {
	return crew{make(chan func(context.Context)), make(chan struct{}, crewIdle)}
}

// run is loops.run, on a goroutine that waits where there is one.
func (c crew) run(l loops, do func(context.Context)) {
	select {
	case c.next <- do:
	default:
		l.run(func(ctx context.Context) { c.work(ctx, do) })
	}
}

// work does one piece after the other, until enough others wait for more, or ctx ends.
func (c crew) work(ctx context.Context, do func(context.Context)) {
	for {
		do(ctx)
		do = nil // what it refers to is not needed any more
		select {
		case c.idle <- struct{}{}:
		default:
			return
		}
		select {
		case do = <-c.next:
			<-c.idle
		case <-ctx.Done():
			return
		}
	}
}
