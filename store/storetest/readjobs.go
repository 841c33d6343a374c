package storetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// Lists of jobs in several orders, and counts of them. A store need not have them: then these
// cases say nothing.

func readJobCases() []testCase {
	with := func(e *env, r store.JobReader) *jobReader { return &jobReader{e, r} }
	return optionalCases(with, []optional[*jobReader]{
		{"JobsByEachField", jobsByField},
		{"JobsForAText", jobsByText},
		{"JobsInEachOrder", jobsInOrder},
		{"JobsAtMost", jobsAtMost},
		{"JobsWithShortTexts", shortJobs},
		{"JobsRefusesWhatIsAbsurd", jobsAbsurd},
		{"JobsAreCounted", jobsCounted},
		{"ValuesByPrefix", jobValues},
		{"SchedulesThatAreNotStopped", schedulesOf},
	})
}

// jobReader is a store that answers.
type jobReader struct {
	*env
	reads store.JobReader
}

func (e *jobReader) jobs(q store.JobSearch) []store.Job {
	e.Helper()
	list, err := e.reads.SearchJobs(e.ctx, q)
	e.must(err)
	return list
}

// wantJobs checks what a search finds, in whatever order.
func (e *jobReader) wantJobs(what string, q store.JobSearch, jobs ...store.Job) {
	e.Helper()
	byID := func(a, b store.Job) int { return int(a.ID - b.ID) }
	got := e.jobs(q)
	slices.SortFunc(got, byID)
	slices.SortFunc(jobs, byID)
	want(e.env, what, got, jobs)
}

// shortJobs: both lists of jobs leave out the same of their texts, and nothing else.
func shortJobs(e *jobReader) {
	long := strings.Repeat("参数 and more ", 100)
	e.newJob(func(j *store.Job) {
		j.Handler, j.Param, j.GlueType, j.GlueSource, j.GlueRemark = "", long, "GLUE_SHELL", long, "a remark"
		j.ChildKeys, j.AfterKeys, j.AfterWindow = []string{`app/"],["`, `app/","`, "app/three"}, []string{`app/\`, `app/b`}, time.Hour
	})
	e.newJob(func(j *store.Job) { j.ChildKeys, j.Tags = []string{`app/"]`}, []string{"one", "two"} })
	e.newJob()
	for what, list := range map[string]func(context.Context) ([]store.Job, error){
		"SearchJobs": func(ctx context.Context) ([]store.Job, error) { return e.reads.SearchJobs(ctx, store.JobSearch{}) },
		"Jobs":       func(ctx context.Context) ([]store.Job, error) { return e.Jobs(ctx, store.JobFilter{}) },
	} {
		whole, err := list(e.ctx)
		e.must(err)
		for _, most := range []int{-1, 0, 1, 7, 100_000, math.MaxInt} {
			got, err := list(store.WithShortTexts(e.ctx, most))
			e.must(err)
			expect := slices.Clone(whole)
			for i := range expect {
				expect[i].Param, expect[i].GlueSource = upTo(most, expect[i].Param), ""
			}
			linked, err := list(store.WithLinks(store.WithShortTexts(e.ctx, most)))
			e.must(err)
			want(e.env, fmt.Sprintf("%s with %d characters of texts, and with links", what, most), linked, expect)
			for i := range expect {
				expect[i].ChildKeys, expect[i].AfterKeys = upToOne(expect[i].ChildKeys), upToOne(expect[i].AfterKeys)
			}
			want(e.env, fmt.Sprintf("%s with %d characters of texts", what, most), got, expect)
		}
	}
}

// upToOne is the first of a list, if it has any.
func upToOne(list []string) []string { return list[:min(len(list), 1)] }

func jobsByField(e *jobReader) {
	a := e.newJob(func(j *store.Job) { j.Tags = []string{"nightly", "账单"} })
	b := e.newJob(func(j *store.Job) { j.App, j.Author, j.Tags = "other", "ann", []string{"账单"} })
	c := e.newJob(func(j *store.Job) {
		j.App, j.Handler, j.Schedule, j.Next = "third", "h2", schedule.Manual(), time.Time{}
	})
	d := e.newJob(stopped, func(j *store.Job) { j.StopReason = "finished" })
	is, not := true, false
	for what, q := range map[string]struct {
		q    store.JobSearch
		jobs []store.Job
	}{
		"all":                    {store.JobSearch{}, []store.Job{a, b, c, d}},
		"an app":                 {store.JobSearch{Apps: []string{"other"}}, []store.Job{b}},
		"two apps":               {store.JobSearch{Apps: []string{"other", "third"}}, []store.Job{b, c}},
		"a tag":                  {store.JobSearch{Tags: []string{"账单"}}, []store.Job{a, b}},
		"two tags":               {store.JobSearch{Tags: []string{"账单", "nightly"}}, []store.Job{a}},
		"a part of a tag":        {store.JobSearch{Tags: []string{"night"}}, nil},
		"a handler":              {store.JobSearch{Handler: "h2"}, []store.Job{c}},
		"an author":              {store.JobSearch{Author: "ann"}, []store.Job{b}},
		"those that are stopped": {store.JobSearch{Stopped: &is}, []store.Job{d}},
		"those that are not":     {store.JobSearch{Stopped: &not}, []store.Job{a, b, c}},
		"a reason":               {store.JobSearch{StopReason: "finished"}, []store.Job{d}},
		"no such reason":         {store.JobSearch{StopReason: "manual"}, nil},
		"several at once":        {store.JobSearch{Apps: []string{a.App}, Stopped: &not, Tags: []string{"nightly"}}, []store.Job{a}},
		"with a next instant":    {store.JobSearch{Order: store.ByNext}, []store.Job{a, b}},
	} {
		e.wantJobs(what, q.q, q.jobs...)
	}
	e.must(e.RemoveJob(e.ctx, a.ID))
	e.wantJobs("a tag of a job that is removed", store.JobSearch{Tags: []string{"nightly"}})
}

func jobsByText(e *jobReader) {
	a := e.newJob(func(j *store.Job) {
		j.Name, j.Key, j.Handler, j.Tags = "Send INVOICES — 账单", "k-100%_x", "billing", []string{"x", "Q\"4<夜>"}
	})
	e.newJob(func(j *store.Job) { j.Name, j.Key, j.Handler, j.Tags = "other", "", "other", []string{"another"} })
	for _, text := range []string{"invoices", "账单", "100%_X", "BILL", "q\"4<", "夜"} {
		e.wantJobs(text, store.JobSearch{Text: text}, a)
	}
	for _, text := range []string{"100%x", "absent", "invoices  ", "[", "\",\""} {
		e.wantJobs(text, store.JobSearch{Text: text})
	}
}

func jobsInOrder(e *jobReader) {
	var all []store.Job
	for i, name := range []string{"b", "B", "a", "账", "a", "A", "b c"} {
		all = append(all, e.newJob(func(j *store.Job) { j.Name, j.Next = name, e.at([]int{50, 10, 30, 10, 70, 30, 90}[i]) }))
	}
	e.newJob(stopped, func(j *store.Job) { j.Name, j.StopReason = "zz", "last" })
	compare := map[store.JobOrder]func(a, b store.Job) int{
		store.ByID:   func(a, b store.Job) int { return int(a.ID - b.ID) },
		store.ByName: func(a, b store.Job) int { return cmpOr(strings.Compare(a.Name, b.Name), int(a.ID-b.ID)) },
		store.ByNext: func(a, b store.Job) int { return cmpOr(a.Next.Compare(b.Next), int(a.ID-b.ID)) },
	}
	not := false
	for order, less := range compare {
		sorted := slices.Clone(all)
		slices.SortFunc(sorted, less)
		for _, limit := range []int{1, 2, 3, 10} {
			q := store.JobSearch{Order: order, Limit: limit, Stopped: &not}
			var got []store.Job
			for len(got) <= len(all) {
				page := e.jobs(q)
				if got = append(got, page...); len(page) < limit {
					break
				}
				q.After = store.Job{ID: page[limit-1].ID, Name: page[limit-1].Name, Next: page[limit-1].Next}
			}
			want(e.env, fmt.Sprintf("pages of %d in order %q", limit, order), jobIDs(got), jobIDs(sorted))
		}
	}
}

func cmpOr(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

func jobsAtMost(e *jobReader) {
	for range 103 {
		e.newJob()
	}
	want(e.env, "by default", len(e.jobs(store.JobSearch{})), 100)
	want(e.env, "at most 103", len(e.jobs(store.JobSearch{Limit: 103})), 103)
	want(e.env, "at most two", len(e.jobs(store.JobSearch{Limit: 2})), 2)
}

func jobsAbsurd(e *jobReader) {
	e.newJob()
	for field, q := range map[string]store.JobSearch{
		"Text":   {Text: strings.Repeat("x", 1<<20)},
		"Limit":  {Limit: 1 << 30},
		"Order":  {Order: "sideways"},
		"Tags":   {Tags: []string{strings.Repeat("x", 65)}},
		"Apps":   {Apps: []string{"a\x00"}},
		"Author": {Author: strings.Repeat("x", 65)},
	} {
		_, err := e.reads.SearchJobs(e.ctx, q)
		e.wantFault(field, err)
	}
	for _, name := range []string{"a\xff", "\x00", strings.Repeat("x", 256)} {
		_, err := e.reads.SearchJobs(e.ctx, store.JobSearch{Order: store.ByName, After: store.Job{ID: 1, Name: name}})
		e.wantFault("After", err)
	}
	for _, at := range absurdTimes() {
		_, err := e.reads.SearchJobs(e.ctx, store.JobSearch{Order: store.ByNext, After: store.Job{ID: 1, Next: at}})
		e.wantFault("After", err)
	}
}

func jobsCounted(e *jobReader) {
	manual := func(j *store.Job) { j.Schedule, j.Next = schedule.Manual(), time.Time{} }
	other := func(j *store.Job) { j.App = "Zother" }
	gone := e.newJob()
	app := gone.App
	e.newJob()
	e.newJob()
	e.newJob(stopped)
	e.newJob(other, manual)
	e.newJob(other, manual, stopped)
	e.must(e.RemoveJob(e.ctx, gone.ID))
	got, err := e.reads.CountJobs(e.ctx)
	e.must(err)
	want(e.env, "counts", got, []store.JobCount{{App: "Zother", Stopped: 1, Manual: 1}, {App: app, Enabled: 2, Stopped: 1}})
}

func jobValues(e *jobReader) {
	e.newJob(func(j *store.Job) {
		j.App, j.Handler, j.Author, j.Tags = "app-1", "Send", "ann", []string{"night", "Bill"}
	})
	e.newJob(func(j *store.Job) {
		j.App, j.Handler, j.Author, j.Tags = "app-2", "send_all", "ann", []string{"bill", "n%_"}
	})
	e.newJob(func(j *store.Job) { j.App, j.Handler, j.Author = "app-2", "send_all", "\uFFFDx" })
	gone := e.newJob(func(j *store.Job) { j.App, j.Author = "app-3", "" })
	e.must(e.RemoveJob(e.ctx, gone.ID))
	for _, c := range []struct {
		field, prefix string
		limit         int
		want          []string
	}{
		{store.FieldApp, "", 10, []string{"app-1", "app-2"}},
		{store.FieldApp, "", 1, []string{"app-1"}},
		{store.FieldApp, "app-2", 10, []string{"app-2"}},
		{store.FieldApp, "pp", 10, nil},
		{store.FieldHandler, "SEND", 10, []string{"Send", "send_all"}},
		{store.FieldAuthor, "a", 10, []string{"ann"}},
		{store.FieldTag, "b", 10, []string{"Bill", "bill"}},
		{store.FieldTag, "n", 10, []string{"n%_", "night"}},
		{store.FieldTag, "n%", 10, []string{"n%_"}},
		{store.FieldTag, "n_", 10, nil},
		{store.FieldTag, "", 0, nil},
		{store.FieldAuthor, "\uFFFD", 10, []string{"\uFFFDx"}},
		{store.FieldAuthor, "\xff", 10, nil},
		{store.FieldApp, "app-1\x00", 10, nil},
		{store.FieldApp, strings.Repeat("a", 1<<20), 10, nil},
	} {
		got, err := e.reads.JobValues(e.ctx, c.field, c.prefix, c.limit)
		e.must(err)
		want(e.env, fmt.Sprintf("%s that begin with %q", c.field, c.prefix), got, c.want)
	}
	_, err := e.reads.JobValues(e.ctx, "password", "", 10)
	e.check(err != nil, "a field that is none: no error")
}

func schedulesOf(e *jobReader) {
	var all []store.Job
	for range 3 {
		j := e.newJob(func(j *store.Job) {
			j.Schedule, j.MaxRuns = schedule.Cron("0 0 3 * * ?").In("Asia/Shanghai").WithDST(schedule.DSTQuartz), 7
			j.NotBefore, j.NotAfter = e.at(-100), e.at(100_000)
		})
		all = append(all, store.Job{ID: j.ID, App: j.App, Key: j.Key, Name: j.Name, Schedule: j.Schedule, NotBefore: j.NotBefore, NotAfter: j.NotAfter, MaxRuns: 7, Next: j.Next})
	}
	e.newJob(stopped)
	e.newJob(func(j *store.Job) { j.Schedule, j.Next = schedule.Manual(), time.Time{} })
	slices.SortFunc(all, func(a, b store.Job) int { return int(a.ID - b.ID) })
	for _, c := range []struct {
		after int64
		limit int
		want  []store.Job
	}{{0, 10, all}, {0, 2, all[:2]}, {all[0].ID, 10, all[1:]}, {all[2].ID, 10, nil}, {0, 0, nil}} {
		got, err := e.reads.Schedules(e.ctx, c.after, c.limit)
		e.must(err)
		want(e.env, fmt.Sprintf("after %d at most %d", c.after, c.limit), got, c.want)
	}
}
