package storetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Questions about many runs. A store need not answer them: then these cases say nothing.

func readCases() []testCase {
	with := func(e *env, r store.RunReader) *reader { return &reader{e, r, e.owner("a")} }
	return append(optionalCases(with, []optional[*reader]{
		{"SearchFindsTheNewestFirst", searchNewest},
		{"SearchByEachField", searchFields},
		{"SearchForAText", searchText},
		{"SearchWithoutSecrets", searchSecrets},
		{"SearchForHowARunWasRouted", searchRouted},
		{"SearchByTheTimeOfPlanning", searchPlanned},
		{"SearchByHowLongRunsTook", searchSlower},
		{"SearchByHowLateRunsAre", searchLate},
		{"SearchGoesOnWhereItStopped", searchPages},
		{"SearchLooksAtSoManyRuns", searchExamines},
		{"SearchOfOneJob", searchJob},
		{"SearchThatCanFindNothing", searchNothing},
		{"SearchRefusesWhatIsAbsurd", searchAbsurd},
		{"LastRunsOfEachJob", lastRuns},
		{"LastRunsAreBounded", lastRunsBounds},
		{"LastRunsHaveNoneThatAreKeptApart", lastRunsApart},
		{"BranchesOfATree", branchesOf},
		{"ListsOfRunsWithShortTexts", shortRuns},
		{"ChildrenInOrder", childrenOf},
		{"WaitingInOrderOfTime", waitingOrder},
		{"WaitingRefusesWhatIsAbsurd", waitingAbsurd},
		{"OpenRunsByApp", openRuns},
		{"OpenRunsStop", openRunsStop},
	}), testCase{"ViewWithoutJoining", viewOfOthers})
}

// optional is a case of what a store need not be.
type optional[C any] struct {
	name string
	run  func(C)
}

// optionalCases say nothing about a store that is no R.
func optionalCases[R, C any](with func(*env, R) C, list []optional[C]) (cases []testCase) {
	for _, c := range list {
		cases = append(cases, testCase{c.name, func(e *env) {
			if r, ok := e.Store.(R); ok {
				c.run(with(e, r))
			}
		}})
	}
	return cases
}

// reader is a store that answers, and the owner of all its shards.
type reader struct {
	*env
	reads store.RunReader
	o     *owner
}

// named is a run as those get it who read runs.
func (e *reader) named(id int64) store.Run {
	e.Helper()
	run, err := e.Run(e.ctx, id)
	e.must(err)
	return run
}

func (e *reader) search(q store.RunSearch) store.RunsFound {
	e.Helper()
	found, err := e.reads.SearchRuns(e.ctx, q)
	e.must(err)
	return found
}

// wantFound checks what a search finds, by ids.
func (e *reader) wantFound(what string, q store.RunSearch, runs ...store.Run) {
	e.Helper()
	found := e.search(q)
	slices.SortFunc(runs, func(a, b store.Run) int { return int(max(min(b.ID-a.ID, 1), -1)) })
	want(e.env, what, ids(found.Runs), ids(runs))
	want(e.env, what+": SearchedTo", found.SearchedTo, int64(1))
}

func searchNewest(e *reader) {
	var runs []store.Run
	for range 5 {
		runs = append(runs, e.mustAddRun(e.newJob().ID, store.Trigger{}))
	}
	found := e.search(store.RunSearch{})
	want(e.env, "ids", ids(found.Runs), []int64{runs[4].ID, runs[3].ID, runs[2].ID, runs[1].ID, runs[0].ID})
	want(e.env, "SearchedTo, Examined", []int64{found.SearchedTo, int64(found.Examined)}, []int64{1, 5})
	for _, run := range found.Runs {
		want(e.env, "a run that is found", run, e.named(run.ID))
	}
}

func searchFields(e *reader) {
	a, b := e.newJob(), e.newJob(func(j *store.Job) { j.App, j.Handler = "other", "h2" })
	planned := e.mustAddRun(a.ID, store.Trigger{At: e.at(500)})
	started := e.o.started(e.mustAddRun(a.ID, store.Trigger{Type: store.TriggerAPI}))
	good := e.o.succeeded(e.mustAddRun(b.ID, store.Trigger{}))
	bad := e.o.one(e.mustFinish(partFailed(e.o.started(e.mustAddRun(b.ID, store.Trigger{}), to(remote)))))
	skipped := e.o.one(e.o.claim(e.o.skip(e.newJob())))
	for what, c := range map[string]struct {
		q    store.RunSearch
		runs []store.Run
	}{
		"an app":                 {store.RunSearch{Apps: []string{"other"}}, []store.Run{good, bad}},
		"two apps":               {store.RunSearch{Apps: []string{"other", a.App}}, []store.Run{planned, started, good, bad, skipped}},
		"two jobs":               {store.RunSearch{JobIDs: []int64{b.ID, skipped.JobID}}, []store.Run{good, bad, skipped}},
		"what is bad":            {store.RunSearch{States: []store.State{store.StateFailed, store.StateLost}}, []store.Run{bad}},
		"what was skipped":       {store.RunSearch{States: []store.State{store.StateSkipped}}, []store.Run{skipped}},
		"what is planned":        {store.RunSearch{States: []store.State{store.StatePlanned}}, []store.Run{planned}},
		"what has started":       {store.RunSearch{States: []store.State{store.StateStarted, store.StateDispatched}}, []store.Run{started}},
		"states of several":      {store.RunSearch{States: []store.State{store.StateSucceeded, store.StatePlanned}}, []store.Run{planned, good}},
		"of jobs, what is open":  {store.RunSearch{JobIDs: []int64{a.ID, b.ID, skipped.JobID}, States: notEnded()}, []store.Run{planned, started}},
		"of jobs, what waits":    {store.RunSearch{JobIDs: []int64{a.ID, b.ID}, States: notEnded()[:1]}, []store.Run{planned}},
		"of a job, what is open": {store.RunSearch{JobIDs: []int64{b.ID}, States: notEnded()}, nil},
		"a type":                 {store.RunSearch{Types: []store.TriggerType{store.TriggerAPI}}, []store.Run{started}},
		"a reason":               {store.RunSearch{Reason: store.ReasonMisfire}, []store.Run{skipped}},
		"an address":             {store.RunSearch{Address: remote}, []store.Run{bad}},
		"a handler":              {store.RunSearch{Handler: bad.Handler, Apps: []string{"other"}, States: []store.State{bad.State}}, []store.Run{bad}},
		"no such handler":        {store.RunSearch{Handler: "nobody"}, nil},
		"instants from on":       {store.RunSearch{From: e.at(400), Apps: []string{a.App}, Types: []store.TriggerType{store.TriggerManual}}, []store.Run{planned}},
		"instants before":        {store.RunSearch{To: e.at(500), JobIDs: []int64{a.ID}}, []store.Run{started}},
		"several fields at once": {store.RunSearch{Apps: []string{"other"}, States: []store.State{store.StateSucceeded, store.StateFailed}, JobIDs: []int64{a.ID, b.ID}}, []store.Run{good, bad}},
	} {
		e.wantFound(what, c.q, c.runs...)
	}
}

// notEnded are the states of runs that have not ended.
func notEnded() []store.State {
	return []store.State{store.StatePlanned, store.StateStarted, store.StateDispatched}
}

func searchText(e *reader) {
	param := "a Parameter — 参数"
	run := e.o.started(e.mustAddRun(e.newJob().ID, store.Trigger{}), func(s *store.Start) { s.Param = param })
	r := success(run)
	r.HandleMsg, r.TriggerMsg = "the RESULT 100%_", "Sent twice"
	e.mustFinish(r)
	other := e.mustAddRun(e.newJob().ID, store.Trigger{})
	for _, text := range []string{"parameter", "参数", "result", "100%_", "sent TWICE"} {
		e.wantFound(text, store.RunSearch{Text: text}, run)
	}
	for _, text := range []string{"%", "absent", "100%x", "_esult"} {
		if text == "%" {
			e.wantFound(text, store.RunSearch{Text: text}, run)
			continue
		}
		e.wantFound(text, store.RunSearch{Text: text})
	}
	e.wantFound("no text", store.RunSearch{}, run, other)
}

func searchSecrets(e *reader) {
	said := store.Trigger{Param: new("a parameter")}
	shown := e.mustAddRun(e.newJob().ID, said)
	secret := e.mustAddRun(e.newJob(func(j *store.Job) { j.Secret = true }).ID, said)
	gone := e.newJob()
	removed := e.mustAddRun(gone.ID, said)
	e.must(e.RemoveJob(e.ctx, gone.ID))
	parent := e.newJob().ID
	far := e.mustAddRun(parent, said)
	given := e.mustAddRun(parent, said.Repeating(&store.Run{Scheduled: e.at(0), ParentID: far.ID, Depth: 1}))
	led := e.mustAddRun(parent, store.Trigger{}.Repeating(&store.Run{Scheduled: e.at(0), ParentID: far.ID, Depth: 1}))
	e.wantFound("a text", store.RunSearch{Text: "parameter"}, shown, secret, removed, far, given)
	e.wantFound("a text, without secrets", store.RunSearch{Text: "parameter", NoSecrets: true}, shown, far)
	e.wantFound("all but secrets", store.RunSearch{NoSecrets: true}, shown, far, led)
	e.wantFound("of a secret job", store.RunSearch{NoSecrets: true, JobIDs: []int64{secret.JobID}})
	page := e.search(store.RunSearch{Text: "parameter", NoSecrets: true, JobIDs: []int64{secret.JobID}, Limit: 1})
	want(e.env, "where the search of a secret job goes on", page.SearchedTo, e.search(store.RunSearch{Text: "absent", NoSecrets: true, JobIDs: []int64{secret.JobID}, Limit: 1}).SearchedTo)
}

func searchPlanned(e *reader) {
	job := e.newJob()
	first := e.mustAddRun(job.ID, store.Trigger{})
	var last store.Run
	e.eventually("a run that is planned later", func() bool {
		last = e.mustAddRun(job.ID, store.Trigger{})
		return last.Created.Sub(first.Created) > 2*time.Millisecond
	})
	until := e.search(store.RunSearch{Until: last.Created})
	e.check(len(until.Runs) > 0 && until.Runs[len(until.Runs)-1].ID == first.ID, "until the last: %v", ids(until.Runs))
	for _, r := range until.Runs {
		e.check(r.Created.Before(last.Created), "a run of %v is found until %v", r.Created, last.Created)
	}
	e.wantFound("until the first", store.RunSearch{Until: first.Created})
	e.wantFound("since a millisecond after the last", store.RunSearch{Since: last.Created.Add(time.Millisecond)})
	e.wantFound("since within that millisecond", store.RunSearch{Since: last.Created.Add(time.Microsecond)})
	since := e.search(store.RunSearch{Since: last.Created})
	e.check(len(since.Runs) > 0 && since.Runs[0].ID == last.ID, "since the last: %v", ids(since.Runs))
	all := e.search(store.RunSearch{Since: first.Created, Until: last.Created.Add(time.Millisecond), Limit: 1000})
	want(e.env, "from the first to the last", ids(all.Runs), ids(e.search(store.RunSearch{Limit: 1000}).Runs))
}

func searchSlower(e *reader) {
	run := e.named(e.o.succeeded(e.o.planned(e.newJob())).ID)
	e.mustAddRun(e.newJob().ID, store.Trigger{})
	took := run.Ended.Sub(run.Started)
	e.wantFound("as slow", store.RunSearch{Slower: max(took, time.Nanosecond)}, slices.Repeat([]store.Run{run}, min(int(took), 1))...)
	e.wantFound("slower", store.RunSearch{Slower: took + time.Millisecond})
	e.wantFound("slower by less than a millisecond", store.RunSearch{Slower: took + time.Nanosecond})
	e.wantFound("for ever", store.RunSearch{Slower: 1 << 62})
}

func searchLate(e *reader) {
	overdue := func(seconds int) store.Run {
		return e.o.one(e.o.claim(e.o.plan(e.newJob(), e.at(-seconds))))
	}
	started := e.named(e.o.started(overdue(600)).ID)
	ended := e.named(e.o.succeeded(overdue(600)).ID)
	waits := overdue(300)
	const month = 30 * 24 * 3600
	old := overdue(month)
	e.mustAddRun(e.newJob().ID, store.Trigger{At: e.at(500)})
	// What will never start is not late, however long ago it was due.
	skipped := e.newJob(func(j *store.Job) { j.Next = e.at(-600) })
	e.o.claim(e.o.skip(skipped))
	_, err := e.Kill(e.ctx, overdue(600).ID, "killed")
	e.must(err)
	e.o.started(overdue(600), func(s *store.Start) { s.State = store.StateRefused })
	for what, run := range map[string]store.Run{"a run that goes on": started, "a run that has ended": ended} {
		late, of := run.Lateness(), []int64{run.JobID}
		e.check(late >= 500*time.Second, "%s is late by %v", what, late)
		e.wantFound(what+", as late", store.RunSearch{LateBy: late, JobIDs: of}, run)
		e.wantFound(what+", later", store.RunSearch{LateBy: late + time.Millisecond, JobIDs: of})
		e.wantFound(what+", later by less than a millisecond", store.RunSearch{LateBy: late + time.Nanosecond, JobIDs: of})
	}
	e.wantFound("late at all", store.RunSearch{LateBy: time.Nanosecond}, started, ended, waits, old)
	e.wantFound("late by minutes", store.RunSearch{LateBy: 200 * time.Second}, started, ended, waits, old)
	e.wantFound("later than what waits", store.RunSearch{LateBy: 450 * time.Second}, started, ended, old)
	e.wantFound("late and waiting", store.RunSearch{LateBy: time.Second, States: []store.State{store.StatePlanned}}, waits, old)
	e.wantFound("late by weeks", store.RunSearch{LateBy: (month - 3600) * time.Second}, old)
	e.wantFound("later than all", store.RunSearch{LateBy: (month + 3600) * time.Second})
	e.wantFound("late for ever", store.RunSearch{LateBy: math.MaxInt64})
}

func searchPages(e *reader) {
	a, b := e.newJob(), e.newJob(func(j *store.Job) { j.App = "other" })
	var every, some []int64
	for i := range 23 {
		job := a
		if i%3 == 0 {
			job = b
		}
		run := e.mustAddRun(job.ID, store.Trigger{})
		every = append(every, run.ID)
		if i%3 == 0 {
			some = append(some, run.ID)
		}
	}
	slices.Reverse(every)
	slices.Reverse(some)
	for _, size := range []struct{ examine, limit int }{{5, 100}, {1, 1}, {100, 2}, {7, 3}, {23, 8}} {
		for what, of := range map[string][]int64{"all": every, "of an app": some, "open of jobs": every, "open of a job": some} {
			q := store.RunSearch{Examine: size.examine, Limit: size.limit}
			switch what {
			case "of an app":
				q.Apps = []string{"other"}
			case "open of jobs":
				q.JobIDs, q.States = []int64{a.ID, b.ID}, notEnded()
			case "open of a job":
				q.JobIDs, q.States = []int64{b.ID}, notEnded()
			}
			var got []int64
			for pages := 0; pages < 60; pages++ {
				found := e.search(q)
				e.check(len(found.Runs) <= size.limit && found.Examined <= size.examine, "%+v: %d runs of %d", size, len(found.Runs), found.Examined)
				got = append(got, ids(found.Runs)...)
				if q.Before = found.SearchedTo; found.SearchedTo == 1 {
					break
				}
			}
			want(e.env, fmt.Sprintf("pages of %+v, %s", size, what), got, of)
		}
	}
}

func searchExamines(e *reader) {
	b := e.newJob(func(j *store.Job) { j.App = "other" })
	first := e.mustAddRun(b.ID, store.Trigger{})
	var last store.Run
	for range 9 {
		last = e.mustAddRun(e.newJob().ID, store.Trigger{})
	}
	found := e.search(store.RunSearch{Apps: []string{"other"}, Examine: 6})
	e.check(len(found.Runs) == 0 && found.Examined == 6, "%d runs of %d, want none of six", len(found.Runs), found.Examined)
	e.check(found.SearchedTo > first.ID && found.SearchedTo < last.ID, "SearchedTo %d, want between %d and %d", found.SearchedTo, first.ID, last.ID)
	off := found.SearchedTime.Sub(e.named(found.SearchedTo).Created)
	e.check(off.Abs() < 10*time.Second, "SearchedTime is off by %v", off)
	e.wantFound("further on", store.RunSearch{Apps: []string{"other"}, Before: found.SearchedTo}, first)
}

func searchJob(e *reader) {
	job := e.newJob()
	planned := e.mustAddRun(job.ID, store.Trigger{})
	started := e.o.started(e.mustAddRun(job.ID, store.Trigger{}))
	ended := e.o.succeeded(e.mustAddRun(job.ID, store.Trigger{}))
	ahead, err := e.AddAhead(e.ctx, job.ID, store.Trigger{At: e.now.Add(40 * 24 * time.Hour)}, e.now.Add(39*24*time.Hour))
	e.must(err)
	e.mustAddRun(e.newJob().ID, store.Trigger{})
	of := []int64{job.ID}
	e.wantFound("all", store.RunSearch{JobIDs: of}, planned, started, ended)
	e.wantFound("planned", store.RunSearch{JobIDs: of, States: []store.State{store.StatePlanned}}, planned)
	e.wantFound("ahead", store.RunSearch{JobIDs: of, Ahead: true}, ahead)
	e.wantFound("ahead, of all jobs", store.RunSearch{Ahead: true}, ahead)
	e.wantFound("started", store.RunSearch{JobIDs: of, States: []store.State{store.StateStarted}}, started)
	e.wantFound("succeeded", store.RunSearch{JobIDs: of, States: []store.State{store.StateSucceeded}}, ended)
	e.wantFound("before", store.RunSearch{JobIDs: of, Before: ended.ID}, planned, started)
	e.wantFound("that move in time", store.RunSearch{Ahead: true, Since: e.now.Add(24 * time.Hour)}, ahead)
	e.wantFound("that moves later", store.RunSearch{Ahead: true, Since: e.now.Add(60 * 24 * time.Hour)})
	e.wantFound("that move in time, and not before", store.RunSearch{Ahead: true, Until: e.now.Add(24 * time.Hour)})
	e.must(e.RemoveJob(e.ctx, job.ID))
	e.wantFound("of a removed job", store.RunSearch{JobIDs: of, States: []store.State{store.StateSucceeded, store.StateStarted}}, started, ended)
}

func searchNothing(e *reader) {
	e.mustAddRun(e.newJob().ID, store.Trigger{})
	for what, q := range map[string]store.RunSearch{
		"a time that ends before it begins":    {Since: e.at(60), Until: e.at(0)},
		"instants that do":                     {From: e.at(60), To: e.at(60)},
		"a job that cannot be":                 {JobIDs: []int64{1 << 60}},
		"a job that is not":                    {JobIDs: []int64{999_999_999}},
		"an app that is not":                   {Apps: []string{"nowhere"}},
		"what was planned in a thousand years": {Since: e.now.AddDate(1000, 0, 0)},
		"what was planned in 1970":             {Until: time.Unix(1, 0)},
		"before the first":                     {Before: 1},
	} {
		e.wantFound(what, q)
	}
}

func searchAbsurd(e *reader) {
	e.mustAddRun(e.newJob().ID, store.Trigger{})
	for field, q := range map[string]store.RunSearch{
		"Text":    {Text: strings.Repeat("x", 1<<20)},
		"Limit":   {Limit: 1 << 30},
		"Examine": {Examine: 1 << 40},
		"States":  {States: []store.State{77}},
		"JobIDs":  {JobIDs: make([]int64, 1001)},
		"Apps":    {Apps: []string{""}},
		"Handler": {Handler: "a\x00b"},
		"Slower":  {Slower: -1},
		"LateBy":  {LateBy: -1},
		"Types":   {Types: []store.TriggerType{store.TriggerAPI, "a\xff"}},
	} {
		_, err := e.reads.SearchRuns(e.ctx, q)
		e.wantFault(field, err)
	}
	for _, text := range []string{"", "\x00", strings.Repeat("x", 1<<20)} {
		_, err := e.reads.SearchRuns(e.ctx, store.RunSearch{Types: []store.TriggerType{store.TriggerType(text)}})
		e.wantFault("Types", err)
	}
	for _, at := range absurdTimes() {
		for field, q := range map[string]store.RunSearch{"Since": {Since: at}, "Until": {Until: at}, "From": {From: at}, "To": {To: at}} {
			_, err := e.reads.SearchRuns(e.ctx, q)
			e.wantFault(field, err)
		}
	}
	last := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	found := e.search(store.RunSearch{Since: time.Unix(0, 0), Until: last, From: time.Unix(0, 0), To: last})
	want(e.env, "runs of all times", len(found.Runs), 1)
}

// absurdTimes are times that no store has anything of.
func absurdTimes() []time.Time {
	year := func(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }
	return []time.Time{year(-300_000), year(-5000), time.Time{}.Add(1), time.Unix(-1, 0), year(10_000), year(300_000),
		time.Unix(1<<60, 0), time.Unix(-1<<60, 0), time.Unix(1<<63-1, 0), time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -2*3600))}
}

// wantFault checks that an error is about one field, and short.
func (e *env) wantFault(field string, err error) {
	e.Helper()
	list := store.FieldErrors(err)
	e.check(len(list) == 1 && list[0].Field == field && len(list[0].Error()) < 1000, "%s: error %v, want one about that field", field, err)
}

func lastRuns(e *reader) {
	a, b, none := e.newJob(), e.newJob(), e.newJob()
	var ofA []store.Run
	for range 4 {
		ofA = append(ofA, e.named(e.o.succeeded(e.mustAddRun(a.ID, store.Trigger{})).ID))
	}
	e.mustAddRun(a.ID, store.Trigger{})
	e.o.started(e.mustAddRun(a.ID, store.Trigger{}))
	ofB := e.named(e.o.failed(e.o.started(e.o.planned(b))).ID)
	got, err := e.reads.LastRuns(e.ctx, []int64{b.ID, none.ID, a.ID, 999_999_999, 1 << 50}, 3)
	e.must(err)
	want(e.env, "of two jobs", got, []store.Run{ofB, ofA[3], ofA[2], ofA[1]})
}

func lastRunsApart(e *reader) {
	job := e.newJob()
	run := e.named(e.o.succeeded(e.mustAddRun(job.ID, store.Trigger{})).ID)
	apart, _ := e.ahead(job.ID, 0)
	e.mustKill(apart.ID, "no")
	got, err := e.reads.LastRuns(e.ctx, []int64{job.ID}, 3)
	e.must(err)
	want(e.env, "beside one that was cancelled far ahead", got, []store.Run{run})
}

func lastRunsBounds(e *reader) {
	job := e.newJob()
	e.o.succeeded(e.o.planned(job))
	for what, n := range map[string]int{"none": 0, "less than none": -1} {
		got, err := e.reads.LastRuns(e.ctx, []int64{job.ID}, n)
		e.check(len(got) == 0 && err == nil, "%s: %d runs, %v", what, len(got), err)
	}
	got, err := e.reads.LastRuns(e.ctx, nil, 10)
	e.check(len(got) == 0 && err == nil, "of no job: %d runs, %v", len(got), err)
	for _, n := range []int{store.MostLastRuns, 1 << 40} {
		_, err = e.reads.LastRuns(e.ctx, []int64{job.ID, job.ID}, n)
		e.check(err != nil, "%d runs of two jobs: no error", n)
	}
}

func branchesOf(e *reader) {
	a := e.o.tryStart(e.o.startOf(e.o.planned(e.newJob(retried(2))), func(s *store.Start) { s.Targets = []string{remote, remoteToo}; s.Address = remote }))
	r := overWire(a.Siblings[0].ID)
	r.State = store.StateFailed
	next := e.mustNext(e.o.one(e.mustFinish(r)))
	all := []store.Run{e.named(a.Run.ID), e.named(a.Siblings[0].ID), e.named(next.ID)}
	single := e.named(e.o.planned(e.newJob()).ID)
	for _, c := range []struct {
		what        string
		of          store.Run
		limit, more int
		runs        []store.Run
	}{
		{"all", all[0], 10, 0, all}, {"as many as there are", all[1], 3, 0, all}, {"two, of the last", all[2], 2, 1, all[:2]},
		{"one", all[1], 1, 2, all[:1]}, {"none", all[0], 0, 3, nil}, {"less than none", all[0], -1, 3, nil},
		{"a single run", single, 1, 0, []store.Run{single}}, {"none of a single run", single, 0, 1, nil},
	} {
		got, more, err := e.reads.Branches(e.ctx, c.of.ID, c.limit)
		e.must(err)
		want(e.env, c.what, got, c.runs)
		want(e.env, c.what+": more", more, c.more)
	}
	_, _, err := e.reads.Branches(e.ctx, 1<<53-1, 10)
	e.wantErr("Branches of no run", err, store.ErrNotFound)
	apart, _ := e.ahead(e.newJob().ID, 0)
	got, more, err := e.reads.Branches(e.ctx, apart.ID, 10)
	e.must(err)
	want(e.env, "one that is kept apart", []int{len(got), more}, []int{1, 0})
}

// shortRuns: each list of runs leaves out the same of their texts, and nothing else.
func shortRuns(e *reader) {
	long := strings.Repeat("参数 and more ", 100)
	kid := e.newJob()
	job := e.newJob(leading(kid.ID))
	run := e.o.started(e.o.planned(job), func(s *store.Start) { s.Param = long })
	r := success(run)
	r.HandleMsg, r.TriggerMsg = long+"!", "Sent twice"
	e.mustFinish(r)
	e.o.payAll()
	child := e.runsOf(kid.ID)[0]
	_, err := e.AddAhead(e.ctx, job.ID, store.Trigger{Param: &long, At: e.now.Add(40 * 24 * time.Hour)}, e.now.Add(39*24*time.Hour))
	e.must(err)
	apart := e.runsOf(job.ID)[0]
	planned := e.mustAddRun(kid.ID, store.Trigger{Param: &long, At: e.at(500), Addresses: []string{"http://b", "http://a"}})
	lists := map[string]func(context.Context) ([]store.Run, error){
		"RunsByID": func(ctx context.Context) ([]store.Run, error) {
			return e.RunsByID(ctx, []int64{run.ID, child.ID, apart.ID, planned.ID})
		},
		"Runs":          func(ctx context.Context) ([]store.Run, error) { return e.Runs(ctx, store.RunFilter{}) },
		"Runs of a job": func(ctx context.Context) ([]store.Run, error) { return e.Runs(ctx, store.RunFilter{JobID: job.ID}) },
		"Runs of a trigger": func(ctx context.Context) ([]store.Run, error) {
			return e.Runs(ctx, store.RunFilter{TriggerID: run.ID})
		},
		"Tree":                       func(ctx context.Context) ([]store.Run, error) { return e.Tree(ctx, run.ID) },
		"Tree of one that was added": func(ctx context.Context) ([]store.Run, error) { return e.Tree(ctx, apart.ID) },
		"Branches": func(ctx context.Context) ([]store.Run, error) {
			runs, _, err := e.reads.Branches(ctx, run.ID, 10)
			return runs, err
		},
		"SearchRuns": func(ctx context.Context) ([]store.Run, error) {
			found, err := e.reads.SearchRuns(ctx, store.RunSearch{Text: "AND MORE", JobIDs: []int64{job.ID, kid.ID}})
			return found.Runs, err
		},
		"SearchRuns far ahead": func(ctx context.Context) ([]store.Run, error) {
			found, err := e.reads.SearchRuns(ctx, store.RunSearch{Ahead: true})
			return found.Runs, err
		},
		"LastRuns": func(ctx context.Context) ([]store.Run, error) { return e.reads.LastRuns(ctx, []int64{job.ID}, 10) },
		"Children": func(ctx context.Context) ([]store.Run, error) { return e.reads.Children(ctx, run.ID, 0, 10) },
		"Waiting":  func(ctx context.Context) ([]store.Run, error) { return e.reads.Waiting(ctx, store.Run{}, 10) },
	}
	for what, list := range lists {
		whole, err := list(e.ctx)
		e.must(err)
		e.check(len(whole) > 0, "%s: nothing to compare", what)
		for _, most := range []int{-1, 0, 1, 7, 100_000, math.MaxInt} {
			got, err := list(store.WithShortTexts(e.ctx, most))
			e.must(err)
			expect := slices.Clone(whole)
			for i := range expect {
				expect[i].Param, expect[i].HandleMsg, expect[i].TriggerMsg = upTo(most, expect[i].Param), upTo(most, expect[i].HandleMsg), ""
				expect[i].Addresses = nil
			}
			want(e.env, fmt.Sprintf("%s with %d characters of texts", what, most), got, expect)
		}
	}
	one, err := e.Run(store.WithShortTexts(e.ctx, 0), run.ID)
	e.must(err)
	want(e.env, "Run, which is no list", one, e.named(run.ID))
}

// upTo are the first characters of a text.
func upTo(most int, text string) string {
	chars := []rune(text)
	return string(chars[:min(max(most, 0), len(chars))])
}

func childrenOf(e *reader) {
	kids := []store.Job{e.newJob(), e.newJob(), e.newJob()}
	parent := e.o.succeeded(e.o.planned(e.newJob(leading(kids[0].ID, kids[1].ID, kids[2].ID))))
	other := e.o.succeeded(e.o.planned(e.newJob(leading(kids[0].ID))))
	e.o.payAll()
	var all []store.Run
	for _, job := range kids {
		for _, run := range e.runsOf(job.ID) {
			if run.ParentID == parent.ID {
				all = append(all, e.named(run.ID))
			}
		}
	}
	slices.SortFunc(all, func(a, b store.Run) int { return int(max(min(a.ID-b.ID, 1), -1)) })
	if len(all) != 3 {
		e.Fatalf("%d children, want three", len(all))
	}
	for _, c := range []struct {
		what  string
		after int64
		limit int
		runs  []store.Run
	}{
		{"all", 0, 10, all}, {"at most two", 0, 2, all[:2]}, {"behind the first", all[0].ID, 10, all[1:]},
		{"behind the last", all[2].ID, 10, nil}, {"none", 0, 0, nil}, {"before all", -5, 1, all[:1]},
	} {
		got, err := e.reads.Children(e.ctx, parent.ID, c.after, c.limit)
		e.must(err)
		want(e.env, c.what, got, c.runs)
	}
	got, err := e.reads.Children(e.ctx, other.ID, 0, 10)
	e.must(err)
	want(e.env, "of another parent", len(got), 1)
	got, err = e.reads.Children(e.ctx, all[0].ID, 0, 10)
	e.must(err)
	want(e.env, "of a run without children", got, nil)
}

func waitingOrder(e *reader) {
	var all []store.Run
	for i, after := range []int{500, 100, 300, 100, 700, 300} {
		job := e.jobIn(i % numShards)
		all = append(all, e.named(e.mustAddRun(job.ID, store.Trigger{At: e.at(after)}).ID))
	}
	e.o.started(e.mustAddRun(e.newJob().ID, store.Trigger{}))
	_, err := e.AddAhead(e.ctx, all[0].JobID, store.Trigger{At: e.now.Add(40 * 24 * time.Hour)}, e.now.Add(39*24*time.Hour))
	e.must(err)
	slices.SortStableFunc(all, func(a, b store.Run) int { return a.Scheduled.Compare(b.Scheduled) })
	for _, limit := range []int{1, 2, 4, 10} {
		var got []store.Run
		for after := (store.Run{}); ; after = got[len(got)-1] {
			page, err := e.reads.Waiting(e.ctx, after, limit)
			e.must(err)
			if got = append(got, page...); len(page) < limit || len(got) > 10 {
				break
			}
		}
		want(e.env, fmt.Sprint("pages of ", limit), got, all)
	}
	got, err := e.reads.Waiting(e.ctx, store.Run{}, 0)
	e.must(err)
	want(e.env, "none", got, nil)
}

func waitingAbsurd(e *reader) {
	e.mustAddRun(e.newJob().ID, store.Trigger{At: e.at(500)})
	for _, at := range absurdTimes() {
		_, err := e.reads.Waiting(e.ctx, store.Run{Scheduled: at}, 10)
		e.wantFault("Scheduled", err)
	}
}

func openRuns(e *reader) {
	a, b := e.newJob(), e.newJob(func(j *store.Job) { j.App = "other" })
	for range 3 {
		e.mustAddRun(a.ID, store.Trigger{})
	}
	e.mustAddRun(b.ID, store.Trigger{})
	e.o.started(e.mustAddRun(b.ID, store.Trigger{}))
	e.o.dispatched()
	e.o.succeeded(e.mustAddRun(b.ID, store.Trigger{}))
	open, err := e.reads.OpenRuns(e.ctx, 1000)
	e.must(err)
	want(e.env, "planned", open.Planned, map[string]int{a.App: 3, "other": 1})
	want(e.env, "running", open.Running, map[string]int{a.App: 1, "other": 1})
	e.check(!open.MorePlanned && !open.MoreRunning, "more than %+v", open)
}

func openRunsStop(e *reader) {
	for range 3 {
		e.mustAddRun(e.newJob().ID, store.Trigger{})
		e.o.running()
	}
	open, err := e.reads.OpenRuns(e.ctx, 2)
	e.must(err)
	count := func(m map[string]int) (n int) {
		for _, c := range m {
			n += c
		}
		return n
	}
	want(e.env, "planned, running", []int{count(open.Planned), count(open.Running)}, []int{2, 2})
	e.check(open.MorePlanned && open.MoreRunning, "nothing more than %+v", open)
	for _, most := range []int{3, 4, math.MaxInt} {
		open, err = e.reads.OpenRuns(e.ctx, most)
		e.must(err)
		want(e.env, fmt.Sprintf("planned, running, at most %d", most), []int{count(open.Planned), count(open.Running)}, []int{3, 3})
		e.check(!open.MorePlanned && !open.MoreRunning, "more than %+v, of which there are three each", open)
	}
	open, err = e.reads.OpenRuns(e.ctx, 0)
	e.must(err)
	want(e.env, "of none", count(open.Planned)+count(open.Running), 0)
}

func viewOfOthers(e *env) {
	r, ok := e.Store.(store.ClusterReader)
	if !ok {
		return
	}
	look := func() store.View {
		e.Helper()
		v, err := r.View(e.ctx)
		e.must(err)
		return v
	}
	empty := look()
	want(e, "nodes of an empty cluster, its shards", []int{len(empty.Nodes), len(empty.Shards)}, []int{0, numShards})
	o := e.owner("a")
	e.join("b")
	v, beat := look(), e.mustBeat("a")
	e.check(!v.Alone, "Alone is true")
	want(e, "shards", v.Shards, beat.Shards)
	want(e, "the owner of the first", v.Shards[0].Owner, o.inc)
	for i := range beat.Nodes {
		beat.Nodes[i].Beats, beat.Nodes[i].Away = 0, false
		v.Nodes[i].Beats, v.Nodes[i].Away = 0, false
	}
	want(e, "nodes", v.Nodes, beat.Nodes)
	want(e, "the server", v.Server, beat.Server)
}
