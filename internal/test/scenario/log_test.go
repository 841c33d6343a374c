package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// logExecutor is an executor of a user's, whose Log is its own.
type logExecutor struct {
	xxljob.Executor
	log func(context.Context, wire.LogRequest) (wire.LogReturn, error)
}

func (e *logExecutor) Log(ctx context.Context, req wire.LogRequest) (wire.LogReturn, error) {
	return e.log(ctx, req)
}

// attachLog attaches an executor for the app to the node: its handler "quick"
// returns at once.
func attachLog(t *testing.T, n *stage.Node, app string, log func(context.Context, wire.LogRequest) (wire.LogReturn, error)) {
	t.Helper()
	e, err := executor.New(executor.Config{App: app, Logger: stage.QuietLog()})
	stage.Must(t, err)
	stage.Must(t, e.Handle("quick", stage.NothingToDo))
	stage.Must(t, n.Attach(&logExecutor{e, log}))
}

// ran is the id of a run of the job that has ended.
func ran(t *testing.T, s xxljob.Scheduler, job xxljob.Job) int64 {
	t.Helper()
	id := stage.TriggerNew(t, s, job)
	_, err := s.Wait(t.Context(), id)
	stage.Must(t, err)
	return id
}

// follow reads a log to its end.
func follow(t *testing.T, s xxljob.Scheduler, run int64) (lines []string, pages int) {
	t.Helper()
	for from := 1; ; {
		res, err := s.Log(t.Context(), run, from)
		stage.Must(t, err)
		if res.IsEnd {
			return lines, pages
		}
		if res.ToLineNum < res.FromLineNum {
			time.Sleep(time.Second)
			continue
		}
		page := strings.SplitAfter(strings.TrimSuffix(res.LogContent, "\n"), "\n")
		if res.FromLineNum != from || res.ToLineNum != from+len(page)-1 {
			t.Fatalf("asked from %d: lines %d to %d, and %d of them", from, res.FromLineNum, res.ToLineNum, len(page))
		}
		lines, pages = append(lines, page...), pages+1
		from = res.ToLineNum + 1
	}
}

func wantNoLog(t *testing.T, what string, err error, why string) {
	t.Helper()
	if !errors.Is(err, xxljob.ErrNoLog) || !strings.Contains(err.Error(), why) {
		t.Errorf("log of a run %s: %v, want ErrNoLog with %q", what, err, why)
	}
}

// chatty logs two lines, and a third one when it is let go.
func chatty(goOn <-chan struct{}) xxljob.Handler {
	return func(_ context.Context, task *xxljob.Task) error {
		task.Log().Info("one")
		task.Log().Info("two")
		<-goOn
		task.Log().Info("three")
		return nil
	}
}

// TestLogAcrossNodes reads the log of a run, while it runs and after, at the node
// that runs it, at one that started it and at a third one; with signals, and with
// polls only.
func TestLogAcrossNodes(t *testing.T) {
	t.Parallel()
	for name, polled := range map[string]bool{"signals": false, "polls": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var st xxljob.Store = memory.New()
				if polled {
					st = bent.StoreOf(st, noHints{})
				}
				j := &stage.Journal{}
				a, b, c := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j), stage.StartNode(t, st, "c", j)
				goOn := make(chan struct{})
				stage.Must(t, b.Handle("chat", chatty(goOn)))
				time.Sleep(10 * time.Second)
				id := stage.TriggerNew(t, a, xxljob.Job{Name: "chat", Handler: "chat"})
				time.Sleep(2 * time.Second)
				for _, n := range []*stage.Node{a, b, c} {
					for from, want := range map[int]string{-1: "1 2 one two", 0: "1 2 one two", 1: "1 2 one two", 2: "2 2 two", 3: "3 2", 9: "9 2"} {
						began := time.Now()
						res, err := n.Log(t.Context(), id, from)
						if got := brief(res); err != nil || got != want || res.IsEnd {
							t.Errorf("%s from %d while it runs: %q %v, want %q", n.Name, from, got, err, want)
						}
						if took := time.Since(began); took > 400*time.Millisecond || !polled && took > 50*time.Millisecond {
							t.Errorf("%s from %d took %v", n.Name, from, took)
						}
					}
				}
				followed := make(chan []string)
				go func() { lines, _ := follow(t, c, id); followed <- lines }()
				time.Sleep(3 * time.Second)
				close(goOn)
				if lines := <-followed; len(lines) != 3 || !strings.Contains(lines[2], "three") {
					t.Errorf("lines of a run that was followed: %q", lines)
				}
				for _, n := range []*stage.Node{a, b, c} {
					if res, err := n.Log(t.Context(), id, 2); err != nil || brief(res) != "2 3 two three" || res.IsEnd {
						t.Errorf("%s after its end: %+v %v", n.Name, res, err)
					}
					if res, err := n.Log(t.Context(), id, 4); err != nil || brief(res) != "4 3" || !res.IsEnd {
						t.Errorf("%s behind its end: %+v %v", n.Name, res, err)
					}
				}
				stage.Stop(t, a, c, b)
			})
		})
	}
}

// brief is a result as "from to messages".
func brief(res wire.LogResult) string {
	words := []string{fmt.Sprint(res.FromLineNum), fmt.Sprint(res.ToLineNum)}
	for line := range strings.Lines(res.LogContent) {
		f := strings.Fields(line)
		words = append(words, f[len(f)-1])
	}
	return strings.Join(words, " ")
}

// noHints is a store whose signals are all lost.
type noHints struct{}

func (noHints) Watch(context.Context, string) store.Signals { return store.Signals{} }
func (noHints) Poll() (scan, inbox time.Duration)           { return time.Second, 100 * time.Millisecond }

// TestLogOfABroadcast reads the log of each part at each node, at once.
func TestLogOfABroadcast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		nodes := []*stage.Node{stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j), stage.StartNode(t, st, "c", j)}
		for _, n := range nodes {
			stage.Must(t, n.Handle("say", func(_ context.Context, task *xxljob.Task) error { task.Log().Info(n.Name); return nil }))
		}
		time.Sleep(10 * time.Second)
		ran(t, nodes[0], xxljob.Job{Name: "all", Handler: "say", Route: "SHARDING_BROADCAST"})
		time.Sleep(2 * time.Second)
		said := map[string]bool{}
		var mu sync.Mutex
		var asking sync.WaitGroup
		for _, r := range stage.AllRuns(t, st) {
			for _, n := range nodes {
				asking.Go(func() {
					res, err := n.Log(t.Context(), r.ID, 1)
					f := strings.Fields(res.LogContent)
					if err != nil || len(f) == 0 {
						t.Errorf("%s about part %v: %q %v", n.Name, r.Sharding, res.LogContent, err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					said[r.Sharding.String()+" "+f[len(f)-1]] = true
				})
			}
		}
		asking.Wait()
		if len(said) != 3 {
			t.Errorf("each part has one log, wherever it is asked for: %v", said)
		}
		stage.Stop(t, nodes...)
	})
}

// TestNoLog goes through the runs whose logs are not to be had.
func TestNoLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shown, j := &farRuns{st: memory.New()}, &stage.Journal{}
		st := bent.StoreOf(shown.st, shown)
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		stage.Must(t, b.Handle("mute", stage.NothingToDo))
		attachLog(t, b, "broken", func(context.Context, wire.LogRequest) (wire.LogReturn, error) {
			return wire.LogReturn{}, errors.New("disk \x00 gone")
		})
		attachLog(t, b, "unwilling", func(context.Context, wire.LogRequest) (wire.LogReturn, error) {
			return wire.LogReturn{Code: wire.CodeFail, Msg: "no logs today"}, nil
		})
		time.Sleep(10 * time.Second)
		ctx := t.Context()
		_, err := a.Log(ctx, 1<<40, 1)
		if !errors.Is(err, xxljob.ErrNotFound) {
			t.Errorf("log of a run that is not there: %v", err)
		}
		mute := ran(t, a, xxljob.Job{Name: "mute", Handler: "mute"})
		job, err := a.AddJob(ctx, xxljob.Job{Name: "later", Handler: "mute"})
		stage.Must(t, err)
		later, err := a.Trigger(ctx, job.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)})
		stage.Must(t, err)
		for _, c := range []struct {
			what, why string
			run       int64
		}{
			{"that is planned", "not started", later[0]},
			{"that has logged nothing", "has none", mute},
			{"of an executor that fails", "disk \uFFFD gone", ran(t, a, xxljob.Job{App: "broken", Name: "broken", Handler: "quick"})},
			{"of an executor that refuses", "no logs today", ran(t, a, xxljob.Job{App: "unwilling", Name: "unwilling", Handler: "quick"})},
		} {
			for _, n := range []*stage.Node{a, b} {
				_, err := n.Log(ctx, c.run, 1)
				wantNoLog(t, c.what, err, c.why)
			}
		}
		stage.Must(t, a.Kill(ctx, later[0]))
		_, err = a.Log(ctx, later[0], 1)
		wantNoLog(t, "that was cancelled", err, "not started")
		shown.app.Store("another")
		_, err = a.Log(ctx, mute, 1)
		wantNoLog(t, "of an app that is gone", err, "app another is not attached any more")
		shown.app.Store("")
		shown.far.Store(true)
		_, err = a.Log(ctx, mute, 1)
		wantNoLog(t, "at a remote address", err, "http://far")
		stage.Stop(t, a, b)
	})
}

// farRuns shows runs as sent to a remote address, and questions as about runs of
// another app.
type farRuns struct {
	st  xxljob.Store
	far atomic.Bool
	app atomic.Value
}

func (f *farRuns) Run(ctx context.Context, id int64) (xxljob.Run, error) {
	r, err := f.st.Run(ctx, id)
	if f.far.Load() {
		r.Address = "http://far"
	}
	return r, err
}

func (f *farRuns) Inbox(ctx context.Context, inc string, after int64, limit int) (store.Inbox, error) {
	in, err := f.st.Inbox(ctx, inc, after, limit)
	if app, _ := f.app.Load().(string); app != "" {
		for i := range in.Asks {
			in.Asks[i].Run.App = app
		}
	}
	return in, err
}

// TestLogBeforeStart asks at a scheduler that has not started.
func TestLogBeforeStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		b := stage.StartNode(t, st, "b", j)
		stage.Must(t, b.Handle("say", func(_ context.Context, task *xxljob.Task) error { task.Log().Info("x"); return nil }))
		id := ran(t, b, xxljob.Job{Name: "say", Handler: "say"})
		a, err := xxljob.New(st, xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog()})
		stage.Must(t, err)
		if res, err := a.Log(t.Context(), id, 1); err != nil || brief(res) != "1 1 x" {
			t.Errorf("before Start: %q %v", brief(res), err)
		}
		stage.Stop(t, b)
		if res, err := b.Log(t.Context(), id, 1); err != nil || brief(res) != "1 1 x" {
			t.Errorf("its own log after Stop: %q %v", brief(res), err)
		}
		stage.Must(t, a.Stop(t.Context()))
	})
}

// TestLogPages follows logs that are larger than one answer, with lines that no
// store could keep as they are.
func TestLogPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		var lines []string
		for i := range 30_000 {
			lines = append(lines, fmt.Sprintf("line %d %s\n", i, strings.Repeat("é", i%100)))
		}
		lines[7], lines[8] = "a\x00b\xffc\n", strings.Repeat("é", 1<<20)+"\n"
		attachLog(t, b, "big", func(_ context.Context, req wire.LogRequest) (wire.LogReturn, error) {
			rest := lines[min(req.FromLineNum-1, len(lines)):]
			return wire.LogReturn{Code: wire.CodeSuccess, Result: wire.LogResult{FromLineNum: req.FromLineNum, ToLineNum: len(lines), LogContent: strings.Join(rest, "")}}, nil
		})
		time.Sleep(10 * time.Second)
		id := ran(t, a, xxljob.Job{App: "big", Name: "big", Handler: "quick"})
		want := append([]string(nil), lines...)
		want[7], want[8] = "a\uFFFDb\uFFFDc\n", strings.Repeat("é", 1<<19-1)+"\n"
		for _, n := range []*stage.Node{a, b} {
			got, pages := follow(t, n, id)
			for i, line := range got {
				got[i] = strings.TrimSuffix(line, "\n") + "\n"
			}
			if len(got) != len(want) {
				t.Fatalf("%s has read %d lines, want %d", n.Name, len(got), len(want))
			}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("%s, line %d: %.60q (%d bytes), want %.60q (%d bytes)", n.Name, i+1, got[i], len(got[i]), want[i], len(want[i]))
				}
			}
			if pages < 4 {
				t.Errorf("%s has read %d pages", n.Name, pages)
			}
		}
		stage.Stop(t, a, b)
	})
}
