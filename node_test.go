package xxljob_test

// Nodes of a cluster in a bubble, and what their handlers saw.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
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
	n.faults.Observe(checkDuties(t))
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

func stopShort(n *node) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n.Stop(ctx)
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

// observe returns the view of somebody who comes, looks and leaves.
func observe(t *testing.T, st xxljob.Store) xxljob.View {
	t.Helper()
	view, err := st.Beat(context.Background(), "observer", nil)
	must(t, err)
	must(t, st.Leave(context.Background(), "observer"))
	must(t, st.Bury(context.Background(), "observer", 1))
	return view
}
