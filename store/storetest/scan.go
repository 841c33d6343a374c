package storetest

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// A Scan may remember which runs it has returned, so each of these cases scans
// for runs once for each state of the store.
func scanCases() []testCase {
	return []testCase{
		{"JobsDueEnabledAndInOrder", scanJobs},
		{"JobsOfTheShardsOnly", scanShards},
		{"JobsLimitGivesTheEarliest", scanJobsLimit},
		{"JobsBeforeFromMayBeLeftOut", scanFrom},
		{"RunsOfAnotherEpoch", scanForeignRuns},
		{"PlannedAfterATakeOver", plannedAfterTakeOver},
		{"RunsLimitGivesTheEarliest", scanRunsLimit},
		{"RunsReturnedStayPlanned", scanStaysPlanned},
		{"NextIsExact", scanNext},
		{"NextOfAnotherShardOrAStoppedJob", scanNextForeign},
		{"NextAfterAFullBatch", scanNextFull},
		{"WaitingCountsPlannedRuns", scanWaiting},
		{"PlannedPagesCoverAllOnce", plannedPages},
		{"PlannedFilters", plannedFilters},
	}
}

func scanJobs(e *env) {
	o := e.owner("a")
	late := e.newJob(func(j *store.Job) { j.Next = e.at(-600) })
	edge := e.newJob(func(j *store.Job) { j.Next = e.at(10) })
	mid := e.newJob(func(j *store.Job) { j.Next = e.at(5) })
	e.newJob(func(j *store.Job) { j.Next = e.at(10).Add(time.Millisecond) })
	e.newJob(noNext)
	e.newJob(stopped)
	e.stop(e.newJob().ID)
	var got []store.Job
	for _, d := range o.mustScan(o.scan(e.at(10))).Jobs {
		got = append(got, d.Job)
	}
	want(e, "due jobs", got, []store.Job{late, mid, edge})
	want(e, "due jobs without shards", len(o.mustScan(store.ScanQuery{Before: e.at(10), Jobs: 9, Runs: 9}).Jobs), 0)
}

// scanFrom: what is due before From may be left out, and nothing else, and only by that scan.
func scanFrom(e *env) {
	o := e.owner("a")
	for _, at := range []time.Time{e.at(-3600), e.at(1), e.at(2), e.at(3)} {
		e.newJob(func(j *store.Job) { j.Next = at })
	}
	for range 2 {
		q := o.scan(e.at(3))
		q.From = e.at(2)
		var next []time.Time
		for _, d := range o.mustScan(q).Jobs {
			if !d.Next.Before(q.From) {
				next = append(next, d.Next)
			}
		}
		want(e, "due from then on", next, []time.Time{e.at(2), e.at(3)})
		want(e, "due in all", len(o.mustScan(o.scan(e.at(3))).Jobs), 4)
	}
}

func scanShards(e *env) {
	o := e.owner("a")
	in, out := e.jobIn(1), e.jobIn(2)
	res := o.mustScan(store.ScanQuery{Shards: o.shards[1:2], Before: e.at(10), Jobs: 9, Runs: 9})
	if len(res.Jobs) != 1 || res.Jobs[0].ID != in.ID {
		e.Errorf("due jobs of shard 1: %+v, want %d without %d", res.Jobs, in.ID, out.ID)
	}
	e.mustAddRun(out.ID, store.Trigger{At: e.at(-10)})
	mine := e.mustAddRun(in.ID, store.Trigger{At: e.at(-10)})
	res = o.mustScan(store.ScanQuery{Shards: o.shards[1:2], Before: e.at(1e6), Jobs: 9, Runs: 9})
	want(e, "planned runs of shard 1", ids(res.Runs), []int64{mine.ID})
}

func scanJobsLimit(e *env) {
	o := e.owner("a")
	var all []int64
	for i := range 6 {
		all = append(all, e.newJob(func(j *store.Job) { j.Next = e.at(-i) }).ID)
	}
	slices.Reverse(all)
	q := o.scan(e.now)
	q.Jobs = 4
	var got []int64
	for _, d := range o.mustScan(q).Jobs {
		got = append(got, d.ID)
	}
	want(e, "the earliest due jobs", got, all[:4])
}

func scanForeignRuns(e *env) {
	o := e.owner("a")
	job := e.newJob()
	own := o.claim(o.plan(job, job.Next))[0]
	late := e.mustAddRun(job.ID, store.Trigger{At: e.at(100)})
	early := e.mustAddRun(job.ID, store.Trigger{At: e.at(50)})
	e.mustAddRun(job.ID, store.Trigger{At: e.at(100).Add(time.Millisecond)})
	started := o.started(e.mustAddRun(job.ID, store.Trigger{At: e.at(50)}))
	killed := e.mustKill(e.mustAddRun(job.ID, store.Trigger{At: e.at(50)}).ID, "x")
	want(e, "PlanEpoch of an added run", early.PlanEpoch, int64(0))
	got := o.mustScan(o.scan(e.at(100))).Runs
	want(e, "planned runs of another epoch", ids(got), []int64{early.ID, late.ID})
	e.check(!slices.ContainsFunc(got, func(r store.Run) bool { return r.State != store.StatePlanned }),
		"Scan returned runs that are not planned, of %d, %d, %d", own.ID, started.ID, killed.ID)
}

// plannedAfterTakeOver: a Scan need not return runs of a former epoch, so the new
// owner reads them with Planned.
func plannedAfterTakeOver(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob())
	o.mustScan(o.scan(e.at(10)))
	b := o.overtakenBy("b")
	want(e, "planned runs of the former epoch", ids(b.allPlanned()), []int64{run.ID})
	for _, r := range b.mustScan(b.scan(e.at(10))).Runs {
		want(e, "a run that a Scan returns after a take-over", r.ID, run.ID)
	}
}

func scanRunsLimit(e *env) {
	o := e.owner("a")
	job := e.newJob()
	var all []int64
	for i := range 6 {
		all = append(all, e.mustAddRun(job.ID, store.Trigger{At: e.at(600 - i)}).ID)
	}
	slices.Reverse(all)
	q := o.scan(e.at(600))
	q.Runs = 4
	res := o.mustScan(q)
	want(e, "the earliest planned runs", ids(res.Runs), all[:4])
	e.check(!res.Next.IsZero() && !res.Next.After(q.Before), "Next %v after a full batch of runs: want %v at the latest", res.Next, q.Before)
}

// scanStaysPlanned: a Scan may return a run once only, and its answer may be lost.
func scanStaysPlanned(e *env) {
	o := e.owner("a")
	run := e.mustAddRun(e.newJob().ID, store.Trigger{At: e.at(10)})
	f := Wrap(e.Store)
	f.Inject("Scan", Fault{After: true})
	for range 2 {
		_, err := f.Scan(e.ctx, store.ScanResult{}, o.scan(e.at(10)))
		e.wantErr("Scan", err, ErrInjected)
		want(e, "planned runs after an answer that was lost", ids(o.allPlanned()), []int64{run.ID})
	}
}

func scanNext(e *env) {
	o := e.owner("a")
	scan := func() time.Time { return o.mustScan(o.scan(e.at(10))).Next }
	want(e, "Next of an empty store", scan(), time.Time{})
	job := e.newJob(func(j *store.Job) { j.Next = e.at(10) })
	want(e, "Next where all is due", scan(), time.Time{})
	e.newJob(func(j *store.Job) { j.Next = e.at(7200).Add(time.Millisecond) })
	want(e, "Next of a job", scan(), e.at(7200).Add(time.Millisecond))
	run := e.mustAddRun(job.ID, store.Trigger{At: e.at(3600).Add(7 * time.Millisecond)})
	want(e, "Next of a run", scan(), e.at(3600).Add(7*time.Millisecond))
	e.newJob(func(j *store.Job) { j.Next = e.at(10).Add(time.Millisecond) })
	want(e, "Next of a job one millisecond later", scan(), e.at(10).Add(time.Millisecond))
	e.mustKill(run.ID, "x")
	want(e, "Next after the run's kill, from a later time", o.mustScan(o.scan(e.at(20))).Next, e.at(7200).Add(time.Millisecond))
}

func scanNextForeign(e *env) {
	o := e.owner("a")
	e.jobIn(2)
	e.mustAddRun(e.jobIn(2, noNext).ID, store.Trigger{At: e.at(600)})
	e.jobIn(1, stopped)
	res := o.mustScan(store.ScanQuery{Shards: o.shards[1:2], Before: e.at(-10), Jobs: 9, Runs: 9})
	want(e, "Next of a shard with a stopped job only", res.Next, time.Time{})
}

func scanNextFull(e *env) {
	o := e.owner("a")
	for range 3 {
		e.newJob()
	}
	e.newJob(func(j *store.Job) { j.Next = e.at(600) })
	q := o.scan(e.at(10))
	q.Jobs = 2
	next := o.mustScan(q).Next
	e.check(!next.IsZero() && !next.After(q.Before), "Next %v after a full batch of jobs: want %v at the latest", next, q.Before)
}

func scanWaiting(e *env) {
	o := e.owner("a")
	job, idle := e.newJob(), e.newJob()
	p := o.plan(job, e.at(-40), e.at(-30), e.at(-20), e.at(-10))
	p.Next = e.at(4)
	runs := o.claim(p)
	o.started(runs[0])
	o.started(runs[1], refused)
	e.mustAddRun(job.ID, store.Trigger{At: e.at(3600)})
	waiting := func() map[int64]int {
		m := map[int64]int{}
		for _, d := range o.mustScan(o.scan(e.at(10))).Jobs {
			m[d.ID] = d.Waiting
		}
		return m
	}
	e.eventually("two runs that are due wait", func() bool { return waiting()[job.ID] >= 2 })
	got := waiting()
	e.check(got[job.ID] <= 3, "Waiting %d of three planned runs", got[job.ID])
	want(e, "Waiting of a job without runs", got[idle.ID], 0)
}

func (e *env) mustPlanned(q store.PlannedQuery) []store.Run {
	e.Helper()
	runs, err := e.Planned(e.ctx, nil, q)
	e.must(err)
	return runs
}

// allPlanned reads all planned runs of the shards at once.
func (o *owner) allPlanned() []store.Run {
	o.Helper()
	return o.mustPlanned(store.PlannedQuery{Shards: o.shards, Before: o.at(1e6), Limit: 10_000})
}

func plannedPages(e *env) {
	o := e.owner("a")
	var all []store.Run
	for range 4 {
		job := e.newJob()
		all = append(all, o.claim(o.plan(job, e.at(30), e.at(10), e.at(20), e.at(10)))...)
		all = append(all, e.mustAddRun(job.ID, store.Trigger{At: e.at(600)}), e.mustAddRun(job.ID, store.Trigger{At: e.at(600)}))
	}
	slices.SortFunc(all, func(a, b store.Run) int {
		if c := a.Scheduled.Compare(b.Scheduled); c != 0 {
			return c
		}
		return int(a.ID - b.ID)
	})
	for _, limit := range []int{1, 3, 1000} {
		var got []store.Run
		q := store.PlannedQuery{Shards: o.shards, Before: e.at(600), Limit: limit}
		for len(got) <= len(all) {
			page := e.mustPlanned(q)
			e.check(len(page) <= limit, "a page of %d, want at most %d", len(page), limit)
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			q.After, q.AfterID = page[len(page)-1].Scheduled, page[len(page)-1].ID
		}
		want(e, "planned runs of all pages", ids(got), ids(all))
	}
}

func plannedFilters(e *env) {
	o := e.owner("a")
	one := e.jobIn(1, func(j *store.Job) { j.App = "one" })
	two := e.jobIn(2, func(j *store.Job) { j.App = "two" })
	runs := o.claim(o.plan(one, e.at(10), e.at(20), e.at(30)), o.plan(two, e.at(10)))
	o.started(runs[0])
	cases := []struct {
		name string
		q    store.PlannedQuery
		want []int64
	}{
		{"shard", store.PlannedQuery{Shards: o.shards[1:2], Before: e.at(600)}, []int64{runs[1].ID, runs[2].ID}},
		{"app", store.PlannedQuery{Shards: o.shards, App: "two", Before: e.at(600)}, []int64{runs[3].ID}},
		{"time, which is included", store.PlannedQuery{Shards: o.shards, App: "one", Before: e.at(20)}, []int64{runs[1].ID}},
		{"no shard", store.PlannedQuery{Before: e.at(600)}, nil},
	}
	for _, c := range cases {
		c.q.Limit = 100
		want(e, "Planned by "+c.name, ids(e.mustPlanned(c.q)), c.want)
	}
	want(e, "Planned", e.mustPlanned(store.PlannedQuery{Shards: o.shards, App: "two", Before: e.at(600), Limit: 1}), runs[3:])
}
