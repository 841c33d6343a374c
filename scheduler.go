package xxljob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/wire"
)

// Scheduler schedules jobs and runs them. Make one with New. All methods are
// safe for concurrent use, and all but Ready work before Start as well: what
// needs running loops then waits for them, on this node or on another one that
// shares the store. When Stop is over, Trigger, EnsureJob, EnsureJobs, Wait and
// Handle are ErrStopped, and the others go on. A nil context is an error. Lists of
// jobs and runs are the Store's to answer.
type Scheduler interface {
	// Start starts the loops and returns; ErrStarted the second time, ErrStopped after
	// Stop. Before that it asks the store for the number of shards, for five seconds at
	// most: another one than Config.Shards is ErrShards, and nothing is started. A store
	// that does not answer, or answers with another error, is no error: the loops go on
	// asking. When ctx ends, the scheduler stops as if Stop had been
	// called with Config.StopGrace.
	Start(ctx context.Context) error
	// Stop stops claiming and starting, once what it has asked of the store is
	// answered (five seconds at most), gives back what is started but not sent,
	// releases the shards, and then waits for running handlers, storing their
	// results, until ctx ends; handlers still running then are cancelled and
	// recorded as killed, and ctx's error is returned. It returns when every
	// goroutine of the scheduler has ended, or two seconds after ctx where the
	// store hangs or a handler ignores its cancellation. A Router or Registry that
	// does not return is left behind after Config.RouteTimeout, a hook after
	// Config.StopGrace. Later calls wait for the first. The store is not closed.
	Stop(ctx context.Context) error
	// Run starts, waits for ctx to end, and stops with Config.StopGrace. It
	// returns nil after a clean stop. It also ends, with ErrShards, when a store that
	// did not answer at the start turns out to have another number of shards.
	Run(ctx context.Context) error
	// Ready returns nil while the scheduler is started, its lease is trusted, and its
	// claims and starts succeed, else an error that wraps ErrNotReady and says what is
	// missing. While these fail for a Config.LeaseTTL, and until they have succeeded for
	// another, other nodes have the node's shards, if there are any.
	Ready() error

	// AddJob adds a job and starts it, unless job.Stopped or its schedule is
	// Manual. All faults of the job come as one error, each naming the job, and nothing
	// is stored. Fields that the store sets, from ID to Updated, have to be empty.
	AddJob(ctx context.Context, job Job) (Job, error)
	// UpdateJob replaces the definition of the job with job.ID. Whether it is
	// stopped stays as it is, except that a job which stopped by itself (finished,
	// manual, broken schedule) starts when it is given another schedule. With a
	// Version other than zero it is a compare-and-set: ErrConflict. App is fixed.
	UpdateJob(ctx context.Context, job Job) (Job, error)
	// RemoveJob deletes the job and cancels what it has planned. What runs, runs
	// on; runs stay readable.
	RemoveJob(ctx context.Context, id int64) error
	// StartJob starts a stopped job: its first instant is the first strictly
	// after now. Starting a started one changes nothing. One that EnsureJobs has pruned is
	// pruned again after Config.PruneAfter, unless a list or EnsureJob names it by then.
	StartJob(ctx context.Context, id int64) error
	// StopJob stops the schedule and cancels what it has planned. What runs, runs
	// on, and triggers by hand are run all the same.
	StopJob(ctx context.Context, id int64) error
	// EnsureJob makes the job with this App and Key exist as given: it creates the
	// app's group and the job when absent, and writes nothing when the definition is
	// the one last ensured. It neither starts nor stops a job that exists, but for one
	// that EnsureJobs has pruned: that is started again, unless somebody has stopped it
	// since. Lists no longer prune the job, until one names it. It may be called by many
	// replicas at once.
	EnsureJob(ctx context.Context, job Job) (Ensured, error)
	// EnsureJobs ensures a list: what a release of a program wants of an app, as each of
	// its replicas says it, at its start or later. All jobs get the app where they name
	// none, and may not name another; one node has one list for an app, the last. All
	// faults come as one error, and nothing is stored. It returns the jobs in the order of
	// the list; after an error of the store, those that were done before it, and the list
	// is this node's all the same, unless it was still being checked: it goes on to apply
	// as said below, and where it applies already, or is the newest that the store would
	// have, a started node does the rest of it by itself, but for jobs whose instants are
	// all past.
	//
	// Lists have generations (EnsureOptions). While the list of a greater generation
	// applies, the call changes nothing, and the outcome of its jobs is Superseded. It
	// applies later, by itself, once the node is started and has seen throughout
	// Config.PruneAfter that no node lives which has the list that applies, or one of a
	// greater generation than its own; with Rollback it applies at once. Of different
	// lists of one generation that applies which came to the store last, for it is the
	// one that somebody has asked for since; what either names stays. A call whose list is
	// overtaken while it is applied stops there: the outcome of the jobs that are left is
	// Superseded.
	//
	// A job that is gone from the lists is stopped once a started node with a list that
	// has Prune, and a generation no less than that of the list which named the job last,
	// has seen throughout Config.PruneAfter that no list of a node that lives names it,
	// and while no other list of its own generation applies. So replicas of two releases
	// live side by side, and an app without nodes is left alone. One that comes back into
	// a list that applies is started again. Jobs that no list has named, or that EnsureJob
	// has named after them, are not pruned. A node lives until it has left, or was silent
	// for Config.LostAfter.
	EnsureJobs(ctx context.Context, app string, jobs []Job, opts EnsureOptions) ([]Ensured, error)
	// SaveGroup adds or replaces an executor app.
	SaveGroup(ctx context.Context, g Group) error
	// RemoveGroup removes an app without jobs; ErrGroupInUse otherwise.
	RemoveGroup(ctx context.Context, app string) error

	// Trigger runs a job once, stopped or not, and returns the ids of its runs. Of
	// a broadcast it is the first part; the others have it as TriggerID.
	Trigger(ctx context.Context, jobID int64, t Trigger) ([]int64, error)
	// Wait returns the run once it has ended. A run that has not ended when ctx ends is
	// returned as it was, beside the error. A Wait that has begun before the end of Stop
	// goes on, for another node may end the run. From inside a handler, with its context
	// or one that is made of it, waiting for the handler's own run is ErrWaitsForItself,
	// and so is waiting for one that is certain to be queued behind it: see there.
	Wait(ctx context.Context, runID int64) (Run, error)
	// Kill ends a run: a planned one is cancelled, a running one has its context
	// cancelled and is recorded as killed. It does not wait for that. A remote executor
	// is asked before Kill returns, and the run is recorded when it has agreed; where it
	// refuses, or does not answer, that is the error, and Kill may be called again.
	// Executors of other makers end whatever the job runs there.
	Kill(ctx context.Context, runID int64) error
	// Log returns lines of a run's log from fromLine on, counted from 1; less
	// counts as 1. At most 1 MiB of them come at once; a line that is longer is
	// cut. A running run is followed by asking again, a moment later, from the
	// ToLineNum of the result plus one; there is nothing new when FromLineNum is
	// greater than ToLineNum, and IsEnd says that nothing will come. It is set once
	// the run has ended and all its lines were returned; a handler that goes on
	// when its run was recorded, as killed for instance, may log more all the same.
	//
	// Logs stay where the run ran. An executor of this process is asked directly,
	// one that is attached at another node through the store. It may take until
	// ctx's deadline, or 5 seconds where it has none; when no answer has come by
	// then, the error wraps that of the context. ErrNotFound when there is no such
	// run, and ErrNoLog, with the reason, when its log is not to be had: the run was
	// never started, its node is gone or its app not attached there any more, the
	// executor has failed to read the log, or has none: because nothing was logged,
	// or it was dropped since. A remote executor is asked over HTTP, as long as its
	// address is one of the app's; Java executors answer with all the rest of a log at
	// once, of which at most 16 MiB are read.
	//
	// Any number of calls may be under way; an executor of this process is asked
	// for at most a few logs at once, and the others wait their turn.
	Log(ctx context.Context, runID int64, fromLine int) (wire.LogResult, error)

	// Handle registers a handler on the scheduler's own executor, for the app
	// Config.App (or Config.Executor.App, where that is set). It fails for an empty name, a nil handler or a name that is
	// taken.
	Handle(name string, h executor.Handler, opts ...executor.HandlerOption) error
	// Attach adds an executor that runs in this process, for another app: one
	// executor an app.
	Attach(e Executor) error
	// Handler returns the admin side of XXL-JOB's HTTP protocol, for the host's own mux,
	// under any prefix: executors of any generation and language register there, and
	// report their results to any node that shares the store. It answers below /api/ and
	// /xxl-job-admin/api/ alike; see [wire.NewAdminHandler] for what the host's server
	// has to bound. Without Config.Tokens it is an error, unless Config.Insecure says so.
	// It serves before Start and after Stop as well. Jobs are managed there by those whom
	// Config.JobsAPI names, and by nobody where it is empty.
	Handler() (http.Handler, error)
}

// New returns a scheduler over the store. It validates the configuration, with
// all faults in one error, and starts no goroutine.
func New(store Store, cfg Config) (Scheduler, error) {
	if store == nil {
		return nil, errors.New("xxljob: New: the store is nil")
	}
	cfg = cfg.withDefaults()
	own, err := executor.New(cfg.Executor)
	if err != nil {
		err = fmt.Errorf("xxljob: config: Executor: %w", err)
	}
	if err := errors.Join(cfg.validate(), err); err != nil {
		return nil, err
	}
	s := &scheduler{
		shared: &shared{
			cfg: cfg, store: store, log: cfg.Logger.With("node", cfg.Node), incarnation: cfg.Node + "-" + randomText(10),
			clock: &clock{}, wakes: newWakes(), life: newLife(),
		},
		own: own, attached: &attachedSet{},
		dispatching: newBatch[Dispatch](),
	}
	s.setUp()
	return s, s.Attach(own)
}

// setUp makes the parts that refer to the scheduler or to each other.
func (s *scheduler) setUp() {
	s.panics = guard.NewLog(func() *slog.Logger { return s.log })
	s.hooks = &hookQueue{log: s.log, panics: s.panics, hooks: s.cfg.Hooks}
	s.leases = newLeases(s.incarnation, &s.cfg, s.attachments)
	s.engine = newEngine(s.shared, s.panics)
	s.fitness = newFitness(s.cfg.LeaseTTL, s.wakes.lease)
	s.users = newUserCalls(&s.cfg, s.panics)
	s.remotes = newRemotes(&s.cfg)
	s.book = newAddressBook(s.shared, s.engine, s.attached, s.remotes, s.users, s.registerAttached)
	s.probes = newProbes(s.shared, s.attached, s.remotes, s.engine)
	s.callees = &callees{s.incarnation, s.attached, s.remotes}
	s.router = newRouter(s.shared, s.engine, s.book, s.callees, s.probes, s.users, s.panics)
	s.registrar = newRegistrar(s.shared, s.book, s.users)
	s.fanOut = make(fanOut, max(1, s.cfg.FastLane/2))
	s.early = newEarlyFlights()
	s.desk, s.doubts = newLogDesk(), newDoubts(s.wakes.lease)
	s.finisher = newFinisher(s.shared, s.engine, s.hooks)
	s.definer = &definer{s.shared, s.engine, s.book, s.router, s.users, newOwnLists(s.wakes.list)}
	s.waiter = &waiter{s.shared, s.engine, s.book, s.router}
	s.speaker = &speaker{shared: s.shared, attached: s.attached, own: s.own}
	s.results = newAdminResults(s.shared, s.finisher, s.speaker)
	s.logs = &logs{s.shared, s.desk, s.attached, s.book}
	s.reconciler = &reconciler{shared: s.shared, engine: s.engine}
	s.watcher = &watcher{s.shared, s.engine, s.desk}
	s.taking = make(chan struct{}, 1)
	s.claiming = backoff{log: s.log, what: "claiming due jobs"}
	s.starting = backoff{log: s.log, what: "starting runs"}
}

// scheduler is the engine behind Scheduler. Its loops are in files of their own:
// scan.go, start.go, handover.go, callback.go, lease.go, registry.go; logs are in log.go.
type scheduler struct {
	*shared
	*definer // the verbs of definitions
	*waiter
	*logs

	// Set by New, then only read.
	own       *executor.Executor
	book      *addressBook
	engine    *engine
	finisher  *finisher
	watcher   *watcher
	fitness   *fitness
	probes    *probes
	remotes   *remotes
	registrar *registrar

	signals Signals // set by Start, before the loops

	early       *earlyFlights
	desk        *logDesk
	panics      *guard.Log // of code of the user's
	hooks       *hookQueue
	users       *userCalls // of Config.Registry and Config.Routers
	lead        lead
	window      planWindow // owned by the scan loop
	unsettled   unsettled  // owned by the scan loop
	reconciler  *reconciler
	claiming    backoff                     // of Store.Claim; owned by the scan loop
	starting    backoff                     // of Store.Start; owned by the start loop
	herds       struct{ first, again herd } // starts that go apart; owned by the start loop
	offeredAt   time.Time                   // see offerFreed; owned by the start loop
	reload      reloadSet
	dispatching *batch[Dispatch] // runs that remote executors have accepted
	open        openRuns
	fanOut      fanOut
	results     *adminResults
	speaker     *speaker
	unsure      atomic.Bool // a start may have taken effect that Stop cut short
	doubts      *doubts
	orphans     map[int64]time.Time // since when they were seen; owned by the lease loop
	orphaned    time.Time           // the last look for them; owned by the lease loop
	unswept     reloadSet           // shards whose waiting jobs have to be mended yet
	server      string              // the store's, as of the last beat; owned by the lease loop
	superseded  bool                // another node has this one's name; owned by the lease loop
	rests       bool                // this node leaves its shards to others, as it has said in the log; owned by the lease loop
	failing     bool                // what this node thought of itself at the last beat; owned by the lease loop
	tended      int                 // how many duties it has done beside its beats; owned by the lease loop
	outrun      bool                // others were quicker to take shards, the last time; owned by the lease loop
	taking      chan struct{}       // full while runs are taken out of the inbox
	attached    *attachedSet
	callees     *callees
	router      *router
}

func (s *scheduler) Start(ctx context.Context) error { return s.start(ctx, ctx) }

// start looks for what no retry mends, for as long as ctx lasts, and starts the loops.
// They go on until life ends.
func (s *scheduler) start(ctx, life context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	if err := s.mayStart(life); err != nil {
		return err
	}
	if err := s.sameShards(ctx); err != nil {
		return err
	}
	return s.startLoops(life)
}

func (s *scheduler) mayStart(ctx context.Context) error {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	return s.life.mayStart(ctx)
}

// sameShards returns an error if the store has another number of shards. Whatever else
// is wrong with it the loops look after.
func (s *scheduler) sameShards(ctx context.Context) error {
	_, err := call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.setShards(ctx) })
	if errors.Is(err, ErrShards) {
		return fmt.Errorf("xxljob: start: %w", err)
	}
	return nil
}

func (s *scheduler) startLoops(ctx context.Context) error {
	l := s.life
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.mayStart(ctx); err != nil {
		return err
	}
	l.started = true
	s.speaker.warnOfDefaultToken()
	s.speaker.warnOfJobsAPI()
	l.plan, l.work, l.lease = newLoops(), newLoops(), newLoops()
	s.signals = s.store.Watch(l.lease.ctx, s.incarnation)
	plan, work, lease := s.duties(s.signals)
	l.lease.start(s.log, lease)
	l.work.start(s.log, work)
	l.plan.start(s.log, plan)
	// The goroutine that AfterFunc starts ends with Stop.
	l.unhook = context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), s.cfg.StopGrace)
		defer cancel()
		if err := s.graceOver(s.Stop(grace)); err != nil {
			s.log.Warn("xxljob: stopped before all handlers had ended", "error", err)
		}
	})
	return nil
}

func (s *scheduler) Run(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	if err := s.start(ctx, context.WithoutCancel(ctx)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.life.lease.ctx.Done(): // somebody else called Stop
	case <-s.life.broken:
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StopGrace)
	defer cancel()
	return errors.Join(s.graceOver(s.Stop(grace)), s.life.fatalErr())
}

// graceOver has an error of Stop say how long handlers had.
func (s *scheduler) graceOver(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("xxljob: handlers had not ended within StopGrace %v: %w", s.cfg.StopGrace, err)
	}
	return err
}

// cannotWork records an error that no retry mends: ErrShards, of a store that did not
// answer when Start asked. It is called once, by the lease loop.
func (s *scheduler) cannotWork(err error) {
	s.log.Error("xxljob: this scheduler cannot work at all", "error", err)
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	s.life.fatal = err
	close(s.life.broken)
}

func (s *scheduler) Ready() error {
	l := s.life
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.fatal != nil:
		return fmt.Errorf("%w: %w", ErrNotReady, l.fatal)
	case l.stopping:
		return fmt.Errorf("%w: %w", ErrNotReady, ErrStopped)
	case !l.started:
		return fmt.Errorf("%w: not started", ErrNotReady)
	case !s.leases.trusted(time.Now()):
		return fmt.Errorf("%w: the store has not acknowledged a beat in time", ErrNotReady)
	case s.leases.isSuperseded():
		return fmt.Errorf("%w: a later node has the same Config.Node", ErrNotReady)
	}
	if err := s.fitness.err(s.leases.isResting()); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil
}

func (s *scheduler) Handler() (http.Handler, error) {
	authorize, err := s.cfg.authorize()
	if err != nil {
		return nil, err
	}
	return wire.NewAdminHandler(&adminSide{s.shared, s.registrar, s.results, s.speaker, s.definer, newQuota()}, wire.HandlerConfig{Authorize: authorize, Logger: s.log})
}
