package storetest

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// owner is a node that owns shards, with words for what its scheduler does.
type owner struct {
	*env
	inc    string
	shards []store.Shard
}

// owner joins a node that takes all shards, none of which has an owner yet.
func (e *env) owner(incarnation string) *owner {
	e.Helper()
	v := e.join(incarnation)
	return e.take(incarnation, v.Shards)
}

// take makes the incarnation the owner of all the shards.
func (e *env) take(incarnation string, shards []store.Shard) *owner {
	e.Helper()
	taken, err := e.TakeShards(e.ctx, incarnation, shards)
	e.must(err)
	if len(taken) != len(shards) {
		e.Fatalf("%s took %+v of %+v", incarnation, taken, shards)
	}
	return &owner{env: e, inc: incarnation, shards: taken}
}

// overtakenBy makes another node take all shards of o.
func (o *owner) overtakenBy(incarnation string) *owner {
	o.Helper()
	o.there(incarnation)
	return o.take(incarnation, o.shards)
}

func (o *owner) epoch(shard int) int64 {
	for _, s := range o.shards {
		if s.ID == shard {
			return s.Epoch
		}
	}
	return 0
}

func (o *owner) addr() string { return store.LocalAddress(o.inc) }

// plan is a claim of the job as read, with a planned run at each instant.
func (o *owner) plan(job store.Job, instants ...time.Time) store.Plan {
	p := store.Plan{JobID: job.ID, Shard: job.Shard, Epoch: o.epoch(job.Shard), Version: job.Version,
		Due: job.Next, Next: job.Next.Add(time.Hour)}
	for _, at := range instants {
		p.Runs = append(p.Runs, store.NewRun{At: at, Type: store.TriggerCron, State: store.StatePlanned})
	}
	return p
}

// skip is a claim that records the due instant as skipped.
func (o *owner) skip(job store.Job) store.Plan {
	p := o.plan(job)
	p.Runs = []store.NewRun{{At: job.Next, Type: store.TriggerCron, State: store.StateSkipped,
		First: job.Next, Last: job.Next, Count: 1, Reason: store.ReasonMisfire}}
	return p
}

func (o *owner) claim(plans ...store.Plan) []store.Run {
	o.Helper()
	runs, err := o.Claim(o.ctx, nil, plans)
	o.must(err)
	return runs
}

// planned claims one run of the job for its next instant.
func (o *owner) planned(job store.Job) store.Run {
	o.Helper()
	return o.one(o.claim(o.plan(job, job.Next)))
}

// last claims the job's only run: there is no instant after it.
func (o *owner) last(job store.Job) store.Run {
	o.Helper()
	p := o.plan(job, job.Next)
	p.Next = time.Time{}
	return o.one(o.claim(p))
}

// waited claims a run that its job waits for.
func (o *owner) waited(job store.Job) store.Run {
	o.Helper()
	p := o.plan(job, job.Next)
	p.Next, p.Wait, p.Runs[0].Type = time.Time{}, true, store.TriggerFixDelay
	return o.one(o.claim(p))
}

func (o *owner) one(runs []store.Run) store.Run {
	o.Helper()
	if len(runs) != 1 {
		o.Fatalf("got %d runs %+v, want one", len(runs), runs)
	}
	return runs[0]
}

// startOf is the start of a planned run at the owner's own address.
func (o *owner) startOf(run store.Run, change ...func(*store.Start)) store.Start {
	o.Helper()
	s := store.Start{RunID: run.ID, JobID: run.JobID, Shard: run.Shard, Epoch: o.epoch(run.Shard),
		JobVersion: o.mustJob(run.JobID).Version, State: store.StateStarted, Owner: o.inc,
		Token: o.serial.Add(1), Address: o.addr(), Handler: "handler", Block: "SERIAL_EXECUTION"}
	for _, c := range change {
		c(&s)
	}
	return s
}

// tryStart makes one Start and returns its answer.
func (o *owner) tryStart(s store.Start) store.Started {
	o.Helper()
	answers, err := o.Start(o.ctx, nil, []store.Start{s})
	o.must(err)
	if len(answers) != 1 {
		o.Fatalf("Start answered %d times for one start", len(answers))
	}
	return answers[0]
}

// started starts a planned run.
func (o *owner) started(run store.Run, change ...func(*store.Start)) store.Run {
	o.Helper()
	a := o.tryStart(o.startOf(run, change...))
	if a.Status != store.StartOK {
		o.Fatalf("Start of a planned run: status %d, want StartOK", a.Status)
	}
	return a.Run
}

// running is a started run of a new job.
func (o *owner) running(change ...func(*store.Start)) store.Run {
	o.Helper()
	return o.started(o.planned(o.newJob()), change...)
}

// to sends a start to another address.
func to(address string) func(*store.Start) {
	return func(s *store.Start) { s.Address = address }
}

// refused ends a run without a start.
func refused(s *store.Start) { s.State, s.Address = store.StateRefused, "" }

// remote is the address of an executor that is not ours.
const remote = "http://10.0.0.1:9999"

// remoteToo is that of another one.
const remoteToo = "http://10.0.0.2:9999/base"

// dispatched is a run that a remote executor accepted.
func (o *owner) dispatched() store.Run {
	o.Helper()
	run := o.running(to(remote))
	return o.one(o.mustDispatched(accepted(run)))
}

// accepted says that the run's executor has accepted it.
func accepted(run store.Run) store.Dispatch {
	return store.Dispatch{RunID: run.ID, Owner: run.Owner, Token: run.Token, Msg: "accepted"}
}

// success is the result of an attached executor.
func success(run store.Run) store.Result {
	inc, _ := store.LocalIncarnation(run.Address)
	return store.Result{RunID: run.ID, Incarnation: inc, Token: run.Token, State: store.StateSucceeded, HandleMsg: "done"}
}

// overWire is a result that came over the wire.
func overWire(id int64) store.Result {
	return store.Result{RunID: id, State: store.StateSucceeded, HandleMsg: "done"}
}

// verdict decides about a run as the owner saw it.
func (o *owner) verdict(run store.Run, to store.State) store.Verdict {
	return store.Verdict{RunID: run.ID, Shard: run.Shard, Epoch: o.epoch(run.Shard), Owner: run.Owner,
		Token: run.Token, Taken: !run.Taken.IsZero(), To: to, Msg: "settled"}
}

// scan is a query for everything due at or before the time.
func (o *owner) scan(before time.Time) store.ScanQuery {
	return store.ScanQuery{Shards: o.shards, Before: before, Jobs: 1000, Runs: 1000}
}

func (o *owner) mustScan(q store.ScanQuery) store.ScanResult {
	o.Helper()
	res, err := o.Scan(o.ctx, store.ScanResult{}, q)
	o.must(err)
	return res
}
