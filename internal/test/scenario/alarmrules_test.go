package scenario_test

// Which rule is told of what, and alarmers that fail, hang or do worse.

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// alarmFunc is an alarmer.
type alarmFunc func(ctx context.Context, m alarm.Message) error

func (f alarmFunc) Alarm(ctx context.Context, m alarm.Message) error { return f(ctx, m) }

func failsAlways(context.Context, *xxljob.Task) error { return errBoom }

// requireStatus checks the alarm status of a run.
func requireStatus(t *testing.T, what string, st xxljob.Store, id int64, want int) {
	t.Helper()
	run, err := st.Run(context.Background(), id)
	stage.Must(t, err)
	if run.AlarmStatus != want {
		t.Errorf("%s: alarm status %d, want %d", what, run.AlarmStatus, want)
	}
}

// TestAlarmsByRule: by app, by job, by cause; who is told of nothing has status 0.
func TestAlarmsByRule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var sinks []*sink
		rule := func(r alarm.Rule) func(*xxljob.Config) {
			s := &sink{began: time.Now()}
			sinks = append(sinks, s)
			r.Name, r.To = fmt.Sprint("rule-", len(sinks)), s
			return withRule(r)
		}
		f := startFailing(t, st, "a", failsAlways,
			rule(alarm.Rule{Apps: []string{"app"}, Causes: []alarm.Cause{alarm.Failed}}),
			rule(alarm.Rule{Apps: []string{"other"}}),
			rule(alarm.Rule{Jobs: []string{"app/two", "other/three"}}),
			rule(alarm.Rule{Apps: []string{"other"}, Jobs: []string{"app/two"}}),
			rule(alarm.Rule{Causes: []alarm.Cause{alarm.Attempt}}),
			rule(alarm.Rule{Causes: []alarm.Cause{alarm.Lost, alarm.Skipped}}))
		one := stage.TriggerNew(t, f, xxljob.Job{Key: "one", Name: "one", Handler: "try", Retries: 1})
		two := stage.TriggerNew(t, f, xxljob.Job{Key: "two", Name: "two", Handler: "try"})
		three := stage.TriggerNew(t, f, xxljob.Job{App: "other", Key: "three", Name: "three", Handler: "try"}) // nobody runs it: it is refused
		time.Sleep(2 * time.Minute)
		for _, s := range sinks { // those of different jobs come in any order
			s.mu.Lock()
			for i := range s.told {
				s.told[i], _, _ = strings.Cut(s.told[i], " @")
			}
			slices.Sort(s.told)
			s.mu.Unlock()
		}
		sinks[0].require(t, "the app's failures", "one failed x1", "two failed x1")
		sinks[1].require(t, "another app's, and that it has no executor", " trouble x1", "three failed x1")
		sinks[2].require(t, "two jobs", "three failed x1", "two failed x1")
		sinks[3].require(t, "a job that is not in the app")
		sinks[4].require(t, "attempts", "one attempt x1")
		sinks[5].require(t, "other causes")
		requireStatus(t, "one", st, one, store.AlarmSent)
		requireStatus(t, "two", st, two, store.AlarmSent)
		requireStatus(t, "three", st, three, store.AlarmSent)
		stage.Stop(t, f.Node)
	})
}

// TestAlarmsNobodyWants: there are no rows that no rule has a use for.
func TestAlarmsNobodyWants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		f := startFailing(t, st, "a", failsAlways, withRule(alarm.Rule{Name: "sink", To: s, Jobs: []string{"app/another"}}))
		id := stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try"})
		time.Sleep(time.Minute)
		s.require(t, "the rule")
		requireStatus(t, "the run", st, id, 0)
		requireNoAlarms(t, st)
		stage.Stop(t, f.Node)
	})
}

// requireNoAlarms checks that all alarms are done with.
func requireNoAlarms(t *testing.T, st xxljob.Store) {
	t.Helper()
	list, err := st.Alarms(context.Background(), stage.Observe(t, st).Shards, nil, 0, 100)
	stage.Must(t, err)
	if len(list) > 0 {
		t.Errorf("%d alarms and more are not done with, the first is %+v", len(list), list[0])
	}
}

// TestNoRules: no rows are kept, and nobody looks for any.
func TestNoRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := startFailing(t, st, "a", failsAlways)
		id := stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try", LateAfter: time.Second})
		time.Sleep(time.Hour)
		requireStatus(t, "the run", st, id, 0)
		requireNoAlarms(t, st)
		for _, method := range []string{"Alarms", "MarkAlarms", "ToldJobs", "OpenAlarms", "AddLate"} {
			if n := f.Faults.Calls(method); n > 0 {
				t.Errorf("%s is called %d times", method, n)
			}
		}
		stage.Stop(t, f.Node)
	})
}

// TestARuleThatAlwaysFails: the other tells once, and this one is given up after a day.
func TestARuleThatAlwaysFails(t *testing.T) {
	t.Parallel()
	if stage.Detector {
		t.Skip("days in which a rule fails, as in TestRecoveredIsTriedAgain: the race detector has nothing more to say of them")
	}
	synctest.Test(t, func(t *testing.T) {
		st, good, bad := memory.New(), &sink{began: time.Now()}, &sink{began: time.Now()}
		bad.err = func(int) error { return errBoom }
		f := startFailing(t, st, "a", failsAlways, withRule(alarm.Rule{Name: "good", To: good}), withRule(alarm.Rule{Name: "bad", To: bad}))
		id := stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try"})
		time.Sleep(23 * time.Hour)
		requireStatus(t, "after 23 hours", st, id, 0)
		time.Sleep(2 * time.Hour)
		good.require(t, "the other rule", "j failed x1 @0s")
		requireStatus(t, "after 25 hours", st, id, store.AlarmFailed)
		requireNoAlarms(t, st)
		bad.mu.Lock()
		n := bad.n
		bad.mu.Unlock()
		if n < 140 || n > 170 {
			t.Errorf("it was called %d times in a day, want a call each ten minutes", n)
		}
		time.Sleep(24 * time.Hour)
		bad.mu.Lock()
		defer bad.mu.Unlock()
		if bad.n != n {
			t.Errorf("it was called %d times more after it was given up", bad.n-n)
		}
		stage.Stop(t, f.Node)
	})
}

// TestAlarmersThatMisbehave: whatever one does, other rules and other jobs go on, and Stop returns.
func TestAlarmersThatMisbehave(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(ctx context.Context, free <-chan struct{}) error{
		"panics":                func(context.Context, <-chan struct{}) error { panic("boom") },
		"calls Goexit":          func(context.Context, <-chan struct{}) error { runtime.Goexit(); return nil },
		"waits for its context": func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() },
		"ignores its context":   func(_ context.Context, free <-chan struct{}) error { <-free; return nil },
	} {
		inBubble(t, name, func(t *testing.T) {
			st, good, free := memory.New(), &sink{began: time.Now()}, make(chan struct{})
			var calls, others atomic.Int64
			to := alarmFunc(func(ctx context.Context, m alarm.Message) error {
				if m.JobName == "bad" {
					calls.Add(1)
					return bad(ctx, free)
				}
				others.Add(1)
				return nil
			})
			f := startFailing(t, st, "a", failsAlways, withRule(alarm.Rule{Name: "bad", To: to, Timeout: 5 * time.Second}), withRule(alarm.Rule{Name: "good", To: good}))
			stage.TriggerNew(t, f, xxljob.Job{Name: "bad", Handler: "try"})
			time.Sleep(3 * time.Second)
			stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try"})
			time.Sleep(57 * time.Second)
			good.require(t, "the other rule", "bad failed x1 @0s", "j failed x1 @3s")
			if calls.Load() < 4 || others.Load() != 1 {
				t.Errorf("it was called %d times for the bad job and %d times for the other, want four or more, and once", calls.Load(), others.Load())
			}
			began := time.Now()
			stage.Stop(t, f.Node)
			if d := time.Since(began); d > 5*time.Second {
				t.Errorf("Stop took %v", d)
			}
			close(free)
		})
	}
}

// TestAlarmersThatHangAreBounded: eight calls of a rule at most are left behind, those that ignore
// their contexts included, and the other rules are told of all jobs.
func TestAlarmersThatHangAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, good, free := memory.New(), &sink{began: time.Now()}, make(chan struct{})
		var calls atomic.Int64
		to := alarmFunc(func(context.Context, alarm.Message) error { calls.Add(1); <-free; return nil })
		f := startFailing(t, st, "a", failsAlways, withRule(alarm.Rule{Name: "bad", To: to, Timeout: time.Second}), withRule(alarm.Rule{Name: "good", To: good}))
		for i := range 30 {
			stage.TriggerNew(t, f, xxljob.Job{Name: fmt.Sprint("j", i), Handler: "try"})
		}
		time.Sleep(time.Hour)
		if n := calls.Load(); n != 8 {
			t.Errorf("%d calls hang, want 8", n)
		}
		good.mu.Lock()
		n := len(good.told)
		good.mu.Unlock()
		if n != 30 {
			t.Errorf("the other rule was told of %d jobs, want 30", n)
		}
		close(free)
		time.Sleep(time.Hour)
		if n := calls.Load(); n < 30 {
			t.Errorf("once it does not hang any more it was called %d times in all, want all jobs", n)
		}
		requireNoAlarms(t, st)
		stage.Stop(t, f.Node)
	})
}

// TestAlarmOfAnotherName: a message says what the job was called when it happened, and goes to
// whom it had then, also where the job was removed meanwhile.
func TestAlarmOfAnotherName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		s.err = func(n int) error {
			if n <= 2 {
				return errBoom
			}
			return nil
		}
		f := startFailing(t, st, "a", failsAlways, withRule(alarm.Rule{Name: "sink", To: s}))
		job := addJob(t, f, xxljob.Job{Key: "k", Name: "before", AlarmEmail: "before@example.com"})
		gone := addJob(t, f, xxljob.Job{Key: "gone", Name: "gone", AlarmEmail: "gone@example.com"})
		stage.Trigger(t, f, job)
		id := stage.Trigger(t, f, gone)
		time.Sleep(500 * time.Millisecond)
		job.Name, job.Key, job.AlarmEmail = "after", "l", "after@example.com"
		_, err := f.UpdateJob(t.Context(), job)
		stage.Must(t, err)
		stage.Must(t, f.RemoveJob(t.Context(), gone.ID))
		time.Sleep(time.Minute)
		got := map[string]string{}
		for _, m := range s.messages() {
			got[m.JobName] = fmt.Sprint(m.JobKey, m.Emails)
		}
		if want := map[string]string{"before": "k[before@example.com]", "gone": "gone[gone@example.com]"}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("told %v, want %v", got, want)
		}
		requireStatus(t, "the run of the job that is gone", st, id, store.AlarmSent)
		requireNoAlarms(t, st)
		stage.Stop(t, f.Node)
	})
}

// TestAlarmEmails: blanks and empty ones are no addresses, and twenty are enough.
func TestAlarmEmails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		f := startFailing(t, st, "a", failsAlways, withRule(alarm.Rule{Name: "sink", To: s}))
		var many []string
		for i := range 30 {
			many = append(many, fmt.Sprintf("a%d@b", i))
		}
		for i, tt := range []struct {
			emails string
			want   []string
		}{
			{"", nil},
			{" , ,,", nil},
			{" a@example.com ,, b@example.com, ", []string{"a@example.com", "b@example.com"}},
			{strings.Join(many, ", "), many[:20]},
		} {
			stage.TriggerNew(t, f, xxljob.Job{Name: fmt.Sprint("j", i), Handler: "try", AlarmEmail: tt.emails})
			time.Sleep(time.Minute)
			s.mu.Lock()
			if got := s.all[len(s.all)-1].Emails; fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("%q: %q, want %q", tt.emails, got, tt.want)
			}
			s.mu.Unlock()
		}
		stage.Stop(t, f.Node)
	})
}
