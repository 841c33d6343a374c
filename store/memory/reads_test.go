package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/store"
)

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
