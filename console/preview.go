package console

// What a schedule means: in words, by its next instants, and on days on which clocks change.

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
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
	Near     []string
}

// preview answers with what the fields of a form mean.
func (q *request) preview() error {
	s := xxljob.Schedule{Type: xxljob.ScheduleType(q.query("type")), Conf: strings.TrimSpace(q.query("conf")), Zone: q.query("zone"), DST: xxljob.DST(q.query("dst"))}
	clocks := s.Type == xxljob.ScheduleCron || s.Type == xxljob.ScheduleCrontab
	if !clocks {
		s.Zone, s.DST = "", ""
	}
	if s.IsManual() {
		s.Conf = ""
	}
	return q.show("preview", http.StatusOK, q.previewOf(s, time.Now()))
}

func (q *request) previewOf(s xxljob.Schedule, now time.Time) (p preview) {
	next, err := s.Upcoming(now, instantsOfAPreview)
	if err != nil && !errors.Is(err, xxljob.ErrNeverFires) {
		p.Fault = strings.TrimPrefix(err.Error(), "xxljob: ")
		return p
	}
	p.Words, p.Next = s.DescribeIn(q.look.language.Tag), next
	if len(next) == 0 && !s.IsManual() {
		p.Fault = q.text("problem.neverfires")
	}
	if s.Type != xxljob.ScheduleCron && s.Type != xxljob.ScheduleCrontab {
		return p
	}
	zone := zoneOf(s.Zone)
	if zone == nil {
		zone = time.UTC
	}
	if zone.String() != q.look.zone.String() {
		p.Zone = zone.String()
	}
	p.Other = q.otherDialect(s)
	p.Changes = q.clockChanges(s, zone, now)
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
	default:
		return ""
	}
	if _, err := other.Upcoming(time.Now(), 1); err != nil {
		return ""
	}
	words := other.DescribeIn(q.look.language.Tag)
	if words == s.DescribeIn(q.look.language.Tag) {
		return ""
	}
	if other.Type == xxljob.ScheduleCron {
		return q.text("preview.quartz", "words", words)
	}
	return q.text("preview.crontab", "words", words)
}

// clockChanges are the next two changes of the zone's clocks, with the instants of the schedule
// around each: at most a dozen, so that a schedule of every minute does not fill the page.
func (q *request) clockChanges(s xxljob.Schedule, zone *time.Location, now time.Time) (list []clockChange) {
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
		near, _ := s.Upcoming(end.Add(-3*time.Hour-time.Millisecond), 12)
		for _, t := range near {
			if t.Before(end.Add(3 * time.Hour)) {
				c.Near = append(c.Near, t.In(zone).Format("15:04:05 -07:00"))
			}
		}
		list = append(list, c)
		at = after
	}
	return list
}
