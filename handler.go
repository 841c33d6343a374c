package xxljob

// The code of jobs, and who runs it.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// Task describes to a handler the run that it executes: RunID, Param, ScheduledAt, Attempt and
// more. By Log, Progress and SetResult the handler says what it does, how far it is, and what
// came of it. See [executor.Task].
type Task = executor.Task

// Handler runs a job: what it returns is how the run ends. See [executor.Handler].
type Handler = executor.Handler

// JSON makes a handler out of a function with a typed parameter, which is decoded from
// Task.Param as encoding/json does it. An empty parameter is the zero T. One that is no JSON
// for T fails the run for good (see Permanent) without a call of h. JSON(nil) is nil, which
// Handle refuses.
func JSON[T any](h func(ctx context.Context, t *Task, p T) error) Handler { return executor.JSON(h) }

// Permanent marks an error of a handler as final: the run fails, and trying again is of no
// use. The text is that of err, which errors.Is and errors.As still find; Permanent(nil) is
// nil.
func Permanent(err error) error { return executor.Permanent(err) }

// RetryAfter marks an error of a handler with how long after the run's end it is to be tried
// again, in place of Job.RetryBackoff; a run without further attempts stays failed. Less than a
// millisecond is one, and what is too long is cut to what Config.RunRetention allows. The text
// is that of err, which errors.Is and errors.As still find; RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error { return executor.RetryAfter(d, err) }

// Snooze returns the error of a handler that has nothing to do yet: the run ends as
// StateSnoozed, which is no failure, and the same attempt comes again so long after its end.
// Job.MaxSnoozes says how often. Bounds of d are those of RetryAfter. In a BlockSerial job later
// instants wait for it, unless Job.RetryAside.
func Snooze(d time.Duration) error { return executor.Snooze(d) }

// Executor runs the jobs of one app inside this process. It is a wire.Executor that also
// names its handlers and is told where its results go; *executor.Executor is one. It must
// be safe for concurrent use. An error from Run means that the run was not accepted; each
// accepted run must be answered with one callback to the admin it was bound to. The
// scheduler keeps at most 1,000 runs under way at it that have not been answered, or as
// many as its method Places() int returns, if it has one. A panic in a method, or
// runtime.Goexit, is logged once and treated as an error; for Handlers and Places the last
// answer is used then. App, Handlers and Places must return at once.
type Executor interface {
	wire.Executor
	// App is the app it serves; it does not change.
	App() string
	// Handlers are the names of its handlers. More may be added over time.
	Handlers() []string
	// Bind tells it where to send results. Attach calls it once. The admin also has the
	// method Progress that executor.Executor.Bind is about.
	Bind(admin wire.Admin)
}

var _ Executor = (*executor.Executor)(nil)
