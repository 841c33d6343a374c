package cron

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Each row chains fires from a local time and lists them as local times; a
// reading that comes twice shows by its offset.
func TestChangesOfOffset(t *testing.T) {
	const (
		newYork   = "America/New_York"
		berlin    = "Europe/Berlin"
		havana    = "America/Havana"
		santiago  = "America/Santiago"
		azores    = "Atlantic/Azores"
		saoPaulo  = "America/Sao_Paulo"
		lordHowe  = "Australia/Lord_Howe"
		apia      = "Pacific/Apia"
		cairo     = "Africa/Cairo"
		pyongyang = "Asia/Pyongyang"
	)
	tests := []struct {
		name   string
		policy Policy
		expr   string
		zone   string
		from   string
		want   string
	}{
		{"a fixed time in the gap fires when the gap ends", Civil, "0 30 2 * * ?", newYork,
			"2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
		{"all fixed times in one gap fire once", Civil, "0 0/10 2 * * ?", newYork,
			"2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:00:00-04:00"},
		{"a gap's fire and a regular one at the same instant are one", Civil, "0 30 2,3 * * ?", berlin,
			"2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-29T03:30:00+02:00"},
		{"hours 2 and 3 on the hour meet in one fire", Civil, "0 0 2,3 * * ?", berlin,
			"2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"asked in the last second before the gap", Civil, "0 30 2 * * ?", newYork,
			"2026-03-08T01:59:59-05:00", "2026-03-08T03:00:00-04:00"},
		{"asked at the end of the gap", Civil, "0 30 2 * * ?", newYork,
			"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		{"a fixed time in the overlap fires in the first pass", Civil, "0 30 1 * * ?", newYork,
			"2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00"},
		{"asked between the passes it has fired", Civil, "0 30 1 * * ?", newYork,
			"2026-11-01T01:45:00-04:00", "2026-11-02T01:30:00-05:00"},
		{"asked in the second pass before the reading it has fired", Civil, "0 30 1 * * ?", newYork,
			"2026-11-01T01:10:00-05:00", "2026-11-02T01:30:00-05:00"},
		{"a wall clock schedule skips the gap", Civil, "0 0/30 * * * ?", newYork,
			"2026-03-08T01:00:00-05:00", "2026-03-08T01:30:00-05:00 2026-03-08T03:00:00-04:00 2026-03-08T03:30:00-04:00"},
		{"a range of hours skips the gap", Civil, "0 30 1-2 * * ?", newYork,
			"2026-03-08T01:00:00-05:00", "2026-03-08T01:30:00-05:00 2026-03-09T01:30:00-04:00"},
		{"a wall clock schedule fires in both passes", Civil, "0 0/30 * * * ?", newYork,
			"2026-11-01T00:30:00-04:00", "2026-11-01T01:00:00-04:00 2026-11-01T01:30:00-04:00 2026-11-01T01:00:00-05:00 2026-11-01T01:30:00-05:00 2026-11-01T02:00:00-05:00"},
		{"so does an hourly one in Berlin", Civil, "0 0 * * * ?", berlin,
			"2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T03:00:00+01:00"},
		{"both passes of a range, a year away", Civil, "0 30 1-1 1 11 ?", newYork,
			"2025-12-01T00:00:00-05:00", "2026-11-01T01:30:00-04:00 2026-11-01T01:30:00-05:00 2027-11-01T01:30:00-04:00"},
		{"seconds go on through the first pass", Civil, "*/20 * * * * ?", newYork,
			"2026-11-01T01:59:10-04:00", "2026-11-01T01:59:20-04:00 2026-11-01T01:59:40-04:00 2026-11-01T01:00:00-05:00"},
		{"the last matching year ends in the second pass", Civil, "0 30 1-1 1 11 ? 2026", newYork,
			"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00 NONE"},
		{"a midnight gap in Havana leaves Monday alone", Civil, "0 0 9 ? * MON", havana,
			"2026-03-06T00:00:00-05:00", "2026-03-09T09:00:00-04:00 2026-03-16T09:00:00-04:00"},
		{"midnight in Havana's gap is 01:00", Civil, "0 0 0 * * ?", havana,
			"2026-03-07T12:00:00-05:00", "2026-03-08T01:00:00-04:00 2026-03-09T00:00:00-04:00"},
		{"midnight in Santiago's gap", Civil, "0 0 0 ? * SUN", santiago,
			"2026-09-02T00:00:00-04:00", "2026-09-06T01:00:00-03:00 2026-09-13T00:00:00-03:00"},
		{"the day after Santiago's gap", Civil, "0 0 12 10 9 ?", santiago,
			"2026-09-02T00:00:00-04:00", "2026-09-10T12:00:00-03:00"},
		{"midnight in the Azores' gap", Civil, "0 15 0 * * ?", azores,
			"2026-03-28T12:00:00-01:00", "2026-03-29T01:00:00Z 2026-03-30T00:15:00Z"},
		{"midnight in old Sao Paulo's gap", Civil, "0 0 0 * * ?", saoPaulo,
			"2018-11-03T12:00:00-03:00", "2018-11-04T01:00:00-02:00 2018-11-05T00:00:00-02:00"},
		{"old Sao Paulo repeats the hour before midnight", Civil, "0 30 23 * * ?", saoPaulo,
			"2018-02-17T12:00:00-02:00", "2018-02-17T23:30:00-02:00 2018-02-18T23:30:00-03:00"},
		{"a gap of half an hour", Civil, "0 15 2 * * ?", lordHowe,
			"2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"an overlap of half an hour", Civil, "0 0/15 * * * ?", lordHowe,
			"2026-04-05T01:15:00+11:00", "2026-04-05T01:30:00+11:00 2026-04-05T01:45:00+11:00 2026-04-05T01:30:00+10:30 2026-04-05T01:45:00+10:30 2026-04-05T02:00:00+10:30"},
		{"a date Apia never had collapses to the next midnight", Civil, "0 0 12 30 12 ?", apia,
			"2011-12-01T00:00:00-10:00", "2011-12-31T00:00:00+14:00 2012-12-30T12:00:00+14:00"},
		{"every hour of that date is skipped", Civil, "0 0 12-13 30 12 ?", apia,
			"2011-12-01T00:00:00-10:00", "2012-12-30T12:00:00+14:00 2012-12-30T13:00:00+14:00"},
		{"Cairo's midnight gap on a Friday", Civil, "0 0 12 30 4 ?", cairo,
			"2027-04-01T00:00:00+02:00", "2027-04-30T12:00:00+03:00 2028-04-30T12:00:00+03:00"},
		{"midnight in Cairo's gap", Civil, "0 0 0 30 4 ?", cairo,
			"2027-04-01T00:00:00+02:00", "2027-04-30T01:00:00+03:00"},
		{"a change of standard time repeats half an hour", Civil, "0 45 23 14 8 ?", pyongyang,
			"2015-08-01T00:00:00+09:00", "2015-08-14T23:45:00+09:00 2016-08-14T23:45:00+08:30"},
		{"New Year where the library cuts a leap year short", Civil, "0 0 0/12 31 12 ?", newYork,
			"2048-12-30T00:00:00-05:00", "2048-12-31T00:00:00-05:00 2048-12-31T12:00:00-05:00 2049-12-31T00:00:00-05:00"},

		{"Quartz skips a fixed time in the gap", Quartz, "0 30 2 * * ?", newYork,
			"2026-03-07T12:00:00-05:00", "2026-03-09T02:30:00-04:00"},
		{"Quartz fires the second pass only", Quartz, "0 30 1 * * ?", newYork,
			"2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-05:00 2026-11-02T01:30:00-05:00"},
		{"Quartz asked between the passes goes to the next day", Quartz, "0 30 1 * * ?", newYork,
			"2026-11-01T01:45:00-04:00", "2026-11-02T01:30:00-05:00"},
		{"Quartz is silent in the first pass", Quartz, "0 0/30 * * * ?", newYork,
			"2026-11-01T00:30:00-04:00", "2026-11-01T01:00:00-05:00 2026-11-01T01:30:00-05:00 2026-11-01T02:00:00-05:00"},
		{"Quartz is silent for an hour of seconds", Quartz, "*/20 * * * * ?", newYork,
			"2026-11-01T01:59:10-04:00", "2026-11-01T01:59:20-05:00 2026-11-01T01:59:40-05:00"},
		{"Quartz in Berlin", Quartz, "0 0/30 * * * ?", berlin,
			"2026-10-25T01:30:00+02:00", "2026-10-25T02:00:00+01:00 2026-10-25T02:30:00+01:00 2026-10-25T03:00:00+01:00"},
		{"Quartz across the gap", Quartz, "0 0/30 * * * ?", newYork,
			"2026-03-08T01:00:00-05:00", "2026-03-08T01:30:00-05:00 2026-03-08T03:00:00-04:00"},
		{"Quartz on the date Apia never had", Quartz, "0 0 12 30 12 ?", apia,
			"2011-12-01T00:00:00-10:00", "2012-12-30T12:00:00+14:00"},
		{"Quartz in Havana", Quartz, "0 0 9 ? * MON", havana,
			"2026-03-06T00:00:00-05:00", "2026-03-09T09:00:00-04:00"},
		{"Quartz in Cairo", Quartz, "0 0 12 30 4 ?", cairo,
			"2027-04-01T00:00:00+02:00", "2027-04-30T12:00:00+03:00"},

		{"crontab: a fixed time in the gap", Civil, "30 2 * * *", newYork,
			"2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
		{"crontab: a fixed time in the overlap", Civil, "30 1 * * *", newYork,
			"2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00"},
		{"crontab: the wall clock through the overlap", Civil, "*/30 * * * *", newYork,
			"2026-11-01T00:30:00-04:00", "2026-11-01T01:00:00-04:00 2026-11-01T01:30:00-04:00 2026-11-01T01:00:00-05:00"},
		{"crontab: a midnight gap, where gronx stands still", Civil, "0 9 * * 1", havana,
			"2026-03-06T00:00:00-05:00", "2026-03-09T09:00:00-04:00"},
		{"crontab: a tag at a midnight gap", Civil, "@daily", santiago,
			"2026-09-05T12:00:00-04:00", "2026-09-06T01:00:00-03:00 2026-09-07T00:00:00-03:00"},
		{"crontab: a date that never was", Civil, "0 12 30 12 *", apia,
			"2011-12-01T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"crontab as Quartz would", Quartz, "30 1,2 * * *", newYork,
			"2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-05:00 2026-11-01T02:30:00-05:00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			loc := zone(t, tt.zone)
			at, err := time.Parse(time.RFC3339, tt.from)
			if err != nil {
				t.Fatal(err)
			}
			s := compile(t, tt.expr)
			var got []string
			for range strings.Fields(tt.want) {
				if at = s.Next(at, loc, tt.policy); at.IsZero() {
					got = append(got, "NONE")
					break
				}
				got = append(got, at.In(loc).Format(time.RFC3339))
			}
			if fmt.Sprint(got) != "["+tt.want+"]" {
				t.Errorf("%s:\n got %v\nwant [%s]", tt.expr, got, tt.want)
			}
		})
	}
}

// A compiled expression of either dialect.
type compiled interface {
	Next(after time.Time, loc *time.Location, p Policy) time.Time
	Describe() string
	DescribeIn(lang string) string
}

// compile takes five fields or a tag for a crontab expression.
func compile(t testing.TB, text string) compiled {
	t.Helper()
	var c compiled
	var err error
	if n := len(strings.Fields(text)); n == 5 || n == 1 {
		c, err = ParseCrontab(text)
	} else {
		c, err = Parse(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
