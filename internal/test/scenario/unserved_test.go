package scenario_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// TestAppsWithoutExecutorsAreNamed: apps with enabled jobs, or runs that are due, for which nobody has been there for ten
// minutes are named once an hour, in one line of one node, also where nothing of them is due; those
// that are served, inside a scheduler or by a registration, and those without either are not.
func TestAppsWithoutExecutorsAreNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const line = "msg=\"xxljob: apps with enabled jobs"
		st, log := memory.New(), &stage.LogLines{}
		var nodes []xxljob.Scheduler
		for i := range 3 {
			cfg := xxljob.Config{App: "here", Node: fmt.Sprint("n", i)}
			log.LogTo(&cfg)
			s, err := xxljob.New(st, cfg)
			stage.Must(t, err)
			stage.Must(t, s.Handle("h", stage.NothingToDo))
			stage.Must(t, s.Start(t.Context()))
			nodes = append(nodes, s)
		}
		for _, app := range []string{"here", "far", "gone", "idle", "nobodys", "byhand", "unasked"} {
			job := xxljob.Job{App: app, Key: "k", Name: app, Handler: "h", Schedule: xxljob.Cron("0 0 0 1 1 ? 2040"), OnNoExecutor: xxljob.OnNoExecutorWait}
			if app == "byhand" || app == "unasked" {
				job.Schedule = xxljob.Schedule{}
			}
			job, err := nodes[0].AddJob(t.Context(), job)
			stage.Must(t, err)
			if app == "byhand" {
				stage.Trigger(t, nodes[0], job)
			}
			if app == "idle" {
				err := nodes[0].StopJob(t.Context(), job.ID)
				stage.Must(t, err)
			}
		}
		// far is served all the time, gone is until now.
		beat := func(apps ...string) {
			for _, app := range apps {
				stage.Must(t, st.PutAddresses(t.Context(), []store.Registration{{App: app, Address: "http://127.0.0.1:1/" + app}}))
			}
		}
		beat("far", "gone")
		serve := func(d time.Duration, apps ...string) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(30 * time.Second) {
				beat(apps...)
			}
		}
		serve(9*time.Minute, "far", "gone")
		if lines := log.With(line); len(lines) != 0 {
			t.Errorf("before ten minutes: %s", lines)
		}
		serve(6*time.Minute, "far", "gone")
		if lines := log.With(line, "level=WARN", "nobodys", "jobs=1"); len(lines) != 1 || len(log.With(line)) != 1 {
			t.Errorf("after ten minutes: %s", log.With(line))
		}
		serve(50*time.Minute, "far")
		if lines := log.With(line); len(lines) != 1 {
			t.Errorf("within an hour: %s", lines)
		}
		serve(20*time.Minute, "far")
		if lines := log.With(line); len(lines) != 2 || !strings.Contains(lines[1], `apps="byhand, gone, nobodys"`) {
			t.Errorf("after an hour: %s", lines)
		}
		for _, s := range nodes {
			stage.Must(t, s.Stop(t.Context()))
		}
	})
}
