package scenario_test

// What should not happen, and how often the node counts it: once each.

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/xxljob/xxljob/store/storetest"
)

// requireFaultStats compares what a node counts, but for panics.
func requireFaultStats(t *testing.T, s xxljob.Scheduler, want xxljob.FaultStats) {
	t.Helper()
	got := s.Stats().FaultStats
	got.Panics, want.Panics = nil, nil
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s, want %s", g, w)
	}
}

// TestUnplannableJobsAreCountedOnce: each that has stopped, whatever becomes of the claims.
func TestUnplannableJobsAreCountedOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault  storetest.Fault
		method string
		edited bool // somebody else stops the job before the claim does
		want   uint64
	}{
		"all is well":                        {want: 2},
		"claims fail":                        {method: "Claim", fault: storetest.Fault{Before: true, Calls: 3}, want: 2},
		"claims take effect and fail":        {method: "Claim", fault: storetest.Fault{After: true, Calls: 3}, want: 2},
		"the job cannot be read for a while": {method: "Jobs", fault: storetest.Fault{Before: true, Calls: 3}, want: 2},
		"somebody has stopped them":          {edited: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stops := &stopsFirst{st: memory.New()}
				st := bent.StoreOf(stops.st, stops)
				a := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.App = "app" })
				stage.AddSeconds(t, a, 1)
				time.Sleep(10 * time.Second)
				if tt.method != "" {
					a.Faults.Inject(tt.method, tt.fault)
				}
				// Armed before the jobs are there: the node claims as soon as it hears of them.
				stops.armed.Store(tt.edited)
				for i := range 2 {
					_, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: fmt.Sprint(i), Name: "j", Handler: "work", Schedule: xxljob.Cron("broken"), Next: time.Now().Add(time.Second)}, nil)
					stage.Must(t, err)
				}
				time.Sleep(10 * time.Minute)
				requireFaultStats(t, a, xxljob.FaultStats{Unplannable: tt.want})
				stage.Stop(t, a)
			})
		})
	}
}

// TestUnplannableBehindMany: a job that is stopped by a later call of the claims of one scan is
// counted too.
func TestUnplannableBehindMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, due := memory.New(), time.Now().Add(time.Second)
		stage.Must(t, st.SetShards(t.Context(), 32))
		add := func(key string, schedule xxljob.Schedule, next time.Time) {
			_, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: key, Name: "j", Handler: "work", Route: "NEAREST", Block: "SERIAL_EXECUTION", GlueType: "BEAN", Misfire: "DO_NOTHING", Schedule: schedule, Next: next}, nil)
			stage.Must(t, err)
		}
		for i := range 2500 {
			add(fmt.Sprint(i), xxljob.FixedRate(time.Hour), due)
		}
		add("broken", xxljob.Cron("broken"), due.Add(time.Second))
		a := stage.StartNode(t, st, "a", &stage.Journal{})
		time.Sleep(10 * time.Minute)
		requireFaultStats(t, a, xxljob.FaultStats{Unplannable: 1})
		stage.Stop(t, a)
	})
}

// stopsFirst is a store in which, once it is armed, somebody stops each job that a claim is about
// to stop, right before the claim.
type stopsFirst struct {
	st    xxljob.Store
	armed atomic.Bool
}

func (s *stopsFirst) Claim(ctx context.Context, dst []xxljob.Run, plans []store.Plan) ([]xxljob.Run, error) {
	for _, p := range plans {
		if p.Stop == "" || !s.armed.Load() {
			continue
		}
		if _, err := s.st.EditJob(ctx, p.JobID, xxljob.Edit{Verb: "stop", Change: func(j *xxljob.Job) (bool, error) { j.Stopped, j.StopReason = true, "by somebody"; return false, nil }}); err != nil {
			return nil, err
		}
	}
	return s.st.Claim(ctx, dst, plans)
}

// TestForgottenRunsAreCountedOnce: also where their end takes a while to be stored.
func TestForgottenRunsAreCountedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		starts bool
		away   time.Duration
	}{
		"the result":                           {},
		"the result, and results are not kept": {away: 10 * time.Minute},
		"the start and the result":             {starts: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone := &forgetful{st: stage.NeverAlone{Store: memory.New()}, starts: c.starts}
				st := bent.StoreOf(gone.st, gone)
				a := stage.StartNode(t, st, "a", &stage.Journal{})
				time.Sleep(3 * time.Second)
				stage.AddSeconds(t, a, 1)
				job, err := a.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "work"})
				stage.Must(t, err)
				gone.job.Store(job.ID)
				id := stage.Trigger(t, a, job)
				time.Sleep(time.Second)
				gone.job.Store(0)
				a.Faults.Inject(storetest.All, storetest.Fault{Before: true})
				time.Sleep(3 * time.Second)
				a.Faults.Clear()
				if c.away > 0 {
					a.Faults.Inject("Finish", storetest.Fault{Before: true})
					time.Sleep(c.away)
					a.Faults.Clear()
				}
				if r := stage.WaitFor(t, a, id, 3*time.Minute); r.State != xxljob.StateLost {
					t.Errorf("the run is %v: %s", r.State, r.HandleMsg)
				}
				time.Sleep(3 * time.Minute)
				requireFaultStats(t, a, xxljob.FaultStats{Forgotten: 1})
				stage.Stop(t, a)
			})
		})
	}
}

// lateStart is a store in which the first start of a job has an error, and takes effect when the
// node tries again.
type lateStart struct {
	st   xxljob.Store
	mu   sync.Mutex
	job  int64         // guarded by mu
	held []store.Start // guarded by mu
}

func (s *lateStart) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case starts[0].JobID != s.job:
	case s.held == nil:
		s.held = starts
		return nil, errors.New("no answer")
	default:
		if _, err := s.st.Start(ctx, nil, s.held); err != nil {
			return nil, err
		}
		s.job = 0
	}
	return s.st.Start(ctx, dst, starts)
}

// TestAdoptedRunsAreCountedOnce: a start that takes effect after its call had failed.
func TestAdoptedRunsAreCountedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held, j := &lateStart{st: stage.NeverAlone{Store: memory.New()}}, &stage.Journal{}
		st := bent.StoreOf(held.st, held)
		a := stage.StartNode(t, st, "a", j)
		time.Sleep(3 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "work"})
		stage.Must(t, err)
		held.mu.Lock()
		held.job = job.ID
		held.mu.Unlock()
		id := stage.Trigger(t, a, job)
		if r := stage.WaitFor(t, a, id, 10*time.Minute); r.State != xxljob.StateSucceeded || len(j.All()) != 1 {
			t.Errorf("the run is %v: %s; %d handlers were called", r.State, r.HandleMsg, len(j.All()))
		}
		time.Sleep(3 * time.Minute)
		requireFaultStats(t, a, xxljob.FaultStats{Adopted: 1})
		stage.Stop(t, a)
	})
}

// lateTake is a store in which the first take has an error, and takes effect before the node looks
// again for runs to take.
type lateTake struct {
	st    xxljob.Store
	mu    sync.Mutex
	held  []int64 // guarded by mu
	taken bool    // guarded by mu: that has happened
}

func (s *lateTake) Take(ctx context.Context, incarnation string, ids []int64) ([]xxljob.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = ids
		time.AfterFunc(100*time.Millisecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			_, _ = s.st.Take(context.Background(), incarnation, ids)
			s.taken = true
		})
		return nil, errors.New("no answer")
	}
	if !s.taken {
		return nil, errors.New("locked")
	}
	return s.st.Take(ctx, incarnation, ids)
}

// TestAdoptedTakesAreCountedOnce: the same of runs that another node has handed over, which no
// look at the inbox shows any more.
func TestAdoptedTakesAreCountedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		late := &lateTake{st: st}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, bent.StoreOf(st, late), "b", j)
		time.Sleep(time.Minute)
		to := []string{store.LocalAddress(stage.IncarnationOf(t, st, b))}
		var ids []int64
		for i := range 8 {
			job, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("j", i), Handler: "work"})
			stage.Must(t, err)
			all, err := a.Trigger(t.Context(), job.ID, xxljob.Trigger{Addresses: to})
			stage.Must(t, err)
			ids = append(ids, all...)
		}
		for _, id := range ids {
			if r := stage.WaitFor(t, a, id, 10*time.Minute); r.State != xxljob.StateSucceeded {
				t.Errorf("run %d is %v: %s", id, r.State, r.HandleMsg)
			}
		}
		time.Sleep(3 * time.Minute)
		late.mu.Lock()
		held := len(late.held)
		late.mu.Unlock()
		if held == 0 || len(j.All()) != len(ids) {
			t.Errorf("%d takes were held up, and %d handlers called", held, len(j.All()))
		}
		requireFaultStats(t, b, xxljob.FaultStats{Adopted: uint64(held)})
		stage.Stop(t, b)
		stage.Stop(t, a)
	})
}

// TestWhatSuccessesLeadToIsCountedOnce: children without an end, and ones that are not there.
func TestWhatSuccessesLeadToIsCountedOnce(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]storetest.Fault{"all is well": {}, "calls fail": {Before: true, Calls: 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) { c.App = "app" })
				var jobs []xxljob.Job
				for i := range store.MostDepth + 3 {
					job, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("j", i), Key: fmt.Sprint("j", i), Handler: "work", ChildKeys: []string{fmt.Sprint("app/j", i+1)}})
					stage.Must(t, err)
					jobs = append(jobs, job)
				}
				if f.Before {
					a.Faults.Inject("PayOwed", f)
				}
				for range 2 {
					stage.Trigger(t, a, jobs[0])
				}
				time.Sleep(time.Minute)
				for range 3 {
					stage.Trigger(t, a, jobs[len(jobs)-1])
				}
				time.Sleep(time.Minute)
				requireFaultStats(t, a, xxljob.FaultStats{Endless: 2, Absent: 3})
				stage.Stop(t, a)
			})
		})
	}
}

// TestFailedAlarmsAreCounted: each attempt.
func TestFailedAlarmsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{began: time.Now(), err: func(n int) error {
			if n <= 5 {
				return errors.New("not now")
			}
			return nil
		}}
		f := startFailing(t, memory.New(), "a", func(context.Context, *xxljob.Task) error { return errBoom }, withRule(alarm.Rule{Name: "sink", To: s}))
		stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try"})
		time.Sleep(time.Hour)
		requireFaultStats(t, f, xxljob.FaultStats{AlarmsFailed: 5})
		stage.Stop(t, f.Node)
	})
}
