package queue

import (
	"slices"

	"github.com/xxljob/xxljob/internal/timering"
)

// fairQueue holds a queue for each app, and lets the apps take turns: a thousand
// due runs of one app do not hold up the one of another.
type fairQueue struct {
	n      int // entries in all
	apps   map[string]*timering.Heap[*Entry]
	order  []string               // apps that have something, in turn
	passed int                    // of order: those whose turn was, less than half of it
	spare  *timering.Heap[*Entry] // an empty queue for the next app; nil where there is none
}

func newFairQueue() fairQueue { return fairQueue{apps: map[string]*timering.Heap[*Entry]{}} }

func (t *fairQueue) len() int { return t.n }

func (t *fairQueue) push(e *Entry) {
	q := t.apps[e.Run.App]
	if q == nil {
		if q, t.spare = t.spare, nil; q == nil {
			q = &timering.Heap[*Entry]{}
		}
		t.apps[e.Run.App] = q
		t.order = append(t.order, e.Run.App)
	}
	q.Push(e.Run.Key(), e)
	t.n++
}

// pop takes the next entry of the app whose turn it is, nil when there is none.
func (t *fairQueue) pop() *Entry {
	if len(t.order) == 0 {
		return nil
	}
	app := t.order[t.passed]
	q := t.apps[app]
	e := q.Pop()
	if len(*q) == 0 && cap(*q) > timering.SpareCap {
		*q = nil // a large herd is over
	}
	t.n--
	t.passed++
	if 2*t.passed >= len(t.order) { // in place, and seldom
		t.order = slices.Delete(t.order, 0, t.passed)
		t.passed = 0
	}
	if len(*q) > 0 {
		t.order = append(t.order, app)
	} else {
		delete(t.apps, app)
		t.spare = q
	}
	return e
}

// remove takes an entry out, wherever it is, and reports whether it was there.
func (t *fairQueue) remove(e *Entry) bool {
	q := t.apps[e.Run.App]
	if q == nil || !q.Remove(e.Run.Key()) {
		return false
	}
	if t.n--; len(*q) > 0 {
		return true
	}
	delete(t.apps, e.Run.App)
	t.spare = q
	i := t.passed + slices.Index(t.order[t.passed:], e.Run.App)
	t.order = slices.Delete(t.order, i, i+1)
	if 2*t.passed >= len(t.order) {
		t.order = slices.Delete(t.order, 0, t.passed)
		t.passed = 0
	}
	return true
}
