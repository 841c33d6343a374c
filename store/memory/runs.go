package memory

import (
	"slices"
	"sort"
)

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

// clear makes it a run of which nothing is known.
func (r *run) clear() { *r = run{started: noTime, taken: noTime, ended: noTime} }

func (x *runs) fresh() *run {
	if last := len(x.free) - 1; last >= 0 {
		r := x.free[last]
		x.free[last] = nil
		x.free = x.free[:last]
		return r
	}
	r := new(run)
	r.clear()
	return r
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
	r.clear()
	if len(x.free) < maxFree {
		x.free = append(x.free, r)
	}
	if x.empty > 16 && x.empty > len(x.segments)/2 {
		x.segments = slices.DeleteFunc(x.segments, func(s *segment) bool { return s.n == 0 })
		x.empty = 0
	}
}
