package console

// The list of jobs.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

const (
	jobsOnAPage = 50
	marksOfAJob = 10
)

// jobsPage is the list of jobs.
type jobsPage struct {
	Filter   jobFilter
	Presets  []preset
	Apps     []string // to choose from
	Types    []string
	Jobs     []jobLine
	Chips    []chip
	Pages    web.Pager
	GoOn     string // where a search goes on that has stopped early
	Adds     bool   // the user may add jobs somewhere
	Acts     bool   // the user may start and stop some
	Edits    bool   // and tag and remove some
	Partial  bool   // the search stopped early
	Examined int
	MoreFail bool // there may be more jobs that are failing
	MoreRuns bool // there may be more running than was counted
	Said     string
	Export   string // where all jobs of the list are had as a file
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
	Status  string // "on", "off", "done", "broken" or "manual"
	Running int
	Marks   []mark // of its last runs, the oldest first
	Timed   bool   // it is known how long some of these took:
	Median  time.Duration
}

// Anchor is how scripts and links know a line.
func (l jobLine) Anchor() string { return "job-" + strconv.FormatInt(l.ID, 10) }

// mark is how a run has ended.
type mark struct {
	ID    int64
	State string
	At    time.Time
}

// Outcomes says in words how runs have ended, as "last 10 runs: 8 succeeded, 2 failed".
func (p *page) Outcomes(marks []mark) string {
	return p.T("jobs.outcomes", "n", len(marks)) + ": " + p.States(marks)
}

// States says how many there are of each state, as "8 succeeded, 2 failed".
func (p *page) States(marks []mark) string {
	var list tally
	for _, m := range marks {
		list.add(p.T("state."+m.State), 1)
	}
	return list.String()
}

// tally is how many there are of what is called the same, as two states of runs under way are, in the order
// in which each was added first.
type tally struct {
	names []string
	of    map[string]int
}

func (t *tally) add(name string, n int) {
	if t.of == nil {
		t.of = map[string]int{}
	}
	if _, has := t.of[name]; !has {
		t.names = append(t.names, name)
	}
	t.of[name] += n
}

// String says it in words, as "8 succeeded, 2 failed".
func (t *tally) String() string {
	words := make([]string, len(t.names))
	for i, name := range t.names {
		words[i] = fmt.Sprint(t.of[name], " ", name)
	}
	return strings.Join(words, ", ")
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
func (q *request) home() error { return q.Redirect("overview") }

func (q *request) jobs() error {
	reader, f, err := q.asksForJobs()
	if err != nil {
		return err
	}
	if to, err := q.typedNumber(); to != "" || err != nil {
		if err != nil {
			return err
		}
		return q.Redirect(to)
	}
	search, sight, err := q.searchOf(&f)
	if err != nil {
		return err
	}
	p := jobsPage{Filter: f, Apps: sight.apps, Types: scheduleTypes(), Chips: q.chips("jobs", jobFilters), Adds: q.mayAdd(), Acts: q.mayAnywhere(operate), Edits: q.mayAnywhere(edit), Said: q.said()}
	if err := q.Cursor("after", f.Order, &search.After); err != nil {
		return err
	}
	if sight.all && !q.IsPart() {
		if p.Apps, err = q.appNames(); err != nil {
			return err
		}
	}
	q.learnCounts()
	p.Presets = q.presetCounts(q.jobPresets(), []string{"text", "app", "type", "handler", "author", "tag"})
	if sight.nothing {
		return q.showLive("jobs", "", time.Time{}, p)
	}
	read := func(ctx context.Context) (jobsListed, error) {
		return q.under(store.WithShortTexts(ctx, 0)).listJobs(reader, &f, search)
	}
	listed, of, err := sharedAt(q, fmt.Sprintf("jobs %s %#v %q", sightKey(sight.apps, sight.all), f, q.Query("after")), read)
	if err != nil {
		return asked(err)
	}
	found := listed.found
	next := ""
	if last := found.after; last != nil {
		next = web.CursorOf(f.Order, last)
	}
	p.Pages = q.Pager("after", next)
	p.Partial, p.Examined, p.MoreFail = found.examined > 0, found.examined, found.more
	p.GoOn = p.Pages.GoOn(p.Partial)
	p.MoreRuns = listed.more
	for _, line := range listed.lines {
		line.Words = line.Schedule.DescribeIn(q.look.Language.Tag)
		p.Jobs = append(p.Jobs, line)
	}
	p.Export = strings.Replace(q.With(map[string]string{"after": "", web.Trail: "", "seen": "", "said": "", "rows": ""}), "jobs", "jobs/export", 1)
	poll := ""
	if q.Query("after") == "" {
		poll = q.With(map[string]string{"seen": "", "said": ""})
	}
	since := of.At
	if q.counts != nil && !since.IsZero() && q.counts.at.After(since) {
		since = q.counts.at
	}
	return q.showLive("jobs", poll, since, p)
}

// asksForJobs is whom a list of jobs is asked of, and for which.
func (q *request) asksForJobs() (reader xxljob.JobReader, f jobFilter, err error) {
	reader, ok := q.Store.(xxljob.JobReader)
	if !ok {
		return nil, f, notOffered("xxljob.JobReader")
	}
	f, err = q.jobFilter()
	return reader, f, err
}

// jobsListed is a page of the list as it was read, which those share who look at the same.
type jobsListed struct {
	found jobsFound
	lines []jobLine
	more  bool
}

// listJobs reads a page of the list.
func (q *request) listJobs(reader xxljob.JobReader, f *jobFilter, search xxljob.JobSearch) (l jobsListed, err error) {
	if l.found, err = q.findJobs(reader, f, search); err != nil {
		return l, err
	}
	l.lines, l.more, err = q.jobLines(l.found.jobs)
	l.found.jobs = nil
	if last := l.found.after; last != nil {
		l.found.after = &xxljob.Job{ID: last.ID, Name: last.Name, Next: last.Next}
	}
	return l, err
}

// sight are the apps whose jobs a user sees.
type sight struct {
	apps    []string // those that can be told; of all there are, none
	all     bool
	nothing bool // of a list: the user sees none of what is asked for
}

// searchOf is what the store is asked for by filters, of the jobs that the user sees.
func (q *request) searchOf(f *jobFilter) (search xxljob.JobSearch, s sight, err error) {
	if s.apps, s.all, err = q.visibleApps(); err != nil {
		return search, s, err
	}
	search = xxljob.JobSearch{Apps: slices.Clone(s.apps), Handler: f.Handler, Author: f.Author, Text: f.Text, Order: f.order}
	if f.Tag != "" {
		search.Tags = []string{f.Tag}
	}
	if f.State != "" {
		off := f.State != "on"
		search.Stopped = &off
	}
	if f.App != "" {
		search.Apps = []string{f.App}
	}
	s.nothing = !s.all && (len(s.apps) == 0 || f.App != "" && !slices.Contains(s.apps, f.App))
	return search, s, nil
}

// jobStates are those that one may ask for: "self" of a job that its schedule, or the scheduler, has
// stopped, "hand" of one that somebody has.
var jobStates = []string{"", "on", "off", "self", "hand"}

// jobFilters are the names of the filters in the address.
var jobFilters = []string{"text", "app", "state", "type", "failing", "handler", "author", "tag"}

// jobFilter reads the filters of the list from the address of the page.
func (q *request) jobFilter() (jobFilter, error) {
	if err := q.ValidQuery(jobFilters); err != nil {
		return jobFilter{}, err
	}
	f := jobFilter{Text: q.Query("text"), App: q.Query("app"), State: q.Query("state"), Handler: q.Query("handler"), Author: q.Query("author"), Tag: q.Query("tag"), Order: q.Query("order"), Type: q.Query("type"), Failing: q.Query("failing"), Rows: q.Query("rows")}
	f.Order, f.order = orderOf(f.Order)
	if f.Type != "" && !slices.Contains(scheduleTypes(), f.Type) {
		return f, web.BadRequest(fmt.Errorf("type %q", f.Type))
	}
	if !slices.Contains(jobStates, f.State) {
		return f, web.BadRequest(fmt.Errorf("state %q", f.State))
	}
	f.rows = jobsOnAPage
	if f.Rows == "200" || f.Rows == "500" {
		f.rows, _ = strconv.Atoi(f.Rows)
	}
	return f, nil
}

// typedNumber is the page of the run or the job whose ID was typed where texts are looked for, or
// "".
func (q *request) typedNumber() (string, error) {
	to, err := q.typedRun()
	id, no := strconv.ParseInt(strings.TrimSpace(q.Query("text")), 10, 64)
	if err != nil || to != "" || no != nil || id <= 0 || q.IsPart() {
		return to, err
	}
	found, err := q.briefly().jobsByID([]int64{id})
	if j, there := found[id]; there && allowed(q.user, see, j.App) {
		to = "jobs/" + strconv.FormatInt(id, 10)
	}
	return to, err
}

// jobLines are what the list says of jobs, but for the words of their schedules.
func (q *request) jobLines(jobs []xxljob.Job) (lines []jobLine, more bool, err error) {
	lines = make([]jobLine, len(jobs))
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		lines[i] = jobLine{Job: j, Status: statusOf(&jobs[i])}
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
	case j.Stopped && (j.StopReason == store.StopFinished || strings.HasPrefix(j.StopReason, store.StopFinished+":")):
		return "done"
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
		of, err := reader.JobValues(ctx, store.FieldApp, "", math.MaxInt32)
		if err != nil {
			return nil, err
		}
		names = append(names, of...)
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

// chips are the filters that are set.
func (q *request) chips(page string, names []string) (list []chip) {
	for _, name := range names {
		if v := q.Query(name); v != "" {
			list = append(list, chip{q.text(page + ".filter." + name), q.filterText(page, name, v), q.Address(map[string][]string{name: nil, "after": nil, "before": nil, web.Trail: nil, "said": nil})})
		}
	}
	return list
}

// filterText is the value of a filter in words, where it is one of a few.
func (q *request) filterText(page, name, value string) string {
	key := page + "." + name + "." + value
	if q.look.Language.Has(key) {
		return q.text(key)
	}
	if key := "option.type." + value; page == "jobs" && name == "type" && q.look.Language.Has(key) {
		return q.text(key)
	}
	if name == "state" && q.look.Language.Has("state."+value) {
		return q.text("state." + value)
	}
	return value
}
