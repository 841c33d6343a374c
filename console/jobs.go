package console

// The list of jobs.

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

const (
	jobsOnAPage = 50
	marksOfAJob = 10
)

// jobsPage is the list of jobs.
type jobsPage struct {
	Filter   jobFilter
	Apps     []string // to choose from
	Types    []string
	Jobs     []jobLine
	Chips    []chip
	Older    string // the address of the next page, or ""
	First    string // of the first page, where this is another
	Adds     bool   // the user may add jobs somewhere
	Acts     bool   // the user may start and stop some
	Removes  bool   // and remove some
	Partial  bool   // the search stopped early
	Examined int
	MoreRuns bool // there may be more running than was counted
	Said     string
}

// jobFilter is which jobs are wanted, as the address of the page says.
type jobFilter struct {
	Text, App, State, Handler, Author, Tag, Order string
	Type, Failing, Rows                           string
	rows                                          int
	order                                         store.JobOrder
}

// jobLine is a line of the list.
type jobLine struct {
	xxljob.Job
	Words   string // the schedule
	Status  string // "on", "off", "broken" or "manual"
	Running int
	Marks   []mark // of its last runs, the oldest first
	Timed   bool   // it is known how long some of these took:
	Median  time.Duration
}

// mark is how a run has ended.
type mark struct {
	ID    int64
	State string
	At    time.Time
}

// chip is a filter that is set, with the address of the page without it.
type chip struct{ Name, Value, Without string }

// orderOf is the order of a list that the address of a page names; by name where it names none.
func orderOf(name string) (string, store.JobOrder) {
	switch name {
	case "id":
		return name, store.ByID
	case "next":
		return name, store.ByNext
	}
	return "name", store.ByName
}

// home leads to the list of jobs.
func (q *request) home() error { return q.redirect("jobs") }

func (q *request) jobs() error {
	reader, ok := q.Store.(xxljob.JobReader)
	if !ok {
		return notOffered("xxljob.JobReader")
	}
	f := q.jobFilter()
	apps, all, err := q.visibleApps()
	if err != nil {
		return err
	}
	p := jobsPage{Filter: f, Types: scheduleTypes(), Chips: q.chips("jobs", []string{"text", "app", "state", "type", "failing", "handler", "author", "tag"}), Adds: q.mayAdd(), Acts: q.mayAnywhere(operate), Removes: q.mayAnywhere(edit), Said: q.said()}
	search := xxljob.JobSearch{Apps: apps, Handler: f.Handler, Author: f.Author, Text: f.Text, Order: f.order}
	if f.Tag != "" {
		search.Tags = []string{f.Tag}
	}
	if f.State == "on" || f.State == "off" {
		off := f.State == "off"
		search.Stopped = &off
	}
	if f.App != "" {
		search.Apps = []string{f.App}
	}
	if err := q.cursor("after", f.Order, &search.After); err != nil {
		return err
	}
	p.Apps = slices.Clone(apps)
	if all {
		if p.Apps, err = q.appNames(); err != nil {
			return err
		}
	}
	if !all && f.App != "" && !slices.Contains(apps, f.App) || !all && len(apps) == 0 {
		return q.show("jobs", http.StatusOK, p)
	}
	found, err := q.findJobs(reader, &f, search)
	if err != nil {
		return asked(err)
	}
	if q.query("after") != "" {
		p.First = q.with(map[string]string{"after": "", "said": ""})
	}
	if last := found.after; last != nil {
		p.Older = q.with(map[string]string{"after": cursorOf(f.Order, xxljob.Job{ID: last.ID, Name: last.Name, Next: last.Next}), "said": ""})
	}
	p.Partial, p.Examined = found.examined > 0, found.examined
	if p.Jobs, p.MoreRuns, err = q.jobLines(found.jobs); err != nil {
		return err
	}
	return q.show("jobs", http.StatusOK, p)
}

// jobFilter reads the filters of the list from the address of the page.
func (q *request) jobFilter() jobFilter {
	f := jobFilter{Text: q.query("text"), App: q.query("app"), State: q.query("state"), Handler: q.query("handler"), Author: q.query("author"), Tag: q.query("tag"), Order: q.query("order"), Type: q.query("type"), Failing: q.query("failing"), Rows: q.query("rows")}
	f.Order, f.order = orderOf(f.Order)
	if !slices.Contains(scheduleTypes(), f.Type) {
		f.Type = ""
	}
	f.rows = jobsOnAPage
	if f.Rows == "200" || f.Rows == "500" {
		f.rows, _ = strconv.Atoi(f.Rows)
	}
	return f
}

// jobLines are what the list says of jobs.
func (q *request) jobLines(jobs []xxljob.Job) (lines []jobLine, more bool, err error) {
	lines = make([]jobLine, len(jobs))
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		lines[i] = jobLine{Job: j, Words: j.Schedule.DescribeIn(q.look.language.Tag), Status: statusOf(&jobs[i])}
		ids[i] = j.ID
	}
	runs, ok := q.Store.(xxljob.RunReader)
	if !ok || len(jobs) == 0 {
		return lines, false, nil
	}
	last, err := runs.LastRuns(q.ctx, ids, marksOfAJob)
	if err != nil {
		return nil, false, err
	}
	took := map[int64][]time.Duration{}
	for _, r := range slices.Backward(last) {
		l := &lines[slices.Index(ids, r.JobID)]
		l.Marks = append(l.Marks, mark{r.ID, stateKey(r.State), r.Scheduled})
		if !r.Started.IsZero() {
			took[r.JobID] = append(took[r.JobID], r.Ended.Sub(r.Started))
		}
	}
	for i := range lines {
		list := took[lines[i].ID]
		lines[i].Timed, lines[i].Median = len(list) > 0, quantiles(list)[0]
	}
	more, err = q.running(lines, ids)
	return lines, more, err
}

// statusOf is what a job is doing, as lists say it.
func statusOf(j *xxljob.Job) string {
	switch {
	case j.Stopped && j.StopReason != "":
		return "broken"
	case j.Stopped:
		return "off"
	case j.Schedule.Type == xxljob.ScheduleNone:
		return "manual"
	}
	return "on"
}

// visibleApps are the apps whose jobs and runs the user sees; all says that these are all there
// are, and a list need not be filtered.
func (q *request) visibleApps() (apps []string, all bool, err error) {
	if _, all := visible(q.user, nil); all { // whatever apps there are
		return nil, true, nil
	}
	var known []string
	if _, star := q.user.Apps["*"]; star {
		if known, err = q.appNames(); err != nil {
			return nil, false, err
		}
	}
	for app := range q.user.Apps {
		if app != "*" && !slices.Contains(known, app) {
			known = append(known, app)
		}
	}
	slices.Sort(known)
	apps, all = visible(q.user, known)
	return apps, all, nil
}

// appNames are the apps that there are: those that somebody has entered, and those of jobs.
func (q *request) appNames() ([]string, error) {
	names, err := shared(q, "apps", q.readAppNames)
	return slices.Clone(names), err
}

func (q *request) readAppNames(ctx context.Context) ([]string, error) {
	groups, err := q.Store.Groups(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, g := range groups {
		names = append(names, g.App)
	}
	if reader, ok := q.Store.(xxljob.JobReader); ok {
		counts, err := reader.CountJobs(ctx)
		if err != nil {
			return nil, err
		}
		for _, c := range counts {
			names = append(names, c.App)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// mayAdd reports whether there is an app that the user may add jobs to.
func (q *request) mayAdd() bool { return q.mayAnywhere(edit) }

// mayAnywhere reports whether there is an app in which the user may do something.
func (q *request) mayAnywhere(do action) bool {
	if q.ReadOnly {
		return false
	}
	if q.user.Admin {
		return true
	}
	for _, role := range q.user.Apps {
		if ranks[role] >= do {
			return true
		}
	}
	return false
}

// with is the page's own address with other values in its query; an empty one is left out.
func (q *request) with(values map[string]string) string {
	all := q.r.URL.Query()
	for name, v := range values {
		if v == "" {
			all.Del(name)
		} else {
			all.Set(name, v)
		}
	}
	if len(all) == 0 {
		return q.root() + q.path
	}
	return q.root() + q.path + "?" + all.Encode()
}

// chips are the filters that are set.
func (q *request) chips(page string, names []string) (list []chip) {
	for _, name := range names {
		if v := q.query(name); v != "" {
			list = append(list, chip{q.text(page + ".filter." + name), q.filterText(page, name, v), q.with(map[string]string{name: "", "after": "", "before": "", "said": ""})})
		}
	}
	return list
}

// filterText is the value of a filter in words, where it is one of a few.
func (q *request) filterText(page, name, value string) string {
	key := page + "." + name + "." + value
	if q.look.language.Has(key) {
		return q.text(key)
	}
	if key := "option.type." + value; page == "jobs" && name == "type" && q.look.language.Has(key) {
		return q.text(key)
	}
	if name == "state" && q.look.language.Has("state."+value) {
		return q.text("state." + value)
	}
	return value
}
