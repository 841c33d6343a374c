package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// lagging is a store that is far away: what its beats tell of its clock is old, and so
// the nodes' estimates lag behind the clock that its transactions go by. While it is
// held no job is found to be due, so that nothing is planned.
type lagging struct {
	st   xxljob.Store
	lag  time.Duration
	held atomic.Bool
}

func (s *lagging) Join(ctx context.Context, n xxljob.Node) (xxljob.View, error) {
	v, err := s.st.Join(ctx, n)
	v.Now, v.Alone = time.Now().Add(-s.lag), false
	return v, err
}

func (s *lagging) Beat(ctx context.Context, inc string, attached []store.Attachment) (xxljob.View, error) {
	v, err := s.st.Beat(ctx, inc, attached)
	v.Now, v.Alone = time.Now().Add(-s.lag), false
	return v, err
}

func (s *lagging) Now(context.Context) (time.Time, error) { return time.Now().Add(-s.lag), nil }

func (s *lagging) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	r, err := s.st.Scan(ctx, dst, q)
	if s.held.Load() {
		r.Jobs, r.Next = nil, q.Before.Add(100*time.Millisecond)
	}
	return r, err
}

// seconds is a schedule of whole seconds.
type seconds struct {
	cron  string
	every int64
	rest  int64
}

var (
	allSeconds  = seconds{"* * * * * ?", 1, 0}
	evenSeconds = seconds{"0/2 * * * * ?", 2, 0}
	oddSeconds  = seconds{"1/2 * * * * ?", 2, 1}
)

// inForce is a time in which a job had a schedule: the instants after from, up to and
// including to, are its own. That of a job that was not edited any more has no end.
type inForce struct {
	seconds
	from, to time.Time
}

func (f inForce) has(at time.Time) bool {
	return at.Unix()%f.every == f.rest && at.After(f.from) && (f.to.IsZero() || !at.After(f.to))
}

// nearJob is a job that is edited near an instant, with what it should do.
type nearJob struct {
	n         int
	name, app string
	job       xxljob.Job
	times     []inForce
}

// begins notes that the schedule is in force from now on, ends that it is no more.
func (j *nearJob) begins(s seconds) {
	j.times = append(j.times, inForce{seconds: s, from: time.Now()})
}

func (j *nearJob) ends() { j.times[len(j.times)-1].to = time.Now() }

func (j *nearJob) with(s seconds) xxljob.Job {
	return xxljob.Job{Name: j.name, Handler: "work", Schedule: xxljob.Cron(s.cron)}
}

// nearWorld is two nodes with a lagging estimate, and an admin for jobs of many apps.
type nearWorld struct {
	t     *testing.T
	store xxljob.Store // which lags
	lag   *lagging
	nodes [2]*stage.Node
	admin http.Handler
}

func (w *nearWorld) node(j *nearJob) xxljob.Scheduler { return w.nodes[j.n/2%2] }

// manage is one of G4's verbs. It returns what was answered.
func (w *nearWorld) manage(j *nearJob, verb string, msg stage.Message) string {
	ret := stage.Manage(w.t, w.admin, j.app, verb, msg)
	if !ret.OK() {
		w.t.Fatalf("%s of %s: %+v", verb, j.name, ret)
	}
	return ret.Data
}

func (j *nearJob) byWire(s seconds) wire.JobDefinition {
	return wire.JobDefinition{Name: j.name, Author: "me", ScheduleType: "CRON", ScheduleConf: s.cron, MisfireStrategy: "DO_NOTHING",
		ExecutorRouteStrategy: "ROUND", ExecutorHandler: "work", ExecutorBlockStrategy: "SERIAL_EXECUTION", GlueType: "BEAN"}
}

// nearVerbs are the ways in which a job comes to another schedule: what is done before
// the instant, then the edits, 150 ms after each other.
var nearVerbs = []struct {
	name   string
	before func(w *nearWorld, j *nearJob)
	steps  []func(w *nearWorld, j *nearJob)
}{
	{"UpdateJob", addEven, []func(*nearWorld, *nearJob){func(w *nearWorld, j *nearJob) {
		changed := j.with(oddSeconds)
		changed.ID = j.job.ID
		_, err := w.node(j).UpdateJob(w.t.Context(), changed)
		stage.Must(w.t, err)
		j.ends()
		j.begins(oddSeconds)
	}}},
	{"StopJob, StartJob", func(w *nearWorld, j *nearJob) { add(w, j, allSeconds) }, []func(*nearWorld, *nearJob){
		func(w *nearWorld, j *nearJob) { stage.Must(w.t, w.node(j).StopJob(w.t.Context(), j.job.ID)); j.ends() },
		func(w *nearWorld, j *nearJob) {
			stage.Must(w.t, w.node(j).StartJob(w.t.Context(), j.job.ID))
			j.begins(allSeconds)
		},
	}},
	{"EnsureJob", func(w *nearWorld, j *nearJob) { ensure(w, j, evenSeconds) }, []func(*nearWorld, *nearJob){
		func(w *nearWorld, j *nearJob) { j.ends(); ensure(w, j, oddSeconds) },
	}},
	{"EnsureJob of a new job", nil, []func(*nearWorld, *nearJob){func(w *nearWorld, j *nearJob) { ensure(w, j, allSeconds) }}},
	{"AddJob", nil, []func(*nearWorld, *nearJob){func(w *nearWorld, j *nearJob) { add(w, j, allSeconds) }}},
	{"updateJob over the wire", func(w *nearWorld, j *nearJob) { addByWire(w, j, evenSeconds); startByWire(w, j, evenSeconds) },
		[]func(*nearWorld, *nearJob){func(w *nearWorld, j *nearJob) {
			w.manage(j, "updateJob", wire.UpdateJobRequest{ID: j.job.ID, JobDefinition: j.byWire(oddSeconds)})
			j.ends()
			j.begins(oddSeconds)
		}}},
	{"stopJob, startJob over the wire", func(w *nearWorld, j *nearJob) { addByWire(w, j, allSeconds); startByWire(w, j, allSeconds) },
		[]func(*nearWorld, *nearJob){
			func(w *nearWorld, j *nearJob) { w.manage(j, "stopJob", wire.JobRequest{ID: j.job.ID}); j.ends() },
			func(w *nearWorld, j *nearJob) { startByWire(w, j, allSeconds) },
		}},
	{"addJob, startJob over the wire", nil, []func(*nearWorld, *nearJob){
		func(w *nearWorld, j *nearJob) { addByWire(w, j, allSeconds); startByWire(w, j, allSeconds) }}},
}

func addEven(w *nearWorld, j *nearJob) { add(w, j, evenSeconds) }

func add(w *nearWorld, j *nearJob, s seconds) {
	var err error
	j.job, err = w.node(j).AddJob(w.t.Context(), j.with(s))
	stage.Must(w.t, err)
	j.begins(s)
}

func ensure(w *nearWorld, j *nearJob, s seconds) {
	e, err := w.node(j).EnsureJob(w.t.Context(), j.with(s))
	stage.Must(w.t, err)
	j.job = e.Job
	j.begins(s)
}

func addByWire(w *nearWorld, j *nearJob, s seconds) {
	_, err := fmt.Sscan(w.manage(j, "addJob", wire.AddJobRequest{JobDefinition: j.byWire(s)}), &j.job.ID)
	stage.Must(w.t, err)
}

func startByWire(w *nearWorld, j *nearJob, s seconds) {
	w.manage(j, "startJob", wire.JobRequest{ID: j.job.ID})
	j.begins(s)
}

// TestEditsNearAnInstant edits jobs at every millisecond around an instant of the old
// schedule and around one of the new, on nodes whose estimates of the store's clock lag
// 200 ms behind, where the instants of the old schedule were planned and where they
// were not: each of those before the edit is run once or in a record, and none of the
// new schedule's before it is run, all of them after.
func TestEditsNearAnInstant(t *testing.T) {
	t.Parallel()
	for _, verb := range nearVerbs {
		for _, held := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, planned %v", verb.name, !held), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newNearWorld(t)
					instant := time.Now().Truncate(time.Minute).Add(time.Minute) // an even second
					time.Sleep(time.Until(instant.Add(-2500 * time.Millisecond)))
					w.lag.held.Store(held)
					var jobs []*nearJob
					type action struct {
						at time.Time
						do func()
					}
					var actions []action
					for i := range nearEdits {
						if stage.Detector && i%10 > 1 {
							continue
						}
						j := &nearJob{n: i, name: fmt.Sprintf("job %d", i), app: nearApp(i)}
						jobs = append(jobs, j)
						if verb.before != nil {
							verb.before(w, j)
						}
						at := instant.Add(time.Duration(i/2-20) * time.Millisecond)
						if i%2 == 1 {
							at = at.Add(time.Second)
						}
						for n, step := range verb.steps {
							actions = append(actions, action{at.Add(time.Duration(n) * 150 * time.Millisecond), func() { step(w, j) }})
						}
					}
					slices.SortStableFunc(actions, func(a, b action) int { return a.at.Compare(b.at) })
					for _, a := range actions {
						time.Sleep(time.Until(a.at))
						a.do()
					}
					w.lag.held.Store(false)
					time.Sleep(time.Until(instant.Add(4*time.Second + 500*time.Millisecond)))
					for _, j := range jobs {
						stage.Must(t, w.nodes[0].StopJob(t.Context(), j.job.ID))
					}
					time.Sleep(time.Second)
					for _, j := range jobs {
						j.audit(t, w.store, instant.Add(-3*time.Second), instant.Add(4*time.Second))
					}
					w.stop()
				})
			})
		}
	}
}

// nearEdits is how many jobs are edited: half around each instant, from 20 ms before it
// to 210 ms behind it.
const nearEdits = 460

// nearApp is the app of a job that is managed over the wire: an app may call so many
// times only.
func nearApp(i int) string { return fmt.Sprintf("app-%d", i/20) }

func newNearWorld(t *testing.T) *nearWorld {
	lag := &lagging{st: memory.New(), lag: 200 * time.Millisecond}
	w := &nearWorld{t: t, store: bent.StoreOf(lag.st, lag), lag: lag}
	tokens := map[string][]string{}
	for i := 0; i < nearEdits; i += 20 {
		tokens[nearApp(i)] = []string{"of-" + nearApp(i)}
	}
	for i, name := range []string{"a", "b"} {
		w.nodes[i] = stage.StartNode(t, w.store, name, &stage.Journal{}, func(c *xxljob.Config) { c.HTTP.Tokens, c.HTTP.JobsAPI = tokens, slices.Collect(maps.Keys(tokens)) })
	}
	for app := range tokens {
		e, err := executor.New(executor.Config{App: app})
		stage.Must(t, err)
		stage.Must(t, e.Handle("work", stage.NothingToDo))
		stage.Must(t, w.nodes[0].Attach(e))
	}
	var err error
	w.admin, err = w.nodes[0].AdminHandler()
	stage.Must(t, err)
	time.Sleep(10 * time.Second)
	return w
}

func (w *nearWorld) stop() { stage.Stop(w.t, w.nodes[:]...) }

// audit compares the store's runs of the job with what should have become of each
// second.
func (j *nearJob) audit(t *testing.T, st xxljob.Store, from, to time.Time) {
	t.Helper()
	run, recorded := map[time.Time]int{}, map[time.Time]int{}
	for _, r := range stage.AllOf(t, st, xxljob.RunFilter{JobID: j.job.ID}) {
		switch {
		case r.State == xxljob.StateSucceeded && r.Count == 0:
			run[r.Scheduled]++
		case r.State == xxljob.StateCancelled:
			recorded[r.Scheduled]++
		case r.State == xxljob.StateSkipped:
			for at := r.First; !at.After(r.Last); at = at.Add(time.Second) {
				recorded[at]++
			}
		default:
			t.Errorf("%s: run of %v is %v", j.name, r.Scheduled, r.State)
		}
	}
	for at := from.UTC(); !at.After(to); at = at.Add(time.Second) {
		former, last := j.had(at)
		switch n := run[at]; {
		case former && n == 0 && recorded[at] == 0:
			t.Errorf("%s, %v: the instant %v of the old schedule is neither run nor recorded", j.name, j.edits(), at)
		case former && n > 1, last && n != 1, !former && !last && n > 0:
			t.Errorf("%s, %v: the instant %v was run %d times; it is one of the schedule before %v, of that after it %v", j.name, j.edits(), at, n, former, last)
		}
	}
}

// had reports whether the instant is one of a schedule that was replaced later, and
// whether it is one of the last.
func (j *nearJob) had(at time.Time) (former, last bool) {
	for i, f := range j.times {
		if f.has(at) {
			former, last = former || i < len(j.times)-1, last || i == len(j.times)-1
		}
	}
	return former, last
}

// edits says when the job was edited.
func (j *nearJob) edits() (list []string) {
	for _, f := range j.times {
		list = append(list, f.cron+" from "+f.from.Format("05.000"))
	}
	return list
}

// TestOverByTheStoresClock: an instant that is past by the store's clock, and not yet by
// a node's estimate of it, is none: no verb takes a job whose schedule has no other, and
// nothing is changed.
func TestOverByTheStoresClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lag := &lagging{st: memory.New(), lag: 200 * time.Millisecond}
		st := bent.StoreOf(lag.st, lag)
		n := stage.StartNode(t, st, "a", &stage.Journal{})
		ctx := t.Context()
		time.Sleep(5 * time.Second)
		soon := time.Now().Add(time.Second)
		has, err := n.EnsureJob(ctx, xxljob.Job{Name: "has", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")})
		stage.Must(t, err)
		idle, err := n.AddJob(ctx, xxljob.Job{Name: "idle", Handler: "work", Stopped: true, Schedule: xxljob.At(soon)})
		stage.Must(t, err)
		over := xxljob.Job{ID: has.Job.ID, Name: "has", Handler: "work", Schedule: xxljob.At(soon)}
		fresh := xxljob.Job{Name: "fresh", Handler: "work", Schedule: xxljob.At(soon)}
		time.Sleep(time.Second) // now it is past, and by the estimate it is to come
		before := stage.ContentsOf(t, st)
		for name, verb := range map[string]func() error{
			"AddJob":                 func() error { _, err := n.AddJob(ctx, fresh); return err },
			"UpdateJob":              func() error { _, err := n.UpdateJob(ctx, over); return err },
			"StartJob":               func() error { return n.StartJob(ctx, idle.ID) },
			"EnsureJob":              func() error { _, err := n.EnsureJob(ctx, over); return err },
			"EnsureJob of a new one": func() error { _, err := n.EnsureJob(ctx, fresh); return err },
			"EnsureJobs":             func() error { _, err := n.EnsureJobs(ctx, "", []xxljob.Job{fresh}, xxljob.EnsureOptions{}); return err },
		} {
			if err := verb(); !errors.Is(err, xxljob.ErrNeverFires) {
				t.Errorf("%s: %v", name, err)
			}
			stage.RequireSame(t, name, before, stage.ContentsOf(t, st))
		}
		stage.Stop(t, n)
	})
}

// TestToComeByTheStoresClock: what is to come by the store's clock is not refused
// because it is past by this process's, which is all that a scheduler knows that was not
// started.
func TestToComeByTheStoresClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		behind := goingBy(func() time.Time { return time.Now().Add(-time.Hour) })
		s, err := xxljob.New(behind, xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog()})
		stage.Must(t, err)
		at := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "work", Schedule: xxljob.At(at)})
		stage.Must(t, err)
		if !job.Next.Equal(at) {
			t.Errorf("next %v, want %v", job.Next, at)
		}
	})
}
