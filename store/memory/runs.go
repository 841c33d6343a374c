package memory

import (
	"slices"
	"sort"

	"github.com/xxljob/xxljob"
)

// run is a run with its places in the sets it is in. All of it is guarded by
// Store.mu; a run that was evicted is used again.
type run struct {
	xxljob.Run

	job       *job
	owner     *peer  // set while started or dispatched by a node
	addressee *peer  // set while started or dispatched at an attached address
	key       string // of the trigger, if it had one

	first     *run  // of its trigger, itself perhaps; kept for as long as one of them has not ended
	unended   int   // runs of the trigger, where it is the first
	parts     int   // of the trigger, where it is the first
	succeeded int   // of these
	followed  bool  // another run follows it
	late      bool  // an alarm has said so
	count     int32 // of the job, when the run was planned
	foreign   bool  // planned, and neither planned nor loaded under the shard's epoch
	ahead     bool  // planned, and kept apart until move: see ahead.go
	move      int64

	pages logPages // of its log

	place int32 // in job.planned or job.ahead while planned, in shard.started while started
	links [listKinds]link
}

func (r *run) slot() *int32 { return &r.place }

// snapshot is the run as callers get it.
func (r *run) snapshot() xxljob.Run {
	out := r.Run
	out.Addresses = copied(out.Addresses)
	return out
}

// read is the run with the names that its job has now, as those get it who read runs.
func (r *run) read() xxljob.Run {
	out := r.snapshot()
	if j := r.job; !j.removed {
		out.JobName, out.JobKey = j.def.name, j.def.key
	}
	return out
}

// say adds a line to the TriggerMsg.
func (r *run) say(line string) {
	switch {
	case line == "":
	case r.TriggerMsg == "":
		r.TriggerMsg = line
	default:
		r.TriggerMsg += "\n" + line
	}
}

func copied[T any](s []T) []T { return append([]T(nil), s...) }

// runs finds runs by id. Ids are counted, from where ids.go says, so the runs lie in
// segments of consecutive ids; a segment whose runs are all evicted goes.
type runs struct {
	last     int64
	segments []*segment // in order; the tail mostly without gaps
	empty    int        // segments without a run
	free     []*run     // evicted runs, to be used again
}

const (
	// segmentSize is small, so that one run that is kept among many that are
	// not keeps little else.
	segmentSize = 64
	// maxFree bounds the memory that waits to be used again.
	maxFree = 1024
)

type segment struct {
	no   int64 // of ids from no*segmentSize on
	n    int
	runs [segmentSize]*run
}

// add returns a new run with the next id.
func (x *runs) add() *run {
	x.last++
	no := x.last / segmentSize
	if len(x.segments) == 0 || x.segments[len(x.segments)-1].no != no {
		x.segments = append(x.segments, &segment{no: no})
		x.empty++
	}
	r := x.fresh()
	r.ID = x.last
	seg := x.segments[len(x.segments)-1]
	if seg.n == 0 {
		x.empty--
	}
	seg.n++
	seg.runs[x.last%segmentSize] = r
	return r
}

func (x *runs) fresh() *run {
	if last := len(x.free) - 1; last >= 0 {
		r := x.free[last]
		x.free[last] = nil
		x.free = x.free[:last]
		return r
	}
	return new(run)
}

// find returns the run, or nil.
func (x *runs) find(id int64) *run {
	i, ok := x.segment(id / segmentSize)
	if !ok || id <= 0 {
		return nil
	}
	return x.segments[i].runs[id%segmentSize]
}

// segment returns where the segment is or would be.
func (x *runs) segment(no int64) (int, bool) {
	n := len(x.segments)
	if n == 0 {
		return 0, false
	}
	if behind := x.segments[n-1].no - no; behind >= 0 && behind < int64(n) {
		if i := n - 1 - int(behind); x.segments[i].no == no {
			return i, true
		}
	}
	i := sort.Search(n, func(i int) bool { return x.segments[i].no >= no })
	return i, i < n && x.segments[i].no == no
}

// before returns the run with the greatest id below the given one, or nil.
func (x *runs) before(id int64) *run {
	i, ok := x.segment((id - 1) / segmentSize)
	from := int((id - 1) % segmentSize)
	if !ok {
		i, from = i-1, segmentSize-1
	}
	for ; i >= 0; i, from = i-1, segmentSize-1 {
		seg := x.segments[i]
		for k := from; k >= 0 && seg.n > 0; k-- {
			if seg.runs[k] != nil {
				return seg.runs[k]
			}
		}
	}
	return nil
}

// drop forgets a run that is in no set any more.
func (x *runs) drop(r *run) {
	i, _ := x.segment(r.ID / segmentSize)
	seg := x.segments[i]
	seg.runs[r.ID%segmentSize] = nil
	if seg.n--; seg.n == 0 {
		x.empty++
	}
	*r = run{}
	if len(x.free) < maxFree {
		x.free = append(x.free, r)
	}
	if x.empty > 16 && x.empty > len(x.segments)/2 {
		x.segments = slices.DeleteFunc(x.segments, func(s *segment) bool { return s.n == 0 })
		x.empty = 0
	}
}
