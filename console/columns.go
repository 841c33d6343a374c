package console

// The columns of lists: which there are, and which somebody sees.

import "slices"

// column is one that may be left out. Those that say what a line is about are always there.
type column struct {
	Name, Key string // Key is that of its heading
	usual     bool   // it is there where nobody has chosen
}

// columns are those of each list, in order.
var columns = map[string][]column{
	"jobs": {
		{"id", "field.id", true}, {"tags", "field.tags", true}, {"app", "jobs.app", true}, {"key", "field.key", false}, {"handler", "field.handler", false},
		{"schedule", "jobs.schedule", true}, {"next", "jobs.next", true}, {"running", "jobs.running", true}, {"last", "jobs.last", true},
		{"median", "jobs.median", true}, {"author", "field.author", false}, {"state", "jobs.state", true},
	},
	"runs": {
		{"job", "field.job", true}, {"handler", "field.handler", false}, {"created", "field.created", false}, {"scheduled", "field.scheduled", true},
		{"took", "runs.took", true}, {"where", "runs.where", true}, {"param", "field.param", true}, {"result", "field.result", true},
	},
	"changes": {
		{"actor", "changes.actor", true}, {"client", "changes.client", true}, {"app", "changes.filter.app", true},
	},
}

// knownColumns are those of the names that are columns of the list, in its order.
func knownColumns(list string, names []string) (known []string) {
	for _, c := range columns[list] {
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
	if q.field("usual") != "" {
		ch.setColumns(list, nil)
		delete(ch.Columns, list)
		return columns[list] != nil
	}
	names := q.r.PostForm["column"]
	known := knownColumns(list, names)
	ch.setColumns(list, known)
	return columns[list] != nil && len(known) == len(names)
}

// Shown are the columns of a list that are there, by name.
func (p *page) Shown(list string) map[string]bool {
	chosen, is := p.q.look.Columns[list]
	shown := map[string]bool{}
	for _, c := range columns[list] {
		if c.usual && !is || slices.Contains(chosen, c.Name) {
			shown[c.Name] = true
		}
	}
	return shown
}

// Columns are all columns of a list that one may choose.
func (p *page) Columns(list string) []column { return columns[list] }
