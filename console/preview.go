package console

// What a schedule means: in words, by its next instants, and on days on which clocks change.

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/look"
)

const instantsOfAPreview = 10

// preview is what is said of a schedule.
type preview struct {
	Words   string
	Next    []time.Time
	Zone    string // of the schedule, where that is not the viewer's
	Fault   string
	Other   string // what the expression means in the other dialect, where that differs
	Changes []clockChange
}

// clockChange is a day on which the clocks of the schedule's zone change.
type clockChange struct {
	At       time.Time
	Forward  bool
	From, To string // offsets
	Near     []nearInstant
}

// nearInstant is an instant around such a change, by the clocks of the zone, and what the change
// makes of it: "moved", "first", "second" or "missing", or "".
type nearInstant struct{ Text, Note string }

// preview answers with what the fields of a form mean.
func (q *request) preview() error {
	s := xxljob.Schedule{Type: xxljob.ScheduleType(q.Query("type")), Conf: strings.TrimSpace(q.Query("conf")), Zone: q.Query("zone"), DST: xxljob.DST(q.Query("dst"))}
	if !s.GoesByClocks() {
		s.Zone, s.DST = "", ""
	}
	if s.IsManual() {
		s.Conf = ""
	}
	return q.show("preview", http.StatusOK, q.previewOf(s, time.Now()))
}

func (q *request) previewOf(s xxljob.Schedule, now time.Time) (p preview) {
	if s.Zone != "" && look.Zone(s.Zone) == nil {
		p.Fault = q.text("fault.invalid.zone")
		return p
	}
	next, err := s.Upcoming(now, instantsOfAPreview)
	if err != nil && !errors.Is(err, xxljob.ErrNeverFires) {
		p.Fault = q.text("fault.invalid.conf", "why", why(err))
		return p
	}
	p.Words, p.Next = s.DescribeIn(q.look.Language.Tag), next
	if len(next) == 0 && !s.IsManual() {
		p.Fault = q.text("problem.neverfires")
	}
	if !s.GoesByClocks() {
		return p
	}
	zone := look.Zone(s.Zone)
	if zone == nil {
		zone = time.UTC
	}
	if zone.String() != q.look.Zone.String() {
		p.Zone = zone.String()
	}
	p.Other = q.otherDialect(s)
	p.Changes = clockChanges(s, zone, now)
	return p
}

// otherDialect says what an expression means to who reads it as crontab, where that is
// something else: in Quartz 1 is Sunday.
func (q *request) otherDialect(s xxljob.Schedule) string {
	fields := strings.Fields(s.Conf)
	other := s
	switch {
	case s.Type == xxljob.ScheduleCron && (len(fields) == 6 || len(fields) == 7) && fields[0] == "0" && strings.ContainsAny(fields[5], "1234567"):
		day := fields[3]
		if day == "?" {
			day = "*"
		}
		other.Type, other.Conf = xxljob.ScheduleCrontab, strings.Join([]string{fields[1], fields[2], day, fields[4], fields[5]}, " ")
	case s.Type == xxljob.ScheduleCrontab && len(fields) == 5 && strings.ContainsAny(fields[4], "1234567") && fields[2] == "*":
		other.Type, other.Conf = xxljob.ScheduleCron, strings.Join([]string{"0", fields[0], fields[1], "?", fields[3], fields[4]}, " ")
	case s.Type == xxljob.ScheduleCronSeconds && len(fields) == 6 && strings.ContainsAny(fields[5], "1234567") && (fields[3] == "*" || fields[3] == "?"):
		other.Type, other.Conf = xxljob.ScheduleCron, strings.Join([]string{fields[0], fields[1], fields[2], "?", fields[4], fields[5]}, " ")
	case s.Type == xxljob.ScheduleCronSeconds && s.EitherDay():
		return q.text("preview.spring")
	default:
		return ""
	}
	if _, err := other.Upcoming(time.Now(), 1); err != nil {
		return ""
	}
	words := other.DescribeIn(q.look.Language.Tag)
	if words == s.DescribeIn(q.look.Language.Tag) {
		return ""
	}
	if other.Type == xxljob.ScheduleCron {
		return q.text("preview.quartz", "words", words)
	}
	return q.text("preview.crontab", "words", words)
}

const clockLayout = "2006-01-02 15:04:05 -07:00"

// clockChanges are the next two changes of the zone's clocks, with the instants of the schedule
// around each: at most a dozen, so that a schedule of every minute does not fill the page.
func clockChanges(s xxljob.Schedule, zone *time.Location, now time.Time) (list []clockChange) {
	at := now.In(zone)
	for range 2 {
		_, end := at.ZoneBounds()
		if end.IsZero() || end.Sub(now) > 400*24*time.Hour {
			break
		}
		before, after := end.Add(-time.Second).In(zone), end.In(zone)
		_, from := before.Zone()
		_, to := after.Zone()
		c := clockChange{At: end, Forward: to > from, From: before.Format("-07:00"), To: after.Format("-07:00")}
		w := wallChange{s: s, end: end, from: time.Duration(from) * time.Second, to: time.Duration(to) * time.Second}
		c.Near = w.near(zone)
		list = append(list, c)
		at = after
	}
	return list
}

// wallChange is a change of clocks from one offset to another, as a schedule meets it.
type wallChange struct {
	s        xxljob.Schedule
	end      time.Time // the first instant with the new offset
	from, to time.Duration
}

const (
	mostNear   = 12
	nearChange = 3 * time.Hour
)

// noteOf says what a change of clocks, if one is near, makes of an instant of a schedule.
func noteOf(s xxljob.Schedule, t time.Time) string {
	zone := look.Zone(s.Zone)
	if zone == nil || !s.GoesByClocks() {
		return ""
	}
	start, end := t.In(zone).ZoneBounds()
	for _, change := range []time.Time{start, end} {
		if change.IsZero() || t.Sub(change).Abs() > nearChange {
			continue
		}
		_, from := change.Add(-time.Second).In(zone).Zone()
		_, to := change.In(zone).Zone()
		w := wallChange{s: s, end: change, from: time.Duration(from) * time.Second, to: time.Duration(to) * time.Second}
		if note := w.note(t); note != "" {
			return note
		}
	}
	return ""
}

// near are the instants from three hours before the change to three hours after it.
func (w wallChange) near(zone *time.Location) (list []nearInstant) {
	found, _ := w.s.Upcoming(w.end.Add(-nearChange-time.Millisecond), mostNear)
	moved := false
	for _, t := range found {
		if !t.Before(w.end.Add(nearChange)) {
			break
		}
		n := nearInstant{Text: t.In(zone).Format(clockLayout), Note: w.note(t)}
		moved = moved || n.Note == "moved"
		list = append(list, n)
	}
	if reading, is := w.inGap(); is && !moved {
		list = append(list, nearInstant{Text: reading.Format("2006-01-02 15:04:05"), Note: "missing"})
	}
	return list
}

// note says what the change makes of an instant.
func (w wallChange) note(t time.Time) string {
	offset := w.from
	if !t.Before(w.end) {
		offset = w.to
	}
	wall := t.Add(offset)
	repeated := w.to < w.from && !wall.Before(w.end.Add(w.to)) && wall.Before(w.end.Add(w.from))
	switch {
	case !w.reads(wall):
		return "moved"
	case repeated && t.Before(w.end):
		return "first"
	case repeated:
		return "second"
	}
	return ""
}

// onWall is the schedule on a clock that is never changed.
func (w wallChange) onWall() xxljob.Schedule { return w.s.In("UTC").WithDST(xxljob.DSTCivil) }

// reads reports whether the schedule names a reading of the clock, given as if it were in UTC.
func (w wallChange) reads(wall time.Time) bool {
	next, err := w.onWall().Next(wall.Add(-time.Millisecond))
	return err == nil && next.Equal(wall)
}

// inGap is the first reading that the schedule names of those that the clocks leave out.
func (w wallChange) inGap() (time.Time, bool) {
	next, err := w.onWall().Next(w.end.Add(w.from).Add(-time.Millisecond))
	return next, err == nil && !next.IsZero() && next.Before(w.end.Add(w.to))
}
