package stage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/storetest"
)

// Journal is what the handlers of all nodes saw.
type Journal struct {
	mu     sync.Mutex
	starts []Started
}

// Started is a call of a handler.
type Started struct {
	Run, Job int64
	node     string
	At, Due  time.Time
	Shard    string
}

// Note takes in that a handler was called.
func (j *Journal) Note(node string, t *xxljob.Task) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.starts = append(j.starts, Started{t.RunID, t.JobID, node, time.Now(), t.ScheduledAt, fmt.Sprintf("%d/%d", t.ShardIndex, t.ShardTotal)})
}

// All are the calls so far, in their order.
func (j *Journal) All() []Started {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.starts)
}

// By is how many calls there were at a node.
func (j *Journal) By(node string) int {
	n := 0
	for _, s := range j.All() {
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

func (g *gate) Pass() {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

// Node is one scheduler of a cluster in a bubble, over a store of its own that
// can fail.
type Node struct {
	xxljob.Scheduler
	Name   string
	Faults *storetest.Faults
	Gate   gate
}

// Pause stops the node as SIGSTOP would: no store call is made or answered, no
// handler is begun.
func (n *Node) Pause() {
	n.Faults.Pause(true)
	n.Gate.mu.Lock()
	n.Gate.shut = make(chan struct{})
	n.Gate.mu.Unlock()
}

// Resume ends a Pause.
func (n *Node) Resume() {
	n.Gate.mu.Lock()
	close(n.Gate.shut)
	n.Gate.shut = nil
	n.Gate.mu.Unlock()
	n.Faults.Resume()
}

// StartNode adds a node to the cluster with the handler "work".
func StartNode(t *testing.T, st xxljob.Store, name string, j *Journal, tune ...func(*xxljob.Config)) *Node {
	t.Helper()
	n := NewNode(t, st, name, j, tune...)
	Must(t, n.Start(context.Background()))
	return n
}

// NewNode is StartNode for a node that is to have further handlers when it starts: what waits for
// it starts at once.
func NewNode(t *testing.T, st xxljob.Store, name string, j *Journal, tune ...func(*xxljob.Config)) *Node {
	t.Helper()
	given := st
	n := &Node{Name: name, Faults: storetest.Wrap(st)}
	n.Faults.Observe(CheckDuties(t))
	cfg := xxljob.Config{App: "app", Node: name, Logger: QuietLog()}
	for _, f := range tune {
		f(&cfg)
	}
	st = n.Faults
	if m, ok := given.(store.MuteKeeper); ok {
		st = mutable{n.Faults, m}
	}
	s, err := xxljob.New(st, cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.Scheduler = s
	Must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
		n.Gate.Pass()
		j.Note(name, task)
		return nil
	}))
	return n
}

// mutable is a store with faults that keeps mutes.
type mutable struct {
	*storetest.Faults
	store.MuteKeeper
}

// Stop stops nodes one after the other, each within a minute.
func Stop(t *testing.T, nodes ...*Node) {
	t.Helper()
	for _, n := range nodes {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stop %s: %v", n.Name, err)
		}
		cancel()
	}
}

// StopShort stops a node that may not be able to end in order.
func StopShort(n *Node) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n.Stop(ctx)
}

// AddSeconds adds n jobs that are due every second.
func AddSeconds(t *testing.T, s xxljob.Scheduler, n int) []xxljob.Job {
	t.Helper()
	jobs := make([]xxljob.Job, n)
	for i := range jobs {
		j, err := s.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprintf("job %d", i), Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
		Must(t, err)
		jobs[i] = j
	}
	return jobs
}

// Observe returns the view of somebody who comes, looks and leaves.
func Observe(t *testing.T, st xxljob.Store) xxljob.View {
	t.Helper()
	view, err := st.Beat(context.Background(), "observer", nil)
	Must(t, err)
	Must(t, st.Leave(context.Background(), "observer"))
	Must(t, st.Bury(context.Background(), "observer", 1))
	return view
}
