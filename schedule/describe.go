package schedule

// Schedules in words.

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/cron"
)

// Describe returns the schedule in words, in English.
func (s Schedule) Describe() string { return s.DescribeIn("en") }

// DescribeIn returns the schedule in words of a language: "en", "zh-CN" or "zh-TW". Any other
// is English. Of an invalid one it says what is wrong with it.
func (s Schedule) DescribeIn(lang string) string {
	var bad *Error
	if errors.As(s.Validate(true), &bad) {
		return scheduleWord(lang, "invalid: ") + bad.In(lang)
	}
	d, _ := s.Every() // checked above
	switch s.Type {
	case TypeCron, TypeCrontab, TypeCronSeconds:
		c, _ := compiled(s) // checked above
		return c.describe(lang) + " (" + c.loc.String() + ")"
	case TypeFixRate:
		return fmt.Sprintf(scheduleWord(lang, "every %v"), periodIn(lang, d))
	case TypeFixDelay:
		return fmt.Sprintf(scheduleWord(lang, "%v after the end of the previous run"), periodIn(lang, d))
	case TypeOnce:
		return scheduleWord(lang, "once at ") + s.Conf
	}
	return scheduleWord(lang, "only when triggered")
}

// periodIn is a period in words of a language, exactly: "1 hour 30 minutes".
func periodIn(lang string, d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}, {time.Millisecond, "millisecond"}} {
		n := d / unit.of
		if d -= n * unit.of; n == 0 {
			continue
		}
		name := scheduleWord(lang, unit.name)
		if name == unit.name && n != 1 {
			name += "s"
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, name))
	}
	return strings.Join(parts, " ")
}

// scheduleWord is a text about schedules in a language.
func scheduleWord(lang, english string) string {
	if lang != "zh-CN" && lang != "zh-TW" {
		return english
	}
	text := map[string]string{
		"invalid: ": "无效：", "every %v": "每隔 %v", "%v after the end of the previous run": "上次运行结束后 %v",
		"hour": "小时", "minute": "分钟", "second": "秒", "millisecond": "毫秒",
		"once at ": "仅一次：", "only when triggered": "仅手动触发",
	}[english]
	if lang == "zh-TW" {
		text = cron.Traditional(text)
	}
	return text
}
