package xxljob

// The windows of a join.

import (
	"cmp"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Window returns when the window of the job begins that a business time lies in, in UTC. It
// is pure. Windows of whole days begin at midnight, in AfterZone, those of several days
// counted from Monday, 5 January 1970, so that those of seven are weeks: a day of 23 or 25
// hours is one window. Windows of an hour or less go by the time that has passed, so that an
// hour which clocks repeat makes further ones. Those in between go by the clocks on the
// wall, from midnight on.
func (j *Job) Window(business time.Time) time.Time {
	zone, err := loadZone(j.AfterZone)
	if err != nil {
		zone = time.UTC
	}
	at, window := business.In(zone), cmp.Or(j.AfterWindow, oneDay)
	if window <= time.Hour {
		_, offset := at.Zone()
		ms, ahead := window.Milliseconds(), int64(offset)*1000
		begin := at.UnixMilli() + ahead
		begin -= ((begin % ms) + ms) % ms
		return time.UnixMilli(begin - ahead).UTC()
	}
	if window < oneDay {
		since := time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second
		since -= since % window
		return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, int(since/time.Second), 0, zone).UTC()
	}
	days, most := daysSince1970(at), int(window/oneDay)
	back := ((days-firstMonday)%most + most) % most
	return time.Date(at.Year(), at.Month(), at.Day()-back, 0, 0, 0, 0, zone).UTC()
}

// firstMonday is the fifth day of 1970.
const firstMonday = 4

// daysSince1970 counts the days of the calendar.
func daysSince1970(at time.Time) int {
	civil := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	return int(civil.Unix() / int64(oneDay/time.Second))
}

// WindowTimeout returns how long after its first success a window is open: AfterTimeout, or a
// day where that is zero.
func (j *Job) WindowTimeout() time.Duration { return cmp.Or(j.AfterTimeout, oneDay) }

// Missing, for authors of stores, returns the jobs of After and AfterKeys that are none of
// those which have succeeded, ids as "#7" and keys as they are. Has reports it of an id, or of
// an app and key.
func (j *Job) Missing(has func(id int64, app, key string) bool) (missing []string) {
	for _, id := range j.After {
		if !has(id, "", "") {
			missing = append(missing, store.IDRef(id))
		}
	}
	for _, ref := range j.AfterKeys {
		if app, key, _ := store.SplitRef(ref); !has(0, app, key) {
			missing = append(missing, ref)
		}
	}
	return slices.Clip(missing)
}
