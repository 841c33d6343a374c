package scenario_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// progressBook is a store that notes when it was told how far each run is.
type progressBook struct {
	st    xxljob.Store
	mu    sync.Mutex
	calls int
	at    map[int64][]time.Time
}

func newProgressBook() *progressBook {
	return &progressBook{st: memory.New(), at: map[int64][]time.Time{}}
}

func (b *progressBook) SetProgress(ctx context.Context, list []store.Progress) error {
	b.mu.Lock()
	b.calls++
	for _, p := range list {
		b.at[p.RunID] = append(b.at[p.RunID], time.Now())
	}
	b.mu.Unlock()
	return b.st.SetProgress(ctx, list)
}

// check says how often the runs were written, and that none was twice within a second.
func (b *progressBook) check(t *testing.T) (calls int, writes map[int64]int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	writes = map[int64]int{}
	for id, at := range b.at {
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < time.Second {
				t.Errorf("run %d was written again after %v", id, gap)
			}
		}
		writes[id] = len(at)
	}
	return b.calls, writes
}

// counts says how far it is, a step each 70 ms, up to a hundred, and goes on where it is
// cancelled. At the last step it says no more that it is the last.
func counts(_ context.Context, task *xxljob.Task) error {
	for i := range 99 {
		task.Progress(i+1, fmt.Sprintf("%d of %d", i+1, task.RunID))
		time.Sleep(70 * time.Millisecond)
	}
	task.Progress(100, fmt.Sprintf("all of %d", task.RunID))
	return nil
}

// wantProgress checks how far a run is by its row, within what a second and a half of counts
// make: one second to be said, and half of one to be stored.
func wantProgress(t *testing.T, st xxljob.Store, id int64, percent int) {
	t.Helper()
	run, err := st.Run(t.Context(), id)
	stage.Must(t, err)
	text := fmt.Sprintf("%d of %d", run.Progress, id)
	if run.Progress == 100 {
		text = fmt.Sprintf("all of %d", id)
	}
	if run.Progress > percent || run.Progress < percent-30 || run.ProgressText != text {
		t.Errorf("run %d, which is %v, is at %d %%, %q; want %d or a little less", id, run.State, run.Progress, run.ProgressText, percent)
	}
}

// TestProgressShows: at this node and at another one, for twenty runs together, with one call
// of each node a second, and what was said last with the end.
func TestProgressShows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		book := newProgressBook()
		st := bent.StoreOf(book.st, book)
		a, b := stage.StartNode(t, st, "a", &stage.Journal{}), stage.StartNode(t, st, "b", &stage.Journal{})
		defer stage.Stop(t, a, b)
		stage.Must(t, a.Handle("here", counts))
		stage.Must(t, b.Handle("there", counts))
		time.Sleep(time.Minute)
		var ids []int64
		for i := range 20 {
			handler := []string{"here", "there"}[i%2]
			ids = append(ids, stage.TriggerNew(t, a, xxljob.Job{Name: fmt.Sprint(i), Handler: handler}))
		}
		for i := range 6 {
			time.Sleep(time.Second)
			synctest.Wait()
			for _, id := range ids {
				wantProgress(t, st, id, 1+(i+1)*1000/70)
			}
		}
		time.Sleep(time.Minute)
		for _, id := range ids {
			wantProgress(t, st, id, 100)
			run, err := st.Run(t.Context(), id)
			stage.Must(t, err)
			if run.State != xxljob.StateSucceeded || run.Progress != 100 {
				t.Errorf("run %d is %v at %d %%", id, run.State, run.Progress)
			}
			res, err := a.Log(t.Context(), id, 1)
			stage.Must(t, err)
			if n := strings.Count(res.LogContent, " INFO progress percent="); n != 8 || !strings.Contains(res.LogContent, "percent=100") || res.Progress.Percent != 100 {
				t.Errorf("run %d: %d lines, %+v\n%s", id, n, res.Progress, res.LogContent)
			}
		}
		calls, writes := book.check(t)
		if calls > 2*8 {
			t.Errorf("%d calls of the store in seven seconds by two nodes", calls)
		}
		for _, id := range ids {
			// What comes at the very moment of a call is stored a second later, with what is new by then.
			if n := writes[id]; n < 3 || n > 8 {
				t.Errorf("run %d was written %d times", id, n)
			}
		}
		if n := a.Faults.Calls("SetProgress"); n == 0 || n == calls {
			t.Errorf("node a made %d of %d calls", n, calls)
		}
	})
}

// TestProgressOfEndedRuns: that of a killed run is what it was at the kill, whatever its
// handler says behind it; so is that of one that ran out of time.
func TestProgressOfEndedRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		timeout time.Duration
		want    xxljob.State
	}{{"killed", 0, xxljob.StateKilled}, {"timed out", 3 * time.Second, xxljob.StateTimedOut}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				book := newProgressBook()
				st := bent.StoreOf(book.st, book)
				a := stage.StartNode(t, st, "a", &stage.Journal{})
				defer stage.Stop(t, a)
				stage.Must(t, a.Handle("counts", counts))
				id := stage.TriggerNew(t, a, xxljob.Job{Name: "j", Handler: "counts", Timeout: c.timeout})
				time.Sleep(2999 * time.Millisecond)
				if c.timeout == 0 {
					stage.Must(t, a.Kill(t.Context(), id))
				}
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				before, err := st.Run(t.Context(), id)
				stage.Must(t, err)
				if before.State != c.want || before.Progress != 43 {
					t.Errorf("the run is %v at %d %%", before.State, before.Progress)
				}
				_, writes := book.check(t)
				time.Sleep(time.Minute) // the handler goes on
				after, err := st.Run(t.Context(), id)
				stage.Must(t, err)
				if _, later := book.check(t); after.Progress != before.Progress || after.ProgressText != before.ProgressText || later[id] != writes[id] {
					t.Errorf("later it is at %d %%, written %d times after its end", after.Progress, later[id]-writes[id])
				}
			})
		})
	}
}

// TestProgressOfADeadNode: a lost run keeps what its node has stored last, also when the node
// comes back and goes on saying it.
func TestProgressOfADeadNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, b := stage.StartNode(t, st, "a", &stage.Journal{}), stage.StartNode(t, st, "b", &stage.Journal{})
		stage.Must(t, b.Handle("slow", func(_ context.Context, task *xxljob.Task) error {
			for i := range 100 {
				task.Progress(i+1, "")
				time.Sleep(3 * time.Second)
			}
			return nil
		}))
		time.Sleep(time.Minute)
		id := stage.TriggerNew(t, a, xxljob.Job{Name: "j", Handler: "slow"})
		time.Sleep(10 * time.Second)
		b.Faults.Pause(true)
		run := stage.WaitFor(t, a, id, 2*time.Minute)
		if run.State != xxljob.StateLost || run.Progress != 4 {
			t.Errorf("the run is %v at %d %%", run.State, run.Progress)
		}
		b.Faults.Resume()
		time.Sleep(5 * time.Minute)
		if run, err := st.Run(t.Context(), id); err != nil || run.State != xxljob.StateLost || run.Progress != 4 {
			t.Errorf("later the run is %v at %d %%, %v", run.State, run.Progress, err)
		}
		stage.Stop(t, a, b)
	})
}

// TestProgressWhileTheStoreHangs: neither handlers nor their results wait for it, and what
// was said last is there in the end. When the store answers again, so is what a run that goes
// on had said meanwhile.
func TestProgressWhileTheStoreHangs(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]storetest.Fault{
		"hangs": {Hang: make(chan struct{})}, "fails": {Before: true}, "loses answers": {After: true}, "is slow": {Delay: 4 * time.Second}, "answers late": {Late: 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if fault.Hang != nil {
					fault.Hang = make(chan struct{}) // of this bubble
				}
				st := memory.New()
				a := stage.StartNode(t, st, "a", &stage.Journal{})
				defer stage.Stop(t, a)
				stage.Must(t, a.Handle("counts", counts))
				stage.Must(t, a.Handle("once", func(ctx context.Context, task *xxljob.Task) error {
					task.Progress(50, "half")
					<-ctx.Done()
					return nil
				}))
				a.Faults.Inject("SetProgress", fault)
				began := time.Now()
				long := stage.TriggerNew(t, a, xxljob.Job{Name: "long", Handler: "once"})
				run := stage.WaitFor(t, a, stage.TriggerNew(t, a, xxljob.Job{Name: "j", Handler: "counts"}), time.Minute)
				if took := time.Since(began); took > 7*time.Second || run.State != xxljob.StateSucceeded || run.Progress != 100 {
					t.Errorf("the run was %v after %v, at %d %%", run.State, took, run.Progress)
				}
				a.Faults.Clear()
				time.Sleep(10 * time.Second)
				if run, err := st.Run(t.Context(), long); err != nil || run.Progress != 50 || run.ProgressText != "half" {
					t.Errorf("the long run is at %d %%, %q, %v", run.Progress, run.ProgressText, err)
				}
				if err := a.Ready(); err != nil {
					t.Error(err)
				}
				stage.Must(t, a.Kill(t.Context(), long))
			})
		})
	}
}

// TestProgressOfUserExecutors: whatever an executor of a user's says, and of whichever run, is
// bounded. One that wraps an executor of ours says what that says.
func TestProgressOfUserExecutors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a := stage.StartNode(t, st, "a", &stage.Journal{})
		defer stage.Stop(t, a)
		hostile := &stage.UserExecutor{Of: "hostile", OnRun: func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
			return wire.Success(), nil
		}}
		stage.Must(t, a.Attach(hostile))
		id := stage.TriggerNew(t, a, xxljob.Job{App: "hostile", Name: "j", Handler: "work"})
		time.Sleep(time.Second)
		admin := hostile.Admin.(interface {
			Progress(logID, logDateTim int64, p wire.Progress)
		})
		for _, other := range []int64{0, -1, id + 1, 1<<63 - 1} {
			admin.Progress(other, 0, wire.Progress{Percent: 1})
		}
		admin.Progress(id, 12345, wire.Progress{Percent: 1, Text: "of another date"})
		time.Sleep(5 * time.Second)
		if run, err := st.Run(t.Context(), id); err != nil || run.Progress != 0 {
			t.Errorf("%d %%, %v", run.Progress, err)
		}
		admin.Progress(id, 0, wire.Progress{Percent: 1e9, Text: "a\x00\xff" + strings.Repeat("x", 1<<20)})
		time.Sleep(5 * time.Second)
		if run, err := st.Run(t.Context(), id); err != nil || run.Progress != 100 || !strings.HasPrefix(run.ProgressText, "a\uFFFD\uFFFDxx") || len(run.ProgressText) > 3000 {
			t.Errorf("%d %%, %d bytes, %.20q, %v", run.Progress, len(run.ProgressText), run.ProgressText, err)
		}
		_, err := hostile.Admin.Callback(t.Context(), []wire.CallbackRequest{{LogID: id, HandleCode: 200, Progress: wire.Progress{Percent: -7, Text: "b\x00"}}})
		stage.Must(t, err)
		if run, err := st.Run(t.Context(), id); err != nil || run.State != xxljob.StateSucceeded || run.Progress != 0 || run.ProgressText != "b\uFFFD" {
			t.Errorf("at the end %v at %d %%, %q, %v", run.State, run.Progress, run.ProgressText, err)
		}

		ours, err := executor.New(executor.Config{App: "wrapped", Logger: stage.QuietLog()})
		stage.Must(t, err)
		defer ours.Stop(context.Background())
		stage.Must(t, ours.Handle("counts", counts))
		stage.Must(t, a.Attach(&logExecutor{ours, ours.Log}))
		id = stage.TriggerNew(t, a, xxljob.Job{App: "wrapped", Name: "j", Handler: "counts"})
		time.Sleep(3500 * time.Millisecond)
		wantProgress(t, st, id, 50)
	})
}

// TestProgressOverHTTP: of a run at a remote executor the row has what its executor said when
// somebody read its log, and what was said last with the result.
func TestProgressOverHTTP(t *testing.T) {
	s, st, admin := stage.OverHTTP(t, xxljob.Config{})
	half, over := make(chan struct{}), make(chan struct{})
	startRemote(t, st, admin, "steps", func(_ context.Context, task *xxljob.Task) error {
		task.Progress(50, "half <of it>\n错")
		close(half)
		<-over
		task.Progress(90, "nearly")
		return nil
	})
	job, err := s.AddJob(t.Context(), xxljob.Job{App: "remote", Name: "j", Handler: "steps", Schedule: xxljob.Manual()})
	stage.Must(t, err)
	id := stage.Trigger(t, s, job)
	<-half
	if run, err := st.Run(t.Context(), id); err != nil || run.Progress != 0 {
		t.Errorf("before anybody has read its log: %d %%, %v", run.Progress, err)
	}
	res, err := s.Log(t.Context(), id, 1)
	stage.Must(t, err)
	if want := (wire.Progress{Percent: 50, Text: "half <of it> 错"}); res.Progress != want || !strings.Contains(res.LogContent, `INFO progress percent=50 text="half <of it> 错"`) {
		t.Errorf("with its log: %+v\n%s", res.Progress, res.LogContent)
	}
	await.Until(t, "its row has it", func() bool {
		run, err := st.Run(t.Context(), id)
		return err == nil && run.Progress == 50 && run.ProgressText == "half <of it> 错"
	})
	close(over)
	run, err := s.Wait(t.Context(), id)
	stage.Must(t, err)
	if run.State != xxljob.StateSucceeded || run.Progress != 90 || run.ProgressText != "nearly" {
		t.Errorf("at the end it is %v at %d %%, %q", run.State, run.Progress, run.ProgressText)
	}
	if res, err := s.Log(t.Context(), id, 1); err != nil || res.Progress.Percent != 90 || strings.Count(res.LogContent, "INFO progress") != 2 {
		t.Errorf("its log at the end: %+v, %v\n%s", res.Progress, err, res.LogContent)
	}
}
