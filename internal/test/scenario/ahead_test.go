package scenario_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// slowly is for clusters whose tests take days: a node beats every 12 minutes.
func slowly(c *xxljob.Config) {
	c.Cluster.Shards, c.Cluster.LeaseTTL, c.Cluster.LostAfter = 1, time.Hour, time.Hour
}

// triggerAt plans a run of a new job without a schedule.
func triggerAt(t *testing.T, s xxljob.Scheduler, t0 xxljob.Trigger) (job xxljob.Job, id int64) {
	t.Helper()
	job, err := s.AddJob(t.Context(), xxljob.Job{Name: "far " + t0.At.Format(time.RFC3339), Handler: "work"})
	stage.Must(t, err)
	ids, err := s.Trigger(t.Context(), job.ID, t0)
	stage.Must(t, err)
	return job, ids[0]
}

// requireOnce checks that the run has run once, at its instant or when late says, and that
// nothing else has.
func requireOnce(t *testing.T, st xxljob.Store, j *stage.Journal, id int64, at time.Time) {
	t.Helper()
	all := j.All()
	if len(all) != 1 || all[0].Run != id || !all[0].At.Equal(at) {
		t.Errorf("ran %+v, want run %d once, at %v", all, id, at)
	}
	run, err := st.Run(t.Context(), id)
	stage.Must(t, err)
	if run.State != xxljob.StateSucceeded {
		t.Errorf("the run is %v: %v", run.State, run.Err())
	}
	if n := len(stage.AllRuns(t, st)); n != 1 {
		t.Errorf("the store has %d runs, want 1", n)
	}
}

// TestTenYearsAhead: a run that is planned ten years ahead keeps its id, runs once at its
// instant, and whoever has waited for it hears of its end. Meanwhile the scheduler sleeps, but for
// rules of alarms that nobody has any more, which it looks for now and then.
func TestTenYearsAhead(t *testing.T) {
	t.Parallel()
	years := 10
	if stage.Detector {
		years = 1 // nothing happens in the others
	}
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j, oneShard)
		at, param := time.Now().AddDate(years, 0, 0).Add(123*time.Millisecond), "anniversary"
		_, id := triggerAt(t, n, xxljob.Trigger{At: at, Param: &param})
		time.Sleep(time.Minute)
		calls := n.Faults.Calls(storetest.All) - n.Faults.Calls("DropRules")
		ended := make(chan xxljob.Run, 1)
		go func() {
			run, err := n.Wait(context.Background(), id)
			if err != nil {
				t.Error(err)
			}
			ended <- run
		}()
		time.Sleep(time.Until(at) - 25*time.Hour)
		if more := n.Faults.Calls(storetest.All) - n.Faults.Calls("DropRules") - calls; more > 5 {
			t.Errorf("the store was called %d times in %d years", more, years)
		}
		if run, err := st.Run(t.Context(), id); err != nil || run.State != xxljob.StatePlanned || !run.Scheduled.Equal(at) || run.Param != param {
			t.Errorf("a day and an hour before it is due: %+v, %v", run, err)
		}
		time.Sleep(time.Until(at) - time.Millisecond)
		if len(j.All()) > 0 {
			t.Error("it ran early")
		}
		if run := <-ended; run.ID != id || run.State != xxljob.StateSucceeded || run.Param != param {
			t.Errorf("Wait returned %+v", run)
		}
		requireOnce(t, st, j, id, at)
		stage.Stop(t, n)
	})
}

// TestAheadOfRetention: RunRetention does not bound how far ahead a run may be planned, and a
// short one only has it move later. Retention leaves what is kept apart alone.
func TestAheadOfRetention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keep, ahead time.Duration
	}{{48 * time.Hour, 40 * 24 * time.Hour}, {time.Hour, 31 * time.Minute}, {time.Hour, 29 * time.Minute}, {time.Hour, 50 * time.Hour}, {720 * time.Hour, 30 * 24 * time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			st, j := memory.New(), &stage.Journal{}
			n := stage.StartNode(t, &retaining{Store: st}, "a", j, oneShard, func(c2 *xxljob.Config) { c2.RunRetention = c.keep })
			at := time.Now().Add(c.ahead)
			_, id := triggerAt(t, n, xxljob.Trigger{At: at})
			time.Sleep(c.ahead + time.Second)
			requireOnce(t, st, j, id, at)
			stage.Stop(t, n)
		})
	}
}

// TestAheadMeanwhile: kills, keys, stops and removals know a run that is kept apart.
func TestAheadMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j, oneShard)
		at := time.Now().AddDate(0, 2, 0)
		killed, killedRun := triggerAt(t, n, xxljob.Trigger{At: at, Key: "killed"})
		removed, removedRun := triggerAt(t, n, xxljob.Trigger{At: at.Add(time.Second), Key: "removed"})
		stopped, stoppedRun := triggerAt(t, n, xxljob.Trigger{At: at.Add(2 * time.Second), Key: "stopped"})
		again := func(when string, job xxljob.Job, key string, id int64) {
			t.Helper()
			for _, at := range []time.Time{{}, at, at.AddDate(1, 0, 0)} {
				if ids, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{At: at, Key: key}); err != nil || !slices.Equal(ids, []int64{id}) {
					t.Errorf("%s, key %q at %v: runs %v, %v, want %d", when, key, at, ids, err, id)
				}
			}
		}
		waiting := make(chan xxljob.State, 1)
		go func() { run, _ := n.Wait(context.Background(), removedRun); waiting <- run.State }()
		time.Sleep(time.Hour)
		again("while it waits", killed, "killed", killedRun)
		stage.Must(t, n.Kill(t.Context(), killedRun))
		if run := stage.WaitFor(t, n, killedRun, time.Second); run.State != xxljob.StateCancelled {
			t.Errorf("the killed run is %v", run.State)
		}
		again("when it was killed", killed, "killed", killedRun)
		_, err := n.UpdateJob(t.Context(), xxljob.Job{ID: stopped.ID, Name: stopped.Name, Handler: "work", Schedule: xxljob.Cron("0 0 0 1 1 ? 2040")})
		stage.Must(t, err)
		stage.Must(t, n.StopJob(t.Context(), stopped.ID))
		stage.Must(t, n.RemoveJob(t.Context(), removed.ID))
		if state := <-waiting; state != xxljob.StateCancelled {
			t.Errorf("who has waited for a run of a job that was removed hears that it is %v", state)
		}
		time.Sleep(time.Until(at) - 12*time.Hour)
		again("when it has moved", stopped, "stopped", stoppedRun)
		time.Sleep(time.Until(at) + time.Hour)
		again("when it has ended", stopped, "stopped", stoppedRun)
		if all := j.All(); len(all) != 1 || all[0].Run != stoppedRun || !all[0].At.Equal(at.Add(2*time.Second)) {
			t.Errorf("ran %+v, want that of the stopped job, at its instant", all)
		}
		for id, want := range map[int64]xxljob.State{killedRun: xxljob.StateCancelled, removedRun: xxljob.StateCancelled, stoppedRun: xxljob.StateSucceeded} {
			if run, err := st.Run(t.Context(), id); err != nil || run.State != want {
				t.Errorf("run %d is %v, %v, want %v", id, run.State, err, want)
			}
		}
		stage.Stop(t, n)
	})
}

// TestAheadOfTwoNodes: whichever node owns the shard moves the run, also where it was planned
// at the other one, and the former owner is paused, or dies, as it moves it.
func TestAheadOfTwoNodes(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name  string
		fault func(t *testing.T, a *stage.Node)
	}{
		{"both live", func(*testing.T, *stage.Node) {}},
		{"the owner dies before", func(t *testing.T, a *stage.Node) { a.Pause() }},
		{"the owner dies and has not moved it", func(t *testing.T, a *stage.Node) {
			a.Faults.Inject("MoveAhead", storetest.Fault{Delay: 100 * time.Hour})
			a.Faults.Inject("Beat", storetest.Fault{Before: true})
		}},
		{"the owner dies when it has moved it", func(t *testing.T, a *stage.Node) {
			a.Faults.Inject("MoveAhead", storetest.Fault{After: true})
			a.Faults.Inject("Scan", storetest.Fault{Before: true})
			a.Faults.Inject("Beat", storetest.Fault{Before: true})
		}},
		{"the owner hears nothing of its moves", func(t *testing.T, a *stage.Node) {
			a.Faults.Inject("MoveAhead", storetest.Fault{After: true, Calls: 3})
		}},
		{"the owner cannot move for an hour", func(t *testing.T, a *stage.Node) {
			remove := a.Faults.Inject("MoveAhead", storetest.Fault{Before: true})
			time.AfterFunc(time.Hour, remove)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if i > 1 && testing.Short() {
				t.Skip("another fault of the same hours; leave out -short")
			}
			if i != 1 && stage.Detector {
				t.Skip("the same hours without a fault: the race detector has nothing more to say of them")
			}
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				a := stage.StartNode(t, st, "a", j, slowly)
				time.Sleep(time.Minute)
				b := stage.StartNode(t, st, "b", j, slowly)
				time.Sleep(time.Minute)
				at := time.Now().AddDate(0, 0, 2)
				_, id := triggerAt(t, b, xxljob.Trigger{At: at})
				time.Sleep(time.Until(at) - 24*time.Hour - time.Minute)
				c.fault(t, a)
				time.Sleep(time.Until(at) + time.Second)
				requireOnce(t, st, j, id, at)
				a.Faults.Clear()
				if c.name == "the owner dies before" {
					a.Resume()
				}
				time.Sleep(8 * time.Hour) // which is long for leases of an hour
				requireOnce(t, st, j, id, at)
				stage.Stop(t, a, b)
			})
		})
	}
}

// TestAheadMovesLate: a run whose time to move, and instant, have passed while no node was
// there runs once, as soon as one is.
func TestAheadMovesLate(t *testing.T) {
	t.Parallel()
	for _, away := range []time.Duration{72 * time.Hour, 100 * time.Hour, 60 * 24 * time.Hour} {
		t.Run(away.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				n := stage.StartNode(t, st, "a", j, oneShard)
				at := time.Now().Add(96 * time.Hour)
				_, id := triggerAt(t, n, xxljob.Trigger{At: at})
				stage.Stop(t, n)
				time.Sleep(away)
				back := time.Now()
				n = stage.StartNode(t, st, "b", j, oneShard)
				if at.After(back) {
					time.Sleep(time.Until(at) + time.Second)
				} else {
					time.Sleep(time.Second)
				}
				if all := j.All(); len(all) != 1 || all[0].Run != id || all[0].At.Before(at) || all[0].At.Sub(later(at, back)) > time.Second {
					t.Errorf("ran %+v, want run %d once, when it was due or its node was back", all, id)
				}
				stage.Stop(t, n)
			})
		})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// TestAheadHoldsUpNothing: while runs cannot be moved, because the call fails or hangs,
// schedules and triggers go on.
func TestAheadHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]storetest.Fault{"fails": {Before: true}, "hangs": {Delay: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				n := stage.StartNode(t, st, "a", j, oneShard)
				at := time.Now().Add(73 * time.Hour)
				_, id := triggerAt(t, n, xxljob.Trigger{At: at})
				time.Sleep(48 * time.Hour)
				n.Faults.Inject("MoveAhead", fault)
				job := onlyJ(t, st, "NEAREST")
				from := time.Now()
				time.Sleep(20 * time.Minute)
				if got := stage.AuditSeconds(t, st, j, []xxljob.Job{job}, from, time.Now().Add(-time.Second)); got.Lost+got.Skipped > 0 {
					t.Errorf("audit: %+v", got)
				}
				if id := stage.Trigger(t, n, job); stage.WaitFor(t, n, id, time.Second).State != xxljob.StateSucceeded {
					t.Error("a trigger did not run")
				}
				n.Faults.Clear()
				stage.Must(t, n.StopJob(t.Context(), job.ID))
				time.Sleep(time.Until(at) + time.Second)
				if run, err := st.Run(t.Context(), id); err != nil || run.State != xxljob.StateSucceeded || run.Lateness() > 0 {
					t.Errorf("the run that could not be moved: %+v, %v", run, err)
				}
				stage.Stop(t, n)
			})
		})
	}
}

// TestAheadOfMany: more runs than one call moves, all due at one instant, each run once.
func TestAheadOfMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "many", Handler: "work", Block: "DISCARD_LATER"})
		stage.Must(t, err)
		at := time.Now().AddDate(1, 0, 0)
		const many = 2500
		for range many {
			_, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{At: at})
			stage.Must(t, err)
		}
		time.Sleep(time.Until(at) - 23*time.Hour)
		if calls := n.Faults.Calls("MoveAhead"); calls > many+20 { // each trigger wakes it at most once
			t.Errorf("%d calls", calls)
		}
		time.Sleep(24 * time.Hour)
		ran := map[int64]int{}
		for _, s := range j.All() {
			ran[s.Run]++
		}
		states := stage.CountStates(stage.AllRuns(t, st))
		if states[xxljob.StateSucceeded]+states[xxljob.StateDiscarded] != many || len(ran) != states[xxljob.StateSucceeded] {
			t.Errorf("%d runs began, the store has %v", len(ran), states)
		}
		for id, n := range ran {
			if n != 1 {
				t.Errorf("run %d ran %d times", id, n)
			}
		}
		stage.Stop(t, n)
	})
}

// TestTriggerTimes: what is past since 1970 means now; what was before, and what no id reaches, is
// refused.
func TestTriggerTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j, oneShard)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "now", Handler: "work"})
		stage.Must(t, err)
		for _, at := range []time.Time{{}, time.Now().Add(-time.Hour), time.Unix(1, 0)} {
			ids, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{At: at})
			stage.Must(t, err)
			if run := stage.WaitFor(t, n, ids[0], time.Second); run.State != xxljob.StateSucceeded || time.Since(run.Started) > time.Second {
				t.Errorf("At %v: the run is %+v", at, run)
			}
		}
		ran := len(j.All())
		for _, at := range []time.Time{time.Unix(0, 0), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-500, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(-1<<62, 0), time.Date(2059, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2059, 1, 1, 5, 0, 0, 0, time.FixedZone("east", 5*3600)), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(1<<40, 0)} {
			_, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{At: at})
			if err == nil {
				t.Errorf("At %v: no error", at)
				continue
			}
			stage.RequireText(t, "the error", err.Error(), "trigger: At")
			bound := "before the year 2059"
			if at.Before(time.Unix(1, 0)) {
				bound = "after the beginning of 1970"
			}
			stage.RequireText(t, "the error", err.Error(), bound)
		}
		last, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{At: time.Date(2059, 1, 1, 4, 59, 59, 0, time.FixedZone("east", 5*3600))})
		stage.Must(t, err)
		time.Sleep(time.Hour)
		if n := len(j.All()); n != ran {
			t.Errorf("%d more runs", n-ran)
		}
		stage.Must(t, n.Kill(t.Context(), last[0]))
		stage.Stop(t, n)
	})
}
