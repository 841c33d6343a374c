package memory_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
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

// TestSearchesOfManyRuns: with 200,000 runs a search looks at no more than it may, and says how
// far it got; the last runs of jobs, the children of one, and counts that stop are no more than
// was asked for.
func TestSearchesOfManyRuns(t *testing.T) {
	const runs, jobs = 200_000, 400
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 4)
		var ids []int64
		for range jobs {
			ids = append(ids, f.job().ID)
		}
		var newest, oldest store.Run
		for i := range runs {
			r, err := f.AddRun(t.Context(), ids[i%jobs], store.Trigger{})
			f.must(err)
			if i == 0 {
				oldest = r
			}
			newest = r
			if i%10_000 == 0 {
				_, err = f.Kill(t.Context(), r.ID, "x")
				f.must(err)
			}
			if i%1000 == 0 {
				time.Sleep(time.Second)
			}
		}
		// The whole is gone through in pieces of 20,000, each of which goes on from the one before.
		var pieces, seen int
		for q := (store.RunSearch{Text: "what no run has"}); ; pieces++ {
			found, err := f.SearchRuns(t.Context(), q)
			f.must(err)
			if found.Examined > 20_000 || len(found.Runs) != 0 || found.Examined < 20_000 && found.SearchedTo > 1 {
				t.Fatalf("a piece of what matches nothing: %+v", found)
			}
			if seen += found.Examined; found.SearchedTo == 1 {
				break
			}
			if q.Before = found.SearchedTo; found.SearchedTo < oldest.ID || found.SearchedTo > newest.ID {
				t.Fatalf("searched down to %d, of %d to %d", found.SearchedTo, oldest.ID, newest.ID)
			}
		}
		want(t, "pieces, without the last", pieces, runs/20_000-1)
		want(t, "runs looked at", seen, runs)
		for name, q := range map[string]store.RunSearch{
			"a rare app": {Apps: []string{"nowhere"}}, "a rare state": {States: []store.State{store.StateLost}},
			"several jobs": {JobIDs: []int64{-1, -2}}, "slow ones": {Slower: time.Hour}, "late ones": {LateBy: 240 * time.Hour}, "few to be looked at": {Text: "nothing", Examine: 100},
		} {
			found, err := f.SearchRuns(t.Context(), q)
			f.must(err)
			if q.Complete(); found.Examined != q.Examine || len(found.Runs) != 0 {
				t.Errorf("%s: %d looked at and %d found, want %d and none", name, found.Examined, len(found.Runs), q.Examine)
			}
		}
		found, err := f.SearchRuns(t.Context(), store.RunSearch{})
		f.must(err)
		want(t, "looked at for a page of all", found.Examined, 100)
		found, err = f.SearchRuns(t.Context(), store.RunSearch{JobIDs: ids[:1]})
		f.must(err)
		want(t, "looked at for a page of a job", found.Examined, 100)
		f.last(t, ids)
	})
}

// last checks what is asked of many jobs at once.
func (f *fixture) last(t *testing.T, ids []int64) {
	t.Helper()
	last, err := f.LastRuns(t.Context(), ids[:50], 10)
	f.must(err)
	want(t, "last runs of 50 jobs, of which one had some that ended", len(last), 10)
	if _, err = f.LastRuns(t.Context(), ids, store.MostLastRuns); err == nil {
		t.Error("more last runs than may be were returned")
	}
	waiting, err := f.Waiting(t.Context(), store.Run{}, 100)
	f.must(err)
	want(t, "a page of those that wait", len(waiting), 100)
	open, err := f.OpenRuns(t.Context(), 10_000)
	f.must(err)
	total := 0
	for _, n := range open.Planned {
		total += n
	}
	if total != 10_000 || !open.MorePlanned || len(open.Running) != 0 {
		t.Errorf("%d planned runs counted: %+v", total, open)
	}
}
