package xxljob

// The words of errors: what an error is about, said once, and what would have been right.

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// told is an error in other words. It is still that error to errors.Is and errors.As.
type told struct {
	text string
	err  error
}

func (t told) Error() string { return t.text }
func (t told) Unwrap() error { return t.err }

// about says in front of an error what it is about. The module's name stays in front of
// that, and is not said again behind it.
func about(what string, err error) error {
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "xxljob: ")
	return told{"xxljob: " + what + ": " + strings.ReplaceAll(text, ": xxljob: ", ": "), err}
}

// absent is about an error of a call for something, which may be that it is not there.
func absent(verb, what string, err error) error {
	if isNotFound(err) {
		return told{"xxljob: " + verb + ": " + what + " does not exist", err}
	}
	return about(verb+" "+what, err)
}

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// inWords is a time as errors write it.
func inWords(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// shorten cuts s to at most n bytes at a rune boundary and marks the cut.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// oneOf says which names there are, and which of them was meant where only case differs.
func oneOf(given string, names []string) string {
	text := "want one of " + strings.Join(names, ", ")
	meant := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, given) })
	if meant < 0 {
		return text
	}
	return text + "; did you mean " + names[meant] + "?"
}

// plainText is text as every store can keep it.
func plainText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// notPlain reports whether r is a control character, one that cannot be seen, or one of
// markup.
func notPlain(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("<>'\"`", r) }
