//go:build unix

package siege

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// firstID is about as long as the ids of runs are.
const firstID = 14_500_000_000_000_000

// TestPages: the pages are as large as they are said to be, and are read.
func TestPages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	lost := make([]int64, lostRuns)
	for i := range lost {
		lost[i] = firstID + int64(i)
	}
	for name, c := range map[string]struct {
		body        []byte
		items, ids  int
		least, most int
	}{
		"repeats of one":   {page(repeated(firstID, repeatItems), repeatText), 909, 1, 400_000, 440_000},
		"many lost":        {page(anyOf(r, lost, repeatItems), repeatText), 909, 909, 400_000, 440_000},
		"lost repeatedly":  {page(anyOf(r, lost, 3*lostRuns), 0), 3 * lostRuns, lostRuns, 0, 1 << 20},
		"unknown":          {page(unknown(r, firstID, repeatItems), repeatText), 909, 909, 400_000, 440_000},
		"the largest page": {page(unknown(r, firstID, floodItems), floodText), wire.MaxCallbacks, 9_990, 3_900_000, 4 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			if n := len(c.body); n < c.least || n > c.most {
				t.Errorf("%d bytes, want %d to %d", n, c.least, c.most)
			}
			results, err := wire.DecodeCallback(c.body)
			if err != nil || len(results) != c.items {
				t.Fatalf("%d results, want %d: %v", len(results), c.items, err)
			}
			ids := map[int64]bool{}
			for _, res := range results {
				ids[res.LogID] = true
			}
			if len(ids) < c.ids || len(ids) > c.items {
				t.Errorf("%d different ids, want %d", len(ids), c.ids)
			}
		})
	}
}

// TestSeed: the same seed makes the same choices, and each connection others.
func TestSeed(t *testing.T) {
	draw := func(seed uint64, stream string, i int) []int64 {
		h := &hostile{cfg: hostileConfig{Seed: seed}}
		return unknown(h.rand(stream, i), firstID, 20)
	}
	first := draw(7, attackFlood, 1)
	if !slices.Equal(first, draw(7, attackFlood, 1)) {
		t.Error("the same seed chose otherwise")
	}
	for name, other := range map[string][]int64{"seed": draw(8, attackFlood, 1), "attack": draw(7, attackRepeats, 1), "connection": draw(7, attackFlood, 2)} {
		if slices.Equal(first, other) {
			t.Errorf("another %s chose the same", name)
		}
	}
}

// TestHeldRuns: so many runs stay under way, and the oldest of the others come out once.
func TestHeldRuns(t *testing.T) {
	var h held
	for id := range int64(heldMost + 2) {
		if _, err := h.Run(t.Context(), wire.TriggerRequest{LogID: id + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if a, b, c := h.next(), h.next(), h.next(); a != 1 || b != 2 || c != 0 {
		t.Errorf("got %d, %d, %d", a, b, c)
	}
}
