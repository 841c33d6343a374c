package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/plan"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Applying a list of jobs: a complete list comes in, is put into the store, and where it
// then applies its jobs are made to exist as given, in batches, each of which takes effect
// only while the list is still the one that applies.

// applyList puts the list and, where it then applies, makes its jobs exist as given. It
// reports whether it applies. The caller has taken the turn of the lists; again says that
// it is the list loop.
func (d *Catalog) applyList(ctx context.Context, w *appList, how store.ListApply, over store.ListHead, again bool) ([]Ensured, bool, error) {
	a := applier{s: d, w: w, all: make([]Ensured, len(w.jobs)), again: again}
	d.lists.unfinished[w.App] = true
	all, applies, err := a.put(ctx, how, over)
	if err == nil {
		delete(d.lists.unfinished, w.App)
	}
	return all, applies, err
}

func (d *Catalog) putList(ctx context.Context, w *appList, how store.ListApply, over store.ListHead) (store.ListHead, error) {
	head, err := d.Store.PutList(ctx, store.ListPut{JobList: w.JobList, Incarnation: d.Leases.Incarnation, Node: d.Cfg.Node, Apply: how, Over: over})
	if err != nil {
		return head, ensuring(w.App, err)
	}
	return head, nil
}

// batchOf is how many of the jobs go together.
func batchOf(jobs []store.Job) int {
	size := 0
	for i := range min(len(jobs), ensureBatch) {
		size += len(jobs[i].Param) + len(jobs[i].GlueSource)
		if size > ensureBytes && i > 0 {
			return i
		}
	}
	return min(len(jobs), ensureBatch)
}

// applier is a list on its way into the store.
type applier struct {
	s       *Catalog
	w       *appList
	all     []Ensured   // by the place in the list
	touched []store.Job // created or changed
	grouped bool
	again   bool     // by the list loop: nobody waits who would give up, so each call has a deadline
	past    []string // keys of jobs that are left as they are: all of their instants have passed since they were named
}

// ask calls the store.
func (a *applier) ask(ctx context.Context, f func(context.Context) error) error {
	if !a.again {
		return f(ctx)
	}
	return loop.Do(ctx, f)
}

// put puts the list and applies it batch by batch.
func (a *applier) put(ctx context.Context, how store.ListApply, over store.ListHead) ([]Ensured, bool, error) {
	s, w, head := a.s, a.w, store.ListHead{}
	err := a.ask(ctx, func(ctx context.Context) (err error) { head, err = s.putList(ctx, w, how, over); return err })
	if err != nil {
		return nil, false, err
	}
	s.lists.put[w.App] = true
	if !w.applies(head) {
		if how != store.ApplyInstead {
			err = a.superseded(ctx, 0, head)
		}
		return a.all, false, err
	}
	for at := 0; at < len(w.jobs); {
		n := batchOf(w.jobs[at:])
		err := a.apply(ctx, at, n)
		if errors.Is(err, errs.ErrSuperseded) {
			a.conclude(ctx)
			return a.all, false, a.superseded(ctx, at, store.ListHead{})
		}
		if err != nil {
			return a.all[:at], false, ensuring(w.App, err)
		}
		at += n
	}
	a.conclude(ctx)
	return a.all, true, nil
}

// conclude tells of what was created and changed.
func (a *applier) conclude(ctx context.Context) {
	a.s.warnUnserved(ctx, a.w.App, a.touched)
	a.s.warnOfStoredIn(a.w.App, a.touched)
	if i := slices.IndexFunc(a.touched, isConcurrent); i >= 0 {
		a.s.warnOfQueues(ctx, a.w.App, a.touched[i].Name)
	}
	a.s.Life.Wakes.Scan.PokeIf(len(a.touched) > 0)
	a.s.Life.Wakes.Late.PokeIf(len(a.touched) > 0)
	if len(a.past) > 0 {
		a.s.Logger.Warn("xxljob: left jobs of the list unchanged because all of their scheduled times are in the past", "app", a.w.App, "jobs", len(a.past), "one", a.past[0])
	}
}

// isPast reports whether an error says that a job of the list has no instant any more,
// which keeps nobody from applying the rest of it again, and notes that. A call of
// EnsureJobs has its error.
func (a *applier) isPast(job *store.Job, err error) bool {
	if !a.again || !errors.Is(err, errs.ErrNeverFires) {
		return false
	}
	a.past = append(a.past, job.Key)
	return true
}

// apply makes a batch of the jobs exist: those that are there are named and changed where
// they differ, the others are added. A replica may add or remove some meanwhile; these are
// looked at again.
func (a *applier) apply(ctx context.Context, at, n int) error {
	left := make(map[string]int, n) // places in the list by key
	for i := at; i < at+n; i++ {
		left[a.w.jobs[i].Key] = i
	}
	for len(left) > 0 {
		var named []store.Job
		err := a.ask(ctx, func(ctx context.Context) (err error) {
			named, err = a.s.Store.NameJobs(ctx, a.w.ID(), slices.Collect(maps.Keys(left)))
			return err
		})
		if err != nil {
			return err
		}
		var gone []int
		for _, has := range named {
			i := left[has.Key]
			delete(left, has.Key)
			if err := a.change(ctx, i, has); errs.IsNotFound(err) {
				gone = append(gone, i)
			} else if err != nil {
				return err
			}
		}
		if err := a.add(ctx, left); err != nil {
			return err
		}
		for _, i := range gone { // removed since
			left[a.w.jobs[i].Key] = i
		}
	}
	return nil
}

// restart says what of the job's status the list changes, if it changes anything of it.
func (w *appList) restart(job *store.Job) func(*store.Job) bool {
	if !w.stops {
		return nil
	}
	return func(has *store.Job) bool { return restatus(has, job.Stopped) }
}

// change gives a job that is there its definition.
func (a *applier) change(ctx context.Context, i int, has store.Job) error {
	job := a.w.jobs[i]
	restart := a.w.restart(&job)
	if has.Ensured == job.Ensured && !isPruned(&has) && !changes(restart, has) {
		a.all[i] = Ensured{has, Unchanged}
		return nil
	}
	var done Ensured
	err := a.ask(ctx, func(ctx context.Context) (err error) {
		done, err = a.s.redefine(ctx, has, job, restart, &store.ListGuard{ListID: a.w.ID()})
		return err
	})
	switch {
	case err == nil:
		a.all[i] = done
		a.touched = append(a.touched, job)
	case a.isPast(&job, err):
		a.all[i] = Ensured{has, Unchanged}
		return nil
	}
	return err
}

// add adds the jobs that are left, and takes those that it has added out.
func (a *applier) add(ctx context.Context, left map[string]int) error {
	if len(left) == 0 {
		return nil
	}
	if !a.grouped {
		if err := a.ask(ctx, func(ctx context.Context) error { return a.s.Store.EnsureGroup(ctx, a.w.App) }); err != nil {
			return err
		}
		a.grouped = true
	}
	var jobs []store.Job
	for _, i := range slices.Sorted(maps.Values(left)) {
		job := a.w.jobs[i]
		if _, err := plan.FirstInstant(job, a.s.Clock.Now()); a.isPast(&job, err) {
			delete(left, job.Key)
			continue
		}
		job.StopReason = ""
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return nil
	}
	first := func(job store.Job, now time.Time) (time.Time, error) {
		at, err := plan.FirstInstant(job, now)
		if err != nil {
			err = fmt.Errorf("job %q: %w", errs.Shorten(job.Name, 40), err)
		}
		return at, err
	}
	var added []store.Job
	err := a.ask(ctx, func(ctx context.Context) (err error) {
		added, err = a.s.Store.AddJobs(ctx, a.w.ID(), jobs, first)
		return err
	})
	if err != nil {
		return err
	}
	for _, job := range added {
		i := left[job.Key]
		delete(left, job.Key)
		a.all[i] = Ensured{job, Created}
		a.touched = append(a.touched, job)
	}
	if len(added) > 0 {
		core.LogChange(ctx, a.s.Logger, "add", store.ObjectJob, added[0].ID, a.w.App, "jobs", len(added))
	}
	return nil
}

// saved are the jobs that were created or changed.
func saved(all []Ensured) (jobs []store.Job) {
	for i := range all {
		if o := all[i].Outcome; o == Created || o == Changed {
			jobs = append(jobs, all[i].Job)
		}
	}
	return jobs
}

// superseded says of the jobs from a place on that nothing was done to them, but for those
// to which something was.
func (a *applier) superseded(ctx context.Context, from int, head store.ListHead) error {
	places := map[string]int{}
	for i := from; i < len(a.w.jobs); i++ {
		if a.all[i].Outcome != "" {
			continue // was done before
		}
		job := a.w.jobs[i]
		job.Ensured = ""
		a.all[i] = Ensured{job, Superseded}
		places[job.Key] = i
	}
	log := a.s.Logger.With("app", a.w.App, "generation", a.w.Generation)
	if head == (store.ListHead{}) {
		log.Warn("xxljob: the job list was superseded while it was being applied; the rest of it is skipped")
	} else {
		log.Warn("xxljob: the job list is superseded by one of a greater generation; nothing was changed", "applies", head.Generation, "by", head.Node)
	}
	if a.again {
		return nil // nobody asks what the jobs are
	}
	err := a.s.eachStored(ctx, a.w.App, slices.Collect(maps.Keys(places)), func(has *store.Job) { a.all[places[has.Key]].Job = *has })
	if err != nil {
		return ensuring(a.w.App, err)
	}
	return nil
}

// warnUnserved says in one line that nobody has the handlers of jobs that were created or
// changed. In a rolling deploy somebody may come who has.
func (d *Catalog) warnUnserved(ctx context.Context, app string, jobs []store.Job) {
	if len(jobs) == 0 || d.Cfg.StrictHandlers {
		return
	}
	why, err := d.book.Unserved(ctx, app, jobs)
	if err != nil || len(why) == 0 {
		return
	}
	missing := map[string]bool{}
	n, example := 0, ""
	for i := range jobs {
		if why[registry.BookKeyOf(&jobs[i])] != "" {
			missing[jobs[i].Handler] = true
			example = cmp.Or(example, jobs[i].Name)
			n++
		}
	}
	const some = 5
	handlers := slices.Sorted(maps.Keys(missing))
	d.Logger.Warn("xxljob: no executor is registered yet for some jobs of the list", "app", app, "jobs", n, "one", example,
		"handlers", len(handlers), "some", handlers[:min(len(handlers), some)])
}

// warnOfStoredIn is warnOfStored for the jobs that a list has added or changed, in one line.
func (d *Catalog) warnOfStoredIn(app string, jobs []store.Job) {
	n, example := 0, ""
	for i := range jobs {
		if d.untold(&jobs[i]) {
			example = cmp.Or(example, jobs[i].Name)
			n++
		}
	}
	if n > 0 {
		d.Logger.Warn("xxljob: some jobs of the list have an AlarmEmail, and Config.Alarms has no rules: no mail will be sent", "app", app, "jobs", n, "one", example)
	}
}
