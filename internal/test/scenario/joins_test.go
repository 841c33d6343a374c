package scenario_test

// Jobs that run behind several, and cycles that nobody could refuse.

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// TestAJoinRunsOnceADay: over a week in which clocks are changed, with parents that run at local
// times, one of them at a time that is skipped, or comes twice.
func TestAJoinRunsOnceADay(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	stage.Must(t, err)
	for _, from := range []time.Time{time.Date(2000, 3, 23, 23, 50, 0, 0, berlin), time.Date(2000, 10, 26, 23, 50, 0, 0, berlin)} {
		t.Run(from.Month().String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(from))
				st := memory.New()
				f := startFailing(t, st, "a", atFirst, func(c *xxljob.Config) { c.Location = berlin })
				addJob(t, f, xxljob.Job{Name: "early", Schedule: xxljob.Cron("0 15 0 * * ?")})
				addJob(t, f, xxljob.Job{Name: "night!", Schedule: xxljob.Cron("0 30 2 * * ?"), Retries: 1, RetryBackoff: xxljob.Backoff{First: time.Minute}})
				below := addJob(t, f, xxljob.Job{Name: "below"})
				join := addJob(t, f, xxljob.Job{Name: "join", AfterKeys: []string{"app/early", "app/night!"}, Children: []int64{below.ID}})
				if join.AfterZone != "Europe/Berlin" {
					t.Errorf("the join goes by the clocks of %q", join.AfterZone)
				}
				time.Sleep(time.Until(from.AddDate(0, 0, 7)))
				for _, job := range []xxljob.Job{join, below} {
					runs := runsOf(t, st, job.ID)
					if len(runs) != 7 {
						t.Errorf("%s has run %d times in a week", job.Name, len(runs))
					}
					for i, r := range runs {
						want := time.Date(from.Year(), from.Month(), from.Day()+1+i, 0, 0, 0, 0, berlin)
						if r.State != xxljob.StateSucceeded || !r.Business.Equal(want) {
							t.Errorf("run %d of %s is %s (%s), for %v, want %v", i, job.Name, r.State, r.TriggerMsg, r.Business.In(berlin), want)
						}
					}
				}
				stage.Stop(t, f.Node)
			})
		})
	}
}

// TestAJoinThatExpires: the record says who is missing, and comes in time; what comes later is
// too late, and the next window is another matter.
func TestAJoinThatExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := startFailing(t, st, "a", atFirst)
		one, two := addJob(t, f, xxljob.Job{Name: "one"}), addJob(t, f, xxljob.Job{Name: "two"})
		join := addJob(t, f, xxljob.Job{Name: "join", After: []int64{one.ID}, AfterKeys: []string{"app/two"}, AfterTimeout: 90 * time.Minute})
		midnight := time.Now().UTC().Truncate(24 * time.Hour)
		began := time.Now()
		stage.Trigger(t, f, one)
		time.Sleep(89 * time.Minute)
		if runs := runsOf(t, st, join.ID); len(runs) != 0 {
			t.Fatalf("%d runs of the join before its time", len(runs))
		}
		time.Sleep(2 * time.Minute)
		runs := runsOf(t, st, join.ID)
		if len(runs) != 1 || runs[0].State != xxljob.StateSkipped || runs[0].Reason != xxljob.ReasonJoin {
			t.Fatalf("the join has the runs %+v, want a record", runs)
		}
		stage.RequireText(t, "the record", runs[0].TriggerMsg, "app/two")
		if late := runs[0].Ended.Sub(began) - 90*time.Minute; late < 0 || late > time.Second {
			t.Errorf("the window was closed %v after its time", late)
		}
		if !runs[0].Business.Equal(midnight) {
			t.Errorf("the record is for %v, want %v", runs[0].Business, midnight)
		}
		stage.Trigger(t, f, two)
		time.Sleep(time.Hour)
		if runs := runsOf(t, st, join.ID); len(runs) != 1 {
			t.Errorf("%d runs of the join after a success that came too late", len(runs))
		}
		time.Sleep(time.Until(midnight.AddDate(0, 0, 1)) + time.Minute)
		stage.Trigger(t, f, two)
		stage.Trigger(t, f, one)
		time.Sleep(time.Second)
		if runs := runsOf(t, st, join.ID); len(runs) != 2 || runs[1].State != xxljob.StateSucceeded {
			t.Errorf("the next day the join has the runs %+v", runs)
		}
		stage.Stop(t, f.Node)
	})
}

// blindLinks does not see who names whom: as a store that is read before somebody else saves.
type blindLinks struct{}

func (blindLinks) Links(context.Context) ([]xxljob.Job, error) { return nil, nil }

// TestACycleOfTwoSaves: what two save at once, and neither could refuse, comes to an end: where
// each is the child of the other, and where each runs behind the other.
func TestACycleOfTwoSaves(t *testing.T) {
	for name, saved := range map[string][2]xxljob.Job{
		"children": {{Name: "one", ChildKeys: []string{"app/two"}}, {Name: "two", ChildKeys: []string{"app/one"}}},
		"joins":    {{Name: "one", AfterKeys: []string{"app/two"}}, {Name: "two", AfterKeys: []string{"app/one"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				a := startFailing(t, bent.StoreOf(st, blindLinks{}), "a", atFirst)
				b := startFailing(t, bent.StoreOf(st, blindLinks{}), "b", atFirst)
				time.Sleep(time.Minute)
				one, two := addJob(t, a, saved[0]), addJob(t, b, saved[1])
				stage.Trigger(t, a, one)
				time.Sleep(time.Minute)
				count := requireEnds(t, st, name == "children", one, two)
				time.Sleep(time.Hour)
				if again := len(stage.AllRuns(t, st)); again != count {
					t.Errorf("%d runs an hour later, %d before", again, count)
				}
				stage.Stop(t, a.Node, b.Node)
			})
		})
	}
}

// requireEnds checks that jobs which lead to each other come to the bound of depth, where their
// successes are not of one window, and counts their runs.
func requireEnds(t *testing.T, st xxljob.Store, bound bool, jobs ...xxljob.Job) int {
	t.Helper()
	deepest, ran, skipped := 0, 0, 0
	for _, job := range jobs {
		for _, r := range runsOf(t, st, job.ID) {
			switch {
			case r.State == xxljob.StateSucceeded:
				ran++
				deepest = max(deepest, r.Depth)
			case r.State == xxljob.StateSkipped && r.Reason == xxljob.ReasonDepth && r.Depth == store.MostDepth+1:
				skipped++
			default:
				t.Errorf("run %d of %s is %s (%s) at depth %d", r.ID, job.Name, r.State, r.Reason, r.Depth)
			}
		}
	}
	// Where each runs behind the other, it does so once for a window: one, two, and one again.
	wantDeepest, wantRan, wantSkipped := 2, 3, 0
	if bound {
		wantDeepest, wantRan, wantSkipped = store.MostDepth, store.MostDepth+1, 1
	}
	if deepest != wantDeepest || ran != wantRan || skipped != wantSkipped {
		t.Errorf("%d runs down to depth %d and %d records, want %d, %d and %d", ran, deepest, skipped, wantRan, wantDeepest, wantSkipped)
	}
	return ran + skipped
}
