package route

import (
	"slices"
	"testing"
)

// keys returns the keys of a bounded, most recent first.
func keys[S any](b *bounded[S]) (out []int64) {
	for e := b.root.next; e != &b.root; e = e.next {
		out = append(out, e.key)
	}
	return out
}

func TestBoundedDropsTheLeastRecent(t *testing.T) {
	b := newBounded[int](3, 10)
	for _, k := range []int64{1, 2, 3, 1, 4} {
		b.get(k)
	}
	if got := keys(b); !slices.Equal(got, []int64{4, 1, 3}) {
		t.Errorf("keys %v, want 4 1 3", got)
	}
	e, fresh := b.get(1)
	if fresh {
		t.Error("1 was forgotten")
	}
	b.weigh(e, 11) // too heavy even alone
	if got := keys(b); !slices.Equal(got, []int64{1}) {
		t.Errorf("keys %v, want 1", got)
	}
	b.weigh(e, 4)
	e, _ = b.get(2)
	b.weigh(e, 6)
	if got := keys(b); !slices.Equal(got, []int64{2, 1}) {
		t.Errorf("keys %v, want 2 1: ten is not too much", got)
	}
	b.drop(1)
	b.drop(1)
	if b.weight != 6 || len(b.entries) != 1 {
		t.Errorf("weight %d of %d entries, want 6 of 1", b.weight, len(b.entries))
	}
}

// TestBoundedAgainstModel compares with a slice, most recent first.
func TestBoundedAgainstModel(t *testing.T) {
	type item struct {
		key    int64
		weight int
	}
	rng := seeded(t)
	const maxEntries, maxWeight = 5, 20
	b := newBounded[struct{}](maxEntries, maxWeight)
	var model []item
	total := func() (n int) {
		for _, it := range model {
			n += it.weight
		}
		return n
	}
	for step := range 5000 {
		key := rng.Int64N(9)
		at := slices.IndexFunc(model, func(it item) bool { return it.key == key })
		if rng.IntN(6) == 0 {
			b.drop(key)
			if at >= 0 {
				model = slices.Delete(model, at, at+1)
			}
		} else {
			e, fresh := b.get(key)
			if fresh != (at < 0) {
				t.Fatalf("step %d: key %d fresh %v", step, key, fresh)
			}
			it := item{key: key}
			if at >= 0 {
				it = model[at]
				model = slices.Delete(model, at, at+1)
			} else if len(model) == maxEntries {
				model = model[:maxEntries-1]
			}
			it.weight = rng.IntN(10)
			model = slices.Insert(model, 0, it)
			for total() > maxWeight {
				model = model[:len(model)-1]
			}
			b.weigh(e, it.weight)
		}
		var want []int64
		for _, it := range model {
			want = append(want, it.key)
		}
		if got := keys(b); !slices.Equal(got, want) || b.weight != total() || len(b.entries) != len(want) {
			t.Fatalf("step %d: keys %v weight %d, want %v weight %d", step, got, b.weight, want, total())
		}
	}
}
