package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

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
