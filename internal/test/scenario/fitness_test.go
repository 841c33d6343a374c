package scenario_test

// Nodes whose claims and starts fail while they beat: their host has used up the pool, for
// instance.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

const fitTTL = 5 * time.Second // Config.Cluster.LeaseTTL

// breakdowns are the ways in which a node's calls fail that beats.
var breakdowns = []struct {
	name    string
	methods []string
	fault   func() storetest.Fault
}{
	{"claims and starts fail", []string{"Claim", "Start"}, before},
	{"claims fail", []string{"Claim"}, before},
	{"starts fail", []string{"Start"}, before},
	{"claims and starts fail after they took effect", []string{"Claim", "Start"}, after},
	{"nothing but beats has a connection", []string{"Claim", "Start", "Scan", "Planned", "RunsByID", "Runs", "StartedBy", "Settle", "Take", "Finish", "Inbox",
		"Sweep", "TakeShards", "Bury", "Jobs", "Job", "Addresses", "Group"}, hang},
}

func before() storetest.Fault { return storetest.Fault{Before: true} }
func after() storetest.Fault  { return storetest.Fault{After: true} }
func hang() storetest.Fault   { return storetest.Fault{Hang: make(chan struct{})} } // of the test's bubble

// wantUnready checks that a node is not ready and says so in these words.
func wantUnready(t *testing.T, n *stage.Node, when string, words ...string) {
	t.Helper()
	err := n.Ready()
	if !errors.Is(err, xxljob.ErrNotReady) {
		t.Errorf("%s: Ready of %s: %v, want ErrNotReady", when, n.Name, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: Ready of %s does not say %q: %v", when, n.Name, w, err)
		}
	}
}

// shardsOf counts the shards of a node, and tells whether it says that it fails.
func shardsOf(t *testing.T, st xxljob.Store, n *stage.Node) (count int, failing bool) {
	t.Helper()
	view := stage.Observe(t, st)
	for _, other := range view.Nodes {
		if other.ID != n.Name || other.Left {
			continue
		}
		failing = other.Failing
		for _, sh := range view.Shards {
			count += stage.One(sh.Owner == other.Incarnation)
		}
	}
	return count, failing
}

// TestANodeThatFailsRests breaks one of two nodes down for 30 s: what it has not taken is
// no later than a LeaseTTL and three seconds, by whatever route; Ready says what is wrong,
// for as long as it is; and the node takes part again after one good LeaseTTL.
func TestANodeThatFailsRests(t *testing.T) {
	t.Parallel()
	for _, c := range breakdowns {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
				time.Sleep(10 * time.Second)
				jobs := stage.AddSeconds(t, a, 20)
				for i := range 2 {
					for _, r := range route.Names() {
						if r == route.ShardingBroadcast {
							continue // it is for every node, whatever that one can do
						}
						job, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(r, i), Handler: "work", Route: r, Schedule: xxljob.Cron("* * * * * ?")})
						stage.Must(t, err)
						if r != route.Busyover { // where all are busy with the runs before it, it refuses one
							jobs = append(jobs, job)
						}
					}
				}
				from := time.Now()
				time.Sleep(10*time.Second + 300*time.Millisecond)
				stage.Must(t, a.Ready())
				began := time.Now()
				mend := a.BreakDown(c.methods, c.fault())
				time.Sleep(fitTTL + 4*time.Second) // claims are made ahead, every half pre-read
				wantUnready(t, a, "while it rests", "other nodes have the shards")
				if n, failing := shardsOf(t, st, a); n != 0 || !failing {
					t.Errorf("while it rests: %d shards, failing: %v", n, failing)
				}
				stage.Must(t, b.Ready())
				time.Sleep(time.Until(began.Add(30 * time.Second)))
				mend()
				mended := time.Now()
				// An attempt that hangs when the store is mended has five seconds yet.
				for !strings.Contains(fmt.Sprint(a.Ready()), "until these have succeeded for 5s") && time.Since(mended) < 7*time.Second {
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(fitTTL - time.Second)
				wantUnready(t, a, "before a good LeaseTTL is over", "until these have succeeded for 5s")
				if n, failing := shardsOf(t, st, a); n != 0 || !failing {
					t.Errorf("before a good LeaseTTL is over: %d shards, failing: %v", n, failing)
				}
				time.Sleep(time.Until(mended.Add(13 * time.Second)))
				stage.Must(t, a.Ready())
				requireSpread(t, st, a, b)
				to := time.Now()
				time.Sleep(10 * time.Second)
				stage.Must(t, a.Ready())
				stage.Stop(t, a, b)
				worst := time.Duration(0)
				for _, s := range j.All() {
					worst = max(worst, s.At.Sub(s.Due))
				}
				t.Logf("worst lateness %v", worst)
				if most := fitTTL + 3*time.Second; worst > most {
					t.Errorf("worst lateness %v, want %v at most", worst, most)
				}
				if got := stage.AuditSeconds(t, st, j, jobs, from, to); got != (stage.Audit{}) {
					t.Errorf("audit: %+v", got)
				}
			})
		})
	}
}

// TestAFailureForAMomentIsNone: what fails for less than a LeaseTTL moves no shard. Ready
// tells of it while it lasts.
func TestAFailureForAMomentIsNone(t *testing.T) {
	t.Parallel()
	for _, c := range breakdowns[:3] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				watch, j := &ownersWatch{st: memory.New(), owners: map[int][]string{}}, &stage.Journal{}
				st := bent.StoreOf(watch.st, watch)
				a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
				time.Sleep(10 * time.Second)
				stage.AddSeconds(t, a, 40)
				time.Sleep(10*time.Second + 300*time.Millisecond)
				watch.changed()
				mend := a.BreakDown(c.methods, c.fault())
				time.Sleep(fitTTL - 500*time.Millisecond)
				wantUnready(t, a, "while they fail", "have failed for", "injected fault")
				mend()
				time.Sleep(3 * time.Second)
				stage.Must(t, a.Ready())
				time.Sleep(20 * time.Second)
				if n := watch.changed(); n != 0 {
					t.Errorf("%d shards changed hands", n)
				}
				stage.Stop(t, a, b)
			})
		})
	}
}

// TestARelapseBeginsTheGoodTimeAnew: a node that fails once more while it is tried out
// waits for another good LeaseTTL.
func TestARelapseBeginsTheGoodTimeAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		time.Sleep(10 * time.Second)
		stage.AddSeconds(t, a, 40)
		mend := a.BreakDown([]string{"Claim", "Start"}, storetest.Fault{Before: true})
		time.Sleep(20 * time.Second)
		mend()
		time.Sleep(fitTTL - 1500*time.Millisecond)
		for _, method := range []string{"Start", "Beat"} {
			a.Faults.Inject(method, storetest.Fault{Before: true, Calls: 1})
			time.Sleep(fitTTL - 500*time.Millisecond)
			if n, failing := shardsOf(t, st, a); n != 0 || !failing {
				t.Errorf("a little later than one failure of %s: %d shards, failing: %v", method, n, failing)
			}
		}
		time.Sleep(5 * time.Second)
		requireSpread(t, st, a, b)
		stage.Must(t, a.Ready())
		stage.Stop(t, a, b)
	})
}

// TestNobodyRestsWhenAllFail breaks all nodes down, or the only one that does not stop: they
// keep their shards, and say what fails; afterwards all goes on, and nobody has rested.
func TestNobodyRestsWhenAllFail(t *testing.T) {
	t.Parallel()
	for _, c := range breakdowns[:4] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				watch, j := &ownersWatch{st: memory.New(), owners: map[int][]string{}}, &stage.Journal{}
				st := bent.StoreOf(watch.st, watch)
				a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
				time.Sleep(10 * time.Second)
				jobs := stage.AddSeconds(t, a, 40)
				from := time.Now()
				time.Sleep(10*time.Second + 300*time.Millisecond)
				began := time.Now()
				var mends []func()
				for _, n := range []*stage.Node{a, b} {
					mends = append(mends, n.BreakDown(c.methods, c.fault()))
				}
				time.Sleep(9 * time.Second)
				for _, n := range []*stage.Node{a, b} {
					wantUnready(t, n, "while all fail", "have failed for", "injected fault")
				}
				time.Sleep(time.Until(began.Add(14 * time.Second)))
				requireSpread(t, st, a, b)
				watch.changed()
				for _, mend := range mends {
					mend()
				}
				time.Sleep(20 * time.Second)
				if n := watch.changed(); n != 0 {
					t.Errorf("%d shards changed hands when all were well again", n)
				}
				requireSpread(t, st, a, b)
				for _, n := range []*stage.Node{a, b} {
					stage.Must(t, n.Ready())
					if _, failing := shardsOf(t, st, n); failing {
						t.Errorf("%s still says that it fails", n.Name)
					}
				}
				to := time.Now()
				time.Sleep(10 * time.Second)
				stage.Stop(t, a, b)
				if got := stage.AuditSeconds(t, st, j, jobs, from, to); got != (stage.Audit{}) {
					t.Errorf("audit: %+v", got)
				}
			})
		})
	}
}

// TestOneSlowBeatEndsNoRest: a node that rests goes on to rest while its claims fail, however
// long a beat takes.
func TestOneSlowBeatEndsNoRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		time.Sleep(10 * time.Second)
		stage.AddSeconds(t, a, 20)
		mend := a.BreakDown([]string{"Claim", "Start"}, hang())
		time.Sleep(fitTTL + 4*time.Second)
		wantUnready(t, a, "while it rests", "other nodes have the shards")
		a.Faults.Inject("Beat", storetest.Fault{Delay: 1800 * time.Millisecond, Calls: 1})
		for range 40 {
			time.Sleep(200 * time.Millisecond)
			wantUnready(t, a, "about the slow beat", "other nodes have the shards")
		}
		mend()
		time.Sleep(20 * time.Second)
		stage.Must(t, a.Ready())
		stage.Stop(t, a, b)
	})
}

// TestNobodyRestsInASlowStore: where the store is so slow that claims and starts fail at every
// node, at some of them a little later than at others, no shard changes hands: nobody else
// could do any better with it.
func TestNobodyRestsInASlowStore(t *testing.T) {
	t.Parallel()
	for _, apart := range []time.Duration{0, 400 * time.Millisecond, 900 * time.Millisecond, 1700 * time.Millisecond} {
		t.Run(apart.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				watch, j := &ownersWatch{st: memory.New(), owners: map[int][]string{}}, &stage.Journal{}
				st := bent.StoreOf(watch.st, watch)
				nodes := []*stage.Node{stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j), stage.StartNode(t, st, "c", j)}
				time.Sleep(10 * time.Second)
				stage.AddSeconds(t, nodes[0], 40)
				time.Sleep(10*time.Second + 300*time.Millisecond)
				watch.changed()
				var mends []func()
				for _, n := range nodes {
					mends = append(mends, n.BreakDown([]string{storetest.All}, storetest.Fault{Delay: 500 * time.Millisecond, Late: 500 * time.Millisecond}))
				}
				for _, n := range nodes {
					mends = append(mends, n.BreakDown([]string{"Claim", "Start"}, hang()))
					time.Sleep(apart)
				}
				time.Sleep(15 * time.Second)
				for _, mend := range mends {
					mend()
				}
				time.Sleep(20 * time.Second)
				if n := watch.changed(); n != 0 {
					t.Errorf("%d shards changed hands", n)
				}
				for _, n := range nodes {
					stage.Must(t, n.Ready())
				}
				stage.Stop(t, nodes...)
			})
		})
	}
}

// TestANodeThatStopsTakesNobodysPlace: a node does not rest for one that waits for its
// handlers.
func TestANodeThatStopsTakesNobodysPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		stage.Must(t, b.Handle("long", func(context.Context, *xxljob.Task) error { time.Sleep(40 * time.Second); return nil }))
		time.Sleep(10 * time.Second)
		stage.TriggerNew(t, b, xxljob.Job{Name: "long", Handler: "long"})
		time.Sleep(time.Second)
		stopped := make(chan struct{})
		go func() { defer close(stopped); stage.Stop(t, b) }()
		time.Sleep(5 * time.Second)
		stage.AddSeconds(t, a, 5)
		mend := a.BreakDown([]string{"Claim", "Start"}, storetest.Fault{Before: true})
		time.Sleep(12 * time.Second)
		if n, failing := shardsOf(t, st, a); n != 32 || !failing {
			t.Errorf("%d shards, failing: %v", n, failing)
		}
		wantUnready(t, a, "while it fails", "have failed for")
		mend()
		<-stopped
		stage.Stop(t, a)
	})
}
