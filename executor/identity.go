package executor

import (
	"time"

	"github.com/xxljob/xxljob/wire"
)

// runID is the identity of a run of one admin. An admin whose database begins its ids
// anew, or a scheduler that keeps its runs in memory, gives an id twice: the date, which
// is when the run was made, tells the two runs apart. A request that carries no date
// means whichever run has the id.
type runID struct {
	id   int64 // the protocol's logId
	date int64 // the protocol's logDateTime in ms, 0 where it is missing
}

func idOf(req *wire.TriggerRequest) runID { return runID{req.LogID, req.LogDateTime} }

// is reports whether two requests may mean one run.
func (a runID) is(b runID) bool {
	return a.id == b.id && (a.date == b.date || a.date == 0 || b.date == 0)
}

// isAsked reports whether a log request of that date may mean the run: Java admins ask
// for whole seconds, cut off or, where their database has rounded, up to half a second
// too late.
func (a runID) isAsked(asked int64) bool {
	switch {
	case asked == 0 || a.date == 0 || asked == a.date:
		return true
	case asked%1000 != 0:
		return false
	}
	return secondOf(a.date) == asked/1000 || secondOf(a.date+roundedUp) == asked/1000
}

// roundedUp is how much later a date may be that a database has rounded, in ms.
const roundedUp = 500

// secondOf is the second that a date lies in.
func secondOf(ms int64) int64 {
	s := ms / 1000
	if ms%1000 < 0 {
		s--
	}
	return s
}

// instant is a date of the protocol as a time, and false where it is missing or beyond
// the years that have four digits: nobody means such a date.
func instant(ms int64) (time.Time, bool) {
	const year10000 = 253402300800000
	return time.UnixMilli(ms), ms > 0 && ms < year10000
}
