package scenario_test

// Records of instants that were not run: who hears of them.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// TestEachRecordIsToldByALoneNode: whatever the reason, a record has a line in the log with app, key, run
// and reason, and is told to RunSkipped, but for that of an edit.
func TestEachRecordIsToldByALoneNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, log := memory.New(), &stage.LogLines{}
		var mu sync.Mutex
		told := map[string][]string{}
		n := stage.StartNode(t, st, "a", &stage.Journal{}, log.LogTo, func(c *xxljob.Config) {
			c.Limits.MaxPlanned = 1
			c.Hooks.RunSkipped = func(r xxljob.Run) {
				mu.Lock()
				defer mu.Unlock()
				told[r.JobKey] = append(told[r.JobKey], r.Reason)
			}
		})
		stage.Must(t, n.Handle("slow", func(context.Context, *xxljob.Task) error { time.Sleep(30 * time.Second); return nil }))
		add := func(j xxljob.Job) xxljob.Job {
			j.Name = j.Key
			if j.Handler == "" {
				j.Handler = "work"
			}
			added, err := n.AddJob(t.Context(), j)
			stage.Must(t, err)
			return added
		}
		_, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: "misfire", Name: "misfire", Handler: "work", GlueType: "BEAN", Route: "FIRST", Block: xxljob.BlockSerial,
			Schedule: xxljob.FixedRate(time.Hour), Misfire: xxljob.MisfireDoNothing, Next: time.Now().Add(-time.Minute)}, nil)
		stage.Must(t, err)
		add(xxljob.Job{Key: "backlog", Handler: "slow", Schedule: xxljob.FixedRate(time.Second)})
		depth := add(xxljob.Job{Key: "depth"})
		_, err = st.EditJob(t.Context(), depth.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) { // a scheduler refuses it
			j.ChildKeys = []string{"app/depth"}
			return false, nil
		}})
		stage.Must(t, err)
		stage.Trigger(t, n, depth)
		one := add(xxljob.Job{Key: "one"})
		add(xxljob.Job{Key: "two"})
		add(xxljob.Job{Key: "join", AfterKeys: []string{"app/one", "app/two"}, AfterTimeout: time.Minute})
		stage.Trigger(t, n, one)
		edit := add(xxljob.Job{App: "far", Key: "edit", Schedule: xxljob.FixedRate(time.Minute), OnNoExecutor: xxljob.OnNoExecutorWait})
		time.Sleep(5 * time.Minute)
		stage.Must(t, n.StopJob(t.Context(), edit.ID))
		time.Sleep(time.Second)
		synctest.Wait()
		mu.Lock()
		for _, reason := range []string{store.ReasonMisfire, store.ReasonBacklog, store.ReasonDepth, store.ReasonJoin, store.ReasonEdit} {
			app := "app"
			if reason == store.ReasonEdit {
				app = "far"
			}
			runs, err := st.Runs(t.Context(), xxljob.RunFilter{App: app, States: []xxljob.State{xxljob.StateSkipped}, Limit: 1000})
			stage.Must(t, err)
			runs = slices.DeleteFunc(runs, func(r xxljob.Run) bool { return r.Reason != reason })
			if len(runs) == 0 {
				t.Errorf("%s: there is no record", reason)
				continue
			}
			lines := 1
			if reason == store.ReasonBacklog {
				lines = 5 // one a minute
			}
			first := fmt.Sprint("run=", runs[len(runs)-1].ID, " ")
			if got := log.With(`msg="xxljob: instants were skipped"`, "level=WARN", "app="+app+" ", "key="+reason+" ", "reason="+reason+" "); len(got) != lines || len(log.With("instants were skipped", first)) != 1 {
				t.Errorf("%s: the log has %q, want %d lines, the first with %s", reason, got, lines, first)
			}
			want := slices.Repeat([]string{reason}, len(runs))
			if reason == store.ReasonEdit {
				want = nil
			}
			if !slices.Equal(told[reason], want) {
				t.Errorf("%s: RunSkipped was told %q, want %q", reason, told[reason], want)
			}
		}
		mu.Unlock()
		stage.Stop(t, n)
	})
}
