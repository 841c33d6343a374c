package loop

import "testing"

// TestScratch: memory is used again with nothing of the former use in it, and is given up where it
// has been far too large for a hundred uses.
func TestScratch(t *testing.T) {
	for _, c := range []struct {
		used, room int
		kept       bool
	}{{0, 0, false}, {0, 1024, true}, {5, 1000, true}, {6000, 6000, true}, {800, 6000, true}, {700, 6000, false}, {0, 2000, false}} {
		var s Scratch[*int]
		s.Used(make([]*int, c.used, c.room))
		for range scratchSpare - 1 {
			list := s.Again()
			for range c.used {
				list = append(list, new(int))
			}
			s.Used(list)
		}
		again := s.Again()
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

// TestScratchOfABurst: one large use among small ones is enough for the memory to be kept.
func TestScratchOfABurst(t *testing.T) {
	var s Scratch[int]
	for use := range 10 * scratchSpare {
		n := 1
		if use%(scratchSpare-1) == 0 {
			n = 5000
		}
		was := cap(s.List)
		list := s.Again()
		if was > 0 && cap(list) != was {
			t.Fatalf("use %d has room for %d after %d", use, cap(list), was)
		}
		for range n {
			list = append(list, 1)
		}
		s.Used(list)
	}
}
