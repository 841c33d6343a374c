package schedule_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// TestScheduleError: each fault of a schedule says which field of it is faulty, of which kind it
// is, and what it is about, in each language.
func TestScheduleError(t *testing.T) {
	every := func(kind schedule.Type, conf string) schedule.Schedule {
		return schedule.Schedule{Type: kind, Conf: conf}
	}
	for _, tt := range []struct {
		s           schedule.Schedule
		field, code string
		value       string
		en, cn, tw  string
	}{
		{schedule.Cron("* 61 * * * ?"), "Conf", "value", "61", `field 2 (minutes) has "61", expected a minute from 0 to 59`, "第 2 段（分）“61”有误：应为 0 至 59", "第 2 段（分）「61」有誤：應為 0 至 59"},
		{schedule.Crontab("@fortnightly"), "Conf", "tag", "@fortnightly", "it has an unknown tag, expected one such as @hourly or @daily; seconds are for the type CRON", "没有这样的标签，可使用 @hourly、@daily 等；精确到秒请选择 CRON 类型", "沒有這樣的標籤，可使用 @hourly、@daily 等；精確到秒請選擇 CRON 類型"},
		{schedule.Cron("* * * * * ?").In("Mars/Phobos"), "Zone", "zone", "Mars/Phobos", `there is no zone "Mars/Phobos": want an IANA name such as Asia/Shanghai`, "没有时区“Mars/Phobos”，应为 IANA 名称，如 Asia/Shanghai", "沒有時區「Mars/Phobos」，應為 IANA 名稱，如 Asia/Shanghai"},
		{schedule.Cron("* * * * * ?").In("GMT+8"), "Zone", "zone", "GMT+8", `there is no zone "GMT+8": want an IANA name such as Etc/GMT-8, Asia/Shanghai`, "没有时区“GMT+8”，应为 IANA 名称，如 Etc/GMT-8、Asia/Shanghai", "沒有時區「GMT+8」，應為 IANA 名稱，如 Etc/GMT-8、Asia/Shanghai"},
		{schedule.Cron("* * * * * ?").In("UTC+08:00"), "Zone", "zone", "UTC+08:00", `there is no zone "UTC+08:00": want an IANA name such as Etc/GMT-8, Asia/Shanghai`, "没有时区“UTC+08:00”，应为 IANA 名称，如 Etc/GMT-8、Asia/Shanghai", "沒有時區「UTC+08:00」，應為 IANA 名稱，如 Etc/GMT-8、Asia/Shanghai"},
		{schedule.Cron("* * * * * ?").In("utc-5"), "Zone", "zone", "utc-5", `there is no zone "utc-5": want an IANA name such as Etc/GMT+5`, "没有时区“utc-5”，应为 IANA 名称，如 Etc/GMT+5", "沒有時區「utc-5」，應為 IANA 名稱，如 Etc/GMT+5"},
		{schedule.Cron("* * * * * ?").In("+0530"), "Zone", "zone", "+0530", `there is no zone "+0530": want an IANA name such as Asia/Kolkata`, "没有时区“+0530”，应为 IANA 名称，如 Asia/Kolkata", "沒有時區「+0530」，應為 IANA 名稱，如 Asia/Kolkata"},
		{schedule.Cron("* * * * * ?").In(" Asia/Tokyo"), "Zone", "zone", " Asia/Tokyo", `there is no zone " Asia/Tokyo": want an IANA name such as Asia/Tokyo`, "没有时区“ Asia/Tokyo”，应为 IANA 名称，如 Asia/Tokyo", "沒有時區「 Asia/Tokyo」，應為 IANA 名稱，如 Asia/Tokyo"},
		{schedule.Cron("0 0 12 * * ？"), "Conf", "sign", "0 0 12 * * ？", `character 12 is "？", expected "?"`, "第 12 个字符是“？”，应为半角“?”", "第 12 個字元是「？」，應為半形「?」"},
		{schedule.Crontab("cron(0 10 * * ? *)"), "Conf", "aws", "cron(0 10 * * ? *)", "it has AWS's cron(…): that is the type CRON, with seconds in front: 0 0 10 * * ? *", "这是 AWS 的 cron(…) 写法：请选择 CRON 类型，并在最前面加上秒，如 0 0 10 * * ? *", "這是 AWS 的 cron(…) 寫法：請選擇 CRON 類型，並在最前面加上秒，如 0 0 10 * * ? *"},
		{schedule.Crontab("* * * * *").In("Local"), "Zone", "zone-local", "Local", `the zone "Local" differs from node to node: want an IANA name such as Asia/Shanghai`, "时区“Local”因节点而异，应为 IANA 名称，如 Asia/Shanghai", "時區「Local」因節點而異，應為 IANA 名稱，如 Asia/Shanghai"},
		{schedule.FixedRate(time.Minute).In("Asia/Shanghai"), "Zone", "no-zone", "Asia/Shanghai", `a schedule of type FIX_RATE has no zone, and this one has "Asia/Shanghai"`, "FIX_RATE 类型的调度没有时区，这里却是“Asia/Shanghai”", "FIX_RATE 類型的排程沒有時區，這裡卻是「Asia/Shanghai」"},
		{schedule.FixedDelay(time.Minute).WithDST(schedule.DSTQuartz), "DST", "no-dst", "QUARTZ", `a schedule of type FIX_DELAY has no DST policy, and this one has "QUARTZ"`, "FIX_DELAY 类型的调度没有夏令时策略，这里却是“QUARTZ”", "FIX_DELAY 類型的排程沒有夏令時策略，這裡卻是「QUARTZ」"},
		{schedule.Cron("* * * * * ?").WithDST("quartz"), "DST", "dst", "quartz", `there is no DST policy "quartz": want QUARTZ, or none`, "没有夏令时策略“quartz”，应为 QUARTZ 或留空", "沒有夏令時策略「quartz」，應為 QUARTZ 或留空"},
		{every("cron", "* * * * * ?"), "Type", "type", "cron", `there is no type "cron": want one of NONE, CRON, FIX_RATE, FIX_DELAY, CRONTAB, CRON_SECONDS, ONCE`, "没有调度类型“cron”，应为 NONE、CRON、FIX_RATE、FIX_DELAY、CRONTAB、CRON_SECONDS、ONCE 之一", "沒有排程類型「cron」，應為 NONE、CRON、FIX_RATE、FIX_DELAY、CRONTAB、CRON_SECONDS、ONCE 之一"},
		{every(schedule.TypeFixRate, "often"), "Conf", "seconds", "often", `it has "often", expected seconds, as 60`, "“often”有误：应为秒数，如 60", "「often」有誤：應為秒數，如 60"},
		{every(schedule.TypeFixDelay, "1m30s"), "Conf", "seconds", "1m30s", `it has "1m30s", expected seconds, as 90`, "“1m30s”有误：应为秒数，如 90", "「1m30s」有誤：應為秒數，如 90"},
		{every(schedule.TypeFixRate, ""), "Conf", "no-seconds", "", "it is empty, expected seconds, as 60", "内容为空，应为秒数，如 60", "內容為空，應為秒數，如 60"},
		{schedule.FixedDelay(-time.Second), "Conf", "positive", "-1", `it has "-1", expected more than 0 seconds`, "“-1”有误：秒数应大于 0", "「-1」有誤：秒數應大於 0"},
		{schedule.FixedRate(101 * 365 * 24 * time.Hour), "Conf", "too-long", "3185136000", `it has "3185136000", expected at most 100 years, which are 3153600000 seconds`, "“3185136000”有误：最长 100 年，即 3153600000 秒", "「3185136000」有誤：最長 100 年，即 3153600000 秒"},
		{schedule.FixedRate(1500 * time.Microsecond), "Conf", "milliseconds", "0.0015", `it has "0.0015", expected seconds with at most three decimals`, "“0.0015”有误：秒数最多三位小数", "「0.0015」有誤：秒數最多三位小數"},
		{schedule.FixedRate(999 * time.Millisecond), "Conf", "sub-second", "0.999", `it has "0.999", and less than one second is not allowed here`, "“0.999”有误：此处不允许小于 1 秒", "「0.999」有誤：此處不允許小於 1 秒"},
		{every(schedule.TypeOnce, "tomorrow"), "Conf", "time", "tomorrow", `it has "tomorrow", expected a time such as 2027-03-01T08:00:00Z`, "“tomorrow”有误：应为时间，如 2027-03-01T08:00:00Z", "「tomorrow」有誤：應為時間，如 2027-03-01T08:00:00Z"},
		{every(schedule.TypeOnce, ""), "Conf", "no-time", "", "it is empty, expected a time such as 2027-03-01T08:00:00Z", "内容为空，应为时间，如 2027-03-01T08:00:00Z", "內容為空，應為時間，如 2027-03-01T08:00:00Z"},
	} {
		bad := scheduleError(t, tt.s.Validate(false))
		if bad == nil {
			t.Errorf("%v is accepted", tt.s)
			continue
		}
		if bad.Field != tt.field || bad.Code != tt.code || bad.Value != tt.value {
			t.Errorf("%v: %s, %s, %q", tt.s, bad.Field, bad.Code, bad.Value)
		}
		if en, cn, tw := bad.In("en"), bad.In("zh-CN"), bad.In("zh-TW"); en != tt.en || cn != tt.cn || tw != tt.tw {
			t.Errorf("%v:\n%s\n%s\n%s\nwant\n%s\n%s\n%s", tt.s, en, cn, tw, tt.en, tt.cn, tt.tw)
		}
		if bad.In("fr") != bad.In("en") {
			t.Errorf("%v: %q in a language that is not there", tt.s, bad.In("fr"))
		}
		foreign := regexp.MustCompile(`[a-z]{2}`)
		if own := strings.NewReplacer(tt.value, "", "Asia/Shanghai", "", "Asia/Kolkata", "", "Asia/Tokyo", "", "Etc/", "", "cron(…)", "", "@hourly", "", "@daily", "").Replace(bad.In("zh-CN") + bad.In("zh-TW")); foreign.MatchString(own) {
			t.Errorf("%v: English words in %q", tt.s, own)
		}
	}
}

// scheduleError is what an error says of a schedule.
func scheduleError(t *testing.T, err error) *schedule.Error {
	t.Helper()
	var bad *schedule.Error
	if err != nil && !errors.As(err, &bad) {
		t.Errorf("no ScheduleError: %v", err)
	}
	return bad
}

// TestScheduleErrorOfAField: where a field of an expression is faulty, the error says which, and
// what it may have.
func TestScheduleErrorOfAField(t *testing.T) {
	_, err := schedule.Cron("0 0/60 * * * ?").Next(planNow)
	if bad := scheduleError(t, err); bad.Part != "minutes" || bad.Position != 2 || bad.Value != "0/60" || bad.Min != 1 || bad.Max != 59 {
		t.Errorf("%+v", bad)
	}
	_, err = schedule.Cron("* * * * *").Upcoming(planNow, 3)
	if bad := scheduleError(t, err); bad.Part != "" || bad.Position != 0 || bad.Value != "* * * * *" || bad.Min != 6 || bad.Max != 7 {
		t.Errorf("%+v", bad)
	}
	// It is found in the error of a definition, whatever else is wrong with that.
	job := store.Job{App: "orders", Name: "", Handler: "work", Schedule: schedule.Cron("nonsense")}
	list := store.FieldErrors(job.Validate())
	if len(list) != 2 || list[1].Field != "Schedule" || scheduleError(t, list[1]).Code != "fields" {
		t.Errorf("%v", list)
	}
}

// TestDescribeInvalidIn: an invalid schedule is described whole in each language.
func TestDescribeInvalidIn(t *testing.T) {
	s := schedule.Cron("* 61 * * * ?")
	want := [3]string{`invalid: field 2 (minutes) has "61", expected a minute from 0 to 59`, "无效：第 2 段（分）“61”有误：应为 0 至 59", "無效：第 2 段（分）「61」有誤：應為 0 至 59"}
	if got := [3]string{s.DescribeIn("en"), s.DescribeIn("zh-CN"), s.DescribeIn("zh-TW")}; got != want || s.Describe() != want[0] {
		t.Errorf("%q", got)
	}
}
