package console

// The page of a job, and what one does with it there.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

const (
	nextOnAPage   = 10
	runsOfAJob    = 20
	skipsOfAJob   = 10
	changesOfAJob = 20
)

// jobView is the page of a job.
type jobView struct {
	Job      xxljob.Job
	Words    string
	Status   string
	Own      string // the zone of its schedule, where that is not the viewer's
	Next     []instant
	NextErr  string
	Waits    bool // for the end of the run that is under way
	Runs     []runRow
	Skipped  []xxljob.Run // records of instants that were not run
	Outcomes outcomes
	Children jobLinks
	Parents  jobLinks
	Changes  []jobChange
	Last     *xxljob.Change // of its definition, or by which it was started or stopped
	More     []fact         // what else it says
	Param    string         // as it is shown
	Script   bool           // it is one of XXL-JOB's
	Said     string         // what has just been done
	Once     *onceView
	Why      whyView
}

// fact is a field of a job, and what it says.
type fact struct{ Field, Value string }

// jobChange is an entry of the record about the job. Restores is the version that it has made,
// where one may go back to that; zero elsewhere.
type jobChange struct {
	xxljob.Change
	Restores int64
}

// jobNews is what the page of a job says that changes by itself.
type jobNews struct {
	next              []time.Time
	bad               error // of the schedule
	runs, skipped     []xxljob.Run
	outcomes          outcomes
	children, parents jobLinks
	changes           []xxljob.Change
	why               reasons
}

// jobPage shows the request's job.
func (q *request) jobPage() error {
	j := &q.job
	key := fmt.Sprintf("job %d %d %t %q", j.ID, j.Version, q.user.Admin, q.user.Apps) // who else sees the jobs that it leads to
	news, err := shared(q, key, func(ctx context.Context) (jobNews, error) {
		return q.under(store.WithShortTexts(ctx, 0)).jobNews(time.Now())
	})
	if err != nil {
		return err
	}
	v := jobView{Job: *j, Words: j.Schedule.DescribeIn(q.look.Language.Tag), Status: statusOf(j), Param: q.paramOf(j), Script: j.IsScript(), More: q.facts(j), Said: q.said(),
		Next: instantsOf(j, news.next), Runs: q.runRows(news.runs), Skipped: news.skipped, Outcomes: news.outcomes, Children: news.children, Parents: news.parents, Changes: q.restorable(j, news.changes)}
	if zone := j.Schedule.Zone; zone != "" && zone != q.look.Zone.String() {
		v.Own = zone
	}
	if i := slices.IndexFunc(news.changes, func(c xxljob.Change) bool { return defines(c.Verb) || c.Verb == "start" || c.Verb == "stop" }); i >= 0 {
		v.Last = &news.changes[i]
	}
	v.Why = q.headOf(news.why)
	mutes, err := q.readMutes()
	if err != nil {
		return err
	}
	v.Why.Mute = q.muteOfJob(mutes)
	if news.bad != nil {
		v.NextErr = q.text("fault.invalid.conf", "why", why(news.bad))
	}
	v.Waits = j.Schedule.Type == xxljob.ScheduleFixDelay && j.Next.IsZero() && !j.Stopped
	if q.may(operate, j.App) && !q.IsPart() {
		v.Once = q.newOnce()
	}
	return q.showLive("job", q.With(map[string]string{"seen": "", "said": ""}), time.Time{}, v)
}

// instant is one of the next of a job; Note says what a change of clocks makes of it, or is "".
type instant struct {
	At   time.Time
	Note string
}

func instantsOf(j *xxljob.Job, list []time.Time) []instant {
	out := make([]instant, len(list))
	for i, t := range list {
		out[i] = instant{t, noteOf(j.Schedule, t)}
	}
	return out
}

// textOfARun is how much of a result is read for the page of a job: the first line of an error is within it.
const textOfARun = 600

// jobNews reads what the page of the request's job says beside its definition. What several of its parts
// go by is read once.
func (q *request) jobNews(now time.Time) (n jobNews, err error) {
	j := &q.job
	newest, err := q.Store.Runs(store.WithShortTexts(q.ctx, textOfARun), xxljob.RunFilter{JobID: j.ID, Limit: runsOfAJob})
	if err != nil {
		return n, err
	}
	last, err := q.lastRuns(j.ID)
	if err != nil {
		return n, err
	}
	n.outcomes = sumUp(last)
	world, err := finding.ReadAround(q.ctx, q.Store, *j)
	if err != nil {
		return n, err
	}
	n.next, n.bad = nextOf(j, slices.Concat(world.Waiting, world.Planned), now)
	if world.Ended, err = q.lastEnded(newest, last); err != nil {
		return n, err
	}
	if world.Skipped, err = q.lastSkipped(last); err != nil {
		return n, err
	}
	q.markEnded(q.ctx, world.Ended)
	n.why = q.whyJob(world)
	texts := 2 * mostInACell
	if q.Redact != nil { // where texts are hidden in part, all of them would have to be looked at
		texts = 0
	}
	n.runs, n.skipped = q.foldedOf(j.ID, newest, texts), slices.Clone(world.Skipped[:min(len(world.Skipped), skipsOfAJob)]) // and not all behind these
	for i := range n.runs {
		n.runs[i].ShortenTexts(texts)
		n.runs[i].Param, n.runs[i].TriggerMsg = "", ""
	}
	q.markSecret(q.ctx, n.runs)
	if n.children, n.parents, err = q.jobLinks(j); err != nil {
		return n, err
	}
	n.changes, err = q.Store.Changes(q.ctx, j.ID, changesOfAJob)
	return n, err
}

// lastEnded are the last runs of the request's job that have ended, as far as it matters why the job runs
// or does not: without texts, but for those that have ended badly. Most of these are among the newest.
func (q *request) lastEnded(newest, last []xxljob.Run) ([]xxljob.Run, error) {
	list := slices.Clone(last[:min(len(last), finding.LastRuns)])
	for i := range list {
		if !isBad(list[i].State) {
			continue
		}
		at := slices.IndexFunc(newest, func(r xxljob.Run) bool { return r.ID == list[i].ID })
		if at < 0 {
			var err error
			if list, err = q.Store.(xxljob.RunReader).LastRuns(store.WithShortTexts(q.ctx, textOfARun), []int64{q.job.ID}, finding.LastRuns); err != nil {
				return nil, err
			}
			break
		}
		if newest[at].State == list[i].State { // else it has ended between the two reads
			list[i] = newest[at]
		}
	}
	return list, finding.ReadNotes(q.ctx, q.Store, list)
}

// lastSkipped are the last instants of the request's job that were not run. They are among the last runs
// where these are all.
func (q *request) lastSkipped(last []xxljob.Run) (list []xxljob.Run, err error) {
	if _, ok := q.Store.(xxljob.RunReader); !ok || len(last) == runsOfOutcomes {
		return q.Store.Runs(store.WithShortTexts(q.ctx, 0), xxljob.RunFilter{JobID: q.job.ID, States: []xxljob.State{xxljob.StateSkipped}, Limit: finding.LastRuns})
	}
	for _, r := range last {
		if r.State == xxljob.StateSkipped && len(list) < finding.LastRuns {
			list = append(list, r)
		}
	}
	return list, nil
}

// may reports whether the user may do something in an app, and this console lets anybody.
func (q *request) may(do action, app string) bool { return allowed(q.user, do, app) && !q.ReadOnly }

// restorable are entries about the job, with what one goes back to: what an edit has made, also
// that of a program. A start or a stop has made no definition.
func (q *request) restorable(j *xxljob.Job, found []xxljob.Change) []jobChange {
	list := make([]jobChange, len(found))
	for i, c := range found {
		list[i].Change = c
		if defines(c.Verb) && c.Version > 0 && c.Version != j.Version && q.record != nil && q.may(edit, j.App) {
			list[i].Restores = c.Version
		}
	}
	return list
}

// facts are the fields of the job that say something, besides those that its page always shows.
func (q *request) facts(j *xxljob.Job) (list []fact) {
	shown := []string{"name", "app", "key", "handler", paramField, "type", "conf", "zone", "route", "block", "misfire", "timeout", "retries", "author", "alarm", "tags", "children", "after"}
	texts := formTexts{j, q.look.Zone}
	for _, g := range formGroups() {
		for _, f := range g.fields {
			value := f.get(&texts)
			if slices.Contains(shown, f.name) || value == "" || value == "0" {
				continue
			}
			if key := "option." + f.name + "." + value; q.look.Language.Has(key) {
				value = q.text(key)
			}
			switch f.kind {
			case aCheck:
				value = q.text("fact.yes")
			case aMoment:
				value = q.look.Stamp(*f.at(j))
			}
			list = append(list, fact{q.text("field." + f.name), value})
		}
	}
	return list
}

// said is what has just been done, as the address of the page says: one of a few keys.
func (q *request) said() string {
	if key := "said." + q.Query("said"); q.Query("said") != "" && q.look.Language.Has(key) {
		return q.text(key)
	}
	return ""
}

// turnView is the question whether a job is to be started or stopped.
type turnView struct {
	Job  xxljob.Job
	Do   string
	Back string // where one came from, or ""
}

// askStart and askStop ask whether a job is to be started or stopped.
func (q *request) askStart() error { return q.askTurn("start") }
func (q *request) askStop() error  { return q.askTurn("stop") }

func (q *request) askTurn(do string) error {
	return q.show("turn", http.StatusOK, turnView{Job: q.job, Do: do, Back: web.OwnPage(q.Query("back"))})
}

// Already reports whether it was done.
func (v turnView) Already() bool { return v.Job.Stopped == (v.Do == "stop") }

// Turns are the questions of the page of a job, for its dialogs.
func (v jobView) Turns() []turnView {
	return []turnView{{Job: v.Job, Do: "start"}, {Job: v.Job, Do: "stop"}}
}

func (q *request) startJob() error {
	return q.actOnJob("started", func() error { return q.Scheduler.StartJob(q.ctx, q.job.ID) })
}

func (q *request) stopJob() error {
	return q.actOnJob("stopped", func() error { return q.Scheduler.StopJob(q.ctx, q.job.ID) })
}

// actOnJob does something with the job, and goes back to its page.
func (q *request) actOnJob(said string, act func() error) error {
	err := act()
	switch {
	case errors.Is(err, xxljob.ErrManual):
		return &web.Problem{Status: http.StatusUnprocessableEntity, Key: "problem.manual"}
	case errors.Is(err, xxljob.ErrNeverFires):
		return &web.Problem{Status: http.StatusUnprocessableEntity, Key: "problem.neverfires"}
	case err != nil:
		return err
	}
	to := web.OwnPage(q.Field("back")) // a list, where it was done there
	if to == "" {
		to = "jobs/" + strconv.FormatInt(q.job.ID, 10)
	}
	return q.Redirect(saying(to, said))
}

// saying is the address of a page that says what has been done.
func saying(page, said string) string {
	path, query, _ := strings.Cut(page, "?")
	values, _ := url.ParseQuery(query) // what is none in it is left out
	values.Set("said", said)
	return path + web.QueryOf(values)
}

// redacted is a text as the host lets it be shown. What the host's function does not return for
// is hidden.
func (q *request) redacted(app string, field Field, text string) (shown string) {
	if q.Redact == nil || text == "" {
		return text
	}
	defer func() {
		if v := recover(); v != nil {
			q.Logger.Error("console: Config.Redact has panicked", "request", q.ID, "panic", v)
			shown = "●●●"
		}
	}()
	return q.Redact(app, field, text)
}

// stateKey is a state as addresses and texts name it.
func stateKey(s xxljob.State) string { return strings.ReplaceAll(s.String(), " ", "_") }

// Option is a value of a field that is chosen of a list, in words if there are any.
func (p *page) Option(field string, value any) string {
	text := fmt.Sprint(value)
	if key := "option." + field + "." + text; p.q.look.Language.Has(key) {
		return p.T(key)
	}
	return web.Visible(text)
}
