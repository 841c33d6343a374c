package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestSweepsWithinBounds: a job whose run is gone is armed again within its bounds, as by
// the run's end.
func TestSweepsWithinBounds(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "sweep"), 1)
	began, err := s.Now(t.Context())
	must(t, err)
	for _, c := range []struct {
		what   string
		set    func(*store.Job)
		reason string // "": it is armed
	}{
		{"no bounds", func(*store.Job) {}, ""},
		{"a NotAfter that is later", func(j *store.Job) { j.NotAfter, j.MaxRuns = began.Add(24*time.Hour), 2 }, ""},
		{"a NotAfter that is sooner", func(j *store.Job) { j.NotAfter = began.Add(time.Minute) }, "finished: NotAfter"},
		{"a MaxRuns that is used up", func(j *store.Job) { j.MaxRuns = 1 }, "finished: MaxRuns"},
	} {
		job := newJob()
		job.Schedule = schedule.FixedDelay(time.Hour)
		c.set(&job)
		job, err := s.AddJob(t.Context(), job, nil)
		must(t, err)
		p := a.plan(job)
		p.Next, p.Wait, p.Runs[0].Type = time.Time{}, true, store.TriggerFixDelay
		runs, err := s.Claim(t.Context(), nil, []store.Plan{p})
		must(t, err)
		run(t, pgtest.SharedPool(t), fmt.Sprintf("delete from %q.xxl_job_log where id = %d", postgres.SchemaOf(s), runs[0].ID))
		must(t, s.Sweep(t.Context(), a.shards))
		got, err := s.Job(t.Context(), job.ID)
		must(t, err)
		if armed := !got.Next.Before(began.Add(time.Hour)); armed != (c.reason == "") || got.StopReason != c.reason || got.WaitRun != 0 {
			t.Errorf("%s: next %v, stopped for %q, waits for %d", c.what, got.Next, got.StopReason, got.WaitRun)
		}
	}
}

// TestBoundsAfterAnUpgrade: jobs from before migration 7 have no bounds, and what they have
// made is counted from then on.
func TestBoundsAfterAnUpgrade(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	job := a.job()
	a.planned(job)
	backTo(t, pool, schema, 6)
	must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))
	job, err := s.Job(t.Context(), job.ID)
	must(t, err)
	if job.Runs != 0 || job.MaxRuns != 0 || !job.NotBefore.IsZero() || !job.NotAfter.IsZero() {
		t.Errorf("a job from before: %+v", job)
	}
	a.planned(job)
	if job, err = s.Job(t.Context(), job.ID); err != nil || job.Runs != 1 {
		t.Errorf("after a claim: %+v, %v", job, err)
	}
}

// TestMaxRunsOfNodes: two nodes make as many runs as there are to make, while their job is
// stopped and started.
func TestMaxRunsOfNodes(t *testing.T) {
	t.Parallel()
	st := open(t, postgres.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var nodes []xxljob.Scheduler
	for _, name := range []string{"one", "two"} {
		s, err := xxljob.New(st, xxljob.Config{App: "app", Node: name, Logger: slog.New(slog.DiscardHandler), Limits: xxljob.Limits{AllowSubSecond: true}})
		must(t, err)
		must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		must(t, s.Start(ctx))
		defer s.Stop(context.Background())
		nodes = append(nodes, s)
	}
	const most = 12
	job, err := nodes[0].AddJob(ctx, store.Job{Name: "few", Handler: "work", Schedule: schedule.FixedRate(100 * time.Millisecond), MaxRuns: most, Misfire: store.MisfireFireOnceNow})
	must(t, err)
	made := func() (n int) {
		runs, err := st.Runs(ctx, store.RunFilter{JobID: job.ID, Limit: 1000})
		must(t, err)
		for _, r := range runs {
			if r.State != store.StateCancelled && r.State != store.StateSkipped && r.State != store.StatePlanned {
				n++
			}
		}
		return n
	}
	for turn := range 3 {
		await.Until(t, "some more runs are made", func() bool { return made() > turn })
		must(t, nodes[turn%2].StopJob(ctx, job.ID))
		if err := nodes[(turn+1)%2].StartJob(ctx, job.ID); err != nil {
			break // all are made: it was slow
		}
	}
	await.Until(t, "the job is stopped", func() bool {
		got, err := st.Job(ctx, job.ID)
		must(t, err)
		return got.Stopped && got.Runs == most
	})
	if n := made(); n != most {
		t.Errorf("%d runs were made, want %d", n, most)
	}
}
