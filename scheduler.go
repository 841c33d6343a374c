package xxljob

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/engine/catalog"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/node"
	"github.com/xxljob/xxljob/internal/grants"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Scheduler schedules jobs and runs them. Make one with New. All methods are safe for
// concurrent use, and all but Ready also work before Start: whatever needs the loops then
// waits for them, on this node or on another one that shares the store. After Stop has
// returned, Trigger, EnsureJob, EnsureJobs, Wait and Handle return ErrStopped; the other
// methods keep working. A nil context is an error. To list jobs and runs, ask the Store.
type Scheduler interface {
	// Start starts the loops and returns. The second call returns ErrStarted, a call after
	// Stop ErrStopped. First it asks the store for the number of shards, for at most five
	// seconds; if that is not Config.Cluster.Shards it returns ErrShards and starts nothing. A store
	// that does not answer, or returns another error, does not fail Start: the loops keep
	// asking. Then it compares the handlers of jobs that this scheduler was given before Start
	// with those that there are, of this process and of all live nodes, in each app that this
	// process has handlers of: where nobody has one, Start is one ErrUnknownHandler for all,
	// with the names there are, and starts nothing. From then on each definition is compared
	// as it comes. It is a warning instead where that is not certain: beside a node whose list
	// of the app has another generation, where executors elsewhere are registered, and for an
	// app with a token of its own. When ctx ends, the scheduler stops as if Stop had been called with
	// Config.StopGrace.
	Start(ctx context.Context) error
	// Stop stops claiming and starting, once what it has asked of the store is
	// answered (five seconds at most), gives back what is started but not sent,
	// releases the shards, and then waits for running handlers, storing their
	// results, until ctx ends; handlers still running then are cancelled and their
	// runs recorded as lost, so that Job.OnLost says what follows, and ctx's error is
	// returned. It returns when every goroutine of the scheduler has ended, or two
	// seconds after ctx where the store hangs or a handler ignores its cancellation. Where the
	// store was closed under it, and all handlers have returned, it waits for results that the store
	// does not take for twenty seconds at most, and the error is ErrStoreClosed.
	// A Router or Registry that does not return is left behind after
	// Config.Limits.RouteTimeout, a hook after Config.StopGrace. Later calls wait for
	// the first. The store is not closed. Called by a handler with its context, or one made of
	// that, it is ErrWaitsForItself, and stops nothing. With another context, as
	// context.Background(), nothing tells that a handler calls, for Go does not say in which
	// goroutine a function is called: Stop waits for that handler then until its context ends.
	Stop(ctx context.Context) error
	// Run starts, waits for ctx to end, and stops with Config.StopGrace. It
	// returns nil after a clean stop. It also ends, with ErrShards, when a store that
	// did not answer at the start turns out to have another number of shards.
	Run(ctx context.Context) error
	// Ready returns nil while the scheduler is started, its lease is trusted, its claims and
	// starts succeed, and nothing is beyond Config.Ready, which says how long a store may be
	// away; else a *NotReadyError, which wraps ErrNotReady and says all that is missing. While these fail for a Config.Cluster.LeaseTTL, and until they have succeeded for
	// another, other nodes have the node's shards, if there are any.
	Ready() error
	// Stats returns the state of this node, and how its calls of the store have gone. It calls
	// nobody, and may be asked at any time, as often as somebody looks.
	Stats() Stats
	// Troubles returns what keeps runs from being run in time and what no other process would do
	// better, as far as this node sees it: rows that somebody's transaction has locked, an app
	// without executors. The oldest come first, and of each cause at most 100. It calls nobody.
	// Ready does not go by them unless ReadyConfig.Troubles says so.
	Troubles() []Trouble
	// Speaks returns which releases of XXL-JOB the executor of an app at an address speaks
	// like, as this node has seen by its own calls since New, in the words of
	// wire.ExecutorClient.Generation: "2.2 to 3.4", for instance, or "xxljob". The address is
	// spelled as it is registered. It is empty while that is not known: a node calls only
	// executors that it sends runs to, and remembers 20,000.
	Speaks(app, address string) string

	// AddJob adds a job and starts it, unless job.Stopped. All faults of the job come as one error, each naming the job, and nothing
	// is stored. Fields that the store sets, from ID to Updated, have to be empty.
	AddJob(ctx context.Context, job Job) (Job, error)
	// UpdateJob replaces the definition of the job with job.ID. Whether it is
	// stopped stays as it is, except that a job which stopped by itself (finished,
	// broken schedule) starts when it is given another schedule, and one that is finished
	// when other bounds leave it instants. A change of bounds keeps the phase of a
	// FixedRate, and MaxRuns may be lowered to less than has been made: that finishes the
	// job. With a Version other than zero it is a compare-and-set: ErrConflict. App is fixed.
	UpdateJob(ctx context.Context, job Job) (Job, error)
	// RemoveJob deletes the job and cancels its planned runs. Runs that are under way
	// continue, and all runs stay readable.
	RemoveJob(ctx context.Context, id int64) error
	// StartJob starts a stopped job, from the first instant strictly after now. Starting a
	// job that is not stopped changes nothing; ErrManual if it has no schedule either,
	// ErrNeverFires if it has no instant any more or has made all of its MaxRuns. A job that EnsureJobs has pruned is pruned
	// again after Config.Cluster.PruneAfter unless a list or EnsureJob names it by then.
	StartJob(ctx context.Context, id int64) error
	// StopJob stops the schedule and cancels its planned runs, and the retries of its runs that
	// wait. Runs that are under way continue, the job can still be triggered by hand, and what
	// was triggered by hand is still tried again.
	StopJob(ctx context.Context, id int64) error
	// NextFire returns the next instant of the job's schedule that will be run: of those that
	// are planned and not started the earliest, which may be past where runs wait for room,
	// or else the next that will be planned, misfire and catch-up considered. It is the zero
	// time for a job that is stopped or has no schedule, and for one with FixedDelay while
	// its run is under way. It reads the job and its planned runs, of any store.
	NextFire(ctx context.Context, jobID int64) (time.Time, error)
	// EnsureJob makes the job with this App and Key exist as given. It creates the app's
	// group and the job if they do not exist, and writes nothing if the definition is the
	// one last ensured. It neither starts nor stops an existing job, with one exception: a
	// job that EnsureJobs has pruned is started again, unless somebody has stopped it
	// since. From then on lists do not prune the job until one of them names it again.
	// Many replicas may call it at once.
	EnsureJob(ctx context.Context, job Job) (Ensured, error)
	// EnsureJobs ensures a list of jobs: what one release of a program wants of an app.
	// Each of its replicas calls it, at its start or later. Jobs that name no app get this
	// one, and none may name another. A node has one list for each app, the last it was
	// given. All faults of a list come as one error, and nothing is stored then. The jobs
	// are returned in the order of the list. After an error of the store the jobs done so
	// far are returned. Unless the list was still being checked it is the node's list
	// nevertheless: a started node does the rest by itself if the list applies already, or
	// is the newest the store would have, but skips jobs whose instants have all passed.
	//
	// Lists have generations (EnsureOptions). While a list of a greater generation applies,
	// the call changes nothing, and the outcome of its jobs is Superseded. The list applies
	// later by itself, once its node is started and has seen throughout
	// Config.Cluster.PruneAfter that no live node has the list that applies, or one of a
	// greater generation than its own. With Rollback it applies at once. Of different lists
	// of one generation, the one that reached the store last applies, since it was asked for
	// last; jobs that either of them names stay. A call whose list is overtaken while it is
	// being applied stops there, and the outcome of the remaining jobs is Superseded.
	//
	// A job that lists no longer name is stopped ("pruned") by a started node whose list has
	// Prune and a generation no lower than that of the list that named the job last. That
	// node must have seen throughout Config.Cluster.PruneAfter that no live node's list names
	// the job, and no other list of its generation may apply meanwhile. So the replicas of
	// two releases can run side by side, and an app without nodes is left alone. A pruned
	// job that comes back into a list that applies is started again. Jobs that no list has
	// named, or that EnsureJob has named since, are not pruned. A node counts as live until
	// it has left or was silent for Config.Cluster.LostAfter.
	EnsureJobs(ctx context.Context, app string, jobs []Job, opts EnsureOptions) ([]Ensured, error)
	// SaveGroup adds or replaces an executor app.
	SaveGroup(ctx context.Context, g Group) error
	// RemoveGroup removes an app without jobs; ErrGroupInUse otherwise.
	RemoveGroup(ctx context.Context, app string) error

	// Trigger runs a job once, whether it is stopped or not, and returns the ids of its
	// runs. For a broadcast that is the id of the first part; the other parts have it as
	// their TriggerID.
	//
	// A run that is due in more than two days, by t.At, is kept apart until a day before it
	// is due, and does not age meanwhile. That changes nothing about it: it has its id from
	// the start and can be read, waited for and killed, t.Key leads to it, and RemoveJob
	// cancels it. If no node is there when it is due it runs as soon as one is. After about a
	// Config.RunRetention without any node it runs under another id, where the store would
	// drop a run of that age: the former id is then unknown, and t.Key leads to the new one.
	// With a RunRetention of less than three days, these two days and one day are less too.
	Trigger(ctx context.Context, jobID int64, t Trigger) ([]int64, error)
	// TriggerJob is Trigger for the job with the key; an empty app is Config.App. ErrNotFound
	// if the app has no such job.
	TriggerJob(ctx context.Context, app, key string, t Trigger) ([]int64, error)
	// TriggerOne is Trigger for a job that is no broadcast, or for one part of it
	// (Trigger.Shard), and returns the id of the run. For another broadcast it is an error,
	// and nothing is planned.
	TriggerOne(ctx context.Context, jobID int64, t Trigger) (int64, error)
	// Again triggers the job of a run once more, with the parameter that the run was started
	// with, the addresses that its trigger named, and its part of a broadcast, and returns the
	// id of the new run. It is a trigger of its own, of type MANUAL, whatever became of the
	// run, and due now; but it stands for what the run stands for (Run.Instant): its instant,
	// its BusinessTime, and the instants that it makes up for, and it has its ParentID. ErrNotFound if there is no such run, or its job was removed.
	Again(ctx context.Context, runID int64) (int64, error)
	// Wait returns the run once it has ended, without waiting for one that follows it
	// (Store.Tree has them all). If ctx ends first it returns the run as it
	// was, together with the error. A Wait that began before Stop has returned goes on,
	// since another node may end the run. Called inside a handler, with the handler's
	// context or one derived from it, it returns ErrWaitsForItself for the handler's own
	// run and for a run that is certain to be queued behind it.
	Wait(ctx context.Context, runID int64) (Run, error)
	// Kill ends a run, and nothing follows it. A planned run is cancelled. For a running one
	// the context of its handler is cancelled and the run is recorded as killed; Kill does not
	// wait for the handler. A remote executor is asked before Kill returns, and the run is
	// recorded once it has agreed; if it refuses or does not answer, Kill returns an error and
	// may be called again. Third-party executors kill whatever run of the job they have. If the
	// run has ended and another one follows it, which waits or runs, Kill ends that one.
	Kill(ctx context.Context, runID int64) error
	// DropRuns deletes ended runs that the question chooses, or counts them where it is a dry
	// run, and leaves those that something still needs (RunDropper says which), and those that
	// have ended within ten minutes. It looks at no more than q.Limit runs, and says in More and
	// Next whether to call it again, and with which After; there is no pause between calls but
	// the caller's. A Before that is ahead of the clock is an error, and so is all that
	// RunDrop.Validate finds. What it has deleted is logged with the actor of ctx (WithActor).
	// errors.ErrUnsupported if the store is no RunDropper.
	DropRuns(ctx context.Context, q RunDrop) (store.Dropped, error)
	// Log returns lines of a run's log from fromLine on. Lines are counted from 1; a lower
	// fromLine counts as 1. At most 1 MiB is returned at once, and longer lines are cut. To
	// follow a running run, ask again after a moment from ToLineNum of the result plus one.
	// Nothing new has come if FromLineNum is greater than ToLineNum. IsEnd says that nothing
	// more will come: it is set once the run has ended and all its lines were returned. A
	// handler that goes on after its run was recorded, as killed for instance, may still
	// log more. Progress is how far the run is, as its executor says with the lines or else as
	// its row has it; of a run at a remote executor it is stored in the row then.
	//
	// Lines of executors that run inside a scheduler are read where Config.Logs has them
	// written, if that can be read; they come there within a second, and the last of them
	// before the run's result, unless the store or the sink is slow. All other logs stay where
	// the run ran. An executor of this process is asked directly, one that
	// is attached to another node through the store, and a remote one over HTTP, as long as
	// its address is registered for the app. Java executors return the whole rest of a log
	// at once, of which at most 16 MiB are read. Log waits until ctx's deadline, or for 5
	// seconds if it has none; if no answer has come by then, the error wraps ctx's. It
	// returns ErrNotFound if there is no such run, and ErrNoLog, with the reason, if its log
	// cannot be had: the run was never started, its node is gone or no longer has the app,
	// the executor could not read the log, nothing was logged, or the log was dropped.
	//
	// Any number of calls may be under way. An executor of this process is asked for a few
	// logs at a time, and further calls wait.
	Log(ctx context.Context, runID int64, fromLine int) (wire.LogResult, error)
	// LogTail returns the last n lines of a run's log, 1 to 10,000, or fewer where there are
	// fewer or where they have more than 1 MiB; a lower n counts as 1, a greater one as 10,000.
	// FromLineNum and ToLineNum of the result are their numbers: a caller goes on with Log
	// from ToLineNum plus one. Where there is no line yet, FromLineNum is greater than
	// ToLineNum. IsEnd says that the run had ended. Of a last line of more than 1 MiB the
	// beginning is returned. All else is as Log has it. An executor of others is asked how
	// many lines there are, and then for the last of them; where it does not say it is asked
	// for all, of which at most 16 MiB are read.
	LogTail(ctx context.Context, runID int64, n int) (wire.LogResult, error)

	// Events returns what happens at this node from here on: what Hooks are called for, and
	// in the same order. The channel has room for 1,000 events; what comes while it is full
	// is dropped for this subscription, and counted in the Dropped of the next. So a reader
	// may call back into the Scheduler, and one that does not read holds nothing up. It is
	// closed once ctx has ended, and by Stop after the last event; it is closed at once where
	// ctx is nil or the scheduler has stopped.
	Events(ctx context.Context) <-chan Event

	// Handle registers a handler on the scheduler's own executor, for the app Config.App
	// (or Config.Executor.App, where that is set). An empty name, a nil handler and a name
	// that is taken are errors.
	Handle(name string, h executor.Handler, opts ...executor.HandlerOption) error
	// Attach adds an executor of this process for another app. Each app has at most one
	// attached executor.
	Attach(e Executor) error
	// AdminHandler returns the admin side of XXL-JOB's HTTP protocol, for the host's own mux,
	// under any prefix: executors of any generation and language register there, and
	// report their results to any node that shares the store. It answers under /api/ and
	// /xxl-job-admin/api/ alike; see [wire.NewAdminHandler] for the limits that the host's
	// server has to set. It is an error to have neither Config.HTTP.Tokens nor
	// Config.HTTP.Insecure. The handler serves before Start and after Stop as well. Jobs can
	// be managed through it only by callers of the apps in Config.HTTP.JobsAPI.
	AdminHandler() (http.Handler, error)
}

// New returns a scheduler over the store. It validates the configuration, with
// all faults in one error, and starts no goroutine.
func New(store Store, cfg Config) (Scheduler, error) {
	n, err := node.New(store, cfg.forNode())
	if err != nil {
		return nil, err
	}
	return scheduler{n}, nil
}

// scheduler is a node, whose methods take and return types of this package.
type scheduler struct{ *node.Node }

func (s scheduler) Attach(e Executor) error { return s.Node.Attach(e) }

func (s scheduler) Ready() error {
	err := s.Node.Ready()
	var not *core.NotReadyError
	if errors.As(err, &not) {
		return &NotReadyError{Reasons: not.Reasons, Errs: not.Errs}
	}
	return err
}

func (s scheduler) Stats() Stats { return statsOf(s.Node.Stats()) }

func (s scheduler) Events(ctx context.Context) <-chan Event {
	return events.Subscribe(s.Bus, ctx, eventOf)
}

// The verbs that store a parameter are told who calls: the host, unless the context says that it
// calls for somebody else.

func (s scheduler) AddJob(ctx context.Context, job Job) (Job, error) {
	return s.Node.AddJob(ctx, grants.From(ctx), job)
}

func (s scheduler) UpdateJob(ctx context.Context, job Job) (Job, error) {
	return s.Node.UpdateJob(ctx, grants.From(ctx), job)
}

func (s scheduler) Trigger(ctx context.Context, jobID int64, t Trigger) ([]int64, error) {
	return s.Node.Trigger(ctx, grants.From(ctx), jobID, t)
}

func (s scheduler) TriggerJob(ctx context.Context, app, key string, t Trigger) ([]int64, error) {
	return s.Node.TriggerJob(ctx, grants.From(ctx), app, key, t)
}

func (s scheduler) TriggerOne(ctx context.Context, jobID int64, t Trigger) (int64, error) {
	return s.Node.TriggerOne(ctx, grants.From(ctx), jobID, t)
}

func (s scheduler) Again(ctx context.Context, runID int64) (int64, error) {
	return s.Node.Again(ctx, grants.From(ctx), runID)
}

func (s scheduler) EnsureJob(ctx context.Context, job Job) (Ensured, error) {
	e, err := s.Node.EnsureJob(ctx, job)
	return ensured(e), err
}

func (s scheduler) EnsureJobs(ctx context.Context, app string, jobs []Job, opts EnsureOptions) ([]Ensured, error) {
	list, err := s.Node.EnsureJobs(ctx, app, jobs, catalog.EnsureOptions(opts))
	if list == nil {
		return nil, err
	}
	all := make([]Ensured, len(list))
	for i, e := range list {
		all[i] = ensured(e)
	}
	return all, err
}
