package loop

// Goroutines that are started and ended together.

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xxljob/xxljob/internal/urgent"
)

// Group are goroutines that end together. Without what they ask of the store no run goes
// on, and their context says so to it (see internal/urgent).
type Group struct {
	group  *errgroup.Group
	Ctx    context.Context
	Cancel context.CancelFunc
	ending *ending
}

// ending is whether nothing more is to be started from outside of the loops.
type ending struct {
	mu  sync.Mutex
	set bool // guarded by mu
}

func NewGroup() Group {
	ctx, cancel := context.WithCancel(urgent.Mark(context.Background()))
	return Group{group: &errgroup.Group{}, Ctx: ctx, Cancel: cancel, ending: &ending{}}
}

// Run starts a loop; end waits for it. It is called by what end waits for, or before it.
func (l Group) Run(loop func(context.Context)) {
	l.group.Go(func() error { loop(l.Ctx); return nil })
}

// Aside starts a loop whose calls of the store may wait.
func (l Group) Aside(loop func(context.Context)) {
	l.Run(func(ctx context.Context) { loop(urgent.Unmark(ctx)) })
}

// Try is run for those who call at any time; it reports false once the loops are to end.
func (l Group) Try(loop func(context.Context)) bool {
	l.ending.mu.Lock()
	defer l.ending.mu.Unlock()
	if !l.ending.set {
		l.Run(loop)
	}
	return !l.ending.set
}

// End cancels the loops and waits until they have returned.
func (l Group) End() {
	l.Cancel()
	l.ending.mu.Lock()
	l.ending.set = true
	l.ending.mu.Unlock()
	_ = l.group.Wait() // the loops return no errors
}

// What a started scheduler does again and again. The table of it is in internal/engine/node/node.go.

// Duty is what a started scheduler does again and again, in a loop of its own.
type Duty struct {
	What  string            // as it is said in the log of an error: "scanning for due jobs"
	Wakes []<-chan struct{} // two at most: any of them ends a wait
	After time.Duration     // the wait before the first time; zero for none
	// Once does it, and says how long to wait for the next time. After an error, which is
	// logged, the next time is soon.
	Once func(context.Context) (wait time.Duration, err error)
	// Loop is in the place of all these where that is not its shape.
	Loop func(context.Context)
	// Aside is set where what it asks of the store may wait: no run waits for it, and nothing is
	// missed for good.
	Aside bool
}

// failedAnew is for how long a duty has had nothing to ask when an error is logged again.
const failedAnew = time.Minute

// Start starts duties.
func (l Group) Start(log *slog.Logger, duties []Duty) {
	for _, d := range duties {
		run := d.Loop
		if run == nil {
			run = func(ctx context.Context) { d.repeat(ctx, log) }
		}
		if d.Aside {
			l.Aside(run)
		} else {
			l.Run(run)
		}
	}
}

// repeat does a duty until ctx ends. After an error it has recovered in a round that had an answer:
// one that had nothing to ask says nothing of whether it would be given one.
func (d Duty) repeat(ctx context.Context, log *slog.Logger) {
	backoff := Backoff{Log: log, What: d.What}
	ctx, answers := countAnswers(ctx)
	var failed time.Time // when it did last
	if d.After > 0 && !Sleep(ctx, d.After, d.Wakes...) {
		return
	}
	for {
		had := answers.Load()
		wait, err := d.Once(ctx)
		switch {
		case err != nil:
			if backoff.N > 0 && time.Since(failed) > failedAnew {
				backoff.N = 0
			}
			failed = time.Now()
			backoff.Failed(ctx, err)
			wait = backoff.Delay()
		case answers.Load() > had:
			backoff.Failed(ctx, nil)
		}
		if !Sleep(ctx, wait, d.Wakes...) {
			return
		}
	}
}

// Goroutines that are used again. Output: what is run on them.

// poolIdle is how many goroutines of a pool wait for more at most.
const poolIdle = 64

// Pool runs what may take its time, each piece on a goroutine of its own for so long. A few of
// these wait for the next piece: a call over HTTP needs several times the stack that a goroutine
// begins with, and to grow it costs a good part of what the call does. It is safe for concurrent
// use.
type Pool struct {
	next chan func(context.Context) // unbuffered: who waits takes it at once
	idle chan struct{}              // has one element for each that waits
}

func NewPool() Pool {
	return Pool{make(chan func(context.Context)), make(chan struct{}, poolIdle)}
}

// Run is Group.Run, on a goroutine that waits where there is one.
func (c Pool) Run(l Group, do func(context.Context)) {
	select {
	case c.next <- do:
	default:
		l.Run(func(ctx context.Context) { c.work(ctx, do) })
	}
}

// work does one piece after the other, until enough others wait for more, or ctx ends.
func (c Pool) work(ctx context.Context, do func(context.Context)) {
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
