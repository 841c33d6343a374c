package cron

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxLength bounds an expression in bytes. The longest sensible one, with every
// value of every field spelled out, stays below it.
const maxLength = 1024

// FieldError reports what is wrong with an expression and where.
type FieldError struct {
	// Expr is the expression as it was given, cut short when overlong.
	Expr string
	// Field is the name of the field, or "expression" for the whole.
	Field string
	// Position is the 1-based number of the field, or 0 for the whole.
	Position int
	// Value is the offending part.
	Value string
	// Expected says what would have been right.
	Expected string
	// Code is the kind of fault.
	Code string
	// Min and Max bound what was expected, where that is a number; else both are 0.
	Min, Max int
	// Count is how many fields the expression has, or bytes where it is too long, or which of its
	// characters a sign is that only looks right.
	Count int
	// Example would be right, or the offending part where that belongs: a name, seconds, a zone.
	Example string

	noun string // what the field has, in English
}

// Error names the field, its position, the value and what was expected.
func (e *FieldError) Error() string {
	switch e.Code {
	case codeSign, codeBlank, codeUnseen:
		sign, _ := utf8.DecodeRuneInString(e.Value)
		return fmt.Sprintf("cron expression %q: has %q (%U) as character %d, expected %s", e.Expr, sign, sign, e.Count, e.Expected)
	}
	if e.Position == 0 {
		return fmt.Sprintf("cron expression %q: has %s, expected %s", e.Expr, e.Value, e.Expected)
	}
	return fmt.Sprintf("cron expression %q: field %d (%s) has %q, expected %s",
		e.Expr, e.Position, e.Field, e.Value, e.Expected)
}

// wholeError is a fault of the whole expression.
func wholeError(expr string, e FieldError) error {
	e.Expr, e.Field = shorten(expr), "expression"
	return &e
}

// countError is about how many fields there are.
func countError(expr, code string, n int, want string) error {
	least, most := 5, 5
	switch code {
	case codeFields, codeIsCrontab:
		least, most = 6, 7
	case codeNoSeconds:
		least, most = 6, 6
	}
	return wholeError(expr, FieldError{Code: code, Value: counted(n, "field"), Count: n, Min: least, Max: most, Expected: want})
}

// shorten keeps hostile input out of error messages and logs.
func shorten(s string) string {
	const most = 96
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// split cuts an expression into upper-case fields. Only ASCII blanks separate
// and only ASCII letters change case: anything exotic must reach the field
// parsers as it is and be refused there.
func split(expr string) ([]string, error) {
	if len(expr) > maxLength {
		return nil, wholeError(expr, FieldError{Code: codeLong, Value: fmt.Sprintf("%d bytes", len(expr)), Count: len(expr), Max: maxLength, Expected: fmt.Sprintf("at most %d", maxLength)})
	}
	upper := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, expr)
	fields := strings.FieldsFunc(upper, func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\n' || r == '\r'
	})
	return fields, nil
}

// counted returns a number with its noun in the right form.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
