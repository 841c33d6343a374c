package memory_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// A list that takes many turns of the lock is the same as one that takes one.
func TestLongListsAreComplete(t *testing.T) {
	f := newFixture(t, 4)
	a, b := f.job(), f.job()
	var all, rare []int64
	for i := range 10_000 {
		id := b.ID
		if i%3000 == 0 {
			id = a.ID
		}
		r, err := f.AddRun(t.Context(), id, store.Trigger{})
		f.must(err)
		all = append(all, r.ID)
		if i%3000 == 0 {
			_, err := f.Kill(t.Context(), r.ID, "x")
			f.must(err)
			rare = append(rare, r.ID)
		}
	}
	want(t, "all runs", f.list(store.RunFilter{Limit: 20_000}), all)
	want(t, "few among many", f.list(store.RunFilter{States: []store.State{store.StateCancelled}}), rare)
	want(t, "of one job", f.list(store.RunFilter{JobID: a.ID}), rare)
	want(t, "of one trigger", f.list(store.RunFilter{TriggerID: rare[1]}), rare[1:2])
	want(t, "none of many", f.list(store.RunFilter{JobID: b.ID, States: []store.State{store.StateLost}}), []int64(nil))
	want(t, "below one of another job", f.list(store.RunFilter{JobID: a.ID, Before: all[4000]}), rare[:2])
}

func TestLongListsOfJobs(t *testing.T) {
	f := newFixture(t, 4)
	var even []int64
	for i := range 2000 {
		j := f.job(func(j *store.Job) {
			j.Key, j.Stopped = fmt.Sprint(i), i%2 == 1
			j.App = []string{"app", "other"}[i/1000]
		})
		if !j.Stopped && j.App == "other" {
			even = append(even, j.ID)
		}
	}
	slices.Sort(even)
	jobs, err := f.Jobs(t.Context(), store.JobFilter{App: "other", Stopped: new(false), Limit: 3000})
	f.must(err)
	var got []int64
	for _, j := range jobs {
		got = append(got, j.ID)
	}
	want(t, "enabled jobs of an app", got, even)
	jobs, err = f.Jobs(t.Context(), store.JobFilter{})
	f.must(err)
	want(t, "jobs of the default page", len(jobs), 100)
}

// Whatever order a query names the shards in, its runs count as loaded.
func TestScanOfShardsInAnyOrder(t *testing.T) {
	f := newFixture(t, 4)
	j := f.job()
	r, err := f.AddRun(t.Context(), j.ID, store.Trigger{})
	f.must(err)
	q := store.ScanQuery{Shards: slices.Clone(f.shards), Before: time.Now(), Jobs: 9, Runs: 9}
	slices.Reverse(q.Shards)
	for _, ids := range [][]int64{{r.ID}, nil} {
		res, err := f.Scan(t.Context(), store.ScanResult{}, q)
		f.must(err)
		want(t, "runs", idsOf(res.Runs), ids)
	}
	q.Shards[3-j.Shard].Epoch-- // a former owner's: it is told, and loads nothing
	for range 2 {
		res, err := f.Scan(t.Context(), store.ScanResult{}, q)
		f.must(err)
		want(t, "runs under an old epoch", idsOf(res.Runs), []int64{r.ID})
	}
	f.must(f.Consistent())
}
