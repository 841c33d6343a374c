package storetest

import (
	"slices"
	"strings"

	"github.com/xxljob/xxljob/store"
)

// What a scheduler says of how it has routed a run is in the TriggerMsg to the letter, however
// much of it a store keeps.

// routedNode is an incarnation as schedulers have them, of the node "node-1".
const routedNode = "node-1-6mzgexfqgw"

// routedTo is what node-1 says of a run that goes where it is itself.
func routedTo(change func(*store.Routed)) string {
	r := store.Routed{Type: "CRON", Node: "node-1", Route: "NEAREST", Block: "SERIAL_EXECUTION", Addresses: store.LocalAddress(routedNode)}
	change(&r)
	return r.String()
}

// routedMessages are messages of starts, the usual ones first.
func routedMessages() []string {
	usual := routedTo(func(*store.Routed) {})
	list := []string{usual, "", usual + "\n", usual + "\ntried: " + remote, "\n" + usual, usual + usual, "routed: FIRST"}
	for _, route := range []string{"FIRST", "LAST", "ROUND", "RANDOM", "CONSISTENT_HASH", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED",
		"FAILOVER", "BUSYOVER", "SHARDING_BROADCAST", "a user's", "", "11", "NEAREST, block: SERIAL_EXECUTION\naddresses: " + remote} {
		list = append(list, routedTo(func(r *store.Routed) { r.Route = route }))
	}
	for _, addresses := range []string{store.LocalAddress(routedNode) + ", " + store.LocalAddress("node-2-x"), remote, "", " ", "…", strings.Repeat(remote+", ", 100)} {
		list = append(list, routedTo(func(r *store.Routed) { r.Addresses = addresses }))
	}
	return append(list, routedTo(func(r *store.Routed) { r.Type = "API" }), routedTo(func(r *store.Routed) { r.Type = "" }),
		routedTo(func(r *store.Routed) { r.Node = "node-2" }), routedTo(func(r *store.Routed) { r.Node = "" }),
		routedTo(func(r *store.Routed) { r.Block = "CONCURRENT" }), routedTo(func(r *store.Routed) { r.Block = "" }))
}

func says(msg string) func(*store.Start) { return func(s *store.Start) { s.Msg = msg } }

// startSays starts all of them in one batch.
func startSays(e *env) {
	o := e.owner(routedNode)
	messages := routedMessages()
	starts := make([]store.Start, len(messages))
	for i, msg := range messages {
		starts[i] = o.startOf(o.planned(e.newJob()), says(msg))
	}
	answers, err := o.Start(o.ctx, nil, starts)
	e.must(err)
	results := make([]store.Result, len(answers))
	for i, msg := range messages {
		run := answers[i].Run
		want(e, "message of a started run", run.TriggerMsg, msg)
		e.wantRun("run that says "+msg, run)
		if results[i] = success(run); i%2 > 0 {
			results[i].TriggerMsg = "the end"
		}
	}
	found, err := e.StartedBy(e.ctx, o.shards, []string{routedNode}, 0, 1000)
	e.must(err)
	for _, run := range found {
		want(e, "message of a run of the node", run.TriggerMsg, e.mustRun(run.ID).TriggerMsg)
	}
	ended := e.mustFinish(results...)
	want(e, "accepted results", len(ended), len(results))
	for i, run := range ended {
		msg := messages[i]
		if i%2 > 0 {
			msg = lines(msg, "the end")
		}
		want(e, "message of an ended run", run.TriggerMsg, msg)
		e.wantRun("ended run that says "+msg, run)
	}
}

// startSaysAlone has each result of a batch like the others, as most are.
func startSaysAlone(e *env) {
	o := e.owner(routedNode)
	for _, msg := range routedMessages()[:4] {
		var runs []store.Run
		var results []store.Result
		for range 2 {
			run := o.running(says(msg))
			runs, results = append(runs, run), append(results, success(run))
		}
		for i, run := range e.mustFinish(results...) {
			want(e, "message of an ended run", run.TriggerMsg, msg)
			want(e, "block and address", []string{run.Block, run.Address}, []string{runs[i].Block, runs[i].Address})
			e.wantRun("ended run that says "+msg, run)
		}
	}
}

// startSaysAgain: what was said of a start stays when the run is put back and goes elsewhere.
func startSaysAgain(e *env) {
	o := e.owner(routedNode)
	first := routedTo(func(*store.Routed) {})
	for _, second := range []func(*store.Start){
		says(first), to(remote),
		func(s *store.Start) {
			s.Block, s.Msg = "CONCURRENT", routedTo(func(r *store.Routed) { r.Block, r.Route = "CONCURRENT", "FIRST" })
		},
	} {
		run := o.running(says(first))
		back := o.one(e.mustSettle(o.verdict(run, store.StatePlanned)))
		want(e, "message of a run that was put back", back.TriggerMsg, first+"\nsettled")
		e.wantRun("run that was put back", back)
		st := o.startOf(back, second)
		again := o.tryStart(st).Run
		want(e, "message of a run that was started again", again.TriggerMsg, lines(first, "settled", st.Msg))
		e.wantRun("run that was started again", again)
	}
}

// startSaysWhereItMoves: what was said of a start stays when the run goes to another address.
func startSaysWhereItMoves(e *env) {
	o := e.owner(routedNode)
	msg := routedTo(func(*store.Routed) {})
	run := o.running(says(msg))
	e.check(o.tryReaddress(o.readdress(run, remote)), "Readdress: false, want true")
	want(e, "message of a run that was moved", e.mustRun(run.ID).TriggerMsg, msg+"\nmoved")

	lost := o.one(e.mustSettle(o.verdict(o.running(says(msg)), store.StateLost)))
	want(e, "message of a lost run", lost.TriggerMsg, msg+"\nsettled")
	killed := o.running(says(msg))
	want(e, "message of a run that is to be killed", e.mustKill(killed.ID, "x").TriggerMsg, msg)
}

// searchRouted finds runs by what was said of how they were routed.
func searchRouted(e *reader) {
	o := e.o.overtakenBy(routedNode)
	planned := e.mustAddRun(e.newJob().ID, store.Trigger{})
	run := o.started(planned, says(routedTo(func(r *store.Routed) {
		r.Type, r.Addresses = string(planned.Type), r.Addresses+", "+store.LocalAddress("node-2-x")
	})), func(s *store.Start) { s.Known = &planned })
	res := success(run)
	res.TriggerMsg = "the end"
	e.mustFinish(res)
	for _, text := range []string{
		"type: " + string(planned.Type) + "\nNODE: node-1\nroute: nearest, block: serial_execution\naddresses: local://" + routedNode,
		"local://node-2-x\nthe end",
	} {
		e.wantFound(text, store.RunSearch{Text: text}, run)
	}
	e.wantFound("what was not said", store.RunSearch{Text: "node: node-2"})
}

// lines are those that are not empty.
func lines(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(line string) bool { return line == "" }), "\n")
}
