package schedule

import (
	"errors"
	"strings"

	"github.com/xxljob/xxljob/internal/cron"
	"github.com/xxljob/xxljob/internal/errs"
)

// What is wrong with a schedule, for programs by a code and for people in their language.

// Error is what is wrong with a Schedule. errors.As finds it in what Next, Upcoming and
// Every return, in the FieldError of a Job, and in what calls return that save one or start it.
type Error struct {
	// Field is the field of the Schedule: "Type", "Conf", "Zone" or "DST".
	Field string
	// Code is the kind of fault. Of a Type, a Zone or a DST: "type", "zone" (there is none of
	// that name), "zone-local", "dst", "no-zone" and "no-dst" (the type has none). Of seconds:
	// "seconds" and "no-seconds" (it is not a number of them, or empty), "positive", "too-long",
	// "milliseconds" and "sub-second". Of ONCE: "time" and "no-time". Of an expression as a
	// whole: "too-long", "fields", "is-crontab", "crontab-fields", "is-quartz",
	// "has-seconds", "no-seconds-in" (all of them
	// about how many fields there are), "tag", "period", "moment", "aws" (its cron(…)), "zone-in-front",
	// and of a sign that only looks right "sign", "blank" and "unseen". Of one of its
	// fields: "value", "value-or-name", "empty", "step", "named-step", "range", "backwards",
	// "two-marks", "no-mark", "unix-days", "both-days", "mark" (these about "?"), "nearest", "last", "alone",
	// "last-weekday" and "nth". There may be more of them in a later release.
	Code string
	// Part is the field of the expression, as "minutes", and Position its number from 1 on; ""
	// and 0 where it is about no field.
	Part     string
	Position int
	// Value is the offending text, of a field of an expression in capitals; a long one is cut.
	Value string
	// Min and Max bound what an expression may have there: values, steps, fields, bytes; 0 and 0
	// where it is not about a number.
	Min, Max int

	example string // what would be right, or the type of the schedule
	err     error  // what Error says
}

func (e *Error) Error() string { return e.err.Error() }

func (e *Error) Unwrap() error { return e.err }

// In says what is wrong in a language: "en", "zh-CN" or "zh-TW"; any other is English. It is a
// sentence for who has typed the schedule, without a full stop: unlike Error it does not repeat
// that, and has no names of Go.
func (e *Error) In(lang string) string {
	var bad *cron.FieldError
	if errors.As(e.err, &bad) {
		return bad.In(lang)
	}
	example := strings.ReplaceAll(e.example, ", ", errs.Texts{", ", "、", "、"}.In(lang))
	return strings.NewReplacer("{value}", cron.Quoted(e.Value), "{example}", example).Replace(scheduleFaults()[e.Code].In(lang))
}

// scheduleFaults are the texts of faults that are none of an expression.
func scheduleFaults() map[string]errs.Texts {
	return map[string]errs.Texts{
		"type":         {`there is no type "{value}": want one of {example}`, "没有调度类型“{value}”，应为 {example} 之一", "沒有排程類型「{value}」，應為 {example} 之一"},
		"zone":         {`there is no zone "{value}": want an IANA name such as {example}`, "没有时区“{value}”，应为 IANA 名称，如 {example}", "沒有時區「{value}」，應為 IANA 名稱，如 {example}"},
		"zone-local":   {`the zone "{value}" differs from node to node: want an IANA name such as Asia/Shanghai`, "时区“{value}”因节点而异，应为 IANA 名称，如 Asia/Shanghai", "時區「{value}」因節點而異，應為 IANA 名稱，如 Asia/Shanghai"},
		"dst":          {`there is no DST policy "{value}": want QUARTZ, or none`, "没有夏令时策略“{value}”，应为 QUARTZ 或留空", "沒有夏令時策略「{value}」，應為 QUARTZ 或留空"},
		"no-zone":      {`a schedule of type {example} has no zone, and this one has "{value}"`, "{example} 类型的调度没有时区，这里却是“{value}”", "{example} 類型的排程沒有時區，這裡卻是「{value}」"},
		"no-dst":       {`a schedule of type {example} has no DST policy, and this one has "{value}"`, "{example} 类型的调度没有夏令时策略，这里却是“{value}”", "{example} 類型的排程沒有夏令時策略，這裡卻是「{value}」"},
		"seconds":      {`it has "{value}", expected seconds, as {example}`, "“{value}”有误：应为秒数，如 {example}", "「{value}」有誤：應為秒數，如 {example}"},
		"no-seconds":   {"it is empty, expected seconds, as {example}", "内容为空，应为秒数，如 {example}", "內容為空，應為秒數，如 {example}"},
		"positive":     {`it has "{value}", expected more than 0 seconds`, "“{value}”有误：秒数应大于 0", "「{value}」有誤：秒數應大於 0"},
		"too-long":     {`it has "{value}", expected at most 100 years, which are {example} seconds`, "“{value}”有误：最长 100 年，即 {example} 秒", "「{value}」有誤：最長 100 年，即 {example} 秒"},
		"milliseconds": {`it has "{value}", expected seconds with at most three decimals`, "“{value}”有误：秒数最多三位小数", "「{value}」有誤：秒數最多三位小數"},
		"sub-second":   {`it has "{value}", and less than one second is not allowed here`, "“{value}”有误：此处不允许小于 1 秒", "「{value}」有誤：此處不允許小於 1 秒"},
		"time":         {`it has "{value}", expected a time such as {example}`, "“{value}”有误：应为时间，如 {example}", "「{value}」有誤：應為時間，如 {example}"},
		"no-time":      {"it is empty, expected a time such as {example}", "内容为空，应为时间，如 {example}", "內容為空，應為時間，如 {example}"},
	}
}

// faultyField is a fault of a field with its value; what would be right may be several, with
// commas between them.
func faultyField(field, value, code, example string, err error) error {
	if value == "" && field == "Conf" {
		code = "no-" + code
	}
	return &Error{Field: field, Code: code, Value: errs.Shorten(value, 96), example: example, err: err}
}

// faultyExpression is a fault that was found in an expression.
func faultyExpression(err error) error {
	e := &Error{Field: "Conf", err: err}
	var bad *cron.FieldError
	if errors.As(err, &bad) {
		e.Code, e.Position, e.Value, e.Min, e.Max = bad.Code, bad.Position, bad.Value, bad.Min, bad.Max
		if e.Part = bad.Field; bad.Position == 0 {
			e.Part, e.Value = "", bad.Expr
		}
	}
	return e
}
