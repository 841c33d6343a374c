package cron

import "math/bits"

// A dayRule says which days of a month match. Both dialects build one; its
// answer depends only on the length of a month and the weekday of its first,
// so it is tabulated once and never asked again.
type dayRule struct {
	anyDay      bool   // the day-of-month field restricts nothing
	anyWeekday  bool   // the day-of-week field restricts nothing
	either      bool   // match when either field does (crontab), not both
	days        uint32 // bit d: the d-th
	fromLast    uint32 // bit n: n days before the last (L, L-n)
	near        uint32 // bit d: the weekday nearest to the d-th (nW)
	nearLast    uint32 // bit n: the weekday nearest to n days before the last (LW, L-nW)
	weekdays    uint8  // bit w: every weekday w, 0 for Sunday
	lastWeekday uint8  // bit w: the last weekday w (nL)
	nth         [7]uint8
}

// A dayTable holds the matching days, bit d for the d-th, of a month of
// 28+i days whose first is weekday w.
type dayTable [4][7]uint32

func (r *dayRule) table() (t dayTable) {
	for i := range t {
		for first := range t[i] {
			t[i][first] = r.match(28+i, first)
		}
	}
	return t
}

// match returns the matching days of a month of the given length whose first is
// the given weekday.
func (r *dayRule) match(length, first int) uint32 {
	all := uint32(1)<<(length+1) - 2
	day, week := all, all
	if !r.anyDay {
		day = r.matchDays(length, first) & all
	}
	if !r.anyWeekday {
		week = r.matchWeekdays(length, first) & all
	}
	if r.either && !r.anyDay && !r.anyWeekday {
		return day | week
	}
	return day & week
}

func (r *dayRule) matchDays(length, first int) uint32 {
	m := r.days
	for v := r.fromLast; v != 0; v &= v - 1 {
		if d := length - bits.TrailingZeros32(v); d >= 1 {
			m |= 1 << d
		}
	}
	for v := r.near; v != 0; v &= v - 1 {
		m |= nearestWorkday(bits.TrailingZeros32(v), length, first)
	}
	for v := r.nearLast; v != 0; v &= v - 1 {
		m |= nearestWorkday(length-bits.TrailingZeros32(v), length, first)
	}
	return m
}

// nearestWorkday returns the bit of the weekday from Monday to Friday nearest to
// a day, without leaving the month; no bit when the month has no such day.
func nearestWorkday(day, length, first int) uint32 {
	if day < 1 || day > length {
		return 0
	}
	switch (first + day - 1) % 7 {
	case 6:
		if day == 1 {
			day += 2
		} else {
			day--
		}
	case 0:
		if day == length {
			day -= 2
		} else {
			day++
		}
	}
	return 1 << day
}

func (r *dayRule) matchWeekdays(length, first int) (m uint32) {
	for d := 1; d <= length; d++ {
		w := (first + d - 1) % 7
		nth := (d-1)/7 + 1
		last := d+7 > length
		if r.weekdays>>w&1 != 0 || r.nth[w]>>nth&1 != 0 || last && r.lastWeekday>>w&1 != 0 {
			m |= 1 << d
		}
	}
	return m
}

// possible returns those of the months in which some day can match at all. In
// 400 years every month begins on every weekday, leap Februaries too, so a row
// of the table without a day is a month that never fires.
func (t *dayTable) possible(months uint16) (live uint16) {
	for m := 1; m <= 12; m++ {
		rows := t[monthLength[m]-28 : monthLength[m]-27]
		if m == 2 {
			rows = t[0:2]
		}
		for _, row := range rows {
			for _, days := range row {
				if days != 0 {
					live |= months & (1 << m)
				}
			}
		}
	}
	return live
}
