package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/schedule"
)

// The windows of a join.

// Window returns when the window of the job begins that a business time lies in, in UTC, and an
// error where this process has no data of AfterZone: another process may have. It is pure. Windows of whole days begin at midnight, in AfterZone, those of several days
// counted from Monday, 5 January 1970, so that those of seven are weeks: a day of 23 or 25
// hours is one window. Windows of an hour or less go by the time that has passed, so that an
// hour which clocks repeat makes further ones. Those in between go by the clocks on the
// wall, from midnight on. Where clocks skip the beginning of a window it begins with the time
// that comes after the gap, and where they are put back over it, it has begun at the first.
func (j *Job) Window(business time.Time) (time.Time, error) {
	zone, err := schedule.LoadZone(j.AfterZone)
	if err != nil {
		return time.Time{}, err
	}
	return j.windowIn(zone, business), nil
}

// windowIn is Window in a zone.
func (j *Job) windowIn(zone *time.Location, business time.Time) time.Time {
	at, window := business.In(zone), cmp.Or(j.AfterWindow, oneDay)
	wall, ms := onTheWall(at), window.Milliseconds()
	if window <= time.Hour {
		begin := time.UnixMilli(at.UnixMilli() - modulo(wall, ms)).In(zone)
		// Where the clocks were changed since, by what is no multiple of the window, another
		// one has begun with that.
		if since, _ := at.ZoneBounds(); begin.Before(since) && onTheWall(begin) != wall-modulo(wall, ms) {
			begin = since
		}
		return begin.UTC()
	}
	edge := wall - modulo(wall-firstMonday*oneDay.Milliseconds(), ms)
	begin := firstShown(edge, zone)
	// Where the clocks were put back over the beginning of a window, it had begun before that.
	for {
		edge += ms
		next := firstShown(edge, zone)
		if next.After(at) {
			return begin.UTC()
		}
		begin = next
	}
}

// WindowEnd returns when the window ends that begins so: when the next one begins. The error is that of
// Window. It is pure.
func (j *Job) WindowEnd(begins time.Time) (time.Time, error) {
	zone, err := schedule.LoadZone(j.AfterZone)
	if err != nil {
		return time.Time{}, err
	}
	at := begins.Add(cmp.Or(j.AfterWindow, oneDay))
	for range 48 { // a day of 25 hours goes on for one more
		if next := j.windowIn(zone, at); next.After(begins) {
			return next, nil
		}
		at = at.Add(time.Hour)
	}
	return at, nil
}

// firstMonday is the fifth day of 1970.
const firstMonday = 4

// onTheWall is what clocks show, in milliseconds since the beginning of 1970 as they count.
func onTheWall(at time.Time) int64 {
	_, offset := at.Zone()
	return at.UnixMilli() + int64(offset)*1000
}

// firstShown is the first instant at which the clocks of the zone show the time or a later one:
// of a time that they show twice the first, and of one that they skip the end of the gap. It is
// not what time.Date returns, which may be an instant before the gap, or the second of the two.
func firstShown(wall int64, zone *time.Location) time.Time {
	at := time.UnixMilli(wall).Add(-oneDay).In(zone) // clocks differ from UTC by less
	for {
		_, offset := at.Zone()
		_, end := at.ZoneBounds()
		then := time.UnixMilli(wall - int64(offset)*1000)
		switch {
		case then.Before(at):
			return at
		case end.IsZero() || then.Before(end):
			return then
		}
		at = end
	}
}

// modulo is the remainder that is not negative.
func modulo(a, b int64) int64 { return (a%b + b) % b }

// WindowTimeout returns how long after its first success a window is open: AfterTimeout, or a
// day where that is zero.
func (j *Job) WindowTimeout() time.Duration { return cmp.Or(j.AfterTimeout, oneDay) }

// WindowPassed, for authors of stores, returns until when the run or record of the window that
// begins so is kept: AfterTimeout behind its end, and an hour for clocks that are changed.
func (j *Job) WindowPassed(begins time.Time) time.Time {
	return begins.Add(cmp.Or(j.AfterWindow, oneDay) + j.WindowTimeout() + time.Hour)
}

// Missing, for authors of stores, returns the jobs of After and AfterKeys that are none of
// those which have succeeded, ids as "#7" and keys as they are. Has reports it of an id, or of
// an app and key.
func (j *Job) Missing(has func(id int64, app, key string) bool) (missing []string) {
	for _, id := range j.After {
		if !has(id, "", "") {
			missing = append(missing, IDRef(id))
		}
	}
	for _, ref := range j.AfterKeys {
		if app, key, _ := SplitRef(ref); !has(0, app, key) {
			missing = append(missing, ref)
		}
	}
	return slices.Clip(missing)
}

// IsWindowKey reports whether the key is that of the run for a window (WindowKey).
func IsWindowKey(key string) bool { return strings.HasPrefix(key, WindowKeys) }

// WindowKeys is what keys of windows begin with.
const WindowKeys = OwnKeys + "join/"
