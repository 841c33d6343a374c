package memory_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

func idsOf(runs []store.Run) []int64 {
	var ids []int64
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}

func (f *fixture) list(filter store.RunFilter) []int64 {
	f.Helper()
	runs, err := f.Runs(f.Context(), filter)
	f.must(err)
	ids := idsOf(runs)
	slices.Reverse(ids)
	return ids
}

func TestRetainBoundsEachJob(t *testing.T) {
	f := newFixture(t, 2, memory.Retain(3, 100))
	a, b := f.job(), f.job()
	first := f.done(a.ID, 5)
	other := f.done(b.ID, 2)
	want(t, "runs of the busy job", f.list(store.RunFilter{JobID: a.ID}), first[2:])
	want(t, "runs of the other", f.list(store.RunFilter{JobID: b.ID}), other)
	_, err := f.Run(t.Context(), first[0])
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an evicted run: %v", err)
	}
	f.must(f.Consistent())
}

func TestRetainBoundsTheTotal(t *testing.T) {
	f := newFixture(t, 2, memory.Retain(100, 4))
	a, b := f.job(), f.job()
	first := f.done(a.ID, 3)
	second := f.done(b.ID, 3)
	want(t, "all runs", f.list(store.RunFilter{}), append(first[2:], second...))
	f.must(f.Consistent())
}

// TestRetainBytes: of large runs as many stay as their texts have room, whatever jobs they are of;
// what has not ended stays, and is not counted.
func TestRetainBytes(t *testing.T) {
	const large = 64 << 10
	f := newFixture(t, 2, memory.RetainBytes(10*large))
	a, b := f.job(), f.job()
	end := func(r store.Run, param, result string) int64 {
		t.Helper()
		s := f.start(r, store.LocalAddress(here), r.JobVersion)
		s.Param, s.JobVersion = param, 1
		started, err := f.Start(t.Context(), nil, []store.Start{s})
		f.must(err)
		res := success(started[0].Run)
		res.HandleMsg = result
		_, err = f.Finish(t.Context(), nil, []store.Result{res})
		f.must(err)
		return r.ID
	}
	add := func(j store.Job, param *string) store.Run {
		t.Helper()
		r, err := f.AddRun(t.Context(), j.ID, store.Trigger{Param: param})
		f.must(err)
		return r
	}
	big := strings.Repeat("x", large)
	var live []int64
	for i := range 30 { // three times the bound
		own := fmt.Sprint(i) + big
		live = append(live, add(a, &own).ID)
	}
	small := f.done(b.ID, 20)
	want(t, "beside many that wait, what has ended", f.list(store.RunFilter{JobID: b.ID}), small)
	var shared []int64
	for range 40 { // of one job, and with one parameter
		shared = append(shared, end(add(b, nil), big, ""))
	}
	want(t, "runs with a parameter in common", f.list(store.RunFilter{JobID: b.ID}), append(small, shared...))
	var results []int64
	for i := range 12 {
		results = append(results, end(add(b, nil), big, fmt.Sprint(i)+big))
	}
	kept := f.list(store.RunFilter{JobID: b.ID, Limit: 1000})
	want(t, "runs with results of their own", kept, results[len(results)-8:]) // and a parameter, and their messages
	want(t, "what has not ended", f.list(store.RunFilter{JobID: a.ID}), live)
	f.must(f.Consistent())

	huge := end(add(a, nil), "", strings.Repeat(big, 20))
	want(t, "what is larger than all of the room", f.list(store.RunFilter{States: []store.State{store.StateSucceeded}}), []int64{huge})
	next := f.done(b.ID, 1)
	want(t, "once another one has ended", f.list(store.RunFilter{States: []store.State{store.StateSucceeded}}), next)
	f.must(f.Consistent())
}

// The order is that of the ends, not that of the ids.
func TestRetainDropsWhatEndedFirst(t *testing.T) {
	f := newFixture(t, 2, memory.Retain(2, 100))
	j := f.job()
	var runs []store.Run
	for range 4 {
		runs = append(runs, f.started(j.ID, store.LocalAddress(here)))
	}
	for _, i := range []int{3, 2, 1, 0} {
		_, err := f.Finish(t.Context(), nil, []store.Result{success(runs[i])})
		f.must(err)
	}
	want(t, "runs", f.list(store.RunFilter{}), []int64{runs[0].ID, runs[1].ID})
}

func TestRetainKeepsWhatHasNotEnded(t *testing.T) {
	f := newFixture(t, 2, memory.Retain(1, 1))
	j := f.job()
	planned, err := f.AddRun(t.Context(), j.ID, store.Trigger{Key: "k"})
	f.must(err)
	started := f.started(j.ID, store.LocalAddress(here))
	done := f.done(j.ID, 500)
	last := done[len(done)-1]
	kept := []int64{planned.ID, started.ID, last}
	want(t, "runs", f.list(store.RunFilter{}), kept)
	want(t, "runs of the job", f.list(store.RunFilter{JobID: j.ID}), kept)
	want(t, "runs before an evicted one", f.list(store.RunFilter{Before: done[100]}), kept[:2])
	want(t, "runs of the job before an evicted one", f.list(store.RunFilter{JobID: j.ID, Before: done[100]}), kept[:2])
	want(t, "runs of an evicted trigger", f.list(store.RunFilter{TriggerID: done[7]}), []int64(nil))
	byID, err := f.RunsByID(t.Context(), []int64{last, done[3], planned.ID, planned.ID, -1, 1 << 50})
	f.must(err)
	want(t, "runs by id", idsOf(byID), []int64{planned.ID, last})
	if runs, segments, _ := f.Sizes(); runs != 3 || segments > 32 {
		t.Errorf("%d runs in %d segments are kept", runs, segments)
	}
	f.must(f.Consistent())
}

// A key is known as long as its run.
func TestRetainForgetsKeys(t *testing.T) {
	f := newFixture(t, 2, memory.Retain(1, 1))
	j := f.job()
	add := func() int64 {
		r, err := f.AddRun(t.Context(), j.ID, store.Trigger{Key: "k"})
		f.must(err)
		return r.ID
	}
	first := add()
	want(t, "the same key", add(), first)
	_, err := f.Kill(t.Context(), first, "x")
	f.must(err)
	want(t, "the key of an ended run", add(), first)
	f.done(j.ID, 1)
	if again := add(); again == first {
		t.Error("the key of an evicted run still names it")
	}
	f.must(f.Consistent())
}

// Nothing is left of a removed job once its runs and its audit are dropped.
func TestRetainForgetsRemovedJobs(t *testing.T) {
	const churn = 10_050
	f := newFixture(t, 2, memory.Retain(1, 10))
	var first, last int64
	for i := range churn {
		j := f.job()
		if last = j.ID; i == 0 {
			first = j.ID
		}
		_, err := f.AddRun(t.Context(), j.ID, store.Trigger{})
		f.must(err)
		f.must(f.RemoveJob(t.Context(), j.ID))
	}
	if _, _, removed := f.Sizes(); removed > 10_000+10 {
		t.Errorf("%d removed jobs are kept", removed)
	}
	for id, n := range map[int64]int{first: 0, last: 2} {
		changes, err := f.Changes(t.Context(), id, 10)
		f.must(err)
		want(t, "entries of the audit", len(changes), n)
	}
	f.must(f.Consistent())
}

func TestAuditKeepsTheLatest(t *testing.T) {
	f := newFixture(t, 2)
	j := f.job()
	for i := range 150 {
		_, err := f.EditJob(t.Context(), j.ID, store.Edit{Verb: "update",
			Change: func(j *store.Job) (bool, error) { j.Retries = i + 1; return false, nil }})
		f.must(err)
	}
	changes, err := f.Changes(t.Context(), j.ID, 1000)
	f.must(err)
	want(t, "entries", len(changes), 100)
	want(t, "versions", []int64{changes[0].Version, changes[99].Version}, []int64{151, 52})
}

// TestRetainForgetsLogs: pages go with their run, and count no longer.
func TestRetainForgetsLogs(t *testing.T) {
	f := newFixture(t, 2, memory.Retain(1, 10))
	j := f.job()
	add := func(run int64, want ...int64) {
		t.Helper()
		page := store.LogPage{RunID: run, FirstLine: 1, LastLine: 1, Size: 1, Content: []byte("page")}
		refused, err := f.AddLogPages(t.Context(), []store.LogPage{page}, 4)
		f.must(err)
		if !slices.Equal(refused, want) {
			t.Errorf("refused %v, want %v", refused, want)
		}
	}
	first := f.done(j.ID, 1)[0]
	add(first)
	second := f.done(j.ID, 1)[0]
	add(first) // it is gone
	add(second)
	if _, last, err := f.LogPages(t.Context(), first, 1, 10); err != nil || last != 0 {
		t.Errorf("the log of a run that was evicted has %d lines, %v", last, err)
	}
	if _, last, err := f.LogPages(t.Context(), second, 1, 10); err != nil || last != 1 {
		t.Errorf("the log of the other has %d lines, %v", last, err)
	}
	third := f.started(j.ID, store.LocalAddress(here))
	add(third.ID, third.ID)
	f.must(f.Consistent())
}

// pagesOf are pages of a run, of a hundred bytes each, from a line on.
func pagesOf(run int64, first, n int) (pages []store.LogPage) {
	for i := range n {
		pages = append(pages, store.LogPage{RunID: run, FirstLine: first + i, LastLine: first + i, Content: make([]byte, 100)})
	}
	return pages
}

// TestRetainLogs: the logs of all runs together take no more than they may, however many jobs
// there are, and make room when runs are dropped.
func TestRetainLogs(t *testing.T) {
	f := newFixture(t, 2, memory.RetainLogs(10*228), memory.Retain(2, 100))
	add := func(want []int64, pages ...store.LogPage) {
		t.Helper()
		refused, err := f.AddLogPages(t.Context(), pages, 1<<40)
		f.must(err)
		if !slices.Equal(refused, want) {
			t.Errorf("refused are %v, want %v", refused, want)
		}
		f.must(f.Consistent())
	}
	job := f.job()
	runs := append(f.done(job.ID, 2), f.done(f.job().ID, 1)...)
	add(nil, append(pagesOf(runs[0], 1, 5), pagesOf(runs[2], 1, 4)...)...)
	add([]int64{runs[1]}, append(pagesOf(runs[2], 5, 1), pagesOf(runs[1], 1, 2)...)...)
	add(nil, pagesOf(runs[2], 5, 1)...) // it is there
	add([]int64{runs[2]}, pagesOf(runs[2], 6, 1)...)
	notice := pagesOf(runs[2], 6, 1)
	notice[0].Notice = true
	add(nil, notice...)
	f.done(job.ID, 1) // the first run is dropped for it
	add(nil, pagesOf(runs[1], 1, 4)...)
	add([]int64{runs[1]}, pagesOf(runs[1], 5, 1)...)
}

// TestTheRecordIsBoundedInBytes: large entries drop the oldest ones, those of their jobs too.
func TestTheRecordIsBoundedInBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes more than the record holds, one call after the other; leave out -short")
	}
	f := newFixture(t, 2)
	job, busy := f.job(), f.job()
	record := func(of int64, size int) {
		t.Helper()
		text := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", size))
		_, err := f.RecordChange(t.Context(), store.Change{Verb: "viewed", Object: store.ObjectJob, JobID: of, Before: text, After: text})
		f.must(err)
	}
	count := func() (n int) {
		t.Helper()
		for q := (store.ChangeSearch{Limit: 1000}); q.Before != 1; {
			found, err := f.SearchChanges(t.Context(), q)
			f.must(err)
			n, q.Before = n+len(found.Changes), found.SearchedTo
		}
		return n
	}
	for range 3000 {
		record(job.ID, 1)
	}
	if n := count(); n != 3002 {
		t.Fatalf("%d small entries, want 3002", n)
	}
	for range 1200 {
		record(busy.ID, 60<<10)
	}
	if n := count(); n < 500 || n > 560 {
		t.Errorf("%d entries of 120 KiB are kept, want as many as 64 MiB have room for", n)
	}
	for of, want := range map[int64]int{job.ID: 0, busy.ID: 100} {
		list, err := f.Changes(t.Context(), of, 1000)
		f.must(err)
		if len(list) != want {
			t.Errorf("%d entries of job %d, want %d", len(list), of, want)
		}
	}
	f.must(f.RemoveJob(t.Context(), job.ID))
	if list, err := f.Changes(t.Context(), job.ID, 10); err != nil || len(list) != 1 {
		t.Errorf("entries of a job that was removed: %+v, %v", list, err)
	}
	f.must(f.DropChanges(t.Context(), time.Now().Add(time.Hour)))
	if n := count(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
