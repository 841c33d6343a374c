package queue

import (
	"slices"
	"testing"
)

// TestKeep: attempts that are kept stay in their order, whichever of a batch they are.
func TestKeep(t *testing.T) {
	const n = 6
	for mask := range 1 << n {
		batch := make([]Attempt, n)
		for i := range batch {
			batch[i].Start.RunID = int64(i)
		}
		var want, got []int64
		kept := batch[:0]
		for i := range batch {
			if mask&(1<<i) != 0 {
				want = append(want, batch[i].Start.RunID)
				kept = Keep(kept, batch, i)
			}
		}
		for i := range kept {
			got = append(got, kept[i].Start.RunID)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("of %06b %v are kept, want %v", mask, got, want)
		}
	}
}
