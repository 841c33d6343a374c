package storetest

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Runs that are kept apart until they move. They are due in a year, and move within a
// minute or two: a store may have given them IDs of that time.
func aheadCases() []testCase {
	return []testCase{
		{"IsAPlannedRunToReaders", aheadRead},
		{"KeepsTheTrigger", aheadKeepsTrigger},
		{"IsHiddenFromTheLoops", aheadHidden},
		{"IsListedByEachFilter", aheadFilters},
		{"PagesCoverAllOnce", aheadPages},
		{"HasTheNamesOfItsJob", aheadNames},
		{"MovesToTheLoops", aheadMoves},
		{"MovesTheEarliestFirst", aheadOrder},
		{"MovesWhatIsLate", aheadLate},
		{"MoveComparesTheEpoch", aheadEpoch},
		{"MoveOfOtherShardsChangesNothing", aheadOtherShards},
		{"MovesOnceFromManyCallers", aheadRace},
		{"KeyIsIdempotentThroughout", aheadKey},
		{"KeyFrom50Callers", aheadKeyConcurrent},
		{"KillCancels", aheadKilled},
		{"KillAgainstMove", aheadKillRace},
		{"RemoveCancels", aheadRemoved},
		{"EditsLeaveItAlone", aheadEdited},
		{"OfAnAbsentJobIsNotFound", aheadNotFound},
		{"OlderThanIDsReach", aheadOldest},
	}
}

// far are the times of these cases: when a run is due, and when it is to move.
func (e *env) far(n int) (at, move time.Time) { return e.now.AddDate(1, 0, n), e.at(n + 10) }

func (e *env) mustAddAhead(job int64, t store.Trigger, move time.Time) store.Run {
	e.Helper()
	run, err := e.AddAhead(e.ctx, job, t, move)
	e.must(err)
	return run
}

// ahead is a run that is kept apart, and when it is to move.
func (e *env) ahead(job int64, n int) (store.Run, time.Time) {
	e.Helper()
	at, move := e.far(n)
	return e.mustAddAhead(job, store.Trigger{At: at}, move), move
}

func (o *owner) mustMove(before time.Time, limit int) store.Moved {
	o.Helper()
	moved, err := o.MoveAhead(o.ctx, store.AheadQuery{Shards: o.shards, Before: before, Limit: limit})
	o.must(err)
	return moved
}

// plannedEver are all planned runs that the loops are told of.
func (o *owner) plannedEver() []store.Run {
	o.Helper()
	return o.mustPlanned(store.PlannedQuery{Shards: o.shards, Before: o.now.AddDate(3, 0, 0), Limit: 10_000})
}

// wantMoved compares what a move did: how many, and when the next is.
func (o *owner) wantMoved(what string, got store.Moved, runs int, next time.Time) {
	o.Helper()
	want(o.env, what, got, store.Moved{Runs: runs, Next: next})
}

func aheadRead(e *env) {
	job := e.newJob()
	at, move := e.far(0)
	run := e.mustAddAhead(job.ID, store.Trigger{At: at}, move)
	e.check(run.ID > 0 && run.ID < 1<<53, "ID %d: want positive and below 2^53", run.ID)
	e.check(!run.Created.IsZero(), "Created is not set")
	want(e, "AddAhead", run, store.Run{ID: run.ID, JobID: job.ID, App: job.App, Shard: job.Shard, TriggerID: run.ID,
		Type: store.TriggerManual, Scheduled: at, State: store.StatePlanned, Retries: -1, Created: run.Created})
	e.wantRun("AddAhead", run)
	near := e.mustAddRun(job.ID, store.Trigger{})
	both := []store.Run{run, near}
	slices.SortFunc(both, func(a, b store.Run) int { return int(a.ID - b.ID) })
	got, err := e.RunsByID(e.ctx, []int64{run.ID, near.ID, run.ID, 1<<53 - 1})
	e.must(err)
	want(e, "RunsByID", nameless(got...), both)
	want(e, "the job", e.mustJob(job.ID), job)
}

func aheadKeepsTrigger(e *env) {
	o := e.owner("a")
	job := e.newJob()
	param, retries, addrs := "p", 4, []string{"http://b", "http://a"}
	at, move := e.far(0)
	odd := at.Add(999_999 * time.Nanosecond).In(time.FixedZone("west", -5*3600))
	t := store.Trigger{Param: &param, Addresses: addrs, Shard: store.Sharding{Index: 1, Total: 3}, Retries: &retries, At: odd, Type: store.TriggerAPI, Key: "k"}
	run := e.mustAddAhead(job.ID, t, move.Add(999_999*time.Nanosecond))
	full := store.Run{ID: run.ID, JobID: job.ID, App: job.App, Shard: job.Shard, TriggerID: run.ID, Type: store.TriggerAPI, Scheduled: at,
		Sharding: t.Shard, Param: "p", ParamSet: true, Addresses: []string{"http://b", "http://a"}, Retries: 4, RetriesSet: true, Created: run.Created}
	want(e, "AddAhead", run, full)
	addrs[0], run.Addresses[0] = "http://spoilt", "http://spoilt"
	e.mustRun(run.ID).Addresses[0] = "http://spoilt"
	e.wantRun("a run kept apart", full)
	o.wantMoved("MoveAhead", o.mustMove(move, 9), 1, time.Time{})
	e.wantRun("a run that has moved", full)
}

func aheadHidden(e *env) {
	o := e.owner("a")
	job := e.newJob()
	run, _ := e.ahead(job.ID, 0)
	late := run.Scheduled.Add(time.Hour)
	res := o.mustScan(o.scan(late))
	want(e, "runs of a scan", len(res.Runs), 0)
	for _, d := range res.Jobs {
		want(e, "runs of the job that wait", d.Waiting, 0)
	}
	planned, err := e.Planned(e.ctx, nil, store.PlannedQuery{Shards: o.shards, Before: late, Limit: 9})
	e.must(err)
	want(e, "planned runs", len(planned), 0)
	want(e, "status of its start", o.tryStart(o.startOf(run)).Status, store.StartGone)
	want(e, "results accepted", len(e.mustFinish(overWire(run.ID))), 0)
	res = o.mustScan(o.scan(e.at(10)))
	e.check(!res.Next.Equal(run.Scheduled), "Next of a scan is the time of a run that is kept apart")
	e.wantRun("a run kept apart", run)
}

func aheadFilters(e *env) {
	job, other := e.newJob(func(j *store.Job) { j.App = "one" }), e.newJob(func(j *store.Job) { j.App = "two" })
	run, _ := e.ahead(job.ID, 0)
	gone, _ := e.ahead(job.ID, 1)
	gone = e.mustKill(gone.ID, "x")
	of, _ := e.ahead(other.ID, 2)
	near := e.mustAddRun(job.ID, store.Trigger{})
	planned, cancelled := []store.State{store.StatePlanned}, []store.State{store.StateCancelled, store.StateFailed}
	for _, c := range []struct {
		name   string
		filter store.RunFilter
		want   []store.Run
	}{
		{"nothing", store.RunFilter{}, []store.Run{run, gone, of, near}},
		{"App", store.RunFilter{App: "two"}, []store.Run{of}},
		{"JobID", store.RunFilter{JobID: job.ID}, []store.Run{run, gone, near}},
		{"TriggerID", store.RunFilter{TriggerID: run.ID}, []store.Run{run}},
		{"TriggerID and JobID", store.RunFilter{TriggerID: run.ID, JobID: job.ID}, []store.Run{run}},
		{"planned", store.RunFilter{States: planned}, []store.Run{run, of, near}},
		{"planned of a job", store.RunFilter{JobID: job.ID, States: planned}, []store.Run{run, near}},
		{"cancelled", store.RunFilter{States: cancelled}, []store.Run{gone}},
		{"cancelled of a job", store.RunFilter{JobID: other.ID, States: cancelled}, nil},
		{"started", store.RunFilter{JobID: job.ID, States: []store.State{store.StateStarted}}, nil},
		{"From", store.RunFilter{From: gone.Scheduled}, []store.Run{gone, of}},
		{"To", store.RunFilter{To: gone.Scheduled}, []store.Run{run, near}},
		{"From and To", store.RunFilter{JobID: job.ID, From: gone.Scheduled, To: of.Scheduled}, []store.Run{gone}},
	} {
		slices.SortFunc(c.want, func(x, y store.Run) int { return int(y.ID - x.ID) })
		want(e, "Runs by "+c.name, e.mustRuns(c.filter), c.want)
	}
}

// aheadNames: those who read a run that is kept apart get the names of its job, as of any
// run, also when it was cancelled; those who change it do not.
func aheadNames(e *env) {
	job := e.newJob()
	run, _ := e.ahead(job.ID, 0)
	gone, _ := e.ahead(job.ID, 1)
	wantNames := func(when, name, key string) {
		e.Helper()
		for _, r := range []store.Run{run, gone} {
			of := func(what string, got []store.Run, err error) {
				e.Helper()
				e.must(err)
				i := slices.IndexFunc(got, func(g store.Run) bool { return g.ID == r.ID })
				if e.check(i >= 0, "%s, %s: there is no run %d", what, when, r.ID); i >= 0 {
					want(e, what+", "+when, [2]string{got[i].JobName, got[i].JobKey}, [2]string{name, key})
				}
			}
			one, err := e.Run(e.ctx, r.ID)
			of("names by Run", []store.Run{one}, err)
			got, err := e.RunsByID(e.ctx, []int64{r.ID, 1<<53 - 1})
			of("names by RunsByID", got, err)
			for _, f := range []store.RunFilter{{}, {App: job.App}, {JobID: job.ID}, {TriggerID: r.ID}} {
				got, err = e.Runs(e.ctx, f)
				of("names by Runs", got, err)
			}
		}
	}
	wantNames("as they were added", job.Name, job.Key)
	for range 2 {
		got := e.mustKill(gone.ID, "x")
		want(e, "names by Kill", [2]string{got.JobName, got.JobKey}, [2]string{})
	}
	e.edit(job.ID, func(j *store.Job) { j.Name, j.Key = "another — 错", "" })
	wantNames("after an end and an edit", "another — 错", "")
	e.must(e.RemoveJob(e.ctx, job.ID))
	wantNames("after the removal", "", "")
}

func aheadPages(e *env) {
	job := e.newJob()
	var all []int64
	for i := range 7 {
		run, _ := e.ahead(job.ID, 10-i)
		all = append(all, run.ID, e.mustAddRun(job.ID, store.Trigger{}).ID)
	}
	slices.Sort(all)
	slices.Reverse(all)
	for _, f := range []store.RunFilter{{}, {JobID: job.ID}, {States: []store.State{store.StatePlanned}}} {
		var got []int64
		for f.Limit = 3; len(got) <= len(all); f.Before = got[len(got)-1] {
			page := e.mustRuns(f)
			e.check(len(page) <= 3, "a page of %d, want at most 3", len(page))
			if got = append(got, ids(page)...); len(page) == 0 {
				break
			}
		}
		want(e, "runs of all pages", got, all)
	}
}

func aheadMoves(e *env) {
	o := e.owner("a")
	job := e.newJob(stopped)
	run, move := e.ahead(job.ID, 0)
	o.wantMoved("a move too early", o.mustMove(move.Add(-time.Millisecond), 9), 0, move)
	want(e, "status of a start", o.tryStart(o.startOf(run)).Status, store.StartGone)
	o.wantMoved("a move in time", o.mustMove(move, 9), 1, time.Time{})
	o.wantMoved("a move behind it", o.mustMove(move, 9), 0, time.Time{})
	e.wantRun("a run that has moved", run)
	want(e, "runs of the job", ids(e.runsOf(job.ID)), []int64{run.ID})
	want(e, "planned runs", ids(o.plannedEver()), []int64{run.ID})
	want(e, "runs of a scan too early", len(o.mustScan(o.scan(run.Scheduled.Add(-time.Millisecond))).Runs), 0)
	want(e, "runs of a scan", ids(o.mustScan(o.scan(run.Scheduled)).Runs), []int64{run.ID})
	e.mustFinish(success(o.started(run)))
	e.wantState("a run that has moved", run.ID, store.StateSucceeded)
}

func aheadOrder(e *env) {
	o := e.owner("a")
	var runs []store.Run
	var moves []time.Time
	for i := range 6 {
		at, _ := e.far(-i)
		moves = append(moves, e.at(60+i)) // what is due first need not move first
		runs = append(runs, e.mustAddAhead(e.newJob().ID, store.Trigger{At: at}, moves[i]))
	}
	o.wantMoved("none of them", o.mustMove(moves[5], 0), 0, moves[0])
	o.wantMoved("two of three", o.mustMove(moves[2], 2), 2, moves[2])
	want(e, "planned runs", ids(o.plannedEver()), []int64{runs[1].ID, runs[0].ID}) // in order of their times
	o.wantMoved("the third", o.mustMove(moves[2], 2), 1, moves[3])
	o.wantMoved("the rest", o.mustMove(moves[5], 9), 3, time.Time{})
	want(e, "planned runs", len(o.plannedEver()), 6)
}

func aheadLate(e *env) {
	o := e.owner("a")
	job := e.newJob()
	run := e.mustAddAhead(job.ID, store.Trigger{At: e.at(-3600)}, e.at(-90_000))
	e.check(run.Scheduled.After(e.at(-3600)), "a run for a past time is scheduled at %v: want now", run.Scheduled)
	o.wantMoved("what was to move long ago", o.mustMove(e.now, 9), 1, time.Time{})
	want(e, "planned runs", ids(o.plannedEver()), []int64{run.ID})
	want(e, "state", o.started(run).State, store.StateStarted)
}

func aheadEpoch(e *env) {
	former := e.owner("a")
	run, move := e.ahead(e.newJob().ID, 0)
	o := former.overtakenBy("b")
	want(e, "runs moved by a former owner", former.mustMove(move, 9).Runs, 0)
	want(e, "planned runs", len(o.plannedEver()), 0)
	e.wantRun("a run kept apart", run)
	o.wantMoved("the next owner", o.mustMove(move, 9), 1, time.Time{})
	want(e, "planned runs", ids(o.plannedEver()), []int64{run.ID})
}

func aheadOtherShards(e *env) {
	o := e.owner("a")
	here, there := e.jobIn(1), e.jobIn(2)
	one, move := e.ahead(here.ID, 0)
	two, _ := e.ahead(there.ID, 0)
	part := &owner{env: e, inc: o.inc, shards: []store.Shard{{ID: 1, Owner: "a", Epoch: o.epoch(1)}, {ID: 3, Owner: "a", Epoch: o.epoch(3)}}}
	part.wantMoved("those of two shards", part.mustMove(move, 9), 1, time.Time{})
	want(e, "planned runs", ids(o.plannedEver()), []int64{one.ID})
	none := &owner{env: e, inc: o.inc}
	none.wantMoved("those of no shard", none.mustMove(move, 9), 0, time.Time{})
	e.wantRun("a run of another shard", two)
}

func aheadRace(e *env) {
	o := e.owner("a")
	job := e.newJob()
	var move time.Time
	var all []int64
	for i := range 40 {
		run, m := e.ahead(job.ID, i)
		all, move = append(all, run.ID), m
	}
	var moved atomic.Int64
	var calls []func()
	for range 8 {
		calls = append(calls, func() {
			for range 12 {
				moved.Add(int64(o.mustMove(move, 4).Runs))
			}
		})
	}
	e.race(calls...)
	moved.Add(int64(o.mustMove(move, 100).Runs)) // what was locked
	want(e, "runs moved", moved.Load(), int64(len(all)))
	want(e, "planned runs", ids(o.plannedEver()), all)
	slices.Sort(all)
	want(e, "runs of the job", ids(e.runsOf(job.ID)), all)
}
