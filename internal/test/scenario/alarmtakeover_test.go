package scenario_test

// Alarms, and definitions, at nodes that take over, and over stores that fail.

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
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// TestAlarmsOfATakeOver: what a node could not tell is told by the one that takes its shards,
// though no signal says that there is something to tell.
func TestAlarmsOfATakeOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s, bad := memory.New(), &sink{began: time.Now()}, &sink{began: time.Now()}
		bad.err = func(int) error { return errors.New("not from here") }
		fail := func(context.Context, *xxljob.Task) error { return errBoom }
		a := startFailing(t, st, "a", fail, withRule(alarm.Rule{Name: "sink", To: bad}))
		b := startFailing(t, st, "b", fail, withRule(alarm.Rule{Name: "sink", To: s}))
		time.Sleep(time.Minute)
		for _, n := range []string{"j1", "j2", "j3", "j4", "j5", "j6"} {
			stage.TriggerNew(t, a, xxljob.Job{Name: n, Handler: "try"})
		}
		time.Sleep(2 * time.Minute)
		stage.Stop(t, a.Node)
		time.Sleep(2 * time.Hour)
		if n := len(s.messages()); n != 6 {
			t.Errorf("told %d of 6", n)
		}
		stage.Stop(t, b.Node)
	})
}

// TestLateRunsOfATakeOver: who takes shards looks for late runs in them at once, though there was
// no job before that could be late.
func TestLateRunsOfATakeOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, rule := newSink()
		slow := func(context.Context, *xxljob.Task) error { time.Sleep(20 * time.Second); return nil }
		a := startFailing(t, st, "a", slow, rule)
		b := startFailing(t, st, "b", slow, rule)
		time.Sleep(time.Minute)
		own := map[int]bool{}
		for _, sh := range stage.Observe(t, st).Shards {
			own[sh.ID] = strings.HasPrefix(sh.Owner, "a-")
		}
		var job xxljob.Job
		for n := 0; !own[job.Shard] || job.ID == 0; n++ {
			var err error
			job, err = a.Node.AddJob(t.Context(), xxljob.Job{Key: fmt.Sprint("j", n), Name: "j", Handler: "try"})
			stage.Must(t, err)
		}
		job.LateAfter = 5 * time.Second
		_, err := a.Node.UpdateJob(t.Context(), job)
		stage.Must(t, err)
		for had := b.Faults.Calls("AddLate"); b.Faults.Calls("AddLate") == had; {
			time.Sleep(time.Second) // it has looked, and looks again in a minute
		}
		stage.Stop(t, a.Node)
		time.Sleep(10 * time.Second)
		stage.Trigger(t, b, job)
		time.Sleep(30 * time.Second)
		s.requireEvents(t, st, "j late started/0: it has started at ")
		stage.Stop(t, b.Node)
	})
}

// marksFail is a store whose MarkAlarms fails for three minutes.
type marksFail struct {
	st   *memory.Store
	mu   sync.Mutex
	from time.Time // guarded by mu
}

func (m *marksFail) since(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.from = at
}

func (m *marksFail) MarkAlarms(ctx context.Context, a store.AlarmMarks) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.from.IsZero() && time.Now().After(m.from) && time.Since(m.from) < 3*time.Minute {
		return errors.New("no writes")
	}
	return m.st.MarkAlarms(ctx, a)
}

// TestRecoveredOnceWhileNothingCanBeMarked: that a job has recovered is told once, however long
// the store cannot be told so.
func TestRecoveredOnceWhileNothingCanBeMarked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		marks, s := &marksFail{st: memory.New()}, &sink{began: time.Now()}
		st := bent.AllOf(marks.st, marks)
		var fails atomic.Bool
		fails.Store(true)
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error {
			if fails.Load() {
				return errBoom
			}
			return nil
		}, withRule(alarm.Rule{Name: "sink", To: s, Causes: []alarm.Cause{alarm.Failed, alarm.Recovered}}))
		job := addJob(t, f, xxljob.Job{Name: "j"})
		_, err := f.Trigger(context.Background(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(63 * time.Second)
		marks.since(time.Now())
		fails.Store(false)
		_, err = f.Trigger(context.Background(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(10 * time.Minute)
		if all := s.messages(); len(all) != 2 {
			t.Errorf("told %d times: %+v", len(all), all)
		}
		stage.Stop(t, f.Node)
	})
}

// TestAListWhoseChildIsRemoved: whoever has named a job may go on to do so after somebody has
// removed it.
func TestAListWhoseChildIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return nil })
		child := addJob(t, f, xxljob.Job{Name: "child"})
		jobs := []xxljob.Job{{Key: "p", Name: "p", Handler: "try", Children: []int64{child.ID}}}
		_, err := f.EnsureJobs(context.Background(), "", jobs, xxljob.EnsureOptions{})
		stage.Must(t, err)
		stage.Must(t, f.RemoveJob(context.Background(), child.ID))
		if _, err := f.EnsureJob(context.Background(), xxljob.Job{Key: "p", Name: "p", Handler: "try", Children: []int64{child.ID}}); err != nil {
			t.Errorf("EnsureJob: %v", err)
		}
		if _, err = f.EnsureJobs(context.Background(), "", jobs, xxljob.EnsureOptions{}); err != nil {
			t.Errorf("EnsureJobs of the very same list: %v", err)
		}
		stage.Stop(t, f.Node)
	})
}

// lateCommit shows the first alarm two minutes after its id was given, as a transaction does
// whose process was paused.
type lateCommit struct {
	st    *memory.Store
	began time.Time
}

func (l *lateCommit) Alarms(ctx context.Context, sh []store.Shard, rules []string, after int64, n int) ([]store.Alarm, error) {
	list, err := l.st.Alarms(ctx, sh, rules, after, n)
	if time.Since(l.began) < 2*time.Minute && len(list) > 0 && list[0].JobName == "slow" {
		list = list[1:]
	}
	return list, err
}

// TestAnAlarmThatIsCommittedLate: it is told of, however many with greater ids were read before.
func TestAnAlarmThatIsCommittedLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem, s := memory.New(), &sink{began: time.Now()}
		st := bent.AllOf(mem, &lateCommit{mem, time.Now()})
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return errBoom }, withRule(alarm.Rule{Name: "sink", To: s, Window: -1}))
		for _, n := range []string{"slow", "j"} {
			stage.TriggerNew(t, f, xxljob.Job{Name: n, Handler: "try"})
			time.Sleep(time.Second)
		}
		j2 := addJob(t, f, xxljob.Job{Name: "k"})
		for range 60 {
			_, err := f.Trigger(context.Background(), j2.ID, xxljob.Trigger{})
			stage.Must(t, err)
			time.Sleep(10 * time.Second)
		}
		stage.Stop(t, f.Node)
		for _, m := range s.messages() {
			if m.JobName == "slow" {
				return
			}
		}
		t.Errorf("told %d, and none of slow", len(s.messages()))
	})
}
