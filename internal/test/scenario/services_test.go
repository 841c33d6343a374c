package scenario_test

// Several services over one store, as on one Postgres with the default schema.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// ofApp has a node be one of a service with an alarm for its own app alone.
func ofApp(app string, s *sink) func(*xxljob.Config) {
	return func(c *xxljob.Config) {
		c.App, c.Alarms = app, []alarm.Rule{{Name: "oncall", To: s, Apps: []string{app}}}
	}
}

// hourly are jobs of an app that fail each hour.
func hourly(t *testing.T, n *stage.Node, app string, jobs int) {
	t.Helper()
	stage.Must(t, n.Handle("bad", failsAlways))
	for k := range jobs {
		_, err := n.AddJob(t.Context(), xxljob.Job{App: app, Key: fmt.Sprint("j", k), Name: fmt.Sprint(app, "-", k), Handler: "bad", Schedule: xxljob.Crontab("0 * * * *")})
		stage.Must(t, err)
	}
}

// TestDozenServices: each of a dozen services is told of all failures of its own app, and of no
// other's, whichever service has ended the run.
func TestDozenServices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const jobs = 20
		services := 12
		if stage.Detector {
			services = 4 // each of them runs the same code
		}
		time.Sleep(50 * time.Minute) // of an hour in which nobody fails
		st := memory.New()
		var nodes []*stage.Node
		var sinks []*sink
		ended := make([]atomic.Int64, services)
		for i := range services {
			s := &sink{began: time.Now()}
			app := fmt.Sprintf("svc%02d", i)
			n := stage.StartNode(t, st, app, &stage.Journal{}, ofApp(app, s), func(c *xxljob.Config) {
				c.Hooks.RunEnded = func(r xxljob.Run) {
					if r.App == app {
						ended[i].Add(1)
					}
				}
			})
			hourly(t, n, app, jobs)
			nodes, sinks = append(nodes, n), append(sinks, s)
		}
		time.Sleep(20 * time.Minute)
		for i, s := range sinks {
			app, all := fmt.Sprintf("svc%02d", i), s.messages()
			of := map[string]int{}
			for _, m := range all {
				of[m.App+m.JobKey]++
			}
			if n := ended[i].Load(); n != jobs {
				t.Errorf("the hook of %s is called for %d of its %d runs", app, n, jobs)
			}
			if len(all) != jobs || len(of) != jobs {
				t.Errorf("%s is told %d times of %d jobs, want %d", app, len(all), len(of), jobs)
			}
			for _, m := range all {
				if m.App != app {
					t.Errorf("%s is told of %s", app, m.App)
				}
			}
		}
		requireNoAlarms(t, st)
		for _, n := range nodes {
			stage.Stop(t, n)
		}
	})
}

// TestAlarmsOfAnAppThatIsDown: the only node of an app is killed with runs under way. Who ends them
// has no rule for the app, and so the alarms wait; the node that comes back tells of each once.
func TestAlarmsOfAnAppThatIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		other := stage.StartNode(t, st, "other", &stage.Journal{}, func(c *xxljob.Config) { c.App = "other" })
		down := stage.StartNode(t, st, "down", &stage.Journal{}, ofApp("app", s))
		stage.Must(t, down.Handle("hang", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return ctx.Err() }))
		time.Sleep(time.Minute) // until the other one knows the handler
		for i := range 5 {
			stage.TriggerNew(t, down, xxljob.Job{Name: fmt.Sprint("j", i), Handler: "hang"})
		}
		time.Sleep(time.Second)
		down.Pause()
		time.Sleep(time.Hour)
		s.require(t, "while it is down")
		back := stage.StartNode(t, st, "down", &stage.Journal{}, ofApp("app", s))
		time.Sleep(30 * time.Minute)
		told := map[string]int{}
		for _, m := range s.messages() {
			told[m.JobName+" "+string(m.Cause)]++
		}
		for i := range 5 {
			if what := fmt.Sprintf("j%d lost", i); told[what] != 1 {
				t.Errorf("told %v, want each lost run once", told)
				break
			}
		}
		requireNoAlarms(t, st)
		down.Resume()
		stage.StopShort(down)
		stage.Stop(t, back, other)
	})
}

// TestAlarmsOfAnAppThatStaysDown: nobody has the rule for a day and more. The alarm is given up, and
// a node that has no rules at all says so.
func TestAlarmsOfAnAppThatStaysDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s, log := memory.New(), &sink{began: time.Now()}, &stage.LogLines{}
		other := stage.StartNode(t, st, "other", &stage.Journal{}, log.LogTo, func(c *xxljob.Config) { c.App = "other" })
		down := stage.StartNode(t, st, "down", &stage.Journal{}, ofApp("app", s))
		stage.Must(t, down.Handle("hang", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return ctx.Err() }))
		time.Sleep(time.Minute)
		id := stage.TriggerNew(t, down, xxljob.Job{Name: "j", Handler: "hang"})
		time.Sleep(time.Second)
		down.Pause()
		time.Sleep(23 * time.Hour)
		requireStatus(t, "within a day", st, id, 0)
		time.Sleep(90 * time.Minute)
		requireStatus(t, "after it", st, id, store.AlarmFailed)
		if lines := log.With("level=WARN", "rules=[oncall]", "app=app"); len(lines) != 1 {
			t.Errorf("the log says %q", lines)
		}
		if all := other.Troubles(); len(all) != 1 || all[0].Cause != xxljob.TroubleUntold || all[0].App != "app" || !strings.Contains(all[0].Detail, "oncall") {
			t.Errorf("troubles %+v, want one of alarms that were given up", all)
		}
		time.Sleep(2 * time.Hour)
		if all := other.Troubles(); len(all) != 0 {
			t.Errorf("troubles %+v long after it", all)
		}
		requireNoAlarms(t, st)
		down.Resume()
		stage.StopShort(down)
		stage.Stop(t, other)
	})
}

// TestNodesOfOneAppWithOtherRules: both rules tell, each once, and each node names the other.
func TestNodesOfOneAppWithOtherRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, one, two := memory.New(), &sink{began: time.Now()}, &sink{began: time.Now()}
		var logs [2]stage.LogLines
		rule := func(causes ...alarm.Cause) alarm.Rule { return alarm.Rule{Name: "oncall", Causes: causes} }
		r1, r2 := rule(alarm.Failed), rule(alarm.Failed, alarm.Lost)
		r1.To, r2.To = one, two
		a := startFailing(t, st, "a", failsAlways, logs[0].LogTo, withRule(r1))
		b := startFailing(t, st, "b", failsAlways, logs[1].LogTo, withRule(r2))
		time.Sleep(time.Minute)
		for i := range 8 {
			stage.TriggerNew(t, a, xxljob.Job{Name: fmt.Sprint("j", i), Handler: "try"})
		}
		time.Sleep(40 * time.Minute)
		for name, s := range map[string]*sink{"the one": one, "the other": two} {
			if n := len(s.messages()); n != 8 {
				t.Errorf("%s is told %d times, want 8", name, n)
			}
		}
		for i := range logs {
			if lines := logs[i].With("level=WARN", "other rules", "oncall", []string{"b: ", "a: "}[i]); len(lines) != 1 {
				t.Errorf("node %d says %q", i, lines)
			}
		}
		requireNoAlarms(t, st)
		stage.Stop(t, a.Node)
		stage.Stop(t, b.Node)
	})
}

// TestHooksAtEachNodeOfAnApp: each replica hears of each run of its app once, whichever node has
// started and ended it, the start before the end, and of each record of what was skipped; one that has
// the app not attached hears of its own deeds alone.
func TestHooksAtEachNodeOfAnApp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const runs = 30
		st := memory.New()
		var mu sync.Mutex
		told, here := map[string]map[string][]string{}, map[string]int{}
		node := func(name, app string) *stage.Node {
			n := stage.StartNode(t, st, name, &stage.Journal{}, func(c *xxljob.Config) {
				c.App = app
				note := func(what string) func(xxljob.Run) {
					return func(r xxljob.Run) {
						mu.Lock()
						defer mu.Unlock()
						told[name][r.JobKey] = append(told[name][r.JobKey], what)
					}
				}
				c.Hooks = xxljob.Hooks{RunStarted: note("started"), RunEnded: note("ended"), RunSkipped: note("skipped")}
			})
			told[name] = map[string][]string{}
			events := n.Events(t.Context())
			go func() {
				for e := range events {
					if (e.Kind == xxljob.EventRunEnded || e.Kind == xxljob.EventRunSkipped) && e.Here {
						mu.Lock()
						here[e.Run.JobKey]++
						mu.Unlock()
					}
				}
			}()
			return n
		}
		nodes := []*stage.Node{node("a", "app"), node("b", "app"), node("c", "app"), node("d", "another")}
		time.Sleep(time.Minute)
		for i := range runs {
			handler := []string{"work", "nobody"}[i%2]
			job, err := stage.Elsewhere(t, st, "app").AddJob(t.Context(), xxljob.Job{Key: fmt.Sprint("j", i), Name: "j", Handler: handler})
			stage.Must(t, err)
			stage.Trigger(t, nodes[i%3], job)
			missed := xxljob.Job{App: "app", Key: fmt.Sprint("s", i), Name: "s", Handler: "work", GlueType: "BEAN", Route: "FIRST", Block: xxljob.BlockSerial, Schedule: xxljob.FixedRate(time.Hour), Misfire: xxljob.MisfireDoNothing, Next: time.Now().Add(-time.Minute)}
			_, err = st.AddJob(t.Context(), missed, nil)
			stage.Must(t, err)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		for i := range 2 * runs {
			key, want := fmt.Sprint("j", i), []string{"[started ended]", "[ended]"}[i%2]
			if i >= runs {
				key, want = fmt.Sprint("s", i-runs), "[skipped]"
			}
			for _, name := range []string{"a", "b", "c"} {
				if got := fmt.Sprint(told[name][key]); got != want {
					t.Errorf("%s is told of %s: %s, want %s", name, key, got, want)
				}
			}
			if here[key] != 1 {
				t.Errorf("%d nodes say that %s has ended there, want one", here[key], key)
			}
		}
		mu.Unlock()
		stage.Stop(t, nodes...)
	})
}

// TestAnAbsenceIsToldWhenSomebodyComes: all nodes of a service are away over an instant of its job. The
// nodes of another one see that and have no rule for it; the rule of the service itself tells that it was
// so, at the nodes that come first, in one message each with the same id. Nothing is told where nothing
// was due meanwhile, nor of a restart.
func TestAnAbsenceIsToldWhenSomebodyComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s, others, log, seen := memory.New(), &sink{began: time.Now()}, &sink{began: time.Now()}, &stage.LogLines{}, &stage.LogLines{}
		other := stage.StartNode(t, st, "other", &stage.Journal{}, ofApp("other", others), seen.LogTo)
		start := func(names ...string) (nodes []*stage.Node) {
			for _, name := range names {
				nodes = append(nodes, stage.NewNode(t, st, name, &stage.Journal{}, ofApp("app", s), log.LogTo))
			}
			for _, n := range nodes {
				stage.Must(t, n.Start(t.Context()))
			}
			return nodes
		}
		nodes := start("a", "b")
		_, err := nodes[0].AddJob(t.Context(), xxljob.Job{Key: "j", Name: "j", Handler: "work", Schedule: xxljob.Crontab("*/30 * * * *"), OnNoExecutor: xxljob.OnNoExecutorWait, Misfire: xxljob.MisfireFireOnceNow})
		stage.Must(t, err)
		for _, away := range []struct {
			until string
			d     time.Duration
			told  bool
		}{{"00:10:00", 15 * time.Minute, false}, {"00:29:50", 15 * time.Second, false}, {"00:50:00", 90 * time.Minute, true}} {
			sleepUntil(away.until)
			stage.Stop(t, nodes...)
			time.Sleep(away.d)
			if is := slices.ContainsFunc(other.Troubles(), func(x xxljob.Trouble) bool { return x.Cause == xxljob.TroubleNoExecutor && x.App == "app" }); !is && away.told {
				t.Errorf("%s: the other service has %v", away.until, other.Troubles())
			}
			s.require(t, "while nobody is there")
			nodes = start("a", "b")
			time.Sleep(5 * time.Minute)
			messages := s.messages()
			if !away.told {
				s.require(t, "after "+away.until)
				continue
			}
			if len(messages) == 0 || len(messages) > 2 {
				t.Fatalf("%d messages: %q", len(messages), s.told)
			}
			for _, m := range messages {
				text := m.Events[0].Text
				if m.Cause != alarm.TroubleOver || m.App != "app" || m.Trouble != string(xxljob.TroubleNoExecutor) || m.ID != messages[0].ID ||
					!strings.Contains(text, "1 jobs") || !strings.Contains(text, "lasted 1h30m") {
					t.Errorf("told %+v", m)
				}
			}
		}
		if lines := log.With("level=WARN", "cause=no-executor", "app=app", "until this node came"); len(lines) == 0 {
			t.Errorf("the log of the service that is back says nothing of it: %q", log.With("level=WARN"))
		}
		if lines := seen.With("T01:", "level=WARN", "cause=no-executor", "app=app"); len(lines) != 1 {
			t.Errorf("the log of the other service: %q", lines)
		}
		others.require(t, "by the rule of the other service")
		stage.Stop(t, append(nodes, other)...)
	})
}

// TestAnAbsenceOfManyJobs: what is told of such an absence counts all jobs of the app, and all runs that
// have waited, however many there are, and whether or not the store lists jobs by when they are due.
func TestAnAbsenceOfManyJobs(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(st *memory.Store) xxljob.Store{
		"by when they are due": func(st *memory.Store) xxljob.Store { return st },
		"by their ids":         func(st *memory.Store) xxljob.Store { return storetest.Wrap(st) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, log := memory.New(), &stage.LogLines{}
				start := func(app string) xxljob.Scheduler {
					cfg := xxljob.Config{App: app, Node: app}
					log.LogTo(&cfg)
					n, err := xxljob.New(wrap(st), cfg)
					stage.Must(t, err)
					stage.Must(t, n.Handle("work", stage.NothingToDo))
					stage.Must(t, n.Start(t.Context()))
					synctest.Wait()
					return n
				}
				other, n := start("other"), start("app")
				jobs := make([]xxljob.Job, 1500)
				for i := range jobs { // the first 1,000 are not due
					jobs[i] = xxljob.Job{App: "app", Key: fmt.Sprint(i), Name: fmt.Sprint(i), Handler: "work", Schedule: xxljob.Cron("0 0 0 1 6 ?")}
					if i >= 1000 {
						jobs[i].Schedule = xxljob.Crontab("30 0 * * *")
					}
				}
				ensured, err := n.EnsureJobs(t.Context(), "app", jobs, xxljob.EnsureOptions{})
				stage.Must(t, err)
				stage.Must(t, n.Stop(t.Context()))
				time.Sleep(time.Minute)
				for i := range 1200 {
					stage.Trigger(t, other, ensured[i].Job)
				}
				sleepUntil("01:00:00")
				n = start("app")
				time.Sleep(time.Minute)
				if lines := log.With("level=WARN", "cause=no-executor", "app=app", "until this node came: 500 jobs were not planned, and 1200 due runs"); len(lines) != 1 {
					t.Errorf("told %q", log.With("cause=no-executor"))
				}
				stage.Must(t, n.Stop(t.Context()))
				stage.Must(t, other.Stop(t.Context()))
			})
		})
	}
}

// TestHooksOfWhatANodeDidLast: the only other node stops, and its last handlers end while it does; then it
// is gone. The one that is left is told of each of these ends once, and that it was not here.
func TestHooksOfWhatANodeDidLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const jobs = 8
		st := memory.New()
		var mu sync.Mutex
		told := map[string][]string{}
		note := func(what string) func(xxljob.Run) {
			return func(r xxljob.Run) {
				mu.Lock()
				defer mu.Unlock()
				told[r.JobKey] = append(told[r.JobKey], what)
			}
		}
		release := make(chan struct{})
		node := func(name string, tune ...func(*xxljob.Config)) *stage.Node {
			n := stage.StartNode(t, st, name, &stage.Journal{}, tune...)
			stage.Must(t, n.Handle("hold", func(context.Context, *xxljob.Task) error { <-release; return nil }))
			return n
		}
		a := node("a", func(c *xxljob.Config) { c.Hooks = xxljob.Hooks{RunStarted: note("started"), RunEnded: note("ended")} })
		var here atomic.Int64
		events := a.Events(t.Context())
		go func() {
			for e := range events {
				if e.Kind == xxljob.EventRunEnded && e.Here {
					here.Add(1)
				}
			}
		}()
		b := node("b")
		time.Sleep(2 * time.Minute) // the shards are shared
		var ids []int64
		for i := range jobs {
			job, err := a.AddJob(t.Context(), xxljob.Job{Key: fmt.Sprint("j", i), Name: "j", Handler: "hold", Route: "LAST"})
			stage.Must(t, err)
			ids = append(ids, stage.Trigger(t, b, job))
		}
		time.Sleep(10 * time.Second)
		for _, id := range ids {
			if run, err := st.Run(t.Context(), id); err != nil || run.State.Ended() || run.Taken.IsZero() || !strings.Contains(run.Address, "local://b") {
				t.Fatalf("run %d is %v at %s, %v; want it under way at b", id, run.State, run.Address, err)
			}
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			stage.Stop(t, b)
		}()
		time.Sleep(2*time.Second + 300*time.Millisecond)
		close(release)
		<-gone
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		mu.Lock()
		for i := range jobs {
			if got := fmt.Sprint(told[fmt.Sprint("j", i)]); got != "[started ended]" {
				t.Errorf("a is told of j%d: %s", i, got)
			}
		}
		mu.Unlock()
		if n := here.Load(); n != 0 {
			t.Errorf("%d of them are said to have ended at a", n)
		}
		stage.Stop(t, a)
	})
}
