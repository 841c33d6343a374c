package otelxxl

import (
	"log/slog"
	"time"
)

// What tests of the package see of it.

// MostAsks is how many calls of a guard may be under way.
const MostAsks = mostAsks

// Bounded is a guard of providers.
type Bounded struct{ b bounded }

// NewBounded makes one.
func NewBounded(patience time.Duration, log *slog.Logger) *Bounded {
	return &Bounded{bounded{patience: patience, log: log}}
}

// Ask asks for a number.
func (b *Bounded) Ask(f func() int, late func(int)) (int, bool) { return ask(&b.b, "here", f, late) }

// End calls what ends something.
func (b *Bounded) End(f func()) { b.b.end("here", f) }

// Left is how many calls were left out.
func (b *Bounded) Left() uint64 { return b.b.left() }
