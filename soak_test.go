package xxljob_test

// A cluster through random faults, with a look into the books of each node.

import (
	"context"
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

var soakSeeds = flag.Int("soak", 10, "number of seeds for TestSoak")

// TestSoak runs a cluster through random faults of its stores, pauses, deaths
// and joins, from a seed that it prints, and audits every instant.
func TestSoak(t *testing.T) {
	for seed := range uint64(*soakSeeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			if seed > 1 && testing.Short() {
				t.Skip("another seed of what the first two have done; leave out -short")
			}
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { soak(t, seed) })
		})
	}
}

func soak(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	st, j := memory.New(), &stage.Journal{}
	var nodes, dead []*stage.Node
	names := 0
	unsettle := func(n *stage.Node) {
		for _, method := range []string{"Claim", "Start", "Finish", "Settle", "Take"} {
			n.Faults.Inject(method, storetest.Fault{Before: true, Rate: 0.05})
			n.Faults.Inject(method, storetest.Fault{After: true, Rate: 0.05})
			n.Faults.Inject(method, storetest.Fault{Partial: true, Keep: 1, Rate: 0.02})
			n.Faults.Inject(method, storetest.Fault{Delay: 300 * time.Millisecond, Rate: 0.02})
		}
		n.Faults.Inject(storetest.All, storetest.Fault{Before: true, Rate: 0.01})
		for _, method := range []string{"Start", "Take", "Settle", "RunsByID"} {
			n.Faults.Inject(method, storetest.Fault{Late: 300 * time.Millisecond, Rate: 0.1})
			n.Faults.Inject(method, storetest.Fault{Late: 1500 * time.Millisecond, Rate: 0.03})
		}
		n.Faults.Inject(storetest.All, storetest.Fault{After: true, Rate: 0.01})
	}
	join := func() {
		names++
		n := stage.StartNode(t, st, fmt.Sprintf("n%d", names), j)
		unsettle(n)
		nodes = append(nodes, n)
	}
	join()
	join()
	time.Sleep(5 * time.Second)
	var jobs []xxljob.Job
	for i := range 20 {
		route := []string{"NEAREST", "ROUND", "FIRST", "RANDOM", "CONSISTENT_HASH", "LEAST_RECENTLY_USED"}[i%6]
		job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: fmt.Sprint(i), Name: "job", Handler: "work", Route: route,
			Block: "SERIAL_EXECUTION", GlueType: "BEAN", Misfire: "DO_NOTHING", Schedule: xxljob.Cron("* * * * * ?"), Next: time.Now().Add(time.Second)}, nil)
		stage.Must(t, err)
		jobs = append(jobs, job)
	}
	byHand := handJobs(t, st)
	from := time.Now()
	var ids []int64
	for i := range 30 {
		time.Sleep(time.Duration(rnd.IntN(4000)) * time.Millisecond)
		n := nodes[rnd.IntN(len(nodes))]
		for k, job := range byHand {
			ids = append(ids, insist(t, n, job, fmt.Sprint(i, k))...)
		}
		n = nodes[rnd.IntN(len(nodes))]
		switch rnd.IntN(8) {
		case 0:
			if len(nodes) < 5 {
				join()
			}
		case 1:
			if len(nodes) > 1 {
				n.Pause() // dies
				nodes, dead = without(nodes, n), append(dead, n)
			}
		case 2:
			if len(nodes) > 1 {
				stage.Stop(t, n)
				nodes = without(nodes, n)
			}
		default:
			n.Pause()
			time.Sleep(time.Duration(rnd.IntN(12000)) * time.Millisecond)
			n.Resume()
		}
		if i%6 == 5 {
			soakQuiet(t, st, nodes)
			for _, n := range nodes {
				unsettle(n)
			}
		}
	}
	soakQuiet(t, st, nodes)
	to := time.Now()
	time.Sleep(60 * time.Second) // whoever died last is judged
	stage.Stop(t, nodes...)
	got := stage.AuditSeconds(t, st, j, jobs, from, to)
	if got.Lost != 0 || got.Double != 0 || got.Early != 0 {
		t.Errorf("seed %d: audit: %+v", seed, got)
	}
	for _, r := range stage.AllRuns(t, st) {
		if !r.State.Ended() && !r.Scheduled.After(to) {
			t.Errorf("run %d of %v is %v for ever: %+v", r.ID, r.Scheduled, r.State, r)
		}
		if r.State == xxljob.StateDiscarded || r.State == xxljob.StateRefused || r.State == xxljob.StateCancelled {
			t.Errorf("run %d of %v: %v %s", r.ID, r.Scheduled, r.State, r.TriggerMsg)
		}
	}
	auditByHand(t, st, j, ids)
	t.Logf("seed %d: %d nodes, %d died, audit %+v of %d starts", seed, names, len(dead), got, len(j.All()))
	for _, n := range dead {
		n.Faults.Clear()
		n.Resume()
	}
	stage.Stop(t, dead...)
}

// soakQuiet ends the faults, lets what they have begun come to its end, and checks that
// no node has forgotten anything: each planned run of its shards within the window is
// held, and whatever waits does so for something that is there.
func soakQuiet(t *testing.T, st xxljob.Store, nodes []*stage.Node) {
	t.Helper()
	for _, n := range nodes {
		n.Faults.Clear()
	}
	time.Sleep(45*time.Second + 500*time.Millisecond) // silent nodes are judged, and nothing is due
	synctest.Wait()
	planned := stage.AllOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StatePlanned}, To: time.Now().Add(2 * time.Second)})
	for _, n := range nodes {
		for _, r := range xxljob.Unheld(n.Scheduler, planned) {
			t.Errorf("node %s has forgotten run %d of job %d, due %v: %s", n.Name, r.ID, r.JobID, r.Scheduled, r.TriggerMsg)
		}
		for _, fault := range xxljob.BadBooks(n.Scheduler) {
			t.Errorf("node %s: %s", n.Name, fault)
		}
		if found := xxljob.TakenUp(n.Scheduler); found != 0 {
			t.Errorf("node %s has taken up %d runs that nobody held", n.Name, found)
		}
	}
}

// handJobs are jobs that are only triggered: a serial one, a broadcast and one
// with probes.
func handJobs(t *testing.T, st xxljob.Store) []int64 {
	t.Helper()
	var ids []int64
	for _, route := range []string{"NEAREST", "SHARDING_BROADCAST", "FAILOVER"} {
		job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: route, Name: "by hand", Handler: "work", Route: route,
			Block: "SERIAL_EXECUTION", GlueType: "BEAN", Misfire: "DO_NOTHING", Stopped: true}, nil)
		stage.Must(t, err)
		ids = append(ids, job.ID)
	}
	return ids
}

// insist triggers a job through a store that fails now and then: with a key it
// may be called again until it is answered.
func insist(t *testing.T, n *stage.Node, job int64, key string) []int64 {
	t.Helper()
	for {
		ids, err := n.Trigger(t.Context(), job, xxljob.Trigger{Key: key})
		if err == nil {
			return ids
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// auditByHand checks that each trigger was inserted once and ended, and that no
// run of it, parts of a broadcast included, was started twice or is unfinished.
func auditByHand(t *testing.T, st xxljob.Store, j *stage.Journal, ids []int64) {
	t.Helper()
	starts := map[int64]int{}
	for _, s := range j.All() {
		starts[s.Run]++
	}
	seen := map[int64]bool{}
	for _, id := range ids {
		if seen[id] {
			t.Errorf("trigger %d was returned for two keys", id)
		}
		seen[id] = true
		parts, err := st.Runs(context.Background(), xxljob.RunFilter{TriggerID: id, Limit: 1000})
		stage.Must(t, err)
		for _, r := range parts {
			switch {
			case r.State == xxljob.StateSucceeded && starts[r.ID] == 1, r.State == xxljob.StateLost && starts[r.ID] <= 1:
			default:
				t.Errorf("run %d (%v, part %v) is %v and was started %d times\n%s", r.ID, r.Type, r.Sharding, r.State, starts[r.ID], r.TriggerMsg)
			}
		}
		if n := len(parts); n == 0 || parts[0].Sharding.Total > 0 && n != parts[0].Sharding.Total {
			t.Errorf("trigger %d has %d runs, its parts are of %v", id, n, parts[0].Sharding)
		}
	}
}

func without(nodes []*stage.Node, n *stage.Node) []*stage.Node {
	var rest []*stage.Node
	for _, o := range nodes {
		if o != n {
			rest = append(rest, o)
		}
	}
	return rest
}
