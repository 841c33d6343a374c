package console

// What a job says is secret (Job.Secret): its parameter, and what its runs are given and return.
// Config.Redact may hide more.

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

// paramOf is a job's parameter as it is shown.
func (q *request) paramOf(j *xxljob.Job) string {
	return q.unless(j.Secret, j.App, FieldParam, j.Param)
}

// ofRun is a text of a run as it is shown.
func (q *request) ofRun(r *xxljob.Run, field Field, text string) string {
	return q.unless(r.Secret, r.App, field, text)
}

// unless is a text as it is shown, unless it is secret.
func (q *request) unless(secret bool, app string, field Field, text string) string {
	if secret && text != "" {
		return q.text("secret.hidden")
	}
	return q.redacted(app, field, text)
}

// markSecret says of runs whose jobs are removed whether these were secret, as the record has it.
// Where that cannot be found out they count as secret. And of runs that were given something by others it
// says whether these are secret by now, which they may not have been when they gave it.
func (c *console) markSecret(ctx context.Context, runs []xxljob.Run) {
	p := past{console: c, jobs: map[int64]bool{}, apps: map[string]bool{}}
	for i := range runs {
		if r := &runs[i]; r.JobName == "" && r.Param+r.HandleMsg+r.ProgressText != "" {
			r.Secret = p.wasSecret(ctx, r.JobID)
		}
	}
	p.markGiven(ctx, runs)
}

// readWorld reads what needs attention, with the ends of runs marked whose errors are for nobody.
func (c *console) readWorld(ctx context.Context) (finding.World, error) {
	w, err := finding.Read(ctx, c.Store)
	c.markEnded(ctx, w.Ended)
	return w, err
}

// markEnded marks those that have ended badly as [console.markSecret] does: of others no text is shown
// where it is said how jobs are. Of jobs that are removed nothing is said there.
func (c *console) markEnded(ctx context.Context, ended []xxljob.Run) {
	var bad []xxljob.Run
	var at []int
	for i := range ended {
		if r := &ended[i]; isBad(r.State) && r.JobName != "" {
			bad, at = append(bad, *r), append(at, i)
		}
	}
	c.markSecret(ctx, bad)
	for i := range bad {
		ended[at[i]].Secret = bad[i].Secret
	}
}

// hideErrors has the jobs count as secret whose runs end badly with what is for nobody to see, so that
// each is a finding of its own, with a key that goes by the job.
func hideErrors(w *finding.World, hides func(*xxljob.Run) bool) {
	hidden := map[int64]bool{}
	for i := range w.Ended {
		if r := &w.Ended[i]; isBad(r.State) && !hidden[r.JobID] {
			hidden[r.JobID] = hides(r)
		}
	}
	w.Jobs = slices.Clone(w.Jobs)
	for i := range w.Jobs {
		w.Jobs[i].Secret = w.Jobs[i].Secret || hidden[w.Jobs[i].ID]
	}
}

// given is a run of a list that has a parameter from another one, and the app of the one that it is from
// as far as that is known.
type given struct {
	at  int
	app string
}

// mostGivers is how many runs are looked up of which others have what they were given; what is from
// others is hidden.
const mostGivers = 1000

// markGiven marks the runs with a parameter that comes of a run of a job that is secret, or was when it
// was removed, be it from a run that has been given it itself. What was given by one that is deleted
// counts as secret while the app has a job that is, as it does for the store.
func (p *past) markGiven(ctx context.Context, runs []xxljob.Run) {
	hide := func(list []given) {
		for _, g := range list {
			runs[g.at].Secret = true
		}
	}
	from := map[int64][]given{} // by the run to look at: those that it has given something
	for i := range runs {
		r := &runs[i]
		if r.Secret || !r.ParamSet || r.ParentID == 0 || r.Param+r.HandleMsg+r.ProgressText == "" {
			continue
		}
		if from[r.ParentID] == nil && len(from) == mostGivers {
			r.Secret = true
			continue
		}
		from[r.ParentID] = append(from[r.ParentID], given{i, r.App})
	}
	ctx = store.WithShortTexts(ctx, 0)
	for step := 0; len(from) > 0 && step <= store.MostDepth; step++ {
		givers, err := p.Store.RunsByID(ctx, slices.Collect(maps.Keys(from)))
		if err != nil {
			for _, list := range from {
				hide(list)
			}
			return
		}
		before := map[int64][]given{}
		for i := range givers {
			giver := &givers[i]
			list := from[giver.ID]
			delete(from, giver.ID)
			switch {
			case giver.Secret || giver.JobName == "" && p.wasSecret(ctx, giver.JobID):
				hide(list)
			case giver.ParamSet && giver.ParentID != 0:
				for _, g := range list {
					before[giver.ParentID] = append(before[giver.ParentID], given{g.at, giver.App})
				}
			}
		}
		for _, list := range from { // these are deleted
			for _, g := range list {
				runs[g.at].Secret = runs[g.at].Secret || p.hasSecrets(ctx, g.app)
			}
		}
		from = before
	}
}

// past is what a page looks up of what is not there any more, each once.
type past struct {
	*console
	jobs map[int64]bool
	apps map[string]bool
}

// wasSecret is [console.wasSecret], of so many jobs.
func (p *past) wasSecret(ctx context.Context, job int64) bool {
	secret, known := p.jobs[job]
	if !known {
		secret = len(p.jobs) >= mostLookedUp || p.console.wasSecret(ctx, job)
		p.jobs[job] = secret
	}
	return secret
}

// hasSecrets reports whether the app has a job that is secret, or may have: so many are looked at.
func (p *past) hasSecrets(ctx context.Context, app string) bool {
	has, known := p.apps[app]
	if !known {
		jobs, err := p.Store.Jobs(ctx, xxljob.JobFilter{App: app, Limit: mostOfAnApp})
		has = err != nil || len(jobs) == mostOfAnApp || slices.ContainsFunc(jobs, func(j xxljob.Job) bool { return j.Secret })
		p.apps[app] = has
	}
	return has
}

// mostOfAnApp is how many jobs of an app are looked at to know whether one is secret.
const mostOfAnApp = 1000

// mostLookedUp is how many jobs a page looks up to know what is secret; what is of others is hidden.
const mostLookedUp = 50

// wasSecret reports whether a job that is removed was secret, or may have been: nothing says so where
// its entry is not in the record any more, which keeps so much.
func (c *console) wasSecret(ctx context.Context, id int64) bool {
	if c.record == nil {
		return true
	}
	found, err := c.record.SearchChanges(ctx, xxljob.ChangeSearch{Object: store.ObjectJob, ObjectID: strconv.FormatInt(id, 10), Verb: "remove", Limit: 1})
	return err != nil || len(found.Changes) == 0 || saysSecret(found.Changes[0].Before)
}

// saysSecret reports whether what an entry says of a job is that it is secret.
func saysSecret(object string) bool {
	var j struct{ Secret bool }
	return strings.Contains(object, `"Secret"`) && json.Unmarshal([]byte(object), &j) == nil && j.Secret
}

// learnSecrets finds out which of the jobs are secret that entries say a parameter of; found are those
// that are there.
func (q *request) learnSecrets(list []xxljob.Change, found map[int64]xxljob.Job) {
	q.secrets = map[int64]bool{}
	for i := range list {
		c := &list[i]
		if _, known := q.secrets[c.JobID]; known || c.JobID == 0 || !strings.Contains(c.Before+c.After, `"Param"`) {
			continue
		}
		if j, there := found[c.JobID]; there {
			q.secrets[c.JobID] = j.Secret
		} else {
			q.secrets[c.JobID] = q.wasSecret(q.ctx, c.JobID)
		}
	}
}

// secretChange reports whether an entry is about a job that is secret, or about a run of one. One of
// which that was not found out counts as such.
func (q *request) secretChange(c *xxljob.Change) bool {
	switch {
	case saysSecret(c.Before) || saysSecret(c.After):
		return true
	case c.JobID == 0:
		return false
	case c.JobID == q.job.ID:
		return q.job.Secret
	case c.JobID == q.run.JobID:
		return q.run.Secret
	}
	secret, known := q.secrets[c.JobID]
	return secret || !known
}
