package xxljob

// Goroutines that are used again. Output: what is run on them.

import "context"

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
