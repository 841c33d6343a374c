package route

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// all returns every router there is, by a name for the test's output.
func all() map[string]Router {
	m := Builtin(nil, "")
	m["NEAREST, self known"] = NewNearest(addresses(3)[1], nil)
	return m
}

// addresses returns n addresses in the shape executors register.
func addresses(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("http://10.0.%d.%d:9999/", i/256, i%256)
	}
	return out
}

// seeded returns a random source, and logs the seed if the test fails.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// mustRoute returns the one address a router chooses.
func mustRoute(t *testing.T, r Router, jobID int64, addrs []string) string {
	t.Helper()
	got, err := r.Route(context.Background(), jobID, addrs)
	if err != nil || len(got) != 1 {
		t.Fatalf("Route(%d, %v) = %v, %v; want one address", jobID, addrs, got, err)
	}
	return got[0]
}

func TestNamesAreTheStoredOnes(t *testing.T) {
	want := []string{
		"FIRST", "LAST", "ROUND", "RANDOM", "CONSISTENT_HASH", "LEAST_FREQUENTLY_USED",
		"LEAST_RECENTLY_USED", "FAILOVER", "BUSYOVER", "SHARDING_BROADCAST", "NEAREST",
	}
	if got := Names(); !slices.Equal(got, want) {
		t.Errorf("Names() = %v, want %v", got, want)
	}
	routers := Builtin(time.Now, "")
	if len(routers) != len(want) {
		t.Errorf("Builtin has %d routers, want %d", len(routers), len(want))
	}
	for _, name := range want {
		if !Valid(name) || routers[name] == nil {
			t.Errorf("%s: Valid %v, router %v", name, Valid(name), routers[name])
		}
	}
	for _, name := range []string{"", "first", "FIRST ", "HASH"} {
		if Valid(name) {
			t.Errorf("Valid(%q) = true", name)
		}
	}
}

func TestEmptyListIsErrNoAddress(t *testing.T) {
	for name, r := range all() {
		for _, addrs := range [][]string{nil, {}} {
			got, err := r.Route(context.Background(), 1, addrs)
			if !errors.Is(err, ErrNoAddress) || got != nil {
				t.Errorf("%s: Route(%#v) = %v, %v; want ErrNoAddress", name, addrs, got, err)
			}
		}
	}
}

func TestAnswerIsFromTheListAndTheListIsLeftAlone(t *testing.T) {
	backing := append(addresses(3), "behind the list")
	want := slices.Clone(backing)
	addrs := backing[:3]
	for name, r := range all() {
		for range 10 {
			got, err := r.Route(context.Background(), 7, addrs)
			if err != nil || len(got) == 0 {
				t.Fatalf("%s: Route = %v, %v", name, got, err)
			}
			for _, a := range got {
				if !slices.Contains(addrs, a) {
					t.Errorf("%s: %q is not in the list", name, a)
				}
			}
			_ = append(got, "appended by the caller")
			if !slices.Equal(backing, want) {
				t.Fatalf("%s: the list became %v", name, backing)
			}
		}
	}
}

func TestOneAddressIsAlwaysChosen(t *testing.T) {
	addrs := []string{"http://127.0.0.1:9999/"}
	for name, r := range Builtin(nil, "") {
		for jobID := int64(-2); jobID < 20; jobID++ {
			if got := mustRoute(t, r, jobID, addrs); got != addrs[0] {
				t.Errorf("%s: job %d goes to %q", name, jobID, got)
			}
		}
	}
}

func TestFirstAndLastFollowTheOrderOfTheList(t *testing.T) {
	addrs := []string{"b", "c", "a"}
	if got := mustRoute(t, NewFirst(), 1, addrs); got != "b" {
		t.Errorf("FIRST = %q, want b", got)
	}
	if got := mustRoute(t, NewLast(), 1, addrs); got != "a" {
		t.Errorf("LAST = %q, want a", got)
	}
}

func TestRandomReachesEveryAddress(t *testing.T) {
	addrs, seen := addresses(5), map[string]int{}
	for range 5000 {
		seen[mustRoute(t, NewRandom(), 1, addrs)]++
	}
	for _, a := range addrs {
		if n := seen[a]; n < 700 || n > 1300 { // 1000, by more than ten deviations
			t.Errorf("%s was chosen %d times of 5000", a, n)
		}
	}
}

func TestProbedAndBroadcastGiveAllInOrder(t *testing.T) {
	addrs := []string{"b", "c", "a"}
	for _, name := range []string{Failover, Busyover, ShardingBroadcast} {
		got, err := Builtin(nil, "")[name].Route(context.Background(), 1, addrs)
		if err != nil || !slices.Equal(got, addrs) {
			t.Errorf("%s = %v, %v; want %v", name, got, err, addrs)
		}
	}
}

func TestNearestIsSelfElseRound(t *testing.T) {
	addrs := addresses(3)
	near := NewNearest(addrs[2], nil)
	for range 5 {
		if got := mustRoute(t, near, 1, addrs); got != addrs[2] {
			t.Errorf("NEAREST = %q, want the node itself", got)
		}
	}
	for _, self := range []string{"", "local://elsewhere"} {
		far, seen := NewNearest(self, nil), map[string]int{}
		for range 9 {
			seen[mustRoute(t, far, 1, addrs)]++
		}
		for _, a := range addrs {
			if seen[a] != 3 {
				t.Errorf("self %q: %v, want three each", self, seen)
			}
		}
	}
	if got := mustRoute(t, NewNearest("", NewLast()), 1, []string{"", "x"}); got != "x" {
		t.Errorf("an empty self was chosen from the list")
	}
	NewNearest("", NewLast()).Forget(1) // nothing to pass on to
}

// TestConcurrentUse is for the race detector, and for answers from lists that
// are not the caller's.
func TestConcurrentUse(t *testing.T) {
	for name, r := range all() {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(1, uint64(g)))
					for range 400 {
						addrs := addresses(1 + rng.IntN(6))
						jobID := rng.Int64N(20)
						got, err := r.Route(context.Background(), jobID, addrs)
						if err != nil || !slices.Contains(addrs, got[0]) {
							t.Errorf("Route(%v) = %v, %v", addrs, got, err)
							return
						}
						if f, ok := r.(Forgetter); ok && rng.IntN(20) == 0 {
							f.Forget(jobID)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestRoutingDoesNotAllocate(t *testing.T) {
	addrs := addresses(100)
	for name, r := range Builtin(nil, addrs[99]) {
		for jobID := range int64(50) {
			mustRouteAny(t, r, jobID, addrs)
		}
		jobID := int64(0)
		if n := testing.AllocsPerRun(1000, func() {
			mustRouteAny(t, r, jobID%50, addrs)
			jobID++
		}); n != 0 {
			t.Errorf("%s: %v allocations per Route", name, n)
		}
	}
}

func mustRouteAny(t *testing.T, r Router, jobID int64, addrs []string) {
	if _, err := r.Route(context.Background(), jobID, addrs); err != nil {
		t.Fatal(err)
	}
}
