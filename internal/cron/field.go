package cron

import "strings"

// A field describes one field of a dialect: its bounds, its names, and what a
// step or a range may be.
type field struct {
	name     string
	position int
	min, max int
	maxStep  int
	noun     string   // for messages: "a minute"
	names    []string // full names; the first three letters will do
	fullName bool     // whole names are accepted beside three letters
	base     int      // subtracted from values in the set; nonzero for years
	wraps    bool     // a range may run over the end: 22-2
	bareStep bool     // "/5" stands for "*/5"
	loose    bool     // names and numbers mix, and a step may stand behind names: 1-FRI/2
}

// A span is one item of a list: from lo to hi in steps. Where hi is greater
// than the field's maximum the span runs over the end.
type span struct {
	lo, hi, step int
	plain        bool // a single value, written as such
}

// fault is about a part that the field cannot have; its bounds are those of the field's values.
func (f *field) fault(code, part string) error {
	return f.bounded(code, part, max(f.min, f.base), f.max)
}

// bounded is a fault with bounds of its own.
func (f *field) bounded(code, part string, least, most int) error {
	e := &FieldError{Field: f.name, Position: f.position, Value: shorten(part), Code: code, Min: least, Max: most, noun: f.noun}
	if code == codeName {
		e.Example = f.names[0][:3]
	}
	e.Expected = e.fill(faultTexts()[code].In("en"), "en")
	return e
}

// notOne is about a part that is no value of the field.
func (f *field) notOne(part string) error {
	if f.names != nil {
		return f.fault(codeName, part)
	}
	return f.fault(codeValue, part)
}

// parse reads a list into a set, and reports whether it holds plain values only.
func (f *field) parse(text string) (set bitset, plain bool, err error) {
	plain = true
	for item := range strings.SplitSeq(text, ",") {
		s, err := f.item(item)
		if err != nil {
			return bitset{}, false, err
		}
		plain = plain && s.plain
		f.fill(&set, s)
	}
	return set, plain, nil
}

func (f *field) fill(set *bitset, s span) {
	size := f.max - f.min + 1
	for v := s.lo; v <= s.hi; v += s.step {
		w := v
		if w > f.max {
			w -= size
		}
		if w >= f.base {
			set.add(w - f.base)
		}
	}
}

// item reads "*", a value, a range, or one of them with a step.
func (f *field) item(item string) (span, error) {
	if item == "" {
		return span{}, f.bounded(codeEmpty, item, 0, 0)
	}
	body, stepText, stepped := strings.Cut(item, "/")
	s, named, err := f.body(item, body, stepped)
	if err != nil || !stepped {
		return s, err
	}
	step, ok := number(stepText)
	if !ok || step < 1 || step > f.maxStep {
		return span{}, f.bounded(codeStep, item, 1, f.maxStep)
	}
	if named && !f.loose {
		return span{}, f.bounded(codeNamedStep, item, 0, 0)
	}
	if s.plain {
		s.hi = f.max
	}
	s.step, s.plain = step, false
	return s, nil
}

// body reads what stands before a step.
func (f *field) body(item, body string, stepped bool) (s span, named bool, err error) {
	if body == "*" || body == "" && stepped && f.bareStep {
		return span{lo: max(f.min, f.base), hi: f.max, step: 1}, false, nil
	}
	from, to, ranged := strings.Cut(body, "-")
	lo, named, ok := f.value(from)
	if !ok {
		return s, false, f.notOne(item)
	}
	if !ranged {
		return span{lo: lo, hi: lo, step: 1, plain: true}, named, nil
	}
	hi, alsoNamed, ok := f.value(to)
	if !ok || named != alsoNamed && !f.loose {
		return s, false, f.fault(codeRange, item)
	}
	if hi < lo {
		if !f.wraps {
			return s, false, f.bounded(codeBackwards, item, 0, 0)
		}
		hi += f.max - f.min + 1
	}
	return span{lo: lo, hi: hi, step: 1}, named, nil
}

// value reads a number within the bounds or a name; the first name is the
// minimum, 1 for months and Quartz weekdays and 0 for crontab weekdays.
func (f *field) value(text string) (v int, named, ok bool) {
	if v, ok := number(text); ok {
		return v, false, v >= f.min && v <= f.max
	}
	for i, name := range f.names {
		if text == name[:3] || f.fullName && text == name {
			return f.min + i, true, true
		}
	}
	return 0, false, false
}

// number reads up to four digits.
func number(text string) (n int, ok bool) {
	if text == "" || len(text) > 4 {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = n*10 + int(text[i]-'0')
	}
	return n, true
}
