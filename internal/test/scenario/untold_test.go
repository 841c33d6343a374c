package scenario_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestStalledDuties: that due jobs cannot be read, or that what is to become a run does not, is told
// within the bound of all waits, also where Ready is patient, and is over when it is.
func TestStalledDuties(t *testing.T) {
	t.Parallel()
	for method, what := range map[string]string{"Scan": "scanning for due jobs", "MoveAhead": "moving runs", "PayOwed": "what follows a success"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) { c.Ready.StoreAway = time.Hour })
				first, err := a.AddJob(t.Context(), xxljob.Job{App: "app", Name: "first", Handler: "work", Schedule: xxljob.FixedRate(time.Second)})
				stage.Must(t, err)
				_, err = a.AddJob(t.Context(), xxljob.Job{App: "app", Name: "second", Handler: "work", After: []int64{first.ID}})
				stage.Must(t, err)
				time.Sleep(5 * time.Second)
				remove := a.Faults.Inject(method, storetest.Fault{Before: true})
				_, err = a.Trigger(t.Context(), first.ID, xxljob.Trigger{At: time.Now().AddDate(0, 1, 0)})
				stage.Must(t, err)
				time.Sleep(20 * time.Second)
				if all := a.Troubles(); len(all) != 1 || all[0].Cause != xxljob.TroubleStuckRuns || !strings.Contains(all[0].Detail, what) || !strings.Contains(all[0].Seen.String(), what) || all[0].Seen.For < 10*time.Second || all[0].Seen.Said == "" {
					t.Errorf("troubles %v, ready %v", all, a.Ready())
				}
				remove()
				time.Sleep(30 * time.Second)
				if all := a.Troubles(); len(all) > 0 {
					t.Errorf("then troubles %v", all)
				}
				stage.Stop(t, a)
			})
		})
	}
}
