package scenario_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestRefusedRule: rules of alarms of which the store refuses one tell of what they want but for that
// one, which is a trouble by its name, and tells when the store keeps it. One of its store's that refuses
// them all holds nothing up, and is not asked without a pause.
func TestRefusedRule(t *testing.T) {
	t.Parallel()
	for _, refuses := range []string{"rule-7", "rule-"} {
		t.Run(refuses, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sinks := map[string]*sink{}
				a := stage.NewNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) {
					for i := range 20 {
						name, s := fmt.Sprint("rule-", i), &sink{began: time.Now()}
						c.Alarms, sinks[name] = append(c.Alarms, alarm.Rule{Name: name, To: s}), s
					}
				})
				stage.Must(t, a.Handle("try", failsAlways))
				remove := a.Faults.Inject("KeepRules", storetest.Fault{Poison: func(member any) bool {
					name := member.(store.AlarmRule).Name
					return strings.HasPrefix(name, refuses) && (name == refuses || strings.HasSuffix(refuses, "-"))
				}})
				stage.Must(t, a.Start(t.Context()))
				tell := func(what, job string, told func(rule string) bool) {
					t.Helper()
					stage.TriggerNew(t, a, xxljob.Job{Key: job, Name: job, Handler: "try"})
					time.Sleep(time.Minute)
					for rule, s := range sinks {
						n := 0
						for _, m := range s.messages() {
							n += stage.One(m.JobKey == job && m.Cause == alarm.Failed)
						}
						if n != stage.One(told(rule)) {
							t.Errorf("%s: %s has told of %s %d times", what, rule, job, n)
						}
					}
				}
				tell("while it is refused", "first", func(rule string) bool { return !strings.HasPrefix(rule, refuses) })
				all := a.Troubles()
				if len(all) != 1 || all[0].Cause != xxljob.TroubleRefused || all[0].App != "app" || !strings.Contains(all[0].Detail, "some rules of alarms, which tell of nothing: rule-") {
					t.Errorf("troubles %v", all)
				}
				stage.Must(t, a.Ready())
				calls := a.Faults.Calls("KeepRules")
				time.Sleep(time.Minute)
				if n := a.Faults.Calls("KeepRules") - calls; n > 6*20 {
					t.Errorf("%d calls in a minute", n)
				}
				remove()
				time.Sleep(time.Minute)
				tell("when it is kept", "second", func(string) bool { return true })
				if all := a.Troubles(); len(all) != 0 {
					t.Errorf("then troubles %v", all)
				}
				stage.Stop(t, a)
			})
		})
	}
}

// refusesNote is a store that does not take the troubles of one app.
type refusesNote struct {
	st *memory.Store
	on atomic.Bool
}

func (s *refusesNote) NoteTroubles(ctx context.Context, notes store.TroubleNotes) ([]bool, error) {
	if s.on.Load() && slices.ContainsFunc(notes.List, func(n store.TroubleNote) bool { return n.App == "far10" }) {
		return nil, fmt.Errorf("poisoned: %w", store.ErrRefused)
	}
	return s.st.NoteTroubles(ctx, notes)
}

// TestRefusedNote: troubles of which the store does not take one reach the rules of other nodes but for
// that one, as they begin and when they are over; and that one when the store takes it.
func TestRefusedNote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		poisoned := &refusesNote{st: st}
		poisoned.on.Store(true)
		sees := stage.StartNode(t, bent.AllOf(st, poisoned), "eyes", &stage.Journal{}, oneShard, func(c *xxljob.Config) { c.App = "eyes" })
		time.Sleep(time.Second) // it has the shard, and keeps it
		ops := stage.StartNode(t, st, "ops", &stage.Journal{}, oneShard, func(c *xxljob.Config) {
			c.App, c.Alarms = "ops", []alarm.Rule{{Name: "all", To: s, Causes: []alarm.Cause{alarm.Trouble}}}
		})
		var jobs []xxljob.Job
		for i := range 20 {
			job, err := sees.AddJob(t.Context(), xxljob.Job{App: fmt.Sprint("far", i), Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(10 * time.Second), OnNoExecutor: xxljob.OnNoExecutorWait, Misfire: xxljob.MisfireFireOnceNow})
			stage.Must(t, err)
			jobs = append(jobs, job)
		}
		time.Sleep(20 * time.Minute)
		requireTold := func(what string, cause alarm.Cause, others, refused int) {
			t.Helper()
			told := map[string]int{}
			for _, m := range s.messages() {
				told[m.App] += stage.One(m.Cause == cause)
			}
			for i, job := range jobs {
				want := others
				if i == 10 {
					want = refused
				}
				if told[job.App] != want {
					t.Errorf("%s: %s of %s was told %d times, want %d", what, cause, job.App, told[job.App], want)
				}
			}
		}
		requireTold("while one is refused", alarm.Trouble, 1, 0)
		for _, job := range jobs {
			stage.Must(t, sees.StopJob(t.Context(), job.ID))
		}
		time.Sleep(20 * time.Minute)
		requireTold("while one is refused", alarm.TroubleOver, 1, 0)
		for _, job := range jobs {
			stage.Must(t, sees.StartJob(t.Context(), job.ID))
		}
		time.Sleep(20 * time.Minute)
		poisoned.on.Store(false)
		time.Sleep(time.Hour)
		requireTold("once it is taken", alarm.Trouble, 2, 1)
		stage.Stop(t, sees, ops)
	})
}

// TestRefusedGivingUp: alarms that nobody has told of for a day are given up but for the one of which the
// store does not note that. Each is counted once.
func TestRefusedGivingUp(t *testing.T) {
	t.Parallel()
	if stage.Detector {
		t.Skip("a day in which nobody has a rule, as in TestAlarmsOfAnAppThatStaysDown: the race detector has nothing more to say of it")
	}
	synctest.Test(t, func(t *testing.T) {
		st, s, log := memory.New(), &sink{began: time.Now()}, &stage.LogLines{}
		other := stage.StartNode(t, st, "other", &stage.Journal{}, log.LogTo, func(c *xxljob.Config) { c.App = "other" })
		down := stage.StartNode(t, st, "down", &stage.Journal{}, ofApp("app", s))
		stage.Must(t, down.Handle("hang", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return ctx.Err() }))
		time.Sleep(time.Minute) // until the other one knows the handler
		var runs []int64
		for i := range 20 {
			runs = append(runs, stage.TriggerNew(t, down, xxljob.Job{Name: fmt.Sprint("j", i), Handler: "hang"}))
		}
		time.Sleep(time.Second)
		down.Pause()
		var bad atomic.Int64 // the first that is to be given up
		other.Faults.Inject("MarkAlarms", storetest.Fault{Poison: func(member any) bool {
			done, is := member.(store.AlarmDone)
			return is && (bad.CompareAndSwap(0, done.ID) || bad.Load() == done.ID)
		}})
		time.Sleep(25 * time.Hour)
		given := 0
		for _, id := range runs {
			run, err := st.Run(t.Context(), id)
			stage.Must(t, err)
			given += stage.One(run.AlarmStatus == store.AlarmFailed)
		}
		if given != len(runs)-1 {
			t.Errorf("%d alarms are given up, want %d", given, len(runs)-1)
		}
		counted, lines := 0, log.With("level=WARN", "alarms were given up", "rules=[oncall]")
		for _, l := range lines {
			_, text, _ := strings.Cut(l, " alarms=")
			text, _, _ = strings.Cut(text, " ")
			n, err := strconv.Atoi(text)
			stage.Must(t, err)
			counted += n
		}
		if counted != len(runs) {
			t.Errorf("%d alarms are counted as given up, want %d: %q", counted, len(runs), lines)
		}
		down.Resume()
		stage.StopShort(down)
		stage.Stop(t, other)
	})
}
