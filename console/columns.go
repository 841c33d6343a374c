package console

// The tables of lists: which columns each has, and which of these somebody sees. A column is said
// once, in tables: its heading, its cells, whether it may be chosen, and what a narrow screen has
// no room for all go by that. What stands in a cell is the template with the names of the list and
// of the column, as "jobs/next"; it is given a cell.

import (
	"bytes"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
)

// tableOf is the table of a list.
type tableOf struct {
	class   string // of the table, for the style of what it alone has
	room    int    // for so many of the columns that may be chosen; more are set closer. 0 for any number
	columns []column
}

// column is a column of a table.
type column struct {
	Name, Key string // Key is that of its heading
	Class     string // of its heading and its cells
	Unseen    bool   // its heading is for readers of the screen

	there  presence
	within string // the column in whose cells it stands, where it has none of its own
	drop   int    // where there is little room it is left out, 1 before 2, unless somebody has chosen others
}

// presence is when a column is there.
type presence int

const (
	always   presence = iota // it says what a line is about, or the list has nothing to choose
	usual                    // where nobody has chosen others
	onChoice                 // where somebody has chosen it
)

// tables are those of each list.
var tables = map[string]tableOf{
	"jobs": {class: "joblist", room: 9, columns: []column{
		{Name: "tick", Key: "jobs.tick", Unseen: true},
		{Name: "id", Key: "field.id", Class: "num mono", there: onChoice},
		{Name: "name", Key: "jobs.name"},
		{Name: "tags", Key: "field.tags", there: usual, within: "name"},
		{Name: "app", Key: "jobs.app", there: usual},
		{Name: "key", Key: "field.key", Class: "mono", there: onChoice},
		{Name: "handler", Key: "field.handler", Class: "mono", there: onChoice},
		{Name: "schedule", Key: "jobs.schedule", there: usual, drop: 2},
		{Name: "next", Key: "jobs.next", there: usual},
		{Name: "running", Key: "jobs.running", Class: "num", there: usual, drop: 1},
		{Name: "last", Key: "jobs.last", there: usual},
		{Name: "median", Key: "jobs.median", Class: "num", there: usual, drop: 1},
		{Name: "author", Key: "field.author", there: onChoice},
		{Name: "state", Key: "jobs.state", there: usual},
		{Name: "menu", Key: "row.menu", Unseen: true},
	}},
	"runs": {class: "runs", room: 5, columns: []column{
		{Name: "tick", Key: "runs.choose", Unseen: true},
		{Name: "state", Key: "field.state"},
		{Name: "job", Key: "field.job", there: usual},
		{Name: "scheduled", Key: "field.scheduled"},
		{Name: "late", Key: "runs.late", Class: "num", there: usual, drop: 2},
		{Name: "took", Key: "runs.took", Class: "num", there: usual},
		{Name: "result", Key: "field.result", Class: "mono", there: usual},
		{Name: "run", Key: "runs.run", Class: "mono", there: onChoice},
		{Name: "type", Key: "field.trigger", there: onChoice},
		{Name: "handler", Key: "field.handler", Class: "mono", there: onChoice},
		{Name: "created", Key: "field.created", there: onChoice},
		{Name: "where", Key: "runs.where", Class: "mono", there: onChoice},
		{Name: "param", Key: "field.param", Class: "mono", there: onChoice},
		{Name: "menu", Key: "row.menu", Unseen: true},
	}},
	"changes": {columns: []column{
		{Name: "at", Key: "changes.at"},
		{Name: "actor", Key: "changes.actor", there: usual},
		{Name: "client", Key: "changes.client", Class: "mono", there: usual, drop: 1},
		{Name: "verb", Key: "changes.verb"},
		{Name: "object", Key: "changes.object"},
		{Name: "app", Key: "changes.filter.app", there: usual, within: "object"},
		{Name: "what", Key: "changes.what"},
	}},
	"users": {columns: []column{
		{Name: "name", Key: "login.name"},
		{Name: "title", Key: "users.shown", drop: 1},
		{Name: "rights", Key: "users.rights"},
		{Name: "lastlogin", Key: "users.lastlogin"},
		{Name: "passwordset", Key: "field.passwordset", drop: 1},
		{Name: "status", Key: "users.state"},
	}},
	"tokens": {columns: []column{
		{Name: "name", Key: "tokens.name"},
		{Name: "apps", Key: "tokens.apps.short"},
		{Name: "until", Key: "tokens.until"},
		{Name: "used", Key: "tokens.used"},
		{Name: "by", Key: "tokens.by", drop: 1},
		{Name: "end", Key: "row.menu", Unseen: true},
	}},
	"usertokens": {columns: []column{
		{Name: "name", Key: "tokens.name"},
		{Name: "apps", Key: "tokens.apps.short"},
		{Name: "until", Key: "tokens.until"},
		{Name: "used", Key: "tokens.used"},
		{Name: "added", Key: "users.added", drop: 1},
		{Name: "end", Key: "row.menu", Unseen: true},
	}},
	"sessions": {columns: []column{
		{Name: "began", Key: "session.began"},
		{Name: "seen", Key: "session.seen"},
		{Name: "client", Key: "changes.client", Class: "mono"},
		{Name: "browser", Key: "session.browser"},
		{Name: "end", Key: "row.menu", Unseen: true},
	}},
	// On the page of a job, and of a run:
	"jobruns": {class: "runs", columns: []column{
		{Name: "state", Key: "field.state"},
		{Name: "job", Key: "field.job"},
		{Name: "scheduled", Key: "field.scheduled"},
		{Name: "late", Key: "runs.late", Class: "num", drop: 2},
		{Name: "took", Key: "runs.took", Class: "num"},
		{Name: "result", Key: "field.result", Class: "mono"},
		{Name: "run", Key: "runs.run", Class: "mono", drop: 1},
	}},
	"skipped": {columns: []column{
		{Name: "run", Key: "runs.run", Class: "mono"},
		{Name: "first", Key: "job.skipped.first"},
		{Name: "count", Key: "job.skipped.count", Class: "num"},
		{Name: "reason", Key: "run.reason"},
	}},
	"jobchanges": {class: "jobchanges", columns: []column{
		{Name: "at", Key: "changes.at"},
		{Name: "version", Key: "field.version", Class: "num"},
		{Name: "actor", Key: "changes.actor"},
		{Name: "verb", Key: "changes.verb"},
		{Name: "what", Key: "changes.what"},
	}},
	// Of the page of executors: apps, the executors of one, nodes and shards.
	"apps": {class: "cluster", columns: []column{
		{Name: "state", Key: "field.state"},
		{Name: "app", Key: "executors.app"},
		{Name: "places", Key: "executors.places"},
		{Name: "handlers", Key: "executors.handlers", Class: "mono", drop: 1},
		{Name: "jobs", Key: "executors.jobs", Class: "num"},
		{Name: "running", Key: "jobs.running", Class: "num"},
		{Name: "waiting", Key: "executors.due", Class: "num", drop: 2},
	}},
	"places": {class: "cluster", columns: []column{
		{Name: "state", Key: "field.state"},
		{Name: "where", Key: "runs.where", Class: "mono"},
		{Name: "kind", Key: "executors.kind"},
		{Name: "seen", Key: "executors.seen"},
		{Name: "handlers", Key: "executors.handlers", Class: "mono", drop: 1},
		{Name: "running", Key: "jobs.running", Class: "num"},
	}},
	"nodes": {class: "cluster", columns: []column{
		{Name: "state", Key: "field.state"},
		{Name: "node", Key: "executors.node", Class: "mono"},
		{Name: "since", Key: "executors.since"},
		{Name: "apps", Key: "executors.apps"},
		{Name: "shards", Key: "executors.shards", Class: "num"},
		{Name: "running", Key: "jobs.running", Class: "num"},
		{Name: "knows", Key: "executors.knows", drop: 2},
	}},
	"shards": {class: "cluster", columns: []column{
		{Name: "shard", Key: "executors.shard", Class: "num"},
		{Name: "state", Key: "field.state"},
		{Name: "node", Key: "executors.node", Class: "mono"},
		{Name: "epoch", Key: "executors.epoch", Class: "num"},
		{Name: "waiting", Key: "executors.due", Class: "num"},
	}},
	"timetable": {class: "timetable", columns: []column{
		{Name: "name", Key: "jobs.name"},
		{Name: "schedule", Key: "jobs.schedule", drop: 1},
		{Name: "past", Key: "timetable.past"},
		{Name: "ahead", Key: "timetable.ahead"},
	}},
	// Of what is done with several jobs or runs at once, and of what two have changed in a form.
	"bulkjobs": {columns: []column{
		{Name: "id", Key: "field.id", Class: "mono"},
		{Name: "name", Key: "jobs.name"},
		{Name: "tags", Key: "field.tags"},
		{Name: "app", Key: "jobs.app"},
		{Name: "effect", Key: "bulk.effect"},
		{Name: "result", Key: "bulk.result"},
	}},
	"bulkruns": {columns: []column{
		{Name: "run", Key: "runs.run", Class: "mono"},
		{Name: "job", Key: "field.job"},
		{Name: "state", Key: "field.state"},
		{Name: "result", Key: "runbulk.result"},
	}},
	"conflict": {columns: []column{
		{Name: "field", Key: "form.conflict.field"},
		{Name: "before", Key: "form.conflict.before"},
		{Name: "theirs", Key: "form.conflict.theirs"},
		{Name: "mine", Key: "form.conflict.mine"},
	}},
	"branches": {class: "branches", columns: []column{
		{Name: "run", Key: "runs.run"},
		{Name: "branch", Key: "run.branch"},
		{Name: "state", Key: "field.state"},
		{Name: "span", Key: "run.span"},
		{Name: "took", Key: "runs.took", Class: "num"},
		{Name: "where", Key: "runs.where", Class: "mono"},
		{Name: "result", Key: "field.result", Class: "mono"},
	}},
}

// choosable are the columns of a list that somebody may choose; none where there is no such list.
func choosable(list string) []column {
	return slices.DeleteFunc(slices.Clone(tables[list].columns), func(c column) bool { return c.there == always })
}

// choosableNames are the names of those of each list that has any.
func choosableNames() map[string][]string {
	all := map[string][]string{}
	for list := range tables {
		for _, c := range choosable(list) {
			all[list] = append(all[list], c.Name)
		}
	}
	return all
}

// Shown are the columns of a list that are there of those that one may choose, by name.
func (p *page) Shown(list string) map[string]bool {
	names, is := p.q.look.Chosen.Columns[list]
	shown := map[string]bool{}
	for _, c := range choosable(list) {
		if c.there == usual && !is || slices.Contains(names, c.Name) {
			shown[c.Name] = true
		}
	}
	return shown
}

// Choosable are all columns of a list that one may choose.
func (p *page) Choosable(list string) []column { return choosable(list) }

// table is the table of a list as a template shows it.
type table struct {
	*page
	List, Class string
	Columns     []shownColumn // that have cells of their own
	Has         map[string]bool
	Rows        any
	day         string       // of the row before
	row, in     bytes.Buffer // the cells of a row, and what is in one of them: kept for the next
}

// shownColumn is a column that is there: how its cells begin, those with something in them and those of
// which there is nothing to say, and the template of what is in them.
type shownColumn struct {
	column
	begins, blank string
	cells         *template.Template
}

// noValue is what stands in a cell of which there is nothing to say. Below a heading it says so; where rows
// have no headings, on a narrow screen, the style leaves the cell out.
const noValue = "–"

// cell is what the template of a cell is given.
type cell struct {
	*table
	Row any
}

// Table is the table of a list with these rows, without the columns that are named.
func (p *page) Table(list string, rows any, without ...string) (*table, error) {
	of := tables[list]
	t := &table{page: p, List: list, Class: strings.TrimSpace("rows " + of.class), Has: p.Shown(list), Rows: rows}
	if t.Many() {
		t.Class += " many"
	}
	_, own := p.q.look.Chosen.Columns[list]
	for _, c := range of.columns {
		if c.there != always && !t.Has[c.Name] || c.within != "" || slices.Contains(without, c.Name) {
			continue
		}
		classes := []string{"c-" + c.Name}
		if c.Class != "" {
			classes = append(classes, c.Class)
		}
		if c.drop > 0 && !own {
			classes = append(classes, fmt.Sprint("drop", c.drop))
		}
		c.Class = strings.Join(classes, " ")
		cells := p.q.pages[p.Lang()].Lookup(list + "/" + c.Name)
		if cells == nil {
			return nil, fmt.Errorf("the cells of the column %s of %s have no template", c.Name, list)
		}
		t.Columns = append(t.Columns, shownColumn{c, `<td class="` + c.Class + `">`, `<td class="` + c.Class + ` no">`, cells})
	}
	return t, nil
}

// Many reports whether so many columns are there that the list goes sideways in its box, by keys too.
func (t *table) Many() bool {
	room := tables[t.List].room
	return room > 0 && len(t.Has) > room
}

// Page is the page that the table is on.
func (t *table) Page() *page { return t.page }

// Heading is what stands at the top of a column beside its name, if anything.
func (t *table) Heading(c shownColumn) (template.HTML, error) {
	return t.q.part(t.List+"/"+c.Name+" heading", t)
}

// Cells are those of a row.
func (t *table) Cells(row any) (template.HTML, error) {
	b, in := &t.row, &t.in
	b.Reset()
	of := &cell{t, row}
	for i := range t.Columns {
		c := &t.Columns[i]
		in.Reset()
		if err := c.cells.Execute(in, of); err != nil {
			return "", err
		}
		if bytes.Equal(in.Bytes(), []byte(noValue)) {
			b.WriteString(c.blank)
		} else {
			b.WriteString(c.begins)
		}
		b.Write(in.Bytes())
		b.WriteString("</td>")
	}
	return template.HTML(b.String()), nil // of templates, which have escaped it
}

// Anchor is how scripts and links know a row, or "".
func (t *table) Anchor(row any) string {
	if a, has := row.(interface{ Anchor() string }); has {
		return a.Anchor()
	}
	return ""
}

// Above is the day that a row of a list of runs is of, where the row before was of another one;
// before the first was today.
func (t *table) Above(row any) string {
	r, is := row.(runRow)
	if !is || r.Scheduled.IsZero() {
		return ""
	}
	if t.day == "" {
		t.day = t.Now.In(t.q.look.Zone).Format(time.DateOnly)
	}
	day := r.Scheduled.In(t.q.look.Zone).Format(time.DateOnly)
	if day == t.day {
		return ""
	}
	t.day = day
	return day
}

// Current reports whether a row is what the page is about.
func (t *table) Current(row any) bool {
	b, is := row.(branch)
	return is && b.This
}
