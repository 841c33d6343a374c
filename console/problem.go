package console

// What errors mean for who asks, and what is said of them; web.Problem has what an answer to them is.

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/login"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
	"github.com/xxljob/xxljob/wire"
)

// saidBy is what is said of it to the user. What a store says may name the host and the user of a
// database: that is for admins. Others have the number of the request, under which it is in the log.
func (q *request) saidBy(p *web.Problem) string {
	if q.user == nil || !q.user.Admin {
		return ""
	}
	return p.Said()
}

// whyOf is why something of a page is missing, to the user. To who is no admin it is said where the
// scheduler or an executor says it, and not where it may be the store.
func (q *request) whyOf(err error) any {
	var call *wire.CallError
	if q.user.Admin || errors.Is(err, xxljob.ErrNoLog) || errors.As(err, &call) {
		return why(err)
	}
	q.Logger.Warn("console: part of a page could not be read", "request", q.ID, "path", q.R.URL.Path, "error", err)
	return q.text("problem.request", "id", q.ID)
}

var (
	errNotThere   = &web.Problem{Status: http.StatusNotFound, Key: "problem.notfound"}
	errNobody     = &web.Problem{Status: http.StatusUnauthorized, Key: "problem.nobody"}
	errReadOnly   = &web.Problem{Status: http.StatusForbidden, Key: "problem.readonly"}
	errForeign    = &web.Problem{Status: http.StatusForbidden, Key: "problem.crossorigin"}
	errBadMethod  = &web.Problem{Status: http.StatusMethodNotAllowed, Key: "problem.method"}
	errSetup      = &web.Problem{Status: http.StatusServiceUnavailable, Key: "problem.setup"} // a browser is sent there
	errMustChange = &web.Problem{Status: http.StatusForbidden, Key: "problem.mustchange"}     // a browser is sent there
)

// forbidden says which right is missing.
func forbidden(do action) *web.Problem {
	name := map[action]string{see: "see", operate: "operate", edit: "edit", govern: "govern"}[do]
	return &web.Problem{Status: http.StatusForbidden, Key: "problem.forbidden." + name}
}

// badFilter is about a filter of a list that cannot be what somebody has typed.
func badFilter(typed string) *web.Problem {
	return &web.Problem{Status: http.StatusBadRequest, Key: "problem.filter", Values: []any{"typed", typed}}
}

// asked is what an error of a search means: that it asks for what there cannot be is the fault
// of who asks.
func asked(err error) error {
	if len(xxljob.FieldErrors(err)) > 0 {
		return web.BadRequest(err)
	}
	return err
}

// notOffered says that the store does not answer what the page needs.
func notOffered(what string) *web.Problem {
	return &web.Problem{Status: http.StatusNotImplemented, Key: "problem.notoffered", Cause: errors.New(what)}
}

// asProblem is what an error means for who asked.
func asProblem(err error) *web.Problem {
	var p *web.Problem
	var large *http.MaxBytesError
	var bad *xxljob.ScheduleError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &large):
		return web.ErrTooLarge
	case errors.As(err, &bad):
		return &web.Problem{Status: http.StatusUnprocessableEntity, Key: "fault.invalid.conf", Values: []any{"why", bad}}
	case slices.ContainsFunc(xxljob.FieldErrors(err), func(e *xxljob.FieldError) bool { return e.Code == "scripts" }):
		return &web.Problem{Status: http.StatusForbidden, Key: "fault.scripts"}
	case errors.Is(err, xxljob.ErrNotFound):
		return errNotThere
	case errors.Is(err, xxljob.ErrConflict):
		return &web.Problem{Status: http.StatusConflict, Key: "problem.conflict", Cause: err}
	case errors.Is(err, login.ErrBusy):
		return &web.Problem{Status: http.StatusServiceUnavailable, Key: "problem.busy", After: slots.Patience}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &web.Problem{Status: http.StatusServiceUnavailable, Key: "problem.slow", Cause: err, After: 5 * time.Second}
	}
	return &web.Problem{Status: http.StatusServiceUnavailable, Key: "problem.store", Cause: err, After: 5 * time.Second}
}
