package scenario_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// retaining is a store that is told what to drop.
type retaining struct {
	xxljob.Store
	mu     sync.Mutex
	before []time.Duration // guarded by mu: how long ago
	folds  int             // guarded by mu
}

func (s *retaining) DropRuns(_ context.Context, before time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = append(s.before, time.Since(before))
	return nil
}

func (s *retaining) FoldReports(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folds++
	return errors.New("not now")
}

// TestRetention: of several nodes one drops what is older than RunRetention, soon
// after its start and every hour, and adds up reports every five minutes, whatever comes of it.
func TestRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := &retaining{Store: memory.New()}
		var nodes []xxljob.Scheduler
		for _, name := range []string{"a", "b"} {
			s, err := xxljob.New(st, xxljob.Config{App: "app", Node: name, Logger: stage.QuietLog(), RunRetention: 48 * time.Hour})
			stage.Must(t, err)
			stage.Must(t, s.Start(t.Context()))
			nodes = append(nodes, s)
		}
		time.Sleep(2*time.Hour + 2*time.Minute)
		for _, s := range nodes {
			stage.Must(t, s.Stop(t.Context()))
		}
		if want := slices.Repeat([]time.Duration{48 * time.Hour}, 3); !slices.Equal(st.before, want) {
			t.Errorf("dropped what is older than %v, want %v", st.before, want)
		}
		if st.folds != 2*12+1 {
			t.Errorf("reports were added up %d times, want 25", st.folds)
		}
	})
}
