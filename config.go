package xxljob

import (
	"log/slog"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/wire"
)

// Config tunes a Scheduler. The zero value is complete: each field says what
// its zero value means. A Config is read once, by New.
type Config struct {
	// App is the executor app that Handle registers under, and the app of jobs that do
	// not name one. Empty means the program's base name, with a warning, where the store is
	// one that ends with the process (store.Volatile), as that in memory; with any other store
	// it is an error, since that name changes with each build and debugger.
	App string
	// Node names this node: at most 200 bytes of printable characters, without spaces.
	// Empty means the host name, the program and a random suffix. No two live nodes of a
	// store may share a name: the one that joins later supersedes the other.
	Node string
	// Location is the IANA time zone of schedules that do not name one, and of what handlers are
	// told. Nil means UTC.
	Location *time.Location
	// Logger receives the scheduler's log. Nil means slog.Default().
	Logger *slog.Logger

	// PreRead is how far ahead instants are planned. Of a job whose period is shorter
	// than that, one further instant is planned. 100 ms to 55 s; zero means 5 s, as in
	// XXL-JOB.
	PreRead time.Duration
	// MisfireThreshold is how late an instant may be and still be caught up. Job.Misfire
	// decides about those that are later. Zero means 15 s.
	MisfireThreshold time.Duration
	// CatchUp is the default of Job.CatchUp. Empty means CatchUpEvery.
	CatchUp CatchUp
	// RunRetention is how long runs are kept. A store that is a store.Retainer drops older
	// ones: Postgres does, a day at a time; the memory store bounds their number instead.
	// It does not bound how far ahead a run may be triggered. A process that plans runs with
	// postgres.TriggerTx and has no Scheduler is told in postgres.Config.RunRetention, where
	// this is less than three days. Zero means 30 days.
	RunRetention time.Duration
	// ChangeRetention is how long entries of the record of changes are kept, where the store
	// is a ChangeRecord; the memory store bounds their number besides. At least a day; zero
	// means 400 days: a year, and what it takes to look back at it.
	ChangeRetention time.Duration
	// StopGrace is how long running handlers have to end when the context of Run or
	// Start is done. Zero means 30 s.
	StopGrace time.Duration
	// StrictHandlers refuses jobs whose app or handler no executor offers, at once. Otherwise
	// they are accepted with a warning, since rolling deploys mix versions; but for a handler
	// that is misspelt in an app which this process serves, as Start says.
	StrictHandlers bool

	// Logs say where the lines of runs go beside where the run ran.
	Logs LogConfig

	// Cluster is about the nodes that share a store.
	Cluster ClusterConfig
	// HTTP is about executors in other processes, and the calls they make.
	HTTP HTTPConfig
	// Limits bound what is planned, held in memory and under way, and for how long.
	Limits Limits
	// Ready says when Scheduler.Ready returns an error.
	Ready ReadyConfig

	// Routers are custom route strategies by name, at most 100. The nodes that share a store ask
	// each other: a run whose strategy only some of them have is routed by one of these, and waits
	// while none is there, for an hour; then it ends as refused. Where several have one of the name,
	// those count that have the run's app attached, so that services may give their own the same name;
	// the others are asked where no such node has one. One with the name of a built-in
	// strategy replaces that at this node alone.
	Routers map[string]Router
	// Registry says which addresses serve an app. Nil means the one in the store.
	Registry Registry
	// RegistryApps are the apps that the Registry is asked about, and told of; other apps, of
	// services that share the store, go by the store. Empty means all apps. Nodes are not asked what
	// their registries say, as they are about Routers: each goes by its own settings for the runs of
	// its shards, whatever their app. So all nodes that share the store need the same Registry for such
	// an app, those of other services too. One without it finds only executors that are attached or
	// have registered in the store; where there are none, it takes the app for one without an executor,
	// and its runs wait or are refused (Job.OnNoExecutor). A service whose registry nobody else has
	// is better in a schema of its own.
	RegistryApps []string
	// Ring holds planned runs until their time. Nil means NewTimeRing().
	Ring TimeRing
	// Middleware is put around the handlers that Handle registers, the first outermost, as
	// executor.Config.Middleware says; that of Executor is inside it. Executors that are
	// attached have their own.
	Middleware []func(Handler) Handler
	// Executor configures the executor behind Handle. Its App, Logger and Location default
	// to those above. Its Addr and Admins must be empty: an executor that other admins call
	// too is made with executor.New, attached with Attach, and started by its owner.
	Executor executor.Config
	// Alarms say who is told of what goes wrong; see package alarm. They are to be the same at
	// all nodes of a store, since any of them may notice something, and tell of it. Empty means
	// that nobody is told, and nothing is kept for it.
	Alarms []alarm.Rule
	// Tracer carries traces from those who ask for runs to handlers. Nil means that traces which
	// are given with a Trigger are passed on, and no spans are made.
	Tracer Tracer
	// Hooks are called as things happen. Scheduler.Events tells of the same.
	Hooks Hooks
}

// ClusterConfig tunes how the nodes of one store share its jobs, and how they tell who is
// alive. The zero value is complete.
type ClusterConfig struct {
	// Shards is the number of parts that jobs are spread over. The first scheduler that
	// writes to a store fixes it: a different number later is ErrShards. At most 1024;
	// zero means 32.
	Shards int
	// LeaseTTL is how long a node may be silent before others may take its shards. A
	// node beats every LeaseTTL/5, and relies on its own shards until LeaseTTL, less a
	// safety margin of LeaseTTL/5, after its last acknowledged beat. 100 ms to 1 h; zero
	// means 5 s.
	LeaseTTL time.Duration
	// LeaseMaxHold makes a node give up each shard after it has owned it for this long.
	// Zero means never.
	LeaseMaxHold time.Duration
	// LostAfter is how long a node has to be silent before the runs it had taken end as
	// lost. Runs it had not taken yet are planned again after LeaseTTL, or at once where
	// the store can tell that the node is gone. It is also how long a run that an executor
	// elsewhere has accepted outlives the registration of another process at the address,
	// which may have found the result on the spool. At least LeaseTTL; zero means 30 s.
	LostAfter time.Duration
	// Beat is how often executors register their addresses, and Dead how long a
	// registration is good for. After Dead, runs that an executor elsewhere has accepted are
	// lost if nobody answers at its address, or if it does not have them and no result came.
	// Zero means 30 s and 90 s, as in XXL-JOB.
	Beat, Dead time.Duration
	// PruneAfter is how long no list of EnsureJobs may have named a job before it is
	// pruned, and how long no node with the current list may have been alive before a
	// lower generation applies again. At least 1 s; zero means 10 min.
	PruneAfter time.Duration
}

// HTTPConfig tunes the HTTP protocol: whose calls AdminHandler takes, and how executors in other
// processes are called. The zero value is complete, but for the tokens that AdminHandler needs.
type HTTPConfig struct {
	// Tokens are the access tokens of the HTTP protocol by app: one, or two during a
	// rotation. Those under "" are shared by the apps that have none of their own. Both of
	// two are accepted. An executor is sent the first, and the second if it refuses the
	// first. A token is only sent to addresses registered for its app, and never logged.
	//
	// A shared token does not speak for an app whose handlers run inside a scheduler:
	// neither for its jobs, nor for its registrations, nor for its results. Each request
	// is judged by the executors attached to this process and to the live nodes that this
	// node has seen. It looks every Cluster.LeaseTTL/5; before its first look, callers are
	// told to try again. Results are refused and not dropped while their run has not
	// ended. An app whose only nodes are down is not known to be attached, and a scheduler
	// that was not started knows only its own executors. So an app that also has executors
	// elsewhere, or whose nodes come and go, needs a token of its own.
	//
	// Where the store is a store.AppTokenKeeper, tokens that it keeps speak for their apps as
	// well, at the handler; a console makes and revokes them. They are kept as hashes, so
	// executors are called with those here.
	Tokens map[string][]string
	// Insecure allows the HTTP protocol without any token. Whoever can reach the handler
	// can then register executors, and so receive the parameters of jobs, and report
	// results, for all apps that a shared token would speak for.
	Insecure bool
	// AllowDefaultToken allows the token "default_token" of XXL-JOB's samples, which
	// everybody knows, during a migration. Every Start with it logs a warning.
	AllowDefaultToken bool
	// AllowShortTokens allows tokens below 16 bytes, which can be guessed. Without it New logs a
	// warning that names their apps; the next release makes it an error.
	AllowShortTokens bool
	// JobsAPI are the apps whose callers may manage the app's own jobs over HTTP, as
	// programs do with XXL-JOB 3.5 (addJob, updateJob, removeJob, startJob, stopJob,
	// triggerJob): names of 1 to 64 bytes, each once, and each with a token that speaks
	// for it. Empty means nobody: callers get the answer of an admin without these calls.
	// Each token may make 100 calls in 30 s.
	JobsAPI []string
	// JobsAPIScripts are the apps among JobsAPI whose callers may also define scripts: jobs
	// with a glue type other than BEAN, which some executors run as programs. Callers of
	// the other apps may trigger, start, stop and remove existing scripts, but may not add
	// one, change its parameter or handler, or trigger it with a parameter of their own: one
	// that is empty runs it with the job's. Empty means none.
	JobsAPIScripts []string
	// MaxRegistrations is how many live executors of one app may be registered over HTTP;
	// all apps that share a token may have ten times as many together. A registration
	// beyond that is refused with a message that says so; heartbeats of those that are
	// registered are not. Dead registrations do not count: when room runs out they are
	// deleted after twice Cluster.Dead instead of after a day. Each node counts what it
	// reads every Cluster.Beat and what it has stored since, so several nodes together may
	// exceed the bound by what each of them accepts within one Beat. With the dead ones
	// there are at most twice as many rows, and no node reads more of one app. At most
	// 100,000; zero means 10,000.
	MaxRegistrations int
	// CallTimeout bounds a call to an executor over HTTP, including the connect. Zero
	// means 6 s: XXL-JOB's 3 s to connect and 3 s to wait.
	CallTimeout time.Duration
	// Transport holds the connections to remote executors and decides which addresses
	// may be connected to. Nil means one with wire's defaults.
	Transport *wire.Transport
}

// Limits bound what one node, and one job, may take. The zero value is complete.
type Limits struct {
	// ScanLimit is how many jobs one scan claims at most. A full scan is followed by
	// another at once. Zero means 6000, as in XXL-JOB.
	ScanLimit int
	// MaxPlanned is how many planned runs of one job may wait. Further instants are
	// skipped and recorded with reason "backlog". Zero means 1000.
	MaxPlanned int
	// MaxHeld is how many planned runs of one app a node holds in memory, at about 150 bytes
	// each, and a kilobyte of those of which there is more to know, such as a parameter. If
	// there are more it holds the earliest, and reads on from the store when they run low. At
	// least 10,000; zero means 400,000, which are what a pre-read of 65,000 one-second jobs leaves.
	MaxHeld int
	// FastLane and SlowLane are how many triggers of ordinary and of slow jobs may be
	// under way at once. Zero means 200 and 100, as in XXL-JOB.
	FastLane, SlowLane int
	// SlowAfter and SlowCount say which jobs are slow: those with more than SlowCount
	// triggers in the current minute that took longer than SlowAfter. Zero means 500 ms
	// and 10, as in XXL-JOB.
	SlowAfter time.Duration
	SlowCount int
	// Overdue ends a run in doubt, or one that was accepted and not reported, as lost, this
	// long after its start plus the job's Timeout. It is for third-party executors, which can
	// say that a job is busy but not with which run. What an executor of this module says
	// that it has is not ended: the log warns of it. At least Cluster.Dead; zero means 24 h.
	Overdue time.Duration
	// RouteTimeout bounds a call of a custom Router or Registry. A run whose router has
	// not answered by then is refused; one whose registry has not answered uses the last
	// answer. Other jobs do not wait meanwhile. 10 ms to 5 s; zero means 1 s.
	RouteTimeout time.Duration
	// AllowSubSecond allows FixedRate and FixedDelay of less than one second.
	AllowSubSecond bool
}

// forNode is the configuration as the rooms below have it.
func (c *Config) forNode() core.Config {
	logs := core.LogConfig{
		InStore: c.Logs.InStore, Sink: c.Logs.Sink, RunBytes: c.Logs.RunBytes, JobBytes: c.Logs.JobBytes,
		QueueBytes: c.Logs.QueueBytes, BytesPerSecond: c.Logs.BytesPerSecond, FailuresEvery: c.Logs.FailuresEvery,
	}
	var routers map[string]core.Router
	if c.Routers != nil {
		routers = make(map[string]core.Router, len(c.Routers))
		for name, r := range c.Routers {
			routers[name] = r
		}
	}
	return core.Config{
		App: c.App, Node: c.Node, Location: c.Location, Logger: c.Logger,
		PreRead: c.PreRead, MisfireThreshold: c.MisfireThreshold, CatchUp: c.CatchUp, RunRetention: c.RunRetention,
		ChangeRetention: c.ChangeRetention, StopGrace: c.StopGrace, StrictHandlers: c.StrictHandlers, Logs: logs,
		Cluster: core.ClusterConfig(c.Cluster), HTTP: core.HTTPConfig(c.HTTP), Limits: core.Limits(c.Limits), Ready: core.ReadyConfig(c.Ready),
		Routers: routers, Registry: c.Registry, RegistryApps: slices.Clone(c.RegistryApps), Ring: c.Ring, Middleware: c.Middleware, Executor: c.Executor, Alarms: c.Alarms,
		Tracer: c.Tracer, Hooks: core.Hooks(c.Hooks),
	}
}
