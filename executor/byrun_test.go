package executor

import (
	"math"
	"slices"
	"testing"
)

// TestByRunChange changes what is held for twins: they keep their order, and nobody else is
// concerned.
func TestByRunChange(t *testing.T) {
	var b byRun[int]
	for date := range int64(4) {
		b.put(runID{7, date}, int(date))
		b.put(runID{8, date}, int(date))
	}
	for date := range int64(4) {
		b.change(runID{7, date}, int(date)+10)
	}
	b.change(runID{7, 4}, 99)
	b.change(runID{9, 1}, 99)
	if got := b.all(7); !slices.Equal(got, []int{13, 12, 11, 10}) {
		t.Errorf("id 7 has %v", got)
	}
	if got := b.all(8); !slices.Equal(got, []int{3, 2, 1, 0}) {
		t.Errorf("id 8 has %v", got)
	}
	if b.n != 8 {
		t.Errorf("%d runs, want 8", b.n)
	}
}

// TestByRunRange asks for ids at and beyond the ends of those that are held, also of a map
// that was emptied.
func TestByRunRange(t *testing.T) {
	var b byRun[int]
	ids := []int64{0, -5, 100, math.MinInt64, math.MaxInt64, 3}
	for round := range 2 {
		for i, id := range ids {
			if _, ok := b.find(runID{id, 1}); ok {
				t.Errorf("round %d: %d is found before it is put", round, id)
			}
			b.put(runID{id, 1}, i)
			for k, id := range ids[:i+1] {
				if got, ok := b.find(runID{id, 1}); !ok || got != k {
					t.Errorf("round %d: %d is %d %v, want %d", round, id, got, ok, k)
				}
			}
		}
		for _, id := range ids {
			b.drop(runID{id, 1})
		}
		if b.n != 0 || b.heads.Len() != 0 {
			t.Errorf("round %d: %d runs are left", round, b.n)
		}
	}
}
