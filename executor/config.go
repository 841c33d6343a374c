package executor

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// Config says how an executor behaves. The zero value means the defaults named
// at each field. It is read once, by New.
type Config struct {
	// App is the name the executor registers under. Default: the base name of
	// the program.
	App string

	// Logger receives what is not about one run's own work: panics, abandoned
	// handlers, results that cannot be delivered. Default: slog.Default().
	Logger *slog.Logger

	// Location is the zone of Task.ScheduledAt, of the lines of run logs and of
	// their day directories. Default: UTC.
	Location *time.Location

	// Middleware is put around every handler, the first outermost, when it is registered.
	// What it makes is called once for each run: after the duplicate guard and the block
	// strategy, with the run's deadline in its context, and inside the recovery of panics,
	// so that one which wants to see a panic recovers it and panics again. It sees the
	// errors of OnInit too. What it returns is the run's result; a run whose handler it
	// does not call succeeds if it returns nil. It is called concurrently for different
	// runs.
	Middleware []func(Handler) Handler

	// Places is how many handlers run at once. Further runs wait, first come
	// first served over the jobs, up to Backlog. An abandoned handler gives its
	// place up; when as many as Places have been abandoned and have not
	// returned, the next ones keep theirs, so that there are never more than
	// twice Places handlers. Default: 2000.
	Places int

	// Queue is how many runs of one job wait behind the running one. Default: 256.
	Queue int

	// Backlog is how many runs of all jobs together wait. Default: 10,000.
	Backlog int

	// Outbox is how many accepted runs of one admin may lack a delivered result, running ones
	// included; at the bound, new runs are refused until the admin takes results
	// again. Default: 100,000.
	Outbox int

	// StopGrace is how long Serve lets runs go on when its context has ended.
	// Default: 30 s.
	StopGrace time.Duration

	// Grace is how long a cancelled handler has to return before it is abandoned
	// and its job goes on without it. Default: 10 s.
	Grace time.Duration

	// KeepFinished is how long a finished run is remembered after its end, so that
	// the same request arriving again is answered and not run again; one whose result
	// is not delivered is remembered for longer. It is also how long a start is refused
	// that Executor.IdleBeat has said is not known, but that is 10 min at least. Where the
	// scheduler says that it sends a run again, and the id may be forgotten, the run
	// is refused. Default: 10 min.
	KeepFinished time.Duration

	// KeepFinishedMax bounds how many finished runs are remembered at most; the
	// last half as many always are, within KeepFinished. Default: 100,000.
	KeepFinishedMax int

	// Log says where the lines of Task.Log go.
	Log LogConfig

	// Addr is where a server of the executor's own listens from Start on, such as
	// ":9999"; with port 0 the system chooses one. Empty for none: see Handler.
	Addr string

	// Address is the base address under which admins reach this executor, such as
	// http://10.0.0.7:9999/, with the prefix of its handler. It is registered as
	// it is given; where there are several Admins, each registers the path
	// <Admins.Name>/ below it. It is required with Admins when Addr is empty.
	// Default: http, the host of Addr or, when Addr has none, the IP address from
	// which admins are reached, and the port that Addr has got.
	Address string

	// Admins are the clusters that the executor registers with at Start, and works
	// for: with each of them, and with one node of each. Their run and job ids,
	// results and logs are kept apart, and so are the bounds Outbox and
	// KeepFinishedMax. Default: none, the executor works for the admin it is bound
	// to only.
	Admins []AdminCluster

	// Tokens are the access tokens that callers of HTTPHandler and Addr may show, at
	// most two: the old one and the new one, while admins are changed over.
	// Default: those of a cluster show its own AdminCluster.Token, and open
	// nothing of another cluster's.
	Tokens []string

	// Insecure lets everybody in where there is no token: every process that
	// reaches the executor can run handlers, kill runs and read logs. It is for
	// closed networks and tests. Default: an executor without a token is an error
	// of HTTPHandler and Start.
	Insecure bool

	// AllowDefaultToken admits "default_token", the token of XXL-JOB's samples, for
	// the time of a migration. It is warned of at each Start. Default: it is an
	// error of New.
	AllowDefaultToken bool

	// Beat is how often the executor registers with each of Admins. They take it
	// for gone after three times 30 s. Default: 30 s.
	Beat time.Duration

	// SpoolDir is the root directory of files in which results for Admins are kept
	// until an admin has them, <SpoolDir>/<Admins.Name>/..., made when absent; files
	// are 0600 and directories 0700. A result is on the disk before it is first
	// sent, and what a process leaves is delivered by the next one. Several
	// processes may share it. Empty keeps results in memory, and no file is
	// written.
	SpoolDir string

	// SpoolBytes bounds the files of each of Admins, in blocks of 4 KiB; at the
	// bound its new runs are refused. Results of runs accepted before are written
	// nevertheless. Default: 256 MiB.
	SpoolBytes int64

	// Transport keeps the connections to Admins. Default: one for this executor
	// with the defaults of wire.TransportConfig.
	Transport *wire.Transport

	// CallTimeout bounds a call to one node of Admins, connecting included. A
	// registration that is not answered is sent again every 3.5 s beside those that are
	// open. Default: 6 s.
	CallTimeout time.Duration
}

// LogConfig says where the lines of runs are kept, and how many.
type LogConfig struct {
	// Dir is the root directory of log files
	// <Dir>/yyyy-MM-dd/<run id>-<second of its date>.log, made when absent; files are
	// 0600 and directories 0700. The day is that of the run's date, which the admin sends,
	// but at most two days from when the run came. Empty keeps the lines in memory.
	Dir string

	// RetentionDays is how many days a day's directory is kept after its date, or one
	// that is more than two days ahead after the last file was put into it.
	// Old ones are removed by the first line of a day. Negative keeps them for
	// ever. Default: 30.
	RetentionDays int

	// MaxBytes bounds the log of one run; what follows is dropped behind a line
	// that says so. Default: 256 KiB in memory, 16 MiB in files.
	MaxBytes int

	// TotalBytes bounds all logs in memory together; the oldest are dropped.
	// It does not concern files. Default: 64 MiB.
	TotalBytes int

	// Level is the least level kept. Default: slog.LevelInfo.
	Level slog.Leveler
}

// withDefaults returns c with every zero field filled in.
func (c Config) withDefaults() Config {
	if c.App == "" {
		c.App = filepath.Base(os.Args[0])
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Location == nil {
		c.Location = time.UTC
	}
	if c.Log.Level == nil {
		c.Log.Level = slog.LevelInfo
	}
	orElse(&c.Places, 2000)
	orElse(&c.Queue, 256)
	orElse(&c.Backlog, 10_000)
	orElse(&c.Outbox, 100_000)
	orElse(&c.Grace, 10*time.Second)
	orElse(&c.StopGrace, 30*time.Second)
	orElse(&c.KeepFinished, 10*time.Minute)
	orElse(&c.KeepFinishedMax, 100_000)
	orElse(&c.Log.RetentionDays, 30)
	if c.Log.Dir == "" {
		orElse(&c.Log.MaxBytes, 256<<10)
	} else {
		orElse(&c.Log.MaxBytes, 16<<20)
	}
	orElse(&c.Log.TotalBytes, 64<<20)
	orElse(&c.Beat, 30*time.Second)
	orElse(&c.SpoolBytes, 256<<20)
	orElse(&c.CallTimeout, 6*time.Second)
	c.Admins = slices.Clone(c.Admins)
	c.Middleware = slices.Clone(c.Middleware)
	if len(c.Admins) == 1 && c.Admins[0].Name == "" {
		c.Admins[0].Name = "admin"
	}
	if len(c.Admins) > 0 && c.Transport == nil {
		c.Transport = wire.NewTransport(wire.TransportConfig{})
	}
	return c
}

func orElse[T int | int64 | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}
