package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestLogOfAGoneNode asks a node that is silent, one that is taken for dead, and
// one that has left.
func TestLogOfAGoneNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b, c := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j), stage.StartNode(t, st, "c", j)
		say := func(_ context.Context, task *xxljob.Task) error { task.Log().Info("x"); return nil }
		stage.Must(t, b.Handle("at b", say))
		stage.Must(t, c.Handle("at c", say))
		time.Sleep(10 * time.Second)
		atB, atC := ran(t, a, xxljob.Job{Name: "b", Handler: "at b"}), ran(t, a, xxljob.Job{Name: "c", Handler: "at c"})
		gone := func(what string, run int64, within time.Duration) {
			t.Helper()
			began := time.Now()
			_, err := a.Log(t.Context(), run, 1)
			wantNoLog(t, what, err, "is gone")
			if took := time.Since(began); took > within {
				t.Errorf("that the node of a run %s is gone took %v to say", what, took)
			}
		}
		c.Pause()
		for _, patience := range []time.Duration{0, 2 * time.Second} {
			ctx, cancel, want := t.Context(), func() {}, 5*time.Second
			if patience > 0 {
				ctx, cancel = context.WithTimeout(ctx, patience)
				want = patience
			}
			began := time.Now()
			_, err := a.Log(ctx, atC, 1)
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != want {
				t.Errorf("log of a silent node: %v after %v, want the end of the context after %v", err, took, want)
			}
			cancel()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := a.Log(ctx, atC, 1)
		wantNoLog(t, "whose node is silent for long", err, "is gone")
		cancel()
		time.Sleep(time.Minute)
		gone("whose node is buried", atC, 2*time.Second)

		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		b.Faults.Inject("Inbox", storetest.Fault{Before: true})
		time.AfterFunc(10*time.Second, func() { stage.Stop(t, b) })
		began := time.Now()
		_, err = a.Log(ctx, atB, 1)
		wantNoLog(t, "whose node leaves", err, "is gone")
		if took := time.Since(began); took > 12*time.Second {
			t.Errorf("that the node has left after 10 s was noticed after %v", took)
		}
		cancel()
		gone("whose node has left", atB, 2*time.Second)
		stage.Stop(t, a)
		c.Resume()
		stage.Stop(t, c)
	})
}

// TestLogFaults loses questions, answers and what is said of them on the way.
func TestLogFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		stage.Must(t, b.Handle("say", func(_ context.Context, task *xxljob.Task) error { task.Log().Info("x"); return nil }))
		time.Sleep(10 * time.Second)
		id := ran(t, a, xxljob.Job{Name: "say", Handler: "say"})
		asks := func(ctx context.Context, what string) {
			t.Helper()
			if res, err := a.Log(ctx, id, 1); err != nil || brief(res) != "1 1 x" {
				t.Errorf("%s: %q %v", what, brief(res), err)
			}
		}
		for _, c := range []struct {
			n      *stage.Node
			method string
		}{{a, "AskLog"}, {a, "LogAnswer"}, {b, "AnswerLog"}, {b, "Inbox"}} {
			for what, fault := range map[string]storetest.Fault{"before": {Before: true, Calls: 3}, "after": {After: true, Calls: 3}, "late": {Delay: time.Second, Calls: 1}} {
				before := c.n.Faults.Calls(c.method)
				c.n.Faults.Inject(c.method, fault)
				asks(t.Context(), fmt.Sprint(c.method, " fails ", what))
				if c.n.Faults.Calls(c.method) == before {
					t.Errorf("%s was not called", c.method)
				}
				c.n.Faults.Clear()
				time.Sleep(10 * time.Second)
			}
		}

		t.Log("the store drops the question before the node looks; it is asked again")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		b.Faults.Inject("Inbox", storetest.Fault{Before: true})
		time.AfterFunc(90*time.Second, b.Faults.Clear)
		before := a.Faults.Calls("AskLog")
		asks(ctx, "a question that was dropped")
		if n := a.Faults.Calls("AskLog") - before; n != 2 {
			t.Errorf("asked %d times, want twice", n)
		}

		t.Log("a store that fails all the time")
		a.Faults.Inject("AskLog", storetest.Fault{Before: true})
		_, err := a.Log(t.Context(), id, 1)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, storetest.ErrInjected) {
			t.Errorf("log while the store fails: %v", err)
		}
		a.Faults.Inject("Run", storetest.Fault{Before: true})
		if _, err := a.Log(t.Context(), id, 1); !errors.Is(err, storetest.ErrInjected) {
			t.Errorf("log while runs cannot be read: %v", err)
		}
		stage.Stop(t, a, b)
	})
}

// TestSlowLogHoldsUpNothing asks an executor that hangs in Log: runs are handed to
// its node, killed there, and logs of other apps read, as if nothing was.
func TestSlowLogHoldsUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		release := make(chan struct{})
		var now, most atomic.Int64
		attachLog(t, b, "slow", func(_ context.Context, req wire.LogRequest) (wire.LogReturn, error) {
			most.Store(max(most.Load(), now.Add(1)))
			<-release
			now.Add(-1)
			return wire.LogReturn{Code: wire.CodeSuccess, Result: wire.LogResult{FromLineNum: req.FromLineNum, ToLineNum: 1, LogContent: "1 x\n"}}, nil
		})
		stage.Must(t, b.Handle("say", func(_ context.Context, task *xxljob.Task) error { task.Log().Info("x"); return nil }))
		stage.Must(t, b.Handle("long", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return context.Cause(ctx) }))
		time.Sleep(10 * time.Second)
		slow := ran(t, a, xxljob.Job{App: "slow", Name: "slow", Handler: "quick"})
		var asking sync.WaitGroup
		for i := range 20 {
			asking.Go(func() {
				_, err := []*stage.Node{a, b}[i%2].Log(t.Context(), slow, 1)
				if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, xxljob.ErrNoLog) {
					t.Errorf("log of an executor that hangs: %v", err)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		said := ran(t, a, xxljob.Job{Name: "say", Handler: "say"})
		again := ran(t, a, xxljob.Job{App: "slow", Name: "again", Handler: "quick"})
		if res, err := a.Log(t.Context(), said, 1); err != nil || brief(res) != "1 1 x" {
			t.Errorf("log of another app: %q %v", brief(res), err)
		}
		long := stage.TriggerNew(t, a, xxljob.Job{Name: "long", Handler: "long"})
		time.Sleep(100 * time.Millisecond)
		stage.Must(t, a.Kill(t.Context(), long))
		if run, err := a.Wait(t.Context(), long); err != nil || run.State != xxljob.StateKilled {
			t.Errorf("a run killed meanwhile: %v %v", run.State, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("three runs took %v while an executor hangs in Log", took)
		}
		asking.Wait()
		if n := most.Load(); n == 0 || n > 4 {
			t.Errorf("%d calls of Log at once", n)
		}
		time.Sleep(30 * time.Second)
		close(release)
		time.Sleep(10 * time.Second)
		for _, n := range []*stage.Node{a, b} {
			if res, err := n.Log(t.Context(), again, 1); err != nil || brief(res) != "1 1 x" {
				t.Errorf("%s, when the executor answers again: %q %v", n.Name, brief(res), err)
			}
		}
		stage.Stop(t, a, b)
	})
}

// TestLogWhileDraining reads a log at a node that waits, in Stop, for a handler;
// and at one that stops while its executor hangs in Log.
func TestLogWhileDraining(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		release := make(chan struct{})
		attachLog(t, b, "slow", func(context.Context, wire.LogRequest) (wire.LogReturn, error) {
			<-release
			return wire.LogReturn{}, nil
		})
		goOn := make(chan struct{})
		stage.Must(t, b.Handle("chat", chatty(goOn)))
		time.Sleep(10 * time.Second)
		slow := ran(t, a, xxljob.Job{App: "slow", Name: "slow", Handler: "quick"})
		chat := stage.TriggerNew(t, a, xxljob.Job{Name: "chat", Handler: "chat"})
		time.Sleep(2 * time.Second)
		stopped := make(chan struct{})
		go func() { stage.Stop(t, b); close(stopped) }()
		time.Sleep(10 * time.Second)
		if res, err := a.Log(t.Context(), chat, 1); err != nil || brief(res) != "1 2 one two" {
			t.Errorf("log of a run that is waited for: %q %v", brief(res), err)
		}
		asked := make(chan error)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { _, err := a.Log(ctx, slow, 1); asked <- err }()
		time.Sleep(time.Second)
		close(goOn)
		began := time.Now()
		<-stopped
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Stop waited %v for an executor that hangs in Log", took)
		}
		wantNoLog(t, "whose node stops meanwhile", <-asked, "")
		close(release)
		stage.Stop(t, a)
	})
}
