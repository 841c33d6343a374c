package console

// Jobs by their names, where one is to be said: suggestions while somebody types, and which job a
// text means.

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

const (
	jobsOffered = 20  // by name
	jobsMatched = 200 // of which those that are called so are looked for
)

// pickers are the fields of the form that take jobs by their IDs, to which one adds by name. Those that
// take keys are none: they are for jobs that may not be there yet, and so cannot be picked; one that is
// there, with a key or without, is picked in these.
var pickers = []string{"children", "after"}

// linkTo is the job as a link to it.
func linkTo(j *xxljob.Job) jobLink { return jobLink{ID: j.ID, Name: j.Name, App: j.App} }

// Text is the job as it is offered, from which it is known again.
func (l jobLink) Text() string {
	return "#" + strconv.FormatInt(l.ID, 10) + " " + l.Name + " · " + l.App
}

// offerJobs answers who types with the jobs that may be meant; as a page it is the list of jobs.
func (q *request) offerJobs() error {
	text := strings.TrimSpace(q.Query("text"))
	if !q.IsPart() {
		return q.Redirect("jobs?" + url.Values{"text": {text}}.Encode())
	}
	found, err := q.jobsNamed(text, jobsOffered)
	if err != nil {
		return asked(err)
	}
	var list []jobLink
	for i := range found {
		list = append(list, linkTo(&found[i]))
	}
	return q.show("jobfind", http.StatusOK, list)
}

// jobsNamed are jobs that the user sees which have the text in them.
func (q *request) jobsNamed(text string, most int) ([]xxljob.Job, error) {
	reader, ok := q.Store.(xxljob.JobReader)
	apps, all, err := q.visibleApps()
	if err != nil || !ok || text == "" || len(text) > 255 || !all && len(apps) == 0 {
		return nil, err
	}
	return reader.SearchJobs(store.WithShortTexts(q.ctx, 0), xxljob.JobSearch{Apps: apps[:min(len(apps), mostAppsRead)], Text: text, Order: store.ByName, Limit: most})
}

// jobsMeant are the jobs that the user sees and that a text means: by its ID, as it is offered, by app
// and key, by its whole name, or, where none is called so, by whatever the list of jobs finds it by. It is
// meant for certain if it is the only one of the first three kinds: the others are offered.
func (q *request) jobsMeant(text string) (list []jobLink, certain bool, err error) {
	text = strings.TrimSpace(text)
	number, _, _ := strings.Cut(strings.TrimPrefix(text, "#"), " ")
	if id, no := strconv.ParseInt(number, 10, 64); no == nil && (text == number || text[0] == '#') {
		found, err := q.briefly().jobsByID([]int64{id})
		if j, there := found[id]; there && allowed(q.user, see, j.App) {
			list = append(list, linkTo(&j))
		}
		return list, len(list) == 1, err
	}
	if app, key, ok := store.SplitRef(text); ok && allowed(q.user, see, app) {
		jobs, err := q.Store.Jobs(store.WithShortTexts(q.ctx, 0), xxljob.JobFilter{App: app, Keys: []string{key}, Limit: 1})
		if err != nil || len(jobs) == 1 {
			for i := range jobs {
				list = append(list, linkTo(&jobs[i]))
			}
			return list, len(list) == 1, err
		}
	}
	found, err := q.jobsNamed(text, jobsMatched)
	if err != nil {
		return nil, false, err
	}
	all := len(found) < jobsMatched
	if whole := slices.DeleteFunc(slices.Clone(found), func(j xxljob.Job) bool { return !strings.EqualFold(j.Name, text) }); len(whole) > 0 {
		found, certain = whole, all && len(whole) == 1
	}
	for i := range found[:min(len(found), jobsOffered)] {
		list = append(list, linkTo(&found[i]))
	}
	return list, certain, nil
}

// addPicked adds the jobs to a form that were said by their names; where it is not certain which is meant,
// it asks.
func (q *request) addPicked(f *jobForm) error {
	lists := map[string]*[]int64{"children": &f.job.Children, "after": &f.job.After}
	for _, name := range pickers {
		said := strings.TrimSpace(q.Field(name + ".add"))
		if said == "" || f.faults[name] != "" {
			continue
		}
		if q.job.ID == 0 && !q.mayAdd() {
			return forbidden(edit)
		}
		meant, certain, err := q.jobsMeant(said)
		switch {
		case err != nil:
			return asked(err)
		case len(meant) == 0:
			f.faults[name] = q.text("fault.pick.none", "name", said)
			continue
		case !certain:
			f.faults[name] = q.text("fault.pick.several", "name", said)
			if f.choices == nil {
				f.choices = map[string][]jobLink{}
			}
			f.choices[name] = meant
			continue
		}
		if ids := lists[name]; !slices.Contains(*ids, meant[0].ID) {
			*ids = append(slices.Clone(*ids), meant[0].ID)
		}
		q.R.PostForm.Del(name + ".add")
		q.R.PostForm.Del(name) // it is shown as it is now
	}
	return nil
}

// namedIn are the jobs that the fields of a form have by their IDs, by field.
func (q *request) namedIn(j *xxljob.Job) (map[string][]jobLink, error) {
	ids := slices.Concat(j.Children, j.After)
	found, err := q.briefly().jobsByID(ids[:min(len(ids), 2*mostFollowed)])
	list := map[string][]jobLink{}
	for name, of := range map[string][]int64{"children": j.Children, "after": j.After} {
		for _, id := range of {
			if o, there := found[id]; there && allowed(q.user, see, o.App) {
				list[name] = append(list[name], linkTo(&o))
			}
		}
	}
	return list, err
}

// whichJob asks which of several jobs is meant, on the way to a list that is filtered by one.
func (q *request) whichJob(page string, query url.Values, said string, meant []jobLink) error {
	type choice struct {
		jobLink
		To string
	}
	v := struct {
		Said    string
		Choices []choice
	}{Said: said}
	for _, l := range meant {
		query.Set("job", strconv.FormatInt(l.ID, 10))
		v.Choices = append(v.Choices, choice{l, page + "?" + query.Encode()})
	}
	return q.show("which", http.StatusOK, v)
}
