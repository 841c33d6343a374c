package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/xxljob/xxljob/internal/engine/plan"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// EnsureJobs: a list comes in, is checked as a whole, and goes out complete, to be applied
// (applylist.go). What becomes of jobs that are gone from the lists is in prune.go.

// EnsureOptions says what a list of EnsureJobs means. The zero value is complete.
type EnsureOptions struct {
	// Prune stops jobs that lists of the app have named and that are gone from them. It is
	// not done at once: see EnsureJobs.
	Prune bool
	// Generation orders the lists of different releases of a program: a build number, for
	// example, or the time of the commit in seconds. Zero or greater. Lists of one
	// generation should be equal; where they are not, the one that came to the store last
	// applies, and a warning names the nodes.
	Generation int64
	// Rollback makes the list apply at once, whatever generation applies by then. A later
	// call of that generation, as by a replica of the release that starts once more,
	// applies its list again: take those replicas away before.
	Rollback bool
	// ApplyStopped makes Stopped part of what the list says: each time it is applied, jobs
	// that it has as stopped are stopped, and those that it has not are started if somebody
	// had stopped them. Without it Stopped counts for new jobs only. A job that has stopped
	// by itself is left alone.
	ApplyStopped bool
}

func (d *Catalog) EnsureJobs(ctx context.Context, app string, jobs []store.Job, opts EnsureOptions) ([]Ensured, error) {
	if ctx == nil {
		return nil, errs.ErrNoContext
	}
	errs.SetDefault(&app, d.Cfg.App)
	w, err := d.wanted(ctx, app, jobs, opts)
	if err != nil {
		return nil, err
	}
	if d.Life.Stopped() {
		return nil, ensuring(app, errs.ErrStopped)
	}
	how := store.ApplyNewer
	if opts.Rollback {
		how = store.ApplyAlways
	}
	all, err := d.applyInTurn(ctx, w, how)
	warnOfReadings(d.Logger, d.Clock.Now(), saved(all)...)
	return all, err
}

// applyInTurn makes a list the app's and applies it, once those before it are done.
func (d *Catalog) applyInTurn(ctx context.Context, w *appList, how store.ListApply) ([]Ensured, error) {
	release, err := d.lists.take(ctx)
	if err != nil {
		return nil, ensuring(w.App, err)
	}
	defer release()
	d.lists.set(w)
	defer d.Life.Wakes.List.Poke()
	if err := d.SetShards(ctx); err != nil {
		return nil, ensuring(w.App, err)
	}
	all, _, err := d.applyList(ctx, w, how, store.ListHead{}, false)
	return all, err
}

// wanted checks a whole list before anything of it is stored.
func (d *Catalog) wanted(ctx context.Context, app string, jobs []store.Job, opts EnsureOptions) (*appList, error) {
	f := store.Faults{Of: "list of jobs"}
	f.Text("App", app, 1, 64)
	if opts.Generation < 0 {
		f.Add("Generation", opts.Generation, errors.New("want zero or greater"))
	}
	complete, err := d.completeList(ctx, app, jobs, opts.Generation)
	if err := errors.Join(f.Err(), err); err != nil {
		return nil, err
	}
	w := &appList{jobs: complete, stops: opts.ApplyStopped, JobList: store.JobList{App: app, Generation: opts.Generation, Prune: opts.Prune}}
	for i := range complete {
		j := &complete[i]
		if j.Ensured, err = digestOf(*j); err != nil {
			return nil, err
		}
		w.Keys = append(w.Keys, j.Key)
	}
	w.Digest = w.digest()
	return w, nil
}

// digest stands for what the list says of each key, in whatever order.
func (w *appList) digest() string {
	lines := make([]string, len(w.jobs))
	for i := range w.jobs {
		lines[i] = w.jobs[i].Ensured + w.jobs[i].Key
		if w.stops {
			lines[i] = fmt.Sprint(w.jobs[i].Stopped) + lines[i]
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// completeList completes the jobs, and finds the faults of all of them.
func (d *Catalog) completeList(ctx context.Context, app string, jobs []store.Job, generation int64) ([]store.Job, error) {
	complete := make([]store.Job, len(jobs))
	faulty := make([]error, len(jobs))
	seen := map[string]int{}
	for i, j := range jobs {
		errs.SetDefault(&j.App, app)
		c, err := d.complete(j)
		if err == nil && c.App != app {
			err = fmt.Errorf("xxljob: %s: App %q: the list is for app %q", store.Called(c), c.App, app)
		}
		if before, dup := seen[c.Key]; err == nil && dup {
			err = errs.In(fmt.Sprintf("%s: Key %q", store.Called(c), c.Key), fmt.Errorf("%w, by job %d of the list", errs.ErrDuplicateKey, before+1))
		}
		seen[c.Key] = i
		complete[i], faulty[i] = c, err
	}
	if err := d.findNeverFiring(ctx, app, complete, faulty); err != nil {
		return nil, ensuring(app, err)
	}
	if err := d.findManual(ctx, app, complete, faulty); err != nil {
		return nil, ensuring(app, err)
	}
	linked, err := d.linksOf(ctx, complete)
	if err != nil {
		return nil, ensuring(app, err)
	}
	for i, err := range linked {
		faulty[i] = errors.Join(faulty[i], err)
	}
	switch {
	case d.Cfg.StrictHandlers:
		d.findUnserved(ctx, app, complete, faulty)
	case d.checksNow():
		d.findMisspelt(ctx, app, complete, faulty, generation)
	}
	var list []error
	for i, err := range faulty {
		if err != nil {
			list = append(list, errs.In(fmt.Sprintf("job %d of the list", i+1), err))
		}
	}
	return complete, errors.Join(list...)
}

// findNeverFiring adds to the faults that a schedule has no future instant, unless the job
// has it already: a one-off job may have run since the program was last started.
func (d *Catalog) findNeverFiring(ctx context.Context, app string, jobs []store.Job, faulty []error) error {
	never := map[int]error{} // by the place in the list
	var keys []string
	for i := range jobs {
		err := d.fires(ctx, jobs[i])
		if err != nil && !errors.Is(err, errs.ErrNeverFires) {
			return err
		}
		if err != nil {
			never[i] = err
			keys = append(keys, jobs[i].Key)
		}
	}
	has := map[string]store.Job{}
	if err := d.eachStored(ctx, app, keys, func(job *store.Job) { has[job.Key] = *job }); err != nil || len(never) == 0 {
		return err
	}
	now, err := d.Now(ctx)
	if err != nil {
		return err
	}
	for i, err := range never {
		if old, stored := has[jobs[i].Key]; !stored || !plan.MayFire(&old, &jobs[i], now) || jobs[i].App != app {
			faulty[i] = errors.Join(faulty[i], store.InJob(jobs[i], err))
		}
	}
	return nil
}

// findUnserved is checkHandler for the jobs of a list that are in order so far, by one
// look at the app's addresses.
func (d *Catalog) findUnserved(ctx context.Context, app string, jobs []store.Job, faulty []error) {
	why, err := d.book.Unserved(ctx, app, jobs)
	for i := range jobs {
		j := &jobs[i]
		switch reason := why[registry.BookKeyOf(j)]; {
		case faulty[i] != nil:
		case err != nil:
			faulty[i] = err
		case reason != "":
			faulty[i] = errs.In(store.Called(*j), fmt.Errorf("%w: App %q, Handler %q: %s", errs.ErrUnknownHandler, j.App, j.Handler, reason))
		}
	}
}

// findMisspelt adds to the faults of jobs that their handler is misspelt, where that is known.
func (d *Catalog) findMisspelt(ctx context.Context, app string, jobs []store.Job, faulty []error, generation int64) {
	names, _ := d.misspeltHandlers(ctx, app, jobs, generation)
	for i := range jobs {
		if m := names[jobs[i].Handler]; m != nil && faulty[i] == nil && registry.BookKeyOf(&jobs[i]).IsBean() {
			faulty[i] = errs.In(store.Called(jobs[i]), m.err())
		}
	}
}

// The lists of EnsureJobs that this scheduler was given.

// Lists are the lists that this scheduler was given, the last one of each app.
type Lists struct {
	wake  loop.Wake     // of the loop
	beats int64         // of the node's row, as of the last beat; owned by the lease loop
	turn  chan struct{} // full while a list is applied: one after the other
	rows  atomic.Int64  // how often the node's row in the store was new
	// unfinished are the apps whose list an error has kept from being applied as a whole,
	// and put are those whose list the store has had, to apply it. Both belong to who has
	// the turn.
	unfinished, put map[string]bool

	mu   sync.Mutex
	apps map[string]*appList // guarded by mu
}

func NewLists(w loop.Wake) *Lists {
	return &Lists{wake: w, turn: make(chan struct{}, 1), unfinished: map[string]bool{}, put: map[string]bool{}, apps: map[string]*appList{}}
}

// take waits for the turn to apply a list.
func (o *Lists) take(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case o.turn <- struct{}{}:
		return func() { <-o.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// set makes a list the app's, one that has yet to be applied as a whole. It is called by who
// has the turn.
func (o *Lists) set(w *appList) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unfinished[w.App] = true
	if was := o.apps[w.App]; was != nil && was.isSame(w) {
		return // what was seen while the list was this one goes on counting
	}
	o.apps[w.App] = w
	delete(o.put, w.App)
}

// isSame reports whether two lists of an app say the same.
func (w *appList) isSame(other *appList) bool {
	return w.Generation == other.Generation && w.Prune == other.Prune && w.Digest == other.Digest
}

func (o *Lists) of(app string) *appList {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.apps[app]
}

// names returns the apps that there are lists for, in order.
func (o *Lists) names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.apps))
}

// Jobs is how many jobs the lists have.
func (o *Lists) Jobs() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, list := range o.apps {
		n += len(list.jobs)
	}
	return n
}

// appList is a list as EnsureJobs was given it, complete and with digests. It is
// never changed.
type appList struct {
	store.JobList
	jobs  []store.Job
	stops bool // their Stopped counts for jobs that are there too
}

// applies reports whether the head of the app is this list.
func (w *appList) applies(head store.ListHead) bool {
	return head.Generation == w.Generation && head.Digest == w.Digest
}

// NoteRow has the lists put again when the node's row in the store is new: the node has
// joined, or was buried and is back. It is called by the lease loop.
func (o *Lists) NoteRow(v store.View, incarnation string) {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Incarnation != incarnation {
			continue
		}
		if n.Beats <= o.beats || o.beats == 0 {
			o.Renewed()
		}
		o.beats = n.Beats
	}
}

// Renewed has the lists put again: the node's row in the store is new.
func (o *Lists) Renewed() {
	o.rows.Add(1)
	o.wake.Poke()
}
