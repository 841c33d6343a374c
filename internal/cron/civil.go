package cron

// Civil time is counted in seconds since 1970-01-01 00:00:00 of the wall clock,
// days of 86400 seconds each: what a calendar and a clock show, without a zone.

const (
	daySeconds = 86400
	firstYear  = 1970
	lastYear   = 2199
	// civilDays is the number of days in the years a schedule may name.
	civilDays = 84006
	civilEnd  = civilDays * daySeconds
)

// monthStart is the number of days before each month of a common year.
var monthStart = [13]uint16{0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334}

// monthLength is the number of days in each month of a common year.
var monthLength = [13]uint8{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

func leap(year int) bool {
	return year%4 == 0 && (year%100 != 0 || year%400 == 0)
}

func daysIn(year, month int) int {
	if month == 2 && leap(year) {
		return 29
	}
	return int(monthLength[month])
}

// firstOf returns the day number of the first of a month, for the years a
// schedule may name.
func firstOf(year, month int) int {
	n := year - firstYear
	day := 365*n + (n+1)/4 - (n+69)/100 + (n+369)/400 + int(monthStart[month])
	if month > 2 && leap(year) {
		day++
	}
	return day
}

// dateOf returns the date of a day number from 0 to civilDays-1. Years are
// counted from March, which puts the leap day last; the multiplications stand
// in for divisions as Neri and Schneider describe in "Euclidean affine
// functions and their application to calendar algorithms" (2022).
func dateOf(day int) (year, month, dayOfMonth int) {
	const toMarchOfYearZero = 719468
	quarter := 4*uint32(day+toMarchOfYearZero) + 3
	century, inCentury := quarter/146097, quarter%146097/4
	product := 2939745 * uint64(4*inCentury+3)
	inYear := uint32(product) / 2939745 / 4
	year = int(100*century + uint32(product>>32))
	scaled := 2141*inYear + 197913
	month = int(scaled >> 16)
	dayOfMonth = int(scaled&0xffff/2141) + 1
	if inYear >= 306 {
		year, month = year+1, month-12
	}
	return year, month, dayOfMonth
}

// weekdayOf returns the weekday of a day number, 0 for Sunday.
func weekdayOf(day int) int {
	return int(uint32(day+4) % 7) // day 0 was a Thursday
}
