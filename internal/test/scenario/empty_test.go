package scenario_test

import (
	"context"
	"errors"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// TestEmptyStore: every call is valid before Start, also the first one on a new
// store: what is not there is ErrNotFound. RemoveJob, RemoveGroup and Kill do not
// fix the number of shards first, as the store wants it ("SetShards comes before
// the first write").
func TestEmptyStore(t *testing.T) {
	type sched = xxljob.Scheduler
	for name, call := range map[string]func(ctx context.Context, s sched) error{
		"UpdateJob": func(ctx context.Context, s sched) error {
			j := stage.GoodJob()
			j.ID = 1
			_, err := s.UpdateJob(ctx, j)
			return err
		},
		"RemoveJob":   func(ctx context.Context, s sched) error { return s.RemoveJob(ctx, 1) },
		"StartJob":    func(ctx context.Context, s sched) error { return s.StartJob(ctx, 1) },
		"StopJob":     func(ctx context.Context, s sched) error { return s.StopJob(ctx, 1) },
		"RemoveGroup": func(ctx context.Context, s sched) error { return s.RemoveGroup(ctx, "app") },
		"Trigger":     func(ctx context.Context, s sched) error { _, err := s.Trigger(ctx, 1, xxljob.Trigger{}); return err },
		"Wait":        func(ctx context.Context, s sched) error { _, err := s.Wait(ctx, 1); return err },
		"Kill":        func(ctx context.Context, s sched) error { return s.Kill(ctx, 1) },
	} {
		s, err := xxljob.New(memory.New(), xxljob.Config{App: "app"})
		stage.Must(t, err)
		if err := call(t.Context(), s); !errors.Is(err, xxljob.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		stage.Must(t, s.Stop(t.Context()))
	}
}
