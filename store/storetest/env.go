package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// env is what a case works with: the store under test, and words for the
// steps that lead up to what the case is about.
type env struct {
	tb
	store.Store
	ctx context.Context
	// now is an argument for the store, never compared with its clock.
	now time.Time
	// patience is how long what has to come about may take.
	patience time.Duration
	// serial makes names and start tokens unique; turn changes who comes first.
	serial, turn atomic.Int64
	// deletes says that the case deletes runs that were counted.
	deletes bool

	mu     sync.Mutex
	joined map[string]bool // guarded by mu; incarnations that have joined in this case
}

// at returns a time some seconds from the case's now.
func (e *env) at(seconds int) time.Time { return e.now.Add(time.Duration(seconds) * time.Second) }

// must ends the case when a step that has to succeed does not.
func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("unexpected error: %v", err)
	}
}

// check reports a rule that does not hold.
func (e *env) check(ok bool, format string, args ...any) {
	e.Helper()
	if !ok {
		e.Errorf(format, args...)
	}
}

// wantErr checks an error under errors.Is.
func (e *env) wantErr(what string, got, want error) {
	e.Helper()
	if !errors.Is(got, want) {
		e.Errorf("%s: error %v, want %v", what, got, want)
	}
}

// want compares two values by what they print: an empty slice equals a nil
// one, and times are equal only where both are in UTC.
func want[T any](e *env, what string, got, want T) {
	e.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		e.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// wantRun checks that the stored run is as given.
func (e *env) wantRun(what string, r store.Run) {
	e.Helper()
	want(e, what+": stored run", e.mustRun(r.ID), r)
}

// wantState checks the stored state of a run.
func (e *env) wantState(what string, id int64, s store.State) {
	e.Helper()
	want(e, what+": state", e.mustRun(id).State, s)
}

// race calls the functions at the same time and returns when all have. It ends
// the case when one of them did not come to its end. The scheduler of Go prefers
// one place in the order, so each gets it in turn.
func (e *env) race(fns ...func()) {
	e.Helper()
	var wg sync.WaitGroup
	var done atomic.Int64
	gate := make(chan struct{})
	turn := int(e.turn.Add(1)) % max(1, len(fns))
	for _, fn := range slices.Concat(fns[turn:], fns[:turn]) {
		wg.Go(func() {
			<-gate
			fn()
			done.Add(1)
		})
	}
	close(gate)
	wg.Wait()
	if int(done.Load()) != len(fns) {
		e.Fatalf("%d of %d parties of a race gave up", len(fns)-int(done.Load()), len(fns))
	}
}

// eventually asks until the answer is yes. It is only for what the store's
// own clock or a late signal brings about.
func (e *env) eventually(what string, ok func() bool) {
	e.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(e.patience)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			e.Fatalf("%s: not within %v", what, e.patience)
		}
	}
}

// casePatience is generous: a case that needs it has failed.
const casePatience = time.Minute

// newJob adds an enabled cron job that is due at the case's now.
func (e *env) newJob(change ...func(*store.Job)) store.Job {
	e.Helper()
	name := fmt.Sprintf("job-%d", e.serial.Add(1))
	job := store.Job{App: "app", Key: name, Name: name, Handler: "handler",
		Schedule: schedule.Cron("0 * * * * ?"), Misfire: store.MisfireDoNothing, Route: "ROUND",
		Block: "SERIAL_EXECUTION", GlueType: store.GlueBean, Next: e.now}
	for _, c := range change {
		c(&job)
	}
	job, err := e.AddJob(e.ctx, job, nil)
	e.must(err)
	return job
}

// jobIn adds jobs until one lives in the shard: ids need not be dense.
func (e *env) jobIn(shard int, change ...func(*store.Job)) store.Job {
	e.Helper()
	for range 1000 {
		if job := e.newJob(change...); job.Shard == shard {
			return job
		} else {
			e.must(e.RemoveJob(e.ctx, job.ID))
		}
	}
	e.Fatalf("no job came to live in shard %d", shard)
	return store.Job{}
}

func delayed(d time.Duration) func(*store.Job) {
	return func(j *store.Job) { j.Schedule = schedule.FixedDelay(d) }
}

func stopped(j *store.Job) { j.Stopped = true }

func noNext(j *store.Job) { j.Next = time.Time{} }

// edit changes a job without planning anew.
func (e *env) edit(id int64, change func(*store.Job)) store.Job {
	e.Helper()
	job, err := e.EditJob(e.ctx, id, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) {
		change(j)
		return false, nil
	}})
	e.must(err)
	return job
}

// replan is an edit that plans the schedule anew, with the given next instant.
func replan(verb string, next time.Time, change func(*store.Job)) store.Edit {
	return store.Edit{Verb: verb,
		Change: func(j *store.Job) (bool, error) { change(j); return true, nil },
		Next:   func(store.Job, time.Time, time.Time) (time.Time, error) { return next, nil }}
}

// stop stops a job as StopJob does.
func (e *env) stop(id int64) store.Job {
	e.Helper()
	job, err := e.EditJob(e.ctx, id, replan("stop", time.Time{}, stopped))
	e.must(err)
	return job
}

func (e *env) mustJob(id int64) store.Job {
	e.Helper()
	job, err := e.Job(e.ctx, id)
	e.must(err)
	return job
}

// mustRun reads a run, without the names of its job: what changes a run does not return
// them, and a case compares the two.
func (e *env) mustRun(id int64) store.Run {
	e.Helper()
	run, err := e.Run(e.ctx, id)
	e.must(err)
	return nameless(run)[0]
}

// nameless are the runs without the names of their jobs.
func nameless(runs ...store.Run) []store.Run {
	for i := range runs {
		runs[i].JobName, runs[i].JobKey, runs[i].Secret = "", "", false
	}
	return runs
}

func (e *env) mustAddRun(job int64, t store.Trigger) store.Run {
	e.Helper()
	run, err := e.AddRun(e.ctx, job, t)
	e.must(err)
	return run
}

// mustRuns lists runs, without the names of their jobs.
func (e *env) mustRuns(f store.RunFilter) []store.Run {
	e.Helper()
	runs, err := e.Runs(e.ctx, f)
	e.must(err)
	return nameless(runs...)
}

// runsOf returns all runs of a job, oldest first.
func (e *env) runsOf(job int64) []store.Run {
	e.Helper()
	runs := e.mustRuns(store.RunFilter{JobID: job, Limit: 10_000})
	slices.Reverse(runs)
	return runs
}

func (e *env) mustChanges(job int64) []store.Change {
	e.Helper()
	changes, err := e.Changes(e.ctx, job, 1000)
	e.must(err)
	return changes
}

// mustFinish tries again what others had locked, as a scheduler does.
func (e *env) mustFinish(results ...store.Result) []store.Run {
	e.Helper()
	runs, err := e.Finish(e.ctx, nil, results)
	for errors.Is(err, store.ErrLocked) {
		var more []store.Run
		more, err = e.Finish(e.ctx, nil, results)
		runs = append(runs, more...)
	}
	e.must(err)
	return runs
}

func (e *env) mustKill(id int64, reason string) store.Run {
	e.Helper()
	run, err := e.Kill(e.ctx, id, reason)
	e.must(err)
	return run
}

func (e *env) mustSettle(verdicts ...store.Verdict) []store.Run {
	e.Helper()
	runs, err := e.Settle(e.ctx, verdicts)
	e.must(err)
	return runs
}

// mustDispatched tries again what others had locked, as a scheduler does.
func (e *env) mustDispatched(accepted ...store.Dispatch) []store.Run {
	e.Helper()
	runs, err := e.Dispatched(e.ctx, accepted)
	for errors.Is(err, store.ErrLocked) {
		var more []store.Run
		more, err = e.Dispatched(e.ctx, accepted)
		runs = append(runs, more...)
	}
	e.must(err)
	return runs
}

func (e *env) mustTake(incarnation string, ids ...int64) []store.Run {
	e.Helper()
	runs, err := e.Take(e.ctx, incarnation, ids)
	e.must(err)
	return runs
}

func (e *env) mustInbox(incarnation string) store.Inbox {
	e.Helper()
	in, err := e.Inbox(e.ctx, incarnation, 0, 1000)
	e.must(err)
	return in
}

func (e *env) mustBeat(incarnation string) store.View {
	e.Helper()
	v, err := e.Beat(e.ctx, incarnation, []store.Attachment{})
	e.must(err)
	return v
}

// join adds a node without executors.
func (e *env) join(incarnation string) store.View {
	e.Helper()
	e.mu.Lock()
	e.joined[incarnation] = true
	e.mu.Unlock()
	v, err := e.Join(e.ctx, store.Node{ID: "node-" + incarnation, Incarnation: incarnation})
	e.must(err)
	return v
}

// there joins those of the nodes that have not joined in this case: only a node
// that is there is sent runs.
func (e *env) there(incarnations ...string) {
	e.Helper()
	for _, inc := range incarnations {
		e.mu.Lock()
		joined := e.joined[inc]
		e.mu.Unlock()
		if !joined {
			e.join(inc)
		}
	}
}

// over sends a start to another node, which is there.
func (e *env) over(incarnation string) func(*store.Start) {
	e.Helper()
	e.there(incarnation)
	return to(store.LocalAddress(incarnation))
}

// ids returns the ids of runs in their order.
func ids(runs []store.Run) []int64 {
	var list []int64
	for _, r := range runs {
		list = append(list, r.ID)
	}
	return list
}

// jobIDs returns the ids of jobs in their order.
func jobIDs(jobs []store.Job) []int64 {
	var list []int64
	for _, j := range jobs {
		list = append(list, j.ID)
	}
	return list
}
