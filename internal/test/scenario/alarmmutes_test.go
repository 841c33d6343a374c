package scenario_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// mutedWorld is a node whose runs fail with the words of their parameters, and whose rule tells of each.
type mutedWorld struct {
	*testing.T
	st *memory.Store
	s  *sink
	f  xxljob.Scheduler
}

func newMutedWorld(t *testing.T) *mutedWorld { return newMutedWorldOf(t, memory.New()) }

func newMutedWorldOf(t *testing.T, st *memory.Store) *mutedWorld {
	w := &mutedWorld{T: t, st: st, s: &sink{began: time.Now()}}
	rule := alarm.Rule{Name: "sink", To: w.s, Window: -1, Causes: []alarm.Cause{alarm.Failed, alarm.Recovered}}
	f, err := xxljob.New(w.st, xxljob.Config{App: "app", Logger: stage.QuietLog(), Alarms: []alarm.Rule{rule}})
	stage.Must(t, err)
	w.f = f
	stage.Must(t, f.Handle("try", func(_ context.Context, task *xxljob.Task) error {
		if task.Param == "" {
			return nil
		}
		return errors.New(task.Param)
	}))
	stage.Must(t, f.Start(t.Context()))
	return w
}

func (w *mutedWorld) job(name string) xxljob.Job {
	w.Helper()
	j, err := w.f.AddJob(w.Context(), xxljob.Job{Name: name, Handler: "try"})
	stage.Must(w.T, err)
	return j
}

// fails runs a job, and returns the run once it has ended and all is told that is to be.
func (w *mutedWorld) fails(j xxljob.Job, words string) xxljob.Run {
	w.Helper()
	id, err := w.f.TriggerOne(w.Context(), j.ID, xxljob.Trigger{Param: &words})
	stage.Must(w.T, err)
	time.Sleep(30 * time.Second)
	r, err := w.st.Run(w.Context(), id)
	stage.Must(w.T, err)
	return r
}

func (w *mutedWorld) mute(m store.Mute) {
	w.Helper()
	m.Until = time.Now().Add(time.Hour)
	_, err := w.st.PutMute(xxljob.WithActor(w.Context(), "li.na"), m)
	stage.Must(w.T, err)
	time.Sleep(5 * time.Second)
}

// told is how many messages there were since it was asked last, and the text of the newest event.
func (w *mutedWorld) told() (n int, text string) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	n = len(w.s.all)
	if n > 0 && len(w.s.all[n-1].Events) > 0 {
		text = w.s.all[n-1].Events[0].Text
	}
	w.s.all = nil
	return n, text
}

func (w *mutedWorld) require(what string, n int, words string) {
	w.Helper()
	got, text := w.told()
	if got != n || !strings.Contains(text, words) || words == "" && strings.Contains(text, "muted") {
		w.Errorf("%s: told %d times, %q; want %d times, with %q", what, got, text, n, words)
	}
}

// TestAMutedJobIsNotTold: after one last message, which says so, until the mute is over or ended; what
// happens meanwhile is noted, and other jobs are told as before.
func TestAMutedJobIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMutedWorld(t)
		j, other := w.job("j"), w.job("other")
		w.fails(j, "boom")
		w.require("before", 1, "")
		w.mute(store.Mute{Key: store.MuteOfJob(j.ID), JobID: j.ID, Note: "a disk is on its way"})
		w.fails(j, "boom")
		w.require("the last", 1, "by li.na (a disk is on its way): no more of this is sent until then\nboom")
		for range 3 {
			if r := w.fails(j, "crash"); r.AlarmStatus != store.AlarmNotNeeded {
				t.Errorf("the alarm of run %d has the status %d", r.ID, r.AlarmStatus)
			}
		}
		w.require("muted", 0, "")
		w.fails(other, "boom")
		w.require("another job", 1, "boom")
		w.fails(j, "")
		w.require("it recovers, and that is told later", 0, "")
		time.Sleep(time.Hour)
		w.require("the mute is over", 1, "")
		w.fails(j, "crash")
		w.require("it fails again", 1, "crash")
		w.mute(store.Mute{Key: store.MuteOfJob(j.ID), JobID: j.ID})
		w.fails(j, "crash")
		w.fails(j, "crash")
		w.require("muted again", 1, "muted until")
		stage.Must(t, w.st.DropMute(t.Context(), store.MuteOfJob(j.ID)))
		time.Sleep(5 * time.Second)
		w.fails(j, "crash")
		w.require("unmuted", 1, "crash")
		stage.Must(t, w.f.Stop(context.WithoutCancel(t.Context())))
	})
}

// TestNoMuteIsOverByAFalseClock: while the store's clock is ahead, and is not trusted, a mute goes on; it is over
// at its time by the clock that is right.
func TestNoMuteIsOverByAFalseClock(t *testing.T) {
	for name, step := range clockSteps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock movedClock
				w := newMutedWorldOf(t, clock.goingBy())
				j := w.job("j")
				w.fails(j, "boom")
				w.require("before", 1, "")
				w.mute(store.Mute{Key: store.MuteOfJob(j.ID), JobID: j.ID})
				w.fails(j, "boom")
				w.require("the last", 1, "muted until")
				clock.move(step)
				for range 3 { // while the step is not believed, and when it is
					w.fails(j, "crash")
				}
				w.require("while the clock is ahead", 0, "")
				clock.move(0)
				w.fails(j, "crash")
				w.require("when it is set right", 0, "")
				time.Sleep(time.Hour)
				w.told() // what was put off
				w.fails(j, "crash")
				w.require("the mute is over", 1, "crash")
				stage.Must(t, w.f.Stop(context.WithoutCancel(t.Context())))
			})
		})
	}
}

// TestAMutedCauseIsNotTold: of all jobs that fail with that error there is one last message; another
// error of them is told.
func TestAMutedCauseIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMutedWorld(t)
		a, b := w.job("a"), w.job("b")
		for range 3 {
			w.fails(a, "dial tcp 10.0.0.1:5432: i/o timeout")
			w.fails(b, "dial tcp 10.0.0.2:5432: i/o timeout")
		}
		world, err := finding.Read(t.Context(), w.st)
		stage.Must(t, err)
		found := finding.Attention(world)
		if len(found) != 1 || len(found[0].Jobs) != 2 {
			t.Fatalf("found is %v", found)
		}
		w.told()
		m := store.Mute{Key: found[0].Key(), App: found[0].App}
		w.mute(m)
		w.fails(a, "dial tcp 10.0.0.3:5432: i/o timeout")
		w.require("the last", 1, "muted until")
		w.fails(b, "dial tcp 10.0.0.4:5432: i/o timeout")
		w.fails(a, "dial tcp 10.0.0.5:5432: i/o timeout")
		w.require("muted", 0, "")
		w.fails(a, "panic: nil map")
		w.require("another error", 1, "panic: nil map")
		mutes, err := w.st.Mutes(t.Context())
		stage.Must(t, err)
		world, err = finding.Read(t.Context(), w.st)
		stage.Must(t, err)
		for _, f := range finding.Attention(world) {
			if got := finding.Muted(mutes, f); (got != nil) != (f.Key() == m.Key) {
				t.Errorf("%v is muted: %v", f, got)
			}
		}
		stage.Must(t, w.f.Stop(context.WithoutCancel(t.Context())))
	})
}

// deafToMutes is a store that cannot say what is muted while it fails.
type deafToMutes struct {
	st    *memory.Store
	fails atomic.Bool
}

func (d *deafToMutes) Mutes(ctx context.Context) ([]store.Mute, error) {
	if d.fails.Load() {
		return nil, errors.New("not now")
	}
	return d.st.Mutes(ctx)
}

// TestAlarmsWhoseMutesCannotBeRead: what was read last counts for a minute, and then all is told rather than
// nothing.
func TestAlarmsWhoseMutesCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &mutedWorld{T: t, st: memory.New(), s: &sink{began: time.Now()}}
		deaf := &deafToMutes{st: w.st}
		st := bent.AllOf(deaf.st, deaf)
		f, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog(), Alarms: []alarm.Rule{{Name: "sink", To: w.s, Window: -1, Causes: []alarm.Cause{alarm.Failed}}}})
		stage.Must(t, err)
		w.f = f
		stage.Must(t, f.Handle("try", func(context.Context, *xxljob.Task) error { return errBoom }))
		stage.Must(t, f.Start(t.Context()))
		j := w.job("j")
		w.mute(store.Mute{Key: store.MuteOfJob(j.ID), JobID: j.ID})
		w.fails(j, "boom")
		w.fails(j, "boom")
		w.require("muted", 1, "muted until")
		deaf.fails.Store(true)
		w.fails(j, "boom")
		w.require("just then", 0, "")
		time.Sleep(time.Minute)
		w.fails(j, "boom")
		w.require("a minute later", 1, "")
		deaf.fails.Store(false)
		w.fails(j, "boom")
		w.require("they can be read again", 0, "")
		stage.Must(t, f.Stop(context.WithoutCancel(t.Context())))
	})
}

// TestEachRuleTellsTheLast: the node of one of two rules is away when a job is muted. What the other rule
// has not sent for that waits for it, so that it says the last, too.
func TestEachRuleTellsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMutedWorld(t)
		away := &sink{began: time.Now()}
		node := func() xxljob.Scheduler {
			s, err := xxljob.New(w.st, xxljob.Config{App: "other", Node: "other", Logger: stage.QuietLog(), Alarms: []alarm.Rule{{Name: "other", To: away, Apps: []string{"app"}, Window: -1, Causes: []alarm.Cause{alarm.Failed}}}})
			stage.Must(t, err)
			stage.Must(t, s.Start(t.Context()))
			time.Sleep(time.Second) // for its rule to be kept, and the node to be there
			return s
		}
		other := node()
		j := w.job("j")
		w.fails(j, "boom")
		stage.Must(t, other.Stop(t.Context()))
		w.mute(store.Mute{Key: store.MuteOfJob(j.ID), JobID: j.ID})
		for range 3 {
			w.fails(j, "boom")
		}
		w.require("the rule that is there", 2, "muted until")
		away.require(t, "before", "j failed x1 @1s")
		other = node()
		time.Sleep(time.Minute)
		if all := away.messages(); len(all) != 2 || !strings.Contains(all[1].Events[0].Text, "muted until") {
			t.Errorf("the rule that was away has told %+v", all)
		}
		w.fails(j, "boom")
		if n := len(away.messages()); n != 2 {
			t.Errorf("told %d times, want 2", n)
		}
		requireNoAlarms(t, w.st)
		stage.Must(t, other.Stop(context.WithoutCancel(t.Context())))
		stage.Must(t, w.f.Stop(context.WithoutCancel(t.Context())))
	})
}
