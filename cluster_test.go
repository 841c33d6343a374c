package xxljob_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// journal is what the handlers of all nodes saw.
type journal struct {
	mu     sync.Mutex
	starts []started
}

type started struct {
	run, job int64
	node     string
	at, due  time.Time
	shard    string
}

func (j *journal) note(node string, t *xxljob.Task) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.starts = append(j.starts, started{t.RunID, t.JobID, node, time.Now(), t.ScheduledAt, fmt.Sprintf("%d/%d", t.ShardIndex, t.ShardTotal)})
}

func (j *journal) all() []started {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.starts)
}

func (j *journal) by(node string) int {
	n := 0
	for _, s := range j.all() {
		if s.node == node {
			n++
		}
	}
	return n
}

// gate holds back the handlers of a paused node, and those of a dead one for
// ever (until release).
type gate struct {
	mu   sync.Mutex
	shut chan struct{}
}

func (g *gate) pass() {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

// node is one scheduler of a cluster in a bubble, over a store of its own that
// can fail.
type node struct {
	xxljob.Scheduler
	name   string
	faults *storetest.Faults
	gate   gate
}

// pause stops the node as SIGSTOP would: no store call is made or answered, no
// handler is begun.
func (n *node) pause() {
	n.faults.Pause(true)
	n.gate.mu.Lock()
	n.gate.shut = make(chan struct{})
	n.gate.mu.Unlock()
}

func (n *node) resume() {
	n.gate.mu.Lock()
	close(n.gate.shut)
	n.gate.shut = nil
	n.gate.mu.Unlock()
	n.faults.Resume()
}

// startNode adds a node to the cluster with the handler "work".
func startNode(t *testing.T, st xxljob.Store, name string, j *journal, tune ...func(*xxljob.Config)) *node {
	t.Helper()
	n := &node{name: name, faults: storetest.Wrap(st)}
	cfg := xxljob.Config{App: "app", Node: name, Logger: quietLog()}
	for _, f := range tune {
		f(&cfg)
	}
	s, err := xxljob.New(n.faults, cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.Scheduler = s
	must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
		n.gate.pass()
		j.note(name, task)
		return nil
	}))
	must(t, s.Start(context.Background()))
	return n
}

func stop(t *testing.T, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stop %s: %v", n.name, err)
		}
		cancel()
	}
}

// addSeconds adds n jobs that are due every second.
func addSeconds(t *testing.T, s xxljob.Scheduler, n int) []xxljob.Job {
	t.Helper()
	jobs := make([]xxljob.Job, n)
	for i := range jobs {
		j, err := s.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprintf("job %d", i), Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
		must(t, err)
		jobs[i] = j
	}
	return jobs
}

// audit compares what handlers saw, and what the store recorded as interrupted
// or skipped, with every instant of the jobs in (from, to]. It shares nothing
// with the scheduler but the jobs' ids.
type audit struct{ lost, double, early, interrupted, skipped int }

func auditSeconds(t *testing.T, st xxljob.Store, j *journal, jobs []xxljob.Job, from, to time.Time) audit {
	t.Helper()
	var a audit
	type instant struct {
		job int64
		at  int64
	}
	seen := map[instant]int{}
	runs := map[int64]int{}
	for _, s := range j.all() {
		if s.at.Before(s.due) {
			a.early++
		}
		seen[instant{s.job, s.due.Unix()}]++
		runs[s.run]++
	}
	for id, n := range runs {
		if n > 1 {
			a.double++
			t.Errorf("run %d was started %d times", id, n)
		}
	}
	var gaps []xxljob.Run
	for _, r := range allRuns(t, st) {
		switch r.State {
		case xxljob.StateLost:
			a.interrupted++
			gaps = append(gaps, r)
		case xxljob.StateSkipped:
			a.skipped++
			gaps = append(gaps, r)
		}
	}
	for _, job := range jobs {
		for at := from.Truncate(time.Second).Add(time.Second); !at.After(to); at = at.Add(time.Second) {
			n := seen[instant{job.ID, at.Unix()}]
			if n > 1 {
				a.double++
				t.Errorf("job %d at %v was run %d times", job.ID, at, n)
			}
			if n == 0 && !explained(gaps, job.ID, at) {
				a.lost++
				if a.lost < 5 {
					t.Errorf("job %d at %v is lost", job.ID, at)
				}
			}
		}
	}
	return a
}

func explained(gaps []xxljob.Run, job int64, at time.Time) bool {
	for _, r := range gaps {
		if r.JobID == job && (r.Scheduled.Equal(at) || r.Count > 0 && !at.Before(r.First) && !at.After(r.Last)) {
			return true
		}
	}
	return false
}

// requireSpread checks that the live nodes hold equal shares of the shards,
// within one.
func requireSpread(t *testing.T, st xxljob.Store, want ...*node) {
	t.Helper()
	view, err := st.Beat(context.Background(), "observer", nil)
	must(t, err)
	must(t, st.Leave(context.Background(), "observer"))
	must(t, st.Bury(context.Background(), "observer", 1))
	counts := map[string]int{}
	for _, sh := range view.Shards {
		for _, n := range view.Nodes {
			if n.Incarnation == sh.Owner {
				counts[n.ID]++
			}
		}
	}
	least, most := 1<<30, 0
	for _, n := range want {
		least, most = min(least, counts[n.name]), max(most, counts[n.name])
	}
	if most-least > 1 || len(counts) != len(want) {
		t.Errorf("shards are spread as %v over %d nodes", counts, len(want))
	}
}

// TestClusterSurvives runs three nodes on one store: one dies, one is paused for
// longer than its lease and for longer than LostAfter, one joins. Nothing is
// lost or doubled.
func TestClusterSurvives(t *testing.T) {
	for _, pause := range []time.Duration{3 * time.Second, 8 * time.Second, 20 * time.Second, 50 * time.Second} {
		t.Run(fmt.Sprint("paused for ", pause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &journal{}
				a, b, c := startNode(t, st, "a", j), startNode(t, st, "b", j), startNode(t, st, "c", j)
				time.Sleep(10 * time.Second)
				requireSpread(t, st, a, b, c)
				jobs := addSeconds(t, a, 40)
				from := time.Now()
				time.Sleep(10 * time.Second)

				a.pause() // dies: nothing of it is ever heard of again
				time.Sleep(60 * time.Second)
				requireSpread(t, st, b, c)

				b.pause()
				time.Sleep(pause)
				b.resume()
				time.Sleep(60 * time.Second)
				requireSpread(t, st, b, c)

				d := startNode(t, st, "d", j)
				time.Sleep(30 * time.Second)
				requireSpread(t, st, b, c, d)
				to := time.Now()
				time.Sleep(10 * time.Second)
				stop(t, b, c, d)

				got := auditSeconds(t, st, j, jobs, from, to)
				if got.lost != 0 || got.double != 0 || got.early != 0 || got.skipped != 0 {
					t.Errorf("audit: %+v", got)
				}
				t.Logf("audit: %+v of %d starts", got, len(j.all()))
				// The dead node's goroutines end, so that the bubble can.
				a.resume()
				stop(t, a)
			})
		})
	}
}

// TestStoreAway takes the store away for ten lease times: no run of a live node
// is judged lost, and what is due meanwhile is run or recorded.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a, b := startNode(t, st, "a", j), startNode(t, st, "b", j)
		time.Sleep(5 * time.Second)
		jobs := addSeconds(t, a, 10)
		long, err := a.AddJob(t.Context(), xxljob.Job{Name: "long", Handler: "long"})
		must(t, err)
		for _, n := range []*node{a, b} {
			must(t, n.Handle("long", func(context.Context, *xxljob.Task) error { time.Sleep(90 * time.Second); return nil }))
		}
		ids, err := a.Trigger(t.Context(), long.ID, xxljob.Trigger{})
		must(t, err)
		from := time.Now()
		time.Sleep(10 * time.Second)
		for _, n := range []*node{a, b} {
			n.faults.Inject(storetest.All, storetest.Fault{Before: true})
		}
		time.Sleep(50 * time.Second)
		for _, n := range []*node{a, b} {
			n.faults.Clear()
		}
		time.Sleep(60 * time.Second)
		to := time.Now()
		run, err := a.Wait(t.Context(), ids[0])
		must(t, err)
		if run.State != xxljob.StateSucceeded {
			t.Errorf("the long run ended as %v: %s", run.State, run.HandleMsg)
		}
		time.Sleep(10 * time.Second)
		requireSpread(t, st, a, b)
		stop(t, a, b)
		got := auditSeconds(t, st, j, jobs, from, to)
		if got.lost != 0 || got.double != 0 || got.early != 0 || got.interrupted != 0 {
			t.Errorf("audit: %+v", got)
		}
		t.Logf("audit: %+v of %d starts", got, len(j.all()))
	})
}

// TestAttachedAcrossNodes routes over executors attached to three nodes.
func TestAttachedAcrossNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a, b, c := startNode(t, st, "a", j), startNode(t, st, "b", j), startNode(t, st, "c", j)
		time.Sleep(10 * time.Second)
		ctx := t.Context()

		t.Log("a broadcast makes runs 0/3, 1/3, 2/3, one on each node")
		all, err := a.AddJob(ctx, xxljob.Job{Name: "all", Handler: "work", Route: "SHARDING_BROADCAST"})
		must(t, err)
		ids, err := a.Trigger(ctx, all.ID, xxljob.Trigger{})
		must(t, err)
		time.Sleep(2 * time.Second)
		parts, err := st.Runs(ctx, xxljob.RunFilter{TriggerID: ids[0]})
		must(t, err)
		var shards []string
		for _, r := range parts {
			shards = append(shards, r.Sharding.String())
			if r.State != xxljob.StateSucceeded {
				t.Errorf("part %v: %v %s", r.Sharding, r.State, r.TriggerMsg)
			}
		}
		slices.Sort(shards)
		if !slices.Equal(shards, []string{"0/3", "1/3", "2/3"}) {
			t.Errorf("parts: %v", shards)
		}
		for _, n := range []*node{a, b, c} {
			if got := j.by(n.name); got != 1 {
				t.Errorf("node %s ran %d parts", n.name, got)
			}
		}

		t.Log("nine ROUND triggers give three each")
		round, err := b.AddJob(ctx, xxljob.Job{Name: "round", Handler: "work", Route: "ROUND"})
		must(t, err)
		for range 9 {
			_, err := c.Trigger(ctx, round.ID, xxljob.Trigger{})
			must(t, err)
			time.Sleep(time.Second)
		}
		for _, n := range []*node{a, b, c} {
			if got := j.by(n.name); got != 4 {
				t.Errorf("node %s ran %d, want 1 part and 3 in turn", n.name, got)
			}
		}
		stop(t, a, b, c)
	})
}

// TestAppsOnDifferentNodes runs each job where its app and handler are.
func TestAppsOnDifferentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		ctx := t.Context()
		var nodes []*node
		for _, name := range []string{"a", "b", "c"} {
			n := startNode(t, st, name, j)
			nodes = append(nodes, n)
			e, err := executor.New(executor.Config{App: "app-" + name})
			must(t, err)
			must(t, e.Handle("only-"+name, func(_ context.Context, task *xxljob.Task) error { j.note("only-"+name, task); return nil }))
			must(t, n.Attach(e))
		}
		time.Sleep(10 * time.Second)
		for _, route := range []string{"FIRST", "LAST", "ROUND", "RANDOM", "CONSISTENT_HASH", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED", "FAILOVER", "BUSYOVER", "SHARDING_BROADCAST", "NEAREST"} {
			for _, name := range []string{"a", "b", "c"} {
				for i := range 4 {
					job, err := nodes[i%3].AddJob(ctx, xxljob.Job{App: "app-" + name, Name: fmt.Sprint(route, i), Handler: "only-" + name, Route: route})
					must(t, err)
					ids, err := nodes[0].Trigger(ctx, job.ID, xxljob.Trigger{})
					must(t, err)
					run, err := nodes[1].Wait(ctx, ids[0])
					must(t, err)
					if run.State != xxljob.StateSucceeded {
						t.Errorf("%s on app-%s: %v\n%s", route, name, run.State, run.TriggerMsg)
					}
				}
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			if got := j.by("only-" + name); got != 44 {
				t.Errorf("app-%s ran %d jobs, want 44", name, got)
			}
		}
		stop(t, nodes...)
	})
}

// TestHandlerOnOneNode never chooses a node without the handler.
func TestHandlerOnOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		ctx := t.Context()
		a, b := startNode(t, st, "a", j), startNode(t, st, "b", j)
		must(t, b.Handle("rare", func(_ context.Context, task *xxljob.Task) error { j.note("b", task); return nil }))
		time.Sleep(10 * time.Second)
		for i := range 20 {
			job, err := a.AddJob(ctx, xxljob.Job{Name: fmt.Sprint(i), Handler: "rare", Route: []string{"ROUND", "FIRST", "RANDOM", "SHARDING_BROADCAST"}[i%4]})
			must(t, err)
			ids, err := a.Trigger(ctx, job.ID, xxljob.Trigger{})
			must(t, err)
			run, err := a.Wait(ctx, ids[0])
			must(t, err)
			if run.State != xxljob.StateSucceeded {
				t.Errorf("run %d: %v\n%s", i, run.State, run.TriggerMsg)
			}
		}
		if j.by("b") != 20 {
			t.Errorf("node b ran %d of 20", j.by("b"))
		}
		stop(t, a, b)
	})
}

// TestSerialQueueSurvives queues twenty runs of a serial job; the node that
// works on them dies. The queue is in the store: all others run, in order, on
// another node.
func TestSerialQueueSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		ctx := t.Context()
		a, b := startNode(t, st, "a", j), startNode(t, st, "b", j)
		var mu sync.Mutex
		running := 0
		for _, n := range []*node{a, b} {
			must(t, n.Handle("slow", func(_ context.Context, task *xxljob.Task) error {
				n.gate.pass()
				j.note(n.name, task)
				mu.Lock()
				if running++; running > 1 {
					t.Errorf("%d runs of a serial job at once", running)
				}
				mu.Unlock()
				time.Sleep(3 * time.Second)
				n.gate.pass()
				mu.Lock()
				running--
				mu.Unlock()
				return nil
			}))
		}
		time.Sleep(10 * time.Second)
		job, err := a.AddJob(ctx, xxljob.Job{Name: "serial", Handler: "slow", Route: "FIRST"})
		must(t, err)
		var ids []int64
		for range 20 {
			id, err := b.Trigger(ctx, job.ID, xxljob.Trigger{})
			must(t, err)
			ids = append(ids, id...)
		}
		time.Sleep(10 * time.Second) // three or four have run on a, the first address
		a.pause()
		// The handler that a was in the middle of is cut off, so it does not count
		// as running any more.
		mu.Lock()
		cut := running
		running = 0
		mu.Unlock()
		for i, id := range ids {
			run, err := b.Wait(ctx, id)
			must(t, err)
			if want := xxljob.StateSucceeded; run.State != want && run.State != xxljob.StateLost {
				t.Errorf("run %d of the queue: %v %s", i, run.State, run.TriggerMsg)
			}
		}
		if lost := countStates(allRuns(t, st))[xxljob.StateLost]; lost != cut {
			t.Errorf("%d runs are recorded lost, %d were cut off", lost, cut)
		}
		var order []int64
		for _, s := range j.all() {
			order = append(order, s.run)
		}
		if !slices.IsSorted(order) || len(order) != 20 {
			t.Errorf("%d started, in the order %v", len(order), order)
		}
		stop(t, b)
		mu.Lock()
		running = -cut
		mu.Unlock()
		a.resume()
		stop(t, a)
	})
}

// ownersWatch sees which nodes own which shards, in the views that they get.
type ownersWatch struct {
	xxljob.Store
	mu     sync.Mutex
	owners map[int][]string // by shard: its owners, each once in a row
}

func (w *ownersWatch) Beat(ctx context.Context, inc string, at []xxljob.Attachment) (xxljob.View, error) {
	v, err := w.Store.Beat(ctx, inc, at)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, sh := range v.Shards {
		if had := w.owners[sh.ID]; sh.Owner != "" && (len(had) == 0 || had[len(had)-1] != sh.Owner) {
			w.owners[sh.ID] = append(had, sh.Owner)
		}
	}
	return v, err
}

// changed counts the shards that have changed hands since the last call.
func (w *ownersWatch) changed() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, owners := range w.owners {
		n += one(len(owners) > 1)
		w.owners[id] = owners[len(owners)-1:]
	}
	return n
}

// TestLeaseMaxHold lets nodes keep a shard for twenty seconds at most: shards go
// to and fro between two nodes for three minutes, and nothing is lost or doubled.
func TestLeaseMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := &ownersWatch{Store: memory.New(), owners: map[int][]string{}}, &journal{}
		hold := func(c *xxljob.Config) { c.LeaseMaxHold = 20 * time.Second }
		a, b := startNode(t, st, "a", j, hold), startNode(t, st, "b", j, hold)
		time.Sleep(10 * time.Second)
		st.changed() // when b came
		jobs := addSeconds(t, a, 40)
		from := time.Now()
		for minute := range 3 {
			time.Sleep(time.Minute)
			if n := st.changed(); n < 16 {
				t.Errorf("%d of 32 shards changed hands in minute %d", n, minute)
			}
		}
		to := time.Now()
		time.Sleep(10 * time.Second)
		stop(t, a, b)
		if got := auditSeconds(t, st, j, jobs, from, to); got != (audit{}) {
			t.Errorf("audit: %+v", got)
		}
	})
}

// TestKillWhileDraining kills runs from another node while their node waits, in
// Stop, for the handlers to end: runs that itself had started, and runs that came
// from the other.
func TestKillWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		two := func(c *xxljob.Config) { c.Shards = 2 }
		a, b := startNode(t, st, "a", j, two), startNode(t, st, "b", j, two)
		must(t, b.Handle("long", func(ctx context.Context, _ *xxljob.Task) error {
			select {
			case <-time.After(40 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}))
		time.Sleep(10 * time.Second)
		var runs []int64
		for i := range 4 { // two of each node's shard
			job, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("long ", i), Handler: "long"})
			must(t, err)
			ids, err := a.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			must(t, err)
			runs = append(runs, ids...)
		}
		time.Sleep(2 * time.Second)
		owners := map[string]bool{}
		for _, id := range runs {
			run, err := st.Run(t.Context(), id)
			must(t, err)
			owners[run.Owner] = true
		}
		if len(owners) != 2 {
			t.Errorf("the runs were started by %v, want both nodes", owners)
		}
		began := time.Now()
		stopped := make(chan time.Duration)
		go func() { stop(t, b); stopped <- time.Since(began) }()
		for i, id := range runs {
			time.Sleep(5 * time.Second)
			if run, err := st.Run(t.Context(), id); err != nil || run.State != xxljob.StateStarted {
				t.Errorf("run %d while the node drains: %v %v", i, run.State, err)
			}
			killed := time.Now()
			must(t, a.Kill(t.Context(), id))
			run, err := a.Wait(t.Context(), id)
			must(t, err)
			if took := run.Ended.Sub(killed); run.State != xxljob.StateKilled || took > 2*time.Second {
				t.Errorf("run %d, %v after its Kill: %v %s", i, took, run.State, run.HandleMsg)
			}
		}
		if took := <-stopped; took > 25*time.Second {
			t.Errorf("Stop took %v, the last handler ended after 20 s", took)
		}
		stop(t, a)
	})
}
