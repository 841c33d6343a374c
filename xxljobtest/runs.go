package xxljobtest

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// ExecutorRun is a run that a fake executor was asked for. It holds the whole request, whatever
// the executor's generation: LogID is the id of the run, and keys that real executors of
// XXL-JOB ignore are there too.
type ExecutorRun struct {
	wire.TriggerRequest
	// Arrived is when the request came.
	Arrived time.Time
}

// Runs returns the runs that the executor was asked for, in order of arrival, whatever it did
// with them. A run that was sent twice is listed twice. Requests with a wrong token, to an
// unknown path or with a malformed body are left out.
//
// Inside a bubble it first lets everything happen that is due by now.
func (e *Executor) Runs() []ExecutorRun {
	settle()
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.runs)
}

// WaitRun waits until the executor has been asked for n runs and returns the n-th, counted
// from 1. It may not have been answered yet. If ctx ends first, the test fails.
//
// Give ctx a deadline in a bubble. Time goes on there as long as a scheduler runs, so a wait
// for a run that never comes would not end.
func (e *Executor) WaitRun(ctx context.Context, n int) ExecutorRun {
	e.t.Helper()
	if n < 1 {
		e.t.Fatalf("xxljobtest: executor of app %q: WaitRun: runs are counted from 1, and not %d", e.o.App, n)
	}
	for {
		e.mu.Lock()
		got, more := len(e.runs), e.more
		if got >= n {
			defer e.mu.Unlock()
			return e.runs[n-1]
		}
		e.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			e.t.Fatalf("xxljobtest: executor of app %q: WaitRun: %v; it was asked for %s, want %d", e.o.App, context.Cause(ctx), count(got, "run"), n)
		}
	}
}

// Kills returns the kills that the executor was asked for, in order of arrival. Like XXL-JOB's
// executors it goes by the JobID alone, and ends every run of the job.
//
// Inside a bubble it first lets everything happen that is due by now.
func (e *Executor) Kills() []wire.KillRequest {
	settle()
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.kills)
}

// openRun is a run that has arrived, was not refused and has not ended. Whoever removes it
// from Executor.open reports its end.
type openRun struct {
	ExecutorRun
	ended chan struct{} // closed when it is no longer open
}

// arrived records a run and returns it with the function that decides about it. The run is
// open from now on, so that a test which has seen it can report it.
func (e *Executor) arrived(req wire.TriggerRequest) (*openRun, AnswerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	o := &openRun{ExecutorRun{TriggerRequest: req, Arrived: time.Now()}, make(chan struct{})}
	e.runs, e.open = append(e.runs, o.ExecutorRun), append(e.open, o)
	close(e.more)
	e.more = make(chan struct{})
	return o, e.answer
}

// end removes the open runs that match, and returns them.
func (e *Executor) end(match func(*openRun) bool) (ended []*openRun) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = slices.DeleteFunc(e.open, func(o *openRun) bool {
		if !match(o) {
			return false
		}
		close(o.ended)
		ended = append(ended, o)
		return true
	})
	return ended
}

// endOnly ends one run, and reports whether it was open.
func (e *Executor) endOnly(o *openRun) bool {
	return len(e.end(func(other *openRun) bool { return other == o })) > 0
}

// isBusy reports whether a run of the job is open.
func (e *Executor) isBusy(job int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.open, func(o *openRun) bool { return o.JobID == job })
}
