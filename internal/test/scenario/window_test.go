package scenario_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestHintsMakeNothingLate: scans that hints call for, at any moment, do not put off the
// scan that the window's end calls for: with a store that takes its time, every run
// starts when it is due.
func TestHintsMakeNothingLate(t *testing.T) {
	t.Parallel()
	const seed = 1
	for _, c := range []struct{ preRead, latency, lasts time.Duration }{
		{100 * time.Millisecond, 20 * time.Millisecond, 6 * time.Minute},
		{5 * time.Second, 300 * time.Millisecond, 30 * time.Minute},
		{55 * time.Second, 300 * time.Millisecond, 30 * time.Minute},
	} {
		t.Run(fmt.Sprintf("PreRead=%v/seed=%d", c.preRead, seed), func(t *testing.T) {
			if stage.Detector && c.preRead > time.Second {
				t.Skip("a window of another length: the race detector has nothing more to say of it")
			}
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 0))
				j := &stage.Journal{}
				a := stage.StartNode(t, memory.New(), "a", j, func(cfg *xxljob.Config) { cfg.PreRead = c.preRead })
				for _, method := range []string{"Scan", "Claim"} {
					a.Faults.Inject(method, storetest.Fault{Delay: c.latency})
				}
				want := 0
				for i := range 40 { // far apart, so that little but hints calls for scans
					period := time.Duration(61+7*i) * time.Second
					_, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "work", Schedule: xxljob.FixedRate(period)})
					stage.Must(t, err)
					want += int(c.lasts / period)
					time.Sleep(137 * time.Millisecond)
				}
				hint, err := stage.Elsewhere(t, a.Faults, "app").AddJob(t.Context(), xxljob.Job{Name: "hint", Handler: "none"})
				stage.Must(t, err)
				for end := time.Now().Add(c.lasts); time.Now().Before(end); {
					stage.Trigger(t, a, hint)
					time.Sleep(time.Duration(rnd.Int64N(int64(9 * c.preRead / 5))))
				}
				late, worst := 0, time.Duration(0)
				for _, s := range j.All() {
					if by := s.At.Sub(s.Due); by > time.Millisecond {
						late, worst = late+1, max(worst, by)
					}
				}
				if n := len(j.All()); late > 0 || n < want {
					t.Errorf("%d runs, of which %d are late, one by %v; want %d at least, and none late", n, late, worst, want)
				}
				stage.Stop(t, a)
			})
		})
	}
}
