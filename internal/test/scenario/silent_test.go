package scenario_test

// Nodes that die or pause, and what becomes of the runs that they have not taken.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// tellingStore tells of dead nodes what a store with locks knows at once: their
// connection has ended, and their shards are free.
type tellingStore struct {
	st   xxljob.Store
	mu   *sync.Mutex
	dead map[string]bool // by node
}

func (s tellingStore) Beat(ctx context.Context, inc string, attached []store.Attachment) (xxljob.View, error) {
	v, err := s.st.Beat(ctx, inc, attached)
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := map[string]bool{}
	for i := range v.Nodes {
		if n := &v.Nodes[i]; s.dead[n.ID] {
			n.Away, gone[n.Incarnation] = true, true
		}
	}
	for i := range v.Shards {
		v.Shards[i].Free = v.Shards[i].Free || gone[v.Shards[i].Owner]
	}
	return v, err
}

func (s tellingStore) kill(n *stage.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead[n.Name] = true
	n.Pause()
}

// TestSilentNode kills a node, or pauses it, and holds the runs that it has not taken
// against their bounds: by route, whichever node it is. Serial runs of a job keep their
// order, and none is doubled.
func TestSilentNode(t *testing.T) {
	t.Parallel()
	const ttl = 5 * time.Second
	for _, f := range []struct {
		name  string
		kill  bool // as seen by a store with locks
		pause time.Duration
		most  time.Duration
		long  bool // left out with -short: it differs from another by its pause only
	}{
		{"killed, with locks", true, time.Hour, 2 * time.Second, false},
		{"killed, without locks", false, time.Hour, ttl + 3*time.Second, false},
		{"paused for 2 s", false, 2 * time.Second, ttl + 3*time.Second, true},
		{"paused for 4 s", false, 4 * time.Second, ttl + 3*time.Second, false},
		{"paused for 8 s", false, 8 * time.Second, ttl + 3*time.Second, true},
		{"paused for 40 s", false, 40 * time.Second, ttl + 3*time.Second, false},
	} {
		for victim := range 3 {
			t.Run(fmt.Sprintf("%s/node %d", f.name, victim), func(t *testing.T) {
				if f.long && testing.Short() {
					t.Skip("another pause of those around it; leave out -short")
				}
				if stage.Detector && victim > 0 {
					t.Skip("another node of the same process, which all run the same code: the race detector has nothing more to say of it")
				}
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newSilentWorld(t)
					time.Sleep(10*time.Second + 300*time.Millisecond)
					n, at := w.nodes[victim], time.Now()
					inc := stage.IncarnationOf(t, w.st, n)
					if f.kill {
						w.tells.kill(n)
					} else {
						n.Pause()
					}
					time.Sleep(f.pause % time.Hour)
					if f.pause < time.Hour {
						n.Resume()
					}
					time.Sleep(time.Minute)
					w.check(t, inc, at, f.most)
					if f.pause == time.Hour {
						n.Resume()
					}
					stage.Stop(t, w.nodes...)
				})
			})
		}
	}
}

type silentWorld struct {
	tells tellingStore
	st    xxljob.Store // which tells
	j     *stage.Journal
	nodes []*stage.Node
	jobs  []xxljob.Job
}

// newSilentWorld has a store that takes a moment to answer, and handlers that take one
// to end.
func newSilentWorld(t *testing.T) *silentWorld {
	w := &silentWorld{tells: tellingStore{memory.New(), &sync.Mutex{}, map[string]bool{}}, j: &stage.Journal{}}
	w.st = bent.StoreOf(w.tells.st, w.tells)
	for _, name := range []string{"a", "b", "c"} {
		n := stage.StartNode(t, w.st, name, w.j)
		for i, method := range []string{"Start", "Take", "Finish", "Inbox", "RunsByID"} {
			n.Faults.Inject(method, storetest.Fault{Delay: time.Duration(i+1) * time.Millisecond})
			n.Faults.Inject(method, storetest.Fault{Late: 10 * time.Millisecond, Rate: 0.5})
		}
		stage.Must(t, n.Handle("moment", func(_ context.Context, task *xxljob.Task) error {
			n.Gate.Pass()
			w.j.Note(name, task)
			time.Sleep(time.Duration(5+task.RunID%40) * time.Millisecond)
			return nil
		}))
		w.nodes = append(w.nodes, n)
	}
	time.Sleep(10 * time.Second)
	for i := range 4 {
		for _, r := range route.Names() {
			job, err := w.nodes[0].AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(r, i), Handler: "moment", Route: r, Schedule: xxljob.Cron("* * * * * ?")})
			stage.Must(t, err)
			w.jobs = append(w.jobs, job)
		}
	}
	return w
}

// check looks at the runs due from the fault on for 15 s.
func (w *silentWorld) check(t *testing.T, victim string, at time.Time, most time.Duration) {
	t.Helper()
	starts := map[int64]stage.Started{}
	for _, s := range w.j.All() {
		if _, twice := starts[s.Run]; twice {
			t.Errorf("run %d was started twice", s.Run)
		}
		starts[s.Run] = s
	}
	worst := map[string]time.Duration{}
	for _, job := range w.jobs {
		var before xxljob.Run
		runs := stage.AllOf(t, w.st, xxljob.RunFilter{JobID: job.ID})
		slices.SortStableFunc(runs, func(a, b xxljob.Run) int {
			return cmp.Or(a.Scheduled.Compare(b.Scheduled), starts[a.ID].At.Compare(starts[b.ID].At))
		})
		for _, r := range runs {
			if r.Scheduled.Before(at.Add(-time.Second)) || r.Scheduled.After(at.Add(15*time.Second)) || strings.HasPrefix(r.HandleMsg, "interrupted") {
				continue
			}
			s, ran := starts[r.ID]
			if job.Route == route.Busyover && r.State == xxljob.StateRefused {
				continue // where all are busy with the runs before it, that is its way
			}
			if !ran {
				t.Errorf("%s: run %d due %v is %v and was not run:\n%s", job.Route, r.ID, r.Scheduled.Sub(at), r.State, r.TriggerMsg)
				continue
			}
			if r.Address == store.LocalAddress(victim) && r.Taken.Before(at.Add(time.Millisecond)) {
				continue // the victim had it: it is judged after LostAfter, or runs on
			}
			worst[job.Route] = max(worst[job.Route], s.At.Sub(r.Scheduled))
			if passed(runs, before, r) {
				t.Errorf("%s: a run began before one that was due earlier:\n%s\n%s", job.Route, life(r, s, at), life(before, starts[before.ID], at))
			}
			before = r
		}
	}
	t.Logf("worst lateness by route: %v", worst)
	for r, late := range worst {
		if late > most {
			t.Errorf("%s: a run that was not taken was %v late, want %v at most", r, late, most)
		}
	}
}

// passed reports whether a run was started before one of its job that was due earlier,
// or while that one was in the hands of a node which had not taken it. One that waits for
// the end of yet another run at its address is not waited for at others, and the end of
// that is heard of a moment later; nor do the parts of one broadcast wait for each other.
func passed(all []xxljob.Run, earlier, later xxljob.Run) bool {
	if !later.Scheduled.After(earlier.Scheduled) || later.Started.After(earlier.Started) && !later.Started.Before(earlier.Taken) {
		return false
	}
	for _, r := range all {
		if r.ID != earlier.ID && r.ID != later.ID && r.Address == earlier.Address && later.Address != earlier.Address &&
			!r.Started.After(later.Started) && later.Started.Sub(r.Ended) < 200*time.Millisecond {
			return false
		}
	}
	return !later.Started.Equal(earlier.Started)
}

// life is what became of a run, in times since the fault.
func life(r xxljob.Run, s stage.Started, at time.Time) string {
	return fmt.Sprintf("run %d due %v: started by %s for %s at %v, taken at %v, handler called at %v", r.ID, r.Scheduled.Sub(at),
		r.Owner, r.Address, r.Started.Sub(at), r.Taken.Sub(at), s.At.Sub(at))
}

// TestPartsOfOneBroadcast: a part that a dead node has not taken goes to a node which
// has another part of the same broadcast. It waits for that one's end, and neither covers
// it nor is turned away.
func TestPartsOfOneBroadcast(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"COVER_EARLY", "DISCARD_LATER", "SERIAL_EXECUTION"} {
		for dead := range 3 {
			t.Run(fmt.Sprint(strategy, "/", dead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { partsOfOne(t, strategy, dead) })
			})
		}
	}
}

func partsOfOne(t *testing.T, strategy string, dead int) {
	w := &silentWorld{tells: tellingStore{memory.New(), &sync.Mutex{}, map[string]bool{}}, j: &stage.Journal{}}
	w.st = bent.StoreOf(w.tells.st, w.tells)
	for _, name := range []string{"a", "b", "c", "d"} {
		n := stage.StartNode(t, w.st, name, w.j)
		if w.nodes = append(w.nodes, n); name == "d" {
			continue // schedules only
		}
		stage.Must(t, n.Handle("long", func(ctx context.Context, task *xxljob.Task) error {
			w.j.Note(name, task)
			select {
			case <-time.After(20 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}))
	}
	time.Sleep(20*time.Second + 500*time.Millisecond) // between two beats
	d := w.nodes[3]
	var job xxljob.Job
	for i := 0; ; i++ { // one that d owns, so that all parts are handed over
		var err error
		job, err = d.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("long ", i), Handler: "long", Route: "SHARDING_BROADCAST", Block: strategy})
		stage.Must(t, err)
		if view := stage.Observe(t, w.st); strings.HasPrefix(view.Shards[job.Shard].Owner, "d-") {
			break
		}
	}
	time.Sleep(1500 * time.Millisecond) // until nobody is about to look at the nodes
	w.tells.kill(w.nodes[dead])
	id := stage.Trigger(t, d, job)
	time.Sleep(2 * time.Minute)
	parts := stage.AllOf(t, w.st, xxljob.RunFilter{TriggerID: id})
	if len(parts) != 3 {
		t.Errorf("%d parts", len(parts))
	}
	for _, r := range parts {
		if r.State != xxljob.StateSucceeded {
			t.Errorf("part %v is %v: %s\n%s", r.Sharding, r.State, r.HandleMsg, r.TriggerMsg)
		}
	}
	w.nodes[dead].Resume()
	stage.Stop(t, w.nodes...)
}
