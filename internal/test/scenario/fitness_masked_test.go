package scenario_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// writesFail is a store that a node reads well, and in which claims or starts that change
// nothing succeed: no row can be written.
type writesFail struct {
	st             xxljob.Store
	claims, starts *atomic.Bool // which fail
}

var errDiskFull = errors.New("the disk is full")

func (s writesFail) Claim(ctx context.Context, dst []xxljob.Run, plans []store.Plan) ([]xxljob.Run, error) {
	if s.claims.Load() && len(plans) > 0 && plans[0].JobID != 0 {
		return nil, errDiskFull
	}
	return s.st.Claim(ctx, dst, plans)
}

func (s writesFail) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	if s.starts.Load() && len(starts) > 0 && starts[0].RunID != 0 {
		return nil, errDiskFull
	}
	return s.st.Start(ctx, dst, starts)
}

// TestReadyWhenNoRowCanBeWritten: an attempt that changes nothing does not hide that those
// fail which do.
func TestReadyWhenNoRowCanBeWritten(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"claims", "starts"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var on, off atomic.Bool
				mem, j := memory.New(), &stage.Journal{}
				st := bent.StoreOf(mem, writesFail{mem, &on, &off})
				if what == "starts" {
					st = bent.StoreOf(mem, writesFail{mem, &off, &on})
				}
				a := stage.StartNode(t, st, "a", j)
				time.Sleep(5 * time.Second)
				stage.AddSeconds(t, a, 5)
				time.Sleep(10 * time.Second)
				stage.Must(t, a.Ready())
				on.Store(true)
				time.Sleep(fitTTL + 4*time.Second)
				for range 600 {
					time.Sleep(100 * time.Millisecond)
					if a.Ready() == nil {
						t.Fatal("the node is ready, and nothing runs")
					}
				}
				on.Store(false)
				time.Sleep(30 * time.Second)
				stage.Must(t, a.Ready())
				stage.Stop(t, a)
			})
		})
	}
}

// TestANodeThatCannotWriteRests: where another node can, it has the shards; and the one
// that cannot tries again at longer and longer intervals, not each time that an attempt
// which changes nothing succeeds.
func TestANodeThatCannotWriteRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var onA, onB, off atomic.Bool
		mem, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, bent.StoreOf(mem, writesFail{mem, &onA, &off}), "a", j), stage.StartNode(t, bent.StoreOf(mem, writesFail{mem, &onB, &off}), "b", j)
		time.Sleep(10 * time.Second)
		each := 20
		if stage.Detector {
			each = 4 // what rests is the node, and not its jobs
		}
		jobs := stage.AddSeconds(t, a, each)
		time.Sleep(10 * time.Second)
		onA.Store(true)
		onB.Store(true)
		time.Sleep(30 * time.Second)
		onA.Store(false) // and b goes on failing
		time.Sleep(2 * time.Minute)
		ready, owned, before := 0, 0, len(j.All())
		const look = 10 * time.Minute
		for range int(look / time.Second) {
			time.Sleep(time.Second)
			if n, _ := shardsOf(t, mem, b); n > 0 {
				owned++
			}
			if b.Ready() == nil { // each time that it tries again, until that fails
				ready++
			}
		}
		if most := int(look/time.Second) / 10; owned > most || ready > most/2 {
			t.Errorf("b has had shards for %d s of %v, and was ready for %d s", owned, look, ready)
		}
		if n, want := len(j.All())-before, len(jobs)*int(look/time.Second); n < want*9/10 {
			t.Errorf("%d of %d runs in %v", n, want, look)
		}
		onB.Store(false)
		time.Sleep(6 * time.Minute)
		stage.Must(t, b.Ready())
		requireSpread(t, mem, a, b)
		stage.Stop(t, a, b)
	})
}

// TestReadyAfterALostAnswer: a start whose answer was lost, and which was found to have
// taken effect, makes nobody unready.
func TestReadyAfterALostAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &stage.Journal{}
		a := stage.StartNode(t, memory.New(), "a", j)
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "x", Handler: "work"})
		stage.Must(t, err)
		a.Faults.Inject("Start", storetest.Fault{After: true, Calls: 1})
		stage.Trigger(t, a, job)
		for range 15 {
			time.Sleep(time.Second)
			if err := a.Ready(); err != nil || len(j.All()) != 1 {
				t.Fatalf("%d runs, Ready: %v", len(j.All()), err)
			}
		}
		stage.Stop(t, a)
	})
}
