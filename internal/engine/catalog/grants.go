package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/grants"
	"github.com/xxljob/xxljob/store"
)

// What a caller may give jobs, and which jobs it may bind up with each other. Input: the caller's
// grants, a definition that is about to be saved, or a trigger. Output: faults. Nothing is read for
// the host.

// mayGive refuses a parameter that the caller of a trigger may not give the job: one of a script,
// or that the job hands on to a script. An empty one is as any other. The job's own, where it is no
// secret, anybody may give who may run it: to be let give what is hidden would say what it is.
func (d *Catalog) mayGive(ctx context.Context, g grants.Grants, job *store.Job, param string) error {
	if g.All() || param == job.Param && !hiddenFrom(g, job) {
		return nil
	}
	f := store.Faults{Of: store.Called(*job)}
	if job.IsScript() && !g.Scripts(job.App) {
		f.Add("Param", errs.Shorten(param, 40), fmt.Errorf("%w: job %d is one", errs.ErrScripts, job.ID))
	}
	if job.ChildParam == store.ChildParamParent {
		if err := d.reaches(ctx, g, &f, "Param", errs.Shorten(param, 40), job.Children, job.ChildKeys); err != nil {
			return err
		}
	}
	return f.Err()
}

// hiddenFrom reports whether the caller is not shown the job's parameter.
func hiddenFrom(g grants.Grants, job *store.Job) bool {
	return job.Secret && !g.Reveals(job.App) || g.Hides(job.App, job.Param)
}

// mayTrigger is mayGive for a trigger, of which the job is not known yet. One without a parameter runs
// the job with its own.
func (d *Catalog) mayTrigger(ctx context.Context, g grants.Grants, jobID int64, t *store.Trigger) error {
	if g.All() || t.Param == nil {
		return nil
	}
	job, err := d.Store.Job(ctx, jobID)
	if err != nil {
		return err
	}
	return d.mayGive(ctx, g, &job, *t.Param)
}

// mayDefine refuses what a caller may not say of a job. old is the job as it is stored, the zero
// value for a new one. What the job has been given before, by whomever, it keeps.
func (d *Catalog) mayDefine(ctx context.Context, g grants.Grants, old, job *store.Job) error {
	if g.All() {
		return nil
	}
	f := store.Faults{Of: store.Called(*job)}
	if !g.Scripts(job.App) {
		mayWrite(&f, g, old, job)
	}
	if old.Secret && !job.Secret && !g.Reveals(job.App) {
		f.Add("Secret", false, errs.ErrHidden)
	}
	if err := d.mayLead(ctx, g, &f, old, job); err != nil {
		return err
	}
	if err := d.mayBeLedTo(ctx, g, &f, old, job); err != nil {
		return err
	}
	if err := d.mayFollow(ctx, g, &f, old, job); err != nil {
		return err
	}
	return f.Err()
}

// unscripted is what is wrong with a new script of a caller that may not write any.
func unscripted(g grants.Grants, job *store.Job) error {
	f := store.Faults{Of: store.Called(*job)}
	if !g.Scripts(job.App) {
		mayWrite(&f, g, &store.Job{}, job)
	}
	return f.Err()
}

// gives reports whether an edit gives the job a parameter: another than it has, or any in place of one
// that the caller is not shown, which would be guessed otherwise.
func gives(g grants.Grants, old, job *store.Job) bool {
	return job.Param != old.Param || old.ID != 0 && !g.Keeps() && hiddenFrom(g, old)
}

// mayWrite adds what only those may say who may write scripts.
func mayWrite(f *store.Faults, g grants.Grants, old, job *store.Job) {
	if !job.IsScript() && !old.IsScript() {
		return
	}
	if job.GlueType != old.GlueType || job.GlueSource != old.GlueSource || job.GlueRemark != old.GlueRemark {
		f.Add("GlueType", errs.Shorten(job.GlueType, 40), errs.ErrScripts)
	}
	if gives(g, old, job) {
		f.Add("Param", errs.Shorten(job.Param, 40), fmt.Errorf("%w: the parameter is part of it", errs.ErrScripts))
	}
	if job.Handler != old.Handler {
		f.Add("Handler", errs.Shorten(job.Handler, 40), fmt.Errorf("%w: the handler is part of it", errs.ErrScripts))
	}
}

// mayLead adds the children that the caller may not have run, and those that would be given a
// parameter which the caller may not give them. It looks at what the edit brings: children that are
// new, all where it is new what they are given, and where the parameter is.
func (d *Catalog) mayLead(ctx context.Context, g grants.Grants, f *store.Faults, old, job *store.Job) error {
	hands := job.ChildParam != ""
	fresh := func(had bool) bool { return !had || hands && job.ChildParam != old.ChildParam }
	var ids []int64
	for _, id := range job.Children {
		if fresh(slices.Contains(old.Children, id)) {
			ids = append(ids, id)
		}
	}
	var keys []string
	for _, ref := range job.ChildKeys {
		if !fresh(slices.Contains(old.ChildKeys, ref)) {
			continue
		}
		if app, _, _ := store.SplitRef(ref); !g.Runs(app) {
			f.Add("ChildKeys", ref, errs.ErrForeign)
			continue
		}
		keys = append(keys, ref)
	}
	found := map[int64]bool{}
	if err := d.eachNamed(ctx, ids, nil, func(child *store.Job) { found[child.ID] = g.Runs(child.App) }); err != nil {
		return err
	}
	for _, id := range ids {
		if may, there := found[id]; !may && (there || !slices.Contains(old.Children, id)) {
			f.Add("Children", id, errs.ErrForeign)
		}
	}
	if !hands {
		return nil
	}
	if err := d.mayHand(ctx, g, f, job, ids, keys); err != nil {
		return err
	}
	if job.ChildParam == store.ChildParamParent && gives(g, old, job) {
		return d.reaches(ctx, g, f, "Param", errs.Shorten(job.Param, 40), job.Children, job.ChildKeys)
	}
	return d.reaches(ctx, g, f, "ChildParam", string(job.ChildParam), ids, keys)
}

// mayFollow adds the jobs that this one is to run behind from now on, and that the caller does not see:
// its runs would tell when those succeed.
func (d *Catalog) mayFollow(ctx context.Context, g grants.Grants, f *store.Faults, old, job *store.Job) error {
	fresh := slices.DeleteFunc(slices.Clone(job.After), func(id int64) bool { return slices.Contains(old.After, id) })
	seen := map[int64]bool{}
	if err := d.eachNamed(ctx, fresh, nil, func(j *store.Job) { seen[j.ID] = g.Sees(j.App) }); err != nil {
		return err
	}
	for _, id := range fresh {
		if !seen[id] {
			f.Add("After", id, errs.ErrUnseen)
		}
	}
	for _, ref := range job.AfterKeys {
		if app, _, _ := store.SplitRef(ref); !slices.Contains(old.AfterKeys, ref) && !g.Sees(app) {
			f.Add("AfterKeys", ref, errs.ErrUnseen)
		}
	}
	return nil
}

// mayHand adds that the job's parameter, which the caller is not shown, would go to another app by these
// children.
func (d *Catalog) mayHand(ctx context.Context, g grants.Grants, f *store.Faults, job *store.Job, ids []int64, keys []string) error {
	if job.ChildParam != store.ChildParamParent || g.Reveals(job.App) || !g.Hides(job.App, job.Param) {
		return nil
	}
	elsewhere := slices.ContainsFunc(keys, func(ref string) bool {
		app, _, _ := store.SplitRef(ref) // there may be no such job yet
		return app != job.App
	})
	err := d.eachHanded(ctx, ids, keys, func(j *store.Job) { elsewhere = elsewhere || j.App != job.App })
	if err == nil && elsewhere {
		f.Add("ChildParam", job.ChildParam, fmt.Errorf("%w: the parameter would go to another app", errs.ErrHidden))
	}
	return err
}

// mayBeLedTo adds that others, which the caller may not edit, would lead to a script, or to what hands
// on to one, by what the edit brings: a key that they name, or a script where there was none. Whoever
// has named a key before there was a job of that key may not have known what comes of it.
func (d *Catalog) mayBeLedTo(ctx context.Context, g grants.Grants, f *store.Faults, old, job *store.Job) error {
	keyed := job.Key != "" && job.Key != old.Key
	turned := job.IsScript() && !old.IsScript()
	hands := job.ChildParam == store.ChildParamParent
	if !keyed && !turned || !job.IsScript() && !(hands && len(job.Children)+len(job.ChildKeys) > 0) {
		return nil
	}
	links, err := d.Store.Links(ctx)
	if err != nil {
		return errs.In("read which jobs name others", err)
	}
	for i := range links {
		p := &links[i]
		byKey := keyed && slices.Contains(p.ChildKeys, job.App+"/"+job.Key)
		byID := turned && job.ID != 0 && (slices.Contains(p.Children, job.ID) || slices.Contains(p.ChildKeys, job.App+"/"+job.Key))
		if p.ID == job.ID && p.ID != 0 || p.ChildParam == "" || !byKey && !byID || g.Edits(p.App) && g.Scripts(job.App) {
			continue
		}
		script := job.IsScript()
		if !script {
			if err := d.eachHanded(ctx, job.Children, job.ChildKeys, func(j *store.Job) { script = script || j.IsScript() }); err != nil {
				return err
			}
		}
		if script {
			f.Add("Key", job.Key, errs.ErrNamed)
			break
		}
	}
	return nil
}

// reaches adds a fault of a field for the first script that is given what these jobs are given,
// and whose parameter the caller may not choose.
func (d *Catalog) reaches(ctx context.Context, g grants.Grants, f *store.Faults, field, value string, ids []int64, keys []string) error {
	said := false
	return d.eachHanded(ctx, ids, keys, func(j *store.Job) {
		if said || !j.IsScript() || g.Scripts(j.App) {
			return
		}
		said = true
		which := "another job"
		if g.Sees(j.App) {
			which = fmt.Sprintf("job %d", j.ID)
		}
		f.Add(field, value, fmt.Errorf("%w: %s is one, and would be given this by ChildParam", errs.ErrScripts, which))
	})
}

// eachHanded calls f with the jobs that are named, and with those that a parameter goes on to from
// them, each once.
func (d *Catalog) eachHanded(ctx context.Context, ids []int64, keys []string, f func(*store.Job)) error {
	seen := map[int64]bool{}
	for depth := 0; len(ids)+len(keys) > 0 && depth <= store.MostDepth; depth++ {
		var nextIDs []int64
		var nextKeys []string
		err := d.eachNamed(ctx, ids, keys, func(j *store.Job) {
			if seen[j.ID] {
				return
			}
			seen[j.ID] = true
			f(j)
			if j.ChildParam == store.ChildParamParent {
				nextIDs, nextKeys = append(nextIDs, j.Children...), append(nextKeys, j.ChildKeys...)
			}
		})
		if err != nil {
			return err
		}
		slices.Sort(nextIDs)
		slices.Sort(nextKeys)
		ids, keys = slices.DeleteFunc(slices.Compact(nextIDs), func(id int64) bool { return seen[id] }), slices.Compact(nextKeys)
	}
	return nil
}

// namedAtOnce is how many of the jobs that are named are read at once.
const namedAtOnce = 200

// eachNamed calls f with the jobs that there are of those that are named, without their parameters and
// sources.
func (d *Catalog) eachNamed(ctx context.Context, ids []int64, keys []string, f func(*store.Job)) error {
	ctx = store.WithLinks(store.WithShortTexts(ctx, 0))
	read := func(filter store.JobFilter) error {
		jobs, err := d.Store.Jobs(ctx, filter)
		if err != nil {
			return errs.In("read the jobs that others name", err)
		}
		for i := range jobs {
			f(&jobs[i])
		}
		return nil
	}
	for some := range slices.Chunk(ids, namedAtOnce) {
		if err := read(store.JobFilter{IDs: some, Limit: len(some)}); err != nil {
			return err
		}
	}
	byApp := map[string][]string{}
	for _, ref := range keys {
		if app, key, ok := store.SplitRef(ref); ok {
			byApp[app] = append(byApp[app], key)
		}
	}
	for _, app := range slices.Sorted(maps.Keys(byApp)) {
		for some := range slices.Chunk(byApp[app], namedAtOnce) {
			if err := read(store.JobFilter{App: app, Keys: some, Limit: len(some)}); err != nil {
				return err
			}
		}
	}
	return nil
}
