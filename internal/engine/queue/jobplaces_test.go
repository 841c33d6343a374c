package queue

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestSerialPlaces: they are a map by waitlists, whatever is taken and given back in whatever order.
func TestSerialPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	places, model := serialPlaces{}, map[WaitKey]int64{}
	for range 50_000 {
		at := WaitKey{kind: kindJobPlace, jobID: r.Int64N(5), runID: r.Int64N(2), address: string(rune('a' + r.IntN(4)))}
		switch r.IntN(3) {
		case 0:
			id := 1 + r.Int64N(100)
			places.take(at, id)
			model[at] = id
		case 1:
			places.free(at)
			delete(model, at)
		default:
			if got := places.at(at); got != model[at] {
				t.Fatalf("%+v is run %d's, want %d's", at, got, model[at])
			}
		}
		if got := maps.Collect(places.all()); !maps.Equal(got, model) {
			t.Fatalf("%v, want %v", got, model)
		}
	}
	for at := range model {
		places.free(at)
	}
	if len(places) > 0 {
		t.Errorf("%d jobs are remembered for nothing", len(places))
	}
}
