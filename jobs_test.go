package xxljob_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// TestDigestsWithoutBounds: a job that sets no bound has the digest that it had before
// there were any, so that an update of the library changes nothing; and each bound is part
// of the digest of a job that has it.
func TestDigestsWithoutBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := xxljob.New(everyJob(), xxljob.Config{App: "app", Logger: stage.QuietLog()})
		stage.Must(t, err)
		digest := func(j xxljob.Job) string {
			t.Helper()
			e, err := s.EnsureJob(t.Context(), j)
			stage.Must(t, err)
			return e.Job.Ensured
		}
		plain := xxljob.Job{Name: "plain", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")}
		for want, j := range map[string]xxljob.Job{
			"7aeb42490b9bff1a25abe947e5419748": plain,
			"54506e2cb95dde44826a5236b7244858": {Name: "manual", Handler: "work"},
			"29c1a625a40c24c677b70c115a79b3c9": {
				App: "other", Key: "k", Name: "full", Author: "me", AlarmEmail: "me@example.com", Schedule: xxljob.Crontab("0 3 * * *").In("Asia/Shanghai"),
				Misfire: xxljob.MisfireFireOnceNow, CatchUp: xxljob.CatchUpOnce, Route: xxljob.RouteRound, Handler: "work", Param: "p", Block: xxljob.BlockCoverEarly,
				Timeout: 90 * time.Second, Retries: 3, Children: []int64{1, 2}, GlueType: "GLUE_SHELL", GlueSource: "echo", GlueRemark: "first",
			},
		} {
			if got := digest(j); got != want {
				t.Errorf("the digest of %q is %s, and was %s", j.Name, got, want)
			}
		}
		seen := map[string]bool{}
		at := time.Now().Add(time.Hour)
		for _, set := range []func(*xxljob.Job){
			func(*xxljob.Job) {},
			func(j *xxljob.Job) { j.NotBefore = at },
			func(j *xxljob.Job) { j.NotAfter = at.AddDate(1, 0, 0) },
			func(j *xxljob.Job) { j.MaxRuns = 3 },
		} {
			j := plain
			set(&j)
			d := digest(j)
			if seen[d] {
				t.Errorf("%+v has the digest of another definition", j)
			}
			seen[d] = true
			j.NotBefore, j.NotAfter = j.NotBefore.In(time.FixedZone("east", 3600)), j.NotAfter.Add(999)
			if j.NotAfter.Before(at) {
				j.NotAfter = time.Time{}
			}
			if again := digest(j); again != d {
				t.Errorf("%+v has another digest in another zone", j)
			}
		}
	})
}

// TestBoundsOverTheWire: a request knows nothing of bounds, so they stay, but for a job that
// it leaves without a schedule.
func TestBoundsOverTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far"}, Tokens: map[string][]string{"far": {"of-far"}}}},
			map[string]*peer{at1: {token: "of-far"}})
		until := time.Now().UTC().AddDate(1, 0, 0)
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "nightly", Handler: "work", Schedule: xxljob.Crontab("@daily"), NotAfter: until, MaxRuns: 7})
		stage.Must(t, err)
		for _, kind := range []string{"CRON", "NONE"} {
			d := definition("nightly")
			if d.ScheduleType = kind; kind == "NONE" {
				d.ScheduleConf = ""
			}
			if ret := stage.Manage(t, e.admin, "far", "updateJob", wire.UpdateJobRequest{ID: job.ID, JobDefinition: d}); !ret.OK() {
				t.Errorf("%s: %+v", kind, ret)
			}
			got, err := e.store.Job(t.Context(), job.ID)
			stage.Must(t, err)
			if bounded := got.NotAfter.Equal(until) && got.MaxRuns == 7; bounded != (kind == "CRON") || string(got.Schedule.Type) != kind {
				t.Errorf("%s: %v, NotAfter %v, MaxRuns %d", kind, got.Schedule, got.NotAfter, got.MaxRuns)
			}
		}
	})
}

// withEveryJob is a store that has a job of every id that somebody asks for.
type withEveryJob struct{ st xxljob.Store }

func (s withEveryJob) Jobs(ctx context.Context, f xxljob.JobFilter) (jobs []xxljob.Job, err error) {
	if len(f.IDs) == 0 {
		return s.st.Jobs(ctx, f)
	}
	for _, id := range f.IDs {
		jobs = append(jobs, xxljob.Job{ID: id, App: "app", Key: fmt.Sprint("job ", id)})
	}
	return jobs, nil
}

// everyJob is a new store with every job.
func everyJob() xxljob.Store {
	st := memory.New()
	return bent.StoreOf(st, withEveryJob{st})
}

// TestCallsCopy: a Job is a plain value. What the caller does to it after a call
// changes nothing in the store, and what the store keeps does not show in it.
func TestCallsCopy(t *testing.T) {
	s, err := xxljob.New(everyJob(), xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
	stage.Must(t, err)
	given := stage.GoodJob()
	given.Children = []int64{1, 2}
	added, err := s.AddJob(t.Context(), given)
	stage.Must(t, err)
	given.Children[0], added.Children[1] = 8, 9
	again, err := s.UpdateJob(t.Context(), xxljob.Job{ID: added.ID, Name: "renamed", Handler: "handler", Schedule: given.Schedule, Children: []int64{3}})
	stage.Must(t, err)
	if again.Children[0] != 3 || given.Name != "job" || added.Name != "job" || given.Children[1] != 2 || added.Children[0] != 1 {
		t.Errorf("given %+v\nadded %+v\nupdated %+v", given, added, again)
	}
	stage.Must(t, s.Stop(t.Context()))
}

// TestDefaultsOfAJob: what AddJob fills in for empty fields.
func TestDefaultsOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		berlin, err := time.LoadLocation("Europe/Berlin")
		stage.Must(t, err)
		s, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Location: berlin, Logger: slog.New(slog.DiscardHandler)})
		stage.Must(t, err)
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "nightly", Handler: "report", Schedule: xxljob.Cron("0 0 3 * * ?")})
		stage.Must(t, err)
		if job.App != "app" || job.Key != "nightly" || job.Misfire != "DO_NOTHING" || job.CatchUp != "" || job.Route != "NEAREST" ||
			job.Block != "SERIAL_EXECUTION" || job.GlueType != "BEAN" || job.Schedule.Zone != "Europe/Berlin" || job.Stopped {
			t.Errorf("%+v", job)
		}
		if job.ID <= 0 || job.Version != 1 || !job.Next.Equal(time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)) || !job.Added.Equal(time.Now()) {
			t.Errorf("ID %d, version %d, next %v, added %v", job.ID, job.Version, job.Next, job.Added)
		}
		manual, err := s.AddJob(t.Context(), xxljob.Job{Name: "manual", Handler: "report"})
		stage.Must(t, err)
		if manual.Stopped || manual.StopReason != "" || manual.Schedule.Type != xxljob.ScheduleNone || !manual.Next.IsZero() {
			t.Errorf("%+v", manual)
		}
		// A zone of its own stays, and so does a schedule without wall-clock times.
		for _, schedule := range []xxljob.Schedule{xxljob.Cron("0 0 3 * * ?").In("UTC"), xxljob.FixedRate(time.Minute)} {
			job, err := s.AddJob(t.Context(), xxljob.Job{Name: schedule.String(), Handler: "report", Schedule: schedule})
			if err != nil || job.Schedule != schedule {
				t.Errorf("%v is stored as %v, %v", schedule, job.Schedule, err)
			}
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestOnceBelowMillisecond: a ONCE schedule is due once, also when its stored
// time is finer than a millisecond; or it is refused.
func TestOnceBelowMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(10*time.Second + 300*time.Microsecond).UTC()
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "h",
			Schedule: xxljob.Schedule{Type: xxljob.ScheduleOnce, Conf: at.Format(time.RFC3339Nano)}})
		if err != nil {
			return // refusing it is as good
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		runs, err := st.Runs(t.Context(), xxljob.RunFilter{JobID: job.ID})
		if err != nil || len(runs) != 1 {
			t.Errorf("%d runs, want 1 (%v)", len(runs), err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
