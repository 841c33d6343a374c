package executor

// Which run a goroutine works for, in profiles.

import (
	"context"
	"runtime/pprof"
	"strconv"
)

// The keys of the labels that handlers' goroutines carry in profiles, and those that they start.
const (
	labelApp  = "xxljob.app"
	labelJob  = "xxljob.job"     // the job's key, or its id
	labelType = "xxljob.trigger" // what made the run: MANUAL, CRON and so on
)

// label puts the labels of the run on this goroutine, which ends with it, and into the context
// of its handler, so that pprof.Do in there adds to them. A run's id is none of them: each
// value is kept for as long as a profile is.
func (r *run) label(ctx context.Context) context.Context {
	job := r.JobKey
	if job == "" {
		job = strconv.FormatInt(r.JobID, 10)
	}
	ctx = pprof.WithLabels(ctx, pprof.Labels(labelApp, r.App, labelJob, job, labelType, r.TriggerType))
	pprof.SetGoroutineLabels(ctx)
	return ctx
}

// unlabel takes them off again: what the end of a run starts is not the run's.
func unlabel() { pprof.SetGoroutineLabels(context.Background()) }
