package executor

// How many results travel in one callback.

import (
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob/executor/internal/spool"
	"github.com/xxljob/xxljob/wire"
)

// batchLimit bounds one callback. Of too large results there is one at least.
type batchLimit struct {
	results int
	bytes   int           // about, encoded; 0 for no bound
	gather  time.Duration // how long results gather under load, see outbox.gather
}

var (
	// localBatch is for the admin in this process, to which nothing is encoded.
	localBatch = batchLimit{results: 1000}
	// clusterBatch is what Java executors send at a time, and a quarter of what
	// admins take in bytes.
	clusterBatch = batchLimit{results: 50, bytes: 1 << 20, gather: gatherTime}
)

// cut returns how many of the first results go into one callback.
func (l batchLimit) cut(results []wire.CallbackRequest) int {
	n := min(len(results), l.results)
	if l.bytes == 0 {
		return n
	}
	size := 0
	for i := range results[:n] {
		if size += encodedSize(&results[i]); size > l.bytes && i > 0 {
			return i
		}
	}
	return n
}

// resultOverhead is what a result takes beside its text, twice.
const resultOverhead = 288

// encodedSize is about how many bytes a result takes in a callback, where its
// text may be twice (wire.CallbackList).
func encodedSize(r *wire.CallbackRequest) int {
	return resultOverhead + 2*encodedText(r.HandleMsg) + encodedText(r.Progress.Text)
}

func encodedText(s string) (n int) {
	for _, c := range s {
		switch {
		case c < ' ', c == utf8.RuneError, c == '\u2028', c == '\u2029': // \u00XX
			n += 6
		case c == '"', c == '\\':
			n += 2
		default:
			n += utf8.RuneLen(c)
		}
	}
	return n
}

// batch is what one callback delivers.
type batch struct {
	results []wire.CallbackRequest // those that are left of it
	all     []wire.CallbackRequest // as they were taken, in room of the outbox's own; nil for others
	parcels []parcel               // where they are kept, with an outbox that has a spool
	behind  int                    // how many parcels that could not be read were left in front of these
	again   *refused               // which it was alone; nil for others
	owed    int                    // how many of them count in outbox.owed
	full    bool                   // more waited when it was taken
}

// parcel is some results that an outbox with a spool keeps.
type parcel struct {
	spool.Parcel
	owed   int     // how many of them count in outbox.owed
	runs   []runID // whose they are, where they are of this process
	unread bool    // they could not be read; such parcels are in front of all others
}

// parcelsOf are parcels that an earlier process has left, or another one.
func parcelsOf(left []spool.Parcel) (all []parcel) {
	for _, p := range left {
		all = append(all, parcel{Parcel: p})
	}
	return all
}

// appendRuns appends the runs that results are of.
func appendRuns(runs []runID, results []wire.CallbackRequest) []runID {
	for i := range results {
		runs = append(runs, resultID(&results[i]))
	}
	return runs
}
