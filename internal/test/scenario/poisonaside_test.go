package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// TestRefusedAlarmMark: an alarm of which the store does not note that it was told holds up no
// other, and is told once.
func TestRefusedAlarmMark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var poisoned atomic.Int64
		st, s := memory.New(), &sink{began: time.Now()}
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return errBoom }, withRule(alarm.Rule{Name: "sink", To: s}))
		f.Node.Faults.Inject("MarkAlarms", storetest.Fault{Poison: func(member any) bool {
			told, ok := member.(store.AlarmTold)
			return ok && poisoned.CompareAndSwap(0, told.ID) || ok && told.ID == poisoned.Load() // the first one that is told
		}})
		for i := range 5 {
			stage.TriggerNew(t, f, xxljob.Job{Name: fmt.Sprint("j", i), Handler: "try"})
		}
		time.Sleep(time.Minute)
		stage.TriggerNew(t, f, xxljob.Job{Name: "later", Handler: "try"})
		time.Sleep(time.Hour)
		count := map[string]int{}
		for _, m := range s.messages() {
			count[m.JobName]++
		}
		for _, name := range []string{"j0", "j1", "j2", "j3", "j4", "later"} {
			if count[name] != 1 {
				t.Errorf("%s was told %d times", name, count[name])
			}
		}
		status := 0
		for _, r := range stage.AllRuns(t, st) {
			status += stage.One(r.AlarmStatus == 2)
		}
		if status != 5 {
			t.Errorf("of %d runs it is noted that their alarms were told, want 5", status)
		}
		stage.Stop(t, f.Node)
	})
}

// TestRefusedProgress: what the store does not take of one run is dropped, and holds up no other.
func TestRefusedProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log stage.LogLines
		a := stage.NewNode(t, memory.New(), "a", &stage.Journal{}, log.LogTo)
		stage.Must(t, a.Handle("far", func(ctx context.Context, task *xxljob.Task) error {
			for i := range 10 {
				task.Progress(10*i, "at it")
				time.Sleep(3 * time.Second)
			}
			return nil
		}))
		stage.Must(t, a.Start(t.Context()))
		var ids []int64
		for i := range 5 {
			ids = append(ids, stage.TriggerNew(t, a, xxljob.Job{Name: fmt.Sprint("j", i), Handler: "far"}))
		}
		a.Faults.Inject("SetProgress", storetest.Fault{Poison: func(member any) bool { return member.(store.Progress).RunID == ids[2] }})
		time.Sleep(29*time.Second + 500*time.Millisecond)
		for i, id := range ids {
			r, err := a.Faults.Run(t.Context(), id)
			stage.Must(t, err)
			if want := 90 * stage.One(i != 2); r.Progress != want {
				t.Errorf("run %d is at %d, want %d", i, r.Progress, want)
			}
		}
		if lines := log.With("the store refuses the progress of some runs"); len(lines) != 1 {
			t.Errorf("%d lines", len(lines))
		}
		stage.Stop(t, a)
	})
}

// poisonedLogs is a store that refuses pages of one run's log.
type poisonedLogs struct {
	*storetest.Faults
	xxljob.LogStore
	run atomic.Int64
}

func (s *poisonedLogs) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) ([]int64, error) {
	if slices.ContainsFunc(pages, func(p store.LogPage) bool { return p.RunID == s.run.Load() }) {
		return nil, fmt.Errorf("%w: %w", store.ErrRefused, errors.New("this run's"))
	}
	return s.LogStore.AddLogPages(ctx, pages, jobBytes)
}

// TestRefusedLogPage: lines that the store does not take of one run's log are given up, and hold up
// those of no other.
func TestRefusedLogPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		logs := &poisonedLogs{Faults: storetest.Wrap(st), LogStore: st}
		s, err := xxljob.New(logs, xxljob.Config{App: "app", Logger: stage.QuietLog(), Logs: xxljob.LogConfig{InStore: true}})
		stage.Must(t, err)
		stage.Must(t, s.Handle("says", func(ctx context.Context, task *xxljob.Task) error {
			for i := range 10 {
				task.Log().Info(fmt.Sprint("line ", i))
				time.Sleep(3 * time.Second)
			}
			return nil
		}))
		stage.Must(t, s.Start(t.Context()))
		var ids []int64
		for i := range 5 {
			ids = append(ids, stage.TriggerNew(t, s, xxljob.Job{Name: fmt.Sprint("j", i), Handler: "says"}))
		}
		logs.run.Store(ids[2])
		time.Sleep(time.Minute)
		for i, id := range ids {
			if r := stage.WaitFor(t, s, id, time.Second); r.State != xxljob.StateSucceeded {
				t.Errorf("run %d is %v", i, r.State)
			}
			pages, last, err := st.LogPages(t.Context(), id, 1, 100)
			stage.Must(t, err)
			if want := 10 * stage.One(i != 2); last != want {
				t.Errorf("of run %d there are %d lines in %d pages, want %d", i, last, len(pages), want)
			}
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}
