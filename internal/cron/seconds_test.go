package cron

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSecondsOfRobfig: expressions of six fields fire as robfig/cron has them fire. The rows are
// of a program, bench/peers/robfigrows.
func TestSecondsOfRobfig(t *testing.T) {
	rows := readRows(t, "testdata/robfig.tsv", 5)
	if len(rows) != 10_000 {
		t.Fatalf("%d rows", len(rows))
	}
	failed := 0
	for _, row := range rows {
		c, err := ParseSeconds(row[0])
		if err != nil {
			t.Fatal(err)
		}
		at := make([]int64, 3)
		for i := range at {
			if at[i], err = strconv.ParseInt(row[2+i], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		loc := zone(t, row[1])
		for i := range 2 {
			if got := c.Next(time.Unix(at[i], 0), loc, Civil); got.Unix() != at[i+1] {
				if failed++; failed < 20 {
					t.Errorf("%s in %s (%s) from %v: %v, want %v", row[0], row[1], c.Describe(), time.Unix(at[i], 0).In(loc), got.In(loc), time.Unix(at[i+1], 0).In(loc))
				}
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d differ", failed)
	}
}

// TestSecondsSpellings: two ways to write one schedule, the other one in Quartz's dialect where
// it ends with a "?" or has one for the days.
func TestSecondsSpellings(t *testing.T) {
	for _, tt := range []struct{ seconds, quartz string }{
		{"0 0 18 * * 1-5", "0 0 18 ? * MON-FRI"},
		{"0 0 18 ? * 1-5", "0 0 18 ? * MON-FRI"},
		{"0 0 18 * * mon-fri", "0 0 18 ? * MON-FRI"},
		{"0 0 18 * * 0", "0 0 18 ? * SUN"},
		{"0 0 18 * * 7", "0 0 18 ? * SUN"},
		{"0 0 18 * * 5-7", "0 0 18 ? * FRI-SUN"},
		{"0 0 18 * * mon-fri/2", "0 0 18 ? * MON,WED,FRI"},
		{"*/10 * * * * *", "0/10 * * * * ?"},
		{"30 */5 9-17 * * *", "30 0/5 9-17 * * ?"},
		{"0 0 0 1 * ?", "0 0 0 1 * ?"},
		{"0 0 0 */1 * MON", "0 0 0 ? * MON"},
		{"0 0 0 L * *", "0 0 0 L * ?"},
		{"@daily", "0 0 0 * * ?"},
		{"@hourly", "0 0 * * * ?"},
	} {
		c, err := ParseSeconds(tt.seconds)
		if err != nil {
			t.Errorf("%s: %v", tt.seconds, err)
			continue
		}
		e, err := Parse(tt.quartz)
		if err != nil {
			t.Fatal(err)
		}
		if c.Describe() != e.Describe() || c.DescribeIn("zh-CN") != e.DescribeIn("zh-CN") {
			t.Errorf("%s: %q, want as %s: %q", tt.seconds, c.Describe(), tt.quartz, e.Describe())
		}
		at := time.Unix(1_800_000_000, 0)
		for range 10 {
			got, want := c.Next(at, nil, Civil), e.Next(at, nil, Civil)
			if got != want {
				t.Fatalf("%s: %v, want %v", tt.seconds, got, want)
			}
			at = got
		}
	}
}

// TestSecondsEitherDay: where both fields of days are set a day matches when either does, and
// unlike in a crontab "*/2" is a field that is set.
func TestSecondsEitherDay(t *testing.T) {
	for expr, want := range map[string]string{
		"0 0 12 13 * 5":   "on the 13th of every month or on Friday",
		"0 0 12 */9 * 5":  "or on Friday",
		"0 0 12 13 * */3": "or on Wednesday, Saturday and Sunday",
	} {
		c, err := ParseSeconds(expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Describe(); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// TestSixFieldsWithoutMark: what those who come from robfig, gocron or Spring write for Quartz is
// refused with what to write instead, which means what they meant.
func TestSixFieldsWithoutMark(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		{"0 0 18 * * 1-5", `use xxljob.Cron("0 0 18 ? * MON-FRI"), for 1 is Sunday there, or xxljob.CronSeconds("0 0 18 * * 1-5"), where 1 is Monday`},
		{"0 0 18 * * mon-fri", `xxljob.Cron("0 0 18 ? * MON-FRI")`},
		{"0 0 18 * * 0,6", `xxljob.Cron("0 0 18 ? * SAT,SUN")`},
		{"*/5 * * * * *", `xxljob.Cron("*/5 * * * * ?")`},
		{"0 30 6 1,15 * *", `xxljob.Cron("0 30 6 1,15 * ?")`},
		{"0 0 12 13 * 5", `xxljob.CronSeconds("0 0 12 13 * 5") has both, and is due when either matches; where both must match, as in Spring`},
		{"0 0 12 13 * 5 2030", `"?" in exactly one`}, // seven fields are Quartz's alone
		{"0 0 12 5C * 5", `"?" in exactly one`},      // nobody's
	} {
		_, err := Parse(tt.expr)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.expr, err, tt.want)
		}
	}
	_, err := ParseCrontab("0 0 18 * * 1-5")
	if err == nil || !strings.Contains(err.Error(), "xxljob.CronSeconds") || !strings.Contains(err.Error(), "1 is Sunday") {
		t.Errorf("six fields in a crontab: %v", err)
	}
}
