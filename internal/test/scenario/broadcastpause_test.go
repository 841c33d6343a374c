package scenario_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// inOrder has the parts of serial broadcasts say where one begins behind a later one.
type inOrder struct {
	t    *testing.T
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu: by node and job; nil once the nodes stop
}

func (o *inOrder) begins(node string, task *xxljob.Task) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		return
	}
	at := fmt.Sprint(node, " ", task.JobID)
	if task.ScheduledAt.Before(o.last[at]) {
		o.t.Errorf("at %s the run of job %d due at %v begins behind one due at %v", node, task.JobID, task.ScheduledAt, o.last[at])
	}
	o.last[at] = task.ScheduledAt
}

// ends has what begins from here on not looked at. A part that waits for its place at a node is
// sent to another one when that stops, where later runs may have begun: this is not promised.
func (o *inOrder) ends() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = nil
}

// TestSerialBroadcastsWhileANodeIsPaused: at each node the runs of a serial job begin in the
// order of their instants, whichever node stands still meanwhile, and however long each call of
// the store takes.
func TestSerialBroadcastsWhileANodeIsPaused(t *testing.T) {
	t.Parallel()
	for seed := range 8 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if seed%4 != 0 && testing.Short() {
				t.Skip("another seed; leave out -short")
			}
			if seed > 0 && stage.Detector {
				t.Skip("another seed: the race detector has nothing more to say of it")
			}
			synctest.Test(t, func(t *testing.T) { serialWhilePaused(t, uint64(seed)) })
		})
	}
}

func serialWhilePaused(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	takes := time.Duration(rnd.IntN(3)) * 40 * time.Millisecond
	st := memory.New()
	order := &inOrder{t: t, last: map[string]time.Time{}}
	var nodes []*stage.Node
	for _, name := range []string{"a", "b", "c"} {
		n := stage.StartNode(t, st, name, &stage.Journal{})
		for _, method := range []string{"Start", "Finish", "Take", "Inbox", "Runs", "RunsByID", "Settle", "Dispatched", "Beat", "Scan", "Claim", "StartedBy"} {
			for range 1 + rnd.IntN(2) {
				n.Faults.Inject(method, storetest.Fault{Delay: time.Duration(1+rnd.IntN(300)) * time.Millisecond, Rate: 0.3})
			}
		}
		stage.Must(t, n.Handle("part", func(_ context.Context, task *xxljob.Task) error {
			order.begins(n.Name, task)
			time.Sleep(takes)
			return nil
		}))
		nodes = append(nodes, n)
	}
	time.Sleep(10 * time.Second)
	for i := range 10 {
		_, err := nodes[0].AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("serial ", i), Handler: "part", Route: route.ShardingBroadcast, Schedule: xxljob.FixedRate(time.Second)})
		stage.Must(t, err)
	}
	time.Sleep(5 * time.Second)
	for range 4 {
		n := nodes[rnd.IntN(3)]
		time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		n.Pause()
		time.Sleep(time.Duration(3000+rnd.IntN(7000)) * time.Millisecond)
		n.Resume()
		time.Sleep(8 * time.Second)
	}
	order.ends()
	stage.Stop(t, nodes...)
}
