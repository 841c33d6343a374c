package core

import (
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
)

// LockedOut are the jobs and runs that this node could not plan or start, since others held rows
// that it has to lock. The store passes such rows by, so that one of them holds up nothing else:
// that is no error of anybody's, and nothing else would say it.
type LockedOut struct {
	Wake loop.Wake // of the loop that looks for those that are late

	mu   sync.Mutex
	jobs map[int64]lockedRow
	runs map[int64]lockedRow
}

// lockedRow is when a job or run was due, by the store's clock, and when it was found locked last, by this process's.
type lockedRow struct{ due, seen time.Time }

// lockedKept bounds what is remembered: with so many rows the number does not matter any more.
const lockedKept = 10_000

// Job notes that a job was not planned, and Run that a run was not started, which was due at a
// time of the store's.
func (l *LockedOut) Job(id int64, due time.Time) { l.note(&l.jobs, id, due) }

func (l *LockedOut) Run(id int64, due time.Time) { l.note(&l.runs, id, due) }

func (l *LockedOut) note(rows *map[int64]lockedRow, id int64, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *rows == nil {
		*rows = make(map[int64]lockedRow)
	}
	if _, has := (*rows)[id]; has || len(*rows) < lockedKept {
		(*rows)[id] = lockedRow{due, time.Now()}
		l.Wake.PokeIf(!has)
	}
}

// None reports that nothing is locked out.
func (l *LockedOut) None() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.jobs)+len(l.runs) == 0
}

// Late returns those that were due before a time and are locked still, and when the oldest of
// them was due. What was not found locked again within that time is forgotten: it was planned or
// started meanwhile, or is another node's.
func (l *LockedOut) Late(due time.Time, within time.Duration) (jobs, runs []int64, oldest time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := func(rows map[int64]lockedRow) (ids []int64) {
		for id, row := range rows {
			switch {
			case time.Since(row.seen) > within:
				delete(rows, id)
			case row.due.Before(due):
				ids = append(ids, id)
				oldest = Earlier(oldest, row.due)
			}
		}
		return ids
	}
	return late(l.jobs), late(l.runs), oldest
}
