package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

func (d *planData) verdicts(n int) named {
	list := make([]store.Verdict, n)
	for i := range list {
		r := &d.started[i]
		list[i] = store.Verdict{RunID: r.ID, Shard: r.Shard, Epoch: planEpoch, Owner: r.Owner, Token: r.Token, Taken: true,
			Msg: "the node is gone", NewOwner: planOther, NewToken: 1}
	}
	return settleArgs(list)
}

func (d *planData) dispatchArgs(n int, careful bool) named {
	x := dispatching{}
	for i := range n {
		r := &d.started[i]
		x.accepted = append(x.accepted, store.Dispatch{RunID: r.ID, Owner: r.Owner, Token: r.Token, Msg: "accepted"})
		x.places = append(x.places, i)
	}
	args, _ := x.args(careful)
	return args
}

func (d *planData) handoverCases() []planCase {
	q := d.sql
	in, _ := fenceArgs(d.allShards())
	lo, hi := d.openRange()
	r := &d.started[0]
	one, epoch := []int16{int16(r.Shard)}, []int64{planEpoch}
	incs, addresses := []string{planNode}, []string{store.LocalAddress(planNode)}
	var inbox []int64
	for i := range 300 {
		inbox = append(inbox, idAt(d.now.Add(-time.Minute))+int64(1500+i)*6*8192+1)
	}
	ilo, ihi := rangeOf(inbox)
	var gone *string
	cases := []planCase{
		{name: "readdress", st: q.readdress.by(named{
			{"shards", one}, {"epochs", epoch}, {"nodes", []string{}}, {"run", r.ID}, {"token", r.Token},
			{"address", "http://10.0.0.1"}, {"start_owner", planNode}, {"inbox", gone}, {"taken", false},
			{"message", "busy"}, {"owner", planNode}, {"boot", "a process"},
		}),
			rows: 1, reach: reachOne, scans: smallNodes},
		{name: "dispatched 1000", st: q.dispatched.by(d.dispatchArgs(1000, false)), rows: 1000, reach: reachIDs},
		{name: "dispatched 1", st: q.dispatched.by(d.dispatchArgs(1, false)), rows: 1, reach: reachOne},
		{name: "dispatchedFree 1000", st: q.dispatchedFree.by(d.dispatchArgs(1000, true)), rows: 1000, reach: reachIDs},
		{name: "dispatchedFree 1", st: q.dispatchedFree.by(d.dispatchArgs(1, true)), rows: 1, reach: reachIDs},
		{name: "startedBy", st: q.startedBy.by(named{
			{"shards", in}, {"incarnations", incs}, {"addresses", addresses}, {"after", int64(0)}, {"limit", 1000},
			{"lo", lo}, {"hi", hi},
		}), rows: 1000, reach: reachOpen, wasted: 1000},
		{name: "startedBy none", st: q.startedBy.by(named{
			{"shards", in}, {"incarnations", []string{"node-9"}}, {"addresses", []string{"local://node-9"}},
			{"after", int64(0)}, {"limit", 1000}, {"lo", lo}, {"hi", hi},
		}), reach: reachOpen, wasted: 2500},
		{name: "dispatchedRuns", st: q.dispatchedRuns.by(named{
			{"shards", in}, {"after", int64(0)}, {"limit", 1000}, {"lo", lo}, {"hi", hi},
		}), reach: reachOpen, wasted: 2500},
		{name: "inbox", st: q.inbox.by(named{
			{"incarnation", planOther}, {"after", int64(0)}, {"limit", 1000},
			{"address", store.LocalAddress(planOther)}, {"lo", lo}, {"hi", hi},
		}), rows: 310, reach: reachOpen},
		{name: "inbox empty", st: q.inbox.by(named{
			{"incarnation", planNode}, {"after", int64(0)}, {"limit", 1000},
			{"address", store.LocalAddress(planNode)}, {"lo", lo}, {"hi", hi},
		}), reach: reachOpen, wasted: 10},
		{name: "take", st: q.take.by(named{{"incarnation", planOther}, {"runs", inbox}, {"lo", ilo}, {"hi", ihi}}), rows: 300, reach: reachIDs},
		{name: "takeFree", st: q.takeFree.by(named{{"incarnation", planOther}, {"runs", inbox}, {"lo", ilo}, {"hi", ihi}}), rows: 300, reach: reachIDs},
		{name: "takeKilled", st: q.takeKilled.by(named{{"incarnation", planOther}, {"runs", inbox}, {"lo", ilo}, {"hi", ihi}}), reach: reachIDs, wasted: 300},
	}
	for _, s := range []struct {
		name string
		q    query
		rows int
	}{{"settleLost", q.settleLost, 1}, {"settleAdopt", q.settleAdopt, 1}, {"settleKill", q.settleKill, 0}, {"settleCancel", q.settleCancel, 0}, {"settleBack", q.settleBack, 1}} {
		cases = append(cases,
			planCase{name: s.name + " 1000", st: s.q.by(d.verdicts(1000)), rows: s.rows * 1000, batch: 1000, reach: reachIDs, scans: smallLock, wasted: 1000},
			planCase{name: s.name + " 1", st: s.q.by(d.verdicts(1)), rows: s.rows, reach: reachIDs, scans: smallLock})
	}
	return cases
}

// results are of n started runs, by their addressee or by their owner.
func (d *planData) results(n int, byOwner bool) named {
	results, places := make([]store.Result, n), make([]int, n)
	for i := range n {
		r := &d.started[i]
		results[i], places[i] = store.Result{RunID: r.ID, Token: r.Token, State: store.StateSucceeded}, i
		if byOwner {
			results[i].Owner = r.Owner
		} else {
			results[i].Incarnation, _ = store.LocalIncarnation(r.Address)
		}
	}
	return resultArgs(results, places)
}

// plainResults are successes of n started runs.
func (d *planData) plainResults(n int) named {
	results, places := make([]store.Result, n), make([]int, n)
	for i := range n {
		r := &d.started[i]
		results[i], places[i] = store.Result{RunID: r.ID, Token: r.Token, State: store.StateSucceeded, Incarnation: planNode}, i
	}
	return plainArgs(results, places)
}

// progress is about n started runs, from their addressee.
func (d *planData) progress(n int) named {
	list := make([]store.Progress, n)
	for i := range list {
		r := &d.started[i]
		list[i] = store.Progress{RunID: r.ID, Token: r.Token, Percent: i % 100, Text: "some of many"}
		list[i].Incarnation, _ = store.LocalIncarnation(r.Address)
	}
	args, _ := progressArgs(list)
	return args
}

func (d *planData) endCases() []planCase {
	q := d.sql
	ids, _, _ := d.idsOf(d.started[:1000])
	lo, hi := rangeOf(ids)
	return []planCase{
		{name: "finish 1000", st: q.finish.by(d.results(1000, false)), rows: 1000, reach: reachIDs},
		{name: "finish 1000 by owners", st: q.finish.by(d.results(1000, true)), rows: 1000, reach: reachIDs},
		{name: "finish 1", st: q.finish.by(d.results(1, false)), rows: 1, reach: reachIDs},
		{name: "finishBrief 1000", st: q.finishBrief.by(d.results(1000, false)), rows: 1000, reach: reachIDs},
		{name: "finishBrief 1", st: q.finishBrief.by(d.results(1, false)), rows: 1, reach: reachIDs},
		{name: "finishPlain 1000", st: q.finishPlain.by(d.plainResults(1000)), rows: 1000, reach: reachIDs, kept: true},
		{name: "finishPlain 1", st: q.finishPlain.by(d.plainResults(1)), rows: 1, reach: reachIDs, kept: true},
		{name: "finishLate 1000", st: q.finishLate.by(named{
			{"runs", d.ended}, {"lines", make([]string, len(d.ended))}, {"lo", lo}, {"hi", hi},
		}), reach: reachIDs, wasted: 1000, batch: 1000},
		{name: "setProgress 1000", st: q.setProgress.by(d.progress(1000)), batch: 1000, reach: reachIDs, wasted: 1000},
		{name: "setProgress 1", st: q.setProgress.by(d.progress(1)), batch: 1, reach: reachIDs},
		{name: "unended 1000", st: q.unended.by(named{{"runs", ids}, {"lo", lo}, {"hi", hi}}), rows: 1000, reach: reachIDs},
		{name: "lockRuns 1000", st: q.lockRuns.by(named{{"runs", ids}, {"lo", lo}, {"hi", hi}}), rows: 1000, reach: reachIDs},
		{name: "lockRuns 1", st: q.lockRuns.by(named{{"runs", ids[:1]}, {"lo", lo}, {"hi", lo}}), rows: 1, reach: reachIDs},
		{name: "heldRuns 1000", st: q.heldRuns.by(named{{"runs", ids}, {"lo", lo}, {"hi", hi}}), batch: 2000, reach: reachIDs, wasted: 1000}, // each is locked, and is none of what is left
		{name: "heldJobs 1000", st: q.heldJobs.with(jobIDs(1000, 97)), batch: 2000, wasted: 1000},
		{name: "keepJobs 1000", st: q.keepJobs.with(jobIDs(1000, 97)), rows: 1000},
		{name: "lockTriggers 1000", st: q.lockTriggers.by(named{{"runs", ids}}), rows: 1000, reach: reachIDs, batch: 2000, wasted: 1000}, // each run is looked at twice
		{name: "lockTriggers 1", st: q.lockTriggers.by(named{{"runs", ids[:1]}}), rows: 1, reach: reachIDs},
		{name: "heldFirst", st: q.heldFirst.with(ids[0]), reach: reachOne},
		{name: "noteEnds 1000", st: q.noteEnds.by(named{{"runs", d.ended}, {"lines", make([]string, len(d.ended))}}), batch: 1000, reach: reachIDs},
		{name: "retriesLeft 1000", st: q.retriesLeft.by(named{{"runs", d.ended}, {"retries", make([]int32, len(d.ended))}}), batch: 1000, reach: reachIDs},
		{name: "insertFollowing 1000", st: q.insertFollowing.by(d.following(1000)), rows: 1000, batch: 2000, reach: reachIDs},
		{name: "insertFollowing 1", st: q.insertFollowing.by(d.following(1)), rows: 1, reach: reachIDs},
		{name: "unendedAfter", st: q.unendedAfter.by(named{{"trigger", d.ended[0]}, {"run", d.ended[0]}, {"sharding", ""}}), reach: reachAll},
		{name: "furtherRuns", st: q.furtherRuns.by(named{{"trigger", d.ended[0]}, {"limit", 100}, {"texts", 0}}), reach: reachAll},
		{name: "countFurther", st: q.countFurther.with(d.ended[0]), rows: 1, reach: reachAll},
		{name: "runAsItIs", st: q.runAsItIs.with(d.ended[0]), rows: 1, reach: reachOne},
		{name: "killPlanned", st: q.killPlanned.with(d.planned[0].ID, "x"), rows: 1, reach: reachOne},
		{name: "killStarted", st: q.killStarted.with(d.started[0].ID, "x"), rows: 1, reach: reachOne},
	}
}

func (d *planData) askCases() []planCase {
	q := d.sql
	asks := []string{"xxl_job_ask"} // questions are kept for minutes: there are few
	return []planCase{
		{name: "askLog", st: q.askLog.by(named{{"incarnation", planOther}, {"run", d.started[0].ID}, {"from_line", 1}, {"route", "CANARY"}, {"addresses", `["http://10.0.0.1"]`}}), rows: 1, reach: reachOne},
		{name: "answerLog", st: q.answerLog.by(named{{"ask", 1}, {"to_line", 10}, {"is_end", true}, {"content", "a line"}, {"refusal", nil}}), rows: 1},
		{name: "logAnswer", st: q.logAnswer.with(1), rows: 1},
		{name: "dropAsks", st: q.dropAsks.with(1000), rows: 100, wasted: 1000, scans: asks},
	}
}

func (d *planData) triggerCases() []planCase {
	q := d.sql
	param := "p"
	t := store.Trigger{Param: &param}
	id := idAt(d.now)
	return []planCase{
		{name: "addKey", st: q.addKey.with(42, "a new key"), rows: 1},
		{name: "keyRun", st: q.keyRun.with(42, "order-42"), reach: reachOne},
		{name: "keyID", st: q.keyID.with(42, "order-42"), rows: 1},
		{name: "addRun", st: q.addRun.by(triggerArgs(42, nil, &t)), rows: 1},
		{name: "addRun with key", st: q.addRun.by(triggerArgs(42, &id, &t)), rows: 1},
		{name: "planRun", st: q.planRun.by(triggerArgs(42, nil, &t)), rows: 1},
		{name: "planRunTold", st: q.planRunTold.by(append(triggerArgs(42, nil, &t), named{{"channel", "a_channel"}}...)), rows: 1},
	}
}

func (d *planData) runCases() []planCase {
	q := d.sql
	lo, hi := rangeOf(d.ended)
	day0 := idAt(d.now.Truncate(day).Add((1 - planDays) * day))
	day1 := idAt(d.now.Truncate(day).Add((2-planDays)*day)) - 1
	return []planCase{
		{name: "runByID", st: q.runByID.with(d.ended[0]), rows: 1, reach: reachOne},
		{name: "runsByID 1000", st: q.runsByID.by(named{{"runs", d.ended}, {"lo", lo}, {"hi", hi}, {"texts", allTexts}}), rows: 1000, reach: reachIDs},
		{name: "runsByID 1", st: q.runsByID.by(named{{"runs", d.ended[:1]}, {"lo", d.ended[0]}, {"hi", d.ended[0]}, {"texts", 160}}), rows: 1, reach: reachIDs},
		{name: "partitions", st: q.partitions.with(), rows: planDays},
		{name: "endOldJobs", st: q.endOldJobs.by(named{{"lo", day0}, {"hi", day1}, {"limit", endBatch}}), rows: 5, reach: reachOne},
		{name: "endOld", st: q.endOld.by(named{{"lo", day0}, {"hi", day1}, {"limit", endBatch}}), rows: 5, reach: reachOne},
		{name: "deleteKeys", st: q.deleteKeys.by(named{{"lo", day0}, {"hi", day1}, {"limit", endBatch}})},
		{name: "deleteRuns", st: q.deleteRuns.by(named{{"lo", day0}, {"hi", day1}, {"limit", endBatch}}), rows: endBatch, reach: reachOne, batch: 1000},
	}
}

func (d *planData) nodeCases() []planCase {
	q := d.sql
	lo, hi := d.openRange()
	ids, epochs := fenceArgs(d.allShards())
	owners := make([]string, len(ids))
	for i := range owners {
		owners[i] = planNode
	}
	var pid *int64
	var at *time.Time
	var name *string
	return []planCase{
		{name: "shards", st: q.shards.with(), rows: 1, scans: smallLock},
		{name: "ensureShards", st: q.ensureShards.with(planShards), scans: smallLock},
		{name: "setting", st: q.setting.with(modeSetting), scans: smallGroup},
		{name: "setMark", st: q.setMark.with(markSetting, "1"), scans: smallGroup},
		{name: "setSetting", st: q.setSetting.with("x", "y")},
		{name: "clock", st: q.clock.with(), rows: 1},
		{name: "beat", st: q.beat.by(named{
			{"incarnation", planNode}, {"node", "node"}, {"joins", false}, {"told", true}, {"zones", false}, {"knows", 0}, {"unknown", name}, {"routers", name}, {"version", "v1.2.3"}, {"clock", int64(1500)}, {"attached", "[]"}, {"lock_pid", pid},
			{"lock_start", at}, {"lock_name", name}, {"locks", false}, {"lock_class", int32(1)},
			{"node_class", int32(2)},
		}), rows: 1, scans: smallNodes},
		{name: "setFailing", st: q.setFailing.with(planNode, true), rows: 1, scans: smallNodes},
		{name: "lockNode", st: q.lockNode.with(planNode), rows: 1, scans: smallNodes},
		{name: "leaveNode", st: q.leaveNode.with(planNode), scans: smallNodes},
		{name: "leaveShards", st: q.leaveShards.with(planNode), scans: smallNodes},
		{name: "buryLeft", st: q.buryLeft.with("node-3", int64(1)), rows: 1, scans: smallNodes},
		{name: "buryNode", st: q.buryNode.by(named{
			{"incarnation", "node-3"}, {"beats", int64(1)}, {"address", "local://node-3"}, {"lo", lo}, {"hi", hi},
		}), rows: 1, scans: smallNodes, reach: reachOpen, wasted: 3000},
		{name: "exclusive", st: q.exclusive.with(), rows: 1, scans: smallGroup},
		{name: "tryExclusive", st: q.tryExclusive.with(), rows: 1, scans: smallGroup},
		{name: "migrators", st: q.migrators.by(named{{"class", int64(1)}, {"lock", int64(2)}, {"schema", "s"}})},
		{name: "strangers", st: q.strangers.with(int64(1), []int64{1, 2})},
		{name: "shardRows", st: q.shardRows.with(ids), rows: 32, scans: smallLock},
		{name: "lockRows", st: q.lockRows.with(ids), rows: 32, scans: smallLock},
		{name: "takeRows", st: q.takeRows.by(named{{"incarnation", planOther}, {"shards", ids}, {"owners", owners}, {"epochs", epochs}}), rows: 32, scans: smallLock},
		{name: "releaseRows", st: q.releaseRows.by(named{{"incarnation", planNode}, {"shards", ids}, {"epochs", epochs}}), scans: smallLock},
		{name: "tryLock", st: q.tryLock.with(int32(1), ids)},
		{name: "unlock", st: q.unlock.with(int32(1), ids)},
		{name: "evict", st: q.evict.with([]string{"node-9"}), scans: smallNodes},
		{name: "backend", st: q.backend.with(), rows: 1},
		{name: "endBlockers", st: q.endBlockers.with(int64(0))},
		{name: "tableHolders", st: q.tableHolders.with(), wide: true}, // it reads what is locked in the database, by tests beside too
		{name: "notify", st: q.notify.with("a_channel", []string{"x"})},
	}
}

func (d *planData) groupCases() []planCase {
	q := d.sql
	return []planCase{
		{name: "saveGroup", st: q.saveGroup.by(named{{"app", "app-1"}, {"title", ""}, {"address_type", 0}, {"address_list", []string{}}})},
		{name: "ensureGroup", st: q.ensureGroup.with("app-1")},
		{name: "deleteGroup", st: q.deleteGroup.with("app-1"), rows: 1, scans: smallGroup},
		{name: "lockGroup", st: q.lockGroup.with("app-1"), rows: 1, scans: smallGroup},
		{name: "groupUsed", st: q.groupUsed.with("app-1"), rows: 1},
		{name: "groupUsed not", st: q.groupUsed.with("no-app"), rows: 1},
		{name: "group", st: q.group.with("app-1"), rows: 1, scans: smallGroup},
		{name: "groups", st: q.groups.with(), rows: 10, scans: smallGroup, wasted: 100},
	}
}

// registrations are n rows of the registry, each of another app.
func (d *planData) registrations(n int) []store.Registration {
	regs := make([]store.Registration, n)
	for i := range regs {
		k := i*99 + 2000
		regs[i] = store.Registration{App: fmt.Sprintf("app-%d", k%100), Address: fmt.Sprintf("http://10.0.0.%d", k), BootID: "boot", Capabilities: []string{"repeat"}}
	}
	return lastOfEach(regs)
}

func (d *planData) registryCases() []planCase {
	q := d.sql
	some, fresh := d.registrations(500), d.registrations(500)
	for i := range fresh {
		fresh[i].App = "new"
	}
	hour, ages := int64(3600_000_000), int64(100*365*24*3600_000_000)
	return []planCase{
		{name: "putAddresses 500", st: q.putAddresses.by(putArgs(some)), rows: 500},
		{name: "putAddresses 500 new", st: q.putAddresses.by(putArgs(fresh)), rows: 500},
		{name: "putAddresses 1", st: q.putAddresses.by(putArgs(some[:1])), rows: 1},
		{name: "putAddressesFree 500", st: q.putAddressesFree.by(putArgs(some)), rows: 500},
		{name: "putAddressesFree 1", st: q.putAddressesFree.by(putArgs(some[:1])), rows: 1},
		{name: "dropAddresses 500", st: q.dropAddresses.by(dropArgs(some)), batch: 500},
		{name: "dropAddresses 1", st: q.dropAddresses.by(dropArgs(some[:1]))},
		{name: "dropAddressesFree 500", st: q.dropAddressesFree.by(dropArgs(some)), batch: 500},
		{name: "dropAddressesFree 1", st: q.dropAddressesFree.by(dropArgs(some[:1]))},
		{name: "addresses", st: q.addresses.with("app-1", ages), rows: 1000},
		{name: "addresses of no app", st: q.addresses.with("no-app", hour)},
		{name: "registrations", st: q.registrations.by(named{{"after", ""}, {"after_address", ""}, {"within", int64(0)}, {"limit", 100}}), rows: 100},
		{name: "registrations after", st: q.registrations.by(named{{"after", "app-50"}, {"after_address", "http://10.0.0.5"}, {"within", int64(0)}, {"limit", 100}}), rows: 100},
		{name: "registrationsOf", st: q.registrationsOf.by(named{{"after", ""}, {"after_address", ""}, {"within", int64(0)}, {"limit", 100}, {"app", "app-50"}}), rows: 100},
		{name: "registrationsOf within", st: q.registrationsOf.by(named{{"after", ""}, {"after_address", ""}, {"within", ages}, {"limit", 1}, {"app", "app-50"}}), rows: 1},
		{name: "registrationsOf after", st: q.registrationsOf.by(named{
			{"after", "app-50"}, {"after_address", "http://10.0.0.5"}, {"within", int64(0)}, {"limit", 100}, {"app", "app-50"},
		}), rows: 100},
		{name: "noteServed 500", st: q.noteServed.by(d.servedArgs(500)), batch: 500, rows: 1},
		{name: "noteServed 1", st: q.noteServed.by(d.servedArgs(1)), rows: 1},
		{name: "dropMutes", st: q.dropMutes.with((*time.Time)(nil)), batch: 200, scans: []string{"xxl_job_mute"}, wasted: 400},
		{name: "lockMute", st: q.lockMute.with("job/5"), rows: 1, scans: []string{"xxl_job_mute"}, wasted: 400},
		{name: "appOfMuted", st: q.appOfMuted.with(5), rows: 1},
		{name: "putMute", st: q.putMute.by(named{{"key", "job/5"}, {"app", "app-5"}, {"job", 5}, {"by", "li.na"}, {"until", time.Now().Add(time.Hour)}, {"note", ""}}), rows: 1},
		{name: "dropMute", st: q.dropMute.with("job/5", &d.now), rows: 1, scans: []string{"xxl_job_mute"}, wasted: 400},
		{name: "mutes", st: q.mutes.with(&d.now), batch: 200, scans: []string{"xxl_job_mute"}, wasted: 400},
		{name: "countAppTokens", st: q.countAppTokens.with(), rows: 1, scans: []string{"xxl_job_app_token"}, wasted: 400},
		{name: "addAppToken", st: q.addAppToken.by(named{{"name", "another"}, {"apps", []string{"app-5"}}, {"hash", make([]byte, 32)}, {"by", "li.na"}, {"expires", time.Now().Add(time.Hour)}}), rows: 1},
		{name: "removeAppToken", st: q.removeAppToken.with("token 5"), rows: 1, scans: []string{"xxl_job_app_token"}, wasted: 400},
		{name: "appTokens", st: q.appTokens.with(), batch: 200, scans: []string{"xxl_job_app_token"}, wasted: 400},
		{name: "useAppToken", st: q.useAppToken.by(named{{"name", "token 5"}, {"hash", make([]byte, 32)}, {"note", 60000}, {"ahead", 60000}}), rows: 1, scans: []string{"xxl_job_app_token"}, wasted: 400},
		{name: "served", st: q.served.with([]string{"app-1", "app-5", "none"}), rows: 2},
		{name: "forgetAddresses", st: q.forgetAddresses.with(hour), wide: true, scans: registry},
	}
}

func (d *planData) listCases() []planCase {
	jobs := func(name string, rows int, f store.JobFilter) planCase {
		q := d.jobsQuery(context.Background(), f)
		return planCase{name: "Jobs " + name, st: statement{sql: q.sql, args: q.args}, rows: rows}
	}
	runs := func(name string, rows int, f store.RunFilter) planCase {
		q := d.runsQuery(context.Background(), f)
		var scans []string
		if f.JobID != 0 { // the number of shards says which one is the job's
			scans = smallLock
		}
		return planCase{name: "Runs " + name, st: statement{sql: q.sql, args: q.args}, rows: rows, reach: reachAll, scans: scans}
	}
	wide := func(c planCase) planCase { c.wide = true; return c }
	backlog := func(c planCase) planCase { c.scans, c.wide = manyOpen, true; return c }
	wasting := func(n int, c planCase) planCase { c.wasted = n; return c }
	bad := []store.State{store.StateFailed, store.StateLost}
	good := []store.State{store.StateSucceeded}
	open := []store.State{store.StateStarted, store.StateDispatched}
	planned := []store.State{store.StatePlanned}
	job := d.started[0].JobID
	middle := idAt(d.now.Add(-15 * day))
	return []planCase{
		jobs("all", 100, store.JobFilter{}),
		jobs("by keys", 1000, store.JobFilter{App: "app-2", Keys: d.keys(1000), Limit: 1000}),
		jobs("after", 100, store.JobFilter{After: 50_000}),
		wasting(3000, jobs("of app", 100, store.JobFilter{App: "app-1"})),
		wasting(3000, jobs("of app after", 100, store.JobFilter{App: "app-1", After: 50_000})),
		jobs("of app and key", 1, store.JobFilter{App: "app-2", Key: "key-42"}),
		jobs("of key", 1, store.JobFilter{Key: "key-42"}),
		jobs("of handler", 100, store.JobFilter{Handler: "handler-7"}),
		wasting(6000, jobs("of author", 100, store.JobFilter{Author: "author-7"})),
		wide(jobs("by name", 1, store.JobFilter{Name: "Job 4242"})),
		jobs("enabled", 100, store.JobFilter{Stopped: new(false)}),
		wasting(8000, jobs("stopped", 100, store.JobFilter{Stopped: new(true)})),
		wasting(15000, jobs("stopped of app", 100, store.JobFilter{Stopped: new(true), App: "app-5"})),
		jobs("by ids", 100, store.JobFilter{IDs: jobIDs(100, 1)}),
		runs("all", 100, store.RunFilter{}),
		runs("before", 100, store.RunFilter{Before: middle}),
		runs("of app", 100, store.RunFilter{App: "app-1"}),
		runs("of app before", 100, store.RunFilter{App: "app-1", Before: d.aheadID(50_000)}),
		runs("of job", 10, store.RunFilter{JobID: job}),
		runs("of job before", 5, store.RunFilter{JobID: job, Before: middle}),
		runs("of job page", 10, store.RunFilter{JobID: job, Limit: 10}),
		runs("of job and state", 10, store.RunFilter{JobID: job, States: good}),
		runs("of job and bad", 0, store.RunFilter{JobID: job, States: bad}),
		runs("of job in time", 1, store.RunFilter{JobID: job, From: d.now.Add(-10 * day), To: d.now}),
		runs("of trigger", 1, store.RunFilter{TriggerID: d.ended[0]}),
		runs("of trigger and job", 1, store.RunFilter{TriggerID: d.started[0].ID, JobID: job}),
		runs("bad", 100, store.RunFilter{States: bad}),
		runs("bad before", 100, store.RunFilter{States: bad, Before: middle}),
		wasting(500, runs("bad, ended since", 0, store.RunFilter{States: bad, EndedSince: d.now.Add(day), Limit: 500})),
		wide(wasting(500, runs("skipped, ended since", 0, store.RunFilter{States: []store.State{store.StateSkipped}, EndedSince: d.now.Add(day), Limit: 500}))),
		wasting(3000, runs("bad of app", 100, store.RunFilter{States: bad, App: "app-1"})),
		wide(runs("succeeded", 100, store.RunFilter{States: good})),
		backlog(runs("planned, none of app", 0, store.RunFilter{States: planned, App: "no-app"})),
		wasting(12500, runs("started", 100, store.RunFilter{States: open})),
		backlog(runs("planned", 100, store.RunFilter{States: planned})),
		wide(runs("skipped", 100, store.RunFilter{States: []store.State{store.StateSkipped}})),
		wide(runs("in time", 100, store.RunFilter{From: d.now.Add(-10 * day), To: d.now.Add(-9 * day)})),
		wide(runs("in time of app", 100, store.RunFilter{From: d.now.Add(-10 * day), To: d.now.Add(-9 * day), App: "app-1"})),
		wide(runs("in time bad", 100, store.RunFilter{From: d.now.Add(-10 * day), To: d.now.Add(-9 * day), States: bad})),
	}
}

// following are the arguments for runs that follow some.
func (d *planData) following(n int) named {
	due, counts := make([]int64, n), make([]int32, n)
	for i := range due {
		due[i] = d.now.UnixMilli()
	}
	return named{{"runs", d.ended[:n]}, {"due", due}, {"attempts", counts}, {"retries", counts}, {"reruns", counts}, {"snoozes", counts}}
}

// How much there is of what follows a success, and of alarms. Each job in ten leads to others,
// and a thousand run behind one by its id, as many by its key.
const (
	planOwed    = 20_000
	planWindows = 10_000
	planAlarms  = 100_000 // one in ten of them open
)

func (d *planData) fillOwed(t testing.TB) {
	t.Helper()
	d.exec(t, `update {{schema}}.xxl_job_info set child_jobid = (id + 1)::text where id % 10 = 0`)
	d.exec(t, `insert into {{schema}}.xxl_job_link (job_id, other_id) select n + 50000, n * 20 from generate_series(1, 1000) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_link (job_id, other_app, other_key) select n + 60000, 'app-' || n * 20 % 10, 'key-' || n * 20 from generate_series(1, 1000) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_owed (shard, log_id, trigger_id, parent_job, job_id, app_name, job_key, is_join, business_time, depth)
	select n % 32, $1::bigint + n, $1::bigint + n, n, case when n % 2 = 0 then n end, case when n % 2 = 1 then 'app-' || (n + 1) % 10 end,
		case when n % 2 = 1 then 'key-' || n + 1 end, false, 1, 1 from generate_series(1, $2::int) n`, idAt(d.now.Add(-time.Hour)), planOwed)
	d.exec(t, `insert into {{schema}}.xxl_job_part (trigger_id) select $1::bigint + n * 8192 from generate_series(1, 10000) n`, idAt(d.now.Add(-time.Hour)))
	d.exec(t, `insert into {{schema}}.xxl_job_window (job_id, begins, shard, expires, parent_id, depth, succeeded)
	select 50000 + n / 10, n, (50000 + n / 10) % 32, $1::bigint + n * 1000 - 2000000, n, 1, array[1, 2, 3] from generate_series(1, $2::int) n`, d.now.UnixMilli(), planWindows)
	d.exec(t, `update {{schema}}.xxl_job_info set late_after = 60000 where id % 1000 = 1`)
	d.exec(t, `insert into {{schema}}.xxl_job_alarm (shard, job_id, job_version, app_name, job_key, job_desc, alarm_email, cause, log_id, trigger_id, state, attempt, instant, content, status, add_time)
	select n % 32, n, 1, 'app-' || n % 10, 'key-' || n, 'job ' || n, '', 'failed', $1::bigint + n, $1::bigint + n, 'failed', 0, 1, 'boom', case when n % 10 = 0 then 0 else 2 end,
		now() - interval '1 second' * ($2::int - n) from generate_series(1, $2::int) n`, idAt(d.now.Add(-time.Hour)), planAlarms)
	d.exec(t, `insert into {{schema}}.xxl_job_told (job_id, rule, shard, at, is_open, log_id, trigger_id)
	select n, 'mail', n % 32, $1::bigint - 60000, n % 50 = 0, $2::bigint, $2::bigint from generate_series(1, 10000) n`, d.now.UnixMilli(), idAt(d.now.Add(-time.Hour)))
	d.exec(t, `insert into {{schema}}.xxl_job_rule (rule, name, apps, jobs, causes, kept) values ('mail', 'mail', '{}', '{}', '{failed,lost,skipped,stopped,late,attempt}', now())`)
}

func (d *planData) owedCases() []planCase {
	q := d.sql
	shards, epochs := fenceArgs(d.allShards())
	jobs := jobIDs(100, 20)
	triggers := make([]int64, 100)
	for i := range triggers {
		triggers[i] = d.ended[i]
	}
	take := func(limit int) named {
		return named{{"shards", shards}, {"epochs", epochs}, {"limit", limit}, {"aside", []int64{5, 7}}, {"unknown", []int64{3}}}
	}
	windows := []int64{50001, 50002}
	job := d.job(50)
	job.After, job.AfterKeys = []int64{1, 2}, []string{"app-1/key-2"}
	return append(d.alarmCases(), []planCase{
		{name: "joinsBehind", st: q.joinsBehind.with(jobs), rows: 100, wasted: 300},
		{name: "leading", st: q.leading.with(jobs), rows: 100, wasted: 100},
		{name: "holdParts", st: q.holdParts.with(triggers), batch: 100},
		{name: "wholeParts", st: q.wholeParts.with(triggers), reach: reachAll, wasted: 200},
		{name: "insertOwed", st: q.insertOwed.by(named{
			{"shards", []int16{1}}, {"runs", []int64{1}}, {"triggers", []int64{1}}, {"parents", []int64{1}}, {"jobs", []int64{1}}, {"apps", []*string{nil}}, {"keys", []*string{nil}},
			{"joins", []bool{false}}, {"params", []int16{0}}, {"business", []int64{1}}, {"depths", []int16{1}}, {"traces", []*string{nil}},
		})},
		{name: "anyOwed", st: q.anyOwed.with(shards), rows: 1, wasted: 100},
		{name: "takeOwed 1000", st: q.takeOwed.by(take(1000)), rows: 1000, scans: smallLock, wasted: planOwed},
		{name: "takeOwed 1", st: q.takeOwed.by(take(1)), rows: 1, scans: smallLock, wasted: planOwed},
		{name: "deleteOwed", st: q.deleteOwed.with(triggers)},
		{name: "noteUnpaid", st: q.noteUnpaid.by(named{{"runs", triggers[:3]}, {"lines", []string{"a", "b", "c"}}, {"lo", idAt(d.now.Add(-day))}, {"hi", idAt(d.now)}}), reach: reachIDs, batch: 3},
		{name: "withheld", st: q.withheld.with(triggers[:3], jobs[:3]), reach: reachIDs, batch: 3},
		{name: "keepFree", st: q.keepFree.with(jobs), rows: 100},
		{name: "heldWindows", st: q.heldWindows.by(named{{"jobs", windows}, {"begins", []int64{11, 22}}}), batch: 2, wasted: 50},
		{name: "heldParts", st: q.heldParts.with(triggers), batch: 100},
		{name: "lead", st: q.lead.by(named{
			{"jobs", jobs[:2]}, {"keys", []string{"a", "b"}}, {"parents", []int64{1, 2}}, {"depths", []int16{1, 33}}, {"due", []int64{0, 0}}, {"business", []int64{1, 1}}, {"instants", []*int64{new(int64(1)), nil}},
			{"params", []*string{nil, nil}}, {"traces", []*string{nil, nil}}, {"reasons", []*string{nil, new("depth")}}, {"lines", []*string{nil, nil}},
		}), rows: 2},
		{name: "namedByKeys", st: q.namedByKeys.by(named{{"apps", []string{"app-2", "app-4"}}, {"keys", []string{"key-2", "key-4"}}}), rows: 2},
		{name: "upsertWindow", st: q.upsertWindow.by(named{
			{"job", 50001}, {"begins", 10}, {"shard", 1}, {"timeout", 1000}, {"parent", 1}, {"depth", 1}, {"succeeded", []int64{4, 5}},
		}), rows: 1},
		{name: "closedWindows", st: q.closedWindows.by(named{{"jobs", []int64{1, 2}}, {"keys", []string{"order-1", "x"}}}), rows: 1},
		{name: "deleteWindows", st: q.deleteWindows.by(named{{"jobs", windows}, {"begins", []int64{11, 22}}}), batch: 2},
		{name: "nextWindow", st: q.nextWindow.with(shards, epochs), rows: 1, wasted: 100, scans: smallLock},
		{name: "overWindows", st: q.overWindows.by(named{{"shards", shards}, {"epochs", epochs}, {"before", milli(d.now)}, {"limit", 1000}, {"aside_jobs", []int64{}}, {"aside_begins", []int64{}}}), rows: 1000, scans: smallLock, wasted: 2000},
		{name: "link", st: d.link([]store.Job{*job}), batch: 3},
		{name: "links", st: q.links.with(), rows: 1000, wide: true, scans: []string{"xxl_job_link", "xxl_job_info"}},
		{name: "deleteParts", st: q.deleteParts.by(named{{"lo", idAt(d.now.Add(-time.Hour))}, {"hi", idAt(d.now)}, {"limit", 1000}}), rows: 1000},
	}...)
}

func (d *planData) alarmCases() []planCase {
	q := d.sql
	shards, epochs := fenceArgs(d.allShards())
	lo, hi := d.openRange()
	ids := make([]int64, 1000)
	statuses, rules := make([]int16, 1000), make([]string, 1000)
	var none []string
	smallRules := []string{"xxl_job_rule", "xxl_job_rule_node", "xxl_job_node"} // a dozen rows
	for i := range ids {
		ids[i], statuses[i], rules[i] = int64(i+1)*10, store.AlarmSent, "mail"
	}
	return []planCase{
		{name: "insertAlarms", st: q.insertAlarms.by(named{
			{"shards", []int16{1, 1}}, {"jobs", []int64{1, 2}}, {"apps", []string{"app", ""}}, {"causes", []string{"failed", "stopped"}}, {"runs", []*int64{new(int64(1)), nil}},
			{"triggers", []*int64{new(int64(1)), nil}}, {"states", []*string{new("failed"), nil}}, {"attempts", []int16{0, 0}}, {"instants", []int64{1, 0}}, {"texts", []string{"a", "b"}},
		}), rows: 2, scans: smallRules},
		{name: "leastLate", st: q.leastLate.with(shards), rows: 1, wasted: 200, scans: smallRules},
		{name: "lateRuns", st: q.lateRuns.by(named{
			{"shards", shards}, {"epochs", epochs}, {"now", milli(d.now.Add(time.Hour))}, {"limit", 1000}, {"lo", lo}, {"hi", hi}, {"aside", []int64{}},
		}), rows: 90, reach: reachOpen, scans: append(smallRules, smallLock...), wasted: 300},
		{name: "openAlarms 1000", st: q.openAlarms.by(named{{"shards", shards}, {"rules", none}, {"after", int64(0)}, {"limit", 1000}}), rows: 1000, wasted: planAlarms / 10, scans: smallRules},
		{name: "openAlarms none", st: q.openAlarms.by(named{{"shards", shards}, {"rules", none}, {"after", int64(planAlarms)}, {"limit", 1000}}), wasted: 100, scans: smallRules},
		{name: "openAlarms of a rule", st: q.openAlarms.by(named{{"shards", shards}, {"rules", []string{"mail"}}, {"after", int64(0)}, {"limit", 1000}}), rows: 1000, wasted: planAlarms / 10, scans: smallRules},
		{name: "endTold 1000", st: q.endTold.by(named{{"alarms", ids}}), batch: 1000, reach: reachAll, wasted: 1000, scans: smallRules},
		{name: "putRules", st: q.putRules.by(named{{"rules", `[{"Rule": "a", "Apps": [], "Jobs": ["a/b"], "Causes": ["failed"]}]`}})},
		{name: "nameRules", st: q.nameRules.by(named{{"keys", rules[:1]}, {"names", rules[:1]}}), scans: smallRules},
		{name: "dropReplaced", st: q.dropReplaced.by(named{{"app", "app"}, {"node", "node"}, {"keys", rules[:1]}, {"names", rules[:1]}}), scans: smallRules},
		{name: "putRuleNode", st: q.putRuleNode.by(named{{"app", "app"}, {"node", "node"}, {"incarnation", planNode}, {"keys", rules[:1]}})},
		{name: "otherRules", st: q.otherRules.by(named{{"app", "app"}, {"node", "node"}, {"keys", rules[:1]}}), scans: smallRules},
		{name: "holdRule", st: q.holdRule.by(named{{"rule", "mail"}, {"incarnation", planNode}, {"millis", 1000}}), rows: 1, scans: smallRules},
		{name: "rules", st: q.rules.with(), rows: 1, scans: smallRules},
		{name: "endRules", st: q.endRules.with(d.now.Add(-day)), scans: smallRules},
		{name: "dropRules", st: q.dropRules.with(d.now.Add(-day)), scans: smallRules},
		{name: "dropRuleNodes", st: q.dropRuleNodes.with(d.now.Add(-day)), scans: smallRules},
		{name: "anyAlarm", st: q.anyAlarm.with(), rows: 1},
		{name: "leaveTroubles", st: q.leaveTroubles.by(named{{"keys", rules[:2]}, {"overs", []bool{true, false}}, {"incarnation", planNode}, {"told", rules[:1]}}), scans: smallRules},
		{name: "noteTroubles", st: q.noteTroubles.by(named{
			{"keys", []string{"a", "b"}}, {"jobs", []int64{1, 0}}, {"versions", []int64{-1, -2}}, {"apps", []string{"app", ""}}, {"causes", rules[:2]}, {"addresses", rules[:2]},
			{"overs", []bool{false, true}}, {"texts", rules[:2]}, {"again", []int64{1, 0}}, {"told", rules[:0]}, {"incarnation", planNode},
		}), scans: smallRules},
		{name: "joinTroubles", st: q.joinTroubles.by(named{{"keys", rules[:2]}, {"overs", []bool{true, false}}, {"incarnation", planNode}, {"told", rules[:1]}})},
		{name: "tellAlarms 1000", st: q.tellAlarms.by(named{{"alarms", ids}, {"rules", rules}, {"gave_up", make([]bool, len(ids))}}), batch: 1000},
		{name: "endAlarms 1000", st: q.endAlarms.by(named{{"alarms", ids}, {"statuses", statuses}}), batch: 1000, reach: reachAll, wasted: 1000},
		{name: "putTold", st: q.putTold.by(named{{"jobs", []int64{1}}, {"rules", []string{"mail"}}, {"at", []int64{1}}, {"open", []bool{true}}, {"runs", []*int64{nil}}, {"triggers", []*int64{nil}}})},
		{name: "dropTold", st: q.dropTold.with([]int64{1, 2}), wasted: 2},
		{name: "forgetTold", st: q.forgetTold.with(5)},
		{name: "toldJobs", st: q.toldJobs.with(jobIDs(100, 1)), rows: 100},
		{name: "countOpen", st: q.countOpen.by(named{{"shards", shards}, {"rules", none}}), rows: 1, batch: 200},
		{name: "recovered", st: q.recovered.by(named{{"shards", shards}, {"rules", none}, {"after", 0}, {"rule", ""}, {"limit", 1000}}), reach: reachAll, wide: true},
		{name: "dropAlarms", st: q.dropAlarms.by(named{{"before", d.now}, {"untold", d.now.Add(-2 * day)}, {"limit", 1000}}), rows: 1000, wasted: 200, scans: smallRules},
	}
}
