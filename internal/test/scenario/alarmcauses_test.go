package scenario_test

// Each cause of an alarm from its beginning to the message.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// everyCause are those that a rule may name, but for that a job has recovered.
var everyCause = []alarm.Cause{alarm.Failed, alarm.Lost, alarm.Attempt, alarm.Skipped, alarm.Stopped, alarm.Late}

// newSink is an alarmer that notes each event by itself.
func newSink() (*sink, func(*xxljob.Config)) {
	s := &sink{began: time.Now()}
	return s, withRule(alarm.Rule{Name: "sink", To: s, Causes: everyCause, Window: -1})
}

// requireEvents compares the events of what was told, as "job cause state/attempt: text". Of a
// text that is wanted the beginning is enough.
func (s *sink) requireEvents(t *testing.T, st xxljob.Store, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, m := range s.all {
		if m.Count != len(m.Events) || m.ID == "" || m.Node == "" || m.First.IsZero() || m.Last.IsZero() {
			t.Errorf("message %+v is not of one node and all of its events", m)
		}
		for _, e := range m.Events {
			got = append(got, fmt.Sprintf("%s %s %s/%d: %s", m.JobName, e.Cause, e.State, e.Attempt, e.Text))
			if e.At.IsZero() {
				t.Errorf("event %+v has no time", e)
			}
			if e.RunID == 0 {
				continue
			}
			run, err := st.Run(context.Background(), e.RunID)
			stage.Must(t, err)
			if m.JobID != run.JobID || m.App != run.App || !e.Instant.Equal(run.Instant()) || e.Attempt != run.Attempt || run.State.Ended() && run.AlarmStatus != store.AlarmSent {
				t.Errorf("message %+v, event %+v is about %+v", m, e, run)
			}
		}
	}
	ok := len(got) == len(want)
	for i := range want {
		ok = ok && strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// inBubble runs the subtests that share nothing.
func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestAlarmOfASkip(t *testing.T) {
	t.Parallel()
	inBubble(t, "misfire", func(t *testing.T) {
		st := memory.New()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return nil })
		addJob(t, f, xxljob.Job{Name: "j", Schedule: xxljob.FixedRate(time.Minute), Misfire: xxljob.MisfireDoNothing})
		time.Sleep(90 * time.Second)
		stage.Stop(t, f.Node)
		time.Sleep(10 * time.Minute)
		s, rule := newSink()
		g := startFailing(t, st, "b", func(context.Context, *xxljob.Task) error { return nil }, rule)
		time.Sleep(30 * time.Second)
		s.requireEvents(t, st, "j skipped skipped/0: misfire, instants: 10")
		stage.Stop(t, g.Node)
	})
	inBubble(t, "backlog", func(t *testing.T) {
		st := memory.New()
		s, rule := newSink()
		f := startFailing(t, st, "a", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return nil }, rule, func(c *xxljob.Config) { c.Limits.MaxPlanned = 2 })
		addJob(t, f, xxljob.Job{Name: "j", Schedule: xxljob.Cron("* * * * * ?")})
		time.Sleep(time.Minute + time.Second/2)
		var want []string
		for _, r := range stage.AllOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StateSkipped}}) {
			want = append(want, fmt.Sprintf("j skipped skipped/0: backlog, instants: %d", r.Count))
		}
		if len(want) == 0 {
			t.Error("no instant was skipped")
		}
		s.requireEvents(t, st, want...)
		stage.StopShort(f.Node)
	})
	inBubble(t, "depth", func(t *testing.T) {
		st := memory.New()
		s, rule := newSink()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return nil }, rule)
		var first xxljob.Job
		for i := range store.MostDepth + 3 {
			job := addJob(t, f, xxljob.Job{Name: fmt.Sprint("j", i), Key: fmt.Sprint("j", i), ChildKeys: []string{fmt.Sprint("app/j", i+1)}})
			if i == 0 {
				first = job
			}
		}
		stage.Trigger(t, f, first)
		time.Sleep(time.Minute)
		s.requireEvents(t, st, "j33 skipped skipped/0: depth")
		stage.Stop(t, f.Node)
	})
	inBubble(t, "join", func(t *testing.T) {
		st := memory.New()
		s, rule := newSink()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return nil }, rule)
		one, two := addJob(t, f, xxljob.Job{Name: "one", Key: "one"}), addJob(t, f, xxljob.Job{Name: "two", Key: "two"})
		addJob(t, f, xxljob.Job{Name: "join", After: []int64{one.ID, two.ID}, AfterTimeout: time.Hour})
		stage.Trigger(t, f, one)
		time.Sleep(59 * time.Minute)
		s.requireEvents(t, st)
		time.Sleep(2 * time.Minute)
		s.requireEvents(t, st, "join skipped skipped/0: the window of ")
		stage.RequireText(t, "the event", s.messages()[0].Events[0].Text, store.IDRef(two.ID))
		stage.Stop(t, f.Node)
	})
}

// TestAlarmOfAStop: a job whose schedule cannot be evaluated stops by itself, and says so.
func TestAlarmOfAStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, rule := newSink()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return nil }, rule)
		time.Sleep(10 * time.Second)
		job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: "k", Name: "j", Handler: "try", Schedule: xxljob.Cron("broken"), AlarmEmail: "a@example.com", Next: time.Now().Add(time.Second)}, nil)
		stage.Must(t, err)
		time.Sleep(time.Minute)
		s.requireEvents(t, st, "j stopped /0: ")
		if m := s.messages()[0]; m.JobID != job.ID || m.JobKey != "k" || m.Cause != alarm.Stopped || len(m.Emails) != 1 || m.Events[0].RunID != 0 || !m.Events[0].Instant.IsZero() || m.Events[0].Text == "" {
			t.Errorf("told %+v", m)
		}
		stage.Must(t, f.RemoveJob(t.Context(), job.ID))
		stage.Stop(t, f.Node)
	})
}

// TestAlarmOfALostNode: another node tells of the run that was lost.
func TestAlarmOfALostNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, rule := newSink()
		gone := make(chan struct{})
		var f *failing
		f = startFailing(t, st, "a", func(context.Context, *xxljob.Task) error {
			f.Pause()
			<-gone
			return nil
		}, rule)
		id := stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try"})
		time.Sleep(time.Second)
		g := startFailing(t, st, "b", func(context.Context, *xxljob.Task) error { return nil }, rule)
		time.Sleep(10 * time.Minute)
		requireTree(t, "the run", st, id, "0 lost")
		s.requireEvents(t, st, "j lost lost/0: ")
		if by := s.messages()[0].Node; by != "b" {
			t.Errorf("%s tells of it, want b", by)
		}
		f.Resume()
		close(gone)
		time.Sleep(time.Minute)
		s.requireEvents(t, st, "j lost lost/0: ")
		stage.StopShort(f.Node)
		stage.StopShort(g.Node)
	})
}

// TestAlarmOfALateRun: of one that does not end, and of one that waits for it.
func TestAlarmOfALateRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, rule := newSink()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { time.Sleep(10 * time.Minute); return nil }, rule)
		job := addJob(t, f, xxljob.Job{Name: "j", LateAfter: 2 * time.Minute})
		stage.Trigger(t, f, job)
		time.Sleep(time.Minute)
		stage.Trigger(t, f, job)
		time.Sleep(50 * time.Second)
		s.requireEvents(t, st)
		time.Sleep(30 * time.Second)
		s.requireEvents(t, st, "j late started/0: it has started at ")
		time.Sleep(time.Minute)
		s.requireEvents(t, st, "j late started/0: it has started at ", "j late planned/0: it has not started")
		time.Sleep(time.Hour)
		s.requireEvents(t, st, "j late started/0: it has started at ", "j late planned/0: it has not started")
		stage.Stop(t, f.Node)
	})
}

// TestAlarmOfALateRunAtTheStart: a node that has just taken its shards looks for late runs in them, and not
// in what it saw of them before it had them.
func TestAlarmOfALateRunAtTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, rule := newSink()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { time.Sleep(30 * time.Second); return nil }, rule)
		stage.Trigger(t, f, addJob(t, f, xxljob.Job{Name: "j", LateAfter: time.Second}))
		time.Sleep(5 * time.Second)
		s.requireEvents(t, st, "j late started/0: it has started at ")
		stage.Stop(t, f.Node)
	})
}

// TestAlarmsAsInXXLJob: a rule that asks for attempts is told of each, and of kills and discards.
func TestAlarmsAsInXXLJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, rule := newSink()
		quiet := &sink{began: time.Now()}
		f := startFailing(t, st, "a", func(ctx context.Context, task *xxljob.Task) error {
			if task.JobName == "fails" {
				return errBoom
			}
			<-ctx.Done()
			return ctx.Err()
		}, rule, withRule(alarm.Rule{Name: "quiet", To: quiet}))
		stage.TriggerNew(t, f, xxljob.Job{Name: "fails", Handler: "try", Retries: 2, RetryBackoff: xxljob.Backoff{First: time.Minute}})
		time.Sleep(10 * time.Minute)
		id := stage.TriggerNew(t, f, xxljob.Job{Name: "killed", Handler: "try"})
		time.Sleep(time.Second)
		stage.Must(t, f.Kill(t.Context(), id))
		time.Sleep(time.Second)
		job := addJob(t, f, xxljob.Job{Name: "discards", Block: xxljob.BlockDiscardLater})
		stage.Trigger(t, f, job)
		time.Sleep(time.Second)
		stage.Trigger(t, f, job)
		time.Sleep(time.Second)
		s.requireEvents(t, st, "fails attempt failed/0: boom", "fails attempt failed/1: boom", "fails failed failed/2: boom", "killed attempt killed/0: ", "discards attempt discarded/0: ")
		quiet.require(t, "a rule of default causes", "fails failed x1 @2m0s")
		stage.StopShort(f.Node)
	})
}
