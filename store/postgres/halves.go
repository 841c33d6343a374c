package postgres

// Batches whose members a statement chooses by itself, and of which the database refuses some. Comes
// in: what does so many of them. Goes out: those that it refuses alone are left aside for a while.

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

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
	owed, ahead, late setAside[int64]    // ids of rows
	windows           setAside[[2]int64] // jobs, and when the windows begin
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
