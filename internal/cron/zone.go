package cron

import (
	"math"
	"time"
)

// settled is longer than any two offsets of neighbouring stretches have ever
// differed (a day and an hour, at the date line), in seconds. Farther than this
// from every change of offset, a civil reading stands for exactly one instant.
const settled = 2 * daySeconds

// A stretch is a time, in Unix seconds, through which a zone keeps its offset.
// Neighbours may have the same offset: the standard library cuts at New Year.
type stretch struct {
	start, end int64
	offset     int64
}

// offsetAt returns how far the clocks of a zone are ahead of UTC.
func offsetAt(loc *time.Location, unix int64) int64 {
	_, offset := time.Unix(unix, 0).In(loc).Zone()
	return int64(offset)
}

// boundsAt returns the start and the end of the stretch around an instant.
func boundsAt(loc *time.Location, unix int64) (start, end int64) {
	s, e := time.Unix(unix, 0).In(loc).ZoneBounds()
	start, end = math.MinInt64/2, math.MaxInt64/2
	if !s.IsZero() {
		start = s.Unix()
	}
	if !e.IsZero() {
		end = e.Unix()
	}
	if end <= unix {
		// The library ends a rule's last stretch after 365 days of the year,
		// which in a leap year is a day short: go to the midnight after it.
		end = unix - unix%daySeconds + daySeconds
	}
	return start, end
}

// stretchAt returns the stretch around an instant. In the year in which a zone
// adopts a new rule the library may begin the rule's first stretch where the
// rule would have, too soon: the clocks there tell, and the true start is searched.
func stretchAt(loc *time.Location, unix int64) stretch {
	start, end := boundsAt(loc, unix)
	s := stretch{start: start, end: end, offset: offsetAt(loc, unix)}
	if start > math.MinInt64/2 && offsetAt(loc, start) != s.offset {
		before := start
		for s.start = unix; s.start-before > 1; {
			if middle := before + (s.start-before)/2; offsetAt(loc, middle) == s.offset {
				s.start = middle
			} else {
				before = middle
			}
		}
	}
	return s
}

// only returns the instant of a civil time when it lies far from the ends of the
// stretch, so that no other instant can show it.
func (s stretch) only(civil int64) (unix int64, ok bool) {
	unix = civil - s.offset
	return unix, s.start+settled <= unix && unix+settled < s.end
}

// readings are the instants at which the clocks of a zone show one civil time.
type readings struct {
	first, last int64 // equal unless the civil time is repeated
	// Where the civil time is skipped, both are the first instant after the
	// gap, and resume is what the clocks show then.
	skipped bool
	resume  int64
}

// read finds the instants of a civil time. The guess is an offset likely to be
// in force then.
func read(loc *time.Location, civil, guess int64) readings {
	if unix, ok := stretchAt(loc, civil-guess).only(civil); ok {
		return readings{first: unix, last: unix}
	}
	return readNearChange(loc, civil)
}

// readNearChange visits every stretch in which the civil time could lie.
func readNearChange(loc *time.Location, civil int64) (r readings) {
	found := false
	for s := stretchAt(loc, civil-settled); ; {
		unix := civil - s.offset
		if s.start <= unix && unix < s.end {
			if !found {
				r = readings{first: unix}
			}
			r.last, found = unix, true
		}
		if s.end > civil+settled {
			return r
		}
		next := stretchAt(loc, s.end)
		if !found && s.end+s.offset <= civil && civil < s.end+next.offset {
			r = readings{first: s.end, last: s.end, skipped: true, resume: s.end + next.offset}
		}
		s = next
	}
}
