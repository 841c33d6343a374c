package console

// What users do goes to the log as well: who, from where, and what.

import (
	"context"
	"log/slog"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/grants"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// loggedScheduler is what the console calls of a scheduler. Each that changes something is logged, and each
// that stores a parameter is told for whom: the scheduler checks what a user may give to which job.
// What is not here the console cannot call.
type loggedScheduler struct {
	s   xxljob.Scheduler
	log *slog.Logger
}

// grantsOf are those of the user, for the scheduler to check.
func (q *request) grantsOf() grants.Grants { return grants.Of(userGrants{q, q.user}) }

// userGrants has a user's rights as schedulers ask for them.
type userGrants struct {
	q *request
	u *User
}

func (g userGrants) Sees(app string) bool  { return allowed(g.u, see, app) }
func (g userGrants) Runs(app string) bool  { return allowed(g.u, operate, app) }
func (g userGrants) Edits(app string) bool { return allowed(g.u, edit, app) }

// Reveals is for admins: they see all that is recorded anyway.
func (g userGrants) Reveals(string) bool { return g.u != nil && g.u.Admin }

func (g userGrants) Hides(app, param string) bool {
	return param != "" && g.q.redacted(app, FieldParam, param) != param
}

// Scripts is for those who may operate the app as well: a script's parameter is given by triggers, too.
func (g userGrants) Scripts(app string) bool {
	return g.u != nil && (g.u.Admin || g.u.Scripts && allowed(g.u, operate, app))
}

// say writes a line about a verb that was carried out. What has failed the request says.
func (v *loggedScheduler) say(ctx context.Context, verb string, err error, args ...any) {
	if err != nil {
		return
	}
	from := store.OriginOf(ctx)
	v.log.InfoContext(ctx, "console: "+verb, append(args, "user", from.Actor, "client", from.Client, "request", from.RequestID)...)
}

func (v *loggedScheduler) AddJob(ctx context.Context, g grants.Grants, j xxljob.Job) (xxljob.Job, error) {
	added, err := v.s.AddJob(grants.In(ctx, g), j)
	v.say(ctx, "add a job", err, "job", added.ID, "app", j.App, "name", j.Name)
	return added, err
}

func (v *loggedScheduler) UpdateJob(ctx context.Context, g grants.Grants, j xxljob.Job) (xxljob.Job, error) {
	now, err := v.s.UpdateJob(grants.In(ctx, g), j)
	v.say(ctx, "edit a job", err, "job", j.ID, "app", j.App, "version", now.Version)
	return now, err
}

func (v *loggedScheduler) RemoveJob(ctx context.Context, id int64) error {
	err := v.s.RemoveJob(ctx, id)
	v.say(ctx, "remove a job", err, "job", id)
	return err
}

func (v *loggedScheduler) StartJob(ctx context.Context, id int64) error {
	err := v.s.StartJob(ctx, id)
	v.say(ctx, "start a job", err, "job", id)
	return err
}

func (v *loggedScheduler) StopJob(ctx context.Context, id int64) error {
	err := v.s.StopJob(ctx, id)
	v.say(ctx, "stop a job", err, "job", id)
	return err
}

func (v *loggedScheduler) Trigger(ctx context.Context, g grants.Grants, job int64, t xxljob.Trigger) ([]int64, error) {
	runs, err := v.s.Trigger(grants.In(ctx, g), job, t)
	v.say(ctx, "run a job once", err, "job", job, "runs", runs)
	return runs, err
}

func (v *loggedScheduler) Again(ctx context.Context, g grants.Grants, run int64) (int64, error) {
	id, err := v.s.Again(grants.In(ctx, g), run)
	v.say(ctx, "run again", err, "run", run, "as", id)
	return id, err
}

func (v *loggedScheduler) Kill(ctx context.Context, run int64) error {
	err := v.s.Kill(ctx, run)
	v.say(ctx, "kill a run", err, "run", run)
	return err
}

// What only reads.

func (v *loggedScheduler) Log(ctx context.Context, run int64, from int) (wire.LogResult, error) {
	return v.s.Log(ctx, run, from)
}

func (v *loggedScheduler) LogTail(ctx context.Context, run int64, n int) (wire.LogResult, error) {
	return v.s.LogTail(ctx, run, n)
}

func (v *loggedScheduler) Stats() xxljob.Stats { return v.s.Stats() }

func (v *loggedScheduler) Troubles() []xxljob.Trouble { return v.s.Troubles() }

func (v *loggedScheduler) Ready() error { return v.s.Ready() }
