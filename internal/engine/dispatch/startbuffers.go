package dispatch

import (
	"slices"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Memory that the start loop uses again for each batch.

// startBuffers has it. It belongs to the start loop: what it has lent is its own again when the
// next batch begins.
type startBuffers struct {
	attempts []queue.Attempt
	runs     []store.Run
	starts   []store.Start
	answers  []store.Started
	msg      struct{ routed, said string } // of the run before
}

// begin lends room for the attempts of the next batch.
func (b *startBuffers) begin(most int) []queue.Attempt {
	if cap(b.runs) < most {
		b.runs = make([]store.Run, 0, most)
	}
	clear(b.attempts)
	b.attempts, b.runs = slices.Grow(b.attempts[:0], most), b.runs[:0]
	return b.attempts
}

// lent notes how much of that room is used.
func (b *startBuffers) lent(attempts int) { b.attempts = b.attempts[:min(attempts, cap(b.attempts))] }

// nextRun lends a Run.
func (b *startBuffers) nextRun() *store.Run {
	if len(b.runs) == cap(b.runs) { // those that are lent stay where they are
		b.runs = make([]store.Run, 0, loop.StoreBatch)
	}
	b.runs = b.runs[:len(b.runs)+1]
	return &b.runs[len(b.runs)-1]
}

// said is the message of a run that was routed with one, as the store takes it. Runs that are
// started together mostly have the same one.
func (b *startBuffers) said(routed string) string {
	if b.msg.routed != routed {
		b.msg.routed, b.msg.said = routed, errs.Shorten(errs.PlainText(routed), core.MaxStartMsg-len("..."))
	}
	return b.msg.said
}

// startsOf lends what the store is asked for.
func (b *startBuffers) startsOf(batch []queue.Attempt) []store.Start {
	b.starts = slices.Grow(b.starts[:0], len(batch))
	for i := range batch {
		b.starts = append(b.starts, batch[i].Start)
	}
	return b.starts
}

// answered takes the answers of the store back, for those of the next batch, once they were acted on.
func (b *startBuffers) answered(answers []store.Started) {
	clear(answers)
	b.answers = answers[:0]
}

// drop leaves the memory to the call that still uses it.
func (b *startBuffers) drop() { *b = startBuffers{} }
