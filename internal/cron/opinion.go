package cron

import (
	"fmt"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// The second opinion: gronx reads a crontab expression too, by code that shares
// nothing with this package. It is asked which minutes, which hours and which of
// the days to come are the expression's, a bounded number of questions. Its
// search is not called: that can give up, or take very long.

const (
	// opinionDays is how many days are compared: a year with a leap day.
	opinionDays = 366
	// opinionBytes bounds the work for one expression: of one that is longer
	// than opinionBytes/opinionDays, fewer days are compared.
	opinionBytes = 40_000
)

// A Difference shows where this package and gronx read an expression
// differently: what each fires at next, from the first time of the wall clock at
// which only one of them fires.
type Difference struct {
	Here, Gronx string // such as "2026-05-04 09:30"
}

// SecondOpinion compares how this package and gronx read the expression, over the
// year to come on the wall clock of a zone, less of it for very long expressions.
// It reports whether the two differ, and where. What happens when clocks change
// is no part of it, nor how gronx searches.
func (c *Crontab) SecondOpinion(now time.Time, loc *time.Location) (d Difference, differ bool) {
	if loc == nil {
		loc = time.UTC
	}
	civil := min(max(now.Unix()+offsetAt(loc, now.Unix()), 0), civilEnd-1)
	first, minute := int(civil/daySeconds), int(civil%daySeconds/60)
	text := c.textForGronx()
	n := min(opinionDays, max(1, opinionBytes/len(text)), civilDays-first)
	ours := c.reading(first, n)
	theirs, failed := readByGronx(gronx.New(), text, first, n)
	day, minute, differ := ours.differsFrom(&theirs, minute)
	if !differ {
		return Difference{}, false
	}
	d = Difference{Here: ours.show(day, minute), Gronx: theirs.show(day, minute)}
	if failed != nil {
		d.Gronx += " (" + failed.Error() + ")"
	}
	return d, true
}

// textForGronx returns the expression, and for the one tag that gronx lacks
// another of the same meaning.
func (c *Crontab) textForGronx() string {
	texts, _ := split(c.source) // was parsed before
	text := strings.Join(texts, " ")
	if text == "@MIDNIGHT" {
		return "@DAILY"
	}
	return text
}

// A reading is what an expression means over some days.
type reading struct {
	first   int // the number of the first day
	days    []bool
	hours   uint32
	minutes uint64
}

// reading returns what the compiled fields mean.
func (c *Crontab) reading(first, n int) reading {
	r := reading{first: first, days: make([]bool, n), hours: c.hours, minutes: c.minutes}
	for i := range r.days {
		r.days[i] = c.has(int64(first+i)*daySeconds + int64(c.start))
	}
	return r
}

// readByGronx asks gronx what an expression means. The error says what kept gronx
// from reading all of it; what it had no answer for does not fire.
func readByGronx(g *gronx.Gronx, text string, first, n int) (r reading, failed error) {
	r = reading{first: first, days: make([]bool, n)}
	defer func() {
		if v := recover(); v != nil {
			failed = fmt.Errorf("panic: %v", v)
		}
	}()
	segments, err := gronx.Segments(text)
	if err != nil {
		return r, err
	}
	due := func(at time.Time, positions ...int) bool {
		asked := []string{"*", "*", "*", "*", "*", "*"}
		for _, p := range positions {
			asked[p] = segments[p]
		}
		g.C.SetRef(at)
		yes, err := g.SegmentsDue(asked)
		if failed == nil {
			failed = err
		}
		return yes
	}
	midnight := time.Unix(int64(first)*daySeconds, 0).UTC()
	for m := range 60 {
		if due(midnight.Add(time.Duration(m)*time.Minute), 0, 1) {
			r.minutes |= 1 << m
		}
	}
	for h := range 24 {
		if due(midnight.Add(time.Duration(h)*time.Hour), 2) {
			r.hours |= 1 << h
		}
	}
	for i := range r.days {
		r.days[i] = due(midnight.AddDate(0, 0, i), 3, 4, 5)
	}
	return r, failed
}

// fires reports whether a minute of one of the days is the expression's.
func (r *reading) fires(day, minute int) bool {
	return r.days[day] && r.hours>>(minute/60)&1 != 0 && r.minutes>>(minute%60)&1 != 0
}

// differsFrom returns the first minute, of the first day from the given one on,
// at which only one of two readings fires.
func (r *reading) differsFrom(other *reading, minute int) (day, at int, differ bool) {
	sameTimes := r.hours == other.hours && r.minutes == other.minutes
	for day := range r.days {
		if sameTimes && r.days[day] == other.days[day] {
			minute = 0
			continue
		}
		for ; minute < 24*60; minute++ {
			if r.fires(day, minute) != other.fires(day, minute) {
				return day, minute, true
			}
		}
		minute = 0
	}
	return 0, 0, false
}

// show returns the first time at or after a minute of a day, for people.
func (r *reading) show(day, minute int) string {
	for ; day < len(r.days); day++ {
		for ; minute < 24*60; minute++ {
			if r.fires(day, minute) {
				return time.Unix(int64(r.first+day)*daySeconds+int64(minute)*60, 0).UTC().Format("2006-01-02 15:04")
			}
		}
		minute = 0
	}
	return fmt.Sprintf("never within %d days", len(r.days))
}
