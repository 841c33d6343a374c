package executor

// The context of a handler, and which run its goroutine works for, in profiles.

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/xxljob/xxljob/internal/inside"
)

// runContext is the context of a run's handler, the run itself. Many handlers never look at
// theirs, so the real one is made when somebody does.
type runContext run

var _ context.Context = (*runContext)(nil)

// liveContext is the real context of a run.
type liveContext struct {
	context.Context
	cancel context.CancelCauseFunc
	grace  *time.Timer // runs from a cancellation to the return of the handler; guarded by Executor.mu
}

// never stands for the context of a run whose handler has returned and has never asked for it.
func (j *job) never() *liveContext { return &j.origin.exec.neverAsked }

// timeLimit is what a run with a timeout has.
type timeLimit struct {
	timeout time.Duration
	// Set by start, before the handler is called.
	release context.CancelFunc // of the context's own deadline
	timer   *time.Timer        // calls timedOut
}

// Deadline implements context.Context.
func (c *runContext) Deadline() (time.Time, bool) {
	if c.limit == nil {
		return time.Time{}, false
	}
	return (*run)(c).context().Deadline()
}

// Done implements context.Context.
func (c *runContext) Done() <-chan struct{} { return (*run)(c).context().Done() }

// Err implements context.Context.
func (c *runContext) Err() error {
	switch l := c.live.Load(); l {
	case nil:
		return nil
	case c.job.never():
		return context.Canceled
	default:
		return l.Err()
	}
}

// Value implements context.Context.
func (c *runContext) Value(key any) any { return (*run)(c).context().Value(key) }

// String is the text of the real one. Without it fmt would read what others write.
func (c *runContext) String() string { return fmt.Sprint((*run)(c).context().Context) }

// context returns the real one.
func (r *run) context() *liveContext {
	for {
		was := r.live.Load()
		over := was == r.job.never()
		if was != nil && !over {
			return was
		}
		l := r.newContext(r.marked())
		if over {
			l.cancel(nil)
		}
		if r.live.CompareAndSwap(was, l) {
			return l
		}
	}
}

func (r *run) newContext(parent context.Context) *liveContext {
	l := new(liveContext)
	l.Context, l.cancel = context.WithCancelCause(parent)
	return l
}

// marked is what a run's context is made of: its labels, by whom it is run, and for runs of the
// scheduler in this process which run it is.
func (r *run) marked() context.Context {
	mark := inside.Run{Executor: r.job.origin.exec}
	if !r.job.origin.remote() {
		mark.RunID, mark.JobID = r.id.id, r.job.id
	}
	return inside.Mark(r.labels.ctx, mark)
}

// setLimit begins the timeout of a run: what the handler calls can see the deadline.
// Executor.mu is held.
func (r *run) setLimit() {
	l := r.limit
	parent, release := context.WithTimeoutCause(r.marked(), l.timeout, ErrTimeout)
	deadline, _ := parent.Deadline()
	r.Task.Deadline = deadline.In(r.ScheduledAt.Location())
	l.release = release
	r.live.Store(r.newContext(parent))
	l.timer = time.AfterFunc(l.timeout, r.timedOut)
}

// letGo cancels the context of a run whose handler has returned.
func (r *run) letGo() {
	if !r.live.CompareAndSwap(nil, r.job.never()) {
		r.live.Load().cancel(nil)
	}
}

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
