package scenario_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// requireOwners looks at the shards every second for so long: the named nodes have
// all of them, in equal shares within one.
func requireOwners(t *testing.T, st xxljob.Store, d time.Duration, names ...string) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		counts := owners(t, st)
		total := 0
		for _, name := range names {
			total += counts[name]
			if least := 32 / len(names); counts[name] < least || counts[name] > least+1 {
				t.Errorf("shards by node: %v, want equal shares for %v", counts, names)
				return
			}
		}
		if total != 32 {
			t.Errorf("shards by node: %v, want all of them with %v", counts, names)
			return
		}
	}
}

// drain stops nodes, each of which waits for a handler until they are let go.
func drain(t *testing.T, nodes ...*stage.Node) (letGo func()) {
	t.Helper()
	held, stopped := make(chan struct{}), make(chan error)
	for _, n := range nodes {
		handler := "held at " + n.Name
		stage.Must(t, n.Handle(handler, func(context.Context, *xxljob.Task) error { <-held; return nil }))
		time.Sleep(time.Second) // so that the others know
		stage.TriggerNew(t, n, xxljob.Job{Name: handler, Handler: handler})
	}
	time.Sleep(2 * time.Second)
	for _, n := range nodes {
		go func() { stopped <- n.Stop(context.Background()) }()
	}
	return func() {
		t.Helper()
		close(held)
		for range nodes {
			stage.Must(t, <-stopped)
		}
	}
}

// TestJoinWhileANodeDrains: a node that joins while another waits, in Stop, for its
// handlers gets its share, and no shard is left to the one that drains.
func TestJoinWhileANodeDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b, c := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j), stage.StartNode(t, st, "c", j)
		time.Sleep(20 * time.Second)
		letGo := drain(t, b)
		time.Sleep(5 * time.Second)
		d := stage.StartNode(t, st, "d", j)
		time.Sleep(5 * time.Second)
		requireOwners(t, st, 5*time.Minute, "a", "c", "d")
		letGo()
		stage.Stop(t, a, c, d)
	})
}

// TestRedeploy: while all old nodes wait for their handlers, as many new ones have all
// shards, and run everything in time.
func TestRedeploy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		var olds, news []*stage.Node
		for _, name := range []string{"a", "b", "c"} {
			olds = append(olds, stage.StartNode(t, st, name, j))
		}
		jobs := stage.AddSeconds(t, olds[0], 16)
		time.Sleep(20 * time.Second)
		letGo := drain(t, olds...)
		time.Sleep(5 * time.Second)
		for _, name := range []string{"x", "y", "z"} {
			news = append(news, stage.StartNode(t, st, name, j))
		}
		time.Sleep(5 * time.Second)
		from := time.Now()
		requireOwners(t, st, 5*time.Minute, "x", "y", "z")
		to := time.Now()
		time.Sleep(time.Second)
		if got := stage.AuditSeconds(t, st, j, jobs, from, to); got != (stage.Audit{}) {
			t.Errorf("audit: %+v", got)
		}
		letGo()
		stage.Stop(t, news...)
	})
}
