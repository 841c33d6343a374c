package xxljob

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// Config tunes a Scheduler. The zero value is complete: each field says what
// its zero value means. A Config is read once, by New.
type Config struct {
	// App is the executor app of Handle and of jobs that name none. Empty means
	// the program's base name.
	App string
	// Node names this node: at most 200 bytes of printable characters without blanks.
	// Empty means host name, program and a random part. Two live nodes of one store
	// must not have the same name: the later one would supersede the earlier.
	Node string
	// Location is the zone of cron and crontab schedules that name none, an IANA
	// zone. Nil means UTC.
	Location *time.Location
	// Logger receives what the scheduler has to say. Nil means slog.Default().
	Logger *slog.Logger

	// PreRead is how far ahead of its time an instant is planned; of a job that comes
	// round within it, one instant more. Zero means 5 s.
	PreRead time.Duration
	// MisfireThreshold is the lateness past which Job.Misfire decides; up to it
	// late instants are caught up. Zero means 15 s.
	MisfireThreshold time.Duration
	// CatchUp is for jobs that do not say it themselves. Empty means CatchUpEvery.
	CatchUp CatchUp
	// RunRetention is how long runs are kept. Zero means 30 days. A store that is a
	// Retainer drops older ones, Postgres by the day; the store in memory keeps runs
	// by number. It also bounds how far ahead a Trigger may be.
	RunRetention time.Duration
	// StopGrace is how long Run, and Start's context, wait for running handlers
	// when they end. Zero means 30 s.
	StopGrace time.Duration
	// StrictHandlers makes a job whose app or handler no executor offers an
	// error. Otherwise it is a warning, since rolling deploys mix versions.
	StrictHandlers bool

	// Cluster is about the nodes that share a store.
	Cluster ClusterConfig
	// HTTP is about executors in other processes, and the calls that they make.
	HTTP HTTPConfig
	// Limits bound what is planned, held and under way, and for how long.
	Limits Limits

	// Routers are routing strategies of the user's, by name, merged over those of
	// package route.
	Routers map[string]Router
	// Registry says which addresses serve an app. Nil means one kept in the store.
	Registry Registry
	// Ring holds planned runs until their time. Nil means NewTimeRing().
	Ring TimeRing
	// Executor configures the executor behind Handle. Its App and Logger default
	// to those above. Its Addr and Admins stay empty: an executor that other admins
	// call as well is made by executor.New, given to Attach, and started by its owner.
	Executor executor.Config
	// Hooks are called as things happen.
	Hooks Hooks
}

// ClusterConfig tunes how the nodes of one store share its jobs, and how they tell who is
// alive. The zero value is complete.
type ClusterConfig struct {
	// Shards is the number of parts that all jobs are spread over, fixed by the
	// first scheduler that writes to the store: another number later is
	// ErrShards. Zero means 32; at most 1024.
	Shards int
	// LeaseTTL is how long a node may be silent before its shards may be taken.
	// A node beats every LeaseTTL/5 and trusts its shards for LeaseTTL minus a
	// margin of LeaseTTL/5. Zero means 5 s.
	LeaseTTL time.Duration
	// LeaseMaxHold makes a node give up a shard that it has owned for so long.
	// Zero means never.
	LeaseMaxHold time.Duration
	// LostAfter is the silence after which the runs that a node had taken end as lost;
	// what it had not taken is put back after LeaseTTL, or at once where the store knows
	// that the node is away. Zero means 30 s.
	LostAfter time.Duration
	// Beat is how often addresses are registered, Dead how long a registration
	// lasts. Zero means 30 s and 90 s.
	Beat, Dead time.Duration
	// PruneAfter is how long a node has to see that no list of EnsureJobs names a job any
	// more before the job is pruned, and that no node lives which has the list that
	// applies before a lesser generation applies. At least 1 s. Zero means 10 min.
	PruneAfter time.Duration
}

// HTTPConfig tunes the HTTP protocol: whose calls Handler takes, and how executors in other
// processes are called. The zero value is complete, but for the tokens that Handler needs.
type HTTPConfig struct {
	// Tokens are the access tokens of the HTTP protocol by app, two at a time for
	// rotation; the key "" is for apps that have none of their own. Both of two are
	// accepted. An executor is sent the first, and the other one when it refuses that.
	// A token is sent to addresses that are registered for its app, and never logged.
	//
	// The token under "" speaks for no app whose handlers run inside a scheduler: neither
	// for its jobs, nor for registrations, nor for results. That is decided at each
	// request, by the executors of this process and by those that live nodes have
	// attached, as far as this node has seen (it looks every Cluster.LeaseTTL/5, and until
	// it has looked once the answer is to try again). Results are refused then, and not dropped, as
	// long as their run is open. An app that is attached only at nodes which are away at the
	// moment is not known to be attached, and a scheduler that is not started knows of its
	// own executors alone: an app that has executors elsewhere too, or nodes that come and
	// go, needs its own token.
	Tokens map[string][]string
	// Insecure allows the HTTP protocol without any token: who can reach Handler can
	// register executors, and so get the parameters of jobs, and report results, for all
	// apps but those for which the token under "" of Tokens would not speak.
	Insecure bool
	// AllowDefaultToken allows the literal "default_token" of XXL-JOB's samples, which
	// everybody knows, for a migration. Each Start with it logs a warning.
	AllowDefaultToken bool
	// JobsAPI are the apps whose callers may manage the app's own jobs over HTTP, as
	// programs do with XXL-JOB 3.5 (addJob, updateJob, removeJob, startJob, stopJob,
	// triggerJob): names of 1 to 64 bytes, each once, and each with a token that speaks
	// for it. Empty means that nobody may: the answer is that of an admin which has no
	// such calls, and says so. Their rate is bounded by token, at 100 calls in 30 s.
	JobsAPI []string
	// JobsAPIScripts are those of JobsAPI whose callers may also define scripts (a glue
	// type other than BEAN), which executors that have scripts run as programs. Callers
	// of other apps may trigger, start, stop and remove the scripts that are there, and
	// neither add one, nor change the parameter or the handler of one, nor give one another
	// parameter than its own or none. Empty means none.
	JobsAPIScripts []string
	// MaxRegistrations is how many living executors of one app may be registered over
	// HTTP; all apps that have no token of their own may have ten times as many together.
	// A registration beyond that is refused in words. One that lives beats on, and dead
	// ones take no room: once there is none left they are forgotten after twice
	// Cluster.Dead, and not after a day. Each node counts what it has read, every
	// Cluster.Beat, and what it has stored since, so several nodes may exceed a bound by
	// what each accepts within a Beat. The dead ones included, there are at most twice as many rows; no node reads
	// more than that of an app, whatever is there. Zero means 10,000; at most 100,000.
	MaxRegistrations int
	// CallTimeout bounds a call of an executor over HTTP, connecting included. Zero
	// means 6 s, which is XXL-JOB's 3 s to connect and 3 s to wait.
	CallTimeout time.Duration
	// Transport keeps the connections to executors elsewhere, and decides which
	// addresses are connected to. Nil means one with wire's defaults.
	Transport *wire.Transport
}

// Limits bound what one node, and one job, may take. The zero value is complete.
type Limits struct {
	// ScanLimit is how many jobs one scan claims at most; a full scan is followed
	// by the next at once. Zero means 6000.
	ScanLimit int
	// MaxPlanned is how many runs of one job may wait; further instants go into
	// a skipped record with reason "backlog". Zero means 1000.
	MaxPlanned int
	// MaxHeld is how many planned runs of one app the node holds in memory, about a
	// kilobyte each; at least 10,000. Of more than that it holds the earliest, and
	// reads on in the store when they run low. Zero means 200,000.
	MaxHeld int
	// FastLane and SlowLane are how many triggers are under way at once, for
	// ordinary and for slow jobs. Zero means 200 and 100.
	FastLane, SlowLane int
	// SlowAfter and SlowCount make a job slow: more than SlowCount triggers that
	// took longer than SlowAfter, in one minute, until the minute is over. Zero
	// means 500 ms and 10.
	SlowAfter time.Duration
	SlowCount int
	// Overdue is how long after its start, and the job's Timeout beyond that, a run ends
	// as lost of which it is not known whether its executor has it: one of another maker
	// that says that the job is busy, and not with which run. Zero means 24 h; at least
	// Cluster.Dead.
	Overdue time.Duration
	// RouteTimeout bounds a call of a Router of Routers, or of the Registry: how long a
	// run waits for it before it is refused, or goes by the Registry's last answer. Other
	// jobs do not wait. At least 10 ms and at most 5 s. Zero means 1 s.
	RouteTimeout time.Duration
	// AllowSubSecond allows FixedRate and FixedDelay of less than one second.
	AllowSubSecond bool
}

// Hooks are functions of the user's, each may be nil. They are called one after the
// other on a goroutine of their own, soon after what they tell of and in that order: of a
// run that this node has both started and ended, RunStarted comes first. They should be
// quick, and must not call the Scheduler. A panic in one, or runtime.Goexit, is logged
// once for each hook.
//
// A hook that is slow holds nothing else up: up to 20,000 calls wait for it. When they
// do, and the oldest has waited for a second, further calls are dropped for want of room.
// An error in the log says so, and a warning how many they were, when half of those that
// wait are made. Stop waits for calls that are to be made yet, for
// StopGrace at most and no longer than about a second after the end of its context; a hook
// that has not returned by then is left behind, with a warning.
type Hooks struct {
	// RunStarted is called when this node has marked a run started.
	RunStarted func(Run)
	// RunEnded is called when this node has stored the final state of a run that
	// came to its time, skipped and refused ones included. A run that is cancelled
	// before its time is not among them, nor is the record of what an edit leaves
	// behind (ReasonEdit).
	RunEnded func(Run)
}

// withDefaults fills in what zero values stand for.
func (c Config) withDefaults() Config {
	program := shorten(strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"), 60)
	setDefault(&c.App, program)
	if c.Node == "" {
		host, _ := os.Hostname()
		c.Node = solid(shorten(cmp.Or(host, "host"), 100) + "-" + program + "-" + randomText(6))
	}
	if c.Location == nil {
		c.Location = time.UTC
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	setDefault(&c.PreRead, 5*time.Second)
	setDefault(&c.Limits.ScanLimit, 6000)
	setDefault(&c.MisfireThreshold, 15*time.Second)
	setDefault(&c.CatchUp, CatchUpEvery)
	setDefault(&c.Limits.MaxPlanned, 1000)
	setDefault(&c.Limits.MaxHeld, 200_000)
	setDefault(&c.Limits.FastLane, 200)
	setDefault(&c.Limits.SlowLane, 100)
	setDefault(&c.Limits.SlowAfter, 500*time.Millisecond)
	setDefault(&c.Limits.SlowCount, 10)
	setDefault(&c.Cluster.Beat, 30*time.Second)
	setDefault(&c.Cluster.Dead, 90*time.Second)
	setDefault(&c.Cluster.LostAfter, 30*time.Second)
	setDefault(&c.Cluster.PruneAfter, 10*time.Minute)
	setDefault(&c.RunRetention, 30*24*time.Hour)
	setDefault(&c.Cluster.Shards, 32)
	setDefault(&c.Cluster.LeaseTTL, 5*time.Second)
	setDefault(&c.StopGrace, 30*time.Second)
	setDefault(&c.HTTP.MaxRegistrations, 10_000)
	setDefault(&c.HTTP.CallTimeout, 6*time.Second)
	setDefault(&c.Limits.Overdue, 24*time.Hour)
	setDefault(&c.Limits.RouteTimeout, time.Second)
	setDefault(&c.Executor.App, c.App)
	if c.Executor.Logger == nil {
		c.Executor.Logger = c.Logger
	}
	return c
}

// maxPreRead is how far ahead of its time an instant is planned at most, and so
// what a node that takes a shard over has to look for.
const maxPreRead = 55 * time.Second

// notSolid reports whether r may not be in the name of a node. Names are parts of
// addresses, and of lines of logs that are read by columns.
func notSolid(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }

// solid puts a dash in the place of what may not be in the name of a node.
func solid(s string) string {
	return strings.Map(func(r rune) rune {
		if notSolid(r) {
			return '-'
		}
		return r
	}, s)
}

// randomText returns n random letters and digits.
func randomText(n int) string { return strings.ToLower(rand.Text()[:n]) }
