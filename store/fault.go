package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/xxljob/xxljob/internal/errs"
)

// What is wrong with a value, all of it at once, and texts that are kept short and plain.

// Faults gathers what is wrong with a value, so that the caller hears of all
// of it at once.
type Faults struct {
	Of   string
	Errs []error
}

func (f *Faults) Add(field string, value any, err error) {
	if err == nil {
		return
	}
	f.Errs = append(f.Errs, &FieldError{Of: f.Of, Field: field, Value: fmt.Sprint(value), Code: codeOf(err), Err: err})
}

// FieldError is what is wrong with one field of a value that was given. Errors of methods that
// check jobs, groups, configurations and searches have one for each fault: see FieldErrors.
type FieldError struct {
	// Of is the value, in words: "job \"Remind\"".
	Of string
	// Field is the name of the Go field, with an index where it is of a list: "Alarms[2].To".
	Field string
	// Value is what was given, as text; a long one may be cut.
	Value string
	// Code is what kind of fault it is, for who has words of his own for it: "required" where
	// it must not be empty, "too-long", "text" where it is none that can be kept or shown,
	// "choice" where it is none of those that it may be, "not-found" where it names what is not
	// there, "cycle" where a job would follow from itself, and "invalid" for any other. Who calls for
	// somebody else, as the console does, also gets "scripts" where only those may say this who may
	// write scripts, "child" where it names a job that they may not run, "after" one that they may
	// not see, "named" where others name the job, and "secret" where it would show what is hidden.
	Code string
	// Err says what is wrong.
	Err error
}

func (e *FieldError) Error() string {
	return errs.In(fmt.Sprintf("%s: %s %q", e.Of, e.Field, e.Value), e.Err).Error()
}

func (e *FieldError) Unwrap() error { return e.Err }

// FieldErrors returns all that an error says of fields, in the order in which it was found.
// errors.As finds the first of them.
func FieldErrors(err error) (list []*FieldError) {
	switch e := err.(type) {
	case nil:
	case *FieldError:
		list = append(list, e)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			list = append(list, FieldErrors(one)...)
		}
	default:
		return FieldErrors(errors.Unwrap(err))
	}
	return list
}

// coded is an error of which the kind is known.
type coded struct {
	code string
	error
}

func codeOf(err error) string {
	var known coded
	switch {
	case errors.As(err, &known):
		return known.code
	case errors.Is(err, errs.ErrNotFound):
		return "not-found"
	case errors.Is(err, errs.ErrUnknownRoute), errors.Is(err, errs.ErrUnknownBlock):
		return "choice"
	case errors.Is(err, errs.ErrCycle):
		return "cycle"
	case errors.Is(err, errs.ErrScripts):
		return "scripts"
	case errors.Is(err, errs.ErrForeign):
		return "child"
	case errors.Is(err, errs.ErrUnseen):
		return "after"
	case errors.Is(err, errs.ErrHidden):
		return "secret"
	case errors.Is(err, errs.ErrNamed):
		return "named"
	}
	return "invalid"
}

// Text checks a string of min to max bytes that every store can hold.
func (f *Faults) Text(field, value string, min, max int) {
	switch {
	case len(value) < min || min > 0 && strings.TrimSpace(value) == "":
		f.Add(field, value, coded{"required", errors.New("must not be empty")})
	case len(value) > max:
		f.Add(field, errs.Shorten(value, 40), coded{"too-long", fmt.Errorf("%d bytes, at most %d", len(value), max)})
	case !CanBeStored(value):
		f.Add(field, value, coded{"text", errors.New("want UTF-8 without NUL")})
	}
}

// Key checks a text like Text that others name: without control characters, which nobody sees
// where it is shown, or types where it is looked for.
func (f *Faults) Key(field, value string, min, max int) {
	known := len(f.Errs)
	f.Text(field, value, min, max)
	if len(f.Errs) > known {
		return
	}
	at := 0
	for _, r := range value {
		if at++; unicode.IsControl(r) {
			f.Add(field, value, coded{"text", fmt.Errorf("want no control characters: number %d of it is %U", at, r)})
			return
		}
	}
}

// Plain checks a text like text. It has to be one that can be shown as it is, in a page, in
// a terminal and in a line of a log: printable, and without what begins or ends markup.
func (f *Faults) Plain(field, value string, min, max int) {
	known := len(f.Errs)
	f.Text(field, value, min, max)
	if len(f.Errs) == known && strings.ContainsFunc(value, errs.NotPlain) {
		f.Add(field, value, coded{"text", errors.New("want printable characters, and none of < > ' \" `")})
	}
}

// upTo checks a number that counts, of which zero is the default.
func (f *Faults) upTo(field string, n, most int) {
	if n < 0 || n > most {
		f.Add(field, n, fmt.Errorf("want 0 to %d", most))
	}
}

// moment checks a time that there can be something at; the zero time is none.
func (f *Faults) moment(field string, at time.Time) {
	if year := at.UTC().Year(); !at.IsZero() && (year < 1970 || year > 9999) {
		f.Add(field, errs.InWords(at), errors.New("want a time from 1970 on and before the year 10000"))
	}
}

func (f *Faults) OneOf(field, value string, allowed ...string) {
	if slices.Contains(allowed, value) {
		return
	}
	if allowed[0] == "" { // a default, which has a name as well
		allowed = allowed[1:]
	}
	f.Add(field, value, coded{"choice", errors.New(errs.OneOf(value, allowed))})
}

func (f *Faults) Err() error {
	if len(f.Errs) == 0 {
		return nil
	}
	return invalid(f.Errs)
}

// invalid is the error about a value that was given: all that is wrong with it.
type invalid []error

func (e invalid) Error() string { return errors.Join(e...).Error() }

func (e invalid) Unwrap() []error { return e }
