package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// poisonedResults is a node whose store refuses results that are poisoned, with a job whose runs
// fail with "bad" and another whose runs succeed.
func poisonedResults(t *testing.T, poisoned func(store.Result) bool) (a *stage.Node, bad, good xxljob.Job) {
	t.Helper()
	a = stage.NewNode(t, memory.New(), "a", &stage.Journal{})
	stage.Must(t, a.Handle("bad", func(context.Context, *xxljob.Task) error { return errors.New("bad") }))
	stage.Must(t, a.Start(t.Context()))
	var jobs [2]xxljob.Job
	for i, handler := range []string{"bad", "work"} {
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: handler, Handler: handler, Block: xxljob.BlockConcurrent})
		stage.Must(t, err)
		jobs[i] = job
	}
	a.Faults.Inject("Finish", storetest.Fault{Poison: func(member any) bool { return poisoned(member.(store.Result)) }})
	return a, jobs[0], jobs[1]
}

// TestRefusedTexts: a result whose text the store refuses for ever ends as its state, and holds up
// none that ended with it or comes behind it.
func TestRefusedTexts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 50} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, bad, good := poisonedResults(t, func(r store.Result) bool { return r.HandleMsg == "bad" })
				var ids []int64
				for range n {
					ids = append(ids, stage.Trigger(t, a, bad), stage.Trigger(t, a, good))
				}
				for i, id := range ids {
					r := stage.WaitFor(t, a, id, 5*time.Second)
					if want := [...]xxljob.State{xxljob.StateFailed, xxljob.StateSucceeded}[i%2]; r.State != want {
						t.Errorf("run %d is %v (%q), want %v", id, r.State, r.HandleMsg, want)
					}
					if i%2 == 0 {
						stage.RequireText(t, "why it failed", r.HandleMsg, "refuses the text")
					}
				}
				stage.Stop(t, a)
			})
		})
	}
}

// TestRefusedForEver: a run of which the store takes no result at all holds up no other, before it
// and behind it, and ends as it has ended when the store takes one.
func TestRefusedForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var worst atomic.Int64
		a, bad, good := poisonedResults(t, func(r store.Result) bool { return r.RunID == worst.Load() })
		for range 3 {
			stage.WaitFor(t, a, stage.Trigger(t, a, good), 5*time.Second)
		}
		id := stage.Trigger(t, a, bad)
		worst.Store(id)
		for range 100 {
			for range 10 {
				stage.Trigger(t, a, good)
			}
			if r := stage.WaitFor(t, a, stage.Trigger(t, a, good), 5*time.Second); r.State != xxljob.StateSucceeded {
				t.Fatalf("a run behind it is %v", r.State)
			}
		}
		if r, err := a.Faults.Run(t.Context(), id); err != nil || r.State != xxljob.StateStarted {
			t.Fatalf("the run is %v (%v)", r.State, err)
		}
		time.Sleep(20 * time.Second)
		var not *xxljob.NotReadyError
		if err := a.Ready(); !errors.As(err, &not) || !slices.Equal(not.Reasons, []string{"results"}) {
			t.Errorf("ready: %v", err)
		}
		a.Faults.Clear()
		r := stage.WaitFor(t, a, id, 5*time.Second)
		if r.State != xxljob.StateFailed {
			t.Errorf("the run is %v", r.State)
		}
		stage.RequireText(t, "it was not the text that was refused: why it failed", r.HandleMsg, "bad")
		synctest.Wait()
		if err := a.Ready(); err != nil {
			t.Error(err)
		}
		stage.Stop(t, a)
	})
}

// narrowStore is a store of a database that lacks some characters.
type narrowStore struct{ st *memory.Store }

func (s narrowStore) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	results = slices.Clone(results)
	for i := range results {
		results[i].HandleMsg = strings.Map(func(r rune) rune {
			if r > 0xff {
				return '?'
			}
			return r
		}, results[i].HandleMsg)
	}
	return s.st.Finish(ctx, dst, results)
}

// TestUnclearResultOfANarrowDatabase: a result that is stored though its call has failed is known again
// where the database has question marks in place of some characters: that its run has ended is told.
func TestUnclearResultOfANarrowDatabase(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"boom", "é 漢字\x00 \xff", "?"} {
		synctest.Test(t, func(t *testing.T) {
			var ended atomic.Int64
			st := memory.New()
			a := stage.NewNode(t, bent.AllOf(st, narrowStore{st}), "a", &stage.Journal{}, func(c *xxljob.Config) {
				c.Hooks.RunEnded = func(xxljob.Run) { ended.Add(1) }
			})
			stage.Must(t, a.Handle("bad", func(context.Context, *xxljob.Task) error { return errors.New(text) }))
			stage.Must(t, a.Start(t.Context()))
			a.Faults.Inject("Finish", storetest.Fault{After: true, Calls: 1})
			stage.TriggerNew(t, a, xxljob.Job{Name: "bad", Handler: "bad"})
			time.Sleep(10 * time.Second)
			if n := ended.Load(); n != 1 {
				t.Errorf("%q: the end is told %d times", text, n)
			}
			stage.Stop(t, a)
		})
	}
}
