package console

// Which runs, and which entries of the record, a list shows: filters, as its address says them.

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// runFilter is which runs are wanted, as the address of the page says.
type runFilter struct {
	App, Job, State, Type, Handler, Address, Text, Since, Until, Slower, Late, Parts string
}

// runFilters are the names of the filters in the address.
var runFilters = []string{"text", "app", "job", "state", "type", "handler", "address", "since", "until", "slower", "late", "parts"}

// presets are states that are asked for together.
var presets = map[string][]xxljob.State{
	"bad":   {xxljob.StateFailed, xxljob.StateTimedOut, xxljob.StateKilled, xxljob.StateLost, xxljob.StateRefused},
	"open":  {xxljob.StateStarted, xxljob.StateDispatched},
	waiting: {xxljob.StatePlanned},
}

// waiting is the state of runs that are listed in order of time.
const waiting = "waiting"

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

// runFilter is the filter of the request.
func (q *request) runFilter() (f runFilter, err error) {
	f = runFilter{App: q.Query("app"), Job: q.Query("job"), State: q.Query("state"), Type: q.Query("type"), Handler: q.Query("handler"),
		Address: q.Query("address"), Text: q.Query("text"), Since: q.Query("since"), Until: q.Query("until"), Slower: q.Query("slower"),
		Late: q.Query("late"), Parts: q.Query("parts")}
	if _, is := statesOf(f.State); !is || f.Parts != "" && f.Parts != "each" {
		return f, errNotThere
	}
	return f, nil
}

// runSearch is the filter as the store takes it. apps are those that the user sees, or none
// where these are all.
func (q *request) runSearch(f runFilter, apps []string) (s xxljob.RunSearch, err error) {
	s = xxljob.RunSearch{Apps: apps, Handler: f.Handler, Address: f.Address, Text: f.Text, Limit: runsOnAPage}
	if q.hidesTexts() {
		s.Text = ""
	}
	s.NoSecrets = s.Text != "" && !q.user.Admin // what is found would tell what is hidden, and so would where the list goes on
	if f.App != "" {
		s.Apps = []string{f.App}
	}
	if f.Job != "" {
		id, err := strconv.ParseInt(f.Job, 10, 64)
		if err != nil || id <= 0 {
			return s, badFilter(f.Job)
		}
		s.JobIDs = []int64{id}
	}
	s.States, _ = statesOf(f.State)
	if f.Type != "" {
		s.Types = []xxljob.TriggerType{xxljob.TriggerType(f.Type)}
	}
	if s.Since, err = momentOf(f.Since); err != nil {
		return s, err
	}
	if s.Until, err = momentOf(f.Until); err != nil {
		return s, err
	}
	if s.Slower, err = durationOf(f.Slower); err != nil {
		return s, err
	}
	s.LateBy, err = durationOf(f.Late)
	return s, err
}

// durationOf is a filter in seconds, up to a billion of them; zero for none.
func durationOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0 && seconds <= 1e9) {
		return 0, badFilter(text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// hidesTexts reports whether the user sees texts only as the host lets them be shown: to look for
// a part of one would tell what is hidden.
func (q *request) hidesTexts() bool { return q.Redact != nil && !q.user.Admin }

// momentOf is a time of an address, in UTC; zero for none.
func momentOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, badFilter(text)
	}
	return at.UTC(), nil
}

// localLayouts are those in which browsers send times of a form.
func localLayouts() []string {
	return []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04:05.999", "2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02"}
}

// tidyFilter leads from what the form of a list has sent to the address of the list: what is
// empty is left out, and times, which the form has in the viewer's zone, are in UTC.
func (q *request) tidyFilter(page string, names []string) error {
	query, several := url.Values{}, []jobLink(nil)
	for _, name := range names {
		v := strings.TrimSpace(q.Query(name))
		if v == "" {
			continue
		}
		if name == "since" || name == "until" {
			at, err := q.localTime(v)
			if err != nil {
				return err
			}
			v = at.UTC().Format(time.RFC3339Nano)
		}
		query.Set(name, v)
	}
	if said := query.Get("job"); said != "" && page == "runs" {
		if _, no := strconv.ParseInt(said, 10, 64); no != nil {
			switch meant, _, err := q.jobsMeant(said); {
			case err != nil:
				return asked(err)
			case len(meant) == 0:
				return &web.Problem{Status: http.StatusUnprocessableEntity, Key: "fault.pick.none", Values: []any{"name", said}}
			case len(meant) > 1:
				several = meant
			default:
				query.Set("job", strconv.FormatInt(meant[0].ID, 10))
			}
		}
	}
	if last := q.Query("last"); last != "" { // until now
		d, err := time.ParseDuration(last)
		if err != nil || d <= 0 {
			return badFilter(last)
		}
		query.Set("since", time.Now().Add(-d).UTC().Truncate(time.Second).Format(time.RFC3339Nano))
		query.Del("until")
	}
	if several != nil {
		return q.whichJob(page, query, query.Get("job"), several)
	}
	if len(query) == 0 {
		return q.Redirect(page)
	}
	return q.Redirect(page + "?" + query.Encode())
}

// localTime is a time of a form, in the viewer's zone.
func (q *request) localTime(text string) (time.Time, error) {
	for _, layout := range localLayouts() {
		if at, err := time.ParseInLocation(layout, text, q.look.Zone); err == nil {
			return at, nil
		}
	}
	return momentOf(text)
}

// Local is a time of an address as a field of a form has it, in the viewer's zone.
func (p *page) Local(text string) string {
	at, err := momentOf(text)
	if err != nil || at.IsZero() {
		return ""
	}
	return at.In(p.q.look.Zone).Format("2006-01-02T15:04:05")
}

// filterChips are the filters that are set, with times in the viewer's zone.
func (q *request) filterChips(page string, names []string) (list []chip, err error) {
	for _, name := range names {
		for _, c := range q.chips(page, []string{name}) {
			if name == "since" || name == "until" {
				if at, err := momentOf(q.Query(name)); err == nil {
					c.Value = at.In(q.look.Zone).Format("2006-01-02 15:04:05 -07:00")
				}
			}
			if name == "slower" || name == "late" {
				c.Value = q.text("unit.s", "n", c.Value)
			}
			if name == "job" && !q.IsPart() {
				if c.Value, err = q.nameOfJob(c.Value); err != nil {
					return nil, err
				}
			}
			if name == "type" && q.look.Language.Has("type."+c.Value) {
				c.Value = q.text("type." + c.Value)
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// nameOfJob is the name of the job of an ID, where the user may see it, or the ID.
func (q *request) nameOfJob(text string) (string, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text, nil
	}
	found, err := q.briefly().jobsByID([]int64{id})
	if j, there := found[id]; there && allowed(q.user, see, j.App) {
		text = j.Name
	}
	return text, err
}

// presets are questions that are asked often, as links.
func (q *request) presets() (list []preset) {
	state, kind := q.Query("state"), q.Query("type")
	for _, p := range []struct{ key, state, kind string }{{"open", "open", ""}, {waiting, waiting, ""}, {"bad", "bad", ""}, {"skipped", "skipped", ""}, {"manual", "", "MANUAL"}} {
		one := preset{Key: "runs.preset." + p.key, count: p.state, Set: p.state == state && p.kind == kind}
		one.Link = q.With(map[string]string{"state": p.state, "type": p.kind, "before": "", web.Trail: "", "seen": ""})
		if one.Set {
			one.Link = q.With(map[string]string{"state": "", "type": "", "before": "", web.Trail: "", "seen": ""})
		}
		list = append(list, one)
	}
	return list
}

// typedRun is the page of a run whose ID was typed where texts are looked for, or "".
func (q *request) typedRun() (string, error) {
	text := strings.TrimSpace(q.Query("text"))
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || q.IsPart() {
		return "", nil
	}
	list, err := q.Store.RunsByID(store.WithShortTexts(q.ctx, 0), []int64{id})
	if err != nil || len(list) == 0 || !allowed(q.user, see, list[0].App) {
		return "", err
	}
	return "runs/" + strconv.FormatInt(id, 10), nil
}
