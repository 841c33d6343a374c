package core

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Config, ClusterConfig and the like have the fields of those of package xxljob, which say what
// they mean: the rooms cannot import that package. A field that one of the two lacks does not
// compile there.

// Config is xxljob.Config.
type Config struct {
	App      string
	Node     string
	Location *time.Location
	Logger   *slog.Logger

	PreRead          time.Duration
	MisfireThreshold time.Duration
	CatchUp          store.CatchUp
	RunRetention     time.Duration
	ChangeRetention  time.Duration
	StopGrace        time.Duration
	StrictHandlers   bool

	Logs LogConfig

	Cluster ClusterConfig
	HTTP    HTTPConfig
	Limits  Limits
	Ready   ReadyConfig

	Routers      map[string]Router
	Registry     Registry
	RegistryApps []string
	Ring         TimeRing
	Middleware   []func(executor.Handler) executor.Handler
	Executor     executor.Config
	Alarms       []alarm.Rule
	Tracer       Tracer
	Hooks        Hooks
}

// ClusterConfig is xxljob.ClusterConfig.
type ClusterConfig struct {
	Shards       int
	LeaseTTL     time.Duration
	LeaseMaxHold time.Duration
	LostAfter    time.Duration
	Beat, Dead   time.Duration
	PruneAfter   time.Duration
}

// HTTPConfig is xxljob.HTTPConfig.
type HTTPConfig struct {
	Tokens            map[string][]string
	Insecure          bool
	AllowDefaultToken bool
	AllowShortTokens  bool
	JobsAPI           []string
	JobsAPIScripts    []string
	MaxRegistrations  int
	CallTimeout       time.Duration
	Transport         *wire.Transport
}

// Limits is xxljob.Limits.
type Limits struct {
	ScanLimit          int
	MaxPlanned         int
	MaxHeld            int
	FastLane, SlowLane int
	SlowAfter          time.Duration
	SlowCount          int
	Overdue            time.Duration
	RouteTimeout       time.Duration
	AllowSubSecond     bool
}

// Executor is xxljob.Executor.
type Executor interface {
	wire.Executor
	App() string
	Handlers() []string
	Bind(admin wire.Admin)
}

var _ Executor = (*executor.Executor)(nil)

// LogConfig is xxljob.LogConfig.
type LogConfig struct {
	InStore        bool
	Sink           LogSink
	RunBytes       int
	JobBytes       int64
	QueueBytes     int
	BytesPerSecond int
	FailuresEvery  time.Duration
}

// LogSink is xxljob.LogSink.
type LogSink interface {
	WriteLogs(ctx context.Context, batch []store.RunLines) error
}

// LogReader is xxljob.LogReader.
type LogReader interface {
	ReadLog(ctx context.Context, runID int64, fromLine int) (wire.LogResult, error)
	ReadLogTail(ctx context.Context, runID int64, n int) (wire.LogResult, error)
}

// LogStats is xxljob.LogStats.
type LogStats struct {
	Waiting, Peak         int
	Written, Cut, Dropped uint64
}

// Router is xxljob.Router.
type Router interface {
	Route(ctx context.Context, jobID int64, addrs []string) ([]string, error)
}

// AsksRegistry reports whether an app's addresses are those that a registry of the user's says.
func (c *Config) AsksRegistry(app string) bool {
	return c.Registry != nil && (len(c.RegistryApps) == 0 || slices.Contains(c.RegistryApps, app))
}

// Registry is xxljob.Registry.
type Registry interface {
	Register(ctx context.Context, app, address string) error
	Deregister(ctx context.Context, app, address string) error
	Lookup(ctx context.Context, app string) ([]string, error)
}

// TimeRing is xxljob.TimeRing.
type TimeRing interface {
	Push(at time.Time, runID int64)
	Pop(now time.Time) []int64
	Len() int
}

// Tracer is xxljob.Tracer.
type Tracer interface {
	Triggering(ctx context.Context, jobID int64) (trace string, done func(runID int64, err error))
	Sending(ctx context.Context, run store.Run) (trace string, done func(err error))
}

// WithDefaults fills in what zero values stand for.
func (c Config) WithDefaults() Config {
	program := errs.Shorten(strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"), 60)
	errs.SetDefault(&c.App, program)
	if c.Node == "" {
		host, _ := os.Hostname()
		c.Node = solid(errs.Shorten(cmp.Or(host, "host"), 100) + "-" + program + "-" + RandomText(6))
	}
	if c.Location == nil {
		c.Location = time.UTC
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	errs.SetDefault(&c.PreRead, 5*time.Second)
	errs.SetDefault(&c.Limits.ScanLimit, 6000)
	errs.SetDefault(&c.MisfireThreshold, 15*time.Second)
	errs.SetDefault(&c.CatchUp, store.CatchUpEvery)
	errs.SetDefault(&c.Limits.MaxPlanned, 1000)
	errs.SetDefault(&c.Limits.MaxHeld, 400_000)
	errs.SetDefault(&c.Limits.FastLane, 200)
	errs.SetDefault(&c.Limits.SlowLane, 100)
	errs.SetDefault(&c.Limits.SlowAfter, 500*time.Millisecond)
	errs.SetDefault(&c.Limits.SlowCount, 10)
	errs.SetDefault(&c.Cluster.Beat, 30*time.Second)
	errs.SetDefault(&c.Cluster.Dead, 90*time.Second)
	errs.SetDefault(&c.Cluster.LostAfter, 30*time.Second)
	errs.SetDefault(&c.Cluster.PruneAfter, 10*time.Minute)
	errs.SetDefault(&c.RunRetention, 30*24*time.Hour)
	errs.SetDefault(&c.ChangeRetention, 400*24*time.Hour)
	errs.SetDefault(&c.Cluster.Shards, 32)
	errs.SetDefault(&c.Cluster.LeaseTTL, 5*time.Second)
	errs.SetDefault(&c.StopGrace, 30*time.Second)
	errs.SetDefault(&c.HTTP.MaxRegistrations, 10_000)
	errs.SetDefault(&c.HTTP.CallTimeout, 6*time.Second)
	errs.SetDefault(&c.Limits.Overdue, 24*time.Hour)
	errs.SetDefault(&c.Limits.RouteTimeout, time.Second)
	errs.SetDefault(&c.Logs.RunBytes, 1<<20)
	errs.SetDefault(&c.Logs.JobBytes, 64<<20)
	errs.SetDefault(&c.Logs.QueueBytes, 16<<20)
	errs.SetDefault(&c.Logs.BytesPerSecond, 4<<20)
	errs.SetDefault(&c.Executor.App, c.App)
	if c.Executor.Logger == nil {
		c.Executor.Logger = c.Logger
	}
	return c
}

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

// RandomText returns n random letters and digits.
func RandomText(n int) string { return strings.ToLower(rand.Text()[:n]) }
