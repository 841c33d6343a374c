package executor

import (
	"errors"
	"fmt"
	"time"
)

// What a handler says of the next attempt by the error that it returns.

type retryAfter struct {
	error
	in time.Duration
}

func (r *retryAfter) Unwrap() error { return r.error }

// RetryAfter marks an error with how long after the run's end it is to be tried again: an
// admin that understands wire.CallbackRequest.RetryIn goes by that instead of the job's own
// pause, where it tries again at all. Less than a millisecond is one. The text is that of
// err, which errors.Is and errors.As still find; RetryAfter(d, nil) is nil. Of several marks
// the outermost counts; with Permanent there is no further attempt.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfter{err, atLeastMilli(d)}
}

type snooze struct{ in time.Duration }

func (s *snooze) Error() string { return fmt.Sprintf("snoozed for %v", s.in) }

// Snooze returns the error of a handler that has nothing to do yet, and wants to be called
// again so long after the run's end: an admin that understands wire.CallbackRequest.SnoozeIn
// takes the run neither for failed nor for done. Others take it for failed. Less than a
// millisecond is one. It comes before RetryAfter and Permanent. The error has a method
// Snoozed() time.Duration, by which middleware may know it.
func Snooze(d time.Duration) error { return &snooze{atLeastMilli(d)} }

// Snoozed is how long the handler wants to wait, for middleware that finds the error by errors.As.
func (s *snooze) Snoozed() time.Duration { return s.in }

func atLeastMilli(d time.Duration) time.Duration {
	return max(d.Round(time.Millisecond), time.Millisecond)
}

// laterOf are the milliseconds that an error's marks say, zero where there is none.
func laterOf(err error) (retryIn, snoozeIn int64) {
	if s, ok := errors.AsType[*snooze](err); ok {
		return 0, s.in.Milliseconds()
	}
	if r, ok := errors.AsType[*retryAfter](err); ok {
		return r.in.Milliseconds(), 0
	}
	return 0, 0
}
