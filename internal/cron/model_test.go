package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A window is a few days of a zone around a change of offset, minute by minute,
// as the standard library tells them: the ground the model walks on.
type window struct {
	loc      *time.Location
	from, to int64             // Unix seconds
	shown    map[int64][]int64 // civil second -> instants that show it
}

func newWindow(t *testing.T, name, middle string) *window {
	at, err := time.Parse("2006-01-02", middle)
	if err != nil {
		t.Fatal(err)
	}
	w := &window{loc: zone(t, name), shown: map[int64][]int64{}}
	w.from, w.to = at.AddDate(0, 0, -4).Unix(), at.AddDate(0, 0, 5).Unix()
	for u := w.from; u < w.to; u += 60 {
		c := w.civil(u)
		w.shown[c] = append(w.shown[c], u)
	}
	return w
}

func (w *window) civil(unix int64) int64 {
	t := time.Unix(unix, 0).In(w.loc)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC).Unix()
}

// A plan is a random schedule of whole minutes, as text and as what it means.
type plan struct {
	minutes, hours, days map[int]bool // days by weekday
	minuteText, hourText string
	fixed                bool
}

func randomPlan(r *rand.Rand) plan {
	p := plan{days: map[int]bool{}}
	p.minutes, p.minuteText, _ = randomField(r, 60)
	p.hours, p.hourText, p.fixed = randomField(r, 24)
	for len(p.days) == 0 {
		for d := range 7 {
			if r.IntN(3) > 0 {
				p.days[d] = true
			}
		}
	}
	return p
}

func randomField(r *rand.Rand, size int) (set map[int]bool, text string, plain bool) {
	set = map[int]bool{}
	a, b, step := r.IntN(size), r.IntN(size), 1+r.IntN(size-1)
	switch r.IntN(5) {
	case 0:
		for v := range size {
			set[v] = true
		}
		return set, "*", false
	case 1:
		for v := a; v < size; v += step {
			set[v] = true
		}
		return set, fmt.Sprintf("%d/%d", a, step), false
	case 2:
		a, b = min(a, b), max(a, b)
		for v := a; v <= b; v++ {
			set[v] = true
		}
		return set, fmt.Sprintf("%d-%d", a, b), false
	}
	var items []string
	for range 1 + r.IntN(3) {
		v := r.IntN(size)
		if size == 24 && r.IntN(2) == 0 {
			v = []int{23, 0, 1, 2, 3}[r.IntN(5)] // where the clocks change
		}
		set[v] = true
		items = append(items, fmt.Sprint(v))
	}
	return set, strings.Join(items, ","), true
}

func (p *plan) quartz() string {
	return "0 " + p.minuteText + " " + p.hourText + " ? * " + p.weekdays(1)
}

func (p *plan) crontab() string {
	return p.minuteText + " " + p.hourText + " * * " + p.weekdays(0)
}

func (p *plan) weekdays(sunday int) string {
	var items []string
	for d := range p.days {
		items = append(items, fmt.Sprint(d+sunday))
	}
	slices.Sort(items)
	return strings.Join(items, ",")
}

func (p *plan) has(civil int64) bool {
	t := time.Unix(civil, 0).UTC()
	return p.minutes[t.Minute()] && p.hours[t.Hour()] && p.days[int(t.Weekday())]
}

// fires returns the instants of the plan in the window under the Civil policy,
// in ascending order, straight from the rules.
func (p *plan) fires(w *window) []int64 {
	var fires []int64
	for c, end := w.civil(w.from), w.civil(w.to); c < end; c += 60 {
		instants := w.shown[c]
		switch {
		case !p.has(c):
		case len(instants) > 0 && p.fixed:
			fires = append(fires, instants[0])
		case len(instants) > 0:
			fires = append(fires, instants...)
		case p.fixed:
			fires = append(fires, w.firstShowingMoreThan(c))
		}
	}
	slices.Sort(fires)
	return slices.Compact(fires)
}

func (w *window) firstShowingMoreThan(civil int64) int64 {
	for u := w.from; u < w.to; u += 60 {
		if w.civil(u) > civil {
			return u
		}
	}
	return 0
}

// next returns the plan's next fire, or 0 when it is beyond the window.
func (p *plan) next(w *window, fires []int64, after int64, policy Policy) int64 {
	if policy == Civil {
		i, found := slices.BinarySearch(fires, after)
		if found {
			i++
		}
		if i == len(fires) {
			return 0
		}
		return fires[i]
	}
	c, end := w.civil(after+1)+59, w.civil(w.to)
	for c -= c % 60; c < end; c += 60 {
		if instants := w.shown[c]; p.has(c) && len(instants) > 0 {
			return instants[len(instants)-1]
		}
	}
	return 0
}

// Random schedules against the model, in zones whose clocks change by an hour,
// by half an hour, by a day, at night, at midnight, and for good.
func TestAgainstModel(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of schedules, one after the other; leave out -short")
	}
	windows := []struct{ zone, day string }{
		{"UTC", "2026-03-08"},
		{"America/New_York", "2026-03-08"}, {"America/New_York", "2026-11-01"},
		{"Europe/Berlin", "2026-03-29"}, {"Europe/Berlin", "2026-10-25"},
		{"Australia/Lord_Howe", "2026-04-05"}, {"Australia/Lord_Howe", "2026-10-04"},
		{"America/Havana", "2026-03-08"}, {"America/Havana", "2026-11-01"},
		{"America/Santiago", "2026-04-05"}, {"America/Santiago", "2026-09-06"},
		{"Atlantic/Azores", "2026-03-29"}, {"America/Sao_Paulo", "2018-11-04"},
		{"America/Sao_Paulo", "2018-02-18"}, {"Pacific/Apia", "2011-12-30"},
		{"Africa/Cairo", "2027-04-30"}, {"Africa/Cairo", "2027-10-29"},
		{"Africa/Casablanca", "2026-02-15"}, {"Asia/Pyongyang", "2015-08-15"},
		{"America/Caracas", "2016-05-01"}, {"America/Ciudad_Juarez", "2022-11-30"},
		{"America/St_Johns", "2007-03-11"}, {"Europe/Dublin", "2048-10-25"},
		{"America/New_York", "2049-01-01"},
	}
	r := rand.New(rand.NewPCG(20, 26))
	checked := 0
	for _, c := range windows {
		w := newWindow(t, c.zone, c.day)
		for range 40 {
			p := randomPlan(r)
			fires := p.fires(w)
			quartz, tab := compile(t, p.quartz()), compile(t, p.crontab())
			for range 40 {
				after := w.from + 86400 + r.Int64N(w.to-w.from-3*86400)
				if r.IntN(2) == 0 && len(fires) > 0 {
					after = fires[r.IntN(len(fires))] - r.Int64N(2)
				}
				if after < w.from+2*daySeconds {
					continue
				}
				for _, policy := range []Policy{Civil, Quartz} {
					want := p.next(w, fires, after, policy)
					if want == 0 || want > w.to-2*daySeconds {
						continue
					}
					at := time.Unix(after, r.Int64N(1e9))
					schedules := []compiled{quartz}
					if checked%8 == 0 {
						schedules = append(schedules, tab)
					}
					for _, s := range schedules {
						if got := s.Next(at, w.loc, policy).Unix(); got != want {
							t.Fatalf("%s in %s under %s after %s: got %s, want %s", p.quartz(), c.zone, policy,
								at.In(w.loc), time.Unix(got, 0).In(w.loc), time.Unix(want, 0).In(w.loc))
						}
					}
					checked++
				}
			}
		}
	}
	t.Logf("%d answers checked", checked)
	if checked < 30000 {
		t.Errorf("only %d answers checked", checked)
	}
}
