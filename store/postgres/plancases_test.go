package postgres

import (
	"fmt"
	"time"

	"github.com/xxljob/xxljob"
)

// reach says how many partitions a statement may look into.
type reach int

const (
	reachNone reach = iota // it has nothing to do with runs
	reachOpen              // those of the range of unended runs
	reachIDs               // those of the ids that it is given
	reachOne               // one, whichever
	reachAll               // all there are
)

// planCase is a statement with arguments, and what it may cost.
type planCase struct {
	name   string // the field of queries, and what is special
	sql    string
	args   []any
	reach  reach
	scans  []string // tables that may be read from end to end: they are small
	rows   int      // it has to return as many at least, or the case shows nothing
	batch  int      // rows that it may work on, where that is more than it returns
	wasted int      // rows that it may look at in vain
	wide   bool     // it may look at everything: no index serves such a filter
	kept   bool     // in mode auto one plan for all arguments serves: it is not planned each time
}

// Tables that have a row for each shard, node or app.
var (
	smallLock  = []string{"xxl_job_lock"}
	smallNodes = []string{"xxl_job_lock", "xxl_job_node"}
	// Where every fourth run of a day is planned, reading the day is as good.
	manyOpen   = []string{"xxl_job_log"}
	smallGroup = []string{"xxl_job_group", "xxl_job_setting"}
	registry   = []string{"xxl_job_registry"}
)

// planCases has a case or more for each statement, with the sizes of batches that
// the loops use.
func (d *planData) planCases() []planCase {
	var list []planCase
	for _, part := range [][]planCase{d.jobCases(), d.listsCases(), d.ruleCases(), d.scanCases(), d.claimCases(), d.startCases(), d.handoverCases(),
		d.endCases(), d.askCases(), d.triggerCases(), d.runCases(), d.nodeCases(), d.groupCases(), d.registryCases(), d.listCases()} {
		list = append(list, part...)
	}
	return list
}

func (d *planData) allShards() []xxljob.Shard {
	shards := make([]xxljob.Shard, planShards)
	for i := range shards {
		shards[i] = xxljob.Shard{ID: i, Owner: planNode, Epoch: planEpoch}
	}
	return shards
}

// jobIDs are n jobs, each the given number modulo 100.
func jobIDs(n, rest int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i*100 + rest)
	}
	return ids
}

func (d *planData) job(id int64) *xxljob.Job {
	return &xxljob.Job{ID: id, Shard: int(id % planShards), Version: 1, App: "app", Key: "a key", Schedule: xxljob.Cron("0 0 * * * ?"), Added: d.now, Updated: d.now}
}

func (d *planData) jobCases() []planCase {
	q := d.sql
	fresh := d.job(planJobs + 1)
	old := d.job(42)
	return []planCase{
		{name: "now", sql: q.now},
		{name: "newJobID", sql: q.newJobID},
		{name: "insertJob", sql: q.insertJob, args: jobColumns.values(fresh)},
		{name: "insertNext", sql: q.insertNext, args: d.insertNext(fresh).args},
		{name: "insertChange", sql: q.insertChange, args: []any{42, 1, "somebody", "update"}},
		{name: "changes", sql: q.changes, args: []any{42, 100}, rows: 1},
		{name: "updateJob", sql: q.updateJob, args: jobColumns.values(old)},
		{name: "updateNext", sql: q.updateNext, args: d.insertNext(old).args},
		{name: "deleteJob", sql: q.deleteJob, args: []any{42}},
		{name: "deleteNext", sql: q.deleteNext, args: []any{42}},
		{name: "lockNext", sql: q.lockNext, args: []any{42}, rows: 1},
		{name: "lockJob", sql: q.lockJob, args: []any{42}, rows: 1},
		{name: "jobByID", sql: q.jobByID, args: []any{42}, rows: 1},
		{name: "jobByKey", sql: q.jobByKey, args: []any{"app-2", "key-42"}, rows: 1},
		{name: "definitions 1000", sql: q.definitions, args: []any{jobIDs(1000, 91)}, rows: 1000},
		{name: "definitions 1", sql: q.definitions, args: []any{jobIDs(1, 91)}, rows: 1},
		{name: "startedFor", sql: q.startedFor, args: []any{d.started[0].JobID, d.started[0].Shard}, rows: 1, reach: reachAll, wasted: 20, batch: 20},
	}
}

// keys are some of app-2.
func (d *planData) keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i*10+2)
	}
	return keys
}

// listsCases are those of lists of jobs. The one that a node asks once a minute, for the
// surplus, goes through the definitions of one app.
func (d *planData) listsCases() []planCase {
	q := d.sql
	keys, fresh, ids := d.keys(1000), make([]xxljob.Job, 1000), make([]int64, 1000)
	for i := range keys {
		fresh[i] = *d.job(int64(planJobs + 1 + i))
		fresh[i].Key = keys[i]
		ids[i] = fresh[i].ID
	}
	next := columnsOf(fresh, func(j *xxljob.Job) []any { return d.insertNext(j).args })
	small := []string{"xxl_job_list_head", "xxl_job_list", "xxl_job_node"}
	return []planCase{
		{name: "head", sql: q.head, args: []any{"app-2"}, rows: 1, scans: small},
		{name: "insertHead", sql: q.insertHead, args: []any{"app-2", 1, "digest", "node-1"}},
		{name: "lockHead", sql: q.lockHead, args: []any{"app-2"}, rows: 1, scans: small},
		{name: "shareHead", sql: q.shareHead, args: []any{"app-2"}, rows: 1, scans: small},
		{name: "setHead", sql: q.setHead, args: []any{"app-2", 2, "digest", "node-1"}, scans: small},
		{name: "putNodeList", sql: q.putNodeList, args: []any{"app-2", "node-1", 2, true, "another", keys}, scans: small},
		{name: "dropLists", sql: q.dropLists, args: []any{"node-9"}, scans: small},
		{name: "otherLists", sql: q.otherLists, args: []any{"app-2", "node-1", 0, 1, "digest"}, rows: 1, scans: small},
		{name: "nodeLists", sql: q.nodeLists, args: []any{"app-2"}, rows: 3, scans: small},
		{name: "surplus", sql: q.surplus, args: []any{"app-2", "node-1"}, rows: 100, wide: true, scans: append(small, "xxl_job_info", "xxl_job_named")},
		{name: "isSurplus", sql: q.isSurplus, args: []any{"app-2", "node-1", 1002, 1, "digest"}, rows: 1, scans: small, wasted: 60},
		{name: "nameJobs", sql: q.nameJobs, args: []any{"app-2", keys, 1}, batch: 1000, wasted: 1000},
		{name: "nameJobs anew", sql: q.nameJobs, args: []any{"app-2", keys, 2}, batch: 1000},
		{name: "isNamed", sql: q.isNamed, args: []any{"app-2", "key-42"}, rows: 1},
		{name: "jobsByKeys 1000", sql: q.jobsByKeys, args: []any{"app-2", keys}, rows: 1000},
		{name: "takenKeys 1000", sql: q.takenKeys, args: []any{"app-2", keys}, rows: 1000},
		{name: "newJobIDs", sql: q.newJobIDs, args: []any{1000}, rows: 1000},
		{name: "insertJobs", sql: q.insertJobs, args: columnsOf(fresh, jobColumns.values), rows: 1000},
		{name: "insertNexts", sql: q.insertNexts, args: next, batch: 1000},
		{name: "insertChanges", sql: q.insertChanges, args: []any{ids, "somebody"}, batch: 1000},
		{name: "insertNamed", sql: q.insertNamed, args: []any{ids, 1}, batch: 1000},
		{name: "deleteNamed", sql: q.deleteNamed, args: []any{42}},
	}
}

func (d *planData) ruleCases() []planCase {
	q := d.sql
	lo, hi := d.openRange()
	waiting := jobIDs(100, 97)
	ids, ends := make([]int64, 1000), make([]int64, 1000)
	for i := range ids {
		ids[i], ends[i] = d.waitedFor(int64(i*100+97)), milli(d.now)
	}
	shards, epochs := fenceArgs(d.allShards())
	return []planCase{
		{name: "cancelPlanned", sql: q.cancelPlanned, args: []any{d.planned[1].JobID, "stop", false, lo, hi}, rows: 1, reach: reachOpen},
		{name: "idleJobs 1000", sql: q.idleJobs, args: []any{jobIDs(1000, 97)}, rows: 1000},
		{name: "idleJobs 1000 none", sql: q.idleJobs, args: []any{jobIDs(1000, 11)}, batch: 1000},
		{name: "idleJobs 1", sql: q.idleJobs, args: []any{jobIDs(1, 97)}, rows: 1},
		{name: "lockIdle", sql: q.lockIdle, args: []any{waiting}, rows: 100},
		{name: "lockIdleFree", sql: q.lockIdleFree, args: []any{waiting}, rows: 100},
		{name: "rearm", sql: q.rearm, args: []any{waiting, ids, ends}, rows: 100},
		{name: "rearm 1000", sql: q.rearm, args: []any{jobIDs(1000, 97), ids, ends}, rows: 1000},
		{name: "finishNext", sql: q.finishNext, args: []any{waiting, lo, hi}, reach: reachOpen, batch: 100, wasted: 100},
		{name: "finishNext finished", sql: q.finishNext, args: []any{[]int64{99, 10099, 20099}, lo, hi}, rows: 3, reach: reachOpen},
		{name: "finishJob", sql: q.finishJob, args: []any{waiting, "finished"}, batch: 200},
		{name: "noteStops", sql: q.noteStops, args: []any{waiting, "somebody"}, batch: 100},
		{name: "sweepIdle", sql: q.sweepIdle, args: []any{shards, epochs}, scans: smallLock, rows: 1000},
		{name: "sweepRearm", sql: q.sweepRearm, args: []any{waiting}, rows: 100, reach: reachAll},
	}
}

// waitedFor is the run that fillJobs makes the job wait for.
func (d *planData) waitedFor(job int64) int64 { return idAt(d.now.Add(-time.Hour)) + job }

func (d *planData) scanCases() []planCase {
	q := d.sql
	shards, epochs := fenceArgs(d.allShards())
	now := milli(d.now)
	lo, hi := d.openRange()
	var foreign []int64
	for _, r := range d.planned {
		if r.PlanEpoch == 0 && len(foreign) < 500 {
			foreign = append(foreign, r.ID)
		}
	}
	flo, fhi := rangeOf(foreign)
	return []planCase{
		{name: "scanJobs", sql: q.scanJobs, args: []any{shards, int64(0), now, 1000}, rows: 1000},
		{name: "scanJobs late", sql: q.scanJobs, args: []any{shards, now - 500, now, 1000}, rows: 1000},
		{name: "scanJobs none", sql: q.scanJobs, args: []any{shards, now + 1, now + 50, 1000}, kept: true},
		{name: "scanJobs one shard", sql: q.scanJobs, args: []any{shards[:1], now - 500, now, 1000}, rows: 10, wasted: 2500},
		{name: "scanRuns", sql: q.scanRuns, args: []any{shards, now, 1000, lo, hi}, rows: 500, reach: reachOpen},
		{name: "scanRuns none", sql: q.scanRuns, args: []any{shards, now - 3600_000, 1000, lo, hi}, reach: reachOpen},
		{name: "next", sql: q.next, args: []any{shards, now, lo, hi}, rows: 2, batch: 50, reach: reachOpen},
		{name: "stamp", sql: q.stamp, args: []any{shards, epochs, foreign, flo, fhi}, rows: 500, reach: reachIDs, scans: smallLock},
		{name: "backlog", sql: q.backlog, args: []any{shards, int64(0), now, lo, hi}, rows: 5000, reach: reachOpen, wasted: 1000},
		{name: "planned", sql: q.planned, args: []any{shards, now, int64(0), int64(0), 1000, lo, hi, ""}, rows: 1000, reach: reachOpen},
		{name: "planned page 6", sql: q.planned, args: []any{shards, now, now - 25_000, d.planned[4500].ID, 1000, lo, hi, ""}, rows: 1000, reach: reachOpen},
		{name: "planned of app", sql: q.planned, args: []any{shards, now, int64(0), int64(0), 1000, lo, hi, "app-1"}, rows: 1000, reach: reachOpen},
		{name: "openFloor", sql: q.openFloor, args: []any{lo}, rows: 1, reach: reachAll},
		{name: "insertRecord", sql: q.insertRecord, args: []any{int64(1), 1, "app-1", "CRON", int16(10), d.now.UnixMilli(), nil, nil, nil, nil}},
		{name: "nodeLock", sql: q.nodeLock, args: []any{int32(1), "a"}, rows: 1},
		{name: "startedJobs", sql: q.startedJobs, args: []any{shards, lo, hi}, rows: 2000, reach: reachOpen, wide: true},
		{name: "startedLeast", sql: q.startedLeast, args: []any{lo, hi}, rows: 1, reach: reachOpen, wide: true}, // reads all started runs
	}
}

// claims plans the next run of n due jobs.
func (d *planData) claims(n int) []xxljob.Plan {
	plans := make([]xxljob.Plan, n)
	for i := range plans {
		id := int64(i*100 + 91)
		due := time.UnixMilli(d.now.UnixMilli() - id%2000)
		plans[i] = xxljob.Plan{JobID: id, Shard: int(id % planShards), Epoch: planEpoch, Version: 1, Due: due, Next: d.now.Add(time.Second),
			Runs: []xxljob.NewRun{{At: due, Type: xxljob.TriggerCron}}}
	}
	return plans
}

func (d *planData) claimCases() []planCase {
	q := d.sql
	return []planCase{
		{name: "claim 1000", sql: q.claim, args: claimArgs(d.claims(1000)), rows: 1000, scans: smallLock, reach: reachNone},
		{name: "claim 1", sql: q.claim, args: claimArgs(d.claims(1)), rows: 1, scans: smallLock},
		{name: "claimFree 1000", sql: q.claimFree, args: claimArgs(d.claims(1000)), rows: 1000, scans: smallLock},
		{name: "claimFree 1", sql: q.claimFree, args: claimArgs(d.claims(1)), rows: 1, scans: smallLock},
		{name: "claimAll 1000", sql: q.claimAll, args: claimArgs(d.claims(1000)), rows: 2000, scans: smallLock, reach: reachNone},
		{name: "claimAll 1", sql: q.claimAll, args: claimArgs(d.claims(1)), rows: 2, scans: smallLock},
		{name: "claimAllFree 1000", sql: q.claimAllFree, args: claimArgs(d.claims(1000)), rows: 2000, scans: smallLock},
		{name: "claimAllFree 1", sql: q.claimAllFree, args: claimArgs(d.claims(1)), rows: 2, scans: smallLock},
		{name: "stopNext", sql: q.stopNext, args: []any{42}},
		{name: "stopJob", sql: q.stopJob, args: []any{42, "finished"}},
		{name: "waitNext", sql: q.waitNext, args: []any{42, int64(1)}},
	}
}

// starts are of n planned runs, at their owner or, serially, at another node.
func (d *planData) starts(n int, serial bool) []any {
	address := xxljob.LocalAddress(planNode)
	if serial {
		address = xxljob.LocalAddress(planOther)
	}
	return d.startsAt(n, address, "", serial)
}

func (d *planData) startsAt(n int, address, boot string, serial bool) []any {
	starts := make([]xxljob.Start, n)
	g := startGroup{}
	for i := range starts {
		r := &d.planned[i]
		starts[i] = xxljob.Start{RunID: r.ID, JobID: r.JobID, Shard: r.Shard, Epoch: planEpoch, JobVersion: 1, State: xxljob.StateStarted,
			Owner: planNode, Token: int64(i + 1), Address: address, BootID: boot, Serial: serial, Handler: "handler", Block: "SERIAL_EXECUTION"}
		g.places = append(g.places, i)
	}
	return d.startArgs(starts, g)
}

func (d *planData) startCases() []planCase {
	q := d.sql
	shards, _ := fenceArgs(d.allShards())
	lo, hi := d.openRange()
	ids, jobs, in := d.idsOf(d.planned[:1000])
	slo, shi := rangeOf(ids)
	r := &d.started[0]
	nodes := []string{planOther}
	local := func(s string) *string { return &s }
	return []planCase{
		{name: "start 1000", sql: q.start, args: d.starts(1000, false), rows: 1000, reach: reachIDs, scans: smallNodes},
		{name: "start 1", sql: q.start, args: d.starts(1, false), rows: 1, reach: reachIDs, scans: smallNodes},
		{name: "start 1000 serial", sql: q.start, args: d.starts(1000, true), rows: 1000, reach: reachOpen, scans: smallNodes},
		{name: "start 1 serial", sql: q.start, args: d.starts(1, true), rows: 1, reach: reachOpen, scans: smallNodes},
		{name: "start 1000 remote", sql: q.start, args: d.startsAt(1000, "http://10.0.0.1", "a process", false), rows: 1000, reach: reachIDs, scans: smallNodes},
		{name: "startFree 1000", sql: q.startFree, args: d.starts(1000, false), rows: 1000, reach: reachIDs, scans: smallNodes},
		{name: "startFree 1000 serial", sql: q.startFree, args: d.starts(1000, true), rows: 1000, reach: reachOpen, scans: smallNodes},
		{name: "startFree 1", sql: q.startFree, args: d.starts(1, false), rows: 1, reach: reachIDs, scans: smallNodes},
		{name: "insertSiblings", sql: q.insertSiblings, args: []any{r.ID, []string{"1/3", "2/3"}, []string{"local://node-1", "local://node-2"},
			[]*string{nil, nil}, []*string{nil, local(planOther)}, []bool{true, false}, []*string{nil, local("a process")}}, rows: 2, reach: reachOne},
		{name: "whyFence", sql: q.whyFence, args: []any{shards}, rows: 32, scans: smallLock},
		{name: "whyRun 1000", sql: q.whyRun, args: []any{ids, slo, shi}, rows: 1000, reach: reachIDs},
		{name: "whyJob 1000", sql: q.whyJob, args: []any{jobs}, rows: 1000},
		{name: "whyNode", sql: q.whyNode, args: []any{nodes}, rows: 1, scans: smallNodes},
		{name: "whyBusy 1000", sql: q.whyBusy, args: []any{in, jobs, lo, hi}, reach: reachOpen},
		{name: "whyBusy 1", sql: q.whyBusy, args: []any{in[:1], jobs[:1], lo, hi}, reach: reachOpen},
	}
}

func (d *planData) idsOf(runs []xxljob.Run) (ids, jobs []int64, shards []int16) {
	for i := range runs {
		ids, jobs, shards = append(ids, runs[i].ID), append(jobs, runs[i].JobID), append(shards, int16(runs[i].Shard))
	}
	return ids, jobs, shards
}

func (d *planData) verdicts(n int) []any {
	list := make([]xxljob.Verdict, n)
	for i := range list {
		r := &d.started[i]
		list[i] = xxljob.Verdict{RunID: r.ID, Shard: r.Shard, Epoch: planEpoch, Owner: r.Owner, Token: r.Token, Taken: true,
			Msg: "the node is gone", NewOwner: planOther, NewToken: 1}
	}
	return settleArgs(list)
}

func (d *planData) dispatchArgs(n int, free bool) []any {
	x := dispatching{}
	for i := range n {
		r := &d.started[i]
		x.accepted = append(x.accepted, xxljob.Dispatch{RunID: r.ID, Owner: r.Owner, Token: r.Token, Msg: "accepted"})
		x.places = append(x.places, i)
	}
	args, ids := x.args()
	if !free {
		return dispatchedArgs.values(args)
	}
	args["lo"], args["hi"] = rangeOf(ids)
	return dispatchedFreeArgs.values(args)
}

func (d *planData) handoverCases() []planCase {
	q := d.sql
	in, _ := fenceArgs(d.allShards())
	lo, hi := d.openRange()
	r := &d.started[0]
	one, epoch := []int16{int16(r.Shard)}, []int64{planEpoch}
	incs, addresses := []string{planNode}, []string{xxljob.LocalAddress(planNode)}
	var inbox []int64
	for i := range 300 {
		inbox = append(inbox, idAt(d.now.Add(-time.Minute))+int64(1500+i)*6*8192+1)
	}
	ilo, ihi := rangeOf(inbox)
	var gone *string
	cases := []planCase{
		{name: "readdress", sql: q.readdress, args: []any{one, epoch, []string{}, r.ID, r.Token, "http://10.0.0.1", planNode, gone, false, "busy", planNode, "a process"},
			rows: 1, reach: reachOne, scans: smallNodes},
		{name: "dispatched 1000", sql: q.dispatched, args: d.dispatchArgs(1000, false), rows: 1000, reach: reachIDs},
		{name: "dispatched 1", sql: q.dispatched, args: d.dispatchArgs(1, false), rows: 1, reach: reachOne},
		{name: "dispatchedFree 1000", sql: q.dispatchedFree, args: d.dispatchArgs(1000, true), rows: 1000, reach: reachIDs},
		{name: "dispatchedFree 1", sql: q.dispatchedFree, args: d.dispatchArgs(1, true), rows: 1, reach: reachIDs},
		{name: "startedBy", sql: q.startedBy, args: []any{in, incs, addresses, int64(0), 1000, lo, hi}, rows: 1000, reach: reachOpen, wasted: 1000},
		{name: "startedBy none", sql: q.startedBy, args: []any{in, []string{"node-9"}, []string{"local://node-9"}, int64(0), 1000, lo, hi}, reach: reachOpen, wasted: 2500},
		{name: "inbox", sql: q.inbox, args: []any{planOther, int64(0), 1000, xxljob.LocalAddress(planOther), lo, hi}, rows: 310, reach: reachOpen},
		{name: "inbox empty", sql: q.inbox, args: []any{planNode, int64(0), 1000, xxljob.LocalAddress(planNode), lo, hi}, reach: reachOpen, wasted: 10},
		{name: "take", sql: q.take, args: []any{planOther, inbox, ilo, ihi}, rows: 300, reach: reachIDs},
		{name: "takeFree", sql: q.takeFree, args: []any{planOther, inbox, ilo, ihi}, rows: 300, reach: reachIDs},
		{name: "takeKilled", sql: q.takeKilled, args: []any{planOther, inbox, ilo, ihi}, reach: reachIDs, wasted: 300},
	}
	for _, s := range []struct {
		name, sql string
		rows      int
	}{{"settleLost", q.settleLost, 1}, {"settleAdopt", q.settleAdopt, 1}, {"settleKill", q.settleKill, 0}, {"settleCancel", q.settleCancel, 0}, {"settleBack", q.settleBack, 1}} {
		cases = append(cases,
			planCase{name: s.name + " 1000", sql: s.sql, args: d.verdicts(1000), rows: s.rows * 1000, batch: 1000, reach: reachIDs, scans: smallLock, wasted: 1000},
			planCase{name: s.name + " 1", sql: s.sql, args: d.verdicts(1), rows: s.rows, reach: reachIDs, scans: smallLock})
	}
	return cases
}

// results are of n started runs, by their addressee or by their owner.
func (d *planData) results(n int, byOwner bool) []any {
	results, places := make([]xxljob.Result, n), make([]int, n)
	for i := range n {
		r := &d.started[i]
		results[i], places[i] = xxljob.Result{RunID: r.ID, Token: r.Token, State: xxljob.StateSucceeded}, i
		if byOwner {
			results[i].Owner = r.Owner
		} else {
			results[i].Incarnation, _ = xxljob.LocalIncarnation(r.Address)
		}
	}
	return resultArgs(results, places)
}

func (d *planData) endCases() []planCase {
	q := d.sql
	ids, _, _ := d.idsOf(d.started[:1000])
	lo, hi := rangeOf(ids)
	return []planCase{
		{name: "finish 1000", sql: q.finish, args: d.results(1000, false), rows: 1000, reach: reachIDs},
		{name: "finish 1000 by owners", sql: q.finish, args: d.results(1000, true), rows: 1000, reach: reachIDs},
		{name: "finish 1", sql: q.finish, args: d.results(1, false), rows: 1, reach: reachIDs},
		{name: "finishLate 1000", sql: q.finishLate, args: []any{d.ended, make([]string, len(d.ended)), lo, hi}, reach: reachIDs, wasted: 1000, batch: 1000},
		{name: "unended 1000", sql: q.unended, args: []any{ids, lo, hi}, rows: 1000, reach: reachIDs},
		{name: "lockRuns 1000", sql: q.lockRuns, args: []any{ids, lo, hi}, rows: 1000, reach: reachIDs},
		{name: "lockRuns 1", sql: q.lockRuns, args: []any{ids[:1], lo, lo}, rows: 1, reach: reachIDs},
		{name: "killPlanned", sql: q.killPlanned, args: []any{d.planned[0].ID, "x"}, rows: 1, reach: reachOne},
		{name: "killStarted", sql: q.killStarted, args: []any{d.started[0].ID, "x"}, rows: 1, reach: reachOne},
	}
}

func (d *planData) askCases() []planCase {
	q := d.sql
	asks := []string{"xxl_job_ask"} // questions are kept for minutes: there are few
	return []planCase{
		{name: "askLog", sql: q.askLog, args: []any{planOther, d.started[0].ID, 1}, rows: 1, reach: reachOne},
		{name: "answerLog", sql: q.answerLog, args: []any{1, 10, true, "a line", nil}, rows: 1},
		{name: "logAnswer", sql: q.logAnswer, args: []any{1}, rows: 1},
		{name: "dropAsks", sql: q.dropAsks, args: []any{1000}, rows: 100, wasted: 1000, scans: asks},
	}
}

func (d *planData) triggerCases() []planCase {
	q := d.sql
	param := "p"
	t := xxljob.Trigger{Param: &param}
	id := idAt(d.now)
	return []planCase{
		{name: "addKey", sql: q.addKey, args: []any{42, "a new key"}, rows: 1},
		{name: "keyRun", sql: q.keyRun, args: []any{42, "order-42"}, reach: reachOne},
		{name: "keyID", sql: q.keyID, args: []any{42, "order-42"}, rows: 1},
		{name: "addRun", sql: q.addRun, args: triggerArguments.values(triggerArgs(42, nil, &t)), rows: 1},
		{name: "addRun with key", sql: q.addRun, args: triggerArguments.values(triggerArgs(42, &id, &t)), rows: 1},
		{name: "planRun", sql: q.planRun, args: triggerArguments.values(triggerArgs(42, nil, &t)), rows: 1},
		{name: "planRunTold", sql: q.planRunTold, args: append(triggerArguments.values(triggerArgs(42, nil, &t)), "a_channel"), rows: 1},
	}
}

func (d *planData) runCases() []planCase {
	q := d.sql
	lo, hi := rangeOf(d.ended)
	day0 := idAt(d.now.Truncate(day).Add((1 - planDays) * day))
	day1 := idAt(d.now.Truncate(day).Add((2-planDays)*day)) - 1
	return []planCase{
		{name: "runByID", sql: q.runByID, args: []any{d.ended[0]}, rows: 1, reach: reachOne},
		{name: "runsByID 1000", sql: q.runsByID, args: []any{d.ended, lo, hi}, rows: 1000, reach: reachIDs},
		{name: "runsByID 1", sql: q.runsByID, args: []any{d.ended[:1], d.ended[0], d.ended[0]}, rows: 1, reach: reachIDs},
		{name: "partitions", sql: q.partitions, rows: planDays},
		{name: "endOldJobs", sql: q.endOldJobs, args: []any{day0, day1, endBatch}, rows: 5, reach: reachOne},
		{name: "endOld", sql: q.endOld, args: []any{day0, day1, endBatch}, rows: 5, reach: reachOne},
		{name: "deleteKeys", sql: q.deleteKeys, args: []any{day0, day1, endBatch}},
		{name: "deleteRuns", sql: q.deleteRuns, args: []any{day0, day1, endBatch}, rows: endBatch, reach: reachOne, batch: 1000},
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
		{name: "shards", sql: q.shards, rows: 1, scans: smallLock},
		{name: "ensureShards", sql: q.ensureShards, args: []any{planShards}, scans: smallLock},
		{name: "setting", sql: q.setting, args: []any{modeSetting}, scans: smallGroup},
		{name: "setSetting", sql: q.setSetting, args: []any{"x", "y"}},
		{name: "clock", sql: q.clock, rows: 1},
		{name: "beat", sql: q.beat, args: []any{planNode, "node", false, "[]", pid, at, name, false, int32(1), int32(2)}, rows: 1, scans: smallNodes},
		{name: "setFailing", sql: q.setFailing, args: []any{planNode, true}, rows: 1, scans: smallNodes},
		{name: "lockNode", sql: q.lockNode, args: []any{planNode}, rows: 1, scans: smallNodes},
		{name: "leaveNode", sql: q.leaveNode, args: []any{planNode}, scans: smallNodes},
		{name: "leaveShards", sql: q.leaveShards, args: []any{planNode}, scans: smallNodes},
		{name: "buryLeft", sql: q.buryLeft, args: []any{"node-3", int64(1)}, rows: 1, scans: smallNodes},
		{name: "buryNode", sql: q.buryNode, args: []any{"node-3", int64(1), "local://node-3", lo, hi}, rows: 1, scans: smallNodes, reach: reachOpen, wasted: 3000},
		{name: "exclusive", sql: q.exclusive, rows: 1, scans: smallGroup},
		{name: "tryExclusive", sql: q.tryExclusive, rows: 1, scans: smallGroup},
		{name: "migrators", sql: q.migrators, args: []any{int64(1), int64(2), "s"}},
		{name: "strangers", sql: q.strangers, args: []any{int64(1), []int64{1, 2}}},
		{name: "shardRows", sql: q.shardRows, args: []any{ids}, rows: 32, scans: smallLock},
		{name: "lockRows", sql: q.lockRows, args: []any{ids}, rows: 32, scans: smallLock},
		{name: "takeRows", sql: q.takeRows, args: []any{planOther, ids, owners, epochs}, rows: 32, scans: smallLock},
		{name: "releaseRows", sql: q.releaseRows, args: []any{planNode, ids, epochs}, scans: smallLock},
		{name: "tryLock", sql: q.tryLock, args: []any{int32(1), ids}},
		{name: "unlock", sql: q.unlock, args: []any{int32(1), ids}},
		{name: "evict", sql: q.evict, args: []any{[]string{"node-9"}}, scans: smallNodes},
		{name: "backend", sql: q.backend, rows: 1},
		{name: "endBlockers", sql: q.endBlockers, args: []any{int64(0)}},
		{name: "notify", sql: q.notify, args: []any{"a_channel", []string{"x"}}},
	}
}

func (d *planData) groupCases() []planCase {
	q := d.sql
	return []planCase{
		{name: "saveGroup", sql: q.saveGroup, args: []any{"app-1", "", 0, []string{}}},
		{name: "ensureGroup", sql: q.ensureGroup, args: []any{"app-1"}},
		{name: "deleteGroup", sql: q.deleteGroup, args: []any{"app-1"}, rows: 1, scans: smallGroup},
		{name: "groupUsed", sql: q.groupUsed, args: []any{"app-1"}, rows: 1},
		{name: "groupUsed not", sql: q.groupUsed, args: []any{"no-app"}, rows: 1},
		{name: "group", sql: q.group, args: []any{"app-1"}, rows: 1, scans: smallGroup},
		{name: "groups", sql: q.groups, rows: 10, scans: smallGroup, wasted: 100},
	}
}

// registrations are n rows of the registry, each of another app.
func (d *planData) registrations(n int) []xxljob.Registration {
	regs := make([]xxljob.Registration, n)
	for i := range regs {
		k := i*99 + 2000
		regs[i] = xxljob.Registration{App: fmt.Sprintf("app-%d", k%100), Address: fmt.Sprintf("http://10.0.0.%d", k), BootID: "boot", Capabilities: []string{"repeat"}}
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
		{name: "putAddresses 500", sql: q.putAddresses, args: putArgs(some), rows: 500},
		{name: "putAddresses 500 new", sql: q.putAddresses, args: putArgs(fresh), rows: 500},
		{name: "putAddresses 1", sql: q.putAddresses, args: putArgs(some[:1]), rows: 1},
		{name: "putAddressesFree 500", sql: q.putAddressesFree, args: putArgs(some), rows: 500},
		{name: "putAddressesFree 1", sql: q.putAddressesFree, args: putArgs(some[:1]), rows: 1},
		{name: "dropAddresses 500", sql: q.dropAddresses, args: dropArgs(some), batch: 500},
		{name: "dropAddresses 1", sql: q.dropAddresses, args: dropArgs(some[:1])},
		{name: "dropAddressesFree 500", sql: q.dropAddressesFree, args: dropArgs(some), batch: 500},
		{name: "dropAddressesFree 1", sql: q.dropAddressesFree, args: dropArgs(some[:1])},
		{name: "addresses", sql: q.addresses, args: []any{"app-1", ages}, rows: 1000},
		{name: "addresses of no app", sql: q.addresses, args: []any{"no-app", hour}},
		{name: "registrations", sql: q.registrations, args: []any{"", "", 100}, rows: 100},
		{name: "registrations after", sql: q.registrations, args: []any{"app-50", "http://10.0.0.5", 100}, rows: 100},
		{name: "registrationsOf", sql: q.registrationsOf, args: []any{"", "", 100, "app-50"}, rows: 100},
		{name: "registrationsOf after", sql: q.registrationsOf, args: []any{"app-50", "http://10.0.0.5", 100, "app-50"}, rows: 100},
		{name: "forgetAddresses", sql: q.forgetAddresses, args: []any{hour}, wide: true, scans: registry},
	}
}

func (d *planData) listCases() []planCase {
	jobs := func(name string, rows int, f xxljob.JobFilter) planCase {
		q := d.jobsQuery(f)
		return planCase{name: "Jobs " + name, sql: q.sql, args: q.args, rows: rows}
	}
	runs := func(name string, rows int, f xxljob.RunFilter) planCase {
		q := d.runsQuery(f)
		var scans []string
		if f.JobID != 0 { // the number of shards says which one is the job's
			scans = smallLock
		}
		return planCase{name: "Runs " + name, sql: q.sql, args: q.args, rows: rows, reach: reachAll, scans: scans}
	}
	wide := func(c planCase) planCase { c.wide = true; return c }
	backlog := func(c planCase) planCase { c.scans, c.wide = manyOpen, true; return c }
	wasting := func(n int, c planCase) planCase { c.wasted = n; return c }
	bad := []xxljob.State{xxljob.StateFailed, xxljob.StateLost}
	good := []xxljob.State{xxljob.StateSucceeded}
	open := []xxljob.State{xxljob.StateStarted, xxljob.StateDispatched}
	planned := []xxljob.State{xxljob.StatePlanned}
	job := d.started[0].JobID
	middle := idAt(d.now.Add(-15 * day))
	return []planCase{
		jobs("all", 100, xxljob.JobFilter{}),
		jobs("by keys", 1000, xxljob.JobFilter{App: "app-2", Keys: d.keys(1000), Limit: 1000}),
		jobs("after", 100, xxljob.JobFilter{After: 50_000}),
		wasting(3000, jobs("of app", 100, xxljob.JobFilter{App: "app-1"})),
		wasting(3000, jobs("of app after", 100, xxljob.JobFilter{App: "app-1", After: 50_000})),
		jobs("of app and key", 1, xxljob.JobFilter{App: "app-2", Key: "key-42"}),
		jobs("of key", 1, xxljob.JobFilter{Key: "key-42"}),
		jobs("of handler", 100, xxljob.JobFilter{Handler: "handler-7"}),
		wasting(6000, jobs("of author", 100, xxljob.JobFilter{Author: "author-7"})),
		wide(jobs("by name", 1, xxljob.JobFilter{Name: "Job 4242"})),
		jobs("enabled", 100, xxljob.JobFilter{Enabled: true}),
		wasting(8000, jobs("stopped", 100, xxljob.JobFilter{Stopped: true})),
		wasting(15000, jobs("stopped of app", 100, xxljob.JobFilter{Stopped: true, App: "app-5"})),
		jobs("by ids", 100, xxljob.JobFilter{IDs: jobIDs(100, 1)}),
		runs("all", 100, xxljob.RunFilter{}),
		runs("before", 100, xxljob.RunFilter{Before: middle}),
		runs("of app", 100, xxljob.RunFilter{App: "app-1"}),
		runs("of job", 10, xxljob.RunFilter{JobID: job}),
		runs("of job before", 5, xxljob.RunFilter{JobID: job, Before: middle}),
		runs("of job page", 10, xxljob.RunFilter{JobID: job, Limit: 10}),
		runs("of job and state", 10, xxljob.RunFilter{JobID: job, States: good}),
		runs("of job and bad", 0, xxljob.RunFilter{JobID: job, States: bad}),
		runs("of job in time", 1, xxljob.RunFilter{JobID: job, From: d.now.Add(-10 * day), To: d.now}),
		runs("of trigger", 1, xxljob.RunFilter{TriggerID: d.ended[0]}),
		runs("of trigger and job", 1, xxljob.RunFilter{TriggerID: d.started[0].ID, JobID: job}),
		runs("bad", 100, xxljob.RunFilter{States: bad}),
		runs("bad before", 100, xxljob.RunFilter{States: bad, Before: middle}),
		wasting(3000, runs("bad of app", 100, xxljob.RunFilter{States: bad, App: "app-1"})),
		wide(runs("succeeded", 100, xxljob.RunFilter{States: good})),
		backlog(runs("planned, none of app", 0, xxljob.RunFilter{States: planned, App: "no-app"})),
		wasting(12500, runs("started", 100, xxljob.RunFilter{States: open})),
		backlog(runs("planned", 100, xxljob.RunFilter{States: planned})),
		wide(runs("skipped", 100, xxljob.RunFilter{States: []xxljob.State{xxljob.StateSkipped}})),
		wide(runs("in time", 100, xxljob.RunFilter{From: d.now.Add(-10 * day), To: d.now.Add(-9 * day)})),
		wide(runs("in time of app", 100, xxljob.RunFilter{From: d.now.Add(-10 * day), To: d.now.Add(-9 * day), App: "app-1"})),
		wide(runs("in time bad", 100, xxljob.RunFilter{From: d.now.Add(-10 * day), To: d.now.Add(-9 * day), States: bad})),
	}
}
