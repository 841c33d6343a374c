package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// ErrInjected is the error of a fault that names no other.
var ErrInjected = errors.New("storetest: injected fault")

// Fault says what goes wrong in a call. Its parts are combined in the order of
// the fields; of several faults that meet in one call, each has its turn.
type Fault struct {
	// Delay lets time pass before the call. It ends with the caller's ctx.
	Delay time.Duration
	// Hang, when not nil, holds the call back until it is closed or the caller's
	// ctx ends.
	Hang <-chan struct{}
	// Before fails the call before it reaches the store: nothing happens.
	Before bool
	// Partial passes on only the first Keep members of the batch, and fails the
	// call after they took effect. It is for Claim, Start, Finish, Settle and
	// Take; elsewhere it is After.
	Partial bool
	Keep    int
	// After fails the call after it took effect: the caller cannot know. The
	// answer comes beside the error, so that a caller who uses it is found.
	After bool
	// Late lets time pass between the call's effect and its answer. Where the caller's
	// ctx ends meanwhile, that is the answer.
	Late time.Duration
	// Poison fails the call before it reaches the store, with store.ErrRefused, where it is true of
	// a member of the batch: a store.Plan of Claim, Start, Result of Finish, Verdict of Settle,
	// Dispatch, Progress, Registration, AlarmTold, AlarmDone or JobTold of MarkAlarms; the id of a run
	// that is to be taken; a store.Attachment of Beat; a store.AlarmRule of KeepRules, a
	// store.TroubleNote of NoteTroubles, a store.Served of NoteServed.
	Poison func(member any) bool
	// Err replaces ErrInjected.
	Err error

	// Calls limits the fault to the next calls that it meets; zero means until
	// it is removed.
	Calls int
	// Rate is the probability with which a call meets the fault; zero means
	// always. The numbers come from the seed of the Faults.
	Rate float64
}

// All stands for every method in Faults.Inject.
const All = "*"

// Faults wraps a store and fails on demand. It is safe for concurrent use.
// What it does with time it does with timers and channels, so that it works in
// a bubble of testing/synctest.
type Faults struct {
	store   store.Store
	seed    uint64
	methods []string // that faults may be for

	mu     sync.Mutex
	rand   *rand.Rand
	rules  []*rule
	calls  map[string]int
	paused chan struct{} // closed by Resume; nil while not paused
	deaf   bool          // a paused call ignores its ctx
	watch  func(context.Context, string)
}

var _ store.Store = (*Faults)(nil)

type rule struct {
	method string
	fault  Fault
	left   int // calls left, when fault.Calls is not zero
}

// Wrap returns a wrapper of s that does nothing yet, with seed 1.
func Wrap(s store.Store) *Faults { return WrapSeed(s, 1) }

// WrapSeed is Wrap with the seed for faults that have a Rate.
func WrapSeed(s store.Store, seed uint64) *Faults {
	return &Faults{store: s, seed: seed, methods: methods(), rand: rand.New(rand.NewPCG(seed, seed)), calls: map[string]int{}}
}

// OutlivesProcess is that of the store.
func (f *Faults) OutlivesProcess() bool { return store.Outlives(f.store) }

// Seed returns the seed, for the message of a test that fails.
func (f *Faults) Seed() uint64 { return f.seed }

// Inject arms a fault for calls of the method, "Claim" for instance, or All,
// and returns what removes it. It panics when the store has no such method, for
// a fault that never strikes would let a test pass.
func (f *Faults) Inject(method string, fault Fault) (remove func()) {
	if method != All && !slices.Contains(f.methods, method) {
		panic(fmt.Sprintf("storetest: the store has no method %q that can fail", method))
	}
	r := &rule{method: method, fault: fault, left: fault.Calls}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, r)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.rules = slices.DeleteFunc(f.rules, func(x *rule) bool { return x == r })
	}
}

// Clear removes all faults. It does not end a pause.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Pause holds back every method until Resume, as when the process stands
// still: calls that begin, and the answers of calls under way. With ignoreCtx
// the end of a ctx does not free them; otherwise it frees those that have not
// reached the store, with the error of the ctx. Watch and Poll go on.
func (f *Faults) Pause(ignoreCtx bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paused == nil {
		f.paused = make(chan struct{})
	}
	f.deaf = ignoreCtx
}

// Resume ends a pause.
func (f *Faults) Resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paused != nil {
		close(f.paused)
		f.paused = nil
	}
}

// Observe has f tell of each call, with its ctx and the name of the method, when it
// begins. Watch and Poll are not told of. The last observer counts; it is called by many
// goroutines at once.
func (f *Faults) Observe(watch func(ctx context.Context, method string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch = watch
}

func (f *Faults) tell(ctx context.Context, method string) {
	f.mu.Lock()
	watch := f.watch
	f.mu.Unlock()
	if watch != nil {
		watch(ctx, method)
	}
}

// Calls returns how often the method was called, or with All how often any
// was. A call counts when it begins, whatever becomes of it.
func (f *Faults) Calls(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if method != All {
		return f.calls[method]
	}
	sum := 0
	for _, n := range f.calls {
		sum += n
	}
	return sum
}

// count counts a call that no fault meets.
func (f *Faults) count(method string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[method]++
}

// begin counts the call and returns the faults that it meets.
func (f *Faults) begin(method string) []Fault {
	f.count(method)
	f.mu.Lock()
	defer f.mu.Unlock()
	var met []Fault
	for _, r := range f.rules {
		if r.method != All && r.method != method {
			continue
		}
		if r.fault.Rate > 0 && f.rand.Float64() >= r.fault.Rate {
			continue
		}
		if r.fault.Calls > 0 {
			if r.left == 0 {
				continue
			}
			r.left--
		}
		met = append(met, r.fault)
	}
	return met
}

// gate waits while the store is paused.
func (f *Faults) gate(ctx context.Context) error {
	for {
		f.mu.Lock()
		paused, deaf := f.paused, f.deaf
		f.mu.Unlock()
		if paused == nil {
			return nil
		}
		done := ctx.Done()
		if deaf {
			done = nil
		}
		select {
		case <-paused:
		case <-done:
			return ctx.Err()
		}
	}
}

// before applies the part of a fault that comes before the call.
func (x Fault) before(ctx context.Context) error {
	if err := pass(ctx, x.Delay); err != nil {
		return err
	}
	if x.Hang != nil {
		select {
		case <-x.Hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if x.Before {
		return x.error("before the call")
	}
	return nil
}

// pass lets time pass, until ctx ends.
func pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x Fault) error(when string) error {
	if x.Err != nil {
		return x.Err
	}
	return fmt.Errorf("%w %s", ErrInjected, when)
}

// call makes one call of the store under the faults that it meets.
func call[T any](f *Faults, ctx context.Context, method string, do func() (T, error)) (T, error) {
	return batch(f, ctx, method, nil, func([]struct{}) (T, error) { return do() })
}

// batch is call for a method whose argument may be passed on in part.
func batch[T, E any](f *Faults, ctx context.Context, method string, items []E, do func([]E) (T, error)) (T, error) {
	var none T
	f.tell(ctx, method)
	met := f.begin(method)
	if err := f.gate(ctx); err != nil {
		return none, err
	}
	var after error
	for _, fault := range met {
		if err := fault.before(ctx); err != nil {
			return none, err
		}
		if fault.Poison != nil && slices.ContainsFunc(items, func(item E) bool { return fault.Poison(item) }) {
			return none, fmt.Errorf("%w: %w", store.ErrRefused, fault.error("for a member of the batch"))
		}
		if fault.Partial {
			items = items[:min(fault.Keep, len(items))]
		}
		if fault.Partial || fault.After {
			after = errors.Join(after, fault.error("after the call"))
		}
	}
	answer, err := do(items)
	for _, fault := range met {
		if late := pass(ctx, fault.Late); late != nil {
			after = errors.Join(after, late)
		}
	}
	_ = f.gate(ctx) // the answer waits too; the end of ctx takes nothing back
	if err == nil {
		err = after
	}
	return answer, err
}
