package postgres_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// serial makes names and start tokens of the tests unique.
var serial atomic.Int64

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func nodeOf(incarnation string) store.Node {
	return store.Node{ID: "node-" + incarnation, Incarnation: incarnation}
}

// actor is a node that owns all shards, with words for what its scheduler does.
type actor struct {
	*testing.T
	*postgres.Store
	ctx    context.Context // of what the scheduler's own loops ask
	inc    string
	shards []store.Shard
}

// join makes a node without shards.
func join(t *testing.T, s *postgres.Store, inc string, shards int) (*actor, store.View) {
	t.Helper()
	must(t, s.SetShards(t.Context(), shards))
	view, err := s.Join(t.Context(), nodeOf(inc))
	must(t, err)
	return &actor{T: t, Store: s, ctx: urgent.Mark(t.Context()), inc: inc}, view
}

// own makes a node that has all shards.
func own(t *testing.T, s *postgres.Store, inc string, shards int) *actor {
	t.Helper()
	a, view := join(t, s, inc, shards)
	taken, err := s.TakeShards(t.Context(), inc, view.Shards)
	must(t, err)
	if len(taken) != shards {
		t.Fatalf("%s took %+v", inc, taken)
	}
	a.shards = taken
	return a
}

func (a *actor) epoch(shard int) int64 {
	for _, sh := range a.shards {
		if sh.ID == shard {
			return sh.Epoch
		}
	}
	return 0
}

// job adds a job that is due now.
func (a *actor) job() store.Job {
	a.Helper()
	job, err := a.AddJob(a.ctx, newJob(), nil)
	must(a.T, err)
	return job
}

func newJob() store.Job {
	return store.Job{App: "app", Name: "Grüße 作业", Handler: "h", Param: `p\ 'q' "r"`, Schedule: schedule.Cron("0 * * * * ?"),
		Misfire: store.MisfireDoNothing, Route: "ROUND", Block: "SERIAL_EXECUTION", GlueType: store.GlueBean,
		Next: time.Now().UTC().Truncate(time.Second)}
}

func (a *actor) plan(job store.Job) store.Plan {
	return store.Plan{JobID: job.ID, Shard: job.Shard, Epoch: a.epoch(job.Shard), Version: job.Version, Due: job.Next, Next: job.Next.Add(time.Hour),
		Runs: []store.NewRun{{At: job.Next, Type: store.TriggerCron, State: store.StatePlanned}}}
}

func (a *actor) startOf(run store.Run, version int64) store.Start {
	return store.Start{RunID: run.ID, JobID: run.JobID, Shard: run.Shard, Epoch: a.epoch(run.Shard), JobVersion: version,
		State: store.StateStarted, Owner: a.inc, Token: serial.Add(1), Address: store.LocalAddress(a.inc), Handler: "h", Block: "SERIAL_EXECUTION"}
}

func result(run store.Run) store.Result {
	inc, _ := store.LocalIncarnation(run.Address)
	return store.Result{RunID: run.ID, Incarnation: inc, Token: run.Token, State: store.StateSucceeded, HandleMsg: `done\n`}
}

// planned claims one run.
func (a *actor) planned(job store.Job) store.Run {
	a.Helper()
	runs, err := a.Claim(a.ctx, nil, []store.Plan{a.plan(job)})
	must(a.T, err)
	if len(runs) != 1 {
		a.Fatalf("claimed %+v", runs)
	}
	return runs[0]
}

// started claims and starts one run.
func (a *actor) started(job store.Job) store.Run {
	a.Helper()
	answers, err := a.Start(a.ctx, nil, []store.Start{a.startOf(a.planned(job), job.Version)})
	must(a.T, err)
	if answers[0].Status != store.StartOK {
		a.Fatalf("start: status %d", answers[0].Status)
	}
	return answers[0].Run
}

// clocked reads the store's clock. What it returns reads it again, and reports whether a time
// of the store's, which has milliseconds, lies between.
func clocked(t *testing.T, s *postgres.Store) (between func(time.Time) bool) {
	t.Helper()
	began, err := s.Now(t.Context())
	must(t, err)
	return func(at time.Time) bool {
		t.Helper()
		now, err := s.Now(t.Context())
		must(t, err)
		return !at.Before(began.Truncate(time.Millisecond)) && !at.After(now)
	}
}

// life leads a job through all of its life, and checks what it reads on the way.
func life(t *testing.T, s *postgres.Store) {
	t.Helper()
	a := own(t, s, "life", 2)
	given := newJob()
	job := a.job()
	due, err := s.Scan(a.ctx, store.ScanResult{}, store.ScanQuery{Shards: a.shards, Before: time.Now().Add(time.Hour), Jobs: 10, Runs: 10})
	must(t, err)
	if len(due.Jobs) != 1 || due.Jobs[0].Name != given.Name || due.Jobs[0].Param != given.Param || !due.Jobs[0].Next.Equal(job.Next) {
		t.Fatalf("scanned %+v", due)
	}
	run := a.started(job)
	sinceThen := clocked(t, s)
	accepted, err := s.Finish(a.ctx, nil, []store.Result{result(run)})
	must(t, err)
	if len(accepted) != 1 || accepted[0].HandleMsg != `done\n` || !sinceThen(accepted[0].Ended) {
		t.Fatalf("finished %+v", accepted)
	}
	param := "extra"
	added, err := s.AddRun(a.ctx, job.ID, store.Trigger{Key: "k", Param: &param, Addresses: []string{"http://a", `odd"{},\`}})
	must(t, err)
	again, err := s.AddRun(a.ctx, job.ID, store.Trigger{Key: "k"})
	must(t, err)
	if again.ID != added.ID || len(again.Addresses) != 2 || again.Addresses[1] != `odd"{},\` {
		t.Fatalf("the run of the key: %+v, want %+v", again, added)
	}
	edited, err := s.EditJob(a.ctx, job.ID, store.Edit{Verb: "stop", Change: func(j *store.Job) (bool, error) { j.Stopped = true; return true, nil }})
	must(t, err)
	if !edited.Stopped || !sinceThen(edited.Updated) {
		t.Fatalf("stopped %+v", edited)
	}
	jobs, err := s.Jobs(a.ctx, store.JobFilter{Name: "GRÜSSE"[:2]})
	must(t, err)
	if len(jobs) != 1 {
		t.Fatalf("found %+v", jobs)
	}
	must(t, s.Sweep(a.ctx, a.shards))
	must(t, s.PutAddresses(a.ctx, []store.Registration{{App: "app", Address: "http://b", BootID: `odd"{},\`, Capabilities: []string{`odd"{},\`, "", "NULL", "作"}}}))
	regs, err := s.Addresses(a.ctx, "app", time.Hour)
	must(t, err)
	if len(regs) != 1 || regs[0].BootID != `odd"{},\` || !slices.Equal(regs[0].Capabilities, []string{`odd"{},\`, "", "NULL", "作"}) {
		t.Fatalf("registered %+v", regs)
	}
	must(t, s.SaveGroup(a.ctx, store.Group{App: "app", Title: "作", Addresses: []string{"http://a"}}))
	must(t, s.RemoveJob(a.ctx, job.ID))
	if _, err := s.Job(a.ctx, job.ID); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("a removed job: %v", err)
	}
	runs, err := s.Runs(a.ctx, store.RunFilter{JobID: job.ID})
	must(t, err)
	if len(runs) != 2 || runs[0].State != store.StateCancelled || runs[1].State != store.StateSucceeded {
		t.Fatalf("runs %+v", runs)
	}
	must(t, s.DropRuns(a.ctx, time.Now().AddDate(0, 0, -2)))
	must(t, s.Leave(a.ctx, a.inc))
}
