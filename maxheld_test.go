package xxljob_test

// How many planned runs a node holds in memory.

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// TestMoreRunsThanHeld plans more runs of one app than a node holds in memory.
// Those that are far come first, and make room for nearer ones: all run on time,
// and at no time are more held than that bound and a page.
func TestMoreRunsThanHeld(t *testing.T) {
	if testing.Short() {
		t.Skip("it plans and runs tens of thousands of jobs; leave out -short")
	}
	const maxHeld = 2 * xxljob.ScanPage // the least that it may be
	const far, near = 9 * maxHeld / 10, 4 * maxHeld / 10
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.PreRead, c.Limits.MaxHeld = 30*time.Second, maxHeld })
		var ran, late atomic.Int64
		stage.Must(t, n.Handle("count", func(_ context.Context, task *xxljob.Task) error {
			ran.Add(1)
			if !time.Now().Equal(task.ScheduledAt) {
				late.Add(1)
			}
			return nil
		}))
		synctest.Wait() // it has set the store up
		began := time.Now()
		add := func(jobs int, from time.Duration) {
			for i := range jobs {
				at := began.Add(from + time.Duration(i%100)*50*time.Millisecond)
				_, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: fmt.Sprint(from, i), Name: "job", Handler: "count", Route: "NEAREST",
					Block: "SERIAL_EXECUTION", GlueType: "BEAN", Misfire: "DO_NOTHING", Schedule: xxljob.At(at), Next: at}, nil)
				stage.Must(t, err)
			}
			synctest.Wait() // all are planned
		}
		most, bounded := 0, false
		look := func() {
			held, hasHorizon := xxljob.Held(n.Scheduler, "app")
			most, bounded = max(most, held), bounded || hasHorizon
		}
		before := stage.Heap()
		add(far, 15*time.Second)
		look()
		add(near, 5*time.Second)
		look()
		t.Logf("heap while %d runs are planned: %d MiB more than before; %d are held", far+near, (stage.Heap()-before)>>20, most)
		for time.Since(began) < 25*time.Second {
			time.Sleep(500 * time.Millisecond)
			synctest.Wait()
			look()
		}
		if most > maxHeld+xxljob.ScanPage || !bounded {
			t.Errorf("%d runs were held, want %d at most; there was a horizon: %t", most, maxHeld+xxljob.ScanPage, bounded)
		}
		if held, _ := xxljob.Held(n.Scheduler, "app"); held != 0 {
			t.Errorf("%d runs are still held", held)
		}
		if int(ran.Load()) != far+near || late.Load() != 0 {
			t.Errorf("%d of %d runs were run, %d of them late", ran.Load(), far+near, late.Load())
		}
		if got := stage.CountStates(stage.AllRuns(t, st))[xxljob.StateSucceeded]; got != far+near {
			t.Errorf("%d runs succeeded, want %d", got, far+near)
		}
		stage.Stop(t, n)
	})
}

// TestPlannedFurtherThanItsOwnWindow: a node that takes over from one with a longer pre-read
// starts all that the other has planned, be it more than a node holds in memory of one
// app, or less.
func TestPlannedFurtherThanItsOwnWindow(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hundreds of jobs each second for a minute; leave out -short")
	}
	for name, c := range map[string]struct {
		jobs    int
		bounded bool
	}{
		"all held": {25, false},
		"too many": {250, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := stage.PlannedApart{Store: memory.New()}, &stage.Journal{}
				a := stage.StartNode(t, st, "a", j, func(c *xxljob.Config) { c.PreRead = 55 * time.Second })
				time.Sleep(time.Second)
				jobs := stage.AddSeconds(t, a, c.jobs)
				time.Sleep(2 * time.Second)
				from := time.Now()
				stage.Stop(t, a)
				b := stage.StartNode(t, st, "b", j, func(c *xxljob.Config) { c.Limits.MaxHeld = 2 * xxljob.ScanPage }) // with a pre-read of 5 s
				time.Sleep(time.Second)
				if n, bounded := xxljob.Held(b.Scheduler, "app"); bounded != c.bounded || n == 0 {
					t.Errorf("%d runs are held, more are in the store: %v", n, bounded)
				}
				time.Sleep(65 * time.Second)
				to := time.Now().Add(-time.Second)
				for _, r := range stage.AllOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StatePlanned}}) {
					if over := time.Since(r.Scheduled); over > 10*time.Second {
						t.Errorf("run %d is still planned, %v after its time", r.ID, over)
						break
					}
				}
				stage.Stop(t, b)
				if got := stage.AuditSeconds(t, st, j, jobs, from, to); got != (stage.Audit{}) {
					t.Errorf("audit: %+v", got)
				}
			})
		})
	}
}
