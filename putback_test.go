package xxljob_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// answeredLate is a store whose Start takes effect at once and is answered later.
type answeredLate struct {
	st    xxljob.Store
	began chan struct{}
	by    time.Duration
}

func (s answeredLate) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	answer, err := s.st.Start(ctx, nil, starts)
	select {
	case s.began <- struct{}{}:
	default:
	}
	time.Sleep(s.by)
	return answer, err
}

// TestPutBackBeforeItsStartIsAnswered: a run that is put back while the answer to its
// own start is on its way is started again.
func TestPutBackBeforeItsStartIsAnswered(t *testing.T) {
	for _, by := range []time.Duration{0, 10 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second} {
		t.Run(fmt.Sprint("answered after ", by), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { putBackEarly(t, by) })
		})
	}
}

func putBackEarly(t *testing.T, by time.Duration) {
	st := memory.New()
	began := make(chan struct{}, 1)
	a := startWorker(t, bent.StoreOf(st, answeredLate{st, began, by}), "a", false)
	time.Sleep(20 * time.Second) // a has all shards
	b := startWorker(t, stage.BlindInbox{Store: st}, "b", true)
	c := startWorker(t, st, "c", true)
	time.Sleep(20 * time.Second)

	// A job in a shard of a's, which names b first.
	var id int64
	for i := 0; id == 0; i++ {
		run := stage.TriggerNew(t, a, xxljob.Job{App: "work", Name: fmt.Sprint("job ", i), Handler: "h", Route: "FIRST"})
		select {
		case <-began:
			id = run
		case <-time.After(2 * time.Second): // it is in another node's shard
		}
	}
	go b.Stop(t.Context()) // what waits in its inbox is put back
	if r := stage.WaitFor(t, c, id, time.Minute); r.State != xxljob.StateSucceeded {
		t.Errorf("the run is %v: %s", r.State, r.TriggerMsg)
	}
	for _, s := range []xxljob.Scheduler{a, c} {
		if n := xxljob.TakenUp(s); n != 0 {
			t.Errorf("%d runs were found by the reconciliation only", n)
		}
	}
	stage.Must(t, a.Stop(t.Context()))
	stage.Must(t, c.Stop(t.Context()))
}

// startWorker adds a node that has the handler h of the app "work" attached, or that
// only schedules.
func startWorker(t *testing.T, st xxljob.Store, name string, works bool) xxljob.Scheduler {
	t.Helper()
	s, err := xxljob.New(st, xxljob.Config{App: "own-" + name, Node: name, Logger: stage.QuietLog()})
	stage.Must(t, err)
	if works {
		e, err := executor.New(executor.Config{App: "work", Logger: stage.QuietLog()})
		stage.Must(t, err)
		stage.Must(t, e.Handle("h", stage.NothingToDo))
		stage.Must(t, s.Attach(e))
		t.Cleanup(func() { e.Stop(context.Background()) })
	}
	stage.Must(t, s.Start(context.Background()))
	return s
}
