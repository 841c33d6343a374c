package scenario_test

import (
	"bytes"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// recorded are the verbs of the record, oldest first.
func recorded(t *testing.T, st *memory.Store) (verbs []string) {
	t.Helper()
	found, err := st.SearchChanges(t.Context(), xxljob.ChangeSearch{Limit: 1000})
	stage.Must(t, err)
	for _, c := range slices.Backward(found.Changes) {
		verbs = append(verbs, c.Object+" "+c.Verb+" by "+c.Actor)
	}
	return verbs
}

// TestTheRecordOfAScheduler: what people do has an entry each, and a line in the log; what
// schedules and programs do has none.
func TestTheRecordOfAScheduler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, lines := memory.New(), &bytes.Buffer{}
		s, err := xxljob.New(st, xxljob.Config{App: "app", Node: "n", Logger: slog.New(slog.NewTextHandler(lines, nil))})
		stage.Must(t, err)
		s.Handle("handler", stage.NothingToDo)
		stage.Must(t, s.Start(t.Context()))
		ctx := xxljob.WithClient(xxljob.WithActor(t.Context(), "ann"), "10.0.0.1:9", "r-1")
		job, err := s.AddJob(ctx, xxljob.Job{Name: "j", Handler: "handler", Schedule: xxljob.FixedRate(time.Minute)})
		stage.Must(t, err)
		time.Sleep(time.Hour)
		ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		stage.WaitFor(t, s, ids[0], time.Minute)
		stage.Must(t, s.Kill(t.Context(), ids[0]))
		if got, want := recorded(t, st), []string{"job add by ann"}; !slices.Equal(got, want) {
			t.Fatalf("after an hour of runs, and a trigger of nobody: %q, want %q", got, want)
		}
		_, err = s.Trigger(ctx, job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		_, err = s.Again(ctx, ids[0])
		stage.Must(t, err)
		far, err := s.TriggerOne(ctx, job.ID, xxljob.Trigger{At: time.Now().Add(1000 * time.Hour)})
		stage.Must(t, err)
		stage.Must(t, s.Kill(ctx, far))
		job.Param = "p"
		_, err = s.UpdateJob(ctx, job)
		stage.Must(t, err)
		stage.Must(t, s.StopJob(ctx, job.ID))
		stage.Must(t, s.StopJob(ctx, job.ID))
		stage.Must(t, s.StartJob(ctx, job.ID))
		stage.Must(t, s.SaveGroup(ctx, xxljob.Group{App: "app", Title: "The app"}))
		stage.Must(t, s.RemoveJob(ctx, job.ID))
		stage.Must(t, s.RemoveGroup(ctx, "app"))
		_, err = s.AddJob(ctx, xxljob.Job{Name: "once", Handler: "handler", Schedule: xxljob.At(time.Now().Add(time.Second))})
		stage.Must(t, err)
		time.Sleep(time.Minute)
		stage.Must(t, s.Stop(t.Context()))
		want := []string{"job add by ann", "run trigger by ann", "run again by ann", "run trigger by ann", "run kill by ann", "job update by ann", "job stop by ann",
			"job start by ann", "app add by ann", "job remove by ann", "app remove by ann", "job add by ann", "job stop by scheduler"}
		if got := recorded(t, st); !slices.Equal(got, want) {
			t.Errorf("recorded:\n got %q\nwant %q", got, want)
		}
		told := 0
		for line := range strings.SplitSeq(lines.String(), "\n") {
			if strings.Contains(line, `msg="xxljob: change"`) {
				told++
				if !strings.Contains(line, "level=INFO") || !strings.Contains(line, "verb=") || !strings.Contains(line, "object=") ||
					!strings.Contains(line, "actor=ann client=10.0.0.1:9 request=r-1") && !strings.Contains(line, "actor=scheduler") {
					t.Errorf("line %q", line)
				}
			}
		}
		if told != len(want) {
			t.Errorf("%d lines of %d changes:\n%s", told, len(want), lines)
		}
	})
}

// TestAJobIsRestored by an ordinary edit, to each version that it had, also after it was
// stopped by itself, and a removed one by adding it again.
func TestAJobIsRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog()})
		stage.Must(t, err)
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "handler", Schedule: xxljob.FixedRate(time.Minute)})
		stage.Must(t, err)
		versions := []xxljob.Job{job}
		for _, change := range []func(*xxljob.Job){
			func(j *xxljob.Job) { j.Param, j.Tags = "p", []string{"a", "b"} },
			func(j *xxljob.Job) { j.Schedule, j.MaxRuns = xxljob.Cron("0 0 3 * * ?"), 7 },
			func(j *xxljob.Job) {
				j.Schedule, j.MaxRuns, j.Children, j.ChildKeys = xxljob.Manual(), 0, nil, []string{"app/later"}
			},
			func(j *xxljob.Job) {
				j.Name, j.Timeout, j.Retries, j.RetryBackoff = "k", time.Minute, 3, xxljob.Backoff{First: time.Second}
			},
			func(j *xxljob.Job) { j.GlueType, j.GlueSource, j.Handler = "GLUE_SHELL", "echo", "" },
		} {
			change(&job)
			job, err = s.UpdateJob(t.Context(), job)
			stage.Must(t, err)
			versions = append(versions, job)
		}
		for _, i := range []int{0, 3, 5, 1, 4, 2, 0} {
			was, err := st.JobAt(t.Context(), job.ID, versions[i].Version)
			stage.Must(t, err)
			was.Version = job.Version
			job, err = s.UpdateJob(t.Context(), was)
			stage.Must(t, err)
			if got, want := job.Definition(), versions[i].Definition(); !reflect.DeepEqual(got, want) {
				t.Errorf("restored:\n got %+v\nwant %+v", got, want)
			}
		}
		stage.Must(t, s.RemoveJob(t.Context(), job.ID))
		was, err := st.JobAt(t.Context(), job.ID, job.Version)
		stage.Must(t, err)
		was.ID, was.Version = 0, 0
		added, err := s.AddJob(t.Context(), was)
		stage.Must(t, err)
		got, want := added.Definition(), job.Definition()
		if got.ID, want.ID = 0, 0; !reflect.DeepEqual(got, want) {
			t.Errorf("added again:\n got %+v\nwant %+v", got, want)
		}
	})
}

// TestChangeRetention: entries are dropped once they are older than that, and none before.
func TestChangeRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog(), ChangeRetention: 48 * time.Hour})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		_, err = s.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "h"})
		stage.Must(t, err)
		time.Sleep(47 * time.Hour)
		if got := recorded(t, st); len(got) != 1 {
			t.Errorf("before its time: %q", got)
		}
		time.Sleep(2*time.Hour + 2*time.Minute)
		if got := recorded(t, st); len(got) != 0 {
			t.Errorf("after its time: %q", got)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestPrunesAreTheSchedulers: nobody has asked for them in a call.
func TestPrunesAreTheSchedulers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog()})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		ctx := xxljob.WithActor(t.Context(), "release 1")
		one := xxljob.Job{Key: "one", Name: "one", Handler: "h", Schedule: xxljob.FixedRate(time.Hour)}
		two := xxljob.Job{Key: "two", Name: "two", Handler: "h", Schedule: xxljob.FixedRate(time.Hour)}
		_, err = s.EnsureJobs(ctx, "app", []xxljob.Job{one, two}, xxljob.EnsureOptions{Prune: true})
		stage.Must(t, err)
		_, err = s.EnsureJobs(ctx, "app", []xxljob.Job{one}, xxljob.EnsureOptions{Prune: true})
		stage.Must(t, err)
		time.Sleep(time.Hour)
		stage.Must(t, s.Stop(t.Context()))
		found, err := st.SearchChanges(t.Context(), xxljob.ChangeSearch{Verb: "prune"})
		stage.Must(t, err)
		if len(found.Changes) != 1 || found.Changes[0].Actor != store.Scheduler || found.Changes[0].After != `{"StopReason":"pruned","Stopped":true}` {
			t.Errorf("prunes: %+v", found.Changes)
		}
	})
}
