package wire

// The HTTP side of an admin.

import (
	"context"
	"errors"
	"net/http"
)

// What an admin takes.
const (
	maxAdminBody    = 1 << 20
	maxCallbackBody = 4 << 20
)

// NewAdminHandler serves an admin to executors of every generation, over POST:
// registry, registryRemove and callback, and when the Admin is a JobAdmin also
// addJob, updateJob, removeJob, startJob, stopJob and triggerJob, all below
// /api/.
//
// The last element of the path decides, so it serves /api/ and
// /xxl-job-admin/api/ alike, and may be mounted below any prefix. For the rest,
// and for the timeouts that the host's server needs, see NewExecutorHandler.
//
// A registration of an app for which the caller may not speak is refused here;
// to whom a run or a job belongs is for the Admin to find out (see CallerFrom).
// An empty callback is answered 200, since peers ask by it which form is
// understood. Of several results those that are not understood are left out, with a note
// and a line in the log: a callback that is refused comes again, and with it all that is in
// it, for good. Executors of G0 are refused in words when they show themselves by
// their token's header.
func NewAdminHandler(a Admin, cfg HandlerConfig) (http.Handler, error) {
	if a == nil {
		return nil, errors.New("xxljob: NewAdminHandler of a nil Admin")
	}
	s, err := newServer(&server{
		isAdmin: true,
		maxBody: maxAdminBody,
		failure: MsgInvokeError,
		reply:   func(r Return) answer { return adminReturn(r) },
	}, cfg)
	if err != nil {
		return nil, err
	}
	s.endpoints = map[string]endpoint{
		"registry":       s.endpoint(decoded(s, registrar(a.Registry)), 0),
		"registryRemove": s.endpoint(decoded(s, registrar(a.RegistryRemove)), 0),
		"callback":       s.endpoint(called(s, a), maxCallbackBody),
	}
	if jobs, ok := a.(JobAdmin); ok {
		s.endpoints["addJob"] = s.endpoint(decoded(s, jobs.AddJob), 0)
		s.endpoints["updateJob"] = s.endpoint(decoded(s, jobs.UpdateJob), 0)
		s.endpoints["removeJob"] = s.endpoint(decoded(s, jobs.RemoveJob), 0)
		s.endpoints["startJob"] = s.endpoint(decoded(s, jobs.StartJob), 0)
		s.endpoints["stopJob"] = s.endpoint(decoded(s, jobs.StopJob), 0)
		s.endpoints["triggerJob"] = s.endpoint(decoded(s, jobs.TriggerJob), 0)
	}
	return s, nil
}

// registrar guards registrations.
func registrar(f func(context.Context, RegistryRequest) (Return, error)) func(context.Context, RegistryRequest) (Return, error) {
	return func(ctx context.Context, req RegistryRequest) (Return, error) {
		if !req.Complete() {
			return Failf(MsgIllegalArgument), nil
		}
		if caller, _ := CallerFrom(ctx); !caller.MaySpeakFor(req.RegistryKey) {
			return caller.refusal(), nil
		}
		return f(ctx, req)
	}
}

// called hands results over.
func called(s *server, a Admin) service {
	return func(ctx context.Context, body []byte) (answer, error) {
		results, partly, err := decodeCallback(body)
		if err != nil {
			return nil, badRequest{err}
		}
		r := Success()
		if len(results) > 0 {
			r, err = a.Callback(ctx, results)
		}
		switch {
		case err != nil:
			return nil, err
		case partly != nil && r.OK() && partly.rest != nil: // those behind are not to be taken for stored
			return s.reply(Failf("%v", partly)), partly
		case partly != nil && r.OK():
			return s.reply(Noted("%v", partly)), partly
		case partly != nil:
			return s.reply(r), partly
		}
		return s.reply(r), nil
	}
}
