package xxljob

// Jobs that executors manage over the wire, as G4 does. A caller sees the jobs of its
// own app and no others; in a real admin any caller manages all (XXL-JOB section 1.4).

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// AddJob adds a job, stopped, to the caller's app. The group's number in the request
// is not looked at: apps have names here.
func (a *adminSide) AddJob(ctx context.Context, req wire.AddJobRequest) (wire.Return, error) {
	return a.manage(ctx, func(ctx context.Context, app string) (wire.Return, error) {
		job := Job{App: app, Stopped: true}
		defineByWire(&job, req.JobDefinition)
		scriptByWire(&job, req.JobDefinition)
		added, err := a.s.addUnkeyed(ctx, job)
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
func (a *adminSide) UpdateJob(ctx context.Context, req wire.UpdateJobRequest) (wire.Return, error) {
	return a.onJob(ctx, req.ID, func(ctx context.Context, job Job) error {
		defineByWire(&job, req.JobDefinition)
		_, err := a.s.UpdateJob(ctx, job) // a compare-and-set, by the version that was read
		return err
	})
}

// RemoveJob answers 200 also where there is no such job: a client that has missed the
// first answer asks again.
func (a *adminSide) RemoveJob(ctx context.Context, req wire.JobRequest) (wire.Return, error) {
	remove := func(ctx context.Context, job Job) error { return a.s.RemoveJob(ctx, job.ID) }
	return a.onJobOr(ctx, req.ID, wire.Success(), remove)
}

func (a *adminSide) StartJob(ctx context.Context, req wire.JobRequest) (wire.Return, error) {
	return a.onJob(ctx, req.ID, func(ctx context.Context, job Job) error { return a.s.StartJob(ctx, job.ID) })
}

func (a *adminSide) StopJob(ctx context.Context, req wire.JobRequest) (wire.Return, error) {
	return a.onJob(ctx, req.ID, func(ctx context.Context, job Job) error { return a.s.StopJob(ctx, job.ID) })
}

func (a *adminSide) TriggerJob(ctx context.Context, req wire.TriggerJobRequest) (wire.Return, error) {
	return a.onJob(ctx, req.ID, func(ctx context.Context, job Job) error {
		t := Trigger{Param: &req.ExecutorParam, Type: TriggerAPI}
		for addr := range strings.SplitSeq(req.AddressList, ",") {
			if addr = strings.TrimSpace(addr); addr != "" {
				t.Addresses = append(t.Addresses, addr)
			}
		}
		_, err := a.s.trigger(ctx, job.ID, t)
		return err
	})
}

// msgNoJob is the answer about a job that is not there, or is another app's.
const msgNoJob = "job %d not found."

// onJob does something with a job of the caller's app, which has to be there.
func (a *adminSide) onJob(ctx context.Context, id int64, do func(context.Context, Job) error) (wire.Return, error) {
	return a.onJobOr(ctx, id, wire.Failf(msgNoJob, id), do)
}

// onJobOr does something with a job of the caller's app; where there is none it answers
// absent. An edit that somebody else's has overtaken is tried again.
func (a *adminSide) onJobOr(ctx context.Context, id int64, absent wire.Return, do func(context.Context, Job) error) (wire.Return, error) {
	return a.manage(ctx, func(ctx context.Context, app string) (wire.Return, error) {
		for {
			job, err := a.s.store.Job(ctx, id)
			if err == nil && job.App == app {
				err = do(ctx, job)
			} else if err == nil {
				err = ErrNotFound
			}
			switch {
			case errors.Is(err, ErrConflict) && ctx.Err() == nil:
			case isNotFound(err):
				return absent, nil
			case err != nil:
				return wire.Return{}, err
			default:
				return wire.Success(), nil
			}
		}
	})
}

// manage lets a caller that has shown which app it is do something, so many times in a
// while. What is wrong with a request is said to it; of the store it learns nothing.
func (a *adminSide) manage(ctx context.Context, do func(ctx context.Context, app string) (wire.Return, error)) (wire.Return, error) {
	caller, _ := wire.CallerFrom(ctx)
	if caller.App == "" {
		return wire.Failf(wire.MsgIdentityEmpty), nil
	}
	if !a.quota.take(caller.App, time.Now()) {
		return wire.Return{Code: wire.CodeTimeout, Msg: wire.MsgTooMany}, nil
	}
	ret, err := do(WithActor(ctx, "app:"+caller.App), caller.App)
	var bad invalid
	if errors.As(err, &bad) || errors.Is(err, ErrManual) || errors.Is(err, ErrNeverFires) || errors.Is(err, ErrUnknownHandler) {
		return wire.Failf("%s", err.Error()), nil
	}
	return ret, err
}

// defineByWire takes over what a request says of a job, but for its script.
func defineByWire(job *Job, d wire.JobDefinition) {
	job.Name, job.Author, job.AlarmEmail = d.Name, d.Author, d.AlarmEmail
	schedule := Schedule{Type: ScheduleType(d.ScheduleType), Conf: strings.TrimSpace(d.ScheduleConf)}
	if schedule.IsManual() {
		schedule = Manual()
	}
	if schedule.Type == job.Schedule.Type && schedule.goesByClocks() { // a request knows no zones
		schedule.Zone, schedule.DST = job.Schedule.Zone, job.Schedule.DST
	}
	job.Schedule = schedule
	job.Misfire, job.Route = Misfire(d.MisfireStrategy), d.ExecutorRouteStrategy
	job.Handler, job.Param, job.Block = d.ExecutorHandler, d.ExecutorParam, d.ExecutorBlockStrategy
	job.Timeout = time.Duration(max(d.ExecutorTimeout, 0)) * time.Second
	job.Retries = max(d.ExecutorFailRetryCount, 0)
}

// scriptByWire takes over the script. Shells take a carriage return for a part of the
// word before it, and forms send one at the end of each line.
func scriptByWire(job *Job, d wire.JobDefinition) {
	job.GlueType, job.GlueSource, job.GlueRemark = d.GlueType, d.GlueSource, d.GlueRemark
	if d.GlueType == "GLUE_SHELL" {
		job.GlueSource = strings.ReplaceAll(d.GlueSource, "\r", "")
	}
}
