package console

// The tables of lists: which columns each has, and which of these somebody sees. A column is said
// once, in tables: its heading, its cells, whether it may be chosen, and what a narrow screen has
// no room for all go by that. What stands in a cell is the template with the names of the list and
// of the column, as "jobs/next"; it is given a cell.

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
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
	Title     bool   // where rows are cards, it is the title of one

	there  presence
	within string // the column in whose cells it stands, where it has none of its own
	narrow bool   // a narrow screen leaves it out, unless somebody has chosen it
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
		{Name: "tick", Key: "jobs.tick", Class: "tick", Unseen: true},
		{Name: "id", Key: "field.id", Class: "num mono", there: usual, narrow: true},
		{Name: "name", Key: "jobs.name", Title: true},
		{Name: "tags", Key: "field.tags", there: usual, within: "name"},
		{Name: "app", Key: "jobs.app", Class: "app", there: usual},
		{Name: "key", Key: "field.key", Class: "mono", there: onChoice},
		{Name: "handler", Key: "field.handler", Class: "mono", there: onChoice},
		{Name: "schedule", Key: "jobs.schedule", there: usual},
		{Name: "next", Key: "jobs.next", Class: "tight", there: usual},
		{Name: "running", Key: "jobs.running", Class: "num", there: usual},
		{Name: "last", Key: "jobs.last", there: usual},
		{Name: "median", Key: "jobs.median", Class: "num", there: usual, narrow: true},
		{Name: "author", Key: "field.author", there: onChoice},
		{Name: "state", Key: "jobs.state", there: usual},
		{Name: "menu", Key: "row.menu", Class: "more", Unseen: true},
	}},
	"runs": {class: "runs", room: 6, columns: []column{
		{Name: "tick", Key: "runs.choose", Class: "tick", Unseen: true},
		{Name: "run", Key: "runs.run", Title: true},
		{Name: "job", Key: "field.job", Class: "of", there: usual},
		{Name: "handler", Key: "field.handler", Class: "mono", there: onChoice},
		{Name: "created", Key: "field.created", Class: "tight", there: onChoice},
		{Name: "scheduled", Key: "field.scheduled", Class: "tight", there: usual},
		{Name: "took", Key: "runs.took", Class: "num", there: usual},
		{Name: "state", Key: "field.state"},
		{Name: "where", Key: "runs.where", Class: "mono", there: usual, narrow: true},
		{Name: "param", Key: "field.param", Class: "mono", there: usual, narrow: true},
		{Name: "result", Key: "field.result", Class: "mono", there: usual},
		{Name: "menu", Key: "row.menu", Class: "more", Unseen: true},
	}},
	"changes": {columns: []column{
		{Name: "at", Key: "changes.at", Class: "tight"},
		{Name: "actor", Key: "changes.actor", Class: "who", there: usual},
		{Name: "client", Key: "changes.client", Class: "mono", there: usual, narrow: true},
		{Name: "verb", Key: "changes.verb"},
		{Name: "object", Key: "changes.object", Class: "who"},
		{Name: "app", Key: "changes.filter.app", there: usual, within: "object"},
		{Name: "what", Key: "changes.what"},
	}},
	// On the page of a job, and of a run:
	"jobruns": {columns: []column{
		{Name: "run", Key: "runs.run", Class: "mono"},
		{Name: "job", Key: "field.job"},
		{Name: "scheduled", Key: "field.scheduled", Class: "tight"},
		{Name: "late", Key: "runs.late", Class: "num"},
		{Name: "took", Key: "runs.took", Class: "num"},
		{Name: "state", Key: "field.state"},
		{Name: "type", Key: "field.trigger", narrow: true},
		{Name: "address", Key: "field.address", Class: "mono", narrow: true},
	}},
	"skipped": {columns: []column{
		{Name: "run", Key: "runs.run", Class: "mono"},
		{Name: "first", Key: "job.skipped.first", Class: "tight"},
		{Name: "count", Key: "job.skipped.count", Class: "num"},
		{Name: "reason", Key: "run.reason"},
	}},
	"jobchanges": {class: "jobchanges", columns: []column{
		{Name: "at", Key: "changes.at", Class: "tight"},
		{Name: "version", Key: "field.version", Class: "num"},
		{Name: "actor", Key: "changes.actor", Class: "who"},
		{Name: "verb", Key: "changes.verb"},
		{Name: "what", Key: "changes.what"},
	}},
	"branches": {class: "branches", columns: []column{
		{Name: "run", Key: "runs.run"},
		{Name: "branch", Key: "run.branch"},
		{Name: "state", Key: "field.state"},
		{Name: "span", Key: "run.span", Class: "spancell"},
		{Name: "took", Key: "runs.took", Class: "num"},
		{Name: "where", Key: "runs.where", Class: "mono"},
	}},
}

// choosable are the columns of a list that somebody may choose; none where there is no such list.
func choosable(list string) []column {
	return slices.DeleteFunc(slices.Clone(tables[list].columns), func(c column) bool { return c.there == always })
}

// knownColumns are those of the names that are columns of the list which one may choose, in its
// order.
func knownColumns(list string, names []string) (known []string) {
	for _, c := range choosable(list) {
		if slices.Contains(names, c.Name) {
			known = append(known, c.Name)
		}
	}
	return known
}

// setColumns chooses the columns of a list, without a change to those of who has the same map.
func (ch *chosen) setColumns(list string, names []string) {
	others := make(map[string][]string, len(ch.Columns)+1)
	for l, n := range ch.Columns {
		others[l] = n
	}
	if names == nil {
		names = []string{} // none is a choice too
	}
	others[list] = names
	ch.Columns = others
}

// takeColumns takes over the columns of the list that the form is about, if it is about one, or
// reports that there is no such thing.
func (q *request) takeColumns(ch *chosen) bool {
	list := q.field("list")
	if list == "" {
		return true
	}
	is := len(choosable(list)) > 0
	if q.field("usual") != "" {
		ch.setColumns(list, nil)
		delete(ch.Columns, list)
		return is
	}
	names := q.r.PostForm["column"]
	known := knownColumns(list, names)
	ch.setColumns(list, known)
	return is && len(known) == len(names)
}

// Shown are the columns of a list that are there of those that one may choose, by name.
func (p *page) Shown(list string) map[string]bool {
	names, is := p.q.look.Columns[list]
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
}

// shownColumn is a column that is there: how its cells begin, and the template of what is in them.
type shownColumn struct {
	column
	begins string
	cells  *template.Template
}

// cell is what the template of a cell is given.
type cell struct {
	*table
	Row any
}

// Table is the table of a list with these rows, without the columns that are named.
func (p *page) Table(list string, rows any, without ...string) (*table, error) {
	of := tables[list]
	t := &table{page: p, List: list, Class: strings.TrimSpace("rows " + of.class), Has: p.Shown(list), Rows: rows}
	if of.room > 0 && len(t.Has) > of.room {
		t.Class += " many"
	}
	_, own := p.q.look.Columns[list]
	for _, c := range of.columns {
		if c.there != always && !t.Has[c.Name] || c.within != "" || slices.Contains(without, c.Name) {
			continue
		}
		if c.narrow && !own {
			c.Class = strings.TrimSpace(c.Class + " drop")
		}
		cells := p.q.pages[p.Lang()].Lookup(list + "/" + c.Name)
		if cells == nil {
			return nil, fmt.Errorf("the cells of the column %s of %s have no template", c.Name, list)
		}
		t.Columns = append(t.Columns, shownColumn{c, t.beginning(c), cells})
	}
	return t, nil
}

// beginning is the tag of the cells of a column, with its name where rows are cards.
func (t *table) beginning(c column) string {
	tag := "<td"
	if !c.Unseen && !c.Title {
		tag += ` data-name="` + template.HTMLEscapeString(t.T(c.Key)) + `"`
	}
	if c.Class != "" {
		tag += ` class="` + c.Class + `"`
	}
	return tag + ">"
}

// Page is the page that the table is on.
func (t *table) Page() *page { return t.page }

// Heading is what stands at the top of a column beside its name, if anything.
func (t *table) Heading(c shownColumn) (template.HTML, error) {
	return t.q.part(t.List+"/"+c.Name+" heading", t)
}

// Cells are those of a row.
func (t *table) Cells(row any) (template.HTML, error) {
	var b strings.Builder
	of := &cell{t, row}
	for i := range t.Columns {
		c := &t.Columns[i]
		b.WriteString(c.begins)
		if err := c.cells.Execute(&b, of); err != nil {
			return "", err
		}
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

// Current reports whether a row is what the page is about.
func (t *table) Current(row any) bool {
	b, is := row.(branch)
	return is && b.This
}
