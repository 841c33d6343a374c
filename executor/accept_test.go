package executor

// Which run is which, and what is known of those that have been here: against slow models.

import (
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
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

// A slow model that keeps every id with its time says what must be remembered and
// what must be forgotten.
func TestRecentAgainstModel(t *testing.T) {
	const keep, most = 10 * time.Minute, 40
	rnd := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g := newRecent(keep, most)
	type entry struct {
		id int64
		at time.Time
	}
	var model []entry
	for id := range int64(5000) {
		pause := time.Minute
		if id%1000 < 500 {
			pause = time.Second // in one half the number bounds, in the other the age
		}
		now = now.Add(time.Duration(rnd.Int64N(int64(pause))))
		g.add(runID{id, 7}, now)
		model = append(model, entry{id, now})
		for i, m := range model {
			fromEnd := len(model) - i
			switch has := g.has(runID{m.id, 7}, now); {
			case !has && fromEnd <= most/2 && now.Sub(m.at) <= keep:
				t.Fatalf("id %d is forgotten after %v and %d more", m.id, now.Sub(m.at), fromEnd)
			case has && (fromEnd > most || now.Sub(m.at) >= 2*keep):
				t.Fatalf("id %d is remembered after %v and %d more", m.id, now.Sub(m.at), fromEnd)
			case !has && !g.forgets(m.at.Add(-time.Nanosecond)): // at one instant some may be known
				t.Fatalf("id %d is forgotten after %v, and said to be remembered", m.id, now.Sub(m.at))
			case fromEnd <= most/2 && now.Sub(m.at) < keep && g.forgets(m.at):
				t.Fatalf("id %d of %v ago is said to be forgotten, perhaps", m.id, now.Sub(m.at))
			}
		}
		model = model[max(0, len(model)-100):]
		if n := g.young.n + g.old.n; n > most {
			t.Fatalf("%d ids are remembered", n)
		}
	}
	if g.has(runID{4999, 7}, now.Add(2*keep)) || !reflect.ValueOf(g.young).IsZero() || !reflect.ValueOf(g.old).IsZero() {
		t.Error("the memory of an idle executor is not given back")
	}
}
