package memory_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

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
	_, open, err := f.OpenAlarms(t.Context(), f.shards, store.JobTold{}, 10)
	f.must(err)
	want(t, "open of a job that is removed", open, 0)
}
