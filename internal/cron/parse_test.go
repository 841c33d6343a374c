package cron

import (
	"errors"
	"strings"
	"testing"
)

// dialect is who reads an expression.
type dialect int

const (
	quartz dialect = iota
	crontabFive
	seconds
)

// badExpression is one that is refused, and what its error has to name.
type badExpression struct {
	expr     string
	dialect  dialect
	position int
	field    string
	value    string
	expected string
}

// parse returns the error.
func (b *badExpression) parse(t *testing.T) *FieldError {
	t.Helper()
	var err error
	switch b.dialect {
	case crontabFive:
		_, err = ParseCrontab(b.expr)
	case seconds:
		_, err = ParseSeconds(b.expr)
	default:
		_, err = Parse(b.expr)
	}
	var bad *FieldError
	if !errors.As(err, &bad) {
		t.Fatalf("%q: error is %v, want a FieldError", b.expr, err)
	}
	return bad
}

func badExpressions() []badExpression {
	return []badExpression{
		{"60 * * * * ?", quartz, 1, "seconds", "60", "0 to 59"},
		{"0 60 * * * ?", quartz, 2, "minutes", "60", "0 to 59"},
		{"0 */0 * * * ?", quartz, 2, "minutes", "*/0", "a step from 1 to 59"},
		{"0 0/60 * * * ?", quartz, 2, "minutes", "0/60", "a step from 1 to 59"},
		{"0 5/ * * * ?", quartz, 2, "minutes", "5/", "a step"},
		{"0 5/3/2 * * * ?", quartz, 2, "minutes", "5/3/2", "a step"},
		{"0 1,,2 * * * ?", quartz, 2, "minutes", "", "between the commas"},
		{"0 1, * * * ?", quartz, 2, "minutes", "", "between the commas"},
		{"0 1-2-3 * * * ?", quartz, 2, "minutes", "1-2-3", "a range of two values"},
		{"0 1- * * * ?", quartz, 2, "minutes", "1-", "a range of two values"},
		{"0 5,99 * * * ?", quartz, 2, "minutes", "99", "0 to 59"},
		{"0 +5 * * * ?", quartz, 2, "minutes", "+5", "0 to 59"},
		{"0 ? * * * ?", quartz, 2, "minutes", "?", "0 to 59"},
		{"0 L * * * ?", quartz, 2, "minutes", "L", "0 to 59"},
		{"0 0 24 * * ?", quartz, 3, "hours", "24", "0 to 23"},
		{"0 0 0/24 * * ?", quartz, 3, "hours", "0/24", "1 to 23"},
		{"0 0 0 32 * ?", quartz, 4, "day-of-month", "32", "1 to 31"},
		{"0 0 0 L-31 * ?", quartz, 4, "day-of-month", "L-31", "0 to 30"},
		{"0 0 0 LL * ?", quartz, 4, "day-of-month", "LL", "LW"},
		{"0 0 0 40W * ?", quartz, 4, "day-of-month", "40W", "W after a day"},
		{"0 0 0 1-5W * ?", quartz, 4, "day-of-month", "1-5W", "W after a day"},
		{"0 0 0 5C * ?", quartz, 4, "day-of-month", "5C", "1 to 31"},
		{"0 0 0 1,? * *", quartz, 6, "day-of-week", "*", "exactly one"},
		{"0 0 0 1 13 ?", quartz, 5, "month", "13", "such as JAN"},
		{"0 0 0 1 JANU ?", quartz, 5, "month", "JANU", "such as JAN"},
		{"0 0 0 1 MON ?", quartz, 5, "month", "MON", "such as JAN"},
		{"0 0 0 1 JAN/2 ?", quartz, 5, "month", "JAN/2", "numbers before a step"},
		{"0 0 0 ? * 8", quartz, 6, "day-of-week", "8", "such as SUN"},
		{"0 0 0 ? * MON/2", quartz, 6, "day-of-week", "MON/2", "numbers before a step"},
		{"0 0 0 ? * MON-FRI/2", quartz, 6, "day-of-week", "MON-FRI/2", "numbers before a step"},
		{"0 0 0 ? * 2-FRI", quartz, 6, "day-of-week", "2-FRI", "of one kind"},
		{"0 0 0 ? * MON#6", quartz, 6, "day-of-week", "MON#6", "1 to 5"},
		{"0 0 0 ? * 2#1,2#3", quartz, 6, "day-of-week", "2#1,2#3", "stand alone"},
		{"0 0 0 ? * 2L,3L", quartz, 6, "day-of-week", "2L,3L", "stand alone"},
		{"0 0 0 ? * 9L", quartz, 6, "day-of-week", "9L", "1 to 7"},
		{"0 0 0 1 * MON", quartz, 6, "day-of-week", "MON", "exactly one"},
		{"0 0 0 * * *", quartz, 6, "day-of-week", "*", "exactly one"},
		{"0 0 0 ? * ?", quartz, 6, "day-of-week", "?", "only one"},
		{"0 0 0 1 * ? abc", quartz, 7, "year", "ABC", "1970 to 2199"},
		{"0 0 0 1 * ? 2200", quartz, 7, "year", "2200", "1970 to 2199"},
		{"0 0 0 1 * ? 26", quartz, 7, "year", "26", "1970 to 2199"},
		{"0 0 0 1 * ? 2030-2026", quartz, 7, "year", "2030-2026", "not before its start"},
		{"0 \u0660 * * * ?", quartz, 2, "minutes", "\u0660", "0 to 59"},
		{"", quartz, 0, "expression", "0 fields", "6 or 7 fields"},
		{" \t", quartz, 0, "expression", "0 fields", "6 or 7 fields"},
		{"* * * * *", quartz, 0, "expression", "5 fields", "use xxljob.Crontab"},
		{"@daily", quartz, 0, "expression", "1 field", "use xxljob.Crontab"},
		{"0 0 0 * * ? * *", quartz, 0, "expression", "8 fields", "6 or 7 fields"},
		{strings.Repeat("0,", 600) + "0 * * * * ?", quartz, 0, "expression", "1211 bytes", "at most 1024"},

		{"5,99 * * * *", crontabFive, 1, "minutes", "99", "0 to 59"},
		{"70/5 * * * *", crontabFive, 1, "minutes", "70/5", "0 to 59"},
		{"/7 * * * *", crontabFive, 1, "minutes", "/7", "0 to 59"},
		{"MON * * * *", crontabFive, 1, "minutes", "MON", "0 to 59"},
		{"* 22-2 * * *", crontabFive, 2, "hours", "22-2", "not before its start"},
		{"* 0/25 * * *", crontabFive, 2, "hours", "0/25", "1 to 24"},
		{"* * 0/5 * *", crontabFive, 3, "day-of-month", "0/5", "1 to 31"},
		{"* * ? * *", crontabFive, 3, "day-of-month", "?", "1 to 31"},
		{"* * LW * *", crontabFive, 3, "day-of-month", "LW", "W after a day"},
		{"* * * MON *", crontabFive, 4, "month", "MON", "such as JAN"},
		{"* * * JANUARY *", crontabFive, 4, "month", "JANUARY", "such as JAN"},
		{"* * * * JAN", crontabFive, 5, "day-of-week", "JAN", "such as SUN"},
		{"* * * * 8", crontabFive, 5, "day-of-week", "8", "0 to 7"},
		{"* * * * L", crontabFive, 5, "day-of-week", "L", "0 to 7"},
		{"* * * * 5#6", crontabFive, 5, "day-of-week", "5#6", "1 to 5"},
		{"* * * * MON/2", crontabFive, 5, "day-of-week", "MON/2", "numbers before a step"},
		{"", crontabFive, 0, "expression", "0 fields", "5 fields"},
		{"0 0 12 * * ?", crontabFive, 0, "expression", "6 fields", "use xxljob.Cron"},
		{"0 0 12 * * ? 2027", crontabFive, 0, "expression", "7 fields", "use xxljob.Cron"},
		{"* * * * ?", crontabFive, 5, "day-of-week", "?", "write *"},
		{"@every 5m", crontabFive, 0, "expression", "a period", "use xxljob.FixedRate(5*time.Minute)"},
		{"  @Every\t90s", crontabFive, 0, "expression", "a period", "use xxljob.FixedRate(90*time.Second)"},
		{"@every 1500us", quartz, 0, "expression", "a period", "use xxljob.FixedRate(1500000*time.Nanosecond)"},
		{"@every -5m", crontabFive, 0, "expression", "a period", "use xxljob.FixedRate(5*time.Minute)"},
		{"@every 1 hour", crontabFive, 0, "expression", "a period", "use xxljob.FixedRate(5*time.Minute)"},
		{"CRON_TZ=Asia/Tokyo 0 3 * * *", crontabFive, 0, "expression", "a zone", `use .In("Asia/Tokyo")`},
		{"TZ=UTC\t0 3 * * *", crontabFive, 0, "expression", "a zone", `use .In("UTC")`},
		{"tz=Asia/Tokyo 0 0 3 * * ?", quartz, 0, "expression", "a zone", `use .In("Asia/Tokyo")`},
		{"TZ= 0 3 * * *", crontabFive, 0, "expression", "a zone", `use .In("Asia/Tokyo")`},
		{"CRON_TZ=" + strings.Repeat("x", 900), crontabFive, 0, "expression", "a zone", "..."},
		{"0 0 12 * * ？", quartz, 0, "expression", "？", `"?"`},
		{"０ 0 12 * * ?", quartz, 0, "expression", "０", `"0"`},
		{"0 0 1，2 * * ?", quartz, 0, "expression", "，", `","`},
		{"0 1–5 * * *", crontabFive, 0, "expression", "–", `"-"`},
		{"＊／5 * * * *", crontabFive, 0, "expression", "＊", `"*"`},
		{"*∕5 * * * *", crontabFive, 0, "expression", "∕", `"/"`},
		{"cron(0 10 * * ？ *)", crontabFive, 0, "expression", "？", `"?"`},
		{"0\u00a00 12 * * ?", quartz, 0, "expression", "\u00a0", "an ordinary blank"},
		{"0\u30000 12 * * ?", quartz, 0, "expression", "\u3000", "an ordinary blank"},
		{"\ufeff0 3 * * *", crontabFive, 0, "expression", "\ufeff", "nothing"},
		{"0 3 * * *\u200b", crontabFive, 0, "expression", "\u200b", "nothing"},
		{"0 3 * * *\x00", crontabFive, 0, "expression", "\x00", "nothing"},
		{"cron(0 10 * * ? *)", crontabFive, 0, "expression", "AWS's cron(…)", `use xxljob.Cron("0 0 10 * * ? *")`},
		{"Cron( 15 12 ? * MON-FRI * )", quartz, 0, "expression", "AWS's cron(…)", `use xxljob.Cron("0 15 12 ? * MON-FRI *")`},
		{"cron()", quartz, 0, "expression", "AWS's cron(…)", `use xxljob.Cron("0 0 10 * * ? *")`},
		{"rate(1 hour)", crontabFive, 0, "expression", "a period", "use xxljob.FixedRate(1*time.Hour)"},
		{"rate(10 minutes)", quartz, 0, "expression", "a period", "use xxljob.FixedRate(10*time.Minute)"},
		{"rate(often)", quartz, 0, "expression", "a period", "use xxljob.FixedRate(5*time.Minute)"},
		{"at(2027-01-01T00:00:00)", quartz, 0, "expression", "a moment", "use xxljob.At"},
		{"@everysecond", crontabFive, 0, "expression", "an unknown tag", "use xxljob.Cron"},
		{"@", crontabFive, 0, "expression", "an unknown tag", "@daily"},
		{"0 18 * * 1-5", seconds, 0, "expression", "5 fields", "use xxljob.Crontab"},
		{"0 0 18 * * 1-5 2030", seconds, 0, "expression", "7 fields", "use xxljob.Cron"},
		{"@reboot", seconds, 0, "expression", "an unknown tag", "@daily"},
		{"@every 5m", seconds, 0, "expression", "a period", "use xxljob.FixedRate(5*time.Minute)"},
		{"0 0 18 * * 8", seconds, 6, "day-of-week", "8", "from 0 to 7 or a name such as SUN"},
		{"0 0 */25 * * *", seconds, 3, "hours", "*/25", "a step from 1 to 24"},
		{"60 0 0 * * *", seconds, 1, "seconds", "60", "0 to 59"},
		{strings.Repeat("0,", 600) + "0 * * * *", crontabFive, 0, "expression", "1209 bytes", "at most 1024"},
	}
}

func TestErrorsNameFieldPositionAndExpected(t *testing.T) {
	for _, tt := range badExpressions() {
		bad := tt.parse(t)
		if bad.Position != tt.position || bad.Field != tt.field || bad.Value != tt.value || !strings.Contains(bad.Expected, tt.expected) {
			t.Errorf("%q: got %+v", tt.expr, *bad)
		}
		text := bad.Error()
		if !strings.Contains(text, tt.field) || !strings.Contains(text, tt.value) && !strings.Contains(text, Quoted(tt.value)) || !strings.Contains(text, tt.expected) || len(text) > 400 {
			t.Errorf("%q: message %q", tt.expr, text)
		}
	}
}

// Spellings of one schedule.
func TestSpellings(t *testing.T) {
	tests := []struct{ one, other string }{
		{"0 0 12 ? * MON", "0 0 12 ? * 2"},
		{"0 0 12 ? * mon", "0 0 12 ? * Monday"},
		{"0 0 12 ? * fri-mon", "0 0 12 ? * 6,7,1,2"},
		{"0 0 12 ? * FRIL", "0 0 12 ? * FridayL"},
		{"0 0 12 ? * SUN#2", "0 0 12 ? * 1#2"},
		{"0 0 12 ? * L", "0 0 12 ? * SAT"},
		{"0 0 12 ? * *", "0 0 12 * * ?"},
		{"0 0 12 1 january ?", "0 0 12 1 1 ?"},
		{"0 0 12 1 NOV-FEB ?", "0 0 12 1 11,12,1,2 ?"},
		{"0 0 22-2 * * ?", "0 0 22,23,0,1,2 * * ?"},
		{"0 0 22-2/2 * * ?", "0 0 22,0,2 * * ?"},
		{"0 /15 * * * ?", "0 */15 * * * ?"},
		{"00 05 09 01 02 ?", "0 5 9 1 2 ?"},
		{"0 0 12 L-0 * ?", "0 0 12 L * ?"},
		{"\t0  0 12 * * ?\r\n", "0 0 12 * * ? *"},
		{"0 0 12 1,15W,L * ?", "0 0 12 L,15W,1 * ?"},
	}
	for _, tt := range tests {
		one, err := Parse(tt.one)
		if err != nil {
			t.Error(err)
			continue
		}
		other, err := Parse(tt.other)
		if err != nil {
			t.Error(err)
			continue
		}
		a, b := one.calendar, other.calendar
		a.rule, b.rule = dayRule{}, dayRule{}
		a.fixedHours, b.fixedHours = false, false
		if a != b {
			t.Errorf("%q and %q differ", tt.one, tt.other)
		}
	}
}

func TestDescribe(t *testing.T) {
	tests := []struct{ expr, want string }{
		{"* * * * * ?", "every second"},
		{"0/15 * * * * ?", "every 15 seconds"},
		{"0 * * * * ?", "every minute"},
		{"0 0/5 14 * * ?", "every 5 minutes of hour 14"},
		{"0 0 0/2 * * ?", "every 2 hours"},
		{"0 0 9-17 * * ?", "on the hour in hours 9 to 17"},
		{"0 30 * * * ?", "at minute 30 of every hour"},
		{"0 0/10 9-17 ? * MON-FRI", "every 10 minutes of hours 9 to 17 on Monday to Friday"},
		{"0 0 12 * * ?", "at 12:00:00 every day"},
		{"0 10,44 14 ? 3 WED", "at 14:10:00 and 14:44:00 on Wednesday in March"},
		{"0 0 12 ? * 6L", "at 12:00:00 on the last Friday of every month"},
		{"0 15 10 ? * FRI#3", "at 10:15:00 on the third Friday of every month"},
		{"0 15 10 L-2 * ?", "at 10:15:00 on 2 days before the last day of every month"},
		{"0 0 0 LW * ?", "at 00:00:00 on the last working day of every month"},
		{"0 0 0 15W * ?", "at 00:00:00 on the working day nearest the 15th of every month"},
		{"0 0 12 1/5 * ?", "at 12:00:00 on every 5th day from the 1st on of every month"},
		{"0 0 0 29 2 ?", "at 00:00:00 on 29 February"},
		{"0 0 0 30 2 ?", "at 00:00:00 on 30 February (never)"},
		{"0 0 12 1 1 ? 2026/2", "at 12:00:00 on 1 January every 2 years from 2026 on"},
		{"0 0 12 * 2 ? 2027-2029", "at 12:00:00 every day in February from 2027 to 2029"},
		{"@daily", "at 00:00 every day"},
		{"30 4 * * 1-5", "at 04:30 on Monday to Friday"},
		{"0 0 1 * 1", "at 00:00 on the 1st of every month or on Monday"},
		{"0 0 */2 * 1", "at 00:00 on every 2nd day from the 1st on of every month when that falls on Monday"},
		{"7-59/15 * * * *", "every 15 minutes from minute 7"},
	}
	for _, tt := range tests {
		if got := compile(t, tt.expr).Describe(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.expr, got, tt.want)
		}
	}
}
