package xxljob_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// reasons are those of an error of Ready.
func reasons(err error) []string {
	var not *xxljob.NotReadyError
	if errors.As(err, &not) {
		return not.Reasons
	}
	return nil
}

// TestPlacesOfAbandonedHandlersAreToldOf: handlers that ignore their context take all places of
// an app in time. Once its runs have waited for a LeaseTTL the node is not ready, and its log has
// the handlers, once; and again when it is over.
func TestPlacesOfAbandonedHandlersAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(stage.LogLines)
		s, err := xxljob.New(memory.New(), xxljob.Config{
			App: "app", Logger: slog.New(slog.NewTextHandler(log, nil)), Executor: executor.Config{Places: 3, Grace: 500 * time.Millisecond},
		})
		stage.Must(t, err)
		ends := make(chan struct{})
		stage.Must(t, s.Handle("deaf", func(context.Context, *xxljob.Task) error { <-ends; return nil }))
		stage.Must(t, s.Handle("good", func(context.Context, *xxljob.Task) error { return nil }))
		for _, key := range []string{"deaf", "good"} {
			_, err := s.EnsureJob(t.Context(), xxljob.Job{Key: key, Name: key, Handler: key, Timeout: time.Second, Schedule: xxljob.FixedRate(time.Second)})
			stage.Must(t, err)
		}
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(9 * time.Second)
		if n, err := s.Stats().PlacesHeld, s.Ready(); n > 2 || err != nil {
			t.Fatalf("with places left: %d held, %v", n, err)
		}
		time.Sleep(36 * time.Second)
		if n, got := s.Stats().PlacesHeld, reasons(s.Ready()); n != 3 || !slices.Equal(got, []string{"places"}) {
			t.Errorf("without places: %d held, not ready for %q", n, got)
		}
		if len(log.With("abandoned handlers hold places", "handlers=deaf")) != 1 {
			t.Errorf("log: %q", log.With())
		}
		close(ends)
		time.Sleep(20 * time.Second)
		if n, err := s.Stats().PlacesHeld, s.Ready(); n != 0 || err != nil {
			t.Errorf("when they have returned: %d held, %v", n, err)
		}
		if len(log.With("abandoned handlers do not keep runs waiting any more")) != 1 {
			t.Errorf("log: %q", log.With())
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// resultless is a store that takes no results, for as long as it is set.
type resultless struct {
	st *memory.Store
	on atomic.Bool
}

func (s *resultless) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	if s.on.Load() {
		return dst, errors.New("no results")
	}
	return s.st.Finish(ctx, dst, results)
}

// TestResultsThatAreNotStoredAreToldOf: a node whose results the store does not take for a
// LeaseTTL is not ready, whatever else the store does; a longer StoreAway counts.
func TestResultsThatAreNotStoredAreToldOf(t *testing.T) {
	for _, away := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			st := &resultless{st: memory.New()}
			s, err := xxljob.New(bent.AllOf(st.st, st), xxljob.Config{App: "app", Ready: xxljob.ReadyConfig{StoreAway: away}, Logger: slog.New(slog.DiscardHandler)})
			stage.Must(t, err)
			stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
			_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(time.Second)})
			stage.Must(t, err)
			stage.Must(t, s.Start(t.Context()))
			time.Sleep(10 * time.Second)
			st.on.Store(true)
			bound := max(away, 5*time.Second) // a LeaseTTL, by default
			time.Sleep(bound - time.Second)
			if err := s.Ready(); err != nil {
				t.Errorf("before the bound: %v", err)
			}
			time.Sleep(4 * time.Second)
			if got := reasons(s.Ready()); !slices.Equal(got, []string{"results"}) {
				t.Errorf("behind the bound it is not ready for %q", got)
			}
			st.on.Store(false)
			time.Sleep(10 * time.Second)
			if err := s.Ready(); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			stage.Must(t, s.Stop(t.Context()))
		})
	}
}
