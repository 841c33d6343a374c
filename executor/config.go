package executor

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
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

	// Places is how many handlers run at once. Further runs wait, first come
	// first served over the jobs, up to Backlog. An abandoned handler gives its
	// place up; when as many as Places have been abandoned and have not
	// returned, the next ones keep theirs, so that there are never more than
	// twice Places handlers. Default: 1000.
	Places int

	// Queue is how many runs of one job wait behind the running one. Default: 256.
	Queue int

	// Backlog is how many runs of all jobs together wait. Default: 10,000.
	Backlog int

	// Outbox is how many accepted runs may lack a delivered result, running ones
	// included; at the bound, new runs are refused until the admin takes results
	// again. Default: 100,000.
	Outbox int

	// Grace is how long a cancelled handler has to return before it is abandoned
	// and its job goes on without it. Default: 10 s.
	Grace time.Duration

	// KeepFinished is how long the id of a finished run is remembered, so that
	// the same request arriving again is answered and not run again. Default:
	// 10 min.
	KeepFinished time.Duration

	// KeepFinishedMax bounds how many ids are remembered at most; the
	// last half as many always are, within KeepFinished. Default: 100,000.
	KeepFinishedMax int

	// Log says where the lines of Task.Log go.
	Log LogConfig
}

// LogConfig says where the lines of runs are kept, and how many.
type LogConfig struct {
	// Dir is the root directory of log files <Dir>/yyyy-MM-dd/<run id>.log, made
	// when absent; files are 0600 and directories 0700. Empty keeps the lines in
	// memory.
	Dir string

	// RetentionDays is how many days a day's directory is kept after its date.
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
	orElse(&c.Places, 1000)
	orElse(&c.Queue, 256)
	orElse(&c.Backlog, 10_000)
	orElse(&c.Outbox, 100_000)
	orElse(&c.Grace, 10*time.Second)
	orElse(&c.KeepFinished, 10*time.Minute)
	orElse(&c.KeepFinishedMax, 100_000)
	orElse(&c.Log.RetentionDays, 30)
	if c.Log.Dir == "" {
		orElse(&c.Log.MaxBytes, 256<<10)
	} else {
		orElse(&c.Log.MaxBytes, 16<<20)
	}
	orElse(&c.Log.TotalBytes, 64<<20)
	return c
}

func orElse[T int | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// validate names every field out of range at once.
func (c Config) validate() error {
	var faults []error
	positive := func(name string, v int) {
		if v < 0 {
			faults = append(faults, fmt.Errorf("xxljob: executor: Config.%s is %d, want 0 (the default) or more", name, v))
		}
	}
	positive("Places", c.Places)
	positive("Queue", c.Queue)
	positive("Backlog", c.Backlog)
	positive("Outbox", c.Outbox)
	positive("KeepFinishedMax", c.KeepFinishedMax)
	positive("Log.MaxBytes", c.Log.MaxBytes)
	positive("Log.TotalBytes", c.Log.TotalBytes)
	if c.Grace < 0 {
		faults = append(faults, fmt.Errorf("xxljob: executor: Config.Grace is %v, want 0 (the default) or more", c.Grace))
	}
	if c.KeepFinished < 0 {
		faults = append(faults, fmt.Errorf("xxljob: executor: Config.KeepFinished is %v, want 0 (the default) or more", c.KeepFinished))
	}
	return errors.Join(faults...)
}
