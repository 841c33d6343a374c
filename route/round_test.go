package route

import (
	"context"
	"sync"
	"testing"
)

func TestRoundGivesNineTriggersToThreeAddressesThreeEach(t *testing.T) {
	addrs := addresses(3)
	r := NewRound()
	for jobID := range int64(200) { // about every start there is
		for offset := range 4 { // any nine in a row, not only the first
			seen := map[string]int{}
			for range 9 {
				seen[mustRoute(t, r, jobID, addrs)]++
			}
			for _, a := range addrs {
				if seen[a] != 3 {
					t.Fatalf("job %d, offset %d: %v", jobID, offset, seen)
				}
			}
			mustRoute(t, r, jobID, addrs)
		}
	}
}

func TestRoundIsFairAmongGoroutines(t *testing.T) {
	addrs := addresses(3)
	r := NewRound()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen = map[string]int{}
	)
	for range 9 {
		wg.Go(func() {
			for range 100 {
				got, err := r.Route(context.Background(), 1, addrs)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[got[0]]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, a := range addrs {
		if seen[a] != 300 {
			t.Errorf("%v, want 300 each", seen)
		}
	}
}

func TestRoundStartsAtRandomPlaces(t *testing.T) {
	addrs, seen := addresses(3), map[string]bool{}
	r := NewRound()
	for jobID := range int64(100) {
		seen[mustRoute(t, r, jobID, addrs)] = true
	}
	if len(seen) != 3 {
		t.Errorf("100 jobs began at %v only", seen)
	}
}

func TestRoundForgetsRemovedJobs(t *testing.T) {
	r := NewRound()
	for jobID := range int64(10) {
		mustRoute(t, r, jobID, addresses(2))
	}
	for jobID := range int64(20) {
		r.Forget(jobID)
	}
	if n := len(r.jobs.entries); n != 0 {
		t.Errorf("%d jobs are still remembered", n)
	}
}
