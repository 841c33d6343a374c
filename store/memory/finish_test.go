package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// begun starts a planned run here.
func (f *fixture) begun(r store.Run) store.Run {
	f.Helper()
	j, err := f.Job(f.Context(), r.JobID)
	f.must(err)
	out, err := f.Start(f.Context(), nil, []store.Start{f.start(r, store.LocalAddress(f.node), j.Version)})
	f.must(err)
	if out[0].Status != store.StartOK {
		f.Fatalf("start: status %d", out[0].Status)
	}
	return out[0].Run
}

// ended ends a run, and returns it with the one that follows it.
func (f *fixture) ended(r store.Run, state store.State) (ended, next store.Run) {
	f.Helper()
	res := success(r)
	res.State, res.After = state, 365*24*time.Hour
	got, err := f.Finish(f.Context(), nil, []store.Result{res})
	f.must(err)
	if len(got) != 1 {
		f.Fatal("the result is refused")
	}
	tree, err := f.Tree(f.Context(), r.ID)
	f.must(err)
	return got[0], tree[len(tree)-1]
}

// TestRetainKeepsWhatEndsNow: the run whose end makes its trigger's first run one that may be
// evicted is not evicted itself.
func TestRetainKeepsWhatEndsNow(t *testing.T) {
	f := newFixture(t, 1, memory.Retain(1, 1))
	job := f.job(func(j *store.Job) { j.Retries = 2 })
	f.done(job.ID, 1)
	first := f.started(job.ID, store.LocalAddress(f.node))
	_, retry := f.ended(first, store.StateFailed)
	if _, err := f.Run(t.Context(), first.ID); err != nil {
		t.Errorf("the first run while its retry waits: %v", err)
	}
	last, _ := f.ended(f.begun(retry), store.StateSucceeded)
	if last.ID != retry.ID || last.State != store.StateSucceeded {
		t.Errorf("Finish returns run %d, %v; want %d", last.ID, last.State, retry.ID)
	}
	want(t, "what is kept", f.list(store.RunFilter{}), []int64{retry.ID})
	f.must(f.Consistent())
}

// TestFollowedFromItsMoveOn: a run that was planned weeks ahead is as old as its move among
// the others, and so has its attempts.
func TestFollowedFromItsMoveOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		f.KnowRetention(10 * 24 * time.Hour)
		job := f.job(func(j *store.Job) { j.Retries = 2 })
		move := time.Now().Add(29 * 24 * time.Hour)
		run, err := f.AddAhead(t.Context(), job.ID, store.Trigger{At: move.Add(time.Hour)}, move)
		f.must(err)
		time.Sleep(30 * 24 * time.Hour)
		_, err = f.MoveAhead(t.Context(), store.AheadQuery{Shards: f.shards, Before: time.Now(), Limit: 10})
		f.must(err)
		_, next := f.ended(f.begun(run), store.StateFailed)
		if want := move.Add(9 * 24 * time.Hour); next.ID == run.ID || !next.Scheduled.Equal(want) {
			t.Errorf("run %d is followed by run %d, due at %v; want %v", run.ID, next.ID, next.Scheduled, want)
		}
	})
}

// TestFollowedByTheAgeOfTheFirst: attempts are as old as the first run of their trigger.
func TestFollowedByTheAgeOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		f.KnowRetention(10 * 24 * time.Hour)
		job := f.job(func(j *store.Job) { j.Retries, j.RetryBackoff.First = 2, 7*24*time.Hour })
		first, err := f.AddRun(t.Context(), job.ID, store.Trigger{})
		f.must(err)
		_, next := f.ended(f.begun(first), store.StateFailed)
		time.Sleep(7 * 24 * time.Hour)
		_, next = f.ended(f.begun(next), store.StateFailed)
		if want := first.Created.Add(9 * 24 * time.Hour); !next.Scheduled.Equal(want) {
			t.Errorf("the second retry of a run of %v is due at %v, want %v", first.Created, next.Scheduled, want)
		}
	})
}

// TestRetainForgetsTheKeysOfChildren: the key of a child goes with its run.
func TestRetainForgetsTheKeysOfChildren(t *testing.T) {
	f := newFixture(t, 2, memory.Retain(1, 100))
	child := f.job()
	parent := f.job(func(j *store.Job) { j.Children = []int64{child.ID} })
	var triggers []int64
	for range 2 {
		triggers = append(triggers, f.done(parent.ID, 1)...)
		paid, err := f.PayOwed(t.Context(), store.OwedQuery{Shards: f.shards, Limit: 9})
		f.must(err)
		want(t, "paid", paid, store.Paid{Owed: 1, Runs: 1})
		runs, err := f.Runs(t.Context(), store.RunFilter{JobID: child.ID, States: []store.State{store.StatePlanned}})
		f.must(err)
		_, err = f.Kill(t.Context(), runs[0].ID, "")
		f.must(err)
	}
	kept := f.list(store.RunFilter{JobID: child.ID})
	want(t, "runs that are kept", len(kept), 1)
	last, err := f.AddRun(t.Context(), child.ID, store.Trigger{Key: store.ChildKey(triggers[1])})
	f.must(err)
	want(t, "the run of a key that is kept", last.ID, kept[0])
	fresh, err := f.AddRun(t.Context(), child.ID, store.Trigger{Key: store.ChildKey(triggers[0])})
	f.must(err)
	want(t, "state of the run of a key that was forgotten", fresh.State, store.StatePlanned)
	f.must(f.Consistent())
}

// TestARemovedJobIsNotOpen: nobody waits for a job to recover that is removed.
func TestARemovedJobIsNotOpen(t *testing.T) {
	f := newFixture(t, 2)
	job := f.job()
	f.must(f.MarkAlarms(t.Context(), store.AlarmMarks{Jobs: []store.JobTold{{JobID: job.ID, Rule: "r", At: time.Now(), Open: true}}}))
	f.must(f.RemoveJob(t.Context(), job.ID))
	_, open, err := f.OpenAlarms(t.Context(), f.shards, nil, store.JobTold{}, 10)
	f.must(err)
	want(t, "open of a job that is removed", open, 0)
}
