package loop

import (
	"maps"
	"time"
)

// Refusals are the members of batches that the store has refused alone, by id. It belongs to one
// loop, and its zero value is ready.
//
// A store that refuses everything, for rights or a table that are missing perhaps, refuses each
// member alone as well, and that is nobody's fault: so a refusal counts against a member only if
// the store has taken others since the one before.
type Refusals struct {
	taken uint64
	by    map[int64]refusal
}

type refusal struct {
	times int
	taken uint64 // how many others were when it was refused last
	at    time.Time
}

const (
	// RefusedTries is how often the store has to refuse a member alone, while it takes others,
	// until it is taken to refuse it for ever.
	RefusedTries = 3
	// RefusedPause is how long a member rests that was refused so.
	RefusedPause = time.Second
	// RefusedFew is how many may be refused alone before one is taken: then it is likely that the
	// store refuses all, and the rest of the batch is not tried.
	RefusedFew = 8

	refusalKept = 10 * time.Minute // without another one
)

// Took notes how many members the store has taken.
func (r *Refusals) Took(n int) { r.taken += uint64(n) }

// Taken is how many it has taken so far.
func (r *Refusals) Taken() uint64 { return r.taken }

// Alone notes that the store has refused a member alone. since is what Taken was when the batch
// began that it was in. It returns how often the store has refused it while it took others: zero
// says that it may refuse them all.
func (r *Refusals) Alone(id int64, since uint64) (times int) {
	if r.by == nil {
		r.by = make(map[int64]refusal)
	}
	was, known := r.by[id]
	if !known {
		was.taken = since
	}
	if r.taken > was.taken {
		was.times++
	}
	r.by[id] = refusal{was.times, r.taken, time.Now()}
	return was.times
}

// IsKnown reports whether a member was refused alone: it is tried alone again.
func (r *Refusals) IsKnown(id int64) bool {
	_, known := r.by[id]
	return known
}

// Rests reports whether a member is not to be tried yet.
func (r *Refusals) Rests(id int64) bool {
	was := r.by[id]
	return was.times > 0 && time.Since(was.at) < RefusedPause
}

// Over forgets a member: the store has taken it.
func (r *Refusals) Over(id int64) { delete(r.by, id) }

// Len is how many there are. Those are forgotten that were not refused again: they are another
// node's, or were edited.
func (r *Refusals) Len() int {
	maps.DeleteFunc(r.by, func(_ int64, was refusal) bool { return time.Since(was.at) > refusalKept })
	return len(r.by)
}
