package scenario_test

// What a node says of itself.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestStatsOfANode: runs that are held, that run and that wait, the lease, and the calls of the
// store with their errors.
func TestStatsOfANode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.App, c.Executor.Places = "app", 2 })
		stage.Must(t, a.Handle("slow", func(context.Context, *xxljob.Task) error { time.Sleep(time.Minute); return nil }))
		fresh := a.Stats()
		if fresh.Node != "a" || fresh.Held+fresh.Due+fresh.Calling+fresh.Away != 0 || len(fresh.Waiting)+len(fresh.Running) != 0 || fresh.Fast.Size == 0 || fresh.Slow.Size == 0 {
			t.Errorf("of a node without jobs: %+v", fresh)
		}
		time.Sleep(10 * time.Second)
		serial, err := a.AddJob(t.Context(), xxljob.Job{Name: "serial", Handler: "slow"})
		stage.Must(t, err)
		for range 3 {
			stage.Trigger(t, a, serial)
		}
		beside, err := a.AddJob(t.Context(), xxljob.Job{Name: "beside", Handler: "slow", Block: xxljob.BlockConcurrent})
		stage.Must(t, err)
		for range 3 {
			stage.Trigger(t, a, beside)
		}
		_, err = a.Trigger(t.Context(), beside.ID, xxljob.Trigger{At: time.Now().Add(4 * time.Second)})
		stage.Must(t, err)
		time.Sleep(time.Second)
		busy := a.Stats()
		if busy.Running["app"] != 2 || busy.Held != 5 || busy.Waiting["serial"] != 2 || busy.Waiting["place"] != 2 || busy.Shards == 0 || busy.LeaseLeft <= 0 {
			t.Errorf("with seven runs and two places: %+v", busy)
		}
		if c := busy.Calls["Start"]; c.Calls == 0 || c.Errors != 0 {
			t.Errorf("Start: %+v", c)
		}
		a.Faults.Inject("Finish", storetest.Fault{Delay: 300 * time.Millisecond, Before: true, Err: errors.New("away"), Calls: 2})
		time.Sleep(10 * time.Minute)
		done := a.Stats()
		if c := done.Calls["Finish"]; c.Errors != 2 || c.Calls < 5 || c.Longest < 300*time.Millisecond || c.Total < 600*time.Millisecond {
			t.Errorf("Finish: %+v", c)
		}
		if c := done.Calls["Start"]; c.Rows < 7 || c.Largest < 1 || uint64(c.Largest) > c.Rows || done.Calls["Scan"].Rows != 0 {
			t.Errorf("batches of Start: %+v, of Scan: %+v", c, done.Calls["Scan"])
		}
		if f := done.FaultStats; f.PickedUp+f.Adopted+f.Forgotten+f.Unplannable+f.Endless+f.Absent+f.AlarmsFailed+f.EventsDropped+f.ResultsRefused+f.RegistrationsRefused+f.Unread+f.TokensRefused+f.Untraced != 0 || len(f.Panics) != 0 {
			t.Errorf("of a node that is well: %+v", f)
		}
		if done.Held+done.Due != 0 || len(done.Waiting)+len(done.Running) != 0 || !done.At.Equal(time.Now()) || done.ClockOffset != 0 {
			t.Errorf("when all is done: %+v", done)
		}
		stage.Stop(t, a)
		if s := a.Stats(); s.Shards != 0 || s.Held != 0 {
			t.Errorf("once it is stopped: %+v", s)
		}
	})
}

// TestStatsOfWhatShouldNotHappen: a hook that panics, and a child that is not there.
func TestStatsOfWhatShouldNotHappen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) {
			c.Hooks.RunEnded = func(xxljob.Run) { panic("of a hook") }
		})
		time.Sleep(time.Second)
		child, err := a.AddJob(t.Context(), xxljob.Job{Name: "child", Handler: "work"})
		stage.Must(t, err)
		parent, err := a.AddJob(t.Context(), xxljob.Job{Name: "parent", Handler: "work", Children: []int64{child.ID}})
		stage.Must(t, err)
		stage.Must(t, a.RemoveJob(t.Context(), child.ID))
		for range 3 {
			stage.Trigger(t, a, parent)
			time.Sleep(time.Minute)
		}
		if s := a.Stats(); s.Panics["Hooks.RunEnded"] != 3 || len(s.Panics) != 1 || s.Absent != 3 {
			t.Errorf("%+v", s.FaultStats)
		}
		if s := a.Speaks("app", "http://10.0.0.1:9999"); s != "" {
			t.Errorf("an executor that nobody has called speaks %q", s)
		}
		stage.Stop(t, a)
	})
}

// wholeStore is a store that is all that a store may be. Reports cannot be added up there.
type wholeStore struct{ *memory.Store }

func (wholeStore) DropRuns(context.Context, time.Time) error { return nil }
func (wholeStore) FoldReports(context.Context) error         { return errors.New("not today") }

// TestStatsOfOptionalMethods: calls of what a store is beside a Store count like the others.
func TestStatsOfOptionalMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := xxljob.New(wholeStore{memory.New()}, xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog(), Logs: xxljob.LogConfig{InStore: true}})
		stage.Must(t, err)
		stage.Must(t, a.Handle("chat", func(_ context.Context, task *xxljob.Task) error { task.Log().Info("x"); return nil }))
		stage.Must(t, a.Start(context.Background()))
		time.Sleep(10 * time.Second)
		id := ran(t, a, xxljob.Job{Name: "chat", Handler: "chat"})
		_, err = a.Log(t.Context(), id, 1)
		stage.Must(t, err)
		time.Sleep(2 * time.Hour)
		_, err = a.DropRuns(t.Context(), xxljob.RunDrop{Apps: []string{"app"}, Before: time.Now()})
		stage.Must(t, err)
		calls := a.Stats().Calls
		for _, method := range []string{"AddLogPages", "LogPages", "DropRuns", "DropChanges", "DropEnded", "DropExpired", "RecordChange"} {
			if c := calls[method]; c.Calls == 0 || c.Errors > 0 {
				t.Errorf("%s: %+v", method, c)
			}
		}
		if c := calls["FoldReports"]; c.Calls < 10 || c.Errors != c.Calls {
			t.Errorf("FoldReports: %+v", c)
		}
		stage.Must(t, a.Stop(context.Background()))
	})
}
