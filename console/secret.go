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
	was := map[int64]bool{}
	for i := range runs {
		r := &runs[i]
		if r.JobName != "" || r.Param+r.HandleMsg == "" {
			continue
		}
		secret, known := was[r.JobID]
		if !known {
			secret = len(was) >= mostLookedUp || c.wasSecret(ctx, r.JobID)
			was[r.JobID] = secret
		}
		r.Secret = secret
	}
	c.markGiven(ctx, runs)
}

// markGiven marks the runs with a parameter that comes of a run of a job that is secret, be it from a run
// that has been given it itself. What was given by one that is deleted is as its own job says.
func (c *console) markGiven(ctx context.Context, runs []xxljob.Run) {
	from := map[int64][]int{} // by the run to look at: the places of those that it has given something
	for i := range runs {
		if r := &runs[i]; !r.Secret && r.ParamSet && r.ParentID != 0 && r.Param+r.HandleMsg+r.ProgressText != "" {
			from[r.ParentID] = append(from[r.ParentID], i)
		}
	}
	ctx = store.WithShortTexts(ctx, 0)
	for step := 0; len(from) > 0 && step <= store.MostDepth; step++ {
		givers, err := c.Store.RunsByID(ctx, slices.Collect(maps.Keys(from)))
		if err != nil {
			for _, places := range from {
				for _, i := range places {
					runs[i].Secret = true
				}
			}
			return
		}
		before := map[int64][]int{}
		for i := range givers {
			giver := &givers[i]
			switch places := from[giver.ID]; {
			case giver.Secret:
				for _, i := range places {
					runs[i].Secret = true
				}
			case giver.ParamSet && giver.ParentID != 0:
				before[giver.ParentID] = append(before[giver.ParentID], places...)
			}
		}
		from = before
	}
}

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
