package scenario_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestAppsWithoutExecutorsAreNamed: apps with enabled jobs, or runs that are due, for which nobody has been there for ten
// minutes are named once an hour, in one line of one node, also where nothing of them is due; those
// that are served, inside a scheduler or by a registration, and those without either are not.
func TestAppsWithoutExecutorsAreNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const line = "msg=\"xxljob: apps with enabled jobs"
		st, log := memory.New(), &stage.LogLines{}
		var nodes []xxljob.Scheduler
		for i := range 3 {
			cfg := xxljob.Config{App: "here", Node: fmt.Sprint("n", i)}
			log.LogTo(&cfg)
			s, err := xxljob.New(st, cfg)
			stage.Must(t, err)
			stage.Must(t, s.Handle("h", stage.NothingToDo))
			stage.Must(t, s.Start(t.Context()))
			nodes = append(nodes, s)
		}
		time.Sleep(time.Second) // none is left alone at the very moment of a look
		for _, app := range []string{"here", "far", "gone", "idle", "nobodys", "byhand", "unasked"} {
			job := xxljob.Job{App: app, Key: "k", Name: app, Handler: "h", Schedule: xxljob.Cron("0 0 0 1 1 ? 2040"), OnNoExecutor: xxljob.OnNoExecutorWait}
			if app == "byhand" || app == "unasked" {
				job.Schedule = xxljob.Schedule{}
			}
			job, err := nodes[0].AddJob(t.Context(), job)
			stage.Must(t, err)
			if app == "byhand" {
				stage.Trigger(t, nodes[0], job)
			}
			if app == "idle" {
				err := nodes[0].StopJob(t.Context(), job.ID)
				stage.Must(t, err)
			}
		}
		// far is served all the time, gone is until now.
		beat := func(apps ...string) {
			for _, app := range apps {
				stage.Must(t, st.PutAddresses(t.Context(), []store.Registration{{App: app, Address: "http://127.0.0.1:1/" + app}}))
			}
		}
		beat("far", "gone")
		serve := func(d time.Duration, apps ...string) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(30 * time.Second) {
				beat(apps...)
			}
		}
		serve(9*time.Minute, "far", "gone")
		if lines := log.With(line); len(lines) != 0 {
			t.Errorf("before ten minutes: %s", lines)
		}
		serve(6*time.Minute, "far", "gone")
		if lines := log.With(line, "level=WARN", "nobodys", "jobs=1"); len(lines) != 1 || len(log.With(line)) != 1 {
			t.Errorf("after ten minutes: %s", log.With(line))
		}
		serve(50*time.Minute, "far")
		if lines := log.With(line); len(lines) != 1 {
			t.Errorf("within an hour: %s", lines)
		}
		serve(20*time.Minute, "far")
		if lines := log.With(line); len(lines) != 2 || !strings.Contains(lines[1], `apps="byhand, gone, nobodys"`) {
			t.Errorf("after an hour: %s", lines)
		}
		for _, s := range nodes {
			stage.Must(t, s.Stop(t.Context()))
		}
	})
}

// TestAppsWithoutExecutorsAreNamedOnceAnHour: also where the node that has the first shard leaves every seven
// minutes, or is killed, and another one takes it: each hour has its line, and none has two.
func TestAppsWithoutExecutorsAreNamedOnceAnHour(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const line = "msg=\"xxljob: apps with enabled jobs"
				st, log := memory.New(), &stage.LogLines{}
				nodes := map[string]xxljob.Scheduler{}
				faults := map[string]*storetest.WholeFaults{}
				began := 0
				start := func() {
					began++
					name := fmt.Sprint("n", began)
					cfg := xxljob.Config{App: "here", Node: name}
					log.LogTo(&cfg)
					faults[name] = storetest.WrapWhole(st)
					s, err := xxljob.New(faults[name], cfg)
					stage.Must(t, err)
					stage.Must(t, s.Handle("h", stage.NothingToDo))
					stage.Must(t, s.Start(t.Context()))
					nodes[name] = s
				}
				end := func(name string) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					if err := nodes[name].Stop(ctx); err != nil && !killed {
						t.Error(err)
					}
					delete(nodes, name)
				}
				first := func() string {
					view, err := st.View(t.Context())
					stage.Must(t, err)
					for _, shard := range view.Shards {
						for _, n := range view.Nodes {
							if shard.ID == 0 && shard.Owner == n.Incarnation {
								return n.ID
							}
						}
					}
					return ""
				}
				for range 3 {
					start()
				}
				time.Sleep(time.Minute)
				_, err := nodes["n1"].AddJob(t.Context(), xxljob.Job{App: "far", Key: "k", Name: "far", Handler: "h", Schedule: xxljob.Cron("0 0 0 1 1 ? 2040")})
				stage.Must(t, err)
				moves := 0
				for time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) < 5*time.Hour+30*time.Minute {
					time.Sleep(7*time.Minute + 13*time.Second)
					last := first()
					if killed {
						faults[last].Pause(true)
						time.Sleep(2 * time.Minute)
						faults[last].Resume()
					}
					end(last)
					start()
					time.Sleep(30 * time.Second)
					if at := first(); at != last && at != "" {
						moves++
					} else {
						t.Fatalf("the first shard is at %q, and was at %q", at, last)
					}
				}
				lines := log.With(line, "apps=far", "jobs=1")
				var at []time.Time
				for _, l := range lines {
					_, text, _ := strings.Cut(l, "time=")
					text, _, _ = strings.Cut(text, " ")
					when, err := time.Parse(time.RFC3339, text)
					stage.Must(t, err)
					at = append(at, when)
				}
				if len(at) != 6 || moves < 20 {
					t.Fatalf("%d lines in five hours and a half, and %d moves: %v", len(at), moves, at)
				}
				for i := range at[1:] {
					if d := at[i+1].Sub(at[i]); d < 58*time.Minute || d > 62*time.Minute {
						t.Errorf("a line at %v, and the next at %v", at[i], at[i+1])
					}
				}
				for name := range nodes {
					end(name)
				}
			})
		})
	}
}

// TestAppsWithoutExecutorsAreNamedAfterAClockWasAhead: the line is held back by no clock that was ahead and is
// set right, whether the app had nobody before that or came to have nobody meanwhile, and also by a node that
// starts after it and goes by what the store has kept.
func TestAppsWithoutExecutorsAreNamedAfterAClockWasAhead(t *testing.T) {
	t.Parallel()
	for name, step := range clockSteps {
		for what, before := range map[string]time.Duration{"said before": 15 * time.Minute, "nobody since before": time.Minute, "nobody since then": 0} {
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ", ", what, ", restarted ", restarted), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						const line = "msg=\"xxljob: apps with enabled jobs"
						var clock movedClock
						st, log := clock.goingBy(), &stage.LogLines{}
						start := func(node string) xxljob.Scheduler {
							cfg := xxljob.Config{App: "here", Node: node}
							log.LogTo(&cfg)
							s, err := xxljob.New(st, cfg)
							stage.Must(t, err)
							stage.Must(t, s.Handle("h", stage.NothingToDo))
							stage.Must(t, s.Start(t.Context()))
							return s
						}
						s := start("a")
						add := func() {
							_, err := s.AddJob(t.Context(), xxljob.Job{App: "far", Key: "k", Name: "far", Handler: "h", Schedule: xxljob.Cron("0 0 0 1 1 ? 2040"), OnNoExecutor: xxljob.OnNoExecutorWait})
							stage.Must(t, err)
						}
						time.Sleep(time.Minute)
						if before > 0 {
							add()
						}
						time.Sleep(before)
						clock.move(step)
						time.Sleep(time.Minute) // longer than it is not believed
						if before == 0 {
							add()
						}
						time.Sleep(5 * time.Minute)
						clock.move(0)
						if restarted {
							stage.Must(t, s.Stop(t.Context()))
							s = start("b")
						}
						said := len(log.With(line))
						wait := 15 * time.Minute
						if said > 0 { // the next one comes an hour after it
							wait = 65 * time.Minute
						}
						time.Sleep(wait)
						lines := log.With(line, "apps=far")[said:]
						if len(lines) != 1 {
							t.Errorf("%d lines within %v after the clock was set right, and %d before: %s", len(lines), wait, said, log.With(line))
						}
						stage.Must(t, s.Stop(t.Context()))
					})
				})
			}
		}
	}
}

// TestARefusalIsHeldBackByNoClockThatWasAhead: an app loses its last executor while the store's clock is ahead.
// What waits for one, and what comes to wait, is refused as soon as it would have been without.
func TestARefusalIsHeldBackByNoClockThatWasAhead(t *testing.T) {
	t.Parallel()
	for name, step := range clockSteps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock movedClock
				st := clock.goingBy()
				n := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.App = "here" })
				far := stage.StartNode(t, st, "b", &stage.Journal{}, func(c *xxljob.Config) { c.App = "far" })
				stage.Must(t, far.Handle("h", stage.NothingToDo))
				job, err := far.AddJob(t.Context(), xxljob.Job{App: "far", Key: "k", Name: "k", Handler: "h", OnNoExecutor: xxljob.OnNoExecutorRefuse})
				stage.Must(t, err)
				time.Sleep(time.Minute)
				clock.move(step)
				time.Sleep(time.Minute)
				stage.Stop(t, far)
				time.Sleep(5 * time.Second)
				runs := []int64{stage.Trigger(t, n, job)}
				time.Sleep(5 * time.Second)
				clock.move(0)
				time.Sleep(5 * time.Second)
				runs = append(runs, stage.Trigger(t, n, job))
				time.Sleep(5 * time.Minute)
				for _, id := range runs {
					run, err := st.Run(t.Context(), id)
					stage.Must(t, err)
					if run.State != xxljob.StateRefused {
						t.Errorf("run %d is %s, want it refused", id, run.State)
					}
				}
				stage.Stop(t, n)
			})
		})
	}
}

// TestWhetherAJobIsEnsuredIsFoundOutInTurns: of an app that nobody has served yet and that has thousands of jobs a
// few pages are read at a time, whatever is due. Until it is known whether a node has ensured any of them what is
// due waits: for an executor where one is, and is refused where none is.
func TestWhetherAJobIsEnsuredIsFoundOutInTurns(t *testing.T) {
	t.Parallel()
	const jobs = 9500
	for _, ensured := range []bool{false, true} {
		t.Run(fmt.Sprint("ensured ", ensured), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				var mu sync.Mutex
				pages := map[time.Time]int{} // read at one moment
				s := stage.NewNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.App = "here" })
				s.Faults.Observe(func(_ context.Context, method string) {
					if method == "Jobs" {
						mu.Lock()
						defer mu.Unlock()
						pages[time.Now()]++
					}
				})
				stage.Must(t, s.Start(t.Context()))
				for i := range jobs {
					job := xxljob.Job{App: "far", Key: fmt.Sprint("k", i), Name: "k", Handler: "h"}
					if ensured && i == jobs-1 {
						job.Ensured = "somebody"
					}
					_, err := st.AddJob(t.Context(), job, nil)
					stage.Must(t, err)
				}
				time.Sleep(time.Second)
				job, err := st.JobByKey(t.Context(), "far", "k0")
				stage.Must(t, err)
				var runs []int64
				for range 20 {
					runs = append(runs, stage.Trigger(t, s, job))
				}
				time.Sleep(20 * time.Second)
				want := xxljob.StateRefused
				if ensured {
					want = xxljob.StatePlanned
				}
				for _, id := range runs {
					run, err := st.Run(t.Context(), id)
					stage.Must(t, err)
					if run.State != want {
						t.Fatalf("run %d is %s, want %s: %s", id, run.State, want, run.HandleMsg)
					}
				}
				mu.Lock()
				all := 0
				for at, n := range pages {
					if all += n; n > 3 {
						t.Errorf("at %v %d pages of jobs are read", at, n)
					}
				}
				mu.Unlock()
				if !ensured && all < 10 { // they are in no order
					t.Errorf("%d pages are read of %d jobs", all, jobs)
				}
				stage.Stop(t, s)
			})
		})
	}
}
