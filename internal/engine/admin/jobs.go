package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/grants"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Jobs that executors manage over the wire, as G4 does. A caller sees the jobs of its
// own app and no others, if it is one of Config.HTTP.JobsAPI; in a real admin any caller manages
// all (docs/xxl-job.md, who may do what).

// AddJob adds a job, stopped, to the caller's app. The group's number in the request
// is not looked at: apps have names here.
func (a *Admin) AddJob(ctx context.Context, req wire.AddJobRequest) (wire.Return, error) {
	return a.manage(ctx, "addJob", func(ctx context.Context, app string) (wire.Return, error) {
		f := store.Faults{Of: "job"}
		if f.Plain("App", app, 1, 64); f.Err() != nil { // as in registrations
			return wire.Return{}, f.Err()
		}
		job := store.Job{App: app, Stopped: true}
		if err := a.mayWrite(job, req.JobDefinition); err != nil {
			return wire.Return{}, err
		}
		defineByWire(&job, req.JobDefinition)
		scriptByWire(&job, req.JobDefinition)
		job.Stopped = !job.Schedule.IsManual() // which has nothing that anybody might start
		added, err := a.Catalog.AddUnkeyed(ctx, a.grantsOf(app), job)
		if err != nil {
			return wire.Return{}, err
		}
		id := strconv.FormatInt(added.ID, 10)
		return wire.Return{Code: wire.CodeSuccess, Msg: wire.MsgSuccess, Content: id, Data: id}, nil
	})
}

// UpdateJob replaces what a request can say of a job, but for its script, which has a
// form of its own with real admins: type, source and remark stay, and so does what a
// request cannot say, the children for instance.
func (a *Admin) UpdateJob(ctx context.Context, req wire.UpdateJobRequest) (wire.Return, error) {
	return a.onJob(ctx, "updateJob", req.ID, func(ctx context.Context, job store.Job) error {
		if err := a.mayWrite(job, req.JobDefinition); err != nil {
			return err
		}
		defineByWire(&job, req.JobDefinition)
		_, err := a.Catalog.UpdateJob(ctx, a.grantsOf(job.App), job) // a compare-and-set, by the version that was read
		return err
	})
}

// RemoveJob answers 200 also where there is no such job: a client that has missed the
// first answer asks again.
func (a *Admin) RemoveJob(ctx context.Context, req wire.JobRequest) (wire.Return, error) {
	remove := func(ctx context.Context, job store.Job) error { return a.Catalog.RemoveJob(ctx, job.ID) }
	return a.onJobOr(ctx, "removeJob", req.ID, wire.Success(), remove)
}

func (a *Admin) StartJob(ctx context.Context, req wire.JobRequest) (wire.Return, error) {
	return a.onJob(ctx, "startJob", req.ID, func(ctx context.Context, job store.Job) error { return a.Catalog.StartJob(ctx, job.ID) })
}

func (a *Admin) StopJob(ctx context.Context, req wire.JobRequest) (wire.Return, error) {
	return a.onJob(ctx, "stopJob", req.ID, func(ctx context.Context, job store.Job) error { return a.Catalog.StopJob(ctx, job.ID) })
}

func (a *Admin) TriggerJob(ctx context.Context, req wire.TriggerJobRequest) (wire.Return, error) {
	return a.onJob(ctx, "triggerJob", req.ID, func(ctx context.Context, job store.Job) error {
		addresses, err := addressesByWire(req.AddressList)
		if err != nil {
			return err
		}
		t := store.Trigger{Param: &req.ExecutorParam, Type: store.TriggerAPI, Addresses: addresses}
		_, err = a.Catalog.TriggerAs(ctx, a.grantsOf(job.App), job.ID, t)
		if req.ExecutorParam == "" && errors.Is(err, errs.ErrScripts) {
			t.Param = nil // the job's own, as it is defined: a request cannot say that it gives none
			_, err = a.Catalog.TriggerAs(ctx, a.grantsOf(job.App), job.ID, t)
		}
		return err
	})
}

// maxGiven is how many addresses a trigger over the wire may choose among: they are kept
// with its run.
const maxGiven = 1000

// addressesByWire reads the addresses in a list with commas.
func addressesByWire(list string) (addrs []string, err error) {
	f := store.Faults{Of: "trigger"}
	for addr := range strings.SplitSeq(list, ",") {
		if addr = strings.TrimSpace(addr); addr == "" {
			continue
		}
		if len(addrs) == maxGiven {
			f.Add("addressList", errs.Shorten(list, 40), fmt.Errorf("at most %d addresses", maxGiven))
			break
		}
		if f.Plain("addressList", addr, 1, 255); len(f.Errs) > 0 {
			break
		}
		addrs = append(addrs, addr)
	}
	return addrs, f.Err()
}

// Words for those who manage jobs.
const (
	// msgNoJob is about a job that is not there, or is another app's.
	msgNoJob = "job %d not found."
	// msgJobsOff begins as an admin of before 3.5 answers, which programs may go by.
	msgJobsOff    = wire.MsgURINotFound + " Jobs are not managed over HTTP here (Config.HTTP.JobsAPI)."
	msgJobsNotFor = "app %q may not manage jobs over HTTP: Config.HTTP.JobsAPI does not name it"
	msgNoScripts  = "app %q may not define scripts over HTTP: glue type %q (Config.HTTP.JobsAPIScripts)"
	msgScripts    = "%s: app %q may not do that over HTTP (Config.HTTP.JobsAPIScripts)"
)

// refused is what a caller is told that may not do what it asks for.
type refused string

func (r refused) Error() string { return string(r) }

// appGrants are those of a program that has shown that it is the app: all in its app, but for
// scripts, which the callers of most apps do not write.
type appGrants struct {
	app     string
	scripts bool
}

func (g appGrants) Sees(app string) bool      { return app == g.app }
func (g appGrants) Runs(app string) bool      { return app == g.app }
func (g appGrants) Edits(app string) bool     { return app == g.app }
func (g appGrants) Reveals(string) bool       { return false }
func (g appGrants) Hides(string, string) bool { return false }
func (g appGrants) Scripts(app string) bool   { return app == g.app && g.scripts }

// grantsOf are those of a caller that may manage the jobs of the app.
func (a *Admin) grantsOf(app string) grants.Grants {
	return grants.Of(appGrants{app, slices.Contains(a.S.Cfg.HTTP.JobsAPIScripts, app)})
}

// mayWrite refuses a request that says that the job is a script, or another one, where its caller
// may not write any. An update would leave type and source alone: it says so instead.
func (a *Admin) mayWrite(job store.Job, d wire.JobDefinition) error {
	if glue := (store.Job{GlueType: d.GlueType}); glue.IsScript() && d.GlueType != job.GlueType && !a.grantsOf(job.App).Scripts(job.App) {
		return refused(fmt.Sprintf(msgNoScripts, job.App, errs.Shorten(d.GlueType, 40)))
	}
	return nil
}

// onJob does something with a job of the caller's app, which has to be there.
func (a *Admin) onJob(ctx context.Context, verb string, id int64, do func(context.Context, store.Job) error) (wire.Return, error) {
	return a.onJobOr(ctx, verb, id, wire.Failf(msgNoJob, id), do)
}

// onJobOr does something with a job of the caller's app; where there is none it answers
// absent. An edit that somebody else's has overtaken is tried again.
func (a *Admin) onJobOr(ctx context.Context, verb string, id int64, absent wire.Return, do func(context.Context, store.Job) error) (wire.Return, error) {
	return a.manage(ctx, verb, func(ctx context.Context, app string) (wire.Return, error) {
		for {
			job, err := a.S.Store.Job(ctx, id)
			if err == nil && job.App == app {
				err = do(ctx, job)
			} else if err == nil {
				err = errs.ErrNotFound
			}
			switch {
			case errors.Is(err, errs.ErrConflict) && ctx.Err() == nil:
			case errs.IsNotFound(err):
				return absent, nil
			case err != nil:
				return wire.Return{}, err
			default:
				return wire.Success(), nil
			}
		}
	})
}

// manage lets a caller that may manage its app's jobs do something. What is wrong with a
// request is said to it; of the store it learns nothing.
func (a *Admin) manage(ctx context.Context, verb string, do func(ctx context.Context, app string) (wire.Return, error)) (wire.Return, error) {
	caller := a.Authorizer.callerOf(ctx)
	if refusal, ok := a.mayManage(caller, verb); !ok {
		return refusal, nil
	}
	ret, err := do(store.WithActor(ctx, "app:"+caller.App), caller.App)
	if errors.Is(err, errs.ErrScripts) {
		return wire.Failf(msgScripts, err.Error(), caller.App), nil
	}
	var no refused
	if len(store.FieldErrors(err)) > 0 || errors.As(err, &no) || errors.Is(err, errs.ErrManual) || errors.Is(err, errs.ErrNeverFires) || errors.Is(err, errs.ErrUnknownHandler) {
		return wire.Failf("%s", err.Error()), nil
	}
	return ret, err
}

// mayManage lets callers pass that have shown which app they are, of an app that may, so
// many times in a while. The refused ones cost nothing.
func (a *Admin) mayManage(caller wire.Caller, verb string) (refusal wire.Return, ok bool) {
	apps := a.S.Cfg.HTTP.JobsAPI
	switch {
	case len(apps) == 0:
		return wire.Failf(msgJobsOff, verb), false
	case caller.App == "":
		return wire.Failf(wire.MsgIdentityEmpty), false
	case !slices.Contains(apps, caller.App):
		return wire.Failf(msgJobsNotFor, errs.Shorten(caller.App, 64)), false
	}
	if why, _ := a.Authorizer.whyNot(caller, caller.App); why != "" {
		return wire.Failf("%s", why), false
	}
	if !a.Quota.Take(caller.Scope, time.Now()) {
		return wire.Return{Code: wire.CodeTimeout, Msg: wire.MsgTooMany}, false
	}
	return wire.Return{}, true
}

// defineByWire takes over what a request says of a job, but for its script.
func defineByWire(job *store.Job, d wire.JobDefinition) {
	job.Name, job.Author, job.AlarmEmail = d.Name, d.Author, d.AlarmEmail
	given := schedule.Schedule{Type: schedule.Type(d.ScheduleType), Conf: strings.TrimSpace(d.ScheduleConf)}
	if given.IsManual() {
		given = schedule.Manual()
	}
	if given.Type == job.Schedule.Type && given.GoesByClocks() { // a request knows no zones
		given.Zone, given.DST = job.Schedule.Zone, job.Schedule.DST
	}
	job.Schedule = given
	if given.IsManual() { // nor bounds, which this has nothing for
		job.NotBefore, job.NotAfter, job.MaxRuns = time.Time{}, time.Time{}, 0
	}
	job.Misfire, job.Route = store.Misfire(d.MisfireStrategy), d.ExecutorRouteStrategy
	job.Handler, job.Param, job.Block = d.ExecutorHandler, d.ExecutorParam, d.ExecutorBlockStrategy
	job.Timeout = time.Duration(max(d.ExecutorTimeout, 0)) * time.Second
	job.Retries = max(d.ExecutorFailRetryCount, 0)
}

// scriptByWire takes over the script. Shells take a carriage return for a part of the
// word before it, and forms send one at the end of each line.
func scriptByWire(job *store.Job, d wire.JobDefinition) {
	job.GlueType, job.GlueSource, job.GlueRemark = d.GlueType, d.GlueSource, d.GlueRemark
	if d.GlueType == "GLUE_SHELL" {
		job.GlueSource = strings.ReplaceAll(d.GlueSource, "\r", "")
	}
}
