package executor

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestByRunAgainstModel compares byRun with a map by id and date.
func TestByRunAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var b byRun[int]
	model := map[runID]int{}
	for i := range 20_000 {
		k := runID{rnd.Int64N(4), rnd.Int64N(4)}
		switch rnd.IntN(3) {
		case 0:
			b.drop(k)
			delete(model, k)
		default:
			b.put(k, i)
			model[k] = i
		}
		if b.n != len(model) {
			t.Fatalf("step %d: %d of %d runs", i, b.n, len(model))
		}
		ask := runID{rnd.Int64N(4), rnd.Int64N(4)}
		want, has := model[ask]
		if !has { // the last put of those that may be meant
			for k, v := range model {
				if k.is(ask) && (!has || v > want) {
					want, has = v, true
				}
			}
		}
		if got, ok := b.find(ask); got != want || ok != has {
			t.Fatalf("step %d: %+v is %d %v, want %d %v", i, ask, got, ok, want, has)
		}
		var all []int
		for k, v := range maps.All(model) {
			if k.id == ask.id {
				all = append(all, v)
			}
		}
		slices.Sort(all)
		slices.Reverse(all)
		if got := b.all(ask.id); !slices.Equal(got, all) {
			t.Fatalf("step %d: id %d has %v, want %v", i, ask.id, got, all)
		}
	}
}

// TestAskedBySecond has what Java admins ask for: dates cut to the second, or rounded.
func TestAskedBySecond(t *testing.T) {
	for _, c := range []struct {
		date, asked int64
		want        bool
	}{
		{1234, 1234, true}, {1234, 1235, false}, {1234, 0, true}, {0, 1234, true},
		{1234, 1000, true}, {1234, 2000, false}, {1999, 1000, true}, {1500, 2000, true}, {1499, 2000, false}, {1000, 1000, true},
		{1000, 2000, false}, {2000, 1000, false}, {-1, -1000, true}, {-1, -2000, false}, {-1500, -2000, true}, {-1501, -2000, true},
		{math.MaxInt64, 1000, false}, {math.MinInt64, 1000, false}, {math.MaxInt64, math.MaxInt64, true}, {1000, math.MinInt64, false},
	} {
		if got := (runID{1, c.date}).isAsked(c.asked); got != c.want {
			t.Errorf("a run of %d is meant by %d: %v", c.date, c.asked, got)
		}
	}
}
