//go:build unix

package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// Jobs whose handlers fail by a script, so that one trigger makes several runs.

// maxReruns is the scheduler's default of Job.MaxReruns.
const maxReruns = 3

// nobody is an app that no process serves.
const nobody = "nobody"

// scripted are the jobs that are triggered with scripts, and the first pause between their
// attempts in milliseconds. The handlers of the last one are nowhere.
func scripted(pause int64) []control.Job {
	chain := func(name, route string) control.Job {
		return control.Job{Name: "chain " + name, Route: route, Retries: 3, Pause: pause, MostPause: 3 * pause, Jitter: 30, Rerun: true, Timeout: 1000}
	}
	aside, ordered, failing := chain("aside", "ROUND"), chain("in order", "NEAREST"), chain("no rerun", "FAILOVER")
	aside.Aside, failing.Rerun = true, false
	parts, nowhere := chain("broadcast", "SHARDING_BROADCAST"), chain("nowhere", "FIRST")
	nowhere.App, nowhere.Nobody = nobody, audit.NobodyRefuse // else they would wait for ever
	return []control.Job{aside, ordered, failing, parts, nowhere}
}

// scheduled are jobs whose schedules make chains, each the same.
func scheduled() []control.Job {
	return []control.Job{
		{Name: "chain by schedule", Kind: control.Cron, Period: 5000, Route: "NEAREST", Param: control.Chain + " cron fsr", Retries: 2, Pause: 700, Rerun: true},
		{Name: "chain by delay", Kind: control.Delay, Period: 1000, Route: "ROUND", Param: control.Chain + " delay ff", Retries: 2, Pause: 200, MostPause: 400, Rerun: true},
	}
}

// again is what the auditor is told of a job's retries; nil where its handlers do not fail.
func again(d control.Job) *audit.Again {
	if d.Retries == 0 {
		return nil
	}
	return &audit.Again{Retries: d.Retries, Pause: d.Pause, MostPause: d.MostPause, Jitter: int64(d.Jitter), Rerun: d.Rerun, MaxReruns: maxReruns,
		Aside: d.Aside, Timeout: d.Timeout}
}

// letters are what handlers do at random in their attempts; those that fail come often.
const letters = "fffrrpnshwto"

// chained is a job whose handlers fail.
type chained struct {
	id int64
	control.Job
}

// addChains adds the jobs whose handlers fail, with this first pause.
func (a *arena) addChains(ctx context.Context, pause int64) error {
	for _, d := range scheduled() {
		if _, err := a.ensure(ctx, nil, d, false); err != nil {
			return err
		}
	}
	for _, d := range scripted(pause) {
		id, err := a.ensure(ctx, nil, d, false)
		if err != nil {
			return err
		}
		a.chained = append(a.chained, chained{id, d})
	}
	return nil
}

// chains triggers them until ctx ends, each after a pause of up to most.
func (a *arena) chains(ctx context.Context, most time.Duration) {
	for pause(ctx, a.between(most/4, most)) {
		job := a.chained[a.intn(len(a.chained))]
		run := a.chain(ctx, job.id, a.script())
		if run != 0 && job.Route != "SHARDING_BROADCAST" && a.intn(8) == 0 {
			_ = pause(ctx, a.between(0, time.Second))
			a.kill(ctx, nil, job.id, run)
		}
	}
}

// failures is a workload of nothing but runs that fail: whatever a node is at when it is
// hit, it is about to write a run that follows another.
func (a *arena) failures(ctx context.Context) (wait func(), err error) {
	if err := a.addChains(ctx, 100); err != nil {
		return nil, err
	}
	var g sync.WaitGroup
	g.Go(func() { a.chains(ctx, 500*time.Millisecond) })
	return g.Wait, nil
}

// script is what the handlers of a trigger do.
func (a *arena) script() string {
	if a.failing {
		return []string{"ffff", "tfft", "wwww"}[a.intn(3)]
	}
	var text []byte
	if a.intn(25) == 0 {
		text = append(text, control.Stuck) // what waits for it waits for long
	}
	for range a.intn(6) {
		text = append(text, letters[a.intn(len(letters))])
	}
	return string(append(text, control.Well))
}

// chain triggers a job with a script, and returns the run if it was answered.
func (a *arena) chain(ctx context.Context, job int64, script string) int64 {
	name := fmt.Sprintf("c-%d", a.serial.Add(1))
	param := fmt.Sprintf("%s %s %s", control.Chain, name, script)
	op := audit.Op{Kind: audit.OpChain, Verb: control.Trigger, Job: job, Call: now(), Outcome: audit.Unknown, Param: param}
	if got, _, ok := a.insist(ctx, nil, control.Request{Verb: control.Trigger, ID: job, Param: param, Key: name}); ok {
		op.Outcome, op.Run = audit.Done, got.Run
	}
	op.Return = now()
	a.journal.op(op)
	return op.Run
}

// kill asks for the end of a run and of what follows it, at the first member if it is not
// nil.
func (a *arena) kill(ctx context.Context, first *member, job, run int64) {
	op := audit.Op{Kind: audit.OpKill, Verb: control.Kill, Job: job, Run: run, Call: now(), Outcome: audit.Unknown}
	if _, _, ok := a.insist(ctx, first, control.Request{Verb: control.Kill, Run: run}); ok {
		op.Outcome = audit.Done
	}
	op.Return = now()
	a.journal.op(op)
}
