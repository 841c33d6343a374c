package xxljobtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// Scheduler is a started scheduler of a test.
type Scheduler struct {
	xxljob.Scheduler
	// Store answers what the helpers do not.
	Store xxljob.Store

	t   testing.TB
	app string
}

// Options change what NewWith does. Each field may be left out.
type Options struct {
	// Config is the scheduler's. Its App defaults to "test", its Logger to one
	// that writes warnings to the output of the test. StopGrace is how long the
	// end of the test waits for handlers before it cancels them; zero means 1 s,
	// and inside a bubble, where waiting costs nothing, a day.
	Config xxljob.Config
	// Store replaces a new store in memory. Several schedulers may share one.
	Store xxljob.Store
	// Handlers are registered before anything can run.
	Handlers map[string]xxljob.Handler
	// Executors are fake executors, which are registered before the scheduler starts. If
	// Config.HTTP has no Transport, it gets one that reaches them and nothing else. If it has
	// neither Tokens nor Insecure, it gets the executors' tokens, or Insecure if they have
	// none.
	Executors []*Executor
}

// New returns a started scheduler on a store of its own in memory, with the jobs
// added. The end of the test stops it.
//
// Handlers are registered afterwards, with Handle. Inside a bubble no time passes in
// between. Outside of one, give them to NewWith: an instant of a job that falls
// between New and Handle would find no handler.
func New(t testing.TB, jobs ...xxljob.Job) *Scheduler {
	t.Helper()
	return NewWith(t, Options{}, jobs...)
}

// NewWith is New with options. A job that names a handler which is not among Options.Handlers,
// where there are some, is an error of the test: register it there, or add the job behind Handle.
func NewWith(t testing.TB, o Options, jobs ...xxljob.Job) *Scheduler {
	t.Helper()
	cfg, out := o.Config, newOutput(t)
	cfg.App = cmp.Or(cfg.App, "test")
	connect(t, &cfg.HTTP, o.Executors)
	var level slog.LevelVar
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: &level}))
	}
	store := o.Store
	if store == nil {
		store = memory.New()
	}
	inner, err := xxljob.New(store, cfg)
	if err != nil {
		t.Fatalf("xxljobtest: New: %v", err)
	}
	s := &Scheduler{Scheduler: inner, Store: store, t: t, app: cfg.App}
	t.Cleanup(func() { s.cleanUp(cfg.StopGrace, out) })
	level.Set(slog.LevelError) // no warnings of jobs whose handlers are yet to come
	if err := s.setUp(o, jobs); err != nil {
		t.Fatalf("xxljobtest: New: %v", err)
	}
	level.Set(slog.LevelWarn)
	return s
}

// setUp adds handlers and jobs, registers executors and starts. All faults come as one
// error.
func (s *Scheduler) setUp(o Options, jobs []xxljob.Job) error {
	s.t.Helper()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.Handlers)) {
		errs = append(errs, s.Handle(name, o.Handlers[name]))
	}
	ctx := s.t.Context()
	for _, j := range jobs {
		if _, err := s.AddJob(ctx, j); err != nil {
			errs = append(errs, err) // it names the job
		}
	}
	if len(o.Executors) > 0 {
		h, err := s.AdminHandler()
		errs = append(errs, err)
		for _, e := range o.Executors {
			if err == nil {
				e.Register(h)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// The test's own context ends before its cleanup does, which is to wait for
	// handlers.
	return s.Start(context.WithoutCancel(ctx))
}

// cleanUp stops the scheduler. A handler that still runs is no fault of the
// test: a test may end in the middle of a run. But a bubble fails when goroutines
// are left in it, so handlers that sleep there, deaf to cancellation, get the time
// to return.
func (s *Scheduler) cleanUp(grace time.Duration, out *output) {
	switch inBubble := settle(); {
	case grace != 0:
	case inBubble:
		grace = 24 * time.Hour
	default:
		grace = time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		s.t.Logf("xxljobtest: at the end of the test: %v", err)
	}
	out.close()
}

// RunNow triggers the job with the key, waits for the end of its run and returns
// it, whatever its state. A param replaces the job's. Of a broadcast it is the
// first part.
//
// The run is beside the schedule: RequireRuns does not count it. For more than a
// param there is Trigger, and WaitRun.
func (s *Scheduler) RunNow(key string, param ...string) xxljob.Run {
	s.t.Helper()
	var trigger xxljob.Trigger
	switch len(param) {
	case 0:
	case 1:
		trigger.Param = &param[0]
	default:
		s.t.Fatalf("xxljobtest: RunNow: job %q: %d params, want one at most", key, len(param))
	}
	ids, err := s.Trigger(s.t.Context(), s.job(key).ID, trigger)
	if err != nil {
		s.t.Fatalf("xxljobtest: RunNow: job %q: %v", key, err)
	}
	return s.WaitRun(ids[0])
}

// WaitRun waits for the end of a run and returns it.
func (s *Scheduler) WaitRun(id int64) xxljob.Run {
	s.t.Helper()
	if err := s.Ready(); errors.Is(err, xxljob.ErrStopped) {
		s.t.Fatalf("xxljobtest: WaitRun: run %d: %v", id, err)
	}
	run, err := s.Wait(s.t.Context(), id)
	if err != nil {
		s.t.Fatalf("xxljobtest: WaitRun: run %d: %v", id, err)
	}
	return run
}

// NextFireOf returns the next instant after now at which the job with the key
// is due by its schedule, in UTC; the zero time when there is none: it is
// stopped, or finished, or counts its delay from a run that has not ended. It speaks
// of the schedule: a run that is due and waits for its turn, which NextFire of
// xxljob.Scheduler counts, is left out.
func (s *Scheduler) NextFireOf(key string) time.Time {
	s.t.Helper()
	settle()
	now := time.Now()
	// The job is read before its runs: an instant that is claimed in between is
	// then seen twice, not missed.
	job := s.job(key)
	next := job.Next
	for _, r := range s.runs(job, xxljob.StatePlanned) {
		if r.Type.ScheduleBorn() && r.Scheduled.After(now) && (next.IsZero() || r.Scheduled.Before(next)) {
			next = r.Scheduled
		}
	}
	return next
}

// Runs returns the runs of the job with the key, in order of their instants:
// those that were started, by the schedule or by hand, and the records of those
// that were not (skipped, refused, cancelled). What lies ahead is not among them.
func (s *Scheduler) Runs(key string) []xxljob.Run {
	s.t.Helper()
	settle()
	runs := s.runs(s.job(key))
	runs = slices.DeleteFunc(runs, func(r xxljob.Run) bool { return r.State == xxljob.StatePlanned })
	slices.SortStableFunc(runs, func(a, b xxljob.Run) int {
		return cmp.Or(a.Scheduled.Compare(b.Scheduled), cmp.Compare(a.ID, b.ID))
	})
	return runs
}

// job finds the job with a key, among those of all apps.
func (s *Scheduler) job(key string) xxljob.Job {
	s.t.Helper()
	if j, err := s.Store.JobByKey(s.t.Context(), s.app, key); err == nil {
		return j
	}
	all, err := s.Store.Jobs(s.t.Context(), xxljob.JobFilter{Limit: 1000})
	if err != nil {
		s.t.Fatalf("xxljobtest: job %q: %v", key, err)
	}
	var found []xxljob.Job
	var keys, apps []string
	for _, j := range all {
		keys = append(keys, fmt.Sprintf("%q", j.Key))
		if j.Key == key {
			found, apps = append(found, j), append(apps, j.App)
		}
	}
	switch {
	case len(found) > 1:
		s.t.Fatalf("xxljobtest: job %q: there is one in each of the apps %s", key, strings.Join(apps, ", "))
	case len(all) == 0:
		s.t.Fatalf("xxljobtest: job %q: there are no jobs", key)
	case len(found) == 0:
		s.t.Fatalf("xxljobtest: job %q: no job has this key; there are %s", key, strings.Join(keys, ", "))
	}
	return found[0]
}

// runs reads the runs of a job, in these states or in any, newest first.
func (s *Scheduler) runs(job xxljob.Job, states ...xxljob.State) []xxljob.Run {
	s.t.Helper()
	var all []xxljob.Run
	f := xxljob.RunFilter{JobID: job.ID, States: states, Limit: 1000}
	for {
		page, err := s.Store.Runs(s.t.Context(), f)
		if err != nil {
			s.t.Fatalf("xxljobtest: runs of job %q: %v", job.Key, err)
		}
		all = append(all, page...)
		if len(page) < f.Limit {
			return all
		}
		f.Before = page[len(page)-1].ID
	}
}
