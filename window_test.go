package xxljob_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestHintsMakeNothingLate: scans that hints call for, at any moment, do not put off the
// scan that the window's end calls for: with a store that takes its time, every run
// starts when it is due.
func TestHintsMakeNothingLate(t *testing.T) {
	const seed = 1
	for _, c := range []struct{ preRead, latency, lasts time.Duration }{
		{100 * time.Millisecond, 20 * time.Millisecond, 60 * time.Minute},
		{5 * time.Second, 300 * time.Millisecond, 3 * time.Hour},
		{55 * time.Second, 300 * time.Millisecond, 3 * time.Hour},
	} {
		if detector {
			c.lasts /= 10
		}
		t.Run(fmt.Sprintf("PreRead=%v/seed=%d", c.preRead, seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 0))
				j := &journal{}
				a := startNode(t, memory.New(), "a", j, func(cfg *xxljob.Config) { cfg.PreRead = c.preRead })
				for _, method := range []string{"Scan", "Claim"} {
					a.faults.Inject(method, storetest.Fault{Delay: c.latency})
				}
				want := 0
				for i := range 40 { // far apart, so that little but hints calls for scans
					period := time.Duration(61+7*i) * time.Second
					_, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "work", Schedule: xxljob.FixedRate(period)})
					must(t, err)
					want += int(c.lasts / period)
					time.Sleep(137 * time.Millisecond)
				}
				hint, err := a.AddJob(t.Context(), xxljob.Job{Name: "hint", Handler: "none"})
				must(t, err)
				for end := time.Now().Add(c.lasts); time.Now().Before(end); {
					trigger(t, a, hint)
					time.Sleep(time.Duration(rnd.Int64N(int64(9 * c.preRead / 5))))
				}
				late, worst := 0, time.Duration(0)
				for _, s := range j.all() {
					if by := s.at.Sub(s.due); by > time.Millisecond {
						late, worst = late+1, max(worst, by)
					}
				}
				if n := len(j.all()); late > 0 || n < want {
					t.Errorf("%d runs, of which %d are late, one by %v; want %d at least, and none late", n, late, worst, want)
				}
				stop(t, a)
			})
		})
	}
}

// plannedApart is a store whose scans return only what others have inserted: runs that
// a schedule bore are left to Planned, as the contract allows.
type plannedApart struct{ xxljob.Store }

func (s plannedApart) Scan(ctx context.Context, q xxljob.ScanQuery) (xxljob.ScanResult, error) {
	res, err := s.Store.Scan(ctx, q)
	for err == nil && len(res.Runs) == q.Runs { // a full page, which it will not return again
		var more xxljob.ScanResult
		more, err = s.Store.Scan(ctx, q)
		res.Runs, res.Next = more.Runs, more.Next
	}
	res.Runs = slices.DeleteFunc(res.Runs, func(r xxljob.Run) bool { return r.Type.ScheduleBorn() })
	return res, err
}

// TestPlannedFurtherThanItsOwnWindow: a node that takes over from one with a longer pre-read
// starts all that the other has planned, be it more than a node holds in memory of one
// app, or less.
func TestPlannedFurtherThanItsOwnWindow(t *testing.T) {
	for name, c := range map[string]struct {
		jobs    int
		bounded bool
	}{
		"all held": {100, false},
		"too many": {1000, true},
	} {
		maxHeld := 50_000
		if detector {
			c.jobs, maxHeld = c.jobs/4, 2*xxljob.ScanPage
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := plannedApart{memory.New()}, &journal{}
				a := startNode(t, st, "a", j, func(c *xxljob.Config) { c.PreRead = 55 * time.Second })
				time.Sleep(time.Second)
				jobs := addSeconds(t, a, c.jobs)
				time.Sleep(2 * time.Second)
				from := time.Now()
				stop(t, a)
				b := startNode(t, st, "b", j, func(c *xxljob.Config) { c.Limits.MaxHeld = maxHeld }) // with a pre-read of 5 s
				time.Sleep(time.Second)
				if n, bounded := xxljob.Held(b.Scheduler, "app"); bounded != c.bounded || n == 0 {
					t.Errorf("%d runs are held, more are in the store: %v", n, bounded)
				}
				time.Sleep(65 * time.Second)
				to := time.Now().Add(-time.Second)
				for _, r := range allOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StatePlanned}}) {
					if over := time.Since(r.Scheduled); over > 10*time.Second {
						t.Errorf("run %d is still planned, %v after its time", r.ID, over)
						break
					}
				}
				stop(t, b)
				if got := auditSeconds(t, st, j, jobs, from, to); got != (audit{}) {
					t.Errorf("audit: %+v", got)
				}
			})
		})
	}
}
