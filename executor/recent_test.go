package executor

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

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
