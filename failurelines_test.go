package xxljob_test

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
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/xxljobtest"
)

// TestFailuresHaveALine: what has failed for good is in the log of the process, once a job and
// minute, with how many others there were; what is tried again is not.
func TestFailuresHaveALine(t *testing.T) {
	for _, tt := range []struct {
		name  string
		every time.Duration
		want  []string // the lines' runs_without_line
	}{
		{"a minute", 0, []string{"0", "5", "5"}}, // one each ten seconds
		{"half a minute", 30 * time.Second, []string{"0", "2", "2", "2", "2"}},
		{"none", -1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &stage.LogLines{}
				cfg := xxljob.Config{Logs: xxljob.LogConfig{FailuresEvery: tt.every}}
				log.LogTo(&cfg)
				s := xxljobtest.NewWith(t, xxljobtest.Options{Config: cfg, Handlers: map[string]xxljob.Handler{
					"bad": func(context.Context, *xxljob.Task) error { return errors.New("ledger is down\nand more") },
					"again": func(_ context.Context, k *xxljob.Task) error {
						return map[bool]error{true: errors.New("once")}[k.Attempt == 0]
					},
					"last": func(context.Context, *xxljob.Task) error { return xxljob.Permanent(errors.New("for good")) },
				}},
					xxljob.Job{Key: "bad", Name: "bad", Handler: "bad", Schedule: xxljob.Cron("0/10 * * * * ?")},
					xxljob.Job{Key: "again", Name: "again", Handler: "again", Retries: 1, Schedule: xxljob.Cron("0/10 * * * * ?")},
					xxljob.Job{Key: "last", Name: "last", Handler: "last", Retries: 3, Schedule: xxljob.Cron("0 0 0 1 1 ?")})
				time.Sleep(2*time.Minute + 15*time.Second)
				synctest.Wait()
				lines := log.With(`msg="xxljob: a run has failed"`, "key=bad", "app=test", "state=failed", "ledger is down", "level=WARN", "attempt=1")
				if len(lines) != len(tt.want) {
					t.Fatalf("%d lines:\n%s", len(lines), strings.Join(log.With("a run has"), "\n"))
				}
				for i, want := range tt.want {
					if !strings.Contains(lines[i], "runs_without_line="+want) || strings.Contains(lines[i], "and more") {
						t.Errorf("line %d is %s, want %s without", i, lines[i], want)
					}
				}
				if lines := log.With("key=again"); len(lines) != 0 {
					t.Errorf("attempts that are tried again have lines: %s", lines)
				}
				if _, err := s.TriggerJob(t.Context(), "", "last", xxljob.Trigger{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if lines := log.With("key=last", "for good"); len(lines) != min(1, len(tt.want)) {
					t.Errorf("the last attempt has %d lines", len(lines))
				}
			})
		})
	}
}

// TestTheEndOfABurstIsCounted: failures behind the last line of their job are counted in a line of their own
// once no other has come, and those that are left when the scheduler stops are then; a job whose next
// failure says it has no such line.
func TestTheEndOfABurstIsCounted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		every time.Duration
		lines int // that count what is left
	}{{"a minute", 0, 1}, {"half a minute", 30 * time.Second, 1}, {"none", -1, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &stage.LogLines{}
				cfg := xxljob.Config{Logs: xxljob.LogConfig{FailuresEvery: tt.every}}
				log.LogTo(&cfg)
				s := xxljobtest.NewWith(t, xxljobtest.Options{Config: cfg, Handlers: map[string]xxljob.Handler{
					"bad": func(context.Context, *xxljob.Task) error { return errors.New("ledger is down") },
				}},
					xxljob.Job{Key: "bad", Name: "bad", Handler: "bad"},
					xxljob.Job{Key: "goes-on", Name: "goes on", Handler: "bad", Schedule: xxljob.FixedRate(4 * time.Second)})
				fail := func(n int) {
					t.Helper()
					for range n {
						_, err := s.TriggerJob(t.Context(), "", "bad", xxljob.Trigger{})
						stage.Must(t, err)
						time.Sleep(time.Second)
					}
				}
				require := func(when string, lines, left int) {
					t.Helper()
					synctest.Wait()
					all := log.With(`msg="xxljob: further runs have failed"`, "level=WARN", "app=test", "key=bad", "last_run=")
					if len(all) != lines || lines > 0 && !strings.Contains(all[lines-1], fmt.Sprint("runs_without_line=", left)) {
						t.Errorf("%s: want %d lines, the last of them about %d runs: %q", when, lines, left, all)
					}
				}
				time.Sleep(time.Minute)
				fail(5)
				require("at once", 0, 0)
				time.Sleep(5 * time.Minute)
				require("later", tt.lines, 4)
				fail(3)
				require("at once again", tt.lines, 4)
				stage.Must(t, s.Stop(t.Context()))
				require("at Stop", 2*tt.lines, 2)
				if lines := log.With("further runs", "key=goes-on"); tt.lines == 0 && len(lines) != 0 || len(lines) > 1 {
					t.Errorf("a job that goes on to fail has its failures counted apart, before Stop: %q", lines)
				}
				if tt.lines == 0 {
					return
				}
				all := 0 // each failure has a line, or is counted in one
				for _, l := range log.With("key=bad") {
					n := 0
					_, text, _ := strings.Cut(l, "runs_without_line=")
					_, err := fmt.Sscan(text, &n)
					stage.Must(t, err)
					if all += n; strings.Contains(l, "a run has failed") {
						all++
					}
				}
				if all != 8 {
					t.Errorf("%d of 8 failures are in the log: %q", all, log.With("key=bad"))
				}
			})
		})
	}
}

// TestTheEndOfABurstOfSkipsIsCounted: so are records of skipped instants behind the last line of their job,
// apart from its failures.
func TestTheEndOfABurstOfSkipsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, log := memory.New(), &stage.LogLines{}
		cfg := xxljob.Config{App: "app", Limits: xxljob.Limits{MaxPlanned: 1}}
		log.LogTo(&cfg)
		s, err := xxljob.New(st, cfg)
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error {
			time.Sleep(5 * time.Second)
			return errors.New("ledger is down")
		}))
		ensured, err := s.EnsureJob(t.Context(), xxljob.Job{Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(time.Second)})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(90 * time.Second)
		stage.Must(t, s.StopJob(t.Context(), ensured.Job.ID))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		runs, err := st.Runs(t.Context(), xxljob.RunFilter{States: []xxljob.State{xxljob.StateSkipped}, Limit: 1000})
		stage.Must(t, err)
		all, closing := 0, log.With(`msg="xxljob: further instants were skipped"`, "level=WARN", "app=app", "key=k", fmt.Sprint("job=", ensured.Job.ID), "last_run=")
		for _, l := range append(log.With(`msg="xxljob: instants were skipped"`, "key=k"), closing...) {
			n := 0
			_, text, _ := strings.Cut(l, "records_without_line=")
			_, err := fmt.Sscan(text, &n)
			stage.Must(t, err)
			if all += n; strings.Contains(l, "xxljob: instants") {
				all++
			}
		}
		if len(closing) != 1 || all != len(runs) || all < 4 || len(log.With("further instants")) != 1 {
			t.Errorf("%d of %d records are in the log, and closing lines %q", all, len(runs), log.With("further instants"))
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestTheEndOfAChainHasALine: which attempt is the last is known when it ends, however many there were to be
// when it began; and a retry that is discarded or covered ends its chain in failure, unless somebody asked
// for that.
func TestTheEndOfAChainHasALine(t *testing.T) {
	retries := func(n int) func(*testing.T, *xxljobtest.Scheduler, xxljob.Job, []int64) {
		return func(t *testing.T, s *xxljobtest.Scheduler, job xxljob.Job, _ []int64) {
			job.Retries = n
			_, err := s.UpdateJob(t.Context(), job)
			stage.Must(t, err)
		}
	}
	trigger := func(t *testing.T, s *xxljobtest.Scheduler, job xxljob.Job, _ []int64) { stage.Trigger(t, s, job) }
	for _, tt := range []struct {
		name string
		job  xxljob.Job
		// first and later are for how long the handler works at its first call, which fails, and at others.
		first, later time.Duration
		fails        bool // the others too
		do           func(t *testing.T, s *xxljobtest.Scheduler, job xxljob.Job, ids []int64)
		want         []string // of the only line; none: no line
	}{
		{"the number is lowered while the first runs", xxljob.Job{Retries: 3}, 30 * time.Second, 0, true, retries(0), []string{"state=failed", "attempt=1", "ledger is down"}},
		{"it is raised", xxljob.Job{}, 30 * time.Second, 0, true, retries(1), []string{"state=failed", "attempt=2", "ledger is down"}},
		{"it is raised, and the second attempt succeeds", xxljob.Job{}, 30 * time.Second, 0, false, retries(1), nil},
		{"the retry is discarded", xxljob.Job{Retries: 1, RetryBackoff: xxljob.Backoff{First: 20 * time.Second}, Block: xxljob.BlockDiscardLater}, 0, time.Minute, false, trigger,
			[]string{"state=discarded", "attempt=2", "Discard Later"}},
		{"the retry is covered", xxljob.Job{Retries: 1, Block: xxljob.BlockCoverEarly}, 0, time.Minute, false, trigger, []string{"state=killed", "attempt=2", "Cover Early"}},
		{"the retry is killed", xxljob.Job{Retries: 1}, 0, time.Minute, false,
			func(t *testing.T, s *xxljobtest.Scheduler, _ xxljob.Job, ids []int64) {
				stage.Must(t, s.Kill(t.Context(), ids[0]))
			}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &stage.LogLines{}
				var cfg xxljob.Config
				log.LogTo(&cfg)
				var calls atomic.Int64
				tt.job.Key, tt.job.Name, tt.job.Handler = "k", "k", "h"
				s := xxljobtest.NewWith(t, xxljobtest.Options{Config: cfg, Handlers: map[string]xxljob.Handler{"h": func(ctx context.Context, _ *xxljob.Task) error {
					first := calls.Add(1) == 1
					works := tt.later
					if first {
						works = tt.first
					}
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(works):
					}
					if first || tt.fails {
						return errors.New("ledger is down")
					}
					return nil
				}}}, tt.job)
				job, err := s.Store.JobByKey(t.Context(), "test", "k")
				stage.Must(t, err)
				id := stage.Trigger(t, s, job)
				time.Sleep(10 * time.Second)
				tt.do(t, s, job, []int64{id})
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				lines := log.With(`msg="xxljob: a run has failed"`)
				if len(lines) != min(len(tt.want), 1) || len(lines) > 0 && len(log.With(append(tt.want, "a run has failed", "level=WARN", "app=test", "key=k", "runs_without_line=0")...)) != 1 {
					t.Errorf("lines %q, want one with %q", lines, tt.want)
				}
			})
		})
	}
}

// TestRefusedHasALine: so do runs that nobody takes.
func TestRefusedHasALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &stage.LogLines{}
		var cfg xxljob.Config
		log.LogTo(&cfg)
		s := xxljobtest.NewWith(t, xxljobtest.Options{Config: cfg, Handlers: map[string]xxljob.Handler{"h": func(context.Context, *xxljob.Task) error { return nil }}},
			xxljob.Job{Key: "nobodys", Name: "n", App: "far", Handler: "h"})
		job, err := s.Store.JobByKey(t.Context(), "far", "nobodys")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if lines := log.With(`msg="xxljob: a run has failed"`, "key=nobodys", "app=far", "state=refused", "no live executor"); len(lines) != 1 {
			t.Errorf("lines: %s", lines)
		}
		if lines := log.With(`msg="xxljob: the scheduler has started"`, "handlers=[h]", "zone=UTC", "store=*memory.Store", "level=INFO"); len(lines) != 1 {
			t.Errorf("the start has lines %s", lines)
		}
	})
}

// TestStartAndStopHaveALine: what the process is, for whoever looks for it later.
func TestStartAndStopHaveALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &stage.LogLines{}
		cfg := xxljob.Config{App: "shop", Node: "n1", Cluster: xxljob.ClusterConfig{Shards: 8}}
		log.LogTo(&cfg)
		s, err := xxljob.New(memory.New(), cfg)
		stage.Must(t, err)
		for _, name := range []string{"send", "close"} {
			stage.Must(t, s.Handle(name, stage.NothingToDo))
		}
		_, err = s.EnsureJobs(t.Context(), "shop", []xxljob.Job{{Key: "k", Name: "k", Handler: "send"}, {Key: "l", Name: "l", Handler: "close"}}, xxljob.EnsureOptions{})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(time.Minute)
		stage.Must(t, s.Stop(t.Context()))
		for _, want := range [][]string{
			{`msg="xxljob: the scheduler has started"`, "level=INFO", "node=n1", "app=shop", `handlers="[close send]"`, " jobs=2 ", "shards=8", "store=*memory.Store", "zone=UTC"},
			{`msg="xxljob: the scheduler has stopped"`, "level=INFO", "node=n1", "error=<nil>"},
		} {
			if lines := log.With(want...); len(lines) != 1 {
				t.Errorf("lines with %s: %s of %s", want, lines, log.With(want[0]))
			}
		}
	})
}

// TestStartNamesWhatThereIs: jobs that were defined one by one count, and handlers of executors that were
// attached are named, with their app.
func TestStartNamesWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &stage.LogLines{}
		cfg := xxljob.Config{App: "shop", Node: "n1"}
		log.LogTo(&cfg)
		s, err := xxljob.New(memory.New(), cfg)
		stage.Must(t, err)
		stage.Must(t, s.Handle("send", stage.NothingToDo))
		other, err := executor.New(executor.Config{App: "billing", Logger: stage.QuietLog()})
		stage.Must(t, err)
		for _, name := range []string{"charge", "book"} {
			stage.Must(t, other.Handle(name, stage.NothingToDo))
		}
		stage.Must(t, s.Attach(other))
		for range 2 { // of the same definition, which counts once
			_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "k", Name: "k", Handler: "send"})
			stage.Must(t, err)
		}
		_, err = s.AddJob(t.Context(), xxljob.Job{App: "billing", Key: "m", Name: "m", Handler: "charge"})
		stage.Must(t, err)
		_, err = s.EnsureJobs(t.Context(), "billing", []xxljob.Job{{Key: "l", Name: "l", Handler: "book"}}, xxljob.EnsureOptions{})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		want := []string{`msg="xxljob: the scheduler has started"`, "level=INFO", "node=n1", "app=shop", `handlers="[billing/book billing/charge send]"`, " jobs=3 ", "shards=", "store=*memory.Store", "zone=UTC"}
		if lines := log.With(want...); len(lines) != 1 {
			t.Errorf("the start has the lines %q", log.With(want[0]))
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestAppsWithoutExecutorsAreNamed: apps with enabled jobs that have had no executor for ten minutes are named
// once an hour, all in one line by one of the nodes; one that stops its jobs, or has somebody, is not.
func TestAppsWithoutExecutorsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, log := memory.New(), &stage.LogLines{}
		start := func(app string) xxljob.Scheduler {
			cfg := xxljob.Config{App: app, Node: "of-" + app}
			log.LogTo(&cfg)
			s, err := xxljob.New(st, cfg)
			stage.Must(t, err)
			stage.Must(t, s.Handle("work", stage.NothingToDo))
			stage.Must(t, s.Start(t.Context()))
			return s
		}
		nodes := []xxljob.Scheduler{start("one"), start("two")}
		for _, app := range []string{"one", "far", "away", "rests"} {
			_, err := nodes[0].AddJob(t.Context(), xxljob.Job{App: app, Key: "k", Name: "k", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Stopped: app == "rests"})
			stage.Must(t, err)
		}
		named := func(after time.Duration, want int, apps string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			lines := log.With("level=WARN", "have had no executor for ten minutes or more")
			if len(lines) != want || want > 0 && !strings.Contains(lines[want-1], "apps="+apps+" unnamed=0") {
				t.Errorf("%d lines, want %d, the last with %s: %q", len(lines), want, apps, lines)
			}
		}
		named(9*time.Minute, 0, "")
		named(6*time.Minute, 1, `"away, far"`)
		named(50*time.Minute, 1, `"away, far"`)
		named(15*time.Minute, 2, `"away, far"`)
		nodes = append(nodes, start("away"))
		named(70*time.Minute, 3, "far")
		for _, s := range nodes {
			stage.Must(t, s.Stop(t.Context()))
		}
	})
}
