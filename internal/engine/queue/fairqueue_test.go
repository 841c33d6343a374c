package queue

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/timering"
)

// TestWaitingIsInOrder: what waits goes on in the order of instants and ids, whenever it
// came, and a queue that is never empty keeps nothing of what has left it.
func TestWaitingIsInOrder(t *testing.T) {
	var q timering.Heap[*Entry]
	r := rand.New(rand.NewPCG(1, 2))
	at := func(n int) *Entry {
		return &Entry{Run: compact.Planned{ID: r.Int64N(1000), At: int64(r.IntN(n))}}
	}
	push := func(e *Entry) { q.Push(e.Run.Key(), e) }
	for range 100_000 {
		push(at(1000))
		push(at(10))
		q.Pop()
		q.Pop()
		if len(q) < 100 {
			push(at(500))
		}
	}
	for last := q.Pop(); len(q) > 0; {
		next := q.Pop()
		if next.Run.Key().Before(last.Run.Key()) {
			t.Fatalf("%v after %v", next.Run.Key(), last.Run.Key())
		}
		last = next
	}
	if cap(q) > 10_000 {
		t.Errorf("room for %d entries", cap(q))
	}
}

// TestAppsTakeTurns: the next entry is of the app that has waited longest for its turn, be there
// one app or many, and what has had its turn is not kept.
func TestAppsTakeTurns(t *testing.T) {
	for _, apps := range []int{1, 2, 3, 50} {
		r, q := rand.New(rand.NewPCG(3, uint64(apps))), newFairQueue()
		var order []string // the model: apps that have something, in turn
		waits := map[string]int{}
		for range 20_000 {
			if app := string(rune('A' + r.IntN(apps))); r.IntN(2) == 0 {
				if waits[app]++; waits[app] == 1 {
					order = append(order, app)
				}
				q.push(&Entry{Run: compact.Planned{App: app}})
				continue
			}
			e := q.pop()
			if len(order) == 0 {
				if e != nil {
					t.Fatalf("%d apps: %+v out of nothing", apps, e)
				}
				continue
			}
			app := order[0]
			order = order[1:]
			if waits[app]--; waits[app] > 0 {
				order = append(order, app)
			}
			if e == nil || e.Run.App != app {
				t.Fatalf("%d apps: %+v, want one of %s", apps, e, app)
			}
		}
		if cap(q.order) > 4*apps+8 {
			t.Errorf("%d apps: room for the turns of %d", apps, cap(q.order))
		}
	}
}

// TestWhatIsTakenOutLeavesTheOthersInOrder, wherever in a queue it was.
func TestWhatIsTakenOutLeavesTheOthersInOrder(t *testing.T) {
	for round := range 200 {
		r, q := rand.New(rand.NewPCG(5, uint64(round))), newFairQueue()
		var in, out []*Entry
		for id := range int64(r.IntN(60)) {
			e := &Entry{Run: compact.Planned{App: string(rune('A' + r.IntN(4))), ID: id, At: r.Int64N(20)}}
			if q.push(e); r.IntN(2) == 0 {
				in = append(in, e)
			} else {
				out = append(out, e)
			}
			if r.IntN(5) == 0 {
				had := q.pop()
				is := func(e *Entry) bool { return e == had }
				in, out = slices.DeleteFunc(in, is), slices.DeleteFunc(out, is)
			}
		}
		r.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
		for _, e := range out {
			if !q.remove(e) || q.remove(e) {
				t.Fatalf("round %d: %+v was not there, or twice", round, e.Run)
			}
		}
		last := map[string]timering.Key{}
		for n := len(in); n > 0; n-- {
			e := q.pop()
			if q.len() != n-1 || !slices.Contains(in, e) || e.Run.Key().Before(last[e.Run.App]) {
				t.Fatalf("round %d: %d are left, %+v after %+v", round, q.len(), e, last)
			}
			last[e.Run.App] = e.Run.Key()
		}
		if q.pop() != nil || len(q.order) != 0 || len(q.apps) != 0 {
			t.Fatalf("round %d: %+v is left", round, q)
		}
	}
}
