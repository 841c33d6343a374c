package console

// What goes wrong, and how it is said.

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
	"github.com/xxljob/xxljob/wire"
)

// problem is an answer that is not what was asked for. Its words are those of key, and of
// key + ".help" if there are any.
type problem struct {
	status int
	key    string
	values []any
	cause  error         // for the log, and for the page where somebody else says it
	after  time.Duration // Retry-After
}

func (p *problem) Error() string {
	if p.cause != nil {
		return p.key + ": " + p.cause.Error()
	}
	return p.key
}

func (p *problem) Unwrap() error { return p.cause }

// said is what the store, or whoever else was asked, has said: data, in whatever language. What
// this module says itself has a key.
func (p *problem) said() string {
	if p.cause == nil || p.status <= http.StatusInternalServerError {
		return ""
	}
	return p.cause.Error()
}

// saidBy is what is said of it to the user. What a store says may name the host and the user of a
// database: that is for admins. Others have the number of the request, under which it is in the log.
func (q *request) saidBy(p *problem) string {
	if q.user == nil || !q.user.Admin {
		return ""
	}
	return p.said()
}

// whyOf is why something of a page is missing, to the user. To who is no admin it is said where the
// scheduler or an executor says it, and not where it may be the store.
func (q *request) whyOf(err error) any {
	var call *wire.CallError
	if q.user.Admin || errors.Is(err, xxljob.ErrNoLog) || errors.As(err, &call) {
		return why(err)
	}
	q.Logger.Warn("console: part of a page could not be read", "request", q.id, "path", q.r.URL.Path, "error", err)
	return q.text("problem.request", "id", q.id)
}

var (
	errNotThere   = &problem{status: http.StatusNotFound, key: "problem.notfound"}
	errNobody     = &problem{status: http.StatusUnauthorized, key: "problem.nobody"}
	errReadOnly   = &problem{status: http.StatusForbidden, key: "problem.readonly"}
	errForeign    = &problem{status: http.StatusForbidden, key: "problem.crossorigin"}
	errBadMethod  = &problem{status: http.StatusMethodNotAllowed, key: "problem.method"}
	errSetup      = &problem{status: http.StatusServiceUnavailable, key: "problem.setup"} // a browser is sent there
	errMustChange = &problem{status: http.StatusForbidden, key: "problem.mustchange"}     // a browser is sent there
	errTooLarge   = &problem{status: http.StatusRequestEntityTooLarge, key: "problem.toolarge"}

	errManyBodies = &problem{status: http.StatusServiceUnavailable, key: "problem.bodies", after: slots.Patience}
	errSlowBody   = &problem{status: http.StatusRequestTimeout, key: "problem.slowbody"}
)

// forbidden says which right is missing.
func forbidden(do action) *problem {
	name := map[action]string{see: "see", operate: "operate", edit: "edit", govern: "govern"}[do]
	return &problem{status: http.StatusForbidden, key: "problem.forbidden." + name}
}

// badRequest is about a request that none of our pages makes.
func badRequest(cause error) *problem {
	return &problem{status: http.StatusBadRequest, key: "problem.bad", cause: cause}
}

// badFilter is about a filter of a list that cannot be what somebody has typed.
func badFilter(typed string) *problem {
	return &problem{status: http.StatusBadRequest, key: "problem.filter", values: []any{"typed", typed}}
}

// asProblem is what an error means for who asked.
func asProblem(err error) *problem {
	var p *problem
	var large *http.MaxBytesError
	var bad *xxljob.ScheduleError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &large):
		return errTooLarge
	case errors.As(err, &bad):
		return &problem{status: http.StatusUnprocessableEntity, key: "fault.invalid.conf", values: []any{"why", bad}}
	case slices.ContainsFunc(xxljob.FieldErrors(err), func(e *xxljob.FieldError) bool { return e.Code == "scripts" }):
		return &problem{status: http.StatusForbidden, key: "fault.scripts"}
	case errors.Is(err, xxljob.ErrNotFound):
		return errNotThere
	case errors.Is(err, xxljob.ErrConflict):
		return &problem{status: http.StatusConflict, key: "problem.conflict", cause: err}
	case errors.Is(err, web.ErrBusy):
		return &problem{status: http.StatusServiceUnavailable, key: "problem.busy", after: slots.Patience}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &problem{status: http.StatusServiceUnavailable, key: "problem.slow", cause: err, after: 5 * time.Second}
	}
	return &problem{status: http.StatusServiceUnavailable, key: "problem.store", cause: err, after: 5 * time.Second}
}
