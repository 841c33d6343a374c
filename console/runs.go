package console

// The list of runs.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

const (
	runsOnAPage = 50
	mostInACell = 80 // characters of a parameter or a result
	mostInALine = 2 * mostInACell
)

// runsPage is the list of runs.
type runsPage struct {
	Filter   runFilter
	Presets  []preset
	Apps     []string
	Rows     []runRow
	Chips    []chip
	Pages    web.Pager
	GoOn     string // where a search goes on that has stopped early
	Partial  bool   // the search has stopped before its end
	Searched time.Time
	Examined int
	Redacted bool // there is no search in texts
	Operates bool // the user may do something with one of the runs
}

// runRow is a line of a list of runs.
type runRow struct {
	xxljob.Run
	Param, Result string     // as they are shown, shortened
	Whole         *wholeView // of a broadcast whose parts this line stands for; the run is one of them
}

// Anchor is how scripts and links know a line.
func (r runRow) Anchor() string {
	if r.Whole != nil {
		return "trigger-" + strconv.FormatInt(r.TriggerID, 10)
	}
	return "run-" + strconv.FormatInt(r.ID, 10)
}

// preset is a question that is asked often.
type preset struct {
	Key, Link, Count string
	Set              bool
	Counted, Lately  bool // whether Count says how many there are, and of the last 24 hours alone

	count string // the key of its counts
}

// runsFound are runs that a list shows, and how far it was looked for them.
type runsFound struct {
	runs     []xxljob.Run
	searched time.Time
	examined int
	partial  bool
	next     string // the cursor of what follows
	to       int64  // the run down to which it was looked, where the list goes by that; 1 where there are no more
}

func (q *request) runs() error {
	reader, ok := q.Store.(xxljob.RunReader)
	if !ok {
		return notOffered("xxljob.RunReader")
	}
	if err := q.ValidQuery(runFilters); err != nil {
		return err
	}
	if q.Query("form") != "" {
		return q.tidyFilter("runs", runFilters)
	}
	if to, err := q.typedRun(); to != "" || err != nil {
		if err != nil {
			return err
		}
		return q.Redirect(to)
	}
	f, err := q.runFilter()
	if err != nil {
		return err
	}
	if f.Text != "" { // each of a great many runs is looked at
		if err := q.limitRate(wholes); err != nil {
			return err
		}
		if err := q.hold(q.costly); err != nil {
			return err
		}
	}
	apps, all, err := q.visibleApps()
	if err != nil {
		return err
	}
	chips, err := q.filterChips("runs", runFilters)
	if err != nil {
		return err
	}
	p := runsPage{Filter: f, Presets: q.presets(), Chips: chips, Redacted: q.hidesTexts(), Apps: apps}
	if all && !q.IsPart() {
		if p.Apps, err = q.appNames(); err != nil {
			return err
		}
	}
	q.learnCounts()
	p.Presets = q.presetCounts(p.Presets, []string{"text", "app", "job", "type", "handler", "address", "since", "until", "slower", "late"})
	first := q.Query("before") == ""
	var since time.Time
	if all || len(apps) > 0 && (f.App == "" || slices.Contains(apps, f.App)) {
		if since, err = q.fillRuns(reader, &p, apps, all); err != nil {
			return err
		}
	}
	if q.counts != nil && !since.IsZero() && q.counts.at.After(since) {
		since = q.counts.at
	}
	poll := ""
	if first && f.Until == "" {
		poll = q.With(map[string]string{"seen": ""})
	}
	return q.showLive("runs", poll, since, p)
}

// fillRuns reads the runs of the list, which are those of these apps, and returns which
// reading it shows, if others share that (see showLive).
func (q *request) fillRuns(reader xxljob.RunReader, p *runsPage, apps []string, all bool) (since time.Time, err error) {
	search, err := q.runSearch(p.Filter, apps)
	if err != nil {
		return since, err
	}
	most, look := 2*mostInACell, foldedRuns
	if p.Filter.Parts != "" || search.Text != "" || q.Redact != nil { // to fill the page up would read a great many runs, or all of their texts
		look = searchRuns
	}
	read := func(ctx context.Context) (runsFound, error) {
		if q.Redact == nil { // where texts are hidden in part, all of them has to be looked at
			ctx = store.WithShortTexts(ctx, most)
		}
		found, err := look(ctx, reader, search)
		for i := range found.runs {
			found.runs[i].TriggerMsg = ""
		}
		q.markSecret(ctx, found.runs)
		return found, err
	}
	key := fmt.Sprintf("runs %s %#v %s", sightKey(apps, all), search, p.Filter.Parts)
	if p.Filter.State == waiting {
		var after xxljob.Run
		if err := q.Cursor("before", waiting, &after); err != nil {
			return since, err
		}
		read = func(ctx context.Context) (runsFound, error) {
			if q.Redact != nil {
				most = 0
			}
			found, err := waitingRuns(store.WithShortTexts(ctx, most), reader, search, after)
			if err == nil && q.Redact != nil {
				err = q.readParams(ctx, found.runs)
			}
			q.markSecret(ctx, found.runs)
			return found, err
		}
		key = fmt.Sprintf("waiting %s %#v %d %d", sightKey(apps, all), search, after.Scheduled.UnixMilli(), after.ID)
	} else if err := q.Cursor("before", "id", &search.Before); err != nil {
		return since, err
	} else {
		key += strconv.FormatInt(search.Before, 10)
	}
	found, of, err := sharedAt(q, key, read)
	if err != nil {
		return since, asked(err)
	}
	if since = of.Since; slices.ContainsFunc(found.runs, goesOn) {
		since = of.At
	}
	p.Searched, p.Examined, p.Partial = found.searched, found.examined, found.partial
	p.Pages = q.Pager("before", found.next)
	p.GoOn = p.Pages.GoOn(p.Partial)
	for _, r := range found.runs {
		if r.Secret && search.NoSecrets {
			continue // made secret since then
		}
		p.Rows = append(p.Rows, q.runRow(r))
		p.Operates = p.Operates || !q.ReadOnly && allowed(q.user, operate, r.App)
	}
	if p.Filter.Parts == "" {
		p.Rows = folded(p.Rows)
	}
	return since, nil
}

// goesOn reports whether the list says how long a run has been going on.
func goesOn(r xxljob.Run) bool { return !r.Started.IsZero() && r.Ended.IsZero() }

// readParams reads the parameters of planned runs, which have no other texts.
func (q *request) readParams(ctx context.Context, list []xxljob.Run) error {
	ids := make([]int64, len(list))
	for i, r := range list {
		ids[i] = r.ID
	}
	whole, err := q.Store.RunsByID(ctx, ids)
	if err != nil {
		return err
	}
	for _, r := range whole {
		list[slices.Index(ids, r.ID)].Param = r.Param
	}
	return nil
}

// runRow is the line of a run.
func (q *request) runRow(r xxljob.Run) runRow {
	return runRow{Run: r, Param: q.cell(&r, FieldParam, r.Param), Result: q.cell(&r, FieldResult, r.HandleMsg)}
}

// runRows are the lines of runs, with one of each broadcast.
func (q *request) runRows(list []xxljob.Run) (rows []runRow) {
	for _, r := range list {
		rows = append(rows, q.runRow(r))
	}
	return folded(rows)
}

// cell is a text of a run as a line of the list has room for it.
func (q *request) cell(r *xxljob.Run, field Field, text string) string {
	return web.CutTo(q.ofRun(r, field, text), mostInACell)
}

// searchRuns is a page of a search.
func searchRuns(ctx context.Context, reader xxljob.RunReader, search xxljob.RunSearch) (runsFound, error) {
	found, err := reader.SearchRuns(ctx, search)
	if err != nil {
		return runsFound{}, err
	}
	out := runsFound{runs: found.Runs, searched: found.SearchedTime, examined: found.Examined, to: found.SearchedTo}
	if found.SearchedTo > 1 {
		out.partial = len(found.Runs) < runsOnAPage
		out.next = web.CursorOf("id", found.SearchedTo)
	}
	return out, nil
}

const (
	waitingAtOnce = 1000
	waitingReads  = 5 // of so many runs, for a page
)

// waitingRuns are planned runs in order of time, behind one of them. The store lists those of all
// apps: it is looked through so many, and those that are sought are taken. How late one is goes by
// the clock of this process; behind one that is not late enough there is none.
func waitingRuns(ctx context.Context, reader xxljob.RunReader, search xxljob.RunSearch, after xxljob.Run) (out runsFound, err error) {
	for range waitingReads {
		list, err := reader.Waiting(ctx, after, waitingAtOnce)
		if err != nil {
			return out, err
		}
		for _, r := range list {
			if len(out.runs) == runsOnAPage {
				out.next = web.CursorOf(waiting, place(after))
				return out, nil
			}
			if search.LateBy > 0 && time.Since(r.Scheduled) < search.LateBy {
				return out, nil
			}
			if after = r; isSought(&search, &r) {
				out.runs = append(out.runs, r)
			}
			out.examined++
		}
		if len(list) < waitingAtOnce {
			return out, nil
		}
	}
	out.partial, out.searched, out.next = true, after.Scheduled, web.CursorOf(waiting, place(after))
	return out, nil
}

// place is what says where a run stands among those that wait.
func place(r xxljob.Run) any {
	return struct {
		ID        int64
		Scheduled time.Time
	}{r.ID, r.Scheduled}
}

// isSought reports whether a planned run, which is late enough, is one of those that are sought.
func isSought(s *xxljob.RunSearch, r *xxljob.Run) bool {
	return (len(s.Apps) == 0 || slices.Contains(s.Apps, r.App)) &&
		(len(s.JobIDs) == 0 || slices.Contains(s.JobIDs, r.JobID)) &&
		(len(s.Types) == 0 || slices.Contains(s.Types, r.Type)) &&
		(s.Since.IsZero() || !r.Created.Before(s.Since)) && (s.Until.IsZero() || r.Created.Before(s.Until)) &&
		s.Handler == "" && s.Address == "" && s.Text == "" && s.Slower == 0
}
