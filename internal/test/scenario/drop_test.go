package scenario_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// dropping starts a node with jobs that run every minute, one of which keeps its runs for an hour.
func dropping(t *testing.T, st xxljob.Store) (s xxljob.Scheduler, short, long xxljob.Job) {
	t.Helper()
	s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog()})
	stage.Must(t, err)
	stage.Must(t, s.Handle("h", func(context.Context, *executor.Task) error { return nil }))
	for job, keep := range map[*xxljob.Job]time.Duration{&short: time.Hour, &long: 0} {
		name := "long"
		if keep > 0 {
			name = "short"
		}
		*job, err = s.AddJob(t.Context(), xxljob.Job{Name: name, Handler: "h", Schedule: xxljob.FixedRate(time.Minute), KeepRuns: keep})
		stage.Must(t, err)
	}
	stage.Must(t, s.Start(t.Context()))
	return s, short, long
}

func endedOf(t *testing.T, st xxljob.Store, job int64) []xxljob.Run {
	t.Helper()
	runs, err := st.Runs(t.Context(), xxljob.RunFilter{JobID: job, States: []xxljob.State{xxljob.StateSucceeded}, Limit: 10_000})
	stage.Must(t, err)
	return runs
}

// TestKeepRuns: ended runs of a job go that are older than it keeps them, within a quarter of
// an hour, and no others do.
func TestKeepRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, short, long := dropping(t, st)
		time.Sleep(5*time.Hour + 30*time.Second)
		for _, c := range []struct {
			job         int64
			least, most int
		}{{short.ID, 60, 76}, {long.ID, 299, 301}} {
			if n := len(endedOf(t, st, c.job)); n < c.least || n > c.most {
				t.Errorf("job %d has %d ended runs, want %d to %d", c.job, n, c.least, c.most)
			}
		}
		entries := drops(t, st)
		if len(entries) < 10 || entries[0].Actor != store.Scheduler || entries[0].After != `{"Runs":15}` {
			t.Errorf("the record has %d entries about it, the last %+v", len(entries), entries[:min(len(entries), 1)])
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// drops are the entries about runs that were deleted, newest first.
func drops(t *testing.T, st *memory.Store) []xxljob.Change {
	t.Helper()
	found, err := st.SearchChanges(t.Context(), xxljob.ChangeSearch{Object: store.ObjectRuns, Verb: "drop"})
	stage.Must(t, err)
	return found.Changes
}

// TestDropRuns: what was asked for goes, but for what ended just now.
func TestDropRuns(t *testing.T) {
	t.Parallel()
	if stage.Detector {
		t.Skip("one call after the other: the race detector has nothing to say of it")
	}
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, _, long := dropping(t, st)
		time.Sleep(40*time.Minute + 30*time.Second)
		q := xxljob.RunDrop{All: true, JobIDs: []int64{long.ID}, DryRun: true}
		got, err := s.DropRuns(t.Context(), q)
		stage.Must(t, err)
		if n := len(endedOf(t, st, long.ID)); got.Runs < 29 || got.Runs > 31 || n != 40 {
			t.Errorf("a dry run counts %d of %d runs, want all but those of ten minutes, and all left", got.Runs, n)
		}
		q.DryRun = false
		again, err := s.DropRuns(xxljob.WithActor(t.Context(), "ann"), q)
		stage.Must(t, err)
		if n := len(endedOf(t, st, long.ID)); again.Runs != got.Runs || n != 40-got.Runs {
			t.Errorf("deleted %d runs, %d are left, want what the dry run had counted, %d", again.Runs, n, got.Runs)
		}
		if e := drops(t, st); len(e) != 1 || e[0].Actor != "ann" || e[0].JobID != long.ID || !strings.Contains(e[0].After, `"All":true`) {
			t.Errorf("the record has the entries %+v", e)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestDropRunsRefuses: what is absurd is said field by field.
func TestDropRunsRefuses(t *testing.T) {
	t.Parallel()
	if stage.Detector {
		t.Skip("one call after the other: the race detector has nothing to say of it")
	}
	s, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Logger: stage.QuietLog()})
	stage.Must(t, err)
	for field, q := range map[string]xxljob.RunDrop{
		"Before":     {Before: time.Now().Add(time.Hour)},
		"All":        {Apps: []string{"app"}},
		"JobIDs":     {All: true, JobIDs: make([]int64, 100_000)},
		"KeepNewest": {KeepNewest: -5, JobIDs: []int64{1}},
	} {
		_, err := s.DropRuns(t.Context(), q)
		if list := xxljob.FieldErrors(err); len(list) != 1 || list[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, q := range []xxljob.RunDrop{{Before: time.Date(10_001, 1, 1, 0, 0, 0, 0, time.UTC)}, {Before: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)}} {
		if _, err := s.DropRuns(t.Context(), q); len(xxljob.FieldErrors(err)) != 1 {
			t.Errorf("%v: %v", q.Before, err)
		}
	}
	if got, err := s.DropRuns(t.Context(), xxljob.RunDrop{All: true, Apps: []string{"absent"}}); err != nil || got.Runs != 0 {
		t.Errorf("of an app that is absent: %+v, %v", got, err)
	}
	var none context.Context
	if _, err := s.DropRuns(none, xxljob.RunDrop{}); err == nil || strings.Contains(err.Error(), "All") {
		t.Errorf("without a context: %v", err)
	}
	plain, err := xxljob.New(struct{ xxljob.Store }{memory.New()}, xxljob.Config{App: "app", Logger: stage.QuietLog()})
	stage.Must(t, err)
	if _, err := plain.DropRuns(t.Context(), xxljob.RunDrop{All: true}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("of a store that cannot: %v", err)
	}
}

// TestKeepRunsBounds: what KeepRuns may be.
func TestKeepRunsBounds(t *testing.T) {
	for d, good := range map[time.Duration]bool{
		0: true, time.Minute: true, 100 * 365 * 24 * time.Hour: true,
		time.Minute - time.Millisecond: false, -time.Hour: false, 1 << 62: false, time.Minute + time.Microsecond: false,
	} {
		err := xxljob.Job{Name: "n", Handler: "h", KeepRuns: d}.Validate()
		list := xxljob.FieldErrors(err)
		if good && err != nil || !good && (len(list) != 1 || list[0].Field != "KeepRuns" || list[0].Code != "invalid") {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// lockedRuns is a store that has deleted some runs when an error comes: of one job always, and
// without a word of where to go on at the first call.
type lockedRuns struct {
	st    *memory.Store
	job   atomic.Int64
	calls int
}

func (s *lockedRuns) DropExpired(ctx context.Context, k store.KeepQuery) (store.Dropped, error) {
	if s.calls++; s.calls == 1 {
		return store.Dropped{Runs: 7}, errors.New("not now")
	}
	if job := s.job.Load(); k.After.JobID <= job {
		return store.Dropped{Runs: 5, More: true, Next: store.DropMark{JobID: job + 1}}, errors.New("its runs are locked")
	}
	return s.st.DropExpired(ctx, k)
}

// TestKeepRunsPassesBy: the runs of a job that cannot be deleted keep those of no other job,
// and the record has what was deleted before an error came.
func TestKeepRunsPassesBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locked := &lockedRuns{st: memory.New()}
		st := bent.AllOf(locked.st, locked)
		s, short, _ := dropping(t, st)
		locked.job.Store(short.ID - 1)
		time.Sleep(3*time.Hour + 30*time.Second)
		if n := len(endedOf(t, st, short.ID)); n > 76 {
			t.Errorf("the job behind it has %d ended runs, want 60 to 76", n)
		}
		var after []string
		for _, e := range drops(t, locked.st) {
			after = append(after, e.After)
		}
		if n := len(after); n < 8 || after[n-1] != `{"Runs":7}` || after[n-2] != `{"Runs":5}` || after[0] != `{"Runs":20}` {
			t.Errorf("the record has %q", after)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}
