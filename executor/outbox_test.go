package executor

import (
	"math/rand/v2"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// TestOutboxOrder has results come and go in all proportions: none is lost, none comes twice,
// they keep their order, and what was taken is not changed by what follows.
func TestOutboxOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	o := newOutbox(Config{}.withDefaults(), batchLimit{results: 40})
	var taken [][]wire.CallbackRequest
	var came, gone int64
	for range 3000 {
		for range rnd.IntN(60) {
			came++
			o.add(wire.CallbackRequest{LogID: came})
		}
		for range rnd.IntN(3) {
			o.mu.Lock()
			taken = append(taken, o.cut())
			o.mu.Unlock()
		}
	}
	for o.mu.Lock(); len(o.pending) > 0; {
		taken = append(taken, o.cut())
	}
	o.mu.Unlock()
	for _, results := range taken {
		if len(results) > 40 {
			t.Fatalf("%d results at once", len(results))
		}
		for _, r := range results {
			if gone++; r.LogID != gone {
				t.Fatalf("result %d comes where %d should", r.LogID, gone)
			}
		}
	}
	if gone != came {
		t.Errorf("%d of %d results", gone, came)
	}
}

// TestOutboxGivesBackRoom has much wait once, and then little: a herd that comes again soon has the
// same room.
func TestOutboxGivesBackRoom(t *testing.T) {
	o := newOutbox(Config{}.withDefaults(), localBatch)
	fill := func(n int) {
		for i := range n {
			o.add(wire.CallbackRequest{LogID: int64(i)})
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		for o.cut() != nil {
		}
		o.end()
	}
	if fill(8*mostRoom + 1); cap(o.room) != 0 {
		t.Errorf("room for %d results is kept", cap(o.room))
	}
	if fill(2 * mostRoom); cap(o.room) < mostRoom {
		t.Errorf("room for %d results only, after %d", cap(o.room), 2*mostRoom)
	}
	room := &o.room[:1][0]
	for range lastTimes - 1 {
		fill(1)
	}
	if fill(2 * mostRoom); cap(o.room) == 0 || &o.room[:1][0] != room {
		t.Errorf("another herd is in other room, for %d", cap(o.room))
	}
	for range lastTimes {
		fill(1)
	}
	if cap(o.room) > mostRoom {
		t.Errorf("room for %d results is kept after %d times one", cap(o.room), lastTimes)
	}
}

// TestOutboxUsesBatchesAgain: a batch is in the memory of the one before where its admin has forgotten
// that, and only there; nothing of what was delivered stays in it.
func TestOutboxUsesBatchesAgain(t *testing.T) {
	o := newOutbox(Config{}.withDefaults(), batchLimit{results: 40})
	var taken int64
	next := func(n int, admin wire.Admin) []wire.CallbackRequest {
		t.Helper()
		for i := range n {
			o.add(wire.CallbackRequest{LogID: taken + int64(i)})
		}
		o.mu.Lock()
		results := o.cut()
		o.mu.Unlock()
		for i, r := range results {
			if r.LogID != taken+int64(i) {
				t.Fatalf("result %d is of run %d, want %d", i, r.LogID, taken+int64(i))
			}
		}
		taken += int64(len(results))
		o.useAgain(results, admin)
		return results
	}
	kept := next(40, &takingAdmin{})
	first := next(40, forgetting{}) // not in the memory of those
	for i, r := range kept {
		if r.LogID != int64(i) {
			t.Fatalf("an admin that keeps result %d has that of run %d", i, r.LogID)
		}
	}
	if second := next(10, forgetting{}); &first[0] != &second[0] {
		t.Error("the memory of a batch that is forgotten is not used again")
	}
	for i, r := range first[:cap(first)] {
		if r != (wire.CallbackRequest{}) {
			t.Fatalf("result %d of a batch that is over is still there", i)
		}
	}
}

// forgetting is an admin that keeps nothing.
type forgetting struct{ wire.Admin }

func (forgetting) ForgetsResults() {}
