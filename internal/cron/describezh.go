package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// Schedules in Chinese: years, days, times, from the greater to the smaller, as the language
// has it. Traditional characters are made out of simplified ones at the end.

// DescribeIn returns the schedule in words of a language: "en", "zh-CN" or "zh-TW". Any other
// is English.
func (e *Expr) DescribeIn(lang string) string { return e.describeIn(lang, true) }

// DescribeIn returns the schedule in words of a language, as that of an Expr does.
func (c *Crontab) DescribeIn(lang string) string { return c.describeIn(lang, c.withSeconds) }

func (c *calendar) describeIn(lang string, withSeconds bool) string {
	switch lang {
	case "zh-CN":
		return c.describeZh(withSeconds)
	case "zh-TW":
		return Traditional(c.describeZh(withSeconds))
	}
	return c.describe(withSeconds)
}

// Traditional writes what this file says, and what is said of schedules elsewhere, in
// traditional characters.
func Traditional(simplified string) string {
	return strings.NewReplacer(
		"运行", "執行", "时", "時", "钟", "鐘", "从", "從", "内", "內", "后", "後", "数", "數", "个", "個", "点", "點",
		"触发", "觸發", "动", "動", "仅", "僅", "无", "無", "为", "為", "结", "結",
	).Replace(simplified)
}

func (c *calendar) describeZh(withSeconds bool) string {
	when, set := c.timeZh(withSeconds)
	days := c.daysZh()
	if days == "" && set {
		days = "每天"
	}
	var parts []string
	for _, part := range []string{c.yearsZh(), days, when} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, " ")
	if c.months == 0 || c.years == (bitset{}) {
		text += "（永不触发）"
	}
	return text
}

// timeZh is describeTime in Chinese.
func (c *calendar) timeZh(withSeconds bool) (text string, set bool) {
	hours, minutes, seconds, few := c.times()
	if few {
		return strings.Join(clockTimes(hours, minutes, seconds, withSeconds), "、"), true
	}
	units := []unitZh{{seconds, 60, "秒", "第%s秒"}, {minutes, 60, "分钟", "第%s分"}, {hours, 24, "小时", "%s时"}}
	for len(units) > 1 && len(units[0].values) == 1 && units[0].values[0] == 0 {
		units = units[1:]
	}
	text = units[0].often(len(units) == 1)
	pace := strings.HasPrefix(text, "每")
	for i, u := range units[1:] {
		rest := units[i+1:]
		if fullZh(rest) && pace {
			break
		}
		joint := "的"
		if pace && !strings.HasPrefix(u.within(), "每") {
			joint = "内"
		}
		text, pace = u.within()+joint+text, strings.HasPrefix(u.within(), "每")
		if fullZh(rest) {
			break
		}
	}
	return text, false
}

// unitZh is a time field with its matching values.
type unitZh struct {
	values []int
	size   int
	noun   string // as it is counted
	named  string // as one of them is called
}

func fullZh(units []unitZh) bool {
	for _, u := range units {
		if len(u.values) != u.size {
			return false
		}
	}
	return true
}

// often is the smallest unit of a schedule, the one that sets its pace.
func (u unitZh) often(alone bool) string {
	text := u.within()
	if alone && !strings.HasPrefix(text, "每") {
		text += "整点"
	}
	return text
}

// within is a unit that holds smaller ones.
func (u unitZh) within() string {
	if len(u.values) == u.size {
		return "每" + u.noun
	}
	if step := progression(u.values); step > 1 {
		return fmt.Sprintf("每%d%s", step, u.noun) + u.limits(step)
	}
	return fmt.Sprintf(u.named, runsZh(u.values, strconv.Itoa))
}

// limits says where a progression begins and ends, unless it fills the field.
func (u unitZh) limits(step int) string {
	first, last := u.values[0], u.values[len(u.values)-1]
	switch {
	case last+step < u.size:
		return "（" + fmt.Sprintf(u.named, fmt.Sprintf("%d至%d", first, last)) + "）"
	case first != 0:
		return "（从" + fmt.Sprintf(u.named, fmt.Sprint(first)) + "起）"
	}
	return ""
}

// runsZh is runs in Chinese.
func runsZh(values []int, name func(int) string) string {
	return strings.Join(spans(values, "至", name), "、")
}

// daysZh returns "" when every day matches.
func (c *calendar) daysZh() string {
	r := &c.rule
	months := members(uint64(c.namedMonths))
	in := ""
	if len(months) < 12 {
		in = runsZh(months, func(m int) string { return fmt.Sprintf("%d月", m) })
	}
	within := in
	if in == "" {
		within = "每月"
	} else if len(months) > 1 {
		within += "的"
	}
	switch {
	case r.anyDay && r.anyWeekday:
		if in == "" {
			return ""
		}
		return in + "每天"
	case r.anyDay:
		return r.weekdaysZh(within, in)
	case r.anyWeekday:
		return within + r.datesZh()
	case r.either:
		return within + r.datesZh() + "，或" + r.weekdaysZh(within, in)
	}
	return within + r.datesZh() + "，且为" + r.weekdaysZh("当月", "")
}

// datesZh describes the day-of-month field.
func (r *dayRule) datesZh() string {
	day := func(n int) string { return fmt.Sprintf("%d日", n) }
	fromLast := func(n int) string {
		if n == 0 {
			return "最后一天"
		}
		return fmt.Sprintf("倒数第%d天", n+1)
	}
	days := members(uint64(r.days))
	var parts []string
	if step := progression(days); step > 1 && len(days) > 4 {
		if last := days[len(days)-1]; last+step <= 31 {
			parts = append(parts, fmt.Sprintf("%d日至%d日每%d天", days[0], last, step))
		} else {
			parts = append(parts, fmt.Sprintf("从%d日起每%d天", days[0], step))
		}
	} else if len(days) > 0 {
		parts = append(parts, runsZh(days, day))
	}
	for _, n := range members(uint64(r.fromLast)) {
		parts = append(parts, fromLast(n))
	}
	for _, d := range members(uint64(r.near)) {
		parts = append(parts, "最接近"+day(d)+"的工作日")
	}
	for _, n := range members(uint64(r.nearLast)) {
		if n == 0 {
			parts = append(parts, "最后一个工作日")
		} else {
			parts = append(parts, "最接近"+fromLast(n)+"的工作日")
		}
	}
	return strings.Join(parts, "、")
}

// weekdaysZh describes the day-of-week field, its weeks from Monday on.
func (r *dayRule) weekdaysZh(within, in string) string {
	name := func(d int) string { return "星期" + string([]rune("日一二三四五六")[d%7]) }
	var parts []string
	if r.weekdays != 0 {
		parts = append(parts, runsZh(r.fromMonday(), func(d int) string { return name(d + 1) }))
	}
	plain := len(parts) > 0
	for w := range 7 {
		for _, n := range members(uint64(r.nth[w])) {
			parts = append(parts, "第"+string([]rune("〇一二三四五")[n])+"个"+name(w))
		}
		if r.lastWeekday>>w&1 != 0 {
			parts = append(parts, "最后一个"+name(w))
		}
	}
	if plain && len(parts) == 1 {
		if in != "" {
			in += "的"
		}
		return in + parts[0]
	}
	return within + strings.Join(parts, "、")
}

func (c *calendar) yearsZh() string {
	years := c.someYears()
	if len(years) == 0 {
		return ""
	}
	first, last := years[0], years[len(years)-1]
	step := progression(years)
	switch {
	case step == 0:
		return runsZh(years, strconv.Itoa) + "年"
	case step == 1 && last == lastYear:
		return fmt.Sprintf("%d年起", first)
	case step == 1:
		return fmt.Sprintf("%d至%d年", first, last)
	case last+step > lastYear:
		return fmt.Sprintf("%d年起每%d年", first, step)
	}
	return fmt.Sprintf("%d至%d年每%d年", first, last, step)
}
