package xxljob

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/xxljob/xxljob/executor"
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
	// asking. When ctx ends, the scheduler stops as if Stop had been called with
	// Config.StopGrace.
	Start(ctx context.Context) error
	// Stop stops claiming and starting, once what it has asked of the store is
	// answered (five seconds at most), gives back what is started but not sent,
	// releases the shards, and then waits for running handlers, storing their
	// results, until ctx ends; handlers still running then are cancelled and
	// recorded as killed, and ctx's error is returned. It returns when every
	// goroutine of the scheduler has ended, or two seconds after ctx where the
	// store hangs or a handler ignores its cancellation. A Router or Registry that
	// does not return is left behind after Config.Limits.RouteTimeout, a hook after
	// Config.StopGrace. Later calls wait for the first. The store is not closed.
	Stop(ctx context.Context) error
	// Run starts, waits for ctx to end, and stops with Config.StopGrace. It
	// returns nil after a clean stop. It also ends, with ErrShards, when a store that
	// did not answer at the start turns out to have another number of shards.
	Run(ctx context.Context) error
	// Ready returns nil while the scheduler is started, its lease is trusted, and its
	// claims and starts succeed, else an error that wraps ErrNotReady and says what is
	// missing. While these fail for a Config.Cluster.LeaseTTL, and until they have succeeded for
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
	// RemoveJob deletes the job and cancels its planned runs. Runs that are under way
	// continue, and all runs stay readable.
	RemoveJob(ctx context.Context, id int64) error
	// StartJob starts a stopped job, from the first instant strictly after now. Starting a
	// job that is not stopped changes nothing. A job that EnsureJobs has pruned is pruned
	// again after Config.Cluster.PruneAfter unless a list or EnsureJob names it by then.
	StartJob(ctx context.Context, id int64) error
	// StopJob stops the schedule and cancels its planned runs. Runs that are under way
	// continue, and the job can still be triggered by hand.
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
	// Config.Cluster.PruneAfter that no node lives which has the list that applies, or one of a
	// greater generation than its own; with Rollback it applies at once. Of different
	// lists of one generation that applies which came to the store last, for it is the
	// one that somebody has asked for since; what either names stays. A call whose list is
	// overtaken while it is applied stops there: the outcome of the jobs that are left is
	// Superseded.
	//
	// A job that is gone from the lists is stopped once a started node with a list that
	// has Prune, and a generation no less than that of the list which named the job last,
	// has seen throughout Config.Cluster.PruneAfter that no list of a node that lives names it,
	// and while no other list of its own generation applies. So replicas of two releases
	// live side by side, and an app without nodes is left alone. One that comes back into
	// a list that applies is started again. Jobs that no list has named, or that EnsureJob
	// has named after them, are not pruned. A node lives until it has left, or was silent
	// for Config.Cluster.LostAfter.
	EnsureJobs(ctx context.Context, app string, jobs []Job, opts EnsureOptions) ([]Ensured, error)
	// SaveGroup adds or replaces an executor app.
	SaveGroup(ctx context.Context, g Group) error
	// RemoveGroup removes an app without jobs; ErrGroupInUse otherwise.
	RemoveGroup(ctx context.Context, app string) error

	// Trigger runs a job once, whether it is stopped or not, and returns the ids of its
	// runs. For a broadcast that is the id of the first part; the other parts have it as
	// their TriggerID.
	Trigger(ctx context.Context, jobID int64, t Trigger) ([]int64, error)
	// Wait returns the run once it has ended. A run that has not ended when ctx ends is
	// returned as it was, beside the error. A Wait that has begun before the end of Stop
	// goes on, for another node may end the run. From inside a handler, with its context
	// or one that is made of it, waiting for the handler's own run is ErrWaitsForItself,
	// and so is waiting for one that is certain to be queued behind it: see there.
	Wait(ctx context.Context, runID int64) (Run, error)
	// Kill ends a run. A planned run is cancelled; the handler of a running one has its
	// context cancelled, and the run is recorded as killed. Kill does not wait for the
	// handler. A remote executor is asked before Kill returns, and the run is recorded once
	// it has agreed; if it refuses or does not answer, Kill returns that as an error and may
	// be called again. Executors of other makers kill whatever the job runs there.
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

	// Handle registers a handler on the scheduler's own executor, for the app Config.App
	// (or Config.Executor.App, where that is set). An empty name, a nil handler and a name
	// that is taken are errors.
	Handle(name string, h executor.Handler, opts ...executor.HandlerOption) error
	// Attach adds an executor that runs in this process, for another app: one
	// executor an app.
	Attach(e Executor) error
	// Handler returns the admin side of XXL-JOB's HTTP protocol, for the host's own mux,
	// under any prefix: executors of any generation and language register there, and
	// report their results to any node that shares the store. It answers below /api/ and
	// /xxl-job-admin/api/ alike; see [wire.NewAdminHandler] for what the host's server
	// has to bound. Without Config.HTTP.Tokens it is an error, unless Config.HTTP.Insecure says so.
	// It serves before Start and after Stop as well. Jobs are managed there by those whom
	// Config.HTTP.JobsAPI names, and by nobody where it is empty.
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
	all := &shared{
		cfg: cfg, store: store, log: cfg.Logger.With("node", cfg.Node), clock: &clock{}, life: newLife(),
	}
	s := assemble(all, cfg.Node+"-"+randomText(10), own)
	return s, s.Attach(own)
}

func (s *scheduler) Handler() (http.Handler, error) {
	authorize, err := s.cfg.authorize()
	if err != nil {
		return nil, err
	}
	return wire.NewAdminHandler(&adminSide{s.shared, s.registrar, s.results, s.speaker, s.definer, newQuota()}, wire.HandlerConfig{Authorize: authorize, Logger: s.log})
}
