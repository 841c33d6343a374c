package cron

import "time"

// A schedule is a set of civil readings.
type schedule interface {
	// nextCivil returns the first member at or after a civil second.
	nextCivil(from int64) (int64, bool)
	// fixed reports whether the hours are plain values, which decides what the
	// Civil policy does at a change of offset.
	fixed() bool
}

func (c *calendar) fixed() bool { return c.fixedHours }

// Next returns the first instant strictly after the given one at which the
// expression fires in a zone, in UTC, or the zero time when there is none. A nil
// location means UTC.
func (e *Expr) Next(after time.Time, loc *time.Location, p Policy) time.Time {
	return next(&e.calendar, after, loc, p)
}

// next maps civil readings to instants.
func next(s schedule, after time.Time, loc *time.Location, p Policy) time.Time {
	from := max(after.Unix(), -settled) // rounds down, so a fraction of a second needs no care
	if from > civilEnd+settled {
		return time.Time{} // and no sum below can overflow
	}
	var unix int64
	var ok bool
	if loc == nil || loc == time.UTC {
		unix, ok = s.nextCivil(from + 1)
	} else if unix, ok = nextPlain(s, from, loc); !ok {
		switch {
		case p == Quartz:
			unix, ok = nextQuartz(s, from, loc)
		case s.fixed():
			unix, ok = nextFixed(s, from, loc)
		default:
			unix, ok = nextFollowing(s, from, loc)
		}
	}
	if !ok || unix <= from { // not even broken zone data may make a caller spin
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}

// nextPlain answers, in as few zone look-ups as possible, the cases in which no
// change of offset can matter and so the policies agree; that is nearly all.
func nextPlain(s schedule, from int64, loc *time.Location) (unix int64, ok bool) {
	offset := offsetAt(loc, from)
	least := from + offset + 1
	civil, ok := s.nextCivil(least)
	if !ok {
		return 0, false
	}
	unix = civil - offset
	start, end := boundsAt(loc, unix)
	if start+settled <= from {
		// One stretch holds both instants, or would if its start were true; see
		// stretchAt.
		return unix, unix+settled < end && offsetAt(loc, unix) == offset
	}
	if civil < least+settled {
		return 0, false
	}
	// The schedule is silent long after the present instant. If it is so long
	// before it too, no change of offset near it moves or repeats anything.
	if first, _ := s.nextCivil(least - settled); first != civil {
		return 0, false
	}
	there := stretch{start: start, end: end, offset: offsetAt(loc, unix)}
	if unix, ok = there.only(civil); !ok {
		return 0, false
	}
	return unix, offsetAt(loc, max(start, -settled)) == there.offset
}

// nextFixed serves fixed hours: each member fires at its first reading, or at
// the first instant after the gap that holds it.
func nextFixed(s schedule, from int64, loc *time.Location) (int64, bool) {
	now := stretchAt(loc, from)
	least := from + now.offset + 1
	if from < now.start+settled {
		// In a second pass, everything up to the end of the first has fired.
		least = max(least, now.start+offsetAt(loc, now.start-1))
	}
	for {
		civil, ok := s.nextCivil(least)
		if !ok {
			return 0, false
		}
		if r := read(loc, civil, now.offset); r.first > from {
			return r.first, true
		}
		least = civil + 1 // shown before, by a zone that changed twice in two days
	}
}

// nextFollowing serves schedules that follow the wall clock: an instant fires
// when its reading is a member.
func nextFollowing(s schedule, from int64, loc *time.Location) (int64, bool) {
	now := stretchAt(loc, from)
	least := from + now.offset + 1
	for {
		civil, ok := s.nextCivil(least)
		if ok && civil-now.offset < now.end {
			return civil - now.offset, true
		}
		if now.end-from > settled {
			return firstShown(s, civil, ok, now.offset, loc)
		}
		// The stretch ends soon without a fire. The next one begins with
		// readings ahead of those seen, or goes through some of them again.
		change := now.end
		now = stretchAt(loc, change)
		from, least = change-1, change+now.offset
	}
}

// firstShown returns the first instant whose reading is a member, given the
// first member after the present stretch. No repeated reading can come sooner:
// those before the member are not members.
func firstShown(s schedule, civil int64, ok bool, offset int64, loc *time.Location) (int64, bool) {
	for ok {
		r := read(loc, civil, offset)
		if !r.skipped {
			return r.first, true
		}
		civil, ok = s.nextCivil(r.resume)
	}
	return 0, false
}

// nextQuartz serves the Quartz policy: it reads the clock, looks for the next
// member on the clock's face, and takes the last instant that shows it.
func nextQuartz(s schedule, from int64, loc *time.Location) (int64, bool) {
	offset := offsetAt(loc, from+1)
	civil, ok := s.nextCivil(from + 1 + offset)
	for ok {
		r := read(loc, civil, offset)
		switch {
		case r.skipped:
			civil, ok = s.nextCivil(r.resume)
		case r.last > from:
			return r.last, true
		default:
			civil, ok = s.nextCivil(civil + 1)
		}
	}
	return 0, false
}
