package xxljob_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// TestBoundsFaults: what is wrong with bounds is said with the field and its value.
func TestBoundsFaults(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2027, 1, n, 0, 0, 0, 0, time.UTC) }
	beyond := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		set  func(*xxljob.Job)
		want map[string]string // nothing: it is in order
	}{
		{"none", func(*xxljob.Job) {}, nil},
		{"all", func(j *xxljob.Job) { j.NotBefore, j.NotAfter, j.MaxRuns = day(1), day(2), 1<<31-1 }, nil},
		{"one instant", func(j *xxljob.Job) { j.NotBefore, j.NotAfter = day(1), day(1) }, nil},
		{"within a millisecond", func(j *xxljob.Job) { j.NotBefore, j.NotAfter = day(1).Add(2000), day(1).Add(1000) }, nil},
		{"the bounds of the bounds", func(j *xxljob.Job) {
			j.NotBefore, j.NotAfter = time.UnixMilli(1), beyond.Add(-time.Millisecond)
		}, nil},
		{"the wrong way round", func(j *xxljob.Job) { j.NotBefore, j.NotAfter = day(2), day(1) },
			map[string]string{"NotAfter": "before NotBefore, 2027-01-02T00:00:00Z"}},
		{"below zero", func(j *xxljob.Job) { j.MaxRuns = -1 }, map[string]string{"MaxRuns": `"-1"`}},
		{"too many", func(j *xxljob.Job) { j.MaxRuns = 1 << 31 }, map[string]string{"MaxRuns": "2147483648"}},
		{"too early", func(j *xxljob.Job) { j.NotBefore = time.UnixMilli(0) }, map[string]string{"NotBefore": "1970-01-01T00:00:00Z"}},
		{"too late", func(j *xxljob.Job) { j.NotBefore, j.NotAfter = beyond, beyond.AddDate(5, 0, 0) },
			map[string]string{"NotBefore": "10000-01-01", "NotAfter": "10005-01-01"}},
		{"nothing to bound", func(j *xxljob.Job) {
			j.Schedule, j.NotBefore, j.NotAfter, j.MaxRuns = xxljob.Manual(), day(1), day(2), 1
		}, map[string]string{"NotBefore": "no schedule", "NotAfter": "no schedule", "MaxRuns": "no schedule"}},
	} {
		j := stage.GoodJob()
		j.Schedule = xxljob.Cron("0 0 3 * * ?")
		tt.set(&j)
		if err := j.Validate(); tt.want == nil {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		} else {
			requireFaults(t, err, calledIn(j), tt.want)
		}
	}
}

// TestDigestsWithoutBounds: a job that sets no bound has the digest that it had before
// there were any, so that an update of the library changes nothing; and each bound is part
// of the digest of a job that has it.
func TestDigestsWithoutBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := xxljob.New(withEveryJob{memory.New()}, xxljob.Config{App: "app", Logger: stage.QuietLog()})
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
type withEveryJob struct{ xxljob.Store }

func (s withEveryJob) Jobs(ctx context.Context, f xxljob.JobFilter) (jobs []xxljob.Job, err error) {
	if len(f.IDs) == 0 {
		return s.Store.Jobs(ctx, f)
	}
	for _, id := range f.IDs {
		jobs = append(jobs, xxljob.Job{ID: id, App: "app", Key: fmt.Sprint("job ", id)})
	}
	return jobs, nil
}
