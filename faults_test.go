package xxljob_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

var soakSeeds = flag.Int("soak", 10, "number of seeds for TestSoak")

// TestSoak runs a cluster through random faults of its stores, pauses, deaths
// and joins, from a seed that it prints, and audits every instant.
func TestSoak(t *testing.T) {
	for seed := range uint64(*soakSeeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { soak(t, seed) })
		})
	}
}

func soak(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	st, j := memory.New(), &journal{}
	var nodes, dead []*node
	names := 0
	join := func() {
		names++
		n := startNode(t, st, fmt.Sprintf("n%d", names), j)
		for _, method := range []string{"Claim", "Start", "Finish", "Settle", "Take"} {
			n.faults.Inject(method, storetest.Fault{Before: true, Rate: 0.05})
			n.faults.Inject(method, storetest.Fault{After: true, Rate: 0.05})
			n.faults.Inject(method, storetest.Fault{Partial: true, Keep: 1, Rate: 0.02})
			n.faults.Inject(method, storetest.Fault{Delay: 300 * time.Millisecond, Rate: 0.02})
		}
		n.faults.Inject(storetest.All, storetest.Fault{Before: true, Rate: 0.01})
		n.faults.Inject(storetest.All, storetest.Fault{After: true, Rate: 0.01})
		nodes = append(nodes, n)
	}
	join()
	join()
	time.Sleep(5 * time.Second)
	var jobs []xxljob.Job
	for i := range 20 {
		route := []string{"NEAREST", "ROUND", "FIRST", "RANDOM", "CONSISTENT_HASH", "LEAST_RECENTLY_USED"}[i%6]
		job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: fmt.Sprint(i), Name: "job", Handler: "work", Route: route,
			Block: "SERIAL_EXECUTION", GlueType: "BEAN", Misfire: "DO_NOTHING", Schedule: xxljob.Cron("* * * * * ?"), Next: time.Now().Add(time.Second)})
		must(t, err)
		jobs = append(jobs, job)
	}
	from := time.Now()
	for range 30 {
		time.Sleep(time.Duration(rnd.IntN(4000)) * time.Millisecond)
		n := nodes[rnd.IntN(len(nodes))]
		switch rnd.IntN(8) {
		case 0:
			if len(nodes) < 5 {
				join()
			}
		case 1:
			if len(nodes) > 1 {
				n.pause() // dies
				nodes, dead = without(nodes, n), append(dead, n)
			}
		case 2:
			if len(nodes) > 1 {
				stop(t, n)
				nodes = without(nodes, n)
			}
		default:
			n.pause()
			time.Sleep(time.Duration(rnd.IntN(12000)) * time.Millisecond)
			n.resume()
		}
	}
	for _, n := range nodes {
		n.faults.Clear()
	}
	to := time.Now()
	time.Sleep(60 * time.Second) // whoever died last is judged
	stop(t, nodes...)
	got := auditSeconds(t, st, j, jobs, from, to)
	if got.lost != 0 || got.double != 0 || got.early != 0 {
		t.Errorf("seed %d: audit: %+v", seed, got)
	}
	for _, r := range allRuns(t, st) {
		if !r.State.Ended() && !r.Scheduled.After(to) {
			t.Errorf("run %d of %v is %v for ever: %+v", r.ID, r.Scheduled, r.State, r)
		}
		if r.State == xxljob.StateDiscarded || r.State == xxljob.StateRefused || r.State == xxljob.StateCancelled {
			t.Errorf("run %d of %v: %v %s", r.ID, r.Scheduled, r.State, r.TriggerMsg)
		}
	}
	t.Logf("seed %d: %d nodes, %d died, audit %+v of %d starts", seed, names, len(dead), got, len(j.all()))
	for _, n := range dead {
		n.faults.Clear()
		n.resume()
	}
	stop(t, dead...)
}

func without(nodes []*node, n *node) []*node {
	var rest []*node
	for _, o := range nodes {
		if o != n {
			rest = append(rest, o)
		}
	}
	return rest
}

// TestStoreFails injects each kind of fault into each method for a while: one
// node keeps what it holds, loses nothing, and logs a streak once.
func TestStoreFails(t *testing.T) {
	for _, method := range []string{"Beat", "Scan", "Claim", "Start", "Finish", "Jobs", "Group", "Addresses", storetest.All} {
		for kind, fault := range map[string]storetest.Fault{
			"before": {Before: true}, "after": {After: true}, "hang": {Hang: make(chan struct{})},
		} {
			t.Run(method+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					if fault.Hang != nil {
						fault.Hang = make(chan struct{}) // of this bubble
					}
					var log syncBuffer
					st, j := memory.New(), &journal{}
					n := startNode(t, st, "a", j, func(c *xxljob.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
					time.Sleep(time.Second)
					jobs := addSeconds(t, n, 5)
					from := time.Now()
					time.Sleep(10 * time.Second)
					remove := n.faults.Inject(method, fault)
					time.Sleep(9 * time.Second)
					remove()
					time.Sleep(20 * time.Second)
					to := time.Now()
					time.Sleep(5 * time.Second)
					stop(t, n)
					got := auditSeconds(t, st, j, jobs, from, to)
					if got != (audit{}) {
						t.Errorf("audit: %+v", got)
					}
					errors := strings.Count(log.String(), "level=ERROR")
					if errors > 6 {
						t.Errorf("%d errors logged in one outage:\n%s", errors, log.String())
					}
				})
			})
		}
	}
}

// syncBuffer is a buffer that many goroutines may write to.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestStopWhileStoreHangs returns soon after its context has ended.
func TestStopWhileStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, memory.New(), "a", &journal{})
		addSeconds(t, n, 1)
		time.Sleep(3 * time.Second)
		n.faults.Pause(true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		if err := n.Stop(ctx); err == nil {
			t.Error("Stop says that all is well")
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Stop took %v", took)
		}
		n.faults.Resume()
		time.Sleep(time.Minute)
	})
}
