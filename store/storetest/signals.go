package storetest

import (
	"github.com/xxljob/xxljob/store"
)

func signalCases() []testCase {
	return []testCase{
		{"NoPollNeedsEverySignal", pollOrSignals},
		{"Scan", signalScan},
		{"Ahead", signalAhead},
		{"Owed", signalOwed},
		{"Inbox", signalInbox},
		{"Nodes", signalNodes},
		{"Ended", signalEnded},
	}
}

func pollOrSignals(e *env) {
	s := e.Watch(e.ctx, "a")
	scan, inbox := e.Poll()
	e.check(scan >= 0 && inbox >= 0, "Poll %v, %v is negative", scan, inbox)
	e.check((scan == 0) == (inbox == 0), "Poll %v, %v: signals are lost or not", scan, inbox)
	if scan == 0 && (s.Scan == nil || s.Ahead == nil || s.Owed == nil || s.Inbox == nil || s.Nodes == nil || s.Ended == nil) {
		e.Errorf("Poll is zero, but the store does not signal everything: %+v", s)
	}
}

// drain forgets a signal for what was before.
func drain(ch <-chan struct{}) {
	select {
	case <-ch:
	default:
	}
}

// awaitSignal waits for a signal, where the store gives any: a store that
// cannot hint is polled.
func (e *env) awaitSignal(what string, ch <-chan struct{}) {
	e.Helper()
	if ch == nil {
		e.Logf("%s: this store gives no such signal", what)
		return
	}
	e.eventually("signal: "+what, func() bool {
		select {
		case <-ch:
			return true
		default:
			return false
		}
	})
}

func signalScan(e *env) {
	o := e.owner("a")
	ch := e.Watch(e.ctx, "a").Scan
	job := e.newJob()
	e.awaitSignal("a job was added", ch)
	steps := []struct {
		name string
		do   func()
	}{
		{"a run was added", func() { e.mustAddRun(job.ID, store.Trigger{}) }},
		{"a schedule was changed", func() {
			_, err := e.EditJob(e.ctx, job.ID, replan("update", e.at(1), func(*store.Job) {}))
			e.must(err)
		}},
		{"a waiting job was armed", func() {
			e.mustFinish(success(o.started(o.waited(e.newJob(delayed(1e9))))))
		}},
	}
	for _, s := range steps {
		drain(ch)
		s.do()
		e.awaitSignal(s.name, ch)
	}
}

func signalAhead(e *env) {
	e.owner("a")
	ch := e.Watch(e.ctx, "a").Ahead
	job := e.newJob()
	drain(ch)
	e.ahead(job.ID, 0)
	e.awaitSignal("a run is kept apart", ch)
}

func signalOwed(e *env) {
	o := e.owner("a")
	signals := e.Watch(e.ctx, "a")
	ch := signals.Owed
	one, two := e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID))
	run := o.started(o.planned(e.newJob(leading(one.ID))))
	drain(ch)
	e.mustFinish(success(run))
	e.awaitSignal("a child is owed", ch)
	drain(signals.Scan)
	o.payAll()
	e.awaitSignal("a child was planned", signals.Scan)
	drain(ch)
	o.succeeded(e.only("a child", one.ID))
	e.awaitSignal("a success is owed to a window", ch)
	drain(ch)
	want(e, "paid for what opens a window", o.payAll(), store.Paid{Owed: 1})
	e.awaitSignal("a window was opened", ch)
	e.edit(join.ID, behind(one.ID))
	drain(signals.Scan)
	want(e, "closed, since nothing is missing any more", o.mustExpire(o.later(), 9), store.Expired{Windows: 1})
	e.awaitSignal("the run of a join was planned", signals.Scan)
}

func signalInbox(e *env) {
	o := e.owner("a")
	e.there("b", "c")
	b, c := e.Watch(e.ctx, "b").Inbox, e.Watch(e.ctx, "c").Inbox
	run := o.handedOver()
	e.awaitSignal("a run was started elsewhere", b)
	e.check(o.tryReaddress(o.readdress(run, store.LocalAddress("c"))), "Readdress: false, want true")
	e.awaitSignal("a run was readdressed", c)
	e.mustTake("c", run.ID)
	drain(c)
	e.mustKill(run.ID, "x")
	e.awaitSignal("a run was killed", c)
	drain(c)
	e.mustAsk("c", run, 1)
	e.awaitSignal("a question was asked", c)
	drain(b)
	wide := o.tryStart(o.startOf(o.planned(e.newJob()), func(s *store.Start) { s.Targets = []string{s.Address, store.LocalAddress("b")} }))
	want(e, "status of a broadcast", wide.Status, store.StartOK)
	e.awaitSignal("a part of a broadcast", b)
}

func signalNodes(e *env) {
	e.join("a")
	ch := e.Watch(e.ctx, "a").Nodes
	var b *owner
	steps := []struct {
		name string
		do   func()
	}{
		{"a node joined", func() { b = e.owner("b") }},
		{"a node has come to fail", func() { e.must(e.SetFailing(e.ctx, "b", true)) }},
		{"shards were released", func() { e.must(e.ReleaseShards(e.ctx, "b", b.shards)) }},
		{"a node left", func() { e.must(e.Leave(e.ctx, "b")) }},
		{"an app is served again", func() {
			e.noteServed(store.Served{App: "app", By: store.ServedAttached, Gone: e.at(0)})
			drain(ch)
			e.noteServed(store.Served{App: "app", By: store.ServedRegistered})
		}},
	}
	for _, s := range steps {
		drain(ch)
		s.do()
		e.awaitSignal(s.name, ch)
	}
}

func signalEnded(e *env) {
	o := e.owner("a")
	ch := e.Watch(e.ctx, "a").Ended
	for _, end := range ends() {
		run := o.planned(e.newJob())
		drain(ch)
		end.do(o, run)
		e.awaitSignal("run ended by "+end.name, ch)
	}
	ask := e.mustAsk("b", o.handedOver(), 1)
	drain(ch)
	e.must(e.AnswerLog(e.ctx, ask.ID, store.Answer{}))
	e.awaitSignal("a question was answered", ch)
}
