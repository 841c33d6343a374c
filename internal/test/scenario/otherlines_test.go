package scenario_test

import (
	"context"
	"errors"
	"fmt"
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
)

// TestFailuresOfAnAppAreInItsLogs: a process that has executors of an app has a line of what has gone
// wrong with its runs, whichever service has stored it; of no other app, and one a job and minute.
func TestFailuresOfAnAppAreInItsLogs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var nodes []*stage.Node
		var logs []*stage.LogLines
		for _, name := range []string{"a0", "a1", "b0"} {
			log := &stage.LogLines{}
			n := stage.StartNode(t, st, name, &stage.Journal{}, log.LogTo, func(c *xxljob.Config) { c.App = name[:1] })
			stage.Must(t, n.Handle("bad", func(context.Context, *xxljob.Task) error { return errors.New("ledger is down") }))
			nodes, logs = append(nodes, n), append(logs, log)
		}
		time.Sleep(2 * time.Minute)
		for k := range 8 { // of shards of all nodes
			for _, app := range []string{"a", "b"} {
				_, err := nodes[2].AddJob(t.Context(), xxljob.Job{App: app, Key: fmt.Sprint("j", k), Name: fmt.Sprint(app, k), Handler: "bad", Schedule: xxljob.Crontab("0 0 1 1 *")})
				stage.Must(t, err)
			}
		}
		for range 2 {
			for k := range 8 {
				for _, app := range []string{"a", "b"} {
					_, err := nodes[0].TriggerJob(t.Context(), app, fmt.Sprint("j", k), xxljob.Trigger{})
					stage.Must(t, err)
				}
			}
			time.Sleep(10 * time.Second)
		}
		// A refused run, which the node of the other service stores for the most part.
		for k := range 8 {
			job, err := nodes[2].AddJob(t.Context(), xxljob.Job{App: "a", Key: fmt.Sprint("r", k), Name: fmt.Sprint("r", k), Handler: "nobodys", Schedule: xxljob.Crontab("0 0 1 1 *")})
			stage.Must(t, err)
			_, err = nodes[2].Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
		}
		time.Sleep(45 * time.Second)
		for i, log := range logs {
			for _, app := range []string{"a", "b"} {
				for k := range 8 {
					want := 0
					if nodes[i].Name[:1] == app {
						want = 1
					}
					if lines := log.With("msg=\"xxljob: a run has failed\"", "app="+app+" ", fmt.Sprintf("key=j%d ", k)); len(lines) != want {
						t.Errorf("%s has %d lines of job %d of %s, want %d", nodes[i].Name, len(lines), k, app, want)
					}
				}
			}
			stored := len(log.With("msg=\"xxljob: a run has failed\"", "app=a ", "key=r", "state=refused"))
			if i < 2 && stored != 8 || i == 2 && (stored == 0 || stored > 8) {
				t.Errorf("%s has %d lines of refused runs", nodes[i].Name, stored)
			}
		}
		stage.Stop(t, nodes...)
		for i, log := range logs {
			if lines := log.With("looking for failures"); len(lines) != 0 {
				t.Errorf("%s: %s", nodes[i].Name, lines)
			}
		}
	})
}

// TestALostRunHasALine: in the log of the node that finds it lost, and in that of a process of its app.
func TestALostRunHasALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		gone := make(chan struct{})
		var nodes []*stage.Node
		var logs []*stage.LogLines
		for _, name := range []string{"a0", "a1", "b0"} {
			log := &stage.LogLines{}
			n := stage.StartNode(t, st, name, &stage.Journal{}, log.LogTo, func(c *xxljob.Config) { c.App = name[:1] })
			stage.Must(t, n.Handle("hang", func(context.Context, *xxljob.Task) error {
				n.Pause()
				<-gone
				return nil
			}))
			nodes, logs = append(nodes, n), append(logs, log)
		}
		time.Sleep(2 * time.Minute)
		owners := stage.Observe(t, st).Shards
		var job xxljob.Job
		for k := 0; job.ID == 0 || !strings.HasPrefix(owners[job.Shard].Owner, "b0-"); k++ { // so that it is b0 that finds it lost
			var err error
			job, err = nodes[2].AddJob(t.Context(), xxljob.Job{App: "a", Key: fmt.Sprint("k", k), Name: "k", Handler: "hang", Route: "FIRST", Schedule: xxljob.Crontab("0 0 1 1 *")})
			stage.Must(t, err)
		}
		id := stage.Trigger(t, nodes[2], job)
		time.Sleep(10 * time.Minute)
		run, err := st.Run(t.Context(), id)
		stage.Must(t, err)
		if run.State != xxljob.StateLost || !strings.Contains(run.Address, "a0") {
			t.Fatalf("the run is %v at %s", run.State, run.Address)
		}
		if view := stage.Observe(t, st); !strings.HasPrefix(view.Shards[job.Shard].Owner, "b0-") {
			t.Fatalf("the job's shard is %+v, want it at b0", view.Shards[job.Shard])
		}
		for i, want := range []int{0, 1, 1} {
			if lines := logs[i].With(`msg="xxljob: a run has failed"`, "level=WARN", "app=a ", "key="+job.Key+" ", fmt.Sprint("run=", id, " "), "state=lost "); len(lines) != want {
				t.Errorf("%s has %d lines of it, want %d: %q", nodes[i].Name, len(lines), want, lines)
			}
		}
		nodes[0].Resume()
		close(gone)
		time.Sleep(time.Minute)
		stage.StopShort(nodes[0])
		stage.Stop(t, nodes[1:]...)
	})
}

// TestADiscardedRetryIsInTheLogsOfItsApp: a retry that is discarded or covered has its line in each process of
// its app, whichever has stored that, and in no other service's; what is discarded or covered beside has none.
func TestADiscardedRetryIsInTheLogsOfItsApp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		block, state string
	}{{xxljob.BlockDiscardLater, "discarded"}, {xxljob.BlockCoverEarly, "killed"}} {
		t.Run(c.state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				var calls atomic.Int64
				var nodes []*stage.Node
				var logs []*stage.LogLines
				for _, name := range []string{"a0", "a1", "b0"} {
					log := &stage.LogLines{}
					n := stage.StartNode(t, st, name, &stage.Journal{}, log.LogTo, func(c *xxljob.Config) { c.App = name[:1] })
					stage.Must(t, n.Handle("h", func(ctx context.Context, _ *xxljob.Task) error {
						if calls.Add(1) == 1 {
							return errors.New("ledger is down")
						}
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(time.Minute):
							return nil
						}
					}))
					nodes, logs = append(nodes, n), append(logs, log)
				}
				time.Sleep(2 * time.Minute)
				job := xxljob.Job{App: "a", Key: "k", Name: "k", Handler: "h", Route: "FIRST", Block: c.block, Retries: 1, Schedule: xxljob.Crontab("0 0 1 1 *")}
				if c.state == "discarded" {
					job.RetryBackoff.First = 20 * time.Second
				}
				job, err := nodes[0].AddJob(t.Context(), job)
				stage.Must(t, err)
				for range 3 { // the last is discarded or covers the one before, with nothing to make up for
					stage.Trigger(t, nodes[0], job)
					time.Sleep(12 * time.Second)
				}
				time.Sleep(5 * time.Minute)
				runs, err := st.Runs(t.Context(), xxljob.RunFilter{JobID: job.ID})
				stage.Must(t, err)
				others := 0
				for _, r := range runs {
					others += stage.One(r.State.String() == c.state && r.Type != store.TriggerRetry)
				}
				if others == 0 {
					t.Fatalf("nothing else was %s", c.state)
				}
				for i, want := range []int{1, 1, 0} {
					lines := logs[i].With(`msg="xxljob: a run has failed"`)
					if len(lines) != want || len(logs[i].With("level=WARN", "app=a ", "key=k ", "state="+c.state+" ", "attempt=2 ")) != want {
						t.Errorf("%s has %d lines, want %d of the retry: %q", nodes[i].Name, len(lines), want, lines)
					}
				}
				stage.Stop(t, nodes...)
			})
		})
	}
}

// TestFailuresBehindAFloodAreInTheLogs: thousands of runs of another app go wrong in one moment, and all
// of them were planned later than a few of this one's: these have their lines nevertheless, each once.
func TestFailuresBehindAFloodAreInTheLogs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, log := memory.New(), &stage.LogLines{}
		a := stage.StartNode(t, st, "a", &stage.Journal{}, log.LogTo, func(c *xxljob.Config) { c.App = "a" })
		b := stage.StartNode(t, st, "b", &stage.Journal{}, func(c *xxljob.Config) { c.App = "b" })
		time.Sleep(2 * time.Minute)
		trigger := func(app string, runs int) {
			by := map[string]*stage.Node{"a": b, "b": a}[app] // which knows no handlers of the app
			job, err := by.AddJob(t.Context(), xxljob.Job{App: app, Key: fmt.Sprint("k", runs), Name: app, Handler: "nobodys"})
			stage.Must(t, err)
			for range runs {
				_, err = b.Trigger(t.Context(), job.ID, xxljob.Trigger{})
				stage.Must(t, err)
			}
		}
		for k := range 8 { // of shards of both nodes
			trigger("a", 1+k)
		}
		trigger("b", 6000)
		time.Sleep(3 * time.Minute)
		const line = "msg=\"xxljob: a run has failed\""
		for k := range 8 {
			if lines := log.With(line, "app=a ", fmt.Sprintf("key=k%d ", 1+k)); len(lines) != 1 {
				t.Errorf("%d lines of the job with %d runs: %q", len(lines), 1+k, lines)
			}
		}
		if lines := log.With(line, "app=b "); len(lines) > 1 {
			t.Errorf("%d lines of the other app, want one at most, of what was stored here", len(lines))
		}
		stage.Stop(t, a, b)
	})
}

// TestWhereNothingFailsNoRunIsRead: a node that looks for failures which others have stored is answered
// with none of those that it has seen before, however many are kept.
func TestWhereNothingFailsNoRunIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := &countsRunsRead{st: memory.New()}
		st := bent.StoreOf(read.st, read)
		a := stage.StartNode(t, st, "a", &stage.Journal{})
		b := stage.StartNode(t, st, "b", &stage.Journal{})
		job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Name: "j", Handler: "nobodys", Route: "FIRST"}, nil) // not asked for its handler
		stage.Must(t, err)
		for range 600 {
			_, err = a.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
		}
		time.Sleep(5 * time.Minute)
		if read.runs.Load() < 600 {
			t.Fatalf("%d runs were read of 600 that were refused", read.runs.Load())
		}
		read.calls.Store(0)
		read.runs.Store(0)
		time.Sleep(time.Minute)
		if calls, runs := read.calls.Load(), read.runs.Load(); calls == 0 || calls > 2*2*7 || runs != 0 {
			t.Errorf("%d runs are read a minute in %d calls", runs, calls)
		}
		stage.Stop(t, a, b)
	})
}

// countsRunsRead counts how often runs in a state are listed, and how many were.
type countsRunsRead struct {
	st          xxljob.Store
	calls, runs atomic.Int64
}

func (s *countsRunsRead) Runs(ctx context.Context, f store.RunFilter) ([]xxljob.Run, error) {
	runs, err := s.st.Runs(ctx, f)
	if len(f.States) > 0 {
		s.calls.Add(1)
		s.runs.Add(int64(len(runs)))
	}
	return runs, err
}

// TestNobodyLooksForFailuresAlone: a node that is alone reads nothing for lines of others, and neither
// does one that has none said.
func TestNobodyLooksForFailuresAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct {
			nodes int
			every time.Duration
			most  int64
		}{{1, 0, 0}, {2, -1, 0}, {2, 0, 2 * 2 * 7}} {
			st := memory.New()
			var nodes []*stage.Node
			var reads atomic.Int64
			for i := range x.nodes {
				n := stage.NewNode(t, st, fmt.Sprint("n", i), &stage.Journal{}, func(c *xxljob.Config) { c.Logs.FailuresEvery = x.every })
				n.Faults.Observe(func(_ context.Context, method string) {
					if method == "Runs" {
						reads.Add(1)
					}
				})
				stage.Must(t, n.Start(t.Context()))
				nodes = append(nodes, n)
			}
			time.Sleep(time.Minute)
			before := reads.Load()
			time.Sleep(time.Minute)
			if n := reads.Load() - before; n > x.most || x.most > 0 && n == 0 {
				t.Errorf("%d nodes read runs %d times a minute, want %d at most", x.nodes, n, x.most)
			}
			stage.Stop(t, nodes...)
		}
	})
}
