package postgres

// What a batch of many rows needs to be cheap: texts that it repeats, and memory that is used
// again.

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// words are the texts of a batch of which there are few, each once. A statement
// gets the list, and for each row the place of its text in it, which costs both
// sides less than the text itself: the database copies the arguments of a row
// several times before it stores them.
type words struct {
	list   []string
	places map[string]int16 // once there are more than a few
}

// place is where the text is in the list, counted from 1 as SQL does; 0, where no
// array has anything and SQL finds null, for an empty text.
func (w *words) place(text string) int16 {
	if text == "" {
		return 0
	}
	if at, ok := w.find(text); ok {
		return at
	}
	w.list = append(w.list, text)
	at := int16(len(w.list))
	switch {
	case w.places != nil:
		w.places[text] = at
	case len(w.list) > fewWords:
		w.places = make(map[string]int16, 2*fewWords)
		for i, word := range w.list {
			w.places[word] = int16(i + 1)
		}
	}
	return at
}

// fewWords is how many are looked through sooner than one is looked up.
const fewWords = 8

func (w *words) find(text string) (at int16, ok bool) {
	if w.places != nil {
		at, ok = w.places[text]
		return at, ok
	}
	i := slices.Index(w.list, text)
	return int16(i + 1), i >= 0
}

// upTo are the numbers from 1 to n. A statement gets the places of its rows as an
// argument like the others, for of generate_subscripts the planner expects a
// thousand rows, however few there are.
func upTo(n int) []int32 {
	places := make([]int32, n)
	for i := range places {
		places[i] = int32(i) + 1
	}
	return places
}

// sparseList is a list of n values of which most are zero. It is made when the first other one
// is set.
type sparseList[T comparable] struct {
	n    int
	list []T
}

func (l *sparseList[T]) set(place int, v T) {
	var zero T
	if v == zero {
		return
	}
	if l.list == nil {
		l.list = make([]T, l.n)
	}
	l.list[place] = v
}

// value is what sparse makes of such a list.
func (l *sparseList[T]) value() []T {
	if l.list == nil {
		return []T{}
	}
	return l.list
}

// sparse is the list, or an empty one where there is nothing in it but zeros: SQL finds
// null at any place of that, and what is not sent need not be read.
func sparse[T comparable](list []T) []T {
	var zero T
	for _, v := range list {
		if v != zero {
			return list
		}
	}
	return list[:0]
}

// grouping is what a call has come across, while it puts what it was given into groups.
type grouping struct {
	ids    map[int64]int
	epochs map[int]int64 // of shards
}

func (g *grouping) clear() {
	clear(g.ids)
	clear(g.epochs)
}

// groupings keep what calls have used for others. They have maps of numbers and nothing else: no
// argument of a statement is among them, and who takes one gives it back before anything is sent.
// So no call that was abandoned can have one still.
type groupings struct{ pool sync.Pool }

// take returns an empty one.
func (p *groupings) take() *grouping {
	if g, ok := p.pool.Get().(*grouping); ok {
		return g
	}
	return &grouping{map[int64]int{}, map[int]int64{}}
}

// maxGrouping bounds what is kept: a map that was large once takes long to clear for ever.
const maxGrouping = 4 * claimBatch

func (p *groupings) giveBack(g *grouping) {
	if len(g.ids) > maxGrouping {
		return
	}
	g.clear()
	p.pool.Put(g)
}

// rowLists keep lists that rows were read into for other calls. They are for what nobody has after
// the call that has read it: rows are read by the goroutine that calls, so a call that has returned
// has no list any more, whatever has ended it. Arguments are not kept: see sql_arrays.go.
type rowLists[T any] struct{ pool sync.Pool }

// maxRowList bounds what is kept: some megabytes, for as long as the collector lets the pool have
// them.
const maxRowList = 64 * claimBatch

// take returns an empty one.
func (p *rowLists[T]) take() *[]T {
	if list, ok := p.pool.Get().(*[]T); ok {
		return list
	}
	return new([]T)
}

func (p *rowLists[T]) giveBack(list *[]T) {
	if cap(*list) > maxRowList {
		return
	}
	clear(*list)
	*list = (*list)[:0]
	p.pool.Put(list)
}

// Batches whose members a statement chooses by itself, and of which the database refuses some. Comes
// in: what does so many of them. Goes out: those that it refuses alone are left aside for a while.

// setAside are members that the database refuses, for a while each. It is safe for concurrent use,
// and its zero value is ready.
type setAside[K comparable] struct {
	mu    sync.Mutex
	until map[K]time.Time
	why   error
}

const (
	// asideFor is how long one is left, and asideFew how many are tried alone before it is taken
	// that all are refused.
	asideFor = time.Minute
	asideFew = 8
)

func (a *setAside[K]) add(member K, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until == nil {
		a.until = map[K]time.Time{}
	}
	a.until[member], a.why = time.Now().Add(asideFor), why
}

// now are those that are left, and why the last of them was refused.
func (a *setAside[K]) now() (members []K, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.until, func(_ K, until time.Time) bool { return time.Now().After(until) })
	members = slices.AppendSeq([]K{}, maps.Keys(a.until))
	if len(members) > 0 {
		why = a.why
	}
	return members, why
}

// asides are those of each kind.
type asides struct {
	owed, ahead, late, redated setAside[int64]    // ids of rows
	windows                    setAside[[2]int64] // jobs, and when the windows begin
}

// halves has do take care of limit members at most, of which none is aside, and where the database
// refuses them together of fewer, down to those that it refuses alone: these are left for later, so
// that no other waits for them. do returns whom it has chosen, also beside an error. Why is why
// the last of those that are left was refused.
func halves[K comparable](ctx context.Context, a *setAside[K], most int, do func(limit int, aside []K) ([]K, error)) (why, err error) {
	done, few := 0, 0 // few were refused alone before anything was done
	for limit := most; ; {
		var aside []K
		aside, why = a.now()
		members, err := do(limit, aside)
		switch refused := len(members) > 0 && refuses(codeOf(err)) && !noPartition(err) && ctx.Err() == nil; {
		case err == nil:
			if done += len(members); limit == most || len(members) < limit || done >= most {
				return why, nil
			}
			limit = min(2*limit, most)
		case refused && len(members) > 1:
			limit = len(members) / 2
		case refused && (few < asideFew || done > 0):
			few++
			a.add(members[0], err)
		default:
			return nil, err
		}
	}
}
