package xxljob

// EnsureJobs: a list comes in, is checked as a whole, put into the store, and applied in
// batches, each of which takes effect only while the list is the one that applies. What
// becomes of jobs that are gone from the lists is in lists.go.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

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
}

// wantedList is a list as EnsureJobs was given it, complete and with digests. It is
// never changed.
type wantedList struct {
	JobList
	jobs []Job
}

// ensureBatch is how many jobs are sent to the store in one call, and ensureBytes how
// much text of theirs, but for a single job.
const (
	ensureBatch = 1000
	ensureBytes = 4 << 20
)

func (s *scheduler) EnsureJobs(ctx context.Context, app string, jobs []Job, opts EnsureOptions) ([]Ensured, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	setDefault(&app, s.cfg.App)
	w, err := s.wanted(ctx, app, jobs, opts)
	if err != nil {
		return nil, err
	}
	if s.stopped() {
		return nil, ensuring(app, ErrStopped)
	}
	if err := s.setShards(ctx); err != nil {
		return nil, ensuring(app, err)
	}
	release, err := s.lists.take(ctx)
	if err != nil {
		return nil, ensuring(app, err)
	}
	defer release()
	how := ApplyNewer
	if opts.Rollback {
		how = ApplyAlways
	}
	s.lists.set(w)
	defer s.listWake.poke()
	all, _, err := s.applyList(ctx, w, how, ListHead{})
	return all, err
}

// ensuring is an error of a list.
func ensuring(app string, err error) error {
	return about(fmt.Sprintf("ensure jobs of app %q", app), err)
}

// wanted checks a whole list before anything of it is stored.
func (s *scheduler) wanted(ctx context.Context, app string, jobs []Job, opts EnsureOptions) (*wantedList, error) {
	f := faults{what: "list of jobs"}
	f.text("App", app, 1, 64)
	if opts.Generation < 0 {
		f.add("Generation", opts.Generation, errors.New("want zero or greater"))
	}
	complete, err := s.completeList(ctx, app, jobs)
	if err := errors.Join(f.err(), err); err != nil {
		return nil, err
	}
	w := &wantedList{jobs: complete, JobList: JobList{App: app, Generation: opts.Generation, Prune: opts.Prune}}
	for i := range complete {
		j := &complete[i]
		if j.Ensured, err = digestOf(*j); err != nil {
			return nil, err
		}
		w.Keys = append(w.Keys, j.Key)
	}
	w.Digest = digestOfList(complete)
	return w, nil
}

// digestOfList stands for the keys and the definitions, in whatever order.
func digestOfList(jobs []Job) string {
	lines := make([]string, len(jobs))
	for i := range jobs {
		lines[i] = jobs[i].Ensured + jobs[i].Key
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// completeList completes the jobs, and finds the faults of all of them.
func (s *scheduler) completeList(ctx context.Context, app string, jobs []Job) ([]Job, error) {
	complete := make([]Job, len(jobs))
	faulty := make([]error, len(jobs))
	seen := map[string]int{}
	for i, j := range jobs {
		setDefault(&j.App, app)
		c, err := s.complete(j)
		if err == nil && c.App != app {
			err = fmt.Errorf("xxljob: %s: App %q: the list is for app %q", called(c), c.App, app)
		}
		if before, dup := seen[c.Key]; err == nil && dup {
			err = about(fmt.Sprintf("%s: Key %q", called(c), c.Key), fmt.Errorf("%w, by job %d of the list", ErrDuplicateKey, before+1))
		}
		seen[c.Key] = i
		complete[i], faulty[i] = c, err
	}
	if err := s.findNeverFiring(ctx, app, complete, faulty); err != nil {
		return nil, ensuring(app, err)
	}
	if s.cfg.StrictHandlers {
		s.findUnserved(ctx, app, complete, faulty)
	}
	var errs []error
	for i, err := range faulty {
		if err != nil {
			errs = append(errs, about(fmt.Sprintf("job %d of the list", i+1), err))
		}
	}
	return complete, errors.Join(errs...)
}

// findNeverFiring adds to the faults that a schedule has no future instant, unless the job
// has it already: a one-off job may have run since the program was last started.
func (s *scheduler) findNeverFiring(ctx context.Context, app string, jobs []Job, faulty []error) error {
	never := map[int]error{} // by the place in the list
	var keys []string
	for i := range jobs {
		err := s.fires(ctx, jobs[i])
		if err != nil && !errors.Is(err, ErrNeverFires) {
			return err
		}
		if err != nil {
			never[i] = err
			keys = append(keys, jobs[i].Key)
		}
	}
	has := map[string]Schedule{}
	if err := s.eachStored(ctx, app, keys, func(job *Job) { has[job.Key] = job.Schedule }); err != nil {
		return err
	}
	for i, err := range never {
		if schedule, stored := has[jobs[i].Key]; !stored || schedule != jobs[i].Schedule || jobs[i].App != app {
			faulty[i] = errors.Join(faulty[i], named(jobs[i], err))
		}
	}
	return nil
}

// eachStored calls f with each job of the app that is stored with one of the keys.
func (s *scheduler) eachStored(ctx context.Context, app string, keys []string, f func(*Job)) error {
	for some := range slices.Chunk(keys, ensureBatch) {
		jobs, err := s.store.Jobs(ctx, JobFilter{App: app, Keys: some, Limit: len(some)})
		if err != nil {
			return err
		}
		for i := range jobs {
			f(&jobs[i])
		}
	}
	return nil
}

// findUnserved is checkHandler for the jobs of a list that are in order so far, by one
// look at the app's addresses.
func (s *scheduler) findUnserved(ctx context.Context, app string, jobs []Job, faulty []error) {
	why, err := s.book.unserved(ctx, app, jobs)
	for i := range jobs {
		j := &jobs[i]
		switch reason := why[bookKeyOf(j)]; {
		case faulty[i] != nil:
		case err != nil:
			faulty[i] = err
		case reason != "":
			faulty[i] = about(called(*j), fmt.Errorf("%w: App %q, Handler %q: %s", ErrUnknownHandler, j.App, j.Handler, reason))
		}
	}
}

// warnUnserved says in one line that nobody has the handlers of jobs that were created or
// changed. In a rolling deploy somebody may come who has.
func (s *scheduler) warnUnserved(ctx context.Context, app string, jobs []Job) {
	if len(jobs) == 0 || s.cfg.StrictHandlers {
		return
	}
	why, err := s.book.unserved(ctx, app, jobs)
	if err != nil || len(why) == 0 {
		return
	}
	missing := map[string]bool{}
	n, example := 0, ""
	for i := range jobs {
		if why[bookKeyOf(&jobs[i])] != "" {
			missing[jobs[i].Handler] = true
			example = cmp.Or(example, jobs[i].Name)
			n++
		}
	}
	const some = 5
	handlers := slices.Sorted(maps.Keys(missing))
	s.log.Warn("xxljob: no executor for jobs of the list yet", "app", app, "jobs", n, "one", example,
		"handlers", len(handlers), "some", handlers[:min(len(handlers), some)])
}

// warnOfStoredIn is warnOfStored for the jobs that a list has added or changed, in one line.
func (s *scheduler) warnOfStoredIn(app string, jobs []Job) {
	found := map[string]bool{}
	n, example := 0, ""
	for i := range jobs {
		fields := storedOnly(jobs[i])
		for _, f := range fields {
			found[f] = true
		}
		if len(fields) > 0 {
			example = cmp.Or(example, jobs[i].Name)
			n++
		}
	}
	if n > 0 {
		s.log.Warn("xxljob: jobs of the list have what is stored and not acted upon yet", "app", app, "jobs", n, "one", example,
			"fields", strings.Join(slices.Sorted(maps.Keys(found)), ", "))
	}
}

// applyList puts the list and, where it then applies, makes its jobs exist as given. It
// reports whether it applies. The caller has taken the turn of the lists.
func (s *scheduler) applyList(ctx context.Context, w *wantedList, how ListApply, over ListHead) ([]Ensured, bool, error) {
	head, err := s.putList(ctx, w, how, over)
	if err != nil {
		return nil, false, err
	}
	a := applying{s: s, w: w, all: make([]Ensured, len(w.jobs))}
	if !w.applies(head) {
		if how != ApplyInstead {
			err = a.superseded(ctx, 0, head)
		}
		return a.all, false, err
	}
	for at := 0; at < len(w.jobs); {
		n := batchOf(w.jobs[at:])
		err := a.apply(ctx, at, n)
		if errors.Is(err, ErrSuperseded) {
			return a.all, false, a.superseded(ctx, at, ListHead{})
		}
		if err != nil {
			return a.all[:at], false, ensuring(w.App, err)
		}
		at += n
	}
	s.warnUnserved(ctx, w.App, a.touched)
	s.warnOfStoredIn(w.App, a.touched)
	if len(a.touched) > 0 {
		s.scanWake.poke()
	}
	return a.all, true, nil
}

// applies reports whether the head of the app is this list.
func (w *wantedList) applies(head ListHead) bool {
	return head.Generation == w.Generation && head.Digest == w.Digest
}

func (s *scheduler) putList(ctx context.Context, w *wantedList, how ListApply, over ListHead) (ListHead, error) {
	head, err := s.store.PutList(ctx, ListPut{JobList: w.JobList, Incarnation: s.incarnation, Node: s.cfg.Node, Apply: how, Over: over})
	if err != nil {
		return head, ensuring(w.App, err)
	}
	return head, nil
}

// batchOf is how many of the jobs go together.
func batchOf(jobs []Job) int {
	size := 0
	for i := range min(len(jobs), ensureBatch) {
		size += len(jobs[i].Param) + len(jobs[i].GlueSource)
		if size > ensureBytes && i > 0 {
			return i
		}
	}
	return min(len(jobs), ensureBatch)
}

// applying is a list on its way into the store.
type applying struct {
	s       *scheduler
	w       *wantedList
	all     []Ensured // by the place in the list
	touched []Job     // created or changed
	grouped bool
}

// apply makes a batch of the jobs exist: those that are there are named and changed where
// they differ, the others are added. A replica may add or remove some meanwhile; these are
// looked at again.
func (a *applying) apply(ctx context.Context, at, n int) error {
	left := make(map[string]int, n) // places in the list by key
	for i := at; i < at+n; i++ {
		left[a.w.jobs[i].Key] = i
	}
	for len(left) > 0 {
		named, err := a.s.store.NameJobs(ctx, a.w.ID(), slices.Collect(maps.Keys(left)))
		if err != nil {
			return err
		}
		var gone []int
		for _, has := range named {
			i := left[has.Key]
			delete(left, has.Key)
			if err := a.change(ctx, i, has); isNotFound(err) {
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

// change gives a job that is there its definition.
func (a *applying) change(ctx context.Context, i int, has Job) error {
	job := a.w.jobs[i]
	if has.Ensured == job.Ensured && !isPruned(&has) {
		a.all[i] = Ensured{has, Unchanged}
		return nil
	}
	e, err := a.s.redefine(ctx, has, job, &ListGuard{ListID: a.w.ID()})
	if err == nil {
		a.all[i] = e
		a.touched = append(a.touched, job)
	}
	return err
}

// add adds the jobs that are left, and takes those that it has added out.
func (a *applying) add(ctx context.Context, left map[string]int) error {
	if len(left) == 0 {
		return nil
	}
	if !a.grouped {
		if err := a.s.store.EnsureGroup(ctx, a.w.App); err != nil {
			return err
		}
		a.grouped = true
	}
	var jobs []Job
	for _, i := range slices.Sorted(maps.Values(left)) {
		job := a.w.jobs[i]
		job.StopReason = ""
		if job.Schedule.IsManual() {
			job.Stopped, job.StopReason = true, StopManual
		}
		jobs = append(jobs, job)
	}
	added, err := a.s.store.AddJobs(ctx, a.w.ID(), jobs, func(job Job, now time.Time) (time.Time, error) {
		at, err := firstInstant(job, now)
		if err != nil {
			err = fmt.Errorf("job %q: %w", shorten(job.Name, 40), err)
		}
		return at, err
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
	return nil
}

// superseded says of the jobs from a place on that nothing was done to them.
func (a *applying) superseded(ctx context.Context, from int, head ListHead) error {
	places := map[string]int{}
	for i := from; i < len(a.w.jobs); i++ {
		job := a.w.jobs[i]
		job.Ensured = ""
		a.all[i] = Ensured{job, Superseded}
		places[job.Key] = i
	}
	log := a.s.log.With("app", a.w.App, "generation", a.w.Generation)
	if head == (ListHead{}) {
		log.Warn("xxljob: another list came while the list of jobs was applied: the rest of it changes nothing")
	} else {
		log.Warn("xxljob: the list of jobs changes nothing: one of a greater generation applies", "applies", head.Generation, "by", head.Node)
	}
	err := a.s.eachStored(ctx, a.w.App, slices.Collect(maps.Keys(places)), func(has *Job) { a.all[places[has.Key]].Job = *has })
	if err != nil {
		return ensuring(a.w.App, err)
	}
	return nil
}
