package xxljob_test

// Starts that a store makes one by one, and hundreds of them at once.

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
)

// oneByOne takes its time for each start of a broadcast and each refusal, as a database
// does, and gives up with the call.
type oneByOne struct{ *memory.Store }

func (s oneByOne) Start(ctx context.Context, starts []xxljob.Start) ([]xxljob.Started, error) {
	var takes time.Duration
	for _, st := range starts {
		if len(st.Targets) > 0 || st.State == xxljob.StateRefused {
			takes += 100 * time.Millisecond
		}
	}
	select {
	case <-time.After(takes):
		return s.Store.Start(ctx, starts)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestManyStartsApart has two nodes start some hundred broadcasts and refuse as many runs at
// once. No other run waits for them, no call takes too long, each part is run once, and
// neither a node that stops meanwhile nor a run that is killed changes that.
func TestManyStartsApart(t *testing.T) {
	for _, stops := range []bool{false, true} {
		t.Run(fmt.Sprint("a node stops ", stops), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j, parts := oneByOne{memory.New()}, &journal{}, &journal{}
				a, b := startNode(t, st, "a", j), startNode(t, st, "b", j)
				for _, n := range []*node{a, b} {
					must(t, n.Handle("part", func(_ context.Context, task *xxljob.Task) error { parts.note(n.name, task); return nil }))
				}
				time.Sleep(10 * time.Second)
				seconds := addSeconds(t, b, 20)
				var jobs []xxljob.Job
				for i := range 240 {
					job := xxljob.Job{Name: fmt.Sprint("part ", i), Handler: "part", Route: route.ShardingBroadcast}
					if i%2 == 1 {
						job = xxljob.Job{App: "nobody", Name: fmt.Sprint("refused ", i), Handler: "part"}
					}
					job, err := b.AddJob(t.Context(), job)
					must(t, err)
					jobs = append(jobs, job)
				}
				from := time.Now()
				time.Sleep(10*time.Second + 300*time.Millisecond)
				var runs []int64
				for _, job := range jobs {
					runs = append(runs, trigger(t, b, job))
				}
				time.Sleep(2 * time.Second)
				killed := runs[len(runs)-2]
				must(t, b.Kill(t.Context(), killed))
				if stops {
					stop(t, a)
				}
				for range 30 {
					time.Sleep(time.Second)
					if err := b.Ready(); err != nil {
						t.Error(err)
					}
				}
				to := time.Now()
				for i, id := range runs {
					run, err := st.Run(t.Context(), id)
					must(t, err)
					want := xxljob.StateSucceeded
					if i%2 == 1 {
						want = xxljob.StateRefused
					}
					if id == killed {
						want = xxljob.StateCancelled
					}
					if run.State != want {
						t.Errorf("run %d of job %d: %v, want %v", id, i, run.State, want)
					}
				}
				begun := map[string]int{}
				for _, s := range parts.all() {
					begun[fmt.Sprint(s.job, " ", s.shard)]++
				}
				for part, n := range begun {
					if n != 1 {
						t.Errorf("part %s was begun %d times", part, n)
					}
				}
				most := time.Second // twice as long as one batch takes
				if stops {
					most *= 2 // the node that stops sees one through
				}
				for _, s := range j.all() {
					if late := s.at.Sub(s.due); late > most {
						t.Errorf("run %d began %v late, want %v at most", s.run, late, most)
					}
				}
				time.Sleep(10 * time.Second)
				stop(t, b)
				if !stops {
					stop(t, a)
				}
				if got := auditSeconds(t, st, j, seconds, from, to); got != (audit{}) {
					t.Errorf("audit: %+v", got)
				}
			})
		})
	}
}
