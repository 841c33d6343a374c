package cron

import (
	"strconv"
	"strings"

	"github.com/xxljob/xxljob/internal/errs"
)

// What is wrong with an expression, in the languages of people.

// The kinds of faults.
const (
	codeValue       = "value"          // it is none of the field's
	codeName        = "value-or-name"  // the same in a field that has names
	codeEmpty       = "empty"          // there is nothing between two commas
	codeStep        = "step"           // a step is out of bounds, or is no number
	codeNamedStep   = "named-step"     // a name stands before a step
	codeRange       = "range"          // the ends of a range are not two values of one kind
	codeBackwards   = "backwards"      // a range ends before it begins
	codeTwoMarks    = "two-marks"      // both fields of days are "?"
	codeNoMark      = "no-mark"        // neither is
	codeMark        = "mark"           // "?" in a crontab
	codeNearest     = "nearest"        // no day before W
	codeLast        = "last"           // L with what does not belong to it
	codeAlone       = "alone"          // L or # in a list
	codeLastWeekday = "last-weekday"   // no weekday before L
	codeNth         = "nth"            // no weekday before #, or no number from 1 to 5 behind it
	codeLong        = "too-long"       // more bytes than are read
	codeFields      = "fields"         // not six or seven fields
	codeIsCrontab   = "is-crontab"     // a crontab, where fields are Quartz's
	codeTabFields   = "crontab-fields" // not five fields
	codeIsQuartz    = "is-quartz"      // seven fields in a crontab, or where seconds stand in front of one
	codeHasSeconds  = "has-seconds"    // six fields in a crontab
	codeNoSeconds   = "no-seconds-in"  // five fields where seconds stand in front
	codeUnixDays    = "unix-days"      // neither field of days is "?", and robfig's readers know what is meant
	codeBothDays    = "both-days"      // the same, and both fields of days are set
	codeTag         = "tag"            // an unknown tag
	codePeriod      = "period"         // "@every 5m"
	codeZone        = "zone-in-front"  // "TZ=UTC 0 3 * * *"
	codeAWS         = "aws"            // "cron(0 10 * * ? *)"
	codeMoment      = "moment"         // "at(2027-01-01T00:00:00)"
	codeSign        = "sign"           // a sign that looks like another
	codeBlank       = "blank"          // one that looks like a blank
	codeUnseen      = "unseen"         // one that is not seen
)

// faultTexts has a line for each kind of fault. Those of a field stand behind a text that names
// it, and the English ones say what was expected there, in Error too; the others are whole.
func faultTexts() map[string]errs.Texts {
	return map[string]errs.Texts{
		codeValue:       {"{noun} from {min} to {max}", "应为 {min} 至 {max}", "應為 {min} 至 {max}"},
		codeName:        {"{noun} from {min} to {max} or a name such as {example}", "应为 {min} 至 {max}，或英文缩写（如 {example}）", "應為 {min} 至 {max}，或英文縮寫（如 {example}）"},
		codeEmpty:       {"a value between the commas", "逗号之间缺少取值", "逗號之間缺少取值"},
		codeStep:        {"a step from {min} to {max}", "“/”后的步长应为 {min} 至 {max}", "「/」後的間隔應為 {min} 至 {max}"},
		codeNamedStep:   {"numbers before a step, not names", "“/”前只能是数字，不能是英文缩写", "「/」前只能是數字，不能是英文縮寫"},
		codeRange:       {"a range of two values of one kind, each {noun} from {min} to {max}", "范围的两端应同为数字或同为英文缩写，取值为 {min} 至 {max}", "範圍的兩端應同為數字或同為英文縮寫，取值為 {min} 至 {max}"},
		codeBackwards:   {"a range whose end is not before its start", "范围的终点不能小于起点", "範圍的終點不能小於起點"},
		codeTwoMarks:    {`"?" in only one of day-of-month and day-of-week`, "日和周只能有一段为“?”", "日和週只能有一段為「?」"},
		codeNoMark:      {`"?" in exactly one of day-of-month and day-of-week`, "日和周必须有一段为“?”，且只能有一段", "日和週必須有一段為「?」，且只能有一段"},
		codeUnixDays:    {`"?" in exactly one of day-of-month and day-of-week, and 1 is Sunday: write {example}, or choose the type CRON_SECONDS`, "日和周必须有一段为“?”，且周的 1 为星期日：请写作 {example}，或选择 CRON_SECONDS 类型", "日和週必須有一段為「?」，且週的 1 為星期日：請寫作 {example}，或選擇 CRON_SECONDS 類型"},
		codeBothDays:    {`"?" in exactly one of day-of-month and day-of-week; the type CRON_SECONDS has both, and is due when either matches. Where both must match, as in Spring, the job has to look at one of them itself`, "日和周必须有一段为“?”。CRON_SECONDS 类型可以同时填写，满足其一即触发；若须同时满足（如 Spring），请在任务中自行判断其一", "日和週必須有一段為「?」。CRON_SECONDS 類型可以同時填寫，滿足其一即觸發；若須同時滿足（如 Spring），請在任務中自行判斷其一"},
		codeMark:        {"{noun} from {min} to {max}; ? is Quartz's, here write *", "“?”是 Quartz 的写法，此处应写“*”", "「?」是 Quartz 的寫法，此處應寫「*」"},
		codeNearest:     {"W after {noun} from {min} to {max}", "“W”前应为 {min} 至 {max} 的日期", "「W」前應為 {min} 至 {max} 的日期"},
		codeLast:        {"L, LW, L-n or L-nW with n from {min} to {max}", "应为 L、LW、L-n 或 L-nW，n 为 {min} 至 {max}", "應為 L、LW、L-n 或 L-nW，n 為 {min} 至 {max}"},
		codeAlone:       {"L and # to stand alone, not in a list", "“L”和“#”只能单独使用，不能与其他取值并列", "「L」和「#」只能單獨使用，不能與其他取值並列"},
		codeLastWeekday: {"L after {noun} from {min} to {max}", "“L”前应为 {min} 至 {max} 的星期", "「L」前應為 {min} 至 {max} 的星期"},
		codeNth:         {"{noun} from {min} to {max}, then # and a number from 1 to 5", "“#”前应为 {min} 至 {max} 的星期，后为 1 至 5", "「#」前應為 {min} 至 {max} 的星期，後為 1 至 5"},

		codeLong:       {"it has {count} bytes, expected at most {max}", "表达式有 {count} 个字节，最多 {max} 个", "運算式有 {count} 個位元組，最多 {max} 個"},
		codeFields:     {"it has {value}, expected 6 or 7: seconds minutes hours day-of-month month day-of-week [year]", "表达式有 {count} 段，应为 6 或 7 段：秒 分 时 日 月 周 [年]", "運算式有 {count} 段，應為 6 或 7 段：秒 分 時 日 月 週 [年]"},
		codeIsCrontab:  {"it has {value}, expected 6 or 7: seconds minutes hours day-of-month month day-of-week [year]; the five fields and the tags of crontab have a type of their own, CRONTAB", "表达式有 {count} 段，应为 6 或 7 段：秒 分 时 日 月 周 [年]；如使用 crontab 的五段写法或 @ 标签，请选择 CRONTAB 类型", "運算式有 {count} 段，應為 6 或 7 段：秒 分 時 日 月 週 [年]；如使用 crontab 的五段寫法或 @ 標籤，請選擇 CRONTAB 類型"},
		codeTabFields:  {"it has {value}, expected 5: minutes hours day-of-month month day-of-week, or a tag such as @daily", "表达式有 {count} 段，应为 5 段：分 时 日 月 周，或 @daily 等标签", "運算式有 {count} 段，應為 5 段：分 時 日 月 週，或 @daily 等標籤"},
		codeIsQuartz:   {"it has {value}, expected {max}; seven have a type of their own, CRON", "表达式有 {count} 段，应为 {max} 段；七段写法请选择 CRON 类型", "運算式有 {count} 段，應為 {max} 段；七段寫法請選擇 CRON 類型"},
		codeHasSeconds: {"it has {value}, expected 5: minutes hours day-of-month month day-of-week; six, with seconds in front, have types of their own: CRON_SECONDS, where 1 is Monday, and CRON, where 1 is Sunday", "表达式有 {count} 段，应为 5 段：分 时 日 月 周；前面加秒的六段写法请选择 CRON_SECONDS 类型（周的 1 为星期一）或 CRON 类型（1 为星期日）", "運算式有 {count} 段，應為 5 段：分 時 日 月 週；前面加秒的六段寫法請選擇 CRON_SECONDS 類型（週的 1 為星期一）或 CRON 類型（1 為星期日）"},
		codeNoSeconds:  {"it has {value}, expected 6: seconds minutes hours day-of-month month day-of-week; five are of the type CRONTAB", "表达式有 {count} 段，应为 6 段：秒 分 时 日 月 周；五段写法请选择 CRONTAB 类型", "運算式有 {count} 段，應為 6 段：秒 分 時 日 月 週；五段寫法請選擇 CRONTAB 類型"},
		codeTag:        {"it has an unknown tag, expected one such as @hourly or @daily; seconds are for the type CRON", "没有这样的标签，可使用 @hourly、@daily 等；精确到秒请选择 CRON 类型", "沒有這樣的標籤，可使用 @hourly、@daily 等；精確到秒請選擇 CRON 類型"},
		codePeriod:     {"it has a period: that is the type FIX_RATE, with {example} seconds", "表达式写的是时间间隔：请选择固定速度（FIX_RATE），间隔 {example} 秒", "運算式寫的是時間間隔：請選擇固定速度（FIX_RATE），間隔 {example} 秒"},
		codeZone:       {"it begins with a zone, which has a field of its own: {example}", "表达式以时区开头：请将 {example} 填入“时区”", "運算式以時區開頭：請將 {example} 填入「時區」"},
		codeAWS:        {"it has AWS's cron(…): that is the type CRON, with seconds in front: {example}", "这是 AWS 的 cron(…) 写法：请选择 CRON 类型，并在最前面加上秒，如 {example}", "這是 AWS 的 cron(…) 寫法：請選擇 CRON 類型，並在最前面加上秒，如 {example}"},
		codeMoment:     {"it has a moment: that is the type ONCE", "表达式写的是一个时刻：请选择 ONCE 类型", "運算式寫的是一個時刻：請選擇 ONCE 類型"},
		codeSign:       {`character {count} is "{value}", expected "{example}"`, "第 {count} 个字符是“{value}”，应为半角“{example}”", "第 {count} 個字元是「{value}」，應為半形「{example}」"},
		codeBlank:      {`character {count} is "{value}", expected an ordinary blank`, "第 {count} 个字符是“{value}”，应为普通空格", "第 {count} 個字元是「{value}」，應為普通空格"},
		codeUnseen:     {`character {count} is "{value}", which is not seen: leave it out`, "第 {count} 个字符是看不见的“{value}”，请删去", "第 {count} 個字元是看不見的「{value}」，請刪去"},
	}
}

// fieldNames are the fields, by their English names.
func fieldNames() map[string]errs.Texts {
	return map[string]errs.Texts{
		"seconds": {"seconds", "秒", "秒"}, "minutes": {"minutes", "分", "分"}, "hours": {"hours", "时", "時"},
		"day-of-month": {"day-of-month", "日", "日"}, "month": {"month", "月", "月"}, "day-of-week": {"day-of-week", "周", "週"}, "year": {"year", "年", "年"},
	}
}

// In says what is wrong in a language: "en", "zh-CN" or "zh-TW". Any other is English. Unlike
// Error it is for who types the expression: it does not repeat that, and names no Go.
func (e *FieldError) In(lang string) string {
	where := errs.Texts{`field {n} ({field}) has "{value}", expected `, "第 {n} 段（{field}）“{value}”有误：", "第 {n} 段（{field}）「{value}」有誤："}
	switch {
	case e.Position == 0:
		where = errs.Texts{}
	case e.Value == "":
		where = errs.Texts{`field {n} ({field}) has "", expected `, "第 {n} 段（{field}）有误：", "第 {n} 段（{field}）有誤："}
	}
	return e.fill(where.In(lang), lang) + e.fill(faultTexts()[e.Code].In(lang), lang)
}

// fill puts the values of the fault into a text.
func (e *FieldError) fill(text, lang string) string {
	return strings.NewReplacer("{n}", strconv.Itoa(e.Position), "{field}", fieldNames()[e.Field].In(lang), "{min}", strconv.Itoa(e.Min), "{max}", strconv.Itoa(e.Max),
		"{count}", strconv.Itoa(e.Count), "{value}", Quoted(e.Value), "{example}", Quoted(e.Example), "{noun}", e.noun).Replace(text)
}

// Quoted is a text as it stands between quotation marks: what cannot be seen is written out.
func Quoted(s string) string {
	s = strconv.Quote(s)
	return strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
}
