package schedule_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/schedule"
)

// TestScheduleKinds is the table of the kinds: how each is stored, what it says
// in words, and what comes next, strictly after the given time.
func TestScheduleKinds(t *testing.T) {
	once := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	for _, tt := range []struct {
		name               string
		s                  schedule.Schedule
		text, words        string
		after, next, third string // third: the third of Upcoming
	}{
		{"cron", schedule.Cron("  0 0/5 * * * ? "), "CRON 0 0/5 * * * ?", "(UTC)",
			"2026-03-01T12:00:00Z", "2026-03-01T12:05:00Z", "2026-03-01T12:15:00Z"},
		{"cron in a zone", schedule.Cron("0 30 9 ? * MON-FRI").In("Asia/Shanghai"), "CRON 0 30 9 ? * MON-FRI Asia/Shanghai", "(Asia/Shanghai)",
			"2026-03-06T01:30:00Z", "2026-03-09T01:30:00Z", "2026-03-11T01:30:00Z"},
		{"crontab", schedule.Crontab("15 10 * * 1"), "CRONTAB 15 10 * * 1", "(UTC)",
			"2026-03-01T12:00:00Z", "2026-03-02T10:15:00Z", "2026-03-16T10:15:00Z"},
		{"crontab tag", schedule.Crontab("@hourly"), "CRONTAB @hourly", "(UTC)",
			"2026-03-01T12:00:00.001Z", "2026-03-01T13:00:00Z", "2026-03-01T15:00:00Z"},
		{"fixed rate", schedule.FixedRate(90 * time.Second), "FIX_RATE 90", "every 1 minute 30 seconds",
			"2026-03-01T12:00:00.25Z", "2026-03-01T12:01:30.25Z", "2026-03-01T12:04:30.25Z"},
		{"fixed delay", schedule.FixedDelay(1500 * time.Millisecond), "FIX_DELAY 1.5", "1 second 500 milliseconds after the end of the previous run",
			"2026-03-01T12:00:00Z", "2026-03-01T12:00:01.5Z", "2026-03-01T12:00:04.5Z"},
		{"once, to the millisecond", schedule.At(once), "ONCE 2026-03-01T11:00:00.123Z", "once at 2026-03-01T11:00:00.123Z",
			"2026-03-01T11:00:00.122Z", "2026-03-01T11:00:00.123Z", ""},
		{"once, over", schedule.At(once), "ONCE 2026-03-01T11:00:00.123Z", "once at",
			"2026-03-01T11:00:00.123Z", "", ""},
		{"manual", schedule.Manual(), "NONE", "only when triggered", "2026-03-01T12:00:00Z", "", ""},
		{"the zero value is manual", schedule.Schedule{}, "NONE", "only when triggered", "2026-03-01T12:00:00Z", "", ""},
		{"cron with a last year", schedule.Cron("0 0 0 1 1 ? 2026-2027"), "CRON 0 0 0 1 1 ? 2026-2027", "",
			"2026-03-01T12:00:00Z", "2027-01-01T00:00:00Z", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.s.String(); got != tt.text {
				t.Errorf("String: %q, want %q", got, tt.text)
			}
			if got := tt.s.Describe(); !strings.Contains(got, tt.words) || got == "" {
				t.Errorf("Describe: %q, want %q in it", got, tt.words)
			}
			after := stage.At(t, tt.after)
			next, err := tt.s.Next(after)
			if err != nil || !next.Equal(stage.At(t, tt.next)) {
				t.Errorf("Next: %v, %v, want %v", next, err, tt.next)
			}
			if next.Location() != time.UTC {
				t.Errorf("Next is in %v, want UTC", next.Location())
			}
			all, err := tt.s.Upcoming(after, 3)
			switch {
			case err != nil:
				t.Error(err)
			case tt.third == "" && len(all) == 3:
				t.Errorf("Upcoming has three: %v", all)
			case tt.third != "" && (len(all) != 3 || !all[2].Equal(stage.At(t, tt.third))):
				t.Errorf("Upcoming: %v, want the third to be %v", all, tt.third)
			}
			if err := tt.s.Validate(false); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// TestScheduleIsComparable: a Schedule is a value; equal ones are ==, whatever
// they were made from, and the constructors cut what does not count.
func TestScheduleIsComparable(t *testing.T) {
	utc := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)
	for _, tt := range []struct {
		a, b schedule.Schedule
		same bool
	}{
		{schedule.Cron("* * * * * ?"), schedule.Cron(" * * * * * ?\n"), true},
		{schedule.Cron("* * * * * ?"), schedule.Cron("* * * * * ?").In("Europe/Berlin"), false},
		{schedule.Cron("* * * * * ?").In("Europe/Berlin"), schedule.Cron("* * * * * ?").In("Europe/Berlin"), true},
		{schedule.Cron("* * * * * ?"), schedule.Cron("* * * * * ?").WithDST(schedule.DSTQuartz), false},
		{schedule.Cron("* * * * * ?").WithDST(schedule.DSTCivil), schedule.Cron("* * * * * ?"), true},
		{schedule.FixedRate(time.Minute), schedule.FixedRate(60 * time.Second), true},
		{schedule.FixedRate(time.Minute), schedule.FixedDelay(time.Minute), false},
		{schedule.At(utc), schedule.At(utc.In(time.FixedZone("", 7200)).Add(999 * time.Microsecond)), true},
		{schedule.At(utc), schedule.At(utc.Add(time.Millisecond)), false},
		{schedule.Manual(), schedule.Schedule{}, true},
	} {
		if (tt.a == tt.b) != tt.same {
			t.Errorf("%v == %v is %t", tt.a, tt.b, tt.a == tt.b)
		}
	}
}

// TestScheduleErrors: Next and saving refuse the same schedules, and the error
// says what is wrong with what.
func TestScheduleErrors(t *testing.T) {
	for _, tt := range []struct {
		s     schedule.Schedule
		words []string
	}{
		{schedule.Cron("*/5 * * * *"), []string{"*/5 * * * *", "5 fields", "xxljob.Crontab"}},
		{schedule.Cron(""), []string{`""`, "0 fields"}},
		{schedule.Cron("* * * * * *"), []string{"* * * * * *", "?"}},
		{schedule.Cron("* 61 * * * ?"), []string{"* 61 * * * ?", "minutes", "61"}},
		{schedule.Cron("0 0 12 ? FOO MON"), []string{"month", "FOO"}},
		{schedule.Cron("0 0 12 ? * MON 2200"), []string{"year", "2200"}},
		{schedule.Cron("@daily"), []string{"@daily"}},
		{schedule.Crontab("* * * * * ?"), []string{"* * * * * ?", "xxljob.Cron"}},
		{schedule.Crontab("@fortnightly"), []string{"@fortnightly", "tag"}},
		{schedule.Crontab("60 * * * *"), []string{"minutes", "60"}},
		{schedule.Cron("* * * * * ?").In("Mars/Phobos"), []string{"zone", "Mars/Phobos", "IANA"}},
		{schedule.Crontab("* * * * *").In("Local"), []string{"zone", "Local", "IANA"}},
		{schedule.Cron("* * * * * ?").In("../../etc/passwd"), []string{"zone", "../../etc/passwd"}},
		{schedule.FixedRate(0), []string{"FIX_RATE", `"0"`, "positive"}},
		{schedule.FixedRate(-time.Minute), []string{"FIX_RATE", `"-60"`, "positive"}},
		{schedule.FixedDelay(0), []string{"FIX_DELAY", `"0"`, "positive"}},
		{schedule.FixedDelay(-time.Second), []string{"FIX_DELAY", `"-1"`, "positive"}},
		{schedule.FixedRate(1500 * time.Microsecond), []string{"FIX_RATE", "0.0015", "milliseconds"}},
		{schedule.FixedRate(101 * 365 * 24 * time.Hour), []string{"FIX_RATE", "100 years"}},
		{schedule.Schedule{Type: schedule.TypeFixRate}, []string{"FIX_RATE", `""`, "seconds"}},
		{schedule.Schedule{Type: schedule.TypeFixRate, Conf: "1m"}, []string{"FIX_RATE", "1m", "seconds"}},
		{schedule.Schedule{Type: schedule.TypeFixDelay, Conf: "NaN"}, []string{"FIX_DELAY", "NaN", "seconds"}},
		{schedule.Schedule{Type: schedule.TypeFixDelay, Conf: "1e400"}, []string{"FIX_DELAY", "1e400", "seconds"}},
		{schedule.Schedule{Type: schedule.TypeOnce, Conf: "2026-03-01 12:00"}, []string{"ONCE", "2026-03-01 12:00", "RFC 3339"}},
		{schedule.Schedule{Type: "cron", Conf: "* * * * * ?"}, []string{"type", `"cron"`}},
	} {
		_, nextErr := tt.s.Next(time.Unix(0, 0))
		for _, err := range []error{nextErr, tt.s.Validate(false)} {
			if err == nil {
				t.Errorf("%v is accepted", tt.s)
				continue
			}
			if bad := scheduleError(t, err); bad == nil || bad.Code == "" || bad.In("en") == bad.In("zh-CN") {
				t.Errorf("%v: %+v", tt.s, bad)
			}
			for _, w := range tt.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v: %q does not say %q", tt.s, err, w)
				}
			}
		}
		if all, err := tt.s.Upcoming(time.Unix(0, 0), 3); err == nil || len(all) != 0 {
			t.Errorf("%v: Upcoming: %v, %v", tt.s, all, err)
		}
		if tt.s.Type != "cron" && tt.s.Type != schedule.TypeOnce && !strings.HasPrefix(tt.s.Describe(), "invalid: ") {
			t.Errorf("%v: Describe: %q", tt.s, tt.s.Describe())
		}
	}
}

// TestScheduleSubSecond: a rate under one second is for Config.Limits.AllowSubSecond,
// and the error names it.
func TestScheduleSubSecond(t *testing.T) {
	for _, s := range []schedule.Schedule{schedule.FixedRate(999 * time.Millisecond), schedule.FixedDelay(time.Millisecond)} {
		if err := s.Validate(false); err == nil || !strings.Contains(err.Error(), "AllowSubSecond") {
			t.Errorf("%v: %v", s, err)
		}
		if err := s.Validate(true); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
	if err := schedule.FixedRate(time.Second).Validate(false); err != nil {
		t.Error(err)
	}
}

// TestScheduleDST: DSTCivil, the default, fires a fixed time once on both days
// on which clocks change; DSTQuartz skips it in the gap and takes the second of
// two. Any other policy is refused.
func TestScheduleDST(t *testing.T) {
	base := schedule.Cron("0 30 2 * * ?").In("Europe/Berlin")
	for _, tt := range []struct {
		dst         schedule.DST
		after, next string
	}{
		{schedule.DSTCivil, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"}, // 03:00, behind the gap
		{schedule.DSTQuartz, "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		{schedule.DSTCivil, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"}, // the first 02:30
		{schedule.DSTCivil, "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{schedule.DSTQuartz, "2026-10-24T12:00:00Z", "2026-10-25T01:30:00Z"},
	} {
		next, err := base.WithDST(tt.dst).Next(stage.At(t, tt.after))
		if err != nil || !next.Equal(stage.At(t, tt.next)) {
			t.Errorf("policy %q after %s: %v, %v, want %s", tt.dst, tt.after, next, err, tt.next)
		}
	}
	if err := base.WithDST("SUMMER").Validate(false); err == nil || !strings.Contains(err.Error(), "SUMMER") {
		t.Errorf("an unknown policy: %v", err)
	}
}

// TestFixedRateRoundTrip: what FixedRate and FixedDelay store is read back as
// the same duration, for whole seconds as XXL-JOB's plain number.
func TestFixedRateRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		d := time.Duration(1+r.Int64N(100*365*24*3600)) * time.Second
		s := schedule.FixedRate(d)
		if want := fmt.Sprint(int64(d / time.Second)); s.Conf != want {
			t.Fatalf("FixedRate(%v) is stored as %q, want %q", d, s.Conf, want)
		}
		if got, err := s.Every(); err != nil || got != d {
			t.Fatalf("FixedRate(%v) is read as %v, %v", d, got, err)
		}
		ms := time.Duration(1+r.Int64N(1e9)) * time.Millisecond
		s = schedule.FixedDelay(ms)
		if got, err := s.Every(); err != nil || got != ms {
			t.Fatalf("FixedDelay(%v) is stored as %q and read as %v, %v", ms, s.Conf, got, err)
		}
	}
	if d, err := schedule.Cron("* * * * * ?").Every(); d != 0 || err != nil {
		t.Errorf("Every of a cron: %v, %v", d, err)
	}
}

// TestScheduleNextAllocatesNothing: a compiled expression costs no memory.
func TestScheduleNextAllocatesNothing(t *testing.T) {
	after := time.Date(2026, 1, 15, 10, 20, 30, 0, time.UTC)
	for _, s := range []schedule.Schedule{
		schedule.Cron("* * * * * ?"),
		schedule.Cron("0 15 10 ? * MON-FRI").In("Europe/Berlin"),
		schedule.Cron("0 0 12 ? 2 SUN#5"),
		schedule.Manual(),
	} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := s.Next(after); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", s, n)
		}
	}
}

// TestScheduleMemoIsBounded compiles more distinct schedules than are kept: they
// go on working.
func TestScheduleMemoIsBounded(t *testing.T) {
	after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 20_000 {
		s := schedule.Cron(fmt.Sprintf("%d %d %d * * ?", i%60, i/60%60, i/3600%24))
		want := after.Add(time.Duration(i%86400) * time.Second)
		if i%86400 == 0 {
			want = after.AddDate(0, 0, 1)
		}
		if next, err := s.Next(after); err != nil || !next.Equal(want) {
			t.Fatalf("%v: %v, %v, want %v", s, next, err, want)
		}
	}
}

// FuzzSchedule: on a schedule that saving accepts, Next neither errs nor stands
// still, and what it says in words is no error.
func FuzzSchedule(f *testing.F) {
	for _, s := range []schedule.Schedule{
		schedule.Cron("0 0/5 * * * ?"), schedule.Cron("0 0 12 ? 2 SUN#5"), schedule.Cron("0 30 2 * * ?").In("Europe/Berlin").WithDST(schedule.DSTQuartz),
		schedule.Crontab("15 3 * * */6"), schedule.Crontab("@daily").In("Australia/Lord_Howe"),
		schedule.FixedRate(time.Second), schedule.FixedDelay(1500 * time.Millisecond),
		schedule.At(time.Unix(1772366400, 5e6)), schedule.Manual(),
		{Type: schedule.TypeFixRate, Conf: "1e-3"}, {Type: schedule.TypeFixRate, Conf: "0x1p4"}, {Type: schedule.TypeOnce, Conf: "0000-01-01T00:00:00Z"},
		{Type: "LUNAR", Conf: "full"},
	} {
		f.Add(string(s.Type), s.Conf, s.Zone, string(s.DST), int64(1772366400))
	}
	f.Fuzz(func(t *testing.T, typ, conf, zone, dst string, unix int64) {
		s := schedule.Schedule{Type: schedule.Type(typ), Conf: conf, Zone: zone, DST: schedule.DST(dst)}
		_ = s.Describe()
		if s.Validate(true) != nil {
			return
		}
		after := time.Unix(unix%7_000_000_000, unix%1_000_000_000).UTC() // to the year 2191
		for range 4 {
			next, err := s.Next(after)
			if err != nil {
				t.Fatalf("%+v is accepted, but after %v: %v", s, after, err)
			}
			if next.IsZero() {
				break
			}
			if !next.After(after) {
				t.Fatalf("%+v after %v: %v", s, after, next)
			}
			after = next
		}
		if d := s.Describe(); d == "" || strings.HasPrefix(d, "invalid") {
			t.Fatalf("%+v is accepted and described as %q", s, d)
		}
		if _, err := s.Upcoming(after, 2); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkScheduleNext measures Next as the planner calls it: common
// expressions, and two sparse ones at which a naive search walks for years.
func BenchmarkScheduleNext(b *testing.B) {
	after := time.Date(2026, 1, 15, 10, 20, 30, 0, time.UTC)
	for _, s := range []schedule.Schedule{
		schedule.Cron("* * * * * ?"),
		schedule.Cron("0/15 * * * * ?"),
		schedule.Cron("0 0/5 14 * * ?"),
		schedule.Cron("0 0 12 * * ?"),
		schedule.Cron("0 15 10 ? * MON-FRI"),
		schedule.Cron("0 15 10 L * ?"),
		schedule.Cron("0 15 10 ? * MON-FRI").In("Europe/Berlin"),
		schedule.Cron("0 0 12 ? 2 SUN#5"),
		schedule.Cron("0 0 0 30 2 ?"),
		schedule.Crontab("*/5 * * * *"),
		schedule.FixedRate(time.Minute),
	} {
		b.Run(s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Next(after); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestNeverFiring: an expression that is well formed and has no instant is the
// zero time, not an error, and Next finds that out in no time.
func TestNeverFiring(t *testing.T) {
	for _, s := range []schedule.Schedule{
		schedule.Cron("0 0 0 30 2 ?"), schedule.Cron("0 0 0 1 1 ? 1999"), schedule.Crontab("0 0 31 2 *"), schedule.Crontab("0 0 30 2 *"),
	} {
		next, err := s.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		if err != nil || !next.IsZero() {
			t.Errorf("%v: %v, %v", s, next, err)
		}
	}
	if errors.Is(schedule.Cron("0 0 0 30 2 ?").Validate(false), errs.ErrNeverFires) {
		t.Error("Check looks at the clock")
	}
}

// TestSecondsAreOneNumber: the conf of FIX_RATE and FIX_DELAY is a number of
// seconds, without units.
func TestSecondsAreOneNumber(t *testing.T) {
	for _, conf := range []string{"5s3", "1s1s1", "0s1"} {
		s := schedule.Schedule{Type: schedule.TypeFixRate, Conf: conf}
		if d, err := s.Every(); err == nil {
			t.Errorf("%q is read as %v", conf, d)
		}
	}
}

// TestDescribeInvalid: Describe says of every schedule that Next refuses that it
// is invalid.
func TestDescribeInvalid(t *testing.T) {
	for _, s := range []schedule.Schedule{
		{Type: "LUNAR", Conf: "full"},
		{Type: schedule.TypeOnce, Conf: "tomorrow"},
	} {
		if _, err := s.Next(planNow); err == nil {
			t.Errorf("%v is accepted", s)
		}
		if got := s.Describe(); !strings.HasPrefix(got, "invalid: ") {
			t.Errorf("%v: %q", s, got)
		}
	}
}

// TestZoneOfEverySchedule: an unknown zone is an error wherever it stands, though
// only cron and crontab go by it.
func TestZoneOfEverySchedule(t *testing.T) {
	for _, s := range []schedule.Schedule{schedule.FixedRate(1e9), schedule.FixedDelay(1e9), schedule.At(planNow)} {
		if err := s.In("Mars/Phobos").Validate(false); err == nil {
			t.Errorf("%v is accepted", s.In("Mars/Phobos"))
		}
	}
}

// TestDescribeIn: each type of schedule in each language; any other language is English.
func TestDescribeIn(t *testing.T) {
	for _, tt := range []struct {
		s    schedule.Schedule
		want [3]string
	}{
		{schedule.Cron("0 0 9 * * ?"), [3]string{"at 09:00:00 every day (UTC)", "每天 09:00:00 (UTC)", "每天 09:00:00 (UTC)"}},
		{schedule.Schedule{Type: schedule.TypeCrontab, Conf: "*/5 * * * *", Zone: "Asia/Taipei"}, [3]string{"every 5 minutes (Asia/Taipei)", "每5分钟 (Asia/Taipei)", "每5分鐘 (Asia/Taipei)"}},
		{schedule.FixedRate(90 * time.Second), [3]string{"every 1 minute 30 seconds", "每隔 1 分钟 30 秒", "每隔 1 分鐘 30 秒"}},
		{schedule.FixedDelay(time.Minute), [3]string{"1 minute after the end of the previous run", "上次运行结束后 1 分钟", "上次執行結束後 1 分鐘"}},
		{schedule.FixedRate(36*time.Hour + 2*time.Second), [3]string{"every 36 hours 2 seconds", "每隔 36 小时 2 秒", "每隔 36 小時 2 秒"}},
		{schedule.Manual(), [3]string{"only when triggered", "仅手动触发", "僅手動觸發"}},
	} {
		got := [3]string{tt.s.DescribeIn("en"), tt.s.DescribeIn("zh-CN"), tt.s.DescribeIn("zh-TW")}
		if got != tt.want || tt.s.DescribeIn("fr") != got[0] || tt.s.Describe() != got[0] {
			t.Errorf("%v: %q, want %q", tt.s, got, tt.want)
		}
	}
}

// TestPrevious is Next backwards: over all schedules and days of clock changes there is no instant
// between the previous one and the time that it was asked for.
func TestPrevious(t *testing.T) {
	for _, s := range []schedule.Schedule{
		schedule.Cron("0 30 23 L * ?").In("America/New_York"), schedule.Cron("0 0 6 1 * ?"), schedule.Crontab("30 2 * * *").In("Europe/Berlin"),
		schedule.Crontab("30 * * * *").In("America/New_York"), schedule.Crontab("*/20 * * * *").In("Australia/Lord_Howe"), schedule.Cron("* * * * * ?"),
		schedule.Crontab("30 1 * * *").In("America/New_York").WithDST(schedule.DSTQuartz), schedule.Crontab("0 0 29 2 *"), schedule.Cron("0 0 0 1 1 ? 2020"),
		schedule.CronSeconds("15,45 59 23 31 12 *"), schedule.At(time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC)),
	} {
		for _, at := range []time.Time{
			time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC), time.Date(2026, 3, 8, 7, 0, 0, 1, time.UTC), time.Date(2026, 11, 1, 6, 30, 0, 0, time.UTC), time.Date(2026, 11, 1, 6, 29, 59, 999e6, time.UTC),
			time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC), time.Date(2026, 4, 4, 15, 10, 0, 0, time.UTC),
			time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1999, 12, 31, 23, 59, 30, 0, time.UTC),
		} {
			got, err := s.Previous(at)
			if err != nil {
				t.Fatalf("%v before %v: %v", s, at, err)
			}
			if got.IsZero() {
				if next, _ := s.Next(time.Unix(-1, 0)); !next.IsZero() && next.Before(at) {
					t.Errorf("%v before %v: none, and there is %v", s, at, next)
				}
				continue
			}
			next, err := s.Next(got)
			if err != nil || !got.Before(at) || !next.IsZero() && next.Before(at) {
				t.Errorf("%v before %v: %v, and behind that comes %v, %v", s, at, got, next, err)
			}
			if again, err := s.Next(got.Add(-time.Millisecond)); err != nil || !again.Equal(got) {
				t.Errorf("%v before %v: %v is no instant, which is %v", s, at, got, again)
			}
		}
	}
	at := time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC)
	if got, err := schedule.FixedRate(time.Hour).Previous(at); err != nil || !got.Equal(at.Add(-time.Hour)) {
		t.Errorf("a rate: %v, %v", got, err)
	}
	if got, err := schedule.Manual().Previous(at); err != nil || !got.IsZero() {
		t.Errorf("none: %v, %v", got, err)
	}
	for _, s := range []schedule.Schedule{schedule.Cron("bad"), schedule.Cron("0 0 0 1 1 ?").In("No/Where"), {Type: "LUNAR"}, {Type: "FIX_RATE", Conf: "soon"}} {
		if got, err := s.Previous(at); err == nil {
			t.Errorf("%v: %v", s, got)
		}
	}
}

// planNow is the instant that tests of values go by.
var planNow = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
