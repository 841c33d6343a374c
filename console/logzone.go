package console

// By which zone the times in a log are. An executor writes them by its own, and nobody says which
// that is; but they lie between the beginning and the end of the run.

import (
	"strings"
	"time"

	"github.com/xxljob/xxljob/console/internal/look"
)

// logZone is the zone of the times in a log, as far as it can be told.
type logZone struct {
	Known         bool
	Text          string        // as "UTC+8"
	Behind, Ahead time.Duration // of the times on the page; both zero where they are by the same clock
}

const (
	zoneStep  = 15 * time.Minute // zones differ by multiples of it
	clockSlip = 2 * time.Minute  // clocks of machines by less than this
)

// wallTime is the time that a line begins with, as if it were one in UTC.
func wallTime(line string) (time.Time, bool) {
	if len(line) < len(time.DateTime) {
		return time.Time{}, false
	}
	at, err := time.Parse(time.DateTime, strings.Replace(line[:len(time.DateTime)], "T", " ", 1))
	return at, err == nil
}

// wallTimes are the first and the last time that lines of a text begin with.
func wallTimes(text string) (first, last time.Time, found bool) {
	for line := range strings.Lines(text) {
		at, has := wallTime(line)
		if !has {
			continue
		}
		if last = at; !found {
			first, found = at, true
		}
	}
	return first, last, found
}

// zoneBetween is how far the clock that has shown these times is ahead of UTC, where only one zone
// puts them between the beginning and the end of a run.
func zoneBetween(first, last, began, ended time.Time) (offset time.Duration, known bool) {
	least, most := last.Sub(ended)-clockSlip, first.Sub(began)+clockSlip
	offset = least.Truncate(zoneStep)
	for offset < least {
		offset += zoneStep
	}
	return offset, offset <= most && offset+zoneStep > most && offset >= -12*time.Hour && offset <= 14*time.Hour
}

// zoneOfLog says by which zone the times in lines of the request's run are. Where those on the page
// leave it open, since the run takes long, the first line is looked at.
func (q *request) zoneOfLog(from int, text string) (z logZone) {
	first, last, found := wallTimes(text)
	began, ended := q.run.Started, q.run.Ended
	if !found || began.IsZero() {
		return z
	}
	if ended.IsZero() {
		ended = time.Now()
	}
	offset, known := zoneBetween(first, last, began, ended)
	if !known && from > 1 {
		if head, err := q.linesFrom(1); err == nil {
			if at, _, has := wallTimes(head.text); has {
				offset, known = zoneBetween(at, last, began, ended)
			}
		}
	}
	if !known {
		return z
	}
	_, seconds := began.In(q.look.Zone).Zone()
	z = logZone{Known: true, Text: look.Offset(int(offset / time.Second))}
	switch apart := time.Duration(seconds)*time.Second - offset; {
	case apart > 0:
		z.Behind = apart
	case apart < 0:
		z.Ahead = -apart
	}
	return z
}
