package cron

import (
	"fmt"
	"strings"
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
}

// Error names the field, its position, the value and what was expected.
func (e *FieldError) Error() string {
	if e.Position == 0 {
		return fmt.Sprintf("cron expression %q: has %s, expected %s", e.Expr, e.Value, e.Expected)
	}
	return fmt.Sprintf("cron expression %q: field %d (%s) has %q, expected %s",
		e.Expr, e.Position, e.Field, e.Value, e.Expected)
}

func wholeError(expr, value, expected string) error {
	return &FieldError{Expr: shorten(expr), Field: "expression", Value: value, Expected: expected}
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
		return nil, wholeError(expr, fmt.Sprintf("%d bytes", len(expr)), fmt.Sprintf("at most %d", maxLength))
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
