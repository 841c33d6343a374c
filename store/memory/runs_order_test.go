package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrderAgainstASortedSlice drives an order with random changes, in the
// shapes that stores have: few and many entries, rising keys and equal times.
func TestOrderAgainstASortedSlice(t *testing.T) {
	for _, size := range []int{1, 20, 300, 5000} {
		rnd := rand.New(rand.NewPCG(1, uint64(size)))
		var o order[int64]
		var model [][2]int64
		compare := func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) }
		for step := range int64(20_000) {
			grow := len(model) < size && rnd.IntN(4) > 0 || len(model) == 0
			if step/5000%2 == 1 && len(model) > 0 {
				grow = rnd.IntN(4) == 0 // a time of shrinking
			}
			if grow {
				at := rnd.Int64N(50)
				if rnd.IntN(2) == 0 {
					at = step
				}
				id := step
				o.insert(at, id, &id)
				key := [2]int64{at, id}
				i, _ := slices.BinarySearchFunc(model, key, compare)
				model = slices.Insert(model, i, key)
			} else {
				i := rnd.IntN(len(model))
				if rnd.IntN(2) == 0 {
					i = 0
				}
				if !o.remove(model[i][0], model[i][1]) {
					t.Fatalf("step %d: %v is not there", step, model[i])
				}
				model = slices.Delete(model, i, i+1)
			}
			if step%97 == 0 {
				key := [2]int64{rnd.Int64N(60), rnd.Int64N(step + 1)}
				i, found := slices.BinarySearchFunc(model, key, compare)
				if found {
					i++
				}
				same(t, o.after(key[0], key[1]), model[i:])
				copied := o.clone()
				same(t, copied.after(noID, noID), model)
			}
		}
		if o.remove(-5, -5) {
			t.Error("removed what was never there")
		}
		if n := len(o.chunks); n > 2+len(model)/(chunkSize/8) {
			t.Errorf("%d chunks for %d entries", n, len(model))
		}
	}
}

func same(t *testing.T, c cursor[int64], want [][2]int64) {
	t.Helper()
	for _, key := range want {
		e := c.peek()
		if e == nil || e.at != key[0] || e.id != key[1] || *e.of != key[1] {
			t.Fatalf("entry %v, want %v", e, key)
		}
		c.next()
	}
	if e := c.peek(); e != nil {
		t.Fatalf("entry %v behind the end", e)
	}
}

func TestMergedWalksInOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	orders := make([]order[int64], 9)
	var want [][2]int64
	for id := range int64(1000) {
		at := rnd.Int64N(100)
		orders[rnd.IntN(8)].insert(at, id, &id)
		want = append(want, [2]int64{at, id})
	}
	slices.SortFunc(want, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	var m merged[int64]
	for i := range orders {
		m.add(&orders[i], noID, noID)
	}
	for _, key := range want {
		if e := m.peek(); e == nil || e.at != key[0] || e.id != key[1] {
			t.Fatalf("entry %v, want %v", e, key)
		}
		m.next()
	}
	if m.peek() != nil {
		t.Fatal("entries behind the end")
	}
}

func TestRunsAreFoundAcrossGaps(t *testing.T) {
	var x runs
	kept := map[int64]*run{}
	for range 20_000 {
		r := x.add()
		kept[r.ID] = r
	}
	for id, r := range kept {
		if id%977 != 0 {
			x.drop(r)
			delete(kept, id)
		}
	}
	if n := len(x.segments); n > 3*len(kept)+32 {
		t.Errorf("%d segments for %d runs", n, len(kept))
	}
	for id := range int64(20_002) {
		if x.find(id) != kept[id] {
			t.Fatalf("run %d: %v", id, x.find(id))
		}
		if r := x.before(id + 1); r != nil && r.ID != id/977*977 || r == nil && id >= 977 {
			t.Fatalf("before %d: %v", id+1, r)
		}
	}
}

// TestOrderSplitsAtEachPlace: a full chunk is split by a key at each place in it, the very cut
// included, and what comes on either side of that key then is in order and is found.
func TestOrderSplitsAtEachPlace(t *testing.T) {
	for pos := range chunkSize + 1 {
		var o order[int64]
		var want [][2]int64
		add := func(at int64) {
			id := int64(1)
			o.insert(at, id, &id)
			want = append(want, [2]int64{at, id})
		}
		for i := range int64(chunkSize) {
			add(10 * i)
		}
		at := int64(10*pos - 5)
		add(at)
		add(at - 1)
		add(at + 1)
		add(at + 2)
		slices.SortFunc(want, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
		same(t, o.after(noID, noID), want)
		for _, key := range want {
			if !o.remove(key[0], key[1]) {
				t.Fatalf("split at %d: %d is not found", pos, key[0])
			}
		}
	}
}
