package scenario_test

// Alarms, seen from outside: what happens to jobs, and what an alarmer is told of it.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// sink is an alarmer that notes what it is told, and may refuse it.
type sink struct {
	mu    sync.Mutex
	began time.Time
	told  []string
	all   []alarm.Message
	err   func(n int) error // of the n-th call, from 1
	n     int
}

func (s *sink) Alarm(_ context.Context, m alarm.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.err != nil {
		if err := s.err(s.n); err != nil {
			return err
		}
	}
	s.told = append(s.told, fmt.Sprintf("%s %s x%d @%v", m.JobName, m.Cause, m.Count, time.Since(s.began).Round(time.Second)))
	s.all = append(s.all, m)
	return nil
}

// messages are those that it has taken.
func (s *sink) messages() []alarm.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// require compares what was told, and forgets it.
func (s *sink) require(t *testing.T, what string, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.told, want) {
		t.Errorf("%s: told %q, want %q", what, s.told, want)
	}
	s.told = nil
}

// withRule has a node send alarms.
func withRule(r alarm.Rule) func(*xxljob.Config) {
	return func(c *xxljob.Config) { c.Alarms = append(c.Alarms, r) }
}

// TestAlarmOfAFailure: of the last attempt, at once, and none of a run that succeeds in the end.
func TestAlarmOfAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		f := startFailing(t, st, "a", func(_ context.Context, task *xxljob.Task) error {
			if task.JobName == "heals" && task.Attempt == 2 {
				return nil
			}
			return errBoom
		}, withRule(alarm.Rule{Name: "sink", To: s}))
		pause := xxljob.Backoff{First: 10 * time.Second}
		id := stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try", Retries: 2, RetryBackoff: pause, AlarmEmail: "a@example.com, b@example.com"})
		heals := stage.TriggerNew(t, f, xxljob.Job{Name: "heals", Handler: "try", Retries: 2, RetryBackoff: pause})
		time.Sleep(time.Minute)
		s.require(t, "after a minute", "j failed x1 @20s")
		if len(s.all) == 0 {
			t.Fatal("nothing was told")
		}
		m := s.all[0]
		if len(m.Events) != 1 || m.Events[0].RunID != id+4 && m.Events[0].Attempt != 2 || m.Events[0].Text != "boom" || len(m.Emails) != 2 || m.Node != "a" || m.App != "app" {
			t.Errorf("told %+v", m)
		}
		tree, err := st.Tree(context.Background(), id)
		stage.Must(t, err)
		if last := tree[len(tree)-1]; last.AlarmStatus != 2 {
			t.Errorf("the alarm status of the last attempt is %d, want 2", last.AlarmStatus)
		}
		requireTree(t, "the run that heals", st, heals, "0 failed", "1 failed", "2 succeeded")
		stage.Stop(t, f.Node)
	})
}

// TestAlarmsAreTriedAgain: with pauses that grow, until the alarmer takes them.
func TestAlarmsAreTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		s.err = func(n int) error {
			if n == 3 {
				panic("a panic")
			}
			if n < 6 {
				return errors.New("not now")
			}
			return nil
		}
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return errBoom }, withRule(alarm.Rule{Name: "sink", To: s}))
		stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try"})
		time.Sleep(time.Hour)
		s.require(t, "after five errors", "j failed x1 @31s")
		stage.Stop(t, f.Node)
	})
}

// TestStormOfAlarms: one message a job and window, with a count; and one when it has recovered.
func TestStormOfAlarms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		end := time.Now().Add(11 * time.Minute)
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error {
			if time.Now().After(end) {
				return nil
			}
			return errBoom
		}, withRule(alarm.Rule{Name: "sink", To: s, Causes: []alarm.Cause{alarm.Failed, alarm.Recovered}}))
		addJob(t, f, xxljob.Job{Name: "j", Schedule: xxljob.FixedRate(7 * time.Second)})
		time.Sleep(30 * time.Minute)
		// The look whether it has recovered may come with the message before, or five seconds later.
		last := "j recovered x1 @15m7s"
		if len(s.messages()) == 5 {
			s.mu.Lock()
			if s.told[4] == "j recovered x1 @15m12s" {
				last = s.told[4]
			}
			s.mu.Unlock()
		}
		s.require(t, "after half an hour", "j failed x1 @7s", "j failed x42 @5m7s", "j failed x43 @10m7s", "j failed x8 @15m7s", last)
		stage.Stop(t, f.Node)
	})
}

// TestEachOfManyAlarms: where each event is a message of its own, each says what has happened,
// however many of one job wait; and so does the message of a rule that wants none of the newest.
func TestEachOfManyAlarms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, each, attempts := memory.New(), &sink{began: time.Now()}, &sink{began: time.Now()}
		refuse := func(int) error {
			if time.Since(each.began) < time.Minute {
				return errors.New("not now")
			}
			return nil
		}
		each.err, attempts.err = refuse, refuse
		f := startFailing(t, st, "a", func(_ context.Context, task *xxljob.Task) error { return errors.New("boom of " + task.Param) },
			withRule(alarm.Rule{Name: "each", To: each, Window: -1}),
			withRule(alarm.Rule{Name: "attempts", To: attempts, Causes: []alarm.Cause{alarm.Attempt}}))
		job := addJob(t, f, xxljob.Job{Name: "j", Handler: "try", Retries: 1, RetryBackoff: xxljob.Backoff{First: time.Second}})
		for n := range 15 {
			param := fmt.Sprint(n)
			_, err := f.Trigger(context.Background(), job.ID, xxljob.Trigger{Param: &param})
			stage.Must(t, err)
			time.Sleep(3 * time.Second)
		}
		time.Sleep(time.Hour)
		if len(each.messages()) != 15 || len(attempts.messages()) != 1 {
			t.Fatalf("%d and %d messages, want 15 and 1", len(each.messages()), len(attempts.messages()))
		}
		said := map[string]bool{}
		for _, m := range each.messages() {
			if len(m.Events) != 1 || m.Count != 1 || !m.Events[0].At.Equal(m.First) || m.Cause != alarm.Failed {
				t.Errorf("told %+v", m)
				continue
			}
			said[m.Events[0].Text] = true
		}
		if len(said) != 15 {
			t.Errorf("15 messages say %v", said)
		}
		if m := attempts.messages()[0]; m.Count != 15 || len(m.Events) != 10 || m.Events[0].Text != "boom of 14" || m.Events[9].Text != "boom of 5" {
			t.Errorf("told of attempts: %+v", m)
		}
		stage.Stop(t, f.Node)
	})
}
