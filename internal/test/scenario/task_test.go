package scenario_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
)

// knowledge is what a handler knew of its run.
type knowledge struct {
	xxljob.Task
	deadline time.Time // its context's
}

// teller is a handler that passes on what it knows.
func teller(to chan<- knowledge) xxljob.Handler {
	return func(ctx context.Context, task *xxljob.Task) error {
		at, _ := ctx.Deadline()
		to <- knowledge{xxljob.Task{RunID: task.RunID, JobID: task.JobID, App: task.App, JobName: task.JobName, JobKey: task.JobKey, Route: task.Route,
			JobVersion: task.JobVersion, TriggerType: task.TriggerType, Deadline: task.Deadline}, at}
		return nil
	}
}

// wantTold checks what the handler of a job's run was told, as far as the store knows it.
func wantTold(t *testing.T, st xxljob.Store, job xxljob.Job, runID int64, kind xxljob.TriggerType, got knowledge) {
	t.Helper()
	run, err := st.Run(t.Context(), runID)
	stage.Must(t, err)
	want := xxljob.Task{RunID: runID, JobID: job.ID, App: job.App, JobName: job.Name, JobKey: job.Key, Route: job.Route,
		JobVersion: run.JobVersion, TriggerType: string(kind), Deadline: got.Deadline}
	if got.Task != want || run.JobVersion == 0 || run.Type != kind {
		t.Errorf("the handler of %v was told %+v\nwant %+v", run.Type, got.Task, want)
	}
	if job.Timeout == 0 && !got.Deadline.IsZero() || job.Timeout > 0 && got.Deadline.IsZero() || !got.deadline.Equal(got.Deadline) {
		t.Errorf("with a timeout of %v the deadline is %v, that of the context %v", job.Timeout, got.Deadline, got.deadline)
	}
}

// TestWhatAHandlerIsTold: at its own node and at another one, by a trigger and by the
// schedule.
func TestWhatAHandlerIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, b := stage.StartNode(t, st, "a", &stage.Journal{}), stage.StartNode(t, st, "b", &stage.Journal{})
		defer stage.Stop(t, a, b)
		got := make(chan knowledge, 1)
		stage.Must(t, a.Handle("tell", teller(got)))
		far, err := executor.New(executor.Config{App: "far", Logger: stage.QuietLog()})
		stage.Must(t, err)
		stage.Must(t, far.Handle("tell", teller(got)))
		stage.Must(t, b.Attach(far))
		defer far.Stop(context.Background())
		time.Sleep(time.Minute)
		for _, job := range []xxljob.Job{
			{App: "app", Name: "here", Key: "k", Route: route.Round},
			{App: "app", Name: "no key", Route: route.Nearest, Timeout: time.Minute},
			{App: "far", Name: "there", Key: "another", Route: route.First, Timeout: time.Hour},
		} {
			job.Handler, job.Schedule = "tell", xxljob.FixedRate(time.Minute)
			job, err := a.AddJob(t.Context(), job)
			stage.Must(t, err)
			id := stage.Trigger(t, a, job)
			wantTold(t, st, job, id, xxljob.TriggerManual, <-got)
			due := <-got
			wantTold(t, st, job, due.RunID, xxljob.TriggerFixRate, due)
			stage.Must(t, a.StopJob(t.Context(), job.ID))
		}
	})
}

// TestWhatAHandlerIsToldOverHTTP: the same where the run has come over a real connection.
func TestWhatAHandlerIsToldOverHTTP(t *testing.T) {
	s, st, admin := stage.OverHTTP(t, xxljob.Config{})
	got := make(chan knowledge, 1)
	startRemote(t, st, admin, "tell", teller(got))
	job, err := s.AddJob(t.Context(), xxljob.Job{App: "remote", Name: "there", Key: "k", Handler: "tell", Route: route.Last, Timeout: time.Minute, Schedule: xxljob.Manual()})
	stage.Must(t, err)
	id := stage.Trigger(t, s, job)
	told := <-got
	_, err = s.Wait(t.Context(), id)
	stage.Must(t, err)
	wantTold(t, st, job, id, xxljob.TriggerManual, told)
}

// startRemote starts an executor of the app "remote" with one handler, which is registered
// when it returns.
func startRemote(t *testing.T, st xxljob.Store, admin, handler string, h xxljob.Handler) {
	t.Helper()
	e, err := executor.New(executor.Config{App: "remote", Logger: stage.QuietLog(), Addr: "127.0.0.1:0",
		Admins: []executor.AdminCluster{{Addresses: []string{admin}, Token: stage.Token}}})
	stage.Must(t, err)
	stage.Must(t, e.Handle(handler, h))
	stage.Must(t, e.Start(t.Context()))
	t.Cleanup(func() { _ = e.Stop(context.Background()) })
	await.Until(t, "registered", func() bool {
		regs, err := st.Registrations(t.Context(), xxljob.RegistrationFilter{App: "remote"})
		return err == nil && len(regs) == 1
	})
}
