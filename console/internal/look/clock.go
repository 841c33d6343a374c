package look

// Readings of clocks that are set back and forward: which come twice, and which never.

import "time"

// Twin is the other moment at which the clocks of t's zone show what they show at t, where they
// are set back in between.
func Twin(t time.Time) (other time.Time, is bool) {
	start, end := t.ZoneBounds()
	_, offset := t.Zone()
	if !end.IsZero() {
		_, next := end.Zone()
		if other = t.Add(time.Duration(offset-next) * time.Second); next < offset && !other.Before(end) {
			return other, true
		}
	}
	if !start.IsZero() {
		_, last := start.Add(-time.Second).Zone()
		if other = t.Add(-time.Duration(last-offset) * time.Second); last > offset && other.Before(start) {
			return other, true
		}
	}
	return time.Time{}, false
}

// ReadingIn is the moment at which the clocks of the zone show the text, the first of two; exists
// is false where they never do.
func ReadingIn(layout, text string, zone *time.Location) (at time.Time, exists bool, err error) {
	if at, err = time.ParseInLocation(layout, text, zone); err != nil {
		return at, false, err
	}
	if other, is := Twin(at); is && other.Before(at) {
		at = other
	}
	same, err := time.Parse(layout, at.Format(layout))
	if err != nil {
		return at, false, err
	}
	typed, err := time.Parse(layout, text)
	return at, err == nil && typed.Equal(same), err
}
