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

// labels are those of a job's runs, which nearly always are the same for all of them. A run's
// id is none of them: each value is kept for as long as a profile is.
type labels struct {
	app, key, trigger string
	ctx               context.Context // has them; the handler's is made of it, so that pprof.Do in there adds to them
}

// labelsOf returns the labels of a run of the job. Executor.mu is held.
func (j *job) labelsOf(t *Task) *labels {
	if l := j.labels; l != nil && l.app == t.App && l.key == t.JobKey && l.trigger == t.TriggerType {
		return l
	}
	name := t.JobKey
	if name == "" {
		name = strconv.FormatInt(t.JobID, 10)
	}
	set := pprof.Labels(labelApp, t.App, labelJob, name, labelType, t.TriggerType)
	j.labels = &labels{t.App, t.JobKey, t.TriggerType, pprof.WithLabels(context.Background(), set)}
	return j.labels
}

// put puts the labels on this goroutine.
func (l *labels) put() { pprof.SetGoroutineLabels(l.ctx) }

// unlabel takes them off again: what the end of a run starts is not the run's.
func unlabel() { pprof.SetGoroutineLabels(context.Background()) }
