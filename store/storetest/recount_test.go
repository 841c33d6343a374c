package storetest_test

import (
	"context"
	"testing"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/store/storetest/internal/own"
)

// uncounted is a store in memory whose reports miss what others count.
type uncounted struct {
	*memory.Store
	miss func(*store.Report)
}

func (u uncounted) Reports(ctx context.Context, q store.ReportQuery) (store.ReportsFound, error) {
	found, err := u.Store.Reports(ctx, q)
	for i := range found.Reports {
		u.miss(&found.Reports[i])
	}
	return found, err
}

// TestRecount: reports that are not equal to a count of the runs are found.
func TestRecount(t *testing.T) {
	s := memory.New()
	if err := s.SetShards(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	job, err := s.AddJob(t.Context(), store.Job{App: "app", Name: "n", Schedule: schedule.Manual(), GlueType: store.GlueBean}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		run, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
		if err == nil {
			_, err = s.Kill(t.Context(), run.ID, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		miss  func(*store.Report)
		wrong int
	}{
		"nothing":   {func(*store.Report) {}, 0},
		"an end":    {func(r *store.Report) { r.Ended[store.StateCancelled]-- }, 1},
		"a time":    {func(r *store.Report) { r.Lateness.Observe(0) }, 1},
		"a quarter": {func(r *store.Report) { r.From = r.From.Add(store.Quarter) }, 1},
	} {
		if found := storetest.Recount(own.Tests{}, t, uncounted{s, c.miss}); len(found) != c.wrong {
			t.Errorf("reports that miss %s: %d faults %q, want %d", what, len(found), found, c.wrong)
		}
	}
}
