package scenario_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// forgetful acknowledges what is said of one job's runs and keeps nothing of it, as
// a database that fails over to a standby which had not received it.
type forgetful struct {
	st     xxljob.Store
	starts bool         // the starts too, not the results only
	job    atomic.Int64 // whose runs; 0 for none
}

func (s *forgetful) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	if !s.starts || starts[0].JobID != s.job.Load() {
		return s.st.Start(ctx, dst, starts)
	}
	answers := make([]store.Started, len(starts))
	for i, st := range starts {
		r, err := s.st.Run(ctx, st.RunID)
		if err != nil {
			return nil, err
		}
		r.State, r.Owner, r.Token, r.Address = st.State, st.Owner, st.Token, st.Address
		r.Handler, r.Block, r.Started, r.Taken = st.Handler, st.Block, time.Now(), time.Now()
		answers[i] = store.Started{Status: store.StartOK, Run: r}
	}
	return answers, nil
}

func (s *forgetful) Finish(ctx context.Context, dst []xxljob.Run, results []store.Result) ([]xxljob.Run, error) {
	r, err := s.st.Run(ctx, results[0].RunID)
	if err != nil || r.JobID != s.job.Load() {
		return s.st.Finish(ctx, dst, results)
	}
	r.State = results[0].State
	return []xxljob.Run{r}, nil
}

// TestResultForgotten: a run whose end the store has acknowledged and then forgotten
// ends as lost. It is not run again, and its job goes on.
func TestResultForgotten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		starts bool
		left   xxljob.State // behind the fail-over
	}{
		"the result":               {false, xxljob.StateStarted},
		"the start and the result": {true, xxljob.StatePlanned},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone, j := &forgetful{st: stage.NeverAlone{Store: memory.New()}, starts: c.starts}, &stage.Journal{}
				st := bent.StoreOf(gone.st, gone)
				a := stage.StartNode(t, st, "a", j)
				time.Sleep(3 * time.Second)
				stage.AddSeconds(t, a, 1) // so that there is something to scan for
				job, err := a.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "work"})
				stage.Must(t, err)
				gone.job.Store(job.ID)
				id := stage.Trigger(t, a, job)
				time.Sleep(time.Second)
				if r, err := st.Run(t.Context(), id); err != nil || r.State != c.left {
					t.Fatalf("the store has the run as %v (%v), want %v", r.State, err, c.left)
				}
				gone.job.Store(0)
				a.Faults.Inject(storetest.All, storetest.Fault{Before: true})
				time.Sleep(3 * time.Second)
				a.Faults.Clear()
				if r := stage.WaitFor(t, a, id, time.Minute); r.State != xxljob.StateLost {
					t.Errorf("the run is %v: %s", r.State, r.HandleMsg)
				}
				if r := stage.WaitFor(t, a, stage.Trigger(t, a, job), time.Minute); r.State != xxljob.StateSucceeded {
					t.Errorf("the job's next run is %v", r.State)
				}
				stage.Stop(t, a)
				starts := map[int64]int{}
				for _, s := range j.All() {
					starts[s.Run]++
				}
				if starts[id] != 1 {
					t.Errorf("the run was started %d times", starts[id])
				}
			})
		})
	}
}

// TestResultForgottenUnnoticed: the same where the database fails over between two
// calls, so that none has an error. A look once a minute finds it.
func TestResultForgottenUnnoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone, j := &forgetful{st: stage.NeverAlone{Store: memory.New()}}, &stage.Journal{}
		st := bent.StoreOf(gone.st, gone)
		a := stage.StartNode(t, st, "a", j)
		time.Sleep(3 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "work"})
		stage.Must(t, err)
		gone.job.Store(job.ID)
		id := stage.Trigger(t, a, job)
		time.Sleep(time.Second)
		gone.job.Store(0)
		if r := stage.WaitFor(t, a, id, 3*time.Minute); r.State != xxljob.StateLost {
			t.Errorf("the run is %v: %s", r.State, r.HandleMsg)
		}
		stage.Stop(t, a)
		starts := 0
		for _, s := range j.All() {
			if s.Run == id {
				starts++
			}
		}
		if starts != 1 {
			t.Errorf("the run was started %d times", starts)
		}
	})
}

// forgetsEdits acknowledges edits and keeps none.
type forgetsEdits struct{ st xxljob.Store }

func (s forgetsEdits) EditJob(ctx context.Context, id int64, _ xxljob.Edit) (xxljob.Job, error) {
	job, err := s.st.Job(ctx, id)
	job.Version++
	return job, err
}

// TestEditForgotten: the runs of a job go on whose latest version the store has
// forgotten, as a database does that fails over to a standby which was behind.
func TestEditForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem, j := memory.New(), &stage.Journal{}
		st := bent.StoreOf(mem, forgetsEdits{mem})
		a := stage.StartNode(t, st, "a", j)
		job := stage.AddSeconds(t, a, 1)[0]
		time.Sleep(5 * time.Second)
		edited, err := a.UpdateJob(t.Context(), job)
		stage.Must(t, err)
		if edited.Version != job.Version+1 {
			t.Fatalf("the edited job has version %d", edited.Version)
		}
		from := len(j.All())
		time.Sleep(20 * time.Second)
		if n := len(j.All()) - from; n < 19 {
			t.Errorf("%d runs in 20 s", n)
		}
		stage.Stop(t, a)
	})
}

// lockedRow is a store in which somebody holds a lock on one run's row.
type lockedRow struct {
	st   xxljob.Store
	mu   sync.Mutex
	run  int64 // guarded by mu: 0 for none
	with int   // guarded by mu: results in the calls that it was in
}

func (s *lockedRow) lock(run int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = run
}

func (s *lockedRow) Finish(ctx context.Context, dst []xxljob.Run, results []store.Result) ([]xxljob.Run, error) {
	s.mu.Lock()
	locked := s.run
	s.mu.Unlock()
	var free []store.Result
	for _, r := range results {
		if r.RunID != locked {
			free = append(free, r)
		}
	}
	accepted, err := s.st.Finish(ctx, nil, free)
	if err == nil && len(free) < len(results) {
		s.mu.Lock()
		s.with += len(free)
		s.mu.Unlock()
		err = store.ErrLocked
	}
	return accepted, err
}

// TestLockedRowHoldsUpNothing: while somebody has one run's row locked, the results of
// all others are stored, whether handlers or the scheduler itself came to them; the
// one is stored when its row is free.
func TestLockedRowHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for app, want := range map[string]xxljob.State{"app": xxljob.StateSucceeded, "refuses": xxljob.StateRefused} {
		t.Run(want.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				row, j := &lockedRow{st: memory.New()}, &stage.Journal{}
				st := bent.StoreOf(row.st, row)
				a := stage.StartNode(t, st, "a", j)
				stage.Must(t, a.Attach(&stage.UserExecutor{Of: "refuses",
					OnRun: func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
						return wire.Failf("not today"), nil
					}}))
				time.Sleep(3 * time.Second)
				job, err := a.AddJob(t.Context(), xxljob.Job{App: app, Name: "locked", Handler: "work"})
				stage.Must(t, err)
				// While a call takes its time, its result and another are kept for the next.
				a.Faults.Inject("Finish", storetest.Fault{Delay: 50 * time.Millisecond})
				ids, err := a.Trigger(t.Context(), job.ID, xxljob.Trigger{At: time.Now().Add(2010 * time.Millisecond)})
				stage.Must(t, err)
				with, err := a.AddJob(t.Context(), xxljob.Job{App: app, Name: "with it", Handler: "work"})
				stage.Must(t, err)
				_, err = a.Trigger(t.Context(), with.ID, xxljob.Trigger{At: time.Now().Add(2020 * time.Millisecond)})
				stage.Must(t, err)
				row.lock(ids[0])
				for i := range 3 {
					_, err := a.AddJob(t.Context(), xxljob.Job{App: app, Name: fmt.Sprint("other ", i), Handler: "work", Schedule: xxljob.FixedRate(time.Second)})
					stage.Must(t, err)
				}
				time.Sleep(5 * time.Second)
				ended := 0
				for range 60 {
					time.Sleep(time.Second)
					ended = 0
					for _, r := range stage.AllRuns(t, st) {
						switch ago := time.Since(r.Scheduled); {
						case r.ID == ids[0] && r.State != xxljob.StateStarted:
							t.Errorf("the run whose row is locked is %v", r.State)
						case r.ID == ids[0]:
						case r.State == want:
							ended++
						case ago > 3*time.Second && ago <= 4*time.Second: // once each
							t.Errorf("run %d is %v, %v after its time", r.ID, r.State, ago)
						}
					}
				}
				if ended < 180 {
					t.Errorf("%d results are stored of at least 180", ended)
				}
				row.lock(0)
				if r := stage.WaitFor(t, a, ids[0], 10*time.Second); r.State != want {
					t.Errorf("the run whose row was locked is %v", r.State)
				}
				stage.Stop(t, a)
				if row.with == 0 {
					t.Error("no other result came with that of the locked row")
				}
			})
		})
	}
}

// TestHookBetweenThePartsOfABroadcast: a hook that takes minutes holds back the parts that
// have started and are not sent yet. They are no orphans: each runs, once, and succeeds.
func TestHookBetweenThePartsOfABroadcast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := stage.NeverAlone{Store: memory.New()}, &stage.Journal{}
		slow := func(c *xxljob.Config) {
			c.Hooks.RunStarted = func(xxljob.Run) { time.Sleep(3 * time.Minute) }
		}
		a, b := stage.StartNode(t, st, "a", j, slow), stage.StartNode(t, st, "b", j, slow)
		time.Sleep(20 * time.Second)
		ids := map[int64]bool{}
		for i := range 4 {
			ids[stage.TriggerNew(t, a, xxljob.Job{Name: fmt.Sprint(i), Handler: "work", Route: "SHARDING_BROADCAST"})] = true
		}
		time.Sleep(time.Hour)
		parts := 0
		for _, r := range stage.AllRuns(t, st) {
			if ids[r.TriggerID] {
				parts++
				if r.State != xxljob.StateSucceeded {
					t.Errorf("part %v of run %d is %v: %s", r.Sharding, r.TriggerID, r.State, r.HandleMsg)
				}
			}
		}
		if n := len(j.All()); parts != 8 || n != 8 {
			t.Errorf("%d parts, %d starts; want 8 of each", parts, n)
		}
		stage.Stop(t, a, b)
	})
}
