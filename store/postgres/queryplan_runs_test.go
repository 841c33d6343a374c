package postgres

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
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
	st     statement
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
		d.endCases(), d.askCases(), d.logPageCases(), d.triggerCases(), d.aheadCases(), d.owedCases(), d.runCases(), d.searchCases(), d.reportCases(), d.recordCases(), d.dropCases(), d.nodeCases(), d.groupCases(), d.registryCases(), d.listCases(), d.accountCases()} {
		list = append(list, part...)
	}
	return list
}

func (d *planData) allShards() []store.Shard {
	shards := make([]store.Shard, planShards)
	for i := range shards {
		shards[i] = store.Shard{ID: i, Owner: planNode, Epoch: planEpoch}
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

func (d *planData) job(id int64) *store.Job {
	return &store.Job{ID: id, Shard: int(id % planShards), Version: 1, App: "app", Key: "a key", Schedule: schedule.Cron("0 0 * * * ?"), Added: d.now, Updated: d.now}
}

func (d *planData) jobCases() []planCase {
	q := d.sql
	fresh := d.job(planJobs + 1)
	old := d.job(42)
	return []planCase{
		{name: "now", st: q.now.with()},
		{name: "newJobID", st: q.newJobID.with()},
		{name: "insertJob", st: q.insertJob.by(infoColumns.of(fresh))},
		{name: "insertNext", st: q.insertNext.by(nextColumns.of(fresh))},
		{name: "updateJob", st: q.updateJob.by(infoColumns.of(old))},
		{name: "updateNext", st: q.updateNext.by(nextColumns.of(old))},
		{name: "deleteJob", st: q.deleteJob.with(42)},
		{name: "deleteNext", st: q.deleteNext.with(42)},
		{name: "lockNext", st: q.lockNext.with(42), rows: 1},
		{name: "lockWhole", st: q.lockWhole.with(42), rows: 1},
		{name: "lockJob", st: q.lockJob.with(42), rows: 1},
		{name: "jobByID", st: q.jobByID.with(42), rows: 1},
		{name: "jobByKey", st: q.jobByKey.with("app-2", "key-42"), rows: 1},
		{name: "definitions 1000", st: q.definitions.with(jobIDs(1000, 91)), rows: 1000},
		{name: "countAfter", st: q.countAfter.with(42, 1)},
		{name: "definitions 1", st: q.definitions.with(jobIDs(1, 91)), rows: 1},
		{name: "startedFor", st: q.startedFor.with(d.started[0].JobID, d.started[0].Shard), rows: 1, reach: reachAll, wasted: 20, batch: 20},
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
	keys, fresh, ids := d.keys(1000), make([]store.Job, 1000), make([]int64, 1000)
	for i := range keys {
		fresh[i] = *d.job(int64(planJobs + 1 + i))
		fresh[i].Key = keys[i]
		ids[i] = fresh[i].ID
	}
	small := []string{"xxl_job_list_head", "xxl_job_list", "xxl_job_node"}
	return []planCase{
		{name: "head", st: q.head.with("app-2"), rows: 1, scans: small},
		{name: "insertHead", st: q.insertHead.by(named{{"app", "app-2"}, {"generation", 1}, {"digest", "digest"}, {"node", "node-1"}})},
		{name: "lockHead", st: q.lockHead.with("app-2"), rows: 1, scans: small},
		{name: "shareHead", st: q.shareHead.with("app-2"), rows: 1, scans: small},
		{name: "setHead", st: q.setHead.by(named{{"app", "app-2"}, {"generation", 2}, {"digest", "digest"}, {"node", "node-1"}}), scans: small},
		{name: "putNodeList", st: q.putNodeList.by(named{
			{"app", "app-2"}, {"incarnation", "node-1"}, {"generation", 2}, {"prune", true}, {"digest", "another"},
			{"keys", keys},
		}), scans: small},
		{name: "dropLists", st: q.dropLists.with("node-9"), scans: small},
		{name: "otherLists", st: q.otherLists.by(named{
			{"app", "app-2"}, {"incarnation", "node-1"}, {"generation", 0}, {"head_generation", 1},
			{"head_digest", "digest"},
		}), rows: 1, scans: small},
		{name: "nodeLists", st: q.nodeLists.by(named{{"app", "app-2"}}), rows: 3, scans: small},
		{name: "surplus", st: q.surplus.by(named{{"app", "app-2"}, {"incarnation", "node-1"}}), rows: 100, wide: true, scans: append(small, "xxl_job_info", "xxl_job_named")},
		{name: "isSurplus", st: q.isSurplus.by(named{
			{"app", "app-2"}, {"incarnation", "node-1"}, {"job", 1002}, {"generation", 1}, {"digest", "digest"},
		}), rows: 1, scans: small, wasted: 60},
		{name: "nameJobs", st: q.nameJobs.by(named{{"app", "app-2"}, {"keys", keys}, {"generation", 1}}), batch: 1000, wasted: 1000},
		{name: "nameJobs anew", st: q.nameJobs.by(named{{"app", "app-2"}, {"keys", keys}, {"generation", 2}}), batch: 1000},
		{name: "isNamed", st: q.isNamed.with("app-2", "key-42"), rows: 1},
		{name: "jobsByKeys 1000", st: q.jobsByKeys.by(named{{"app", "app-2"}, {"keys", keys}}), rows: 1000},
		{name: "takenKeys 1000", st: q.takenKeys.by(named{{"app", "app-2"}, {"keys", keys}}), rows: 1000},
		{name: "newJobIDs", st: q.newJobIDs.with(1000), rows: 1000},
		{name: "insertJobs", st: q.insertJobs.by(infoColumns.ofAll(fresh)), rows: 1000},
		{name: "insertNexts", st: q.insertNexts.by(nextColumns.ofAll(fresh)), batch: 1000},
		{name: "insertNamed", st: q.insertNamed.with(ids, 1), batch: 1000},
		{name: "deleteNamed", st: q.deleteNamed.with(42)},
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
		{name: "cancelPlanned", st: q.cancelPlanned.by(named{
			{"job", d.planned[1].JobID}, {"reason", "stop"}, {"retries", true}, {"all", false}, {"lo", lo}, {"hi", hi},
		}), rows: 1, reach: reachOpen},
		{name: "idleJobs 1000", st: q.idleJobs.with(jobIDs(1000, 97)), rows: 1000},
		{name: "idleJobs 1000 none", st: q.idleJobs.with(jobIDs(1000, 11)), batch: 1000},
		{name: "idleJobs 1", st: q.idleJobs.with(jobIDs(1, 97)), rows: 1},
		{name: "lockIdle", st: q.lockIdle.with(waiting), rows: 100},
		{name: "lockIdleFree", st: q.lockIdleFree.with(waiting), rows: 100},
		{name: "waitOn", st: q.waitOn.by(named{{"jobs", waiting}, {"runs", ids}, {"next", ends}}), batch: 100},
		{name: "rearm", st: q.rearm.by(named{{"jobs", waiting}, {"runs", ids}, {"ends", ends}}), rows: 100},
		{name: "rearm 1000", st: q.rearm.by(named{{"jobs", jobIDs(1000, 97)}, {"runs", ids}, {"ends", ends}}), rows: 1000},
		{name: "finishNext", st: q.finishNext.by(named{{"jobs", waiting}, {"lo", lo}, {"hi", hi}}), reach: reachOpen, batch: 100, wasted: 100},
		{name: "finishNext finished", st: q.finishNext.by(named{{"jobs", []int64{99, 10099, 20099}}, {"lo", lo}, {"hi", hi}}), rows: 3, reach: reachOpen},
		{name: "finishJob", st: q.finishJob.by(named{{"jobs", waiting}, {"reason", "finished"}, {"now", d.now}}), batch: 200},
		{name: "uncount", st: q.uncount.by(named{{"jobs", jobIDs(100, 95)}, {"runs", ids[:100]}, {"settled", true}}), batch: 100, wasted: 10_000},
		{name: "sweepIdle", st: q.sweepIdle.by(named{{"shards", shards}, {"epochs", epochs}, {"lo", int64(0)}, {"hi", int64(math.MaxInt32)}}), scans: smallLock, rows: 1000},
		{name: "sweepRearm", st: q.sweepRearm.with(waiting), rows: 100, reach: reachAll},
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
		{name: "scanJobs", st: q.scanJobs.by(named{{"shards", shards}, {"from", int64(0)}, {"to", now}, {"limit", 1000}}), rows: 1000},
		{name: "scanJobs late", st: q.scanJobs.by(named{{"shards", shards}, {"from", now - 500}, {"to", now}, {"limit", 1000}}), rows: 1000},
		{name: "scanJobs none", st: q.scanJobs.by(named{{"shards", shards}, {"from", now + 1}, {"to", now + 50}, {"limit", 1000}}), kept: true},
		{name: "scanJobs one shard", st: q.scanJobs.by(named{{"shards", shards[:1]}, {"from", now - 500}, {"to", now}, {"limit", 1000}}), rows: 10, wasted: 2500},
		{name: "scanRuns", st: q.scanRuns.by(named{{"shards", shards}, {"before", now}, {"limit", 1000}, {"lo", lo}, {"hi", hi}}), rows: 500, reach: reachOpen},
		{name: "scanRuns none", st: q.scanRuns.by(named{{"shards", shards}, {"before", now - 3600_000}, {"limit", 1000}, {"lo", lo}, {"hi", hi}}), reach: reachOpen},
		{name: "next", st: q.next.by(named{{"shards", shards}, {"after", now}, {"lo", lo}, {"hi", hi}}), rows: 2, batch: 50, reach: reachOpen},
		{name: "stamp", st: q.stamp.by(named{
			{"shards", shards}, {"epochs", epochs}, {"runs", foreign}, {"lo", flo}, {"hi", fhi},
		}), rows: 500, reach: reachIDs, scans: smallLock},
		{name: "backlog", st: q.backlog.by(named{{"shards", shards}, {"from", int64(0)}, {"to", now}, {"lo", lo}, {"hi", hi}}), rows: 5000, reach: reachOpen, wasted: 1000},
		{name: "planned", st: q.planned.by(named{
			{"shards", shards}, {"before", now}, {"after", int64(0)}, {"after_run", int64(0)}, {"limit", 1000},
			{"lo", lo}, {"hi", hi}, {"app", ""},
		}), rows: 1000, reach: reachOpen},
		{name: "planned page 6", st: q.planned.by(named{
			{"shards", shards}, {"before", now}, {"after", now - 25_000}, {"after_run", d.planned[4500].ID},
			{"limit", 1000}, {"lo", lo}, {"hi", hi}, {"app", ""},
		}), rows: 1000, reach: reachOpen},
		{name: "planned of app", st: q.planned.by(named{
			{"shards", shards}, {"before", now}, {"after", int64(0)}, {"after_run", int64(0)}, {"limit", 1000},
			{"lo", lo}, {"hi", hi}, {"app", "app-1"},
		}), rows: 1000, reach: reachOpen},
		{name: "openFloor", st: q.openFloor.with(lo), rows: 1, reach: reachAll},
		{name: "redateRuns", st: q.redateRuns.by(named{
			{"shards", shards}, {"epochs", epochs}, {"now", now}, {"least", now + 60_000}, {"after", hi}, {"most", int64(maxRunID)}, {"limit", 1000}, {"aside", []int64{1}},
		}), scans: smallLock, reach: reachAll},
		{name: "misdated", st: q.misdated.by(named{
			{"shards", shards}, {"least", now + 60_000}, {"after", hi}, {"most", int64(maxRunID)}, {"limit", 1000}, {"aside", []int64{1}},
		}), reach: reachAll},
		{name: "openCeiling", st: q.openCeiling.with(hi), rows: 1, reach: reachAll},
		{name: "insertRecord", st: q.insertRecord.by(named{
			{"job_id", int64(1)}, {"shard", 1}, {"app_name", "app-1"}, {"trigger_type", "CRON"}, {"state", int16(10)},
			{"scheduled_time", d.now.UnixMilli()}, {"first_time", nil}, {"last_time", nil}, {"instants", nil},
			{"reason", nil},
		})},
		{name: "fits", st: q.fits.by(named{{"database", d.fitness.database}, {"lock", d.schema + ".xxl_job_lock"}, {"server", int64(0)}, {"age", int64(0)}}), rows: 1},
		{name: "look", st: q.look.with("pg_catalog", "pg_class"), rows: 1},
		{name: "nodeLock", st: q.nodeLock.with(int32(1), "a"), rows: 1},
		{name: "startedJobs", st: q.startedJobs.by(named{{"shards", shards}, {"lo", lo}, {"hi", hi}}), rows: 2000, reach: reachOpen, wide: true},
		{name: "startedLeast", st: q.startedLeast.with(lo, hi), rows: 1, reach: reachOpen, wide: true}, // reads all started runs
		{name: "waitingLeast", st: q.waitingLeast.with(lo, hi), rows: 1, reach: reachOpen},
	}
}

// claims plans the next run of n due jobs.
func (d *planData) claims(n int) []store.Plan {
	plans := make([]store.Plan, n)
	for i := range plans {
		id := int64(i*100 + 91)
		due := time.UnixMilli(d.now.UnixMilli() - id%2000)
		plans[i] = store.Plan{JobID: id, Shard: int(id % planShards), Epoch: planEpoch, Version: 1, Due: due, Next: d.now.Add(time.Second),
			Runs: []store.NewRun{{At: due, Type: store.TriggerCron}}}
	}
	return plans
}

func (d *planData) claimCases() []planCase {
	q := d.sql
	return []planCase{
		{name: "claim 1000", st: q.claim.by(claimArgs(d.claims(1000))), rows: 1000, scans: smallLock, reach: reachNone},
		{name: "claim 1", st: q.claim.by(claimArgs(d.claims(1))), rows: 1, scans: smallLock},
		{name: "claimFree 1000", st: q.claimFree.by(claimArgs(d.claims(1000))), rows: 1000, scans: smallLock},
		{name: "claimFree 1", st: q.claimFree.by(claimArgs(d.claims(1))), rows: 1, scans: smallLock},
		{name: "claimAll 1000", st: q.claimAll.by(claimArgs(d.claims(1000))), rows: 2000, scans: smallLock, reach: reachNone},
		{name: "claimAll 1", st: q.claimAll.by(claimArgs(d.claims(1))), rows: 2, scans: smallLock},
		{name: "claimAllFree 1000", st: q.claimAllFree.by(claimArgs(d.claims(1000))), rows: 2000, scans: smallLock},
		{name: "claimAllFree 1", st: q.claimAllFree.by(claimArgs(d.claims(1))), rows: 2, scans: smallLock},
		{name: "stopNext", st: q.stopNext.with(42)},
		{name: "stopJob", st: q.stopJob.with(42, "finished")},
		{name: "waitNext", st: q.waitNext.with(42, int64(1))},
	}
}

// starts are of n planned runs, at their owner or, serially, at another node.
func (d *planData) starts(n int, serial bool) named {
	address := store.LocalAddress(planNode)
	if serial {
		address = store.LocalAddress(planOther)
	}
	return d.startsAt(n, address, "", serial)
}

func (d *planData) startsAt(n int, address, boot string, serial bool) named {
	starts, g := d.startsOf(n, address, boot, serial)
	return d.startArgs(starts, g, d.countStarts(starts, g))
}

func (d *planData) startsOf(n int, address, boot string, serial bool) (starts []store.Start, g startGroup) {
	starts = make([]store.Start, n)
	for i := range starts {
		r := &d.planned[i]
		starts[i] = store.Start{RunID: r.ID, JobID: r.JobID, Shard: r.Shard, Epoch: planEpoch, JobVersion: 1, State: store.StateStarted,
			Owner: planNode, Token: int64(i + 1), Address: address, BootID: boot, Serial: serial, Handler: "handler", Block: "SERIAL_EXECUTION"}
		g.places = append(g.places, i)
	}
	return starts, g
}

// startsOwn are of n planned runs at their owner, which wait for retries where it says so.
func (d *planData) startsOwn(n int, wait bool) named {
	starts, g := d.startsOf(n, store.LocalAddress(planNode), "", false)
	for i := range starts {
		r := &d.planned[i]
		starts[i].AfterRetries, starts[i].Instant, starts[i].TriggerID, starts[i].Known = wait, r.Instant(), r.ID, r
	}
	lo, hi := d.waitRange(starts, g)
	return d.startOwnArgs(starts, g, lo, hi)
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
		{name: "start 1000", st: q.start.by(d.starts(1000, false)), rows: 1000, reach: reachIDs, scans: smallNodes},
		{name: "start 1", st: q.start.by(d.starts(1, false)), rows: 1, reach: reachIDs, scans: smallNodes},
		{name: "start 1000 serial", st: q.start.by(d.starts(1000, true)), rows: 1000, reach: reachOpen, scans: smallNodes},
		{name: "start 1 serial", st: q.start.by(d.starts(1, true)), rows: 1, reach: reachOpen, scans: smallNodes},
		{name: "start 1000 remote", st: q.start.by(d.startsAt(1000, "http://10.0.0.1", "a process", false)), rows: 1000, reach: reachIDs, scans: smallNodes},
		{name: "startFree 1000", st: q.startFree.by(d.starts(1000, false)), rows: 1000, reach: reachIDs, scans: smallNodes},
		{name: "startFree 1000 serial", st: q.startFree.by(d.starts(1000, true)), rows: 1000, reach: reachOpen, scans: smallNodes},
		{name: "startFree 1", st: q.startFree.by(d.starts(1, false)), rows: 1, reach: reachIDs, scans: smallNodes},
		{name: "insertSiblings", st: q.insertSiblings.by(named{
			{"run", r.ID}, {"shardings", []string{"1/3", "2/3"}},
			{"addresses", []string{"local://node-1", "local://node-2"}}, {"owners", []*string{nil, nil}},
			{"inboxes", []*string{nil, local(planOther)}}, {"taken", []bool{true, false}},
			{"boots", []*string{nil, local("a process")}},
		}), rows: 2, reach: reachOne},
		{name: "coverRuns", st: q.coverRuns.by(named{{"runs", ids[:1]}, {"job", jobs[0]}, {"lo", ids[0]}, {"hi", ids[0]}, {"message", "covered"}}), rows: 1, reach: reachIDs},
		{name: "whyFence", st: q.whyFence.with(shards), rows: 32, scans: smallLock},
		{name: "rowHolders", st: q.rowHolders.by(named{{"shards", shards}, {"jobs", jobs[:100]}, {"runs", ids[:100]}, {"lo", slo}, {"hi", shi}}), batch: 332, reach: reachIDs, scans: smallLock},
		{name: "whyRun 1000", st: q.whyRun.by(named{{"runs", ids}, {"lo", slo}, {"hi", shi}}), rows: 1000, reach: reachIDs},
		{name: "whyJob 1000", st: q.whyJob.with(jobs), rows: 1000},
		{name: "whyNode", st: q.whyNode.with(nodes), rows: 1, scans: smallNodes},
		{name: "whyRetry 1000", st: q.whyRetry.by(named{{"runs", ids}, {"jobs", jobs}, {"instants", ids}, {"triggers", ids}, {"lo", lo}, {"hi", hi}}), reach: reachOpen, batch: 1000},
		{name: "whyRetry 1", st: q.whyRetry.by(named{{"runs", ids[:1]}, {"jobs", jobs[:1]}, {"instants", ids[:1]}, {"triggers", ids[:1]}, {"lo", lo}, {"hi", hi}}), reach: reachOpen},
		{name: "whyBusy 1000", st: q.whyBusy.by(named{{"shards", in}, {"jobs", jobs}, {"lo", lo}, {"hi", hi}}), reach: reachOpen},
		{name: "whyBusy 1", st: q.whyBusy.by(named{{"shards", in[:1]}, {"jobs", jobs[:1]}, {"lo", lo}, {"hi", hi}}), reach: reachOpen},
		// These are last, since each leaves dead rows behind that whyBusy would have to pass by.
		{name: "startBrief 1000", st: q.startBrief.by(d.starts(1000, false)), rows: 1000, reach: reachIDs, scans: smallNodes},
		{name: "startBrief 1", st: q.startBrief.by(d.starts(1, false)), rows: 1, reach: reachIDs, scans: smallNodes},
		{name: "startBriefFree 1000", st: q.startBriefFree.by(d.starts(1000, false)), rows: 1000, reach: reachIDs, scans: smallNodes},
		{name: "startOwn 1000", st: q.startOwn.by(d.startsOwn(1000, false)), rows: 1000, reach: reachIDs, scans: smallLock},
		{name: "startOwn 1000 that wait", st: q.startOwn.by(d.startsOwn(1000, true)), rows: 1000, reach: reachOpen, scans: smallLock, kept: true},
		{name: "startOwn 1 that waits", st: q.startOwn.by(d.startsOwn(1, true)), rows: 1, reach: reachOpen, scans: smallLock},
		{name: "startOwnFree 1000", st: q.startOwnFree.by(d.startsOwn(1000, false)), rows: 1000, reach: reachIDs, scans: smallLock},
		{name: "startOwnFree 1", st: q.startOwnFree.by(d.startsOwn(1, true)), rows: 1, reach: reachOpen, scans: smallLock},
	}
}

func (d *planData) idsOf(runs []store.Run) (ids, jobs []int64, shards []int16) {
	for i := range runs {
		ids, jobs, shards = append(ids, runs[i].ID), append(jobs, runs[i].JobID), append(shards, int16(runs[i].Shard))
	}
	return ids, jobs, shards
}

// planAhead is how many runs are kept apart: as many are due to move, and were cancelled,
// in the last minute as a statement takes at once, twice.
const planAhead = 100_000

// fillAhead makes them, over the next year: one in ten of a job that has many, and one in a
// thousand of app-1.
func (d *planData) fillAhead(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_ahead (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, handle_time, executor_fail_retry_count, move_time)
	select $1::bigint + n * case when n <= 2000 then 1000 else 300000 end * 8192 + 7680, job, job % 32, 'app-' || job % 10, case when n between 2001 and 4000 then 11 else 0 end, 'MANUAL', ms + 86400000, now(),
		case when n between 2001 and 4000 then now() - interval '40 days' end, -1, ms
	from (select n, case when n % 10 = 0 then 42 when n % 1000 = 1 then n else n - n % 10 + 3 + n % 7 end job, $2::bigint + case when n <= 2000 then -n else n * 300000 end ms from generate_series(1, $3::bigint) n) a`,
		d.aheadID(0), d.now.UnixMilli(), planAhead)
}

// aheadID is the id of an entry.
func (d *planData) aheadID(n int64) int64 { return idAt(d.now.Truncate(day)) + n*300_000<<idBits }

func (d *planData) aheadCases() []planCase {
	q := d.sql
	shards, epochs := fenceArgs(d.allShards())
	now := milli(d.now)
	t := store.Trigger{At: d.now.AddDate(1, 0, 0)}
	id, hour := d.aheadID(planAhead+1)+7680, d.aheadID(planAhead+1)
	move := func(name string, before int64, limit, rows int) planCase {
		return planCase{name: "moveAhead " + name, st: q.moveAhead.by(named{
			{"shards", shards}, {"epochs", epochs}, {"before", before}, {"limit", limit}, {"oldest", int64(0)}, {"aside", []int64{}},
		}), rows: rows, batch: 2 * rows, scans: smallLock, reach: reachOne}
	}
	ids := make([]int64, 1000)
	for i := range ids {
		ids[i] = d.aheadID(int64(5000+i)) + 7680
	}
	many := named{{"job", 42}, {"reason", "remove"}, {"after", int64(0)}, {"limit", manyAhead}}
	add := aheadArgs(42, nil, &t, t.At.Add(-day), hour)
	return []planCase{
		{name: "addAheadKey", st: q.addAheadKey.by(named{{"job", 42}, {"key", "a new key"}, {"hour", hour}}), rows: 1},
		{name: "addAhead", st: q.addAhead.by(add), rows: 1},
		{name: "addAhead with key", st: q.addAhead.by(aheadArgs(42, &id, &t, t.At.Add(-day), hour)), rows: 1},
		{name: "planAhead", st: q.planAhead.by(add), rows: 1},
		{name: "nextAhead", st: q.nextAhead.with(shards), rows: 1},
		{name: "nextAhead one shard", st: q.nextAhead.with(shards[:1]), rows: 1},
		{name: "dueAhead", st: q.dueAhead.by(named{{"shards", shards}, {"before", now}, {"limit", 1000}, {"oldest", int64(0)}, {"aside", []int64{}}}), rows: 1000},
		move("1000", now, 1000, 1000),
		move("1", now, 1, 1),
		move("none", now-time.Hour.Milliseconds(), 1000, 0),
		{name: "aheadByID", st: q.aheadByID.with(ids[0]), rows: 1},
		{name: "aheadAsItIs", st: q.aheadAsItIs.with(ids[0]), rows: 1},
		{name: "aheadByIDs 1000", st: q.aheadByIDs.by(named{{"runs", ids}, {"texts", allTexts}}), rows: 1000},
		{name: "aheadByIDs 1", st: q.aheadByIDs.by(named{{"runs", ids[:1]}, {"texts", 0}}), rows: 1},
		{name: "keyAhead", st: q.keyAhead.with(42, "order-42")},
		{name: "killAhead", st: q.killAhead.with(ids[0], "x"), rows: 1},
		{name: "cancelAhead", st: q.cancelAhead.with(10_001, "remove"), rows: 1},
		{name: "cancelAhead many", st: q.cancelAhead.with(42, "remove"), rows: 9000, wasted: 300},
		{name: "countAhead", st: q.countAhead.with(42, fewAhead+1), rows: 1, batch: 1500, wasted: 300},
		{name: "countAhead none", st: q.countAhead.with(planJobs, fewAhead+1), rows: 1},
		{name: "cancelCounted", st: q.cancelCounted.by(append(many, named{{"slot", 1}, {"spare", 100}}...)), rows: 1, batch: 5 * manyAhead, wasted: 300},
		{name: "cancelUncounted", st: q.cancelUncounted.by(many), rows: 1, batch: 3 * manyAhead, wasted: 300},
		{name: "dropCancelled", st: q.dropCancelled.with(d.now.AddDate(0, 0, -30), endBatch), rows: endBatch, batch: 2 * endBatch},
		{name: "dropCancelled none", st: q.dropCancelled.with(d.now.AddDate(0, 0, -50), endBatch)},
	}
}

// dropCases are deletions of ended runs: a thousand of a day, of a job, and of jobs that keep
// theirs for a day.
func (d *planData) dropCases() []planCase {
	q := d.sql
	var none *time.Time
	var apps []string
	ended := d.now.Add(-10 * time.Minute)
	any := func(after, below int64, limit int, apps []string) named {
		return named{{"after", after}, {"below", below}, {"limit", limit}, {"ended", &ended}, {"apps", apps}}
	}
	of := func(job int64, limit int) named {
		return named{{"after", int64(0)}, {"below", int64(maxRunID)}, {"limit", limit}, {"ended", none}, {"apps", apps}, {"job", job}}
	}
	middle := d.now.Truncate(day).Add(-15 * day)
	old := d.idsOfDay(middle, 1000)
	pagesOf := func(q query, runs []int64, limit int) statement {
		lo, hi := rangeOf(runs)
		args := named{{"runs", runs}, {"lo", lo}, {"hi", hi}}
		if limit > 0 {
			args = append(args, named{{"limit", limit}}...)
		}
		return q.by(args)
	}
	days := slices.Repeat([]int32{int32(d.loggedDay().Sub(idTime(0)) / day)}, 100)
	return []planCase{
		{name: "anyEnded", st: q.anyEnded.by(any(0, maxRunID, 1000, apps)), rows: 1000, reach: reachAll, wasted: 100},
		{name: "anyEnded from before", st: q.anyEnded.by(any(idAt(middle), idAt(middle.Add(day)), 1000, apps)), rows: 1000, reach: reachAll, wasted: 100},
		{name: "anyEnded of a rare app", st: q.anyEnded.by(any(idAt(middle), maxRunID, 1000, []string{"nowhere"})), rows: 1000, reach: reachAll, wasted: 100},
		{name: "endedOfJob", st: q.endedOfJob.by(of(d.started[0].JobID, 1000)), rows: 5, reach: reachAll, wasted: 100},
		{name: "oldestKept", st: q.oldestKept.by(named{{"job", d.started[0].JobID}, {"behind", 4}}), rows: 1, batch: 10, reach: reachAll, wasted: 100},
		{name: "oldestKept of fewer", st: q.oldestKept.by(named{{"job", d.started[0].JobID}, {"behind", 99_999}}), batch: 100, reach: reachAll, wasted: 100},
		{name: "keepers", st: q.keepers.by(named{{"after", int64(50_000)}, {"limit", dropJobs + 1}}), rows: dropJobs, wasted: 100},
		// Each run is looked for in seven tables, in an index of each.
		{name: "droppable 1000", st: q.droppable.by(d.dropArgs(old)), rows: 900, batch: 3000, reach: reachAll, wasted: 2000},
		{name: "dropEnded 1000", st: q.dropEnded.by(d.dropArgs(old)), rows: 900, batch: 4000, reach: reachAll, wasted: 2000},
		{name: "dropEnded 1", st: q.dropEnded.by(d.dropArgs(old[:1])), rows: 1, reach: reachAll, wasted: 100},
		{name: "dropEnded of the last hour", st: q.dropEnded.by(d.dropArgs(d.ended)), rows: 500, batch: 4000, reach: reachAll, wasted: 4000},
		{name: "lockDroppable", st: q.lockDroppable.by(d.dropArgs(old[:1])), rows: 1, reach: reachAll, wasted: 100},
		{name: "countPages 1000", st: pagesOf(q.countPages, d.logged[:1000], 1001), rows: 1, reach: reachAll, batch: 1100},
		{name: "countPages none", st: pagesOf(q.countPages, d.logged[loggedRuns:loggedRuns+1000], 1001), rows: 1, reach: reachAll, batch: 1000},
		{name: "dropPagesOf", st: pagesOf(q.dropPagesOf, d.logged[:50], 0), rows: 50, batch: 3000, reach: reachAll},
		{name: "dropSomePages", st: q.dropSomePages.by(named{{"run", d.logged[0]}, {"limit", 10}}), rows: 1, batch: 30, reach: reachOne},
		{name: "lessUse 100", st: q.lessUse.by(named{{"days", days}, {"jobs", jobIDs(100, 1)}, {"bytes", jobIDs(100, 1)}}), batch: 300},
		{name: "dropKeys", st: q.dropKeys.with(old), batch: 1000},
		{name: "dayNeeded", st: q.dayNeeded.by(named{{"lo", idAt(middle)}, {"hi", idAt(middle.Add(day)) - 1}, {"open_lo", idAt(d.now.Add(-2 * time.Hour))}, {"open_hi", idAt(d.now.Add(2 * time.Hour))}}),
			rows: 1, reach: reachOpen, wasted: 40_000, batch: 10_000},
	}
}

// idsOfDay are the ids of the first ended runs of a day, as fillPartitions makes them.
func (d *planData) idsOfDay(from time.Time, n int) (ids []int64) {
	lo, hi := idAt(from), idAt(from.Add(day))
	for i := range int64(n) {
		ids = append(ids, lo+i*((hi-lo)/(planRuns/planDays)))
	}
	return ids
}

// loggedRuns is how many runs of one day have pages, loggedPages how many each has.
const (
	loggedRuns  = 3_000
	loggedPages = 20
)

// loggedDay is the day of these runs. Nothing is in the partitions of other days, which
// autovacuum does not look at then.
func (d *planData) loggedDay() time.Time { return d.now.Truncate(day).Add(-2 * day) }

// fillLogs gives runs of one day pages.
func (d *planData) fillLogs(t testing.TB) {
	t.Helper()
	if err := d.ensurePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	from := d.loggedDay()
	rows, err := d.pool.Query(t.Context(), "select id from "+d.partition(from)+" where state > 2 order by id limit $1", 2*loggedRuns)
	if err != nil {
		t.Fatal(err)
	}
	if d.logged, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		t.Fatal(err)
	}
	d.exec(t, `insert into {{schema}}.xxl_job_log_page (run_id, first_line, last_line, size, content)
	select id, n * 10 + 1, n * 10 + 10, 600, decode(repeat('00ff', 100), 'hex') from unnest($1::bigint[]) id, generate_series(0, $2::int - 1) n`, d.logged[:loggedRuns], loggedPages)
	d.exec(t, `insert into {{schema}}.xxl_job_log_use (day, job_id, bytes) select $1 - d, n, 1000 from generate_series(1, 10000) n, generate_series(0, 9) d`,
		int(from.Sub(idTime(0))/(24*time.Hour)))
}

// pagesFor is a page of each of the runs.
func pagesFor(runs []int64, line int) []store.LogPage {
	pages := make([]store.LogPage, len(runs))
	for i, id := range runs {
		pages[i] = store.LogPage{RunID: id, FirstLine: line, LastLine: line + 9, Size: 600, Content: make([]byte, 200)}
	}
	return pages
}

func (d *planData) logPageCases() []planCase {
	q := d.sql
	from := d.loggedDay()
	run := d.logged[10]
	add := func(pages []store.LogPage, most int) statement {
		return q.addPages.by(append(pageArgs(pages), named{{"job_bytes", most}}...))
	}
	read := func(line, limit int) statement {
		return q.logPages.by(named{{"run", run}, {"from_line", line}, {"limit", limit}})
	}
	return []planCase{
		{name: "addPages 1000 new", st: add(pagesFor(d.logged[:1000], 1001), 1<<40), reach: reachIDs, batch: 4000},
		{name: "addPages 1000 there", st: add(pagesFor(d.logged[:1000], 1), 1<<40), reach: reachIDs, batch: 3000},
		{name: "addPages 1000 refused", st: add(pagesFor(d.logged[loggedRuns:loggedRuns+1000], 1), 1), rows: 1, reach: reachIDs, batch: 4000},
		{name: "addPages 1", st: add(pagesFor(d.logged[:1], 1001), 1<<40), reach: reachIDs, batch: 10},
		{name: "logPages first", st: read(1, 64), rows: loggedPages, reach: reachOne},
		{name: "logPages middle", st: read(101, 64), rows: 10, reach: reachOne},
		{name: "logPages tail", st: read(-50, 64), rows: 5, reach: reachOne},
		{name: "logPages behind", st: read(1000, 64), rows: 1, reach: reachOne},
		{name: "pagePartitions", st: q.pagePartitions.with(), rows: planDays},
		{name: "deletePages", st: q.deletePages.by(named{{"lo", idAt(from)}, {"hi", idAt(from.Add(day)) - 1}, {"limit", endBatch}}), rows: endBatch, reach: reachOne, batch: 2000},
		{name: "deleteUse", st: q.deleteUse.by(named{{"lo", 0}, {"hi", idAt(from) - 1}, {"limit", endBatch}}), rows: endBatch, batch: 2000},
	}
}
