package idmap

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestAgainstMap does the same with a Map and with a map of Go.
func TestAgainstMap(t *testing.T) {
	for _, ids := range []int64{3, 40, 1000, 1 << 40} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("%d/%d", ids, seed), func(t *testing.T) { testAgainstMap(t, ids, rand.New(rand.NewPCG(seed, 1))) })
		}
	}
}

func testAgainstMap(t *testing.T, ids int64, r *rand.Rand) {
	var m Map[int]
	want := map[int64]int{}
	for step := range 3000 {
		id := r.Int64N(2*ids) - ids
		if id >= 0 && r.IntN(2) == 0 {
			id = int64(step) // counted
		}
		switch r.IntN(4) {
		case 0, 1:
			m.Set(id, step)
			want[id] = step
		case 2:
			m.Delete(id)
			delete(want, id)
		default:
			if val, ok := m.Get(id); val != want[id] || ok != has(want, id) || m.Of(id) != val {
				t.Fatalf("step %d: id %d has %d, %v, want %d, %v", step, id, val, ok, want[id], has(want, id))
			}
		}
		if m.Len() != len(want) {
			t.Fatalf("step %d: %d values, want %d", step, m.Len(), len(want))
		}
		if step%50 == 0 {
			if got := maps.Collect(m.All()); !maps.Equal(got, want) {
				t.Fatalf("step %d: %v, want %v", step, got, want)
			}
		}
	}
}

func has(m map[int64]int, id int64) bool {
	_, ok := m[id]
	return ok
}

// TestDeletedWhileAllGoes: what is deleted before it comes does not come.
func TestDeletedWhileAllGoes(t *testing.T) {
	var m Map[int64]
	for id := range int64(200) {
		m.Set(id, id)
	}
	seen := 0
	for id, val := range m.All() {
		if val != id {
			t.Fatalf("id %d has %d", id, val)
		}
		seen++
		m.Delete(id)
		m.Delete(id ^ 1)
	}
	if seen != 100 || m.Len() != 0 {
		t.Errorf("%d were seen, and %d are left, want 100 and none", seen, m.Len())
	}
}

// TestPageThatIsAnotherMeanwhile: ids of a page that was emptied and taken for other ids while All
// goes over it do not come with what is theirs.
func TestPageThatIsAnotherMeanwhile(t *testing.T) {
	for seed := range int64(50) { // All is in no order
		var m Map[int64]
		m.Set(0, 0)
		m.Set(1, 1)
		for id, val := range m.All() {
			if id != val {
				t.Fatalf("id %d has %d", id, val)
			}
			m.Delete(0)
			m.Delete(1)
			m.Set(80+8*seed, 80+8*seed)
			m.Set(81+8*seed, 81+8*seed)
			if id > 1 {
				break
			}
		}
	}
}

// TestKeepsNothing: memory that is used again has nothing of what was in it before.
func TestKeepsNothing(t *testing.T) {
	var m Map[*int]
	for range 3 {
		for id := range int64(100) {
			m.Set(id, new(int))
		}
		for id := range int64(100) {
			m.Delete(id)
		}
	}
	if len(m.spare) == 0 {
		t.Fatal("no page is kept")
	}
	for _, p := range m.spare {
		if p.used != 0 || p.vals != [slots]*int{} {
			t.Errorf("a spare page has %v", p)
		}
	}
}

// goMap is a map of Go with the methods of a Map.
type goMap map[int64]*int

func (m goMap) Set(id int64, val *int) { m[id] = val }
func (m goMap) Of(id int64) *int       { return m[id] }
func (m goMap) Delete(id int64)        { delete(m, id) }

// BenchmarkMap holds and forgets 100,000 ids as a scheduler counts them, and looks each of them up twice
// on the way: in a Map, and in a map of Go.
func BenchmarkMap(b *testing.B) {
	b.Run("Map", func(b *testing.B) { benchmark(b, &Map[*int]{}) })
	b.Run("map", func(b *testing.B) { benchmark(b, goMap{}) })
}

func benchmark[M interface {
	Set(int64, *int)
	Of(int64) *int
	Delete(int64)
}](b *testing.B, m M) {
	const n = 100_000
	val, base := new(int), int64(0)
	for b.Loop() {
		for id := base; id < base+n; id++ {
			m.Set(id, val)
		}
		for range 2 {
			for id := base; id < base+n; id++ {
				if m.Of(id) == nil {
					b.Fatal(id)
				}
			}
		}
		for id := base; id < base+n; id++ {
			m.Delete(id)
		}
		base += n
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n/4, "ns/use")
}
