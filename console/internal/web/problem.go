package web

import (
	"net/http"
	"time"

	"github.com/xxljob/xxljob/internal/slots"
)

// Problem is an answer that is not what was asked for. Its words are those of Key, and of
// Key + ".help" if there are any.
type Problem struct {
	Status int
	Key    string
	Values []any
	Cause  error         // for the log, and for the page where somebody else says it
	After  time.Duration // Retry-After
}

func (p *Problem) Error() string {
	if p.Cause != nil {
		return p.Key + ": " + p.Cause.Error()
	}
	return p.Key
}

func (p *Problem) Unwrap() error { return p.Cause }

// Said is what the store, or whoever else was asked, has said: data, in whatever language. What
// this module says itself has a key.
func (p *Problem) Said() string {
	if p.Cause == nil || p.Status <= http.StatusInternalServerError {
		return ""
	}
	return p.Cause.Error()
}

// What may be wrong with a body.
var (
	ErrTooLarge   = &Problem{Status: http.StatusRequestEntityTooLarge, Key: "problem.toolarge"}
	errManyBodies = &Problem{Status: http.StatusServiceUnavailable, Key: "problem.bodies", After: slots.Patience}
	errSlowBody   = &Problem{Status: http.StatusRequestTimeout, Key: "problem.slowbody"}
)

// BadRequest is about a request that none of our pages makes.
func BadRequest(cause error) *Problem {
	return &Problem{Status: http.StatusBadRequest, Key: "problem.bad", Cause: cause}
}

// TooOften is the answer to who has to wait.
func TooOften(wait time.Duration) *Problem {
	return &Problem{Status: http.StatusTooManyRequests, Key: "problem.often", Values: []any{"n", Seconds(wait)}, After: wait}
}

// Seconds is a wait in whole seconds, as people and headers are told of it.
func Seconds(wait time.Duration) int { return int((wait + time.Second - 1) / time.Second) }
