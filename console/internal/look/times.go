package look

// Times and lengths of time, as they are shown to somebody.

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Zone is a zone by its IANA name, or nil. A name leads to a file, so it is one of a few
// letters; the local zone of the process is nobody's.
func Zone(name string) *time.Location {
	if name == "" || name == "Local" || len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_+-", r))
	}) {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return zone
}

// InZoneOf takes over the zone of a job's schedule, for who has chosen that.
func (l *Look) InZoneOf(name string) {
	if zone := Zone(name); zone != nil && l.Chosen.Zone == jobsOwn {
		l.Zone = zone
	}
}

// Offset is an offset from UTC in seconds, as "UTC+8".
func Offset(seconds int) string {
	if seconds == 0 {
		return "UTC"
	}
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	text := fmt.Sprintf("UTC%c%d", sign, seconds/3600)
	if m := seconds % 3600 / 60; m != 0 {
		text += fmt.Sprintf(":%02d", m)
	}
	return text
}

// Stamp is a moment to the second, or to the millisecond where it has some. A reading that comes
// twice has the offset behind it.
func (l *Look) Stamp(t time.Time) string {
	layout := "2006-01-02 15:04:05"
	if t.Nanosecond() != 0 {
		layout += ".000"
	}
	in := t.In(l.Zone)
	if _, twice := Twin(in); twice {
		layout += " -07:00"
	}
	return in.Format(layout)
}

// Rounded leaves out of a length what nobody reads.
func Rounded(d time.Duration) time.Duration {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond)
	case d < time.Minute:
		return d.Round(100 * time.Millisecond)
	case d < time.Hour:
		return d.Round(time.Second)
	case d < 48*time.Hour:
		return d.Round(time.Minute)
	}
	return d.Round(time.Hour)
}

// Span is a length of time in words: its two largest units.
func (l *Look) Span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Second:
		return sign + l.Text("unit.ms", "n", strconv.FormatInt(d.Milliseconds(), 10))
	case d < time.Minute:
		return sign + l.Text("unit.s", "n", strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0"))
	}
	return sign + l.units(Rounded(d), 2)
}

// Exact is a length of time in words to the second.
func (l *Look) Exact(d time.Duration) string { return l.units(d, 4) }

// units is a length of time by so many of its largest units.
func (l *Look) units(d time.Duration, most int) string {
	parts := []struct {
		n    time.Duration
		unit string
	}{{d / (24 * time.Hour), "unit.d"}, {d / time.Hour % 24, "unit.h"}, {d / time.Minute % 60, "unit.min"}, {d / time.Second % 60, "unit.s"}}
	var out []string
	for _, part := range parts {
		if part.n > 0 && len(out) < most {
			out = append(out, l.Text(part.unit, "n", strconv.FormatInt(int64(part.n), 10)))
		} else if len(out) > 0 && most < len(parts) {
			break
		}
	}
	return strings.Join(out, " ")
}
