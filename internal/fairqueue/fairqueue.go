package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
)

// What executors elsewhere send on its way into the store: results and registrations.
// Input: what each request has brought, and who it is from. Output: batches, one at a time,
// in which each app has its turn. An error of what one request has brought is its own
// (store.go), and what waits is bounded in bytes.

// Origin is who a request is from: what its token is good for, and the app that it names.
// Turns go by the token first, for whoever has one that all share may name any app.
type Origin struct{ Scope, App string }

// Queue collects what many requests ask of the store. It is safe for concurrent use.
type Queue[T any] struct {
	wake loop.Wake
	most Bounds

	mu     sync.Mutex
	size   int                  // guarded by mu: of all that is here, in bytes
	scopes map[string]*scope[T] // guarded by mu: those that something is here of
	turn   []*scope[T]          // guarded by mu: those that something waits of, the next one first

	Refused atomic.Uint64 // parcels for which there was no room

	said loop.LogLimiter // whose could not be stored
	lead int             // owned by the loop: see each
}

func New[T any](most Bounds) *Queue[T] {
	return &Queue[T]{wake: loop.NewWake(), most: most, scopes: map[string]*scope[T]{}}
}

// Bounds are the bounds of a queue.
type Bounds struct {
	OfApp, InAll      int           // what may be here, in bytes
	Batch, BatchBytes int           // items and bytes from which on a batch is full
	AtOnce            int           // items that a turn has
	Kept              time.Duration // for so long what nobody waits for is worth storing
	Retries           bool          // what has failed as a whole is tried again
}

// scope is what is here of one token.
type scope[T any] struct {
	name string
	size int
	apps map[string]*line[T]
	turn []*line[T] // those that something waits of, the next one first
}

// line is what is here of one app.
type line[T any] struct {
	scope   *scope[T]
	app     string
	size    int           // with what is being stored
	waiting []*Request[T] // of which not all is being stored, in the order of their coming; but what has failed is behind what has not been tried
}

// Request is what one request has brought.
type Request[T any] struct {
	in    *Queue[T]
	line  *line[T]
	items []*T // what is still to be done
	taken int  // how many of them are in the batch that is being done
	size  int  // in bytes
	each  int  // of an item, in bytes
	came  time.Time
	left  bool          // guarded by queue.mu: nobody waits for it any more
	done  chan struct{} // closed when err and what is in the items are set
	err   error
}

// piece is what a request has in a batch.
type piece[T any] struct {
	*Request[T]
	items []*T
}

// line returns the line of a sender: a new one where nothing of it is here.
func (in *Queue[T]) line(from Origin) *line[T] {
	s := in.scopes[from.Scope]
	if s == nil {
		s = &scope[T]{name: from.Scope, apps: map[string]*line[T]{}}
	}
	if len(s.apps) >= maxLines && s.apps[from.App] == nil {
		from.App = ""
	}
	if l := s.apps[from.App]; l != nil {
		return l
	}
	return &line[T]{scope: s, app: from.App}
}

// maxLines is how many apps that show one token have a line of their own; the rest share
// one.
const maxLines = 256

// count notes that so many bytes more of a line are here. A line is known while something
// of it is.
func (in *Queue[T]) count(l *line[T], size int) {
	l.size += size
	l.scope.size += size
	in.size += size
	if l.size > 0 {
		l.scope.apps[l.app] = l
		in.scopes[l.scope.name] = l.scope
		return
	}
	delete(l.scope.apps, l.app)
	if len(l.scope.apps) == 0 {
		delete(in.scopes, l.scope.name)
	}
}

// queue gives a line a turn, unless it has one, since something of it waits.
func (in *Queue[T]) queue(l *line[T]) {
	if len(l.waiting) > 0 {
		return
	}
	if len(l.scope.turn) == 0 {
		in.turn = append(in.turn, l.scope)
	}
	l.scope.turn = append(l.scope.turn, l)
}

// take returns the next batch. It is full with the piece that reaches one of the bounds.
func (in *Queue[T]) take() (batch []piece[T]) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for items, size := 0, 0; len(in.turn) > 0 && items < in.most.Batch && size < in.most.BatchBytes; {
		p := in.next()
		if len(p.items) == 0 { // it was left too long ago
			continue
		}
		items += len(p.items)
		size += p.each * len(p.items)
		batch = append(batch, p)
	}
	return batch
}

// next takes a piece of the oldest request of the line whose turn it is. The request leaves
// the line with its last piece.
func (in *Queue[T]) next() piece[T] {
	s := in.turn[0]
	in.turn = in.turn[1:]
	l := s.turn[0]
	s.turn = s.turn[1:]
	p := l.waiting[0]
	mine := piece[T]{p, nil}
	if p.taken == 0 && p.left && time.Since(p.came) > in.most.Kept {
		defer in.end(p, errNotYet)
	} else {
		mine.items = p.items[p.taken:min(len(p.items), p.taken+in.most.AtOnce)]
		p.taken += len(mine.items)
	}
	if len(mine.items) == 0 || p.taken == len(p.items) {
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
	}
	if len(l.waiting) > 0 {
		s.turn = append(s.turn, l)
	}
	if len(s.turn) > 0 {
		in.turn = append(in.turn, s)
	}
	return mine
}

// end is done with a request. mu is held.
func (in *Queue[T]) end(p *Request[T], err error) {
	in.count(p.line, -p.size)
	p.answer(err)
}

// answer tells whoever waits for a request, once; nobody does from then on. mu is held.
func (p *Request[T]) answer(err error) {
	select {
	case <-p.done:
	default:
		p.err = err
		close(p.done)
	}
	p.left = true
}

var (
	// errNotYet says that a call has not been answered in time: what it was for may be
	// done or not.
	errNotYet = errors.New("xxljob: not answered in time")
	// errNoRoom says that too much waits already.
	errNoRoom = errors.New("xxljob: too much waits for the store")
)

// Wait waits for the request to be stored, until ctx ends or patience is over. It may be
// stored after that too.
func (p *Request[T]) Wait(ctx context.Context, patience time.Duration) error {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		p.Leave()
		return ctx.Err()
	case <-t.C:
		p.Leave()
		return fmt.Errorf("%w: %v", errNotYet, patience)
	}
}

// Leave says that nobody waits for the request.
func (p *Request[T]) Leave() {
	p.in.mu.Lock()
	p.left = true
	p.in.mu.Unlock()
}

// How much of what executors elsewhere have sent may wait for the store. What nobody waits
// for any more is stored while there is room, since some peers never send a result again;
// it is the first to be dropped where there is none.

// parcelSize is what a request takes beside its items, in bytes, and PartSize what an item
// takes beside its texts: rather too much than too little.
const (
	parcelSize = 256
	PartSize   = 256
)

// makeRoom makes room for so many bytes more of a line, and reports whether it could. What
// the line itself has left behind goes first; a line of which nothing is here takes in one
// request, however large. Where all of the queue is full, whoever has most gives way to
// those who have less.
func (in *Queue[T]) makeRoom(l *line[T], size int) bool {
	for l.size > 0 && l.size+size > in.most.OfApp {
		if !in.dropLeft(l) {
			return false
		}
	}
	for in.size+size > in.most.InAll {
		if !in.giveWay(l, size) {
			return false
		}
	}
	return true
}

// giveWay drops a request to make room for so many bytes more of a line: of the token that
// has most, and of its app that has most, of those that something can be dropped of. The
// line itself gives up only what nobody waits for.
func (in *Queue[T]) giveWay(l *line[T], size int) bool {
	for _, s := range largest(in.scopes, l.scope, size, func(s *scope[T]) int { return s.size }) {
		ours, least := l, size
		if s != l.scope {
			ours, least = nil, 0
		}
		for _, other := range largest(s.apps, ours, least, func(l *line[T]) int { return l.size }) {
			if in.dropLeft(other) || other != l && in.dropLast(other) {
				return true
			}
		}
	}
	return false
}

// largest are those that have more than one of them would have with so much more, the
// largest first, and that one at the end. Where that is nil they are all.
func largest[T comparable](all map[string]T, one T, more int, size func(T) int) (list []T) {
	var none T
	for _, x := range all {
		if x != one && (one == none || size(x) > size(one)+more) {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b T) int { return size(b) - size(a) })
	if one != none {
		list = append(list, one)
	}
	return list
}

// dropLeft drops the oldest request of a line that nobody waits for, if there is one.
func (in *Queue[T]) dropLeft(l *line[T]) bool {
	i := slices.IndexFunc(l.waiting, func(p *Request[T]) bool { return p.left && p.taken == 0 })
	if i < 0 {
		return false
	}
	in.drop(l, i, errNoRoom)
	return true
}

// dropLast drops the newest request of a line, if there is one.
func (in *Queue[T]) dropLast(l *line[T]) bool {
	last := len(l.waiting) - 1
	if last < 0 || l.waiting[last].taken > 0 {
		return false
	}
	in.drop(l, last, errNoRoom)
	return true
}

// drop drops a request that waits, by its place in the line.
func (in *Queue[T]) drop(l *line[T], i int, why error) {
	in.Refused.Add(1)
	p := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	if len(l.waiting) == 0 {
		l.scope.turn = slices.DeleteFunc(l.scope.turn, func(other *line[T]) bool { return other == l })
	}
	if len(l.scope.turn) == 0 {
		in.turn = slices.DeleteFunc(in.turn, func(other *scope[T]) bool { return other == l.scope })
	}
	in.end(p, why)
}

// Add takes in what a request has brought, size bytes of memory. The items are the loop's
// until that is done. It is an error where there is no room.
func (in *Queue[T]) Add(from Origin, size int, items ...*T) (*Request[T], error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l := in.line(from)
	size += parcelSize
	if !in.makeRoom(l, size) {
		in.Refused.Add(1)
		return nil, errNoRoom
	}
	p := &Request[T]{in: in, line: l, items: items, size: size, each: size / max(1, len(items)), came: time.Now(), done: make(chan struct{})}
	in.count(l, size)
	in.queue(l)
	l.waiting = append(l.waiting, p)
	in.wake.Poke()
	return p, nil
}
