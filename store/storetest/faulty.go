package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// faultCases drives each method through the wrapper: an ended ctx and an error
// before the call change nothing, an error after it leaves the whole effect.
func faultCases() []testCase {
	cases := []testCase{{"EveryMethodHasACase", everyMethodHasACase}}
	for _, op := range operations() {
		cases = append(cases, testCase{op.method, op.check})
	}
	for _, b := range batches() {
		cases = append(cases, testCase{"PartOf" + b.method, b.check})
	}
	return cases
}

// operation is one call of a method, with a way to see that it took effect.
type operation struct {
	method string
	// prepare leads up to the call. done reports whether the whole effect of the
	// call can be read back; it is nil for a method that only reads.
	prepare func(o *owner) (call func(context.Context, store.Store) error, done func() bool)
}

func everyMethodHasACase(e *env) {
	var have []string
	for _, op := range operations() {
		have = append(have, op.method)
	}
	slices.Sort(have)
	want(e, "methods with a case", have, methods())
}

func (op operation) check(e *env) {
	o := e.owner("a")
	call, done := op.prepare(o)
	f := Wrap(e.Store)
	before := e.snapshot()
	unchanged := func(what string) {
		e.Helper()
		want(e, "state after "+what, e.snapshot(), before)
		e.check(done == nil || !done(), "%s: the call took effect", what)
	}

	cancelled, cancel := context.WithCancel(e.ctx)
	cancel()
	e.wantErr("a cancelled ctx", call(cancelled, e.Store), context.Canceled)
	unchanged("a call with a cancelled ctx")
	var none context.Context
	e.check(isError(func() error { return call(none, e.Store) }), "a nil ctx is no error")
	unchanged("a call with a nil ctx")
	late, cancel := context.WithDeadline(e.ctx, time.Now().Add(-time.Hour))
	defer cancel()
	e.wantErr("a ctx past its deadline", call(late, e.Store), context.DeadlineExceeded)
	unchanged("a call with a ctx past its deadline")

	f.Inject(op.method, Fault{Before: true, Calls: 1})
	e.wantErr("an error before the call", call(e.ctx, f), ErrInjected)
	unchanged("an error before the call")

	f.Inject(op.method, Fault{After: true, Calls: 1})
	e.wantErr("an error after the call", call(e.ctx, f), ErrInjected)
	if done == nil {
		want(e, "state after a read", e.snapshot(), before)
	} else {
		e.check(done(), "an error after the call: the call did not take effect as a whole; state now:\n%s", e.snapshot())
	}
	want(e, "calls counted", f.Calls(op.method), 2)
}

// isError reports whether a call returns, and with an error.
func isError(call func() error) (is bool) {
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	return call() != nil
}

// batched is a call with a batch of three.
type batched struct {
	method string
	// prepare returns the call and a count of the members that took effect.
	prepare func(o *owner) (call func(store.Store) error, count func() int)
}

func (b batched) check(e *env) {
	o := e.owner("a")
	call, count := b.prepare(o)
	f := Wrap(e.Store)
	want(e, "members in effect at first", count(), 0)
	for keep := range 3 {
		f.Inject(b.method, Fault{Partial: true, Keep: keep, Calls: 1})
		e.wantErr("a partial batch", call(f), ErrInjected)
		want(e, fmt.Sprintf("members in effect after %d of 3 were passed on", keep), count(), keep)
	}
	e.must(call(f))
	want(e, "members in effect after the whole batch", count(), 3)
	e.must(call(f))
	want(e, "members in effect after the whole batch again", count(), 3)
}

func batches() []batched {
	three := func(do func() store.Run) []store.Run { return []store.Run{do(), do(), do()} }
	state := func(o *owner, runs []store.Run, s store.State) func() int {
		return func() (n int) {
			for _, r := range runs {
				if o.mustRun(r.ID).State == s {
					n++
				}
			}
			return n
		}
	}
	addresses := []store.Registration{registered("app", "http://a"), registered("app", "http://b"), registered("app", "http://c")}
	return []batched{
		{"Claim", func(o *owner) (func(store.Store) error, func() int) {
			var plans []store.Plan
			for range 3 {
				plans = append(plans, o.plan(o.newJob(), o.now))
			}
			return func(s store.Store) error { _, err := s.Claim(o.ctx, nil, plans); return err },
				func() int { return len(o.mustRuns(store.RunFilter{})) }
		}},
		{"Start", func(o *owner) (func(store.Store) error, func() int) {
			runs := three(func() store.Run { return o.planned(o.newJob()) })
			starts := []store.Start{o.startOf(runs[0]), o.startOf(runs[1]), o.startOf(runs[2])}
			return func(s store.Store) error { _, err := s.Start(o.ctx, nil, starts); return err }, state(o, runs, store.StateStarted)
		}},
		{"Finish", func(o *owner) (func(store.Store) error, func() int) {
			runs := three(func() store.Run { return o.running() })
			results := []store.Result{success(runs[0]), success(runs[1]), success(runs[2])}
			return func(s store.Store) error { _, err := s.Finish(o.ctx, nil, results); return err }, state(o, runs, store.StateSucceeded)
		}},
		{"Settle", func(o *owner) (func(store.Store) error, func() int) {
			runs := three(o.handedOver)
			verdicts := []store.Verdict{o.verdict(runs[0], store.StateLost), o.verdict(runs[1], store.StateLost), o.verdict(runs[2], store.StateLost)}
			return func(s store.Store) error { _, err := s.Settle(o.ctx, verdicts); return err }, state(o, runs, store.StateLost)
		}},
		{"Take", func(o *owner) (func(store.Store) error, func() int) {
			runs := three(o.handedOver)
			return func(s store.Store) error { _, err := s.Take(o.ctx, "b", ids(runs)); return err },
				func() int { return 3 - len(o.mustInbox("b").Runs) }
		}},
		{"Dispatched", func(o *owner) (func(store.Store) error, func() int) {
			runs := three(func() store.Run { return o.running(to(remote)) })
			list := []store.Dispatch{accepted(runs[0]), accepted(runs[1]), accepted(runs[2])}
			return func(s store.Store) error { _, err := s.Dispatched(o.ctx, list); return err }, state(o, runs, store.StateDispatched)
		}},
		{"SetProgress", func(o *owner) (func(store.Store) error, func() int) {
			runs := three(func() store.Run { return o.running() })
			list := []store.Progress{progressOf(runs[0], 1, ""), progressOf(runs[1], 1, ""), progressOf(runs[2], 1, "")}
			return func(s store.Store) error { return s.SetProgress(o.ctx, list) }, func() (n int) {
				for _, r := range runs {
					n += o.mustRun(r.ID).Progress
				}
				return n
			}
		}},
		{"PutAddresses", func(o *owner) (func(store.Store) error, func() int) {
			return func(s store.Store) error { return s.PutAddresses(o.ctx, addresses) },
				func() int { return len(o.mustAddresses("app", time.Hour)) }
		}},
		{"DropAddresses", func(o *owner) (func(store.Store) error, func() int) {
			o.put(addresses...)
			return func(s store.Store) error { return s.DropAddresses(o.ctx, addresses) },
				func() int { return 3 - len(o.mustAddresses("app", time.Hour)) }
		}},
	}
}

// absent reports that something is not there.
func absent(err error) bool { return errors.Is(err, store.ErrNotFound) }
