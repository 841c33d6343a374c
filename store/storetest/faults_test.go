package storetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/storetest"
)

// counting is a store of which only Sweep is used.
type counting struct {
	store.Store
	sweeps int
}

func (c *counting) Sweep(context.Context, []store.Shard) error { c.sweeps++; return nil }

func TestFaultsCounted(t *testing.T) {
	s := &counting{}
	f := storetest.Wrap(s)
	f.Inject("Sweep", storetest.Fault{Before: true, Calls: 2})
	mine := errors.New("mine")
	remove := f.Inject(storetest.All, storetest.Fault{After: true, Err: mine})
	sweep := func(want error, reached int) {
		t.Helper()
		if err := f.Sweep(t.Context(), nil); !errors.Is(err, want) || s.sweeps != reached {
			t.Errorf("Sweep: %v after %d calls of the store, want %v after %d", err, s.sweeps, want, reached)
		}
	}
	sweep(storetest.ErrInjected, 0)
	sweep(storetest.ErrInjected, 0)
	sweep(mine, 1)
	remove()
	sweep(nil, 2)
	if f.Calls("Sweep") != 4 || f.Calls(storetest.All) != 4 || f.Calls("Claim") != 0 {
		t.Errorf("calls: %d of Sweep, %d of all, %d of Claim", f.Calls("Sweep"), f.Calls(storetest.All), f.Calls("Claim"))
	}
}

func TestFaultsObserved(t *testing.T) {
	type key struct{}
	f := storetest.Wrap(&counting{})
	var seen []string
	f.Observe(func(ctx context.Context, method string) { seen = append(seen, method+ctx.Value(key{}).(string)) })
	f.Inject("Sweep", storetest.Fault{Before: true, Calls: 1})
	for _, v := range []string{"1", "2"} {
		f.Sweep(context.WithValue(t.Context(), key{}, v), nil)
	}
	if len(seen) != 2 || seen[0] != "Sweep1" || seen[1] != "Sweep2" {
		t.Errorf("observed %v", seen)
	}
}

func TestFaultsUnknownMethodPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a fault for a method that is not there was armed")
		}
	}()
	storetest.Wrap(nil).Inject("Sweeep", storetest.Fault{Before: true})
}

func TestFaultsRateFollowsTheSeed(t *testing.T) {
	count := func(seed uint64) (failed []int) {
		f := storetest.WrapSeed(&counting{}, seed)
		f.Inject("Sweep", storetest.Fault{Before: true, Rate: 0.5})
		for i := range 200 {
			if f.Sweep(t.Context(), nil) != nil {
				failed = append(failed, i)
			}
		}
		return failed
	}
	one, again := count(7), count(7)
	if len(one) < 60 || len(one) > 140 || len(one) != len(again) {
		t.Errorf("%d and %d of 200 calls failed", len(one), len(again))
	}
	for i := range one {
		if one[i] != again[i] {
			t.Fatalf("the same seed gave other calls: %v, %v", one, again)
		}
	}
}

func TestFaultsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.Wrap(&counting{})
		f.Inject("Sweep", storetest.Fault{Delay: time.Minute})
		begin := time.Now()
		if err := f.Sweep(t.Context(), nil); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("Sweep: %v after %v, want a minute", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		if err := f.Sweep(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("Sweep: %v after %v, want the end of its ctx after a second", err, time.Since(begin))
		}
	})
}

func TestFaultsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.Wrap(&counting{})
		release := make(chan struct{})
		f.Inject("Sweep", storetest.Fault{Hang: release})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Sweep(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a hanging Sweep: %v, want the end of its ctx", err)
		}
		time.AfterFunc(time.Hour, func() { close(release) })
		if err := f.Sweep(t.Context(), nil); err != nil {
			t.Errorf("a released Sweep: %v", err)
		}
	})
}

func TestFaultsPause(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &counting{}
			f := storetest.Wrap(s)
			f.Pause(deaf)
			time.AfterFunc(time.Minute, f.Resume)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begin := time.Now()
			err := f.Sweep(ctx, nil)
			took := time.Since(begin)
			if deaf && (err != nil || took != time.Minute || s.sweeps != 1) {
				t.Errorf("a paused Sweep that ignores its ctx: %v after %v, %d calls of the store", err, took, s.sweeps)
			}
			if !deaf && (!errors.Is(err, context.DeadlineExceeded) || took != time.Second || s.sweeps != 0) {
				t.Errorf("a paused Sweep: %v after %v, %d calls of the store", err, took, s.sweeps)
			}
			time.Sleep(time.Hour)
		})
	}
}

// pausing is paused while a call is under way.
type pausing struct {
	counting
	faults *storetest.Faults
}

func (p *pausing) Sweep(ctx context.Context, shards []store.Shard) error {
	p.faults.Pause(true)
	return p.counting.Sweep(ctx, shards)
}

func TestFaultsPauseHoldsBackAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &pausing{}
		s.faults = storetest.Wrap(s)
		time.AfterFunc(time.Minute, s.faults.Resume)
		begin := time.Now()
		if err := s.faults.Sweep(t.Context(), nil); err != nil || time.Since(begin) != time.Minute || s.sweeps != 1 {
			t.Errorf("a Sweep under way: %v after %v, %d calls of the store", err, time.Since(begin), s.sweeps)
		}
	})
}
