package scenario_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// talk logs as its parameter says: "much" that cannot be compressed, one line or none.
func talk(_ context.Context, task *xxljob.Task) error {
	switch task.Param {
	case "much":
		noise := make([]byte, 500)
		for range 8000 {
			_, _ = rand.Read(noise)
			task.Log().Info(fmt.Sprintf("%x", noise))
		}
	case "a line":
		task.Log().Info("a line")
	}
	return nil
}

// TestResultsWhileLogsRest: while so much was written that nothing more is for seconds, results
// do not wait for lines, which are written in time.
func TestResultsWhileLogsRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := startLogNode(t, st, "a", func(c *xxljob.Config) { c.Logs.BytesPerSecond, c.Logs.RunBytes = 256<<10, 16<<20 })
		n.begin(t, talk)
		much := stage.TriggerNew(t, n, xxljob.Job{Name: "much", Handler: "chat", Param: "much"})
		time.Sleep(100 * time.Millisecond)
		var ids []int64
		for i := range 5 {
			began := time.Now()
			ids = append(ids, ran(t, n, xxljob.Job{Name: fmt.Sprint("a line ", i), Handler: "chat", Param: "a line"}))
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("result %d took %v", i, took)
			}
		}
		time.Sleep(30 * time.Second)
		if lines := wholeLog(t, observer(t, st), much); len(lines) != 8000 {
			t.Errorf("%d lines", len(lines))
		}
		for _, id := range ids {
			if lines := wholeLog(t, observer(t, st), id); len(lines) != 1 {
				t.Errorf("run %d has %d lines", id, len(lines))
			}
		}
		if stats := n.Stats().Logs; stats.Dropped+stats.Cut > 0 || stats.Waiting > 0 {
			t.Errorf("%+v", stats)
		}
		n.stop(t)
	})
}

// TestResultsOfSilentRunsDoNotWait: of results that come together those of runs that have logged
// nothing are stored at once, and the others when the store is slow, with their lines to come.
func TestResultsOfSilentRunsDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := startLogNode(t, st, "a").begin(t, talk)
		n.store.gate.set(nil, errors.New("no pages today"))
		n.store.Faults.Inject("Finish", storetest.Fault{Delay: 500 * time.Millisecond, Calls: 1})
		began := time.Now()
		took := map[string]time.Duration{}
		var mu sync.Mutex
		var waiting sync.WaitGroup
		for i, param := range []string{"", "none", "a line"} { // the first keeps the others, which come together
			id := stage.TriggerNew(t, n, xxljob.Job{Name: fmt.Sprint("run ", i), Handler: "chat", Param: param})
			waiting.Go(func() {
				if _, err := n.Wait(t.Context(), id); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				took[param] = time.Since(began)
			})
			time.Sleep(50 * time.Millisecond)
		}
		waiting.Wait()
		if took["none"] < 500*time.Millisecond || took["none"] > time.Second || took["a line"] < 2*time.Second || took["a line"] > 3*time.Second {
			t.Errorf("results took %v", took)
		}
		n.store.gate.set(nil, nil)
		time.Sleep(10 * time.Second)
		n.stop(t)
	})
}

// TestLinesBehindAnEnd: lines that come while nothing waits but the end of another run have as
// long to be written as any.
func TestLinesBehindAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sink := newKeptSink(func(context.Context, int) error { time.Sleep(time.Second); return nil })
		a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) { c.Logs.Sink = sink })
		stage.Must(t, a.Handle("chat", func(_ context.Context, task *xxljob.Task) error {
			task.Log().Info("a line")
			if task.Param == "long" {
				time.Sleep(10 * time.Second)
			}
			return nil
		}))
		time.Sleep(10 * time.Second)
		stage.TriggerNew(t, a, xxljob.Job{Name: "long", Handler: "chat", Param: "long"})
		time.Sleep(10500 * time.Millisecond) // its end is being told
		id := ran(t, a, xxljob.Job{Name: "short", Handler: "chat"})
		if got := sink.texts(id); len(got) != 1 {
			t.Errorf("when the result is there: %q", got)
		}
		stage.Stop(t, a)
	})
}
