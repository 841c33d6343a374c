package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Ids of runs and jobs outlive the process: executors elsewhere remember them, answer a
// repeated one without running anything, and report results under them later. So no
// process begins again at 1.
//
// Ids of runs begin at the clock, as those of store/postgres do: milliseconds since the
// beginning of 2025, shifted left by runIDBits. From there on they are counted, and are
// not caught up with: no store makes 8 million runs a second for long. They stay below
// 2^53 until 2059. Where the clock is before 2025, as in bubbles, they begin at 1.
const (
	runIDBits  = 13
	runIDEpoch = 1735689600000 // 2025-01-01T00:00:00Z in milliseconds
)

// idsBefore is the id before the first one of a store that is made at the time.
func idsBefore(t time.Time) int64 {
	return max(t.UnixMilli()-runIDEpoch, 0) << runIDBits
}

// maxJobID keeps ids of jobs within what the wire protocol can carry.
const maxJobID = 1<<31 - 1

// jobIDs gives ids to jobs: a hash of the app and the key, or of the app and the name
// where there is no key, so that a job has the same id in each process, and goes to the
// same address by CONSISTENT_HASH. Where that id was given before, to another job or to
// one that was removed, it is the next one that was not: what is still known of a removed
// job never meets another one.
type jobIDs struct {
	jobs map[int64]*job  // Store.jobs: they have theirs
	next map[int64]int64 // of other ids that were given: one behind it, which may be given too
}

// free is the id for a job. It is not given yet.
func (x *jobIDs) free(def *store.Job) (int64, bool) {
	if len(x.jobs)+len(x.next) >= maxJobID {
		return 0, false
	}
	return x.from(jobHash(def)), true
}

// from is the first id, from the given one on, that was not given. The way there is made
// shorter for those who come later.
func (x *jobIDs) from(id int64) int64 {
	end, steps := id, 0
	for next, given := x.behind(end); given; next, given = x.behind(end) {
		end = next
		steps++
	}
	for ; steps > 1; steps-- {
		next, _ := x.behind(id)
		x.put(id, end)
		id = next
	}
	return end
}

// behind is an id behind one that was given.
func (x *jobIDs) behind(id int64) (next int64, given bool) {
	if next, given = x.next[id]; given {
		return next, true
	}
	_, given = x.jobs[id]
	return id%maxJobID + 1, given
}

// given reports whether the id was given.
func (x *jobIDs) given(id int64) bool {
	_, given := x.behind(id)
	return given
}

// give gives an id to what is not in jobs: not yet, or not any more.
func (x *jobIDs) give(id int64) { x.put(id, id%maxJobID+1) }

func (x *jobIDs) put(id, next int64) {
	if x.next == nil {
		x.next = map[int64]int64{}
	}
	x.next[id] = next
}

// takeBack undoes give, for a job that was not added after all, or is in jobs now.
func (x *jobIDs) takeBack(id int64) { delete(x.next, id) }

// jobHash is the id that a job would have alone, from 1 to maxJobID.
func jobHash(def *store.Job) int64 {
	kind, name := "key", def.Key
	if name == "" {
		kind, name = "name", def.Name
	}
	sum := sha256.Sum256([]byte(def.App + "\x00" + kind + "\x00" + name)) // as even as shards want it
	return int64(binary.BigEndian.Uint64(sum[:])%maxJobID) + 1
}
