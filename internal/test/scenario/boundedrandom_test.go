package scenario_test

// Jobs with bounds, edited and stopped and started at random on nodes that die, pause and
// lose their store: what was run is compared with a model that knows nothing of the engine.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// boundedModel is what a job should do, as those who edit it see it.
type boundedModel struct {
	id       int64
	schedule int // how many it has had
	seconds  bool
	stopped  bool
	made     int // Runs after the last edit: so many may exceed MaxRuns
	bounds   []boundsFrom
	gaps     []inForce // in which instants need not be in any row: it was stopped, or used up
}

// boundsFrom are NotBefore and NotAfter from a time on.
type boundsFrom struct{ from, before, after time.Time }

func (b boundsFrom) have(at time.Time) bool {
	return !at.Before(b.before) && (b.after.IsZero() || !at.After(b.after))
}

// boundedStage is the cluster, and the jobs.
type boundedStage struct {
	t     *testing.T
	st    *memory.Store
	j     *stage.Journal
	r     *rand.Rand
	nodes []*stage.Node
	dead  []*stage.Node
	jobs  []*boundedModel
	named int
}

// start adds a node. Its handler "slow" takes up to a second and a half.
func (b *boundedStage) start() {
	b.named++
	n := stage.StartNode(b.t, b.st, fmt.Sprint("n", b.named), b.j, func(c *xxljob.Config) { c.CatchUp = xxljob.CatchUp([]string{"EVERY", "ONCE"}[b.r.IntN(2)]) })
	stage.Must(b.t, n.Handle("slow", func(_ context.Context, task *xxljob.Task) error {
		n.Gate.Pass()
		b.j.Note(n.Name, task)
		time.Sleep(time.Duration(task.RunID%15) * 100 * time.Millisecond)
		return nil
	}))
	b.nodes = append(b.nodes, n)
}

// trouble does something to a node, and lets time go by meanwhile.
func (b *boundedStage) trouble() {
	i := b.r.IntN(len(b.nodes))
	n := b.nodes[i]
	switch b.r.IntN(5) {
	case 0: // it dies, and another one comes
		n.Pause()
		b.nodes[i] = b.nodes[len(b.nodes)-1]
		b.nodes, b.dead = b.nodes[:len(b.nodes)-1], append(b.dead, n)
		b.start()
	case 1:
		n.Pause()
		b.pass(b.r.IntN(40))
		n.Resume()
	case 2: // it stops in order
		stage.Stop(b.t, n)
		b.nodes[i] = b.nodes[len(b.nodes)-1]
		b.nodes = b.nodes[:len(b.nodes)-1]
		b.start()
	case 3: // claims are made, and their answers lost
		for _, n := range b.nodes {
			n.Faults.Inject("Claim", storetest.Fault{After: true, Calls: 1 + b.r.IntN(3)})
		}
	case 4: // the store is away from all of them
		for _, n := range b.nodes {
			n.Faults.Inject(storetest.All, storetest.Fault{Before: true})
		}
		b.pass(b.r.IntN(30))
		for _, n := range b.nodes {
			n.Faults.Clear()
		}
	}
}

// pass lets some seconds go by, until half a second behind one.
func (b *boundedStage) pass(seconds int) {
	time.Sleep(time.Until(time.Now().Add(500 * time.Millisecond).Truncate(time.Second).Add(time.Duration(seconds)*time.Second + 500*time.Millisecond)))
	synctest.Wait()
}

func (b *boundedStage) add(i int) {
	pick := func(list ...string) string { return list[b.r.IntN(len(list))] }
	m := &boundedModel{seconds: i%2 == 0}
	job := xxljob.Job{Name: fmt.Sprint("job ", i), Handler: "slow", Schedule: xxljob.Cron("* * * * * ?"), MaxRuns: 1 + b.r.IntN(60),
		Misfire: xxljob.MisfireDoNothing, CatchUp: xxljob.CatchUp(pick("", "EVERY", "ONCE")), Route: pick("NEAREST", "ROUND", "RANDOM")}
	switch {
	case m.seconds:
		job.Misfire = xxljob.Misfire(pick("DO_NOTHING", "FIRE_ONCE_NOW"))
	case i%4 == 1:
		job.Route = xxljob.RouteShardingBroadcast
	}
	if b.r.IntN(3) == 0 {
		job.NotBefore = time.Now().Add(time.Duration(b.r.IntN(20)) * time.Second)
	}
	m.bounds = append(m.bounds, boundsFrom{time.Now(), job.NotBefore, job.NotAfter})
	added, err := b.nodes[0].AddJob(b.t.Context(), job)
	stage.Must(b.t, err)
	m.id = added.ID
	m.gaps = append(m.gaps, inForce{to: time.Now()})
	b.jobs = append(b.jobs, m)
}

// edit does one of the verbs to a job, at a node that lives.
func (b *boundedStage) edit(m *boundedModel) {
	n, ctx := b.nodes[b.r.IntN(len(b.nodes))], b.t.Context()
	was, err := b.st.Job(ctx, m.id)
	stage.Must(b.t, err)
	now := time.Now()
	if was.Next.IsZero() && was.WaitRun == 0 && !m.stopped { // all its runs are made, or NotAfter is past
		m.gaps = append(m.gaps, inForce{from: was.Last, to: now})
	}
	changed := was
	changed.Version = 0
	later := changed.NotBefore // than NotBefore and now
	if later.Before(now) {
		later = now
	}
	switch b.r.IntN(8) {
	case 0:
		changed.Param += "x"
	case 1, 2:
		changed.MaxRuns += b.r.IntN(20)
	case 3:
		changed.MaxRuns = max(1, changed.MaxRuns-b.r.IntN(10))
	case 4:
		if m.seconds || m.schedule > 0 {
			changed.NotAfter = later.Add(time.Duration(1+b.r.IntN(120)) * time.Second)
			break
		}
		m.schedule++
		changed.Schedule = []xxljob.Schedule{xxljob.FixedRate(2 * time.Second), xxljob.FixedDelay(time.Second)}[b.r.IntN(2)]
	case 5:
		changed.NotBefore, changed.NotAfter = now.Add(time.Duration(b.r.IntN(20)-10)*time.Second), time.Time{}
	case 6, 7:
		if err := b.turn(n, m); !errors.Is(err, xxljob.ErrNeverFires) {
			stage.Must(b.t, err)
		}
		return
	}
	got, err := n.UpdateJob(ctx, changed)
	if errors.Is(err, xxljob.ErrNeverFires) {
		return
	}
	stage.Must(b.t, err)
	m.made = got.Runs
	m.bounds = append(m.bounds, boundsFrom{now, changed.NotBefore, changed.NotAfter})
}

// turn stops a job, or starts it.
func (b *boundedStage) turn(n *stage.Node, m *boundedModel) error {
	if !m.stopped {
		m.stopped = true
		m.gaps = append(m.gaps, inForce{from: time.Now()})
		return n.StopJob(b.t.Context(), m.id)
	}
	err := n.StartJob(b.t.Context(), m.id)
	if err == nil {
		m.stopped = false
		m.gaps[len(m.gaps)-1].to = time.Now()
	}
	return err
}

// finish heals everything, and gives each job the time to come to its end.
func (b *boundedStage) finish() {
	b.pass(60)
	for _, m := range b.jobs {
		if m.stopped {
			if err := b.turn(b.nodes[0], m); !errors.Is(err, xxljob.ErrNeverFires) {
				stage.Must(b.t, err)
			}
		}
	}
	b.pass(600)
}

// counted are the triggers of the job's schedule since it got the one that it has, as
// MaxRuns is said to count them.
func (b *boundedStage) counted(m *boundedModel, runs []xxljob.Run) int {
	triggers := map[int64]bool{}
	for _, r := range runs {
		former := m.schedule > 0 && r.Type == xxljob.TriggerCron
		takenBack := r.State == xxljob.StateCancelled && r.Sharding.Total == 0
		if r.Type.ScheduleBorn() && !former && !takenBack && r.State != xxljob.StateSkipped {
			triggers[r.TriggerID] = true
		}
	}
	return len(triggers)
}

// check compares what there is with the model; over says that everything has ended.
func (b *boundedStage) check(m *boundedModel, over bool) {
	if b.t.Failed() {
		return // the nodes are to be stopped all the same
	}
	job, err := b.st.Job(b.t.Context(), m.id)
	stage.Must(b.t, err)
	runs := stage.AllOf(b.t, b.st, xxljob.RunFilter{JobID: m.id})
	if n := b.counted(m, runs); n != job.Runs {
		b.t.Errorf("job %d has made %d runs, and says %d", m.id, n, job.Runs)
	}
	if job.Runs > max(job.MaxRuns, m.made) {
		b.t.Errorf("job %d has made %d runs, of %d; %d when it was edited", m.id, job.Runs, job.MaxRuns, m.made)
	}
	if !over {
		return
	}
	switch last := m.bounds[len(m.bounds)-1].after; {
	case m.stopped && job.StopReason == "": // and cannot be started
	case !job.Stopped:
		b.t.Errorf("job %d has not ended: %+v", m.id, job)
	case job.StopReason == "finished: MaxRuns" && job.Runs < job.MaxRuns,
		job.StopReason == "finished: NotAfter" && (last.IsZero() || last.After(time.Now())):
		b.t.Errorf("job %d: %q with %d of %d runs, NotAfter %v", m.id, job.StopReason, job.Runs, job.MaxRuns, last)
	}
	for _, r := range runs {
		if !r.Type.ScheduleBorn() || r.State == xxljob.StateCancelled && r.Sharding.Total == 0 {
			continue
		}
		if first, last := span(r); !m.had(r.Created, first) || !m.had(r.Created, last) {
			b.t.Errorf("job %d: run %d (%v) of %v to %v is out of bounds", m.id, r.ID, r.State, first, last)
		}
	}
	if m.seconds {
		b.checkInstants(m, runs)
	}
}

// span are the first and the last instant that a run stands for.
func span(r xxljob.Run) (first, last time.Time) {
	if r.Count > 0 {
		return r.First, r.Last
	}
	return r.Scheduled, r.Scheduled
}

// had reports whether an instant was within the bounds that were in force when it was
// planned.
func (m *boundedModel) had(planned, at time.Time) bool {
	for i, bounds := range m.bounds {
		if !bounds.from.After(planned) && (i == len(m.bounds)-1 || !m.bounds[i+1].from.Before(planned)) && bounds.have(at) {
			return true
		}
	}
	return false
}

// checkInstants: each second up to the last that has a row is in one, while the job was
// enabled, within its bounds and not used up; none is in two, but for those that were taken
// back.
func (b *boundedStage) checkInstants(m *boundedModel, runs []xxljob.Run) {
	rows, live, last := map[int64]int{}, map[int64]int{}, int64(0)
	for _, r := range runs {
		first, end := span(r)
		for at := first.Unix(); at <= end.Unix() && r.Type.ScheduleBorn(); at++ {
			rows[at]++
			if r.State != xxljob.StateCancelled {
				live[at]++
			}
			last = max(last, at)
		}
	}
	for sec := m.bounds[0].from.Unix(); sec <= last; sec++ {
		at := time.Unix(sec, 0)
		due := false
		for i, bounds := range m.bounds {
			if at.After(bounds.from) && (i == len(m.bounds)-1 || !at.After(m.bounds[i+1].from)) {
				due = bounds.have(at)
			}
		}
		for _, g := range m.gaps {
			if at.After(g.from) && (g.to.IsZero() || !at.After(g.to)) {
				due = false
			}
		}
		if due && rows[sec] == 0 || live[sec] > 1 {
			b.t.Errorf("job %d: second %d is in %d rows, %d of which stand", m.id, sec, rows[sec], live[sec])
		}
	}
}

var boundedWorlds = flag.Int("worlds", 6, "number of worlds for TestBoundsAtRandom")

// TestBoundsAtRandom: whatever is done to jobs and nodes, a job's Runs is what its rows
// say, no more than MaxRuns are made, as many are where instants come, none is out of
// bounds, and each instant within is accounted for.
func TestBoundsAtRandom(t *testing.T) {
	t.Parallel()
	worlds := *boundedWorlds
	if testing.Short() {
		worlds = min(worlds, 2)
	}
	for range worlds {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &boundedStage{t: t, st: memory.New(), j: &stage.Journal{}, r: rand.New(rand.NewPCG(seed, 1))}
				for range 3 {
					b.start()
				}
				b.pass(10)
				for i := range 8 {
					b.add(i)
				}
				for range 60 {
					if b.r.IntN(6) == 0 {
						b.trouble()
					}
					b.pass(b.r.IntN(5))
					m := b.jobs[b.r.IntN(len(b.jobs))]
					b.edit(m)
					synctest.Wait()
					b.check(m, false)
				}
				b.finish()
				for _, m := range b.jobs {
					b.check(m, true)
				}
				b.checkCalls()
				for _, n := range b.dead { // their goroutines end, so that the bubble can
					n.Resume()
				}
				stage.Stop(t, append(b.nodes, b.dead...)...)
			})
		})
	}
}

// checkCalls: no handler was called twice for a run, nor for more runs than were counted.
func (b *boundedStage) checkCalls() {
	calls := map[int64]int{}
	for _, s := range b.j.All() {
		calls[s.Run]++
	}
	for run, n := range calls {
		if n > 1 {
			b.t.Errorf("run %d was called %d times", run, n)
		}
	}
}
