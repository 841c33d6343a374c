package stage

// What every test needs: jobs, runs and times in few words.

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// Must ends the test on an error that should not be there.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// QuietLog is a logger that says nothing.
func QuietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// NothingToDo is a handler.
func NothingToDo(context.Context, *xxljob.Task) error { return nil }

// AllOf pages through all runs of a filter, oldest first.
func AllOf(t testing.TB, st xxljob.Store, f xxljob.RunFilter) []xxljob.Run {
	t.Helper()
	f.Limit = 1000
	var all []xxljob.Run
	for {
		page, err := st.Runs(context.Background(), f)
		Must(t, err)
		all = append(all, page...)
		if len(page) < f.Limit {
			slices.SortFunc(all, func(a, b xxljob.Run) int { return cmp.Compare(a.ID, b.ID) })
			return all
		}
		f.Before = page[len(page)-1].ID
	}
}

// AllRuns returns all runs of a store, oldest first.
func AllRuns(t testing.TB, st xxljob.Store) []xxljob.Run {
	t.Helper()
	return AllOf(t, st, xxljob.RunFilter{})
}

// Succeeded returns the job's recorded successes, oldest first; of all jobs where
// the job is 0.
func Succeeded(t testing.TB, st xxljob.Store, job int64) []xxljob.Run {
	t.Helper()
	return AllOf(t, st, xxljob.RunFilter{JobID: job, States: []xxljob.State{xxljob.StateSucceeded}})
}

// CountStates counts runs by their states.
func CountStates(runs []xxljob.Run) map[xxljob.State]int {
	states := map[xxljob.State]int{}
	for _, r := range runs {
		states[r.State]++
	}
	return states
}

// WaitFor is Wait with a bound.
func WaitFor(t *testing.T, s xxljob.Scheduler, id int64, d time.Duration) xxljob.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	run, err := s.Wait(ctx, id)
	if err != nil {
		now, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		run, _ = s.Wait(now, id) // as it is by now
		t.Errorf("run %d is %v after %v: %v", id, run.State, d, err)
	}
	return run
}

// Trigger triggers a job by hand.
func Trigger(t *testing.T, s xxljob.Scheduler, job xxljob.Job) int64 {
	t.Helper()
	ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
	Must(t, err)
	return ids[0]
}

// TriggerNew adds a job and triggers it once.
func TriggerNew(t *testing.T, s xxljob.Scheduler, job xxljob.Job) int64 {
	t.Helper()
	job, err := s.AddJob(t.Context(), job)
	Must(t, err)
	return Trigger(t, s, job)
}

// Elsewhere is a scheduler of an app that has no handlers and is not started: jobs whose handlers
// nobody has yet, or ever, are defined by it.
func Elsewhere(t *testing.T, st xxljob.Store, app string) xxljob.Scheduler {
	t.Helper()
	s, err := xxljob.New(st, xxljob.Config{App: app, Logger: QuietLog()})
	Must(t, err)
	return s
}

// GoodJob is a job that every store takes.
func GoodJob() xxljob.Job {
	return xxljob.Job{App: "app", Key: "key", Name: "job", Handler: "handler", Schedule: xxljob.FixedRate(time.Second)}
}

// One is 1 for true.
func One(b bool) int {
	if b {
		return 1
	}
	return 0
}

// RequireText checks that a text says something.
func RequireText(t *testing.T, what, text, words string) {
	t.Helper()
	if !strings.Contains(text, words) {
		t.Errorf("%s %q does not say %q", what, text, words)
	}
}

// At is a time written as in RFC 3339; the empty text is the zero time.
func At(t testing.TB, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	v, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// IncarnationOf is the incarnation of a node, as the store has it.
func IncarnationOf(t *testing.T, st xxljob.Store, n *Node) string {
	t.Helper()
	for _, o := range Observe(t, st).Nodes {
		if o.ID == n.Name {
			return o.Incarnation
		}
	}
	return "" // buried: nothing names it
}

// AddressAt is the address of the executors that are attached to the node of a name.
func AddressAt(t *testing.T, st xxljob.Store, name string) string {
	t.Helper()
	for _, o := range Observe(t, st).Nodes {
		if o.ID == name {
			return store.LocalAddress(o.Incarnation)
		}
	}
	t.Fatalf("there is no node %s", name)
	return ""
}

// Heap is how many bytes the heap has after a collection.
func Heap() int64 {
	runtime.GC()
	runtime.GC() // what pools keep is gone with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// contents is everything a caller can read from a store.
type contents struct {
	Jobs    []xxljob.Job
	Groups  []xxljob.Group
	Runs    []xxljob.Run
	Changes map[int64][]xxljob.Change
}

// ContentsOf is what a store has, to be compared.
func ContentsOf(t *testing.T, st xxljob.Store) contents {
	t.Helper()
	ctx := context.Background()
	var c contents
	var err error
	c.Jobs, err = st.Jobs(ctx, xxljob.JobFilter{Limit: 1000})
	Must(t, err)
	c.Groups, err = st.Groups(ctx)
	Must(t, err)
	c.Runs = AllRuns(t, st)
	c.Changes = map[int64][]xxljob.Change{}
	for _, id := range idsWithin(t) {
		c.Changes[id], err = st.Changes(ctx, id, 100)
		Must(t, err)
	}
	for _, j := range c.Jobs {
		c.Changes[j.ID], err = st.Changes(ctx, j.ID, 100)
		Must(t, err)
	}
	return c
}

// idsWithin are the ids that jobs of these tests get, or would get: the audit of one that
// must not have been added would be there too.
func idsWithin(t *testing.T) (ids []int64) {
	t.Helper()
	st := memory.New()
	Must(t, st.SetShards(t.Context(), 1))
	for _, app := range []string{"app", "other", "fresh", "elsewhere", " "} {
		for _, name := range []string{"one", "two", "three", "four", "4", "ensured", "unknown", "new", "once", "key", "good"} {
			for range 2 { // the second is the next free one
				job, err := st.AddJob(t.Context(), xxljob.Job{App: app, Key: name, Name: name, Handler: "work", Schedule: xxljob.Manual()}, nil)
				Must(t, err)
				Must(t, st.RemoveJob(t.Context(), job.ID))
				ids = append(ids, job.ID)
			}
		}
	}
	return ids
}

// RequireSame says which part of a store's contents has changed.
func RequireSame(t *testing.T, what string, before, after contents) {
	t.Helper()
	if !reflect.DeepEqual(before.Jobs, after.Jobs) {
		t.Errorf("%s: stored a job:\n%+v\nbefore:\n%+v", what, after.Jobs, before.Jobs)
	}
	if !reflect.DeepEqual(before.Groups, after.Groups) {
		t.Errorf("%s: stored a group:\n%+v\nbefore:\n%+v", what, after.Groups, before.Groups)
	}
	if !reflect.DeepEqual(before.Runs, after.Runs) {
		t.Errorf("%s: stored a run:\n%+v\nbefore:\n%+v", what, after.Runs, before.Runs)
	}
	if !reflect.DeepEqual(before.Changes, after.Changes) {
		t.Errorf("%s: stored a change:\n%+v\nbefore:\n%+v", what, after.Changes, before.Changes)
	}
}

// SnapshotOf is what a store holds of jobs, runs and addresses.
func SnapshotOf(t *testing.T, st xxljob.Store) string {
	t.Helper()
	regs, err := st.Registrations(t.Context(), xxljob.RegistrationFilter{Limit: 1000})
	Must(t, err)
	for i := range regs {
		regs[i].Updated = time.Time{}
	}
	jobs, err := st.Jobs(t.Context(), xxljob.JobFilter{})
	Must(t, err)
	return fmt.Sprint(regs, jobs, AllRuns(t, st))
}
