package stage

// Executors and registries as users write them, and what the log says of them.

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/plain"
	"github.com/xxljob/xxljob/wire"
)

// UserExecutor is an executor of a user's, each part replaceable.
type UserExecutor struct {
	Of     string
	OnRun  func(ctx context.Context, admin wire.Admin, r wire.TriggerRequest) (wire.Return, error)
	OnBeat func() (wire.Return, error)
	OnKill func(wire.KillRequest) (wire.Return, error)
	Admin  wire.Admin
}

func (e *UserExecutor) App() string { return e.Of }

func (e *UserExecutor) Handlers() []string { return []string{"work"} }

func (e *UserExecutor) Bind(a wire.Admin) { e.Admin = a }

func (e *UserExecutor) Run(ctx context.Context, r wire.TriggerRequest) (wire.Return, error) {
	if e.OnRun != nil {
		return e.OnRun(ctx, e.Admin, r)
	}
	go e.Admin.Callback(context.WithoutCancel(ctx), []wire.CallbackRequest{{LogID: r.LogID, HandleCode: 200}})
	return wire.Success(), nil
}

func (e *UserExecutor) Beat(context.Context) (wire.Return, error) {
	if e.OnBeat != nil {
		return e.OnBeat()
	}
	return wire.Success(), nil
}

func (e *UserExecutor) IdleBeat(context.Context, wire.IdleBeatRequest) (wire.Return, error) {
	return e.Beat(context.Background())
}

func (e *UserExecutor) Kill(_ context.Context, r wire.KillRequest) (wire.Return, error) {
	if e.OnKill != nil {
		return e.OnKill(r)
	}
	return wire.Success(), nil
}

func (e *UserExecutor) Log(context.Context, wire.LogRequest) (wire.LogReturn, error) {
	return wire.LogReturn{Code: 200}, nil
}

// SlowExecutor is an executor of a user's that takes its time to accept a run,
// as one behind a network would.
type SlowExecutor struct {
	Of    string
	Delay func(wire.TriggerRequest) time.Duration

	Mu    sync.Mutex
	admin wire.Admin
	now   int // Run calls under way
	Most  int
	Lanes map[int64][]time.Time // by job: when Run was called
}

func (e *SlowExecutor) App() string { return e.Of }

func (e *SlowExecutor) Handlers() []string { return []string{"work"} }

func (e *SlowExecutor) Bind(a wire.Admin) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.admin = a
}

func (e *SlowExecutor) Run(ctx context.Context, req wire.TriggerRequest) (wire.Return, error) {
	e.Mu.Lock()
	e.now++
	e.Most = max(e.Most, e.now)
	if e.Lanes == nil {
		e.Lanes = map[int64][]time.Time{}
	}
	e.Lanes[req.JobID] = append(e.Lanes[req.JobID], time.Now())
	admin := e.admin
	e.Mu.Unlock()
	time.Sleep(e.Delay(req))
	e.Mu.Lock()
	e.now--
	e.Mu.Unlock()
	go admin.Callback(context.WithoutCancel(ctx), []wire.CallbackRequest{{LogID: req.LogID, HandleCode: 200}})
	return wire.Success(), nil
}

func (e *SlowExecutor) Beat(context.Context) (wire.Return, error) { return wire.Success(), nil }

func (e *SlowExecutor) IdleBeat(context.Context, wire.IdleBeatRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (e *SlowExecutor) Kill(context.Context, wire.KillRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (e *SlowExecutor) Log(context.Context, wire.LogRequest) (wire.LogReturn, error) {
	return wire.LogReturn{Code: 200}, nil
}

// RequireEnded checks that nothing due stays unfinished.
func RequireEnded(t *testing.T, st xxljob.Store) {
	t.Helper()
	for _, r := range AllRuns(t, st) {
		if !r.State.Ended() && r.Scheduled.Before(time.Now().Add(-time.Second)) {
			t.Errorf("run %d of job %d due %v is still %v", r.ID, r.JobID, r.Scheduled, r.State)
		}
	}
}

// BadRegistry is a registry that does something before it answers.
type BadRegistry struct {
	plain.Registry
	Do func(method, app string)

	mu    sync.Mutex
	calls map[string]int // guarded by mu
}

func (r *BadRegistry) enter(method, app string) {
	r.mu.Lock()
	if r.calls == nil {
		r.calls = map[string]int{}
	}
	r.calls[method+" "+app]++
	r.mu.Unlock()
	r.Do(method, app)
}

// Called is how often a method was called.
func (r *BadRegistry) Called(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[what]
}

func (r *BadRegistry) Lookup(ctx context.Context, app string) ([]string, error) {
	r.enter("Lookup", app)
	return r.Registry.Lookup(ctx, app)
}

func (r *BadRegistry) Register(ctx context.Context, app, address string) error {
	r.enter("Register", app)
	return r.Registry.Register(ctx, app, address)
}

func (r *BadRegistry) Deregister(ctx context.Context, app, address string) error {
	r.enter("Deregister", app)
	return r.Registry.Deregister(ctx, app, address)
}

// Triggered are the times at which an executor was called for a job.
func (e *SlowExecutor) Triggered(jobID int64) []time.Time {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return slices.Clone(e.Lanes[jobID])
}

// LogLines keeps a log in memory.
type LogLines struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *LogLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// LogTo has a config log to the lines.
func (l *LogLines) LogTo(c *xxljob.Config) { c.Logger = slog.New(slog.NewTextHandler(l, nil)) }

// With are the lines that have all of the texts.
func (l *LogLines) With(texts ...string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		has := true
		for _, text := range texts {
			has = has && strings.Contains(line, text)
		}
		if has {
			lines = append(lines, line)
		}
	}
	return lines
}

// RequireStacks checks that there is one line with a stack for each of the places, and
// none for others.
func (l *LogLines) RequireStacks(t *testing.T, places ...string) {
	t.Helper()
	for _, place := range places {
		if n := len(l.With("stack=", place)); n != 1 {
			t.Errorf("%d lines with a stack about %s, want one", n, place)
		}
	}
	if all := l.With("stack="); len(all) != len(places) {
		t.Errorf("%d lines with a stack, want %d:\n%s", len(all), len(places), strings.Join(all, "\n"))
	}
}

// faultsOfUsers are the ways in which a function may fail its caller.
var faultsOfUsers = map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit}

// EachFault runs a test in a bubble for each of them.
func EachFault(t *testing.T, test func(t *testing.T, fail func())) {
	for name, fail := range faultsOfUsers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, fail) })
		})
	}
}

// RequireOnTime checks that the jobs, which are due each second, were started to the
// millisecond, at least n times in all.
func RequireOnTime(t *testing.T, j *Journal, n int) {
	t.Helper()
	all := j.All()
	for _, s := range all {
		if !s.At.Equal(s.Due) {
			t.Errorf("a run due %v was started at %v", s.Due, s.At)
		}
	}
	if len(all) < n {
		t.Errorf("%d runs, want %d", len(all), n)
	}
}
