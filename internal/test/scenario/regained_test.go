package scenario_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestAShardIsRegainedWhileStartsAreUnderWay: the store refuses starts, for their shards were
// given up meanwhile, but when the answer comes these are the node's again and their planned runs
// were read. They begin all the same, and at once.
func TestAShardIsRegainedWhileStartsAreUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a := stage.StartNode(t, st, "a", j)
		time.Sleep(10 * time.Second)
		const n = 40
		for i := range n {
			_, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("each minute ", i), Handler: "work", Schedule: xxljob.Cron("0 * * * * ?")})
			stage.Must(t, err)
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(59 * time.Second)))

		answers := make(chan struct{})
		a.Faults.Inject("Start", storetest.Fault{Hang: answers})
		time.Sleep(1500 * time.Millisecond)
		b := stage.NewNode(t, st, "b", j)
		reads := make(chan struct{}) // none is answered while b lives
		b.Faults.Inject("Planned", storetest.Fault{Hang: reads})
		b.Faults.Inject("Scan", storetest.Fault{Hang: reads})
		stage.Must(t, b.Start(t.Context()))
		time.Sleep(2 * time.Second)
		requireSpread(t, st, a, b)
		stage.StopShort(b)
		time.Sleep(1500 * time.Millisecond)
		requireSpread(t, st, a)
		close(answers)

		time.Sleep(5 * time.Second)
		if begun := len(j.All()); begun != n {
			t.Errorf("%d of %d runs have begun", begun, n)
		}
		if taken := a.Stats().PickedUp; taken != 0 {
			t.Errorf("%d runs were held by nobody", taken)
		}
		stage.Stop(t, a)
	})
}
