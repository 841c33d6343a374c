package cron

import "math/bits"

// Expr is a compiled Quartz expression. It is immutable and safe for concurrent
// use.
type Expr struct {
	calendar
	source string
}

// String returns the expression as it was given to [Parse].
func (e *Expr) String() string { return e.source }

// A calendar is the compiled form both dialects share: the set of matching
// wall clock readings.
type calendar struct {
	seconds, minutes uint64
	hours            uint32
	months           uint16 // bit m, only those with a possible day
	fixedHours       bool   // the hour field lists plain values only
	start            int32  // the first matching second of a day
	years            bitset // bit y-1970
	days             dayTable
	rule             dayRule // kept to describe the schedule
	namedMonths      uint16  // the months as written, impossible ones too
}

// finish derives what the search needs from the parsed fields.
func (c *calendar) finish() {
	c.days = c.rule.table()
	c.namedMonths = c.months
	c.months = c.days.possible(c.months)
	c.start = int32(bits.TrailingZeros32(c.hours)*3600 + bits.TrailingZeros64(c.minutes)*60 + bits.TrailingZeros64(c.seconds))
}

// nextCivil returns the first matching civil second at or after from.
func (c *calendar) nextCivil(from int64) (int64, bool) {
	if from >= civilEnd || c.months == 0 {
		return 0, false
	}
	from = max(from, 0)
	day, second := int(from/daySeconds), int(from%daySeconds)
	year, month, d := dateOf(day)
	if !c.years.has(year - firstYear) {
		month = 12 // nothing left in this year
	} else if c.months>>month&1 != 0 {
		first := day - d + 1
		left := c.days[daysIn(year, month)-28][weekdayOf(first)] >> d << d
		if left>>d&1 != 0 {
			if t := c.timeFrom(second); t >= 0 {
				return int64(day)*daySeconds + int64(t), true
			}
			left &^= 1 << d
		}
		if left != 0 {
			return c.opening(first, left), true
		}
	}
	return c.nextMonth(year, month)
}

// nextMonth returns the first matching civil second after the given month.
func (c *calendar) nextMonth(year, month int) (int64, bool) {
	for {
		rest := c.months >> (month + 1) << (month + 1)
		if rest == 0 {
			n := c.years.next(year - firstYear + 1)
			if n < 0 {
				return 0, false
			}
			year, rest = firstYear+n, c.months
		}
		month = bits.TrailingZeros16(rest)
		first := firstOf(year, month)
		if days := c.days[daysIn(year, month)-28][weekdayOf(first)]; days != 0 {
			return c.opening(first, days), true
		}
	}
}

// opening returns the first matching second of the first of the given days.
func (c *calendar) opening(first int, days uint32) int64 {
	return int64(first-1+bits.TrailingZeros32(days))*daySeconds + int64(c.start)
}

// timeFrom returns the first matching second of a day at or after the given
// one, or -1.
func (c *calendar) timeFrom(second int) int {
	h, m, s := second/3600, second/60%60, second%60
	if c.hours>>h&1 != 0 {
		if c.minutes>>m&1 != 0 {
			if left := c.seconds >> s; left != 0 {
				return second + bits.TrailingZeros64(left)
			}
		}
		if left := c.minutes >> (m + 1); left != 0 {
			m += 1 + bits.TrailingZeros64(left)
			return h*3600 + m*60 + bits.TrailingZeros64(c.seconds)
		}
	}
	if left := c.hours >> (h + 1); left != 0 {
		hour := h + 1 + bits.TrailingZeros32(left)
		return hour*3600 + int(c.start)%3600
	}
	return -1
}

// has reports whether a civil second matches.
func (c *calendar) has(civil int64) bool {
	next, ok := c.nextCivil(civil)
	return ok && next == civil
}

// A bitset holds the values of one field.
type bitset [4]uint64

func (b *bitset) add(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b *bitset) has(i int) bool { return b[i>>6&3]>>(i&63)&1 != 0 }

// low returns the members below 64, all there are outside the year field.
func (b *bitset) low() uint64 { return b[0] }

// next returns the smallest member that is at least i, or -1.
func (b *bitset) next(i int) int {
	for ; i < 256; i = i&^63 + 64 {
		if left := b[i>>6] >> (i & 63); left != 0 {
			return i + bits.TrailingZeros64(left)
		}
	}
	return -1
}
