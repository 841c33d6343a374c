package console

// What users do goes to the log as well: who, from where, and what.

import (
	"context"
	"log/slog"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// verbs is a scheduler of which each verb that changes something is logged.
type verbs struct {
	xxljob.Scheduler
	log *slog.Logger
}

// say writes a line about a verb that was carried out. What has failed the request says.
func (v verbs) say(ctx context.Context, verb string, err error, args ...any) {
	if err != nil {
		return
	}
	from := store.OriginOf(ctx)
	v.log.InfoContext(ctx, "console: "+verb, append(args, "user", from.Actor, "client", from.Client, "request", from.RequestID)...)
}

func (v verbs) AddJob(ctx context.Context, j xxljob.Job) (xxljob.Job, error) {
	added, err := v.Scheduler.AddJob(ctx, j)
	v.say(ctx, "add a job", err, "job", added.ID, "app", j.App, "name", j.Name)
	return added, err
}

func (v verbs) UpdateJob(ctx context.Context, j xxljob.Job) (xxljob.Job, error) {
	now, err := v.Scheduler.UpdateJob(ctx, j)
	v.say(ctx, "edit a job", err, "job", j.ID, "app", j.App, "version", now.Version)
	return now, err
}

func (v verbs) RemoveJob(ctx context.Context, id int64) error {
	err := v.Scheduler.RemoveJob(ctx, id)
	v.say(ctx, "remove a job", err, "job", id)
	return err
}

func (v verbs) StartJob(ctx context.Context, id int64) error {
	err := v.Scheduler.StartJob(ctx, id)
	v.say(ctx, "start a job", err, "job", id)
	return err
}

func (v verbs) StopJob(ctx context.Context, id int64) error {
	err := v.Scheduler.StopJob(ctx, id)
	v.say(ctx, "stop a job", err, "job", id)
	return err
}

func (v verbs) Trigger(ctx context.Context, job int64, t xxljob.Trigger) ([]int64, error) {
	runs, err := v.Scheduler.Trigger(ctx, job, t)
	v.say(ctx, "run a job once", err, "job", job, "runs", runs)
	return runs, err
}

func (v verbs) Again(ctx context.Context, run int64) (int64, error) {
	id, err := v.Scheduler.Again(ctx, run)
	v.say(ctx, "run again", err, "run", run, "as", id)
	return id, err
}

func (v verbs) Kill(ctx context.Context, run int64) error {
	err := v.Scheduler.Kill(ctx, run)
	v.say(ctx, "kill a run", err, "run", run)
	return err
}
