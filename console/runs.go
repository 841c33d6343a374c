package console

// The list of runs.

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
)

const runsOnAPage = 50

// runsPage is the list of runs.
type runsPage struct {
	Filter   runFilter
	Apps     []string
	Runs     []xxljob.Run
	Chips    []chip
	Older    string
	First    string
	Partial  bool // the search has stopped before its end
	Searched time.Time
	Examined int
	Redacted bool // there is no search in texts
}

// runFilter is which runs are wanted, as the address of the page says.
type runFilter struct {
	App, Job, State, Type, Handler, Address, Text string
}

// presets are states that are asked for together.
var presets = map[string][]xxljob.State{
	"bad":  {xxljob.StateFailed, xxljob.StateTimedOut, xxljob.StateKilled, xxljob.StateLost, xxljob.StateRefused},
	"open": {xxljob.StateStarted, xxljob.StateDispatched},
}

// statesOf are the states that a filter names; false where it names none.
func statesOf(name string) ([]xxljob.State, bool) {
	if name == "" {
		return nil, true
	}
	if list, is := presets[name]; is {
		return list, true
	}
	for s := xxljob.StatePlanned; s <= xxljob.StateSnoozed; s++ {
		if stateKey(s) == name {
			return []xxljob.State{s}, true
		}
	}
	return nil, false
}

func (q *request) runs() error {
	reader, ok := q.Store.(xxljob.RunReader)
	if !ok {
		return notOffered("xxljob.RunReader")
	}
	f := runFilter{App: q.query("app"), Job: q.query("job"), State: q.query("state"), Type: q.query("type"), Handler: q.query("handler"), Address: q.query("address"), Text: q.query("text")}
	p := runsPage{Filter: f, Chips: q.chips("runs", []string{"app", "job", "state", "type", "handler", "address", "text"}), Redacted: q.Redact != nil && !q.user.Admin}
	apps, all, err := q.visibleApps()
	if err != nil {
		return err
	}
	search := xxljob.RunSearch{Apps: apps, Handler: f.Handler, Address: f.Address, Text: f.Text, Limit: runsOnAPage}
	if p.Redacted {
		search.Text = ""
	}
	if f.App != "" {
		search.Apps = []string{f.App}
	}
	if f.Job != "" {
		id, err := strconv.ParseInt(f.Job, 10, 64)
		if err != nil || id <= 0 {
			return badRequest(err)
		}
		search.JobIDs = []int64{id}
	}
	if search.States, ok = statesOf(f.State); !ok {
		return errNotThere
	}
	if f.Type != "" {
		search.Types = []xxljob.TriggerType{xxljob.TriggerType(f.Type)}
	}
	if err := q.cursor("before", "id", &search.Before); err != nil {
		return err
	}
	p.Apps = slices.Clone(apps)
	if all {
		if p.Apps, err = q.appNames(); err != nil {
			return err
		}
	}
	if !all && (len(apps) == 0 || f.App != "" && !slices.Contains(apps, f.App)) {
		return q.show("runs", http.StatusOK, p)
	}
	found, err := reader.SearchRuns(q.ctx, search)
	if err != nil {
		return asked(err)
	}
	p.Runs, p.Searched, p.Examined = found.Runs, found.SearchedTime, found.Examined
	if q.query("before") != "" {
		p.First = q.with(map[string]string{"before": ""})
	}
	if found.SearchedTo > 1 {
		p.Partial = len(found.Runs) < runsOnAPage
		p.Older = q.with(map[string]string{"before": cursorOf("id", found.SearchedTo)})
	}
	return q.show("runs", http.StatusOK, p)
}
