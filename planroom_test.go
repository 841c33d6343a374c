package xxljob

import "testing"

// TestEmptied: memory is used again as long as it is needed, and given up after a burst. Nothing of
// what was in it is kept alive by it.
func TestEmptied(t *testing.T) {
	for _, c := range []struct {
		used, room int
		kept       bool
	}{{0, 0, false}, {0, 1024, true}, {5, 1000, true}, {6000, 6000, true}, {800, 6000, true}, {700, 6000, false}, {0, 2000, false}} {
		used := make([]*int, c.used, c.room)
		for i := range used {
			used[i] = new(int)
		}
		again := emptied(used)
		if kept := cap(again) > 0; len(again) != 0 || kept != c.kept {
			t.Errorf("of room for %d of which %d were used there is room for %d, kept: %t, want %t", c.room, c.used, cap(again), kept, c.kept)
		}
		for _, left := range again[:min(c.used, cap(again))] {
			if left != nil {
				t.Fatal("what was used is kept")
			}
		}
	}
}
