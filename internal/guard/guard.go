// Package guard calls code that others have written, so that a fault of it costs the
// call and not the process.
//
// In: a function of the user's. Out: its error; one that says so where it panicked, or
// ended its goroutine. What may hang is started (Start), and its Future is waited for as long as
// its answer is of use; Bounded is for answers that are nice to have and no more.
package guard

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
)

// ErrGoexit is the Value of a Panic that was none: the function has ended its goroutine
// (runtime.Goexit, or FailNow of a test).
var ErrGoexit = errors.New("the function has ended its goroutine")

// Panic is the error that a panic becomes.
type Panic struct {
	Value any    // what the function panicked with
	Stack []byte // where
}

// Error is one line, without the stack.
func (p *Panic) Error() string {
	if p.Value == any(ErrGoexit) {
		return ErrGoexit.Error()
	}
	return fmt.Sprintf("panic: %v", p.Value) // Sprintf survives a String that panics
}

// Call calls f on the caller's goroutine. A panic is a *Panic, also one of a method of
// the error that f returns: whoever reads it later need not be afraid of it. A f that
// ends its goroutine ends the caller's.
func Call(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	if err = f(); err != nil {
		tryOut(err)
	}
	return err
}

// tryOut calls what an error has for those who get it: its text, what it wraps, and how
// it compares itself.
func tryOut(err error) {
	_ = err.Error()
	_ = errors.Is(err, ErrGoexit)
	var p *Panic
	_ = errors.As(err, &p)
}

// Go calls f on a goroutine of its own, and there done with its error, however it has
// ended. Nobody waits for it but done.
func Go(f func() error, done func(error)) {
	go func() {
		var err error
		returned := false
		defer func() {
			if !returned {
				err = &Panic{Value: ErrGoexit, Stack: debug.Stack()}
			}
			done(err)
		}()
		err = Call(f)
		returned = true
	}()
}

// Apart calls f on a goroutine of its own and waits for it. A f that ends its goroutine
// is an error.
func Apart(f func() error) error {
	ended := make(chan error, 1)
	Go(f, func(err error) { ended <- err })
	return <-ended
}

// Log keeps a log of panics: one line for each place, with the stack. It is safe for
// concurrent use.
type Log struct {
	log  func() *slog.Logger
	mu   sync.Mutex
	seen map[string]uint64 // guarded by mu: panics by place
}

// mostPlaces is how many places are told apart; the rest are one.
const mostPlaces = 1000

// NewLog returns a Log that writes to what log returns at that time.
func NewLog(log func() *slog.Logger) *Log {
	return &Log{log: log, seen: map[string]uint64{}}
}

// Note writes the line about a place where err is a panic, unless there is one, and
// returns err. Places are remembered for good; of those beyond the first thousand all are
// "other".
func (l *Log) Note(place string, err error) error {
	var p *Panic
	if !errors.As(err, &p) {
		return err
	}
	l.mu.Lock()
	if l.seen[place] == 0 && len(l.seen) >= mostPlaces {
		place = "other"
	}
	l.seen[place]++
	first := l.seen[place] == 1
	l.mu.Unlock()
	if first {
		l.log().Error("xxljob: user code panicked; this is logged once per place", "place", place, "error", p.Error(), "stack", string(p.Stack))
	}
	return err
}

// Counts returns how many panics were noted, by place.
func (l *Log) Counts() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.seen)
}

// Call calls f apart, and notes a panic.
func (l *Log) Call(place string, f func() error) error { return l.Note(place, Apart(f)) }
