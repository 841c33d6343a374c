package xxljob

// The words of errors: what an error is about, said once, and what would have been right.

import (
	"errors"
	"strings"
	"time"
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
