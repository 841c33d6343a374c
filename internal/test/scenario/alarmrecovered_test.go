package scenario_test

// Jobs that recover, and windows that outlive nodes.

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// andRecovered are causes of a rule that is told as well when a job has recovered.
var andRecovered = []alarm.Cause{alarm.Failed, alarm.Late, alarm.Recovered}

// mending is a handler that fails until it is mended.
type mending struct{ atomic.Bool }

func (m *mending) handle(context.Context, *xxljob.Task) error {
	if m.Load() {
		return nil
	}
	return errBoom
}

// TestRecoveredAtAnyTime: a job that fails and is mended soon after its node has come up, or much
// later, and again and again.
func TestRecoveredAtAnyTime(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, time.Hour} {
		inBubble(t, wait.String(), func(t *testing.T) {
			st, s, m := memory.New(), &sink{began: time.Now()}, &mending{}
			f := startFailing(t, st, "a", m.handle, withRule(alarm.Rule{Name: "sink", To: s, Causes: andRecovered, Window: time.Second}))
			job := addJob(t, f, xxljob.Job{Name: "j"})
			for range 3 {
				time.Sleep(wait)
				s.mu.Lock()
				s.began = time.Now()
				s.mu.Unlock()
				m.Store(false)
				stage.Trigger(t, f, job)
				time.Sleep(20 * time.Second)
				s.require(t, "while it fails", "j failed x1 @0s")
				m.Store(true)
				id := stage.Trigger(t, f, job)
				time.Sleep(20 * time.Second)
				s.mu.Lock()
				if len(s.told) != 1 || s.all[len(s.all)-1].Cause != alarm.Recovered {
					t.Errorf("once it is mended: told %q, want that it has recovered", s.told)
				} else if last, run := s.all[len(s.all)-1], stage.WaitFor(t, f, id, time.Second); !last.Last.Equal(run.Ended) || last.JobKey != job.Key || last.Count != 1 || len(last.Events) != 1 {
					t.Errorf("told %+v of run %+v", last, run)
				}
				s.told = nil
				s.mu.Unlock()
				stage.Trigger(t, f, job)
				time.Sleep(20 * time.Second)
				s.require(t, "when it has succeeded again")
			}
			stage.Stop(t, f.Node)
		})
	}
}

// TestRecoveredBehindWhatIsHeldBack: what was held back by the window is told first.
func TestRecoveredBehindWhatIsHeldBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s, m := memory.New(), &sink{began: time.Now()}, &mending{}
		f := startFailing(t, st, "a", m.handle, withRule(alarm.Rule{Name: "sink", To: s, Causes: andRecovered}))
		job := addJob(t, f, xxljob.Job{Name: "j"})
		stage.Trigger(t, f, job)
		time.Sleep(time.Minute)
		stage.Trigger(t, f, job)
		time.Sleep(time.Minute)
		m.Store(true)
		stage.Trigger(t, f, job)
		time.Sleep(2*time.Minute + 59*time.Second)
		s.require(t, "within the window", "j failed x1 @0s")
		time.Sleep(10 * time.Minute)
		s.mu.Lock()
		if len(s.told) != 2 || s.told[0] != "j failed x1 @5m0s" || s.all[2].Cause != alarm.Recovered {
			t.Errorf("behind the window: told %q, want the failure, and then that it has recovered", s.told)
		}
		s.mu.Unlock()
		stage.Stop(t, f.Node)
	})
}

// TestNotRecoveredByARunBefore: what began before the alarm does not show that a job has recovered.
func TestNotRecoveredByARunBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		f := startFailing(t, st, "a", func(_ context.Context, task *xxljob.Task) error {
			if task.Param == "long" {
				time.Sleep(10 * time.Minute)
				return nil
			}
			return errBoom
		}, withRule(alarm.Rule{Name: "sink", To: s, Causes: andRecovered}))
		job := addJob(t, f, xxljob.Job{Name: "j", Block: xxljob.BlockConcurrent})
		long := "long"
		_, err := f.Trigger(t.Context(), job.ID, xxljob.Trigger{Param: &long})
		stage.Must(t, err)
		time.Sleep(time.Minute)
		stage.Trigger(t, f, job)
		time.Sleep(time.Hour)
		s.require(t, "with a success of a run from before", "j failed x1 @1m0s")
		stage.Stop(t, f.Node)
	})
}

// TestALateRunRecovers: by its own success.
func TestALateRunRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { time.Sleep(10 * time.Minute); return nil },
			withRule(alarm.Rule{Name: "sink", To: s, Causes: andRecovered}))
		stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try", LateAfter: time.Minute})
		time.Sleep(time.Hour)
		if all := s.messages(); len(all) != 2 || all[0].Cause != alarm.Late || all[1].Cause != alarm.Recovered {
			t.Errorf("told %+v, want that it is late, and that it has recovered", all)
		}
		stage.Stop(t, f.Node)
	})
}

// TestRecoveredIsTriedAgain: and given up after a day like all others.
func TestRecoveredIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, fails := range []int{3, 1_000_000} {
		if fails == 3 && stage.Detector {
			continue // two days, in which nothing more happens
		}
		inBubble(t, fmt.Sprint(fails), func(t *testing.T) {
			st, s, m := memory.New(), &sink{began: time.Now()}, &mending{}
			s.err = func(n int) error {
				if n > 1 && n < 2+fails {
					return errBoom
				}
				return nil
			}
			f := startFailing(t, st, "a", m.handle, withRule(alarm.Rule{Name: "sink", To: s, Causes: andRecovered}))
			job := addJob(t, f, xxljob.Job{Name: "j"})
			stage.Trigger(t, f, job)
			time.Sleep(time.Minute)
			m.Store(true)
			stage.Trigger(t, f, job)
			time.Sleep(25 * time.Hour)
			s.mu.Lock()
			n, told := s.n, len(s.told)
			s.mu.Unlock()
			if fails == 3 && (n != 5 || told != 2) {
				t.Errorf("%d calls, told %q, want five, and that it has recovered", n, s.told)
			}
			if n > 200 {
				t.Errorf("%d calls in a day, want pauses that grow", n)
			}
			time.Sleep(24 * time.Hour)
			s.mu.Lock()
			if s.n != n {
				t.Errorf("%d calls more after a day", s.n-n)
			}
			s.mu.Unlock()
			stage.Stop(t, f.Node)
		})
	}
}

// TestWindowOutlivesTheNode: when a rule has told of a job last is the store's to know.
func TestWindowOutlivesTheNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, s := memory.New(), &sink{began: time.Now()}
		rule := withRule(alarm.Rule{Name: "sink", To: s})
		f := startFailing(t, st, "a", failsAlways, rule)
		job := addJob(t, f, xxljob.Job{Name: "j"})
		stage.Trigger(t, f, job)
		time.Sleep(30 * time.Second)
		stage.Trigger(t, f, job)
		time.Sleep(30 * time.Second)
		stage.Stop(t, f.Node)
		g := startFailing(t, st, "b", failsAlways, rule)
		time.Sleep(time.Minute)
		stage.Trigger(t, g, job)
		time.Sleep(time.Hour)
		s.require(t, "by two nodes", "j failed x1 @0s", "j failed x2 @5m0s")
		stage.Stop(t, g.Node)
	})
}

// TestWindowsMoveWithTheirShards: while nodes come and go, no rule tells of a job too early, and
// the counts add up.
func TestWindowsMoveWithTheirShards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var mu sync.Mutex
		last, count, by := map[string]time.Time{}, map[string]int{}, map[string]bool{}
		rule := withRule(alarm.Rule{Name: "sink", To: alarmFunc(func(_ context.Context, m alarm.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if at, ok := last[m.JobName]; ok && time.Since(at) < 5*time.Minute {
				t.Errorf("%s tells of %s %v after it was told last", m.Node, m.JobName, time.Since(at))
			}
			last[m.JobName], by[m.Node] = time.Now(), true
			count[m.JobName] += m.Count
			return nil
		})})
		f := startFailing(t, st, "a", failsAlways, rule)
		var jobs []xxljob.Job
		for i := range 20 {
			jobs = append(jobs, addJob(t, f, xxljob.Job{Name: fmt.Sprint("j", i), Schedule: xxljob.FixedRate(20 * time.Second)}))
		}
		time.Sleep(7 * time.Minute)
		g := startFailing(t, st, "b", failsAlways, rule)
		time.Sleep(7 * time.Minute)
		stage.Stop(t, f.Node)
		time.Sleep(7 * time.Minute)
		h := startFailing(t, st, "c", failsAlways, rule)
		time.Sleep(7 * time.Minute)
		stage.Stop(t, g.Node) // who holds the rule tells; the next one does when it is gone
		time.Sleep(7 * time.Minute)
		for _, job := range jobs {
			stage.Must(t, h.StopJob(t.Context(), job.ID))
		}
		time.Sleep(10 * time.Minute)
		mu.Lock()
		for _, job := range jobs {
			if n := len(stage.AllOf(t, st, xxljob.RunFilter{JobID: job.ID, States: []xxljob.State{xxljob.StateFailed, xxljob.StateLost, xxljob.StateRefused}})); count[job.Name] != n {
				t.Errorf("told of %d failures of %s, want %d", count[job.Name], job.Name, n)
			}
		}
		if len(by) != 3 {
			t.Errorf("told by %v, want three nodes", by)
		}
		mu.Unlock()
		requireNoAlarms(t, st)
		stage.Stop(t, h.Node)
	})
}
