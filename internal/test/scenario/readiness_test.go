package scenario_test

// Whether a node is ready, by the thresholds of its Config.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// wantReasons checks why a node is not ready; without reasons it is to be ready.
func wantReasons(t *testing.T, n *stage.Node, when string, reasons ...string) {
	t.Helper()
	err := n.Ready()
	var not *xxljob.NotReadyError
	switch {
	case len(reasons) == 0 && err != nil:
		t.Errorf("%s: %v", when, err)
	case len(reasons) == 0:
	case !errors.Is(err, xxljob.ErrNotReady) || !errors.As(err, &not) || !slices.Equal(not.Reasons, reasons) || len(not.Errs) != len(reasons):
		t.Errorf("%s: %v, want %v", when, err, reasons)
	}
}

// TestReadyWhileTheStoreIsAway: a node with patience is ready until that is over, with a store
// that answers nobody; one without is not once its lease has run out; and both are again when
// the store is back.
func TestReadyWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]storetest.Fault{"errors": {Before: true, Err: errors.New("away")}, "late errors": {After: true, Delay: time.Second, Err: errors.New("away")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				a := stage.StartNode(t, st, "a", j, func(c *xxljob.Config) { c.Ready.StoreAway = time.Minute })
				b := stage.StartNode(t, st, "b", j)
				stage.AddSeconds(t, a, 5)
				time.Sleep(10 * time.Second)
				wantReasons(t, a, "at first")
				methods := []string{"Beat", "Claim", "Start", "Scan", "Planned", "Finish", "TakeShards", "RunsByID"}
				mendA, mendB := a.BreakDown(methods, fault), b.BreakDown(methods, fault)
				for range 55 {
					time.Sleep(time.Second)
					wantReasons(t, a, "while its patience lasts")
				}
				if err := b.Ready(); !errors.Is(err, xxljob.ErrNotReady) || !strings.Contains(err.Error(), "acknowledged a beat") {
					t.Errorf("without patience: %v", err)
				}
				time.Sleep(10 * time.Second)
				if err := a.Ready(); err == nil || !strings.Contains(err.Error(), "acknowledged a beat") {
					t.Errorf("when its patience is over: %v", err)
				}
				mendA()
				mendB()
				time.Sleep(20 * time.Second)
				wantReasons(t, a, "when the store is back")
				wantReasons(t, b, "when the store is back")
				stage.Stop(t, a, b)
				wantReasons(t, a, "once it is stopped", "stopped")
			})
		})
	}
}

// TestReadyWithABacklog: runs that wait for a place count, by their number and by the time of
// the oldest, and those that wait for their turn among their job's do not.
func TestReadyWithABacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) {
			c.App, c.Executor.Places = "app", 2
			c.Ready = xxljob.ReadyConfig{MaxWaiting: 2, MaxLate: 30 * time.Second}
		})
		stage.Must(t, a.Handle("slow", func(context.Context, *xxljob.Task) error { time.Sleep(time.Minute); return nil }))
		serial, err := a.AddJob(t.Context(), xxljob.Job{Name: "serial", Handler: "slow"})
		stage.Must(t, err)
		beside, err := a.AddJob(t.Context(), xxljob.Job{Name: "beside", Handler: "slow", Block: xxljob.BlockConcurrent})
		stage.Must(t, err)
		for range 5 {
			stage.Trigger(t, a, serial)
		}
		time.Sleep(40 * time.Second)
		wantReasons(t, a, "with four runs behind one of their job")
		for range 4 {
			stage.Trigger(t, a, beside)
		}
		time.Sleep(time.Second)
		wantReasons(t, a, "with three that wait for a place", "waiting")
		if err := a.Ready(); !strings.Contains(err.Error(), "3 due runs wait, Config.Ready.MaxWaiting is 2") {
			t.Error(err)
		}
		time.Sleep(31 * time.Second)
		wantReasons(t, a, "half a minute later", "waiting", "late")
		time.Sleep(20 * time.Minute)
		wantReasons(t, a, "when all is done")
		stage.Stop(t, a)
	})
}

// TestReadyWithAWrongClock: in either direction.
func TestReadyWithAWrongClock(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Minute, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			shifted := &shiftedStore{st: memory.New(), by: off}
			st := bent.StoreOf(shifted.st, shifted)
			a := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.Ready.MaxClockOffset = 30 * time.Second })
			b := stage.StartNode(t, st, "b", &stage.Journal{}, func(c *xxljob.Config) { c.Ready.MaxClockOffset = 2 * time.Minute })
			time.Sleep(10 * time.Second)
			wantReasons(t, a, off.String(), "clock")
			wantReasons(t, b, off.String())
			stage.Stop(t, a, b)
		})
	}
}

// shiftedStore has a clock of its own.
type shiftedStore struct {
	st xxljob.Store
	by time.Duration
}

func (s *shiftedStore) Now(context.Context) (time.Time, error) { return time.Now().Add(s.by), nil }

func (s *shiftedStore) Join(ctx context.Context, n xxljob.Node) (xxljob.View, error) {
	return s.shifted(s.st.Join(ctx, n))
}

func (s *shiftedStore) Beat(ctx context.Context, inc string, attached []store.Attachment) (xxljob.View, error) {
	return s.shifted(s.st.Beat(ctx, inc, attached))
}

func (s *shiftedStore) shifted(v xxljob.View, err error) (xxljob.View, error) {
	v.Now = time.Now().Add(s.by)
	return v, err
}

// TestReadyBeforeStart: without a beat there is no patience.
func TestReadyBeforeStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := xxljob.Config{App: "here", Logger: stage.QuietLog(), Ready: xxljob.ReadyConfig{StoreAway: time.Hour}}
		st := storetest.Wrap(memory.New())
		s, err := xxljob.New(st, cfg)
		stage.Must(t, err)
		n := &stage.Node{Scheduler: s}
		wantReasons(t, n, "before Start", "not-started")
		st.Inject("Join", storetest.Fault{Before: true, Err: errors.New("away")})
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(time.Second)
		wantReasons(t, n, "without a beat", "store-away")
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestReadyConfigIsChecked names each field and its bounds.
func TestReadyConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		ready xxljob.ReadyConfig
		field string
	}{
		{xxljob.ReadyConfig{StoreAway: time.Second}, "Ready.StoreAway"},
		{xxljob.ReadyConfig{StoreAway: 25 * time.Hour}, "Ready.StoreAway"},
		{xxljob.ReadyConfig{MaxWaiting: -1}, "Ready.MaxWaiting"},
		{xxljob.ReadyConfig{MaxLate: time.Millisecond}, "Ready.MaxLate"},
		{xxljob.ReadyConfig{MaxClockOffset: -time.Second}, "Ready.MaxClockOffset"},
	} {
		_, err := xxljob.New(memory.New(), xxljob.Config{Ready: c.ready})
		if faults := xxljob.FieldErrors(err); len(faults) != 1 || faults[0].Field != c.field || !strings.Contains(err.Error(), "want 0") {
			t.Errorf("%+v: %v", c.ready, err)
		}
	}
}
