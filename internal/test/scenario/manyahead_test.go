package scenario_test

// Many jobs and triggers, each due once at a random second: the indexes of the memory store are
// filled and emptied in any order, and nothing may be found late.

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

func TestManyThatAreDueOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a thousand jobs that are due at random; leave out -short")
	}
	const jobs, seed = 1_000, 1
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, seed))
		within := func(hours int) time.Time { return time.Now().Add(time.Duration(60+rnd.IntN(hours*3600)) * time.Second) }
		st := memory.New()
		n := stage.StartNode(t, st, "a", &stage.Journal{})
		list := make([]xxljob.Job, jobs)
		for i := range list {
			list[i] = xxljob.Job{Key: strconv.Itoa(i), Name: strconv.Itoa(i), Handler: "work", Schedule: xxljob.At(within(12))}
		}
		_, err := n.EnsureJobs(t.Context(), "", list, xxljob.EnsureOptions{})
		stage.Must(t, err)
		for i := range 4 * jobs {
			_, err := n.TriggerJob(t.Context(), "", strconv.Itoa(i%jobs), xxljob.Trigger{At: within(14)})
			stage.Must(t, err)
		}
		time.Sleep(15 * time.Hour)
		runs := stage.AllRuns(t, st)
		for _, r := range runs {
			if r.State != xxljob.StateSucceeded || r.Started.Sub(r.Scheduled) > time.Second {
				t.Errorf("seed %d: run %d, due at %v, is %v and was started at %v", seed, r.ID, r.Scheduled, r.State, r.Started)
			}
		}
		if len(runs) != 5*jobs {
			t.Errorf("%d runs, want %d", len(runs), 5*jobs)
		}
		stage.Stop(t, n)
	})
}
