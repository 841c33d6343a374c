package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Apps that nobody serves. Input: what the start loop and the scan have asked about, nodes and
// registrations that come and go. Output: which jobs and runs wait for an executor, and until when;
// the same, as a trouble; what the store keeps of it; and word to those loops when somebody is there.

// Serving knows them. It is safe for concurrent use; duty is the only one that ends an absence by
// looking for it.
type Serving struct {
	*core.Core
	book     *Addresses
	executor *executor.Executor
	admit    func(app string)      // lets the runs go on that wait for an executor of an app
	parked   func(app string) bool // whether there are any
	late     func(app string) int  // how many, with those behind them; it looks at each

	any  atomic.Bool   // there is an absence
	back atomic.Bool   // see LookBack
	own  atomic.Bool   // the scheduler's own executor has handlers
	turn atomic.Uint64 // see Turn

	mu     sync.Mutex
	absent map[string]*absence       // guarded by mu: by app
	told   map[string]store.ServedBy // guarded by mu: apps that were seen to be served, and by whom
	unsaid map[string]store.Served   // guarded by mu: what the store has to be told
	here   map[string]bool           // guarded by mu: apps that were attached at the last look
	doubts map[string]time.Time      // guarded by mu: apps that could not be asked about, until when that is so

	backs int // of duty: how often the store's clock was set back, at the last look

	rarely loop.LogLimiter // what the log is not to be filled with
}

// absence is an app that nobody serves.
type absence struct {
	by    store.ServedBy // who served it last; empty for nobody ever
	gone  time.Time      // since when nobody does, by the store's clock when that was noted: see since
	noted time.Time      // monotonic: when it was
	ask   time.Time      // monotonic: when the registry is asked again; zero until it was asked since gone
	pause time.Duration  // and how long after that once more
	again time.Time      // when runs that wait have to be looked at, by the store's clock; zero for never
	jobs  int            // that wait
	waits time.Time      // monotonic: since when something waits; zero for nothing
	said  time.Time      // monotonic: when that was said last

	// Of an app that nobody has served yet: a node has ensured jobs of it, so that its executors run inside
	// schedulers. Until that is seen its jobs are read again from when on.
	ensured   atomic.Bool
	partly    atomic.Bool // not all of its jobs were looked at yet, not once: until then what is due waits
	readAgain time.Time   // guarded by mu of Serving; monotonic
	readTo    int64       // guarded by mu of Serving: the job behind which to go on
	pages     int         // guarded by mu of Serving: that were read since it began
	none      bool        // guarded by mu of Serving: none of them was ensured when all were looked at last
}

// NewServing makes it. admit lets the runs go on that wait for an executor of an app, parked says whether
// there are any, and late is how many, with those behind them.
func NewServing(s *core.Core, book *Addresses, own *executor.Executor, admit func(app string), parked func(app string) bool, late func(app string) int) *Serving {
	return &Serving{Core: s, book: book, executor: own, admit: admit, parked: parked, late: late, absent: map[string]*absence{}, told: map[string]store.ServedBy{}, unsaid: map[string]store.Served{}, here: map[string]bool{}, doubts: map[string]time.Time{}}
}

// Turn changes whenever an app is served again: jobs that waited for that may be planned.
func (s *Serving) Turn() uint64 { return s.turn.Load() }

// IsAbsent reports whether an app is known to have nobody.
func (s *Serving) IsAbsent(app string) bool { return s.of(app) != nil }

func (s *Serving) of(app string) *absence {
	if !s.any.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.absent[app]
}

// HoldsUp reports whether nothing is to be planned of a job, since it waits for an executor of its
// app. Where that cannot be found out it is planned: its runs wait then.
func (s *Serving) HoldsUp(ctx context.Context, job *store.Job) bool {
	if job.OnNoExecutor == store.OnNoExecutorRefuse {
		return false
	}
	x := s.of(job.App)
	if x == nil {
		if s.Cfg.AsksRegistry(job.App) || s.isAttached(job.App) || s.book.Memory.heardLately(job.App, s.Cfg.Cluster.Beat) {
			return false // the start loop asks a registry of the user's, which may hang
		}
		if s.isPlannable(job) {
			return false
		}
		if served, err := s.look(ctx, job.App); served || err != nil {
			s.doubt(job.App, err)
			return false
		}
		x = s.of(job.App)
	} else if job.OnNoExecutor == "" && job.Ensured == "" {
		_ = s.lookForEnsured(ctx, job.App, x) // where it fails the job goes by what was known
	}
	return x != nil && x.holdsUp(job)
}

// doubt notes that it could not be found out whether an app has anybody, for a moment: who asks about
// its next job is not to wait for that again.
func (s *Serving) doubt(app string, err error) {
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.doubts[app] = time.Now().Add(AddressTTL)
	}
}

// isPlannable reports whether a job is planned without asking: nobody could tell a moment ago, or it
// would not wait, since executors that register have served its app last.
func (s *Serving) isPlannable(job *store.Job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, doubted := s.doubts[job.App]
	if doubted && !time.Now().Before(until) {
		delete(s.doubts, job.App)
		doubted = false
	}
	return doubted || job.OnNoExecutor == "" && s.told[job.App] == store.ServedRegistered
}

// holdsUp reports whether a job waits for an executor, and its runs with it.
func (x *absence) holdsUp(job *store.Job) bool {
	switch job.OnNoExecutor {
	case store.OnNoExecutorWait:
		return true
	case store.OnNoExecutorRefuse:
		return false
	}
	if x.by == "" && job.Ensured != "" {
		x.ensured.Store(true)
	}
	return x.by == store.ServedAttached || x.by == "" && (x.ensured.Load() || x.partly.Load())
}

// ensuredPages is how many pages of an app's jobs are read at once to find out whether a node has ensured any,
// and ensuredSoon when it goes on behind them: who asks plans and starts for all apps.
const (
	ensuredPages = 2
	ensuredSoon  = 100 * time.Millisecond
)

// lookForEnsured finds out whether a node has ensured jobs of an app that nobody has served yet, once a
// second at most, and more rarely the more jobs there are to read. Of many it reads some at once, and duty
// goes on; meanwhile what is due waits.
func (s *Serving) lookForEnsured(ctx context.Context, app string, x *absence) error {
	if x.by != "" || x.ensured.Load() {
		return nil
	}
	s.mu.Lock()
	soon, filter := time.Now().Before(x.readAgain), store.JobFilter{App: app, Limit: loop.StoreBatch, After: x.readTo}
	if !soon {
		x.readAgain = time.Now().Add(AddressTTL) // where the store does not tell either
	}
	s.mu.Unlock()
	if soon {
		return nil
	}
	ctx = store.WithShortTexts(ctx, 0)
	for range ensuredPages {
		page, err := loop.Call(ctx, func(ctx context.Context) ([]store.Job, error) { return s.Store.Jobs(ctx, filter) })
		if err != nil {
			return err
		}
		for i := range page {
			filter.After = page[i].ID
			if page[i].Ensured != "" {
				x.ensured.Store(true)
				x.partly.Store(false)
				return nil
			}
		}
		s.mu.Lock()
		x.pages++
		s.mu.Unlock()
		if len(page) < loop.StoreBatch {
			s.noneEnsured(app, x)
			return nil
		}
	}
	s.mu.Lock()
	x.partly.Store(!x.none)
	x.readTo, x.readAgain = filter.After, time.Now().Add(ensuredSoon)
	s.mu.Unlock()
	s.Life.Wakes.Served.Poke()
	return nil
}

// noneEnsured notes that no job of an app is ensured, of all that there are. What has waited until that was
// known goes on.
func (s *Serving) noneEnsured(app string, x *absence) {
	s.mu.Lock()
	x.readTo, x.readAgain, x.pages, x.none = 0, time.Now().Add(time.Duration(x.pages)*AddressTTL), 0, true
	s.mu.Unlock()
	if x.partly.Swap(false) {
		s.turn.Add(1)
		s.Life.Wakes.Scan.Poke()
		s.admit(app)
	}
}

// readOn goes on to read the jobs of apps of which not all were looked at.
func (s *Serving) readOn(ctx context.Context) (failed error) {
	partly := map[string]*absence{}
	s.mu.Lock()
	for app, x := range s.absent {
		if x.readTo > 0 && !x.ensured.Load() {
			partly[app] = x
		}
	}
	s.mu.Unlock()
	for app, x := range partly {
		failed = errors.Join(failed, s.lookForEnsured(ctx, app, x))
	}
	return failed
}

// HoldsUpRun reports whether a due run waits for an executor of its app, which has none.
func (s *Serving) HoldsUpRun(job *store.Job, created, due time.Time) bool {
	if !s.any.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.absent[job.App]
	if x == nil {
		return false
	}
	until := s.until(x, job, created, due)
	if !s.Clock.Now().Before(until) {
		return false
	}
	if x.again.IsZero() || until.Before(x.again) || x.waits.IsZero() {
		x.again = core.Earlier(x.again, until)
		s.Life.Wakes.Served.Poke()
	}
	return true
}

// until is when a run that waits is refused, zero for at once.
func (s *Serving) until(x *absence, job *store.Job, created, due time.Time) time.Time {
	switch {
	case x.holdsUp(job):
		// By the hour, so that runs which wait together are looked at together. One that was
		// triggered far ahead is as old as from the day before it is due.
		kept := store.PlannedFor(s.Cfg.RunRetention)
		return core.Later(created, due.Add(-24*time.Hour)).Add(kept).Truncate(min(time.Hour, kept/16))
	case x.by == store.ServedAttached:
		return s.since(x).Add(s.Cfg.Cluster.LostAfter)
	case x.by == store.ServedRegistered:
		return s.since(x).Add(s.Cfg.Cluster.Dead)
	}
	return time.Time{} // there never was anybody
}

// goneAhead is by how much an absence may seem to have begun after it was noted, as clocks differ: by more
// only where the store's clock was ahead.
const goneAhead = time.Minute

// since is since when nobody serves an app, by the store's clock as it is now.
func (s *Serving) since(x *absence) time.Time {
	if noted := s.Clock.Now().Add(-time.Since(x.noted)); x.gone.Sub(noted) > goneAhead {
		return noted
	}
	return x.gone
}

// SetJobs notes how many jobs of each app wait.
func (s *Serving) SetJobs(jobs map[string]int) {
	if !s.any.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for app, x := range s.absent {
		if n := jobs[app]; n != x.jobs {
			x.jobs = n
			s.Life.Wakes.Served.Poke()
		}
	}
}

// Gone notes that nobody serves an app, as has just been found out.
func (s *Serving) Gone(ctx context.Context, app string) error {
	if x := s.of(app); x != nil {
		_ = s.lookForEnsured(ctx, app, x) // where it fails its jobs go by what was known
		return nil
	}
	rows, err := loop.Call(ctx, func(ctx context.Context) ([]store.Served, error) { return s.Store.Served(ctx, []string{app}) })
	if err != nil {
		return err
	}
	x := &absence{gone: s.Clock.Now(), noted: time.Now(), pause: time.Second}
	for _, row := range rows {
		x.by = row.By
	}
	if !s.isTold(app) {
		if err := s.lookForEnsured(ctx, app, x); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	by, seen := s.told[app]
	for _, row := range rows {
		if !row.Gone.IsZero() && !seen {
			x.gone = row.Gone
		}
	}
	if seen {
		x.by = by
	}
	if s.absent[app] == nil {
		delete(s.told, app)
		s.absent[app] = x
		s.unsaid[app] = store.Served{App: app, By: x.by, Gone: s.since(x)}
		s.any.Store(true)
	}
	s.Life.Wakes.Served.Poke() // somebody may have come meanwhile
	return nil
}

// Found notes that addresses of an app were found: that it is served again, or that it is at all.
func (s *Serving) Found(app string, addrs []string) {
	if s.IsAbsent(app) || !s.isTold(app) {
		s.saw(app, servedBy(addrs))
	}
}

// servedBy is who serves an app that has these addresses.
func servedBy(addrs []string) store.ServedBy {
	for _, a := range addrs {
		if !store.IsRemote(a) {
			return store.ServedAttached
		}
	}
	return store.ServedRegistered
}

// isTold reports whether it is known by whom an app is served.
func (s *Serving) isTold(app string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[app] != ""
}

// saw notes that somebody serves an app. What waited for that goes on.
func (s *Serving) saw(app string, by store.ServedBy) {
	s.mu.Lock()
	x := s.absent[app]
	if x == nil && s.told[app] == by {
		s.mu.Unlock()
		return
	}
	s.told[app] = by
	s.unsaid[app] = store.Served{App: app, By: by}
	delete(s.absent, app)
	s.any.Store(len(s.absent) > 0)
	s.mu.Unlock()
	s.Life.Wakes.Served.Poke() // the store is told
	if x == nil {
		return
	}
	s.turn.Add(1)
	s.Life.Wakes.Scan.Poke()
	s.admit(app)
	s.Core.Troubles.End(store.TroubleNoExecutor, s.Clock.Now(), store.Trouble{App: app}) // also of a run that was refused
}

// isAttached reports whether a live node has an app attached.
func (s *Serving) isAttached(app string) bool {
	if s.Leases.HasElsewhere(app) {
		return true
	}
	e := s.book.Attached.Get(app)
	switch {
	case e == nil || s.Life.Draining.Load():
		return false
	case e != core.Executor(s.executor) || s.own.Load():
		return true
	}
	has := len(s.executor.Handlers()) > 0 // none goes away again
	s.own.Store(has)
	return has
}

// look asks whether somebody serves an app, and notes the answer.
func (s *Serving) look(ctx context.Context, app string) (served bool, err error) {
	a, err := loop.Call(ctx, func(ctx context.Context) (Answer, error) { return s.book.Ask(ctx, app) })
	if err != nil {
		return false, err
	}
	switch all := s.book.AllOf(app, a); {
	case len(all) > 0 && !s.Cfg.AsksRegistry(app) && s.isAttached(app):
		s.saw(app, store.ServedAttached)
		return true, nil
	case len(all) > 0:
		s.saw(app, servedBy(all))
		return true, nil
	case a.Stale != nil:
		return false, a.Stale
	}
	return false, s.Gone(ctx, app)
}

const (
	// lookedBack is how long an app of this node must have had nobody for that to be told.
	lookedBack = time.Minute
	// lookedBackRuns is up to how many of its runs are counted, and lookedBackFor for how long at most: the
	// node joins after that.
	lookedBackRuns = 20 * loop.StoreBatch
	lookedBackFor  = 2 * loop.CallTimeout
)

// LookBack tells of apps of this node that have had no executor until now while something of them was
// due: other services that share the store have seen that, and rules of the app's own were not there.
// It is called before the node joins, from when on the app is served. What it cannot find out is not told.
func (s *Serving) LookBack(ctx context.Context) {
	if s.back.Load() {
		return
	}
	past, err := s.absences(ctx)
	if err != nil {
		s.Logger.Warn("xxljob: could not find out for how long the apps of this node have had no executor", "error", err)
	}
	for _, x := range past {
		s.Core.Troubles.Was(store.TroubleNoExecutor, s.Clock.Now(), x)
	}
	s.back.Store(true)
	s.Life.Wakes.Served.Poke()
}

// absences are the apps of this node that nobody serves, as far as something of them waits.
func (s *Serving) absences(ctx context.Context) (all []store.Trouble, err error) {
	var apps []string
	for _, at := range s.Leases.Local() {
		apps = append(apps, at.App)
	}
	if len(apps) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(store.WithShortTexts(ctx, 0), lookedBackFor)
	defer cancel()
	rows, err := loop.Call(ctx, func(ctx context.Context) ([]store.Served, error) { return s.Store.Served(ctx, apps) })
	if err != nil || !slices.ContainsFunc(rows, func(row store.Served) bool { return !row.Gone.IsZero() }) {
		return nil, err
	}
	now, err := loop.Call(ctx, s.Now)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Gone.IsZero() || now.Sub(row.Gone) < lookedBack {
			continue
		}
		runs, err := s.waitingRuns(ctx, row.App, now)
		if err != nil {
			return all, err
		}
		jobs, err := s.overdueJobs(ctx, row.App, now)
		if err != nil {
			return all, err
		}
		if jobs+runs == 0 {
			continue
		}
		all = append(all, store.Trouble{
			App: row.App, Since: row.Gone, Late: jobs + runs,
			Seen:   store.Seen{What: store.SeenNobodyBefore, Jobs: jobs, Runs: runs},
			Remedy: "see why its processes were away; what has waited goes on, as Job.Misfire says",
		})
	}
	return all, nil
}

// overdueJobs counts the jobs of an app of which something was due before now and not planned. Where the
// store lists jobs by when they are due, no others are read.
func (s *Serving) overdueJobs(ctx context.Context, app string, now time.Time) (n int, err error) {
	reader, ordered := core.Given(s.Store).(store.JobReader)
	search := store.JobSearch{Apps: []string{app}, Stopped: new(false), Order: store.ByNext, Limit: loop.StoreBatch}
	filter := store.JobFilter{App: app, Stopped: new(false), Limit: loop.StoreBatch}
	for {
		page, err := loop.Call(ctx, func(ctx context.Context) (page []store.Job, err error) {
			if !ordered {
				return s.Store.Jobs(ctx, filter)
			}
			timed := core.Metered(s.Store, "SearchJobs")
			defer timed.End(&err)
			return reader.SearchJobs(ctx, search)
		})
		if err != nil {
			return n, err
		}
		for i := range page {
			if next := page[i].Next; !next.IsZero() && next.Before(now) {
				n++
			} else if ordered {
				return n, nil
			}
		}
		if len(page) < loop.StoreBatch {
			return n, nil
		}
		last := page[len(page)-1]
		search.After, filter.After = last, last.ID
	}
}

// waitingRuns counts the runs of an app that are due and not started, up to lookedBackRuns.
func (s *Serving) waitingRuns(ctx context.Context, app string, now time.Time) (n int, err error) {
	filter := store.RunFilter{App: app, States: []store.State{store.StatePlanned}, To: now, Limit: loop.StoreBatch}
	for n < lookedBackRuns {
		page, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return s.Store.Runs(ctx, filter) })
		if err != nil {
			return n, err
		}
		if n += len(page); len(page) < loop.StoreBatch {
			break
		}
		filter.Before = page[len(page)-1].ID
	}
	return n, nil
}

// Duty looks at who comes and goes, and for executors of apps that have none.
func (s *Serving) Duty() loop.Duty {
	return loop.Duty{What: "looking for executors of apps that have none", Wakes: []<-chan struct{}{s.Life.Wakes.Served}, Aside: true, Once: s.once}
}

func (s *Serving) once(ctx context.Context) (time.Duration, error) {
	if s.Life.Draining.Load() || !s.back.Load() {
		return loop.Forever, nil // it would take its own executors for gone, or note that they are there
	}
	news, gone := s.book.Memory.takeNews(), s.comeAndGone()
	failed := s.tell(ctx)
	for _, app := range gone {
		_, err := s.look(ctx, app)
		failed = errors.Join(failed, err)
	}
	failed = errors.Join(failed, s.lookAgain(ctx, news), s.readOn(ctx))
	s.goOn()
	s.say()
	failed = errors.Join(failed, s.tell(ctx))
	return s.next(), failed
}

// comeAndGone notes which apps are attached, and returns those that are not any more.
func (s *Serving) comeAndGone() (gone []string) {
	here := map[string]bool{}
	for _, app := range s.Leases.AppsElsewhere() {
		here[app] = true
	}
	for _, at := range s.Leases.Local() {
		here[at.App] = true
	}
	s.mu.Lock()
	was := s.here
	s.here = here
	s.mu.Unlock()
	for app := range was {
		if !here[app] {
			gone = append(gone, app)
		}
	}
	for app := range here {
		if !s.Cfg.AsksRegistry(app) {
			s.saw(app, store.ServedAttached)
		}
	}
	return gone
}

// lookAgain looks for executors of apps that have none: of which there are news, here or in the
// store, and of all the others now and then. The store is not asked about apps by their names where
// nothing is known of them but that somebody has registered.
func (s *Serving) lookAgain(ctx context.Context, news []string) error {
	now := time.Now()
	s.mu.Lock()
	fresh := make(map[string]bool, len(news))
	var ask []string // whether the store has other news
	for _, app := range news {
		fresh[app] = s.absent[app] != nil || s.told[app] == store.ServedRegistered
		if !fresh[app] && s.told[app] == "" {
			ask = append(ask, app)
		}
	}
	for app, x := range s.absent {
		switch {
		case fresh[app]:
		case x.ask.IsZero() || !s.quiet(app) && !now.Before(x.ask): // once at least: the news may have come before the absence was noted
			x.pause = min(2*x.pause, s.mostPause(app))
			x.ask = now.Add(x.pause)
			fresh[app] = true
		default:
			ask = append(ask, app)
		}
	}
	s.mu.Unlock()
	var failed error
	for page := range slices.Chunk(ask, loop.StoreBatch) {
		rows, err := loop.Call(ctx, func(ctx context.Context) ([]store.Served, error) { return s.Store.Served(ctx, page) })
		failed = errors.Join(failed, err)
		for _, row := range rows {
			fresh[row.App] = row.Gone.IsZero() == s.IsAbsent(row.App)
		}
	}
	for app, is := range fresh {
		if is && ctx.Err() == nil {
			_, err := s.look(ctx, app)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// quiet reports whether nobody can come to an app without a signal.
func (s *Serving) quiet(app string) bool {
	poll, _ := s.Store.Poll()
	return poll == 0 && !s.Cfg.AsksRegistry(app)
}

// mostPause is how long it may take to notice who has come without one: an executor that a node of an
// older release has registered, or one in a registry of the user's.
func (s *Serving) mostPause(app string) time.Duration {
	if s.Cfg.AsksRegistry(app) {
		return min(addressPause, s.Cfg.Cluster.Beat)
	}
	return s.Cfg.Cluster.Beat
}

// goOn lets runs go on that have waited for as long as they may.
func (s *Serving) goOn() {
	var over []string
	s.mu.Lock()
	backs := s.Clock.Backs()
	back := backs != s.backs // by the clock as it is now they may have waited for long enough
	s.backs = backs
	for app, x := range s.absent {
		if !x.again.IsZero() && (back || !s.Clock.Now().Before(x.again)) {
			x.again = time.Time{}
			over = append(over, app)
		}
	}
	s.mu.Unlock()
	for _, app := range over {
		s.admit(app)
	}
}

// saidAgain is how often it is counted again what waits for an app that is named as a trouble, and
// saidKept for how long it is one after that.
const (
	saidAgain = time.Minute
	saidKept  = 2 * time.Hour
)

// say says which apps jobs and runs have waited for.
func (s *Serving) say() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for app, x := range s.absent {
		switch {
		case x.jobs == 0 && !s.parked(app):
			s.noneWaits(app, x)
		case x.waits.IsZero():
			x.waits = now
		case now.Sub(x.waits) >= s.Cfg.Cluster.LeaseTTL && (x.said.IsZero() || now.Sub(x.said) >= saidAgain):
			runs := s.late(app)
			if x.jobs+runs == 0 { // what is parked is over
				s.noneWaits(app, x)
				continue
			}
			x.said = now
			s.Core.Troubles.SawLate(store.TroubleNoExecutor, s.Clock.Now(), saidKept, store.Trouble{
				App: app, Since: s.since(x), Late: x.jobs + runs,
				Seen:   store.Seen{What: store.SeenNobody, Jobs: x.jobs, Runs: runs},
				Remedy: "start an executor of this app, or stop its jobs; see whether executors reach this address to register; Job.OnNoExecutor says what waits and what is refused",
			})
		}
	}
}

// noneWaits ends what was said of an app for which nothing waits. Caller holds mu.
func (s *Serving) noneWaits(app string, x *absence) {
	if x.waits = (time.Time{}); !x.said.IsZero() {
		x.said = time.Time{}
		s.Core.Troubles.End(store.TroubleNoExecutor, s.Clock.Now(), store.Trouble{App: app})
	}
}

// IsSaid reports whether an app is named as a trouble, with what waits for an executor of it.
func (s *Serving) IsSaid(app string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.absent[app]
	return x != nil && !x.said.IsZero()
}

// tell has the store keep what it does not know yet.
func (s *Serving) tell(ctx context.Context) error {
	s.mu.Lock()
	var list []store.Served
	for _, x := range s.unsaid {
		list = append(list, x)
	}
	clear(s.unsaid)
	s.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	rand.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	done, alone, taken := 0, 0, false
	refused, why, err := loop.Halve(list, func(part []store.Served) error {
		err := loop.Do(ctx, func(ctx context.Context) error { return errors.Join(s.SetShards(ctx), s.Store.NoteServed(ctx, part)) })
		switch {
		case err == nil:
			done, taken = done+len(part), true
		case errors.Is(err, store.ErrRefused) && len(part) == 1:
			if alone++; alone >= loop.RefusedFew && !taken {
				return fmt.Errorf("nothing is taken: %v", err)
			}
			done++
		}
		return err
	})
	if len(refused) > 0 && s.rarely.Allow("served") {
		s.Logger.ErrorContext(ctx, "xxljob: the store refuses to note how some apps are served", "apps", len(refused), "first", refused[0].App, "error", why)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range slices.Concat(refused, list[done:]) { // those are told with the next news
		if _, newer := s.unsaid[x.App]; !newer {
			s.unsaid[x.App] = x
		}
	}
	return err
}

// next is when to look again.
func (s *Serving) next() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait, now := time.Duration(loop.Forever), time.Now()
	for app, x := range s.absent {
		if !s.quiet(app) {
			wait = min(wait, x.ask.Sub(now))
		}
		if !x.again.IsZero() {
			wait = min(wait, x.again.Sub(s.Clock.Now()))
		}
		if x.readTo > 0 && !x.ensured.Load() {
			wait = min(wait, x.readAgain.Sub(now))
		}
		switch {
		case x.waits.IsZero():
		case x.said.IsZero():
			wait = min(wait, x.waits.Add(s.Cfg.Cluster.LeaseTTL).Sub(now))
		default:
			wait = min(wait, x.said.Add(saidAgain).Sub(now))
		}
	}
	return max(wait, time.Millisecond)
}
