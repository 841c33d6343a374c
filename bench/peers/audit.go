package main

import (
	"errors"
	"fmt"
)

// states is how many units a store has in which state.
type states struct {
	succeeded int
	skipped   int // instants that the scheduler has recorded as not run
	bad       int // neither of both, nor waiting for its time
}

// audit compares what the store has with the calls of handlers.
func (s states) audit(seen *seen) error {
	if seen.Calls != s.succeeded || seen.Twice > 0 || s.bad > 0 {
		return &auditError{s, *seen}
	}
	return nil
}

// errAudit is what an auditError is.
var errAudit = errors.New("the audit is not clean")

// auditError says what was lost, or done twice.
type auditError struct {
	states
	seen seen
}

func (e *auditError) Error() string {
	return fmt.Sprintf("%v: handlers were called %d times, %d of them again for the same, with %d instants left out; the store has %d as succeeded, %d as skipped, and %d in no state that they should be in",
		errAudit, e.seen.Calls, e.seen.Twice, e.seen.Gaps, e.succeeded, e.skipped, e.bad)
}

func (e *auditError) Unwrap() error { return errAudit }
