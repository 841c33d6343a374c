package wire

// The HTTP side of an executor.

import (
	"context"
	"errors"
	"net/http"
)

// maxExecutorBody is what a Java executor takes.
const maxExecutorBody = 5 << 20

// NewExecutorHandler serves an executor to admins of every generation, over
// POST: /beat, /idleBeat, /run and the same as /trigger, /kill and /log.
//
// The last element of the path decides, so it may be mounted anywhere: on a
// server of its own, or below a prefix of the host's mux, with the prefix
// stripped or not. An [http.ServeMux] in front redirects paths with a double
// slash, which Java peers do not follow: give them addresses without one.
//
// Everything is answered with HTTP 200 and a code, but for those of whom it is not known yet
// who they are (ScopeUnknown); what is refused changes nothing. A run without logId or jobId is refused: it could neither be told
// from others nor be reported. A panic of the executor and an error of it are
// logged, and answered with code 500 and without details; an admin takes that
// for a refusal, so they must mean that nothing was done.
//
// A body must be there within HandlerConfig.BodyTimeout, and come at MinBodyRate, where
// the server's ResponseWriter supports read deadlines; behind one that hides them, a body
// is looked at whenever a piece of it comes. Before its token is known to be right a
// request has two seconds, 4 KiB of memory beside what the server keeps, and no slot of
// MaxBodies.
//
// The rest is for the host's [http.Server]: against peers that are slow on purpose it
// needs ReadHeaderTimeout (5 s, say), IdleTimeout (above 90 s, for Java peers reuse
// connections as long), WriteTimeout (above what the longest log takes) and
// MaxHeaderBytes (16 KiB). Its ReadTimeout ends when a handler of this package begins to
// read. How many connections there may be, each of which costs some 20 KiB and, while a
// small body is served, its 64 KiB at most, is a matter of its listener, of the limit of
// open files, or of a proxy in front.
func NewExecutorHandler(e Executor, cfg HandlerConfig) (http.Handler, error) {
	if e == nil {
		return nil, errors.New("xxljob: NewExecutorHandler of a nil Executor")
	}
	s, err := newServer(&server{
		maxBody: maxExecutorBody,
		failure: MsgRequestError,
		reply:   func(r Return) answer { return r },
	}, cfg)
	if err != nil {
		return nil, err
	}
	run := s.endpoint(decoded(s, runner(e)), 0)
	s.endpoints = map[string]endpoint{
		"beat":     s.endpoint(beater(e), 0),
		"idleBeat": s.endpoint(decoded(s, e.IdleBeat), 0),
		"run":      run,
		"trigger":  run,
		"kill":     s.endpoint(decoded(s, e.Kill), 0),
		"log":      s.endpoint(logger(e), 0),
	}
	return s, nil
}

// beater answers beats. Their body is "", {} or nothing, and tells nothing in
// any case.
func beater(e Executor) service {
	return func(ctx context.Context, _ []byte) (answer, error) {
		r, err := e.Beat(ctx)
		return r, err
	}
}

// runner hands runs over.
func runner(e Executor) func(context.Context, TriggerRequest) (Return, error) {
	return func(ctx context.Context, req TriggerRequest) (Return, error) {
		switch {
		case req.LogID <= 0:
			return Return{}, badRequest{errors.New("logId is missing")}
		case req.JobID <= 0:
			return Return{}, badRequest{errors.New("jobId is missing")}
		}
		return e.Run(ctx, req)
	}
}

// logger reads lines of logs.
func logger(e Executor) service {
	return func(ctx context.Context, body []byte) (answer, error) {
		var req LogRequest
		if err := req.Decode(body); err != nil {
			return nil, badRequest{err}
		}
		r, err := e.Log(ctx, req)
		return r, err
	}
}
