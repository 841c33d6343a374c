package scenario_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// TestEachInstantOnceWithABacklog: whatever room is left for runs that wait, each instant
// is in one record, and no record is empty.
func TestEachInstantOnceWithABacklog(t *testing.T) {
	t.Parallel()
	for most := 1; most <= 12; most++ {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			n := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.Limits.MaxPlanned = most })
			stage.Must(t, n.Handle("slow", func(context.Context, *xxljob.Task) error { time.Sleep(4300 * time.Millisecond); return nil }))
			job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "slow", Schedule: xxljob.Cron("* * * * * ?")})
			stage.Must(t, err)
			time.Sleep(2 * time.Minute)
			records := map[int64]int{}
			for _, r := range stage.AllOf(t, st, xxljob.RunFilter{JobID: job.ID}) {
				first, last := r.Scheduled, r.Scheduled
				if r.State == xxljob.StateSkipped {
					first, last = r.First, r.Last
				}
				if first.IsZero() || last.Before(first) {
					t.Errorf("MaxPlanned %d: an empty record, run %d: %v to %v", most, r.ID, first, last)
				}
				for at := first; !at.After(last); at = at.Add(time.Second) {
					records[at.Unix()]++
				}
			}
			for at, n := range records {
				if n != 1 {
					t.Errorf("MaxPlanned %d: the instant %v is in %d records", most, time.Unix(at, 0).UTC(), n)
				}
			}
			stage.StopShort(n)
		})
	}
}
