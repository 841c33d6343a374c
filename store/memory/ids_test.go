package memory_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// emptyStore is a store as a process makes it at its start.
func emptyStore(t *testing.T, shards int) *memory.Store {
	t.Helper()
	s := memory.New()
	if err := s.SetShards(t.Context(), shards); err != nil {
		t.Fatal(err)
	}
	return s
}

func addTo(t *testing.T, s *memory.Store, app, key, name string) store.Job {
	t.Helper()
	j, err := s.AddJob(t.Context(), store.Job{App: app, Key: key, Name: name, Handler: "h", Schedule: schedule.Manual()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestRunIDsBeginAtTheClock: what a later process makes has greater ids than all of an
// earlier one, as executors elsewhere remember them.
func TestRunIDsBeginAtTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := func() (first, last int64) {
			s := emptyStore(t, 4)
			job := addTo(t, s, "app", "", "job")
			for i := range 1000 {
				r, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first = r.ID
				} else if r.ID != last+1 {
					t.Fatalf("id %d behind %d", r.ID, last)
				}
				last = r.ID
				if found, err := s.Run(t.Context(), r.ID); err != nil || found.ID != r.ID {
					t.Fatalf("run %d: %+v, %v", r.ID, found, err)
				}
			}
			if _, err := s.Run(t.Context(), first-1); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a run before the first: %v", err)
			}
			if page, err := s.Runs(t.Context(), store.RunFilter{Before: first + 2, Limit: 10}); err != nil || len(page) != 2 || page[0].ID != first+1 {
				t.Errorf("the first page from the third run back: %+v, %v", page, err)
			}
			return first, last
		}
		if first, _ := runs(); first != 1 { // a bubble begins in 2000
			t.Errorf("before 2025 the first id is %d", first)
		}
		time.Sleep(time.Until(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Millisecond)))
		if first, _ := runs(); first != 1 {
			t.Errorf("a moment before 2025 the first id is %d", first)
		}
		time.Sleep(time.Second + time.Millisecond)
		first, last := runs()
		if want := int64(1000<<13 + 1); first != want {
			t.Errorf("a second after the beginning of 2025 the first id is %d, want %d", first, want)
		}
		time.Sleep(time.Millisecond)
		if next, _ := runs(); next <= last {
			t.Errorf("a millisecond later a process begins with %d, and %d is given", next, last)
		}
		time.Sleep(time.Until(time.Date(2059, 1, 1, 0, 0, 0, 0, time.UTC)))
		if _, last := runs(); last >= 1<<53 {
			t.Errorf("id %d cannot be told from others in JavaScript", last)
		}
	})
}

// TestJobIDsAreStable: a job has the same id in each process, whatever else is added.
func TestJobIDsAreStable(t *testing.T) {
	ids := map[string]int64{}
	seen := map[int64]string{}
	for process := range 3 {
		s := emptyStore(t, 32)
		for i := range 300 {
			i = (i*7 + process*100) % 300 // in another order
			for _, j := range []store.Job{
				addTo(t, s, "app", fmt.Sprint(i), "job"), addTo(t, s, "app2", fmt.Sprint(i), "job"), addTo(t, s, "app", "", fmt.Sprint(i)),
			} {
				if j.ID < 1 || j.ID > 1<<31-1 || int64(j.Shard) != j.ID%32 {
					t.Fatalf("job %d in shard %d", j.ID, j.Shard)
				}
				name := j.App + "/" + j.Key + "/" + j.Name
				if was, known := ids[name]; known && was != j.ID {
					t.Errorf("%s is %d in one process and %d in another", name, was, j.ID)
				}
				if was, known := seen[j.ID]; known && was != name {
					t.Errorf("%s and %s have the id %d", name, was, j.ID)
				}
				ids[name], seen[j.ID] = j.ID, name
			}
		}
	}
}

// TestRemovedJobsKeepTheirIDs: an id that was given is not given again, so that what is
// left of a removed job does not meet its successor.
func TestRemovedJobsKeepTheirIDs(t *testing.T) {
	s := emptyStore(t, 4)
	given := map[int64]bool{}
	var first int64
	for i := range 2000 {
		j := addTo(t, s, "app", "key", "job")
		if given[j.ID] {
			t.Fatalf("id %d was given before", j.ID)
		}
		if i == 0 {
			first = j.ID
		}
		if j.ID != first+int64(i) {
			t.Fatalf("id %d is not the next free one behind %d", j.ID, first)
		}
		given[j.ID] = true
		if i == 0 {
			if _, err := s.AddRun(t.Context(), j.ID, store.Trigger{Key: "once"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.RemoveJob(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
	}
	j := addTo(t, s, "app", "key", "job")
	runs, err := s.Runs(t.Context(), store.RunFilter{JobID: j.ID, Limit: 10})
	if err != nil || len(runs) != 0 {
		t.Errorf("a new job has the runs %+v, %v", runs, err)
	}
	if r, err := s.AddRun(t.Context(), j.ID, store.Trigger{Key: "once"}); err != nil || r.JobID != j.ID {
		t.Errorf("a new job's trigger with an old one's key: %+v, %v", r, err)
	}
	one, err := s.AddJob(t.Context(), store.Job{App: "app", Key: "key", Name: "job", Handler: "h"}, nil)
	if !errors.Is(err, store.ErrDuplicateKey) {
		t.Errorf("the key a second time: %+v, %v", one, err)
	}
}
