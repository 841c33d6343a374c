package xxljob

import (
	"context"
	"errors"
)

// Router chooses among the addresses of an app. The strategies of package route
// are Routers; a Config may bring more, by name. An implementation must be safe
// for concurrent use. It is asked about every run of its jobs, about one run of a job at
// a time and in their order; the runs of other jobs do not wait for it. A run whose router
// has not answered within Config.RouteTimeout, or panics, ends as refused. While a call
// hangs there is no other about that job: its runs are refused once they have waited for
// RouteTimeout.
type Router interface {
	// Route returns the chosen addresses, the preferred one first; the scheduler
	// sends to the first. addrs is sorted, not empty, and the router's own. What is
	// chosen twice counts once; an address that is not in addrs ends the run as refused,
	// as does an error, with its text. ctx ends with RouteTimeout.
	Route(ctx context.Context, jobID int64, addrs []string) ([]string, error)
}

// Registry says which addresses serve an app. The default keeps them in the
// store, with attached executors known by their nodes' beats. With another one
// in Config.Registry the scheduler registers its attached executors there, under
// the address local://incarnation, every Config.Beat, and asks it for every
// automatic group: then its answer alone counts. Executors elsewhere that register
// by Scheduler.Handler are registered there too; it has no place for their boot ids,
// so that none of them is sent a run a second time. It must be safe for concurrent
// use. Each call has Config.RouteTimeout, after which it counts as failed; it may go on,
// and there is no other of that method about the same app and address until it returns.
// Where Lookup fails or panics, its last answer serves for Config.Dead at most; the app's
// runs wait where there is none.
type Registry interface {
	// Register adds the address or refreshes it.
	Register(ctx context.Context, app, address string) error
	// Deregister removes it. An absent one is no error.
	Deregister(ctx context.Context, app, address string) error
	// Lookup returns the app's addresses, in any order; none is no error.
	Lookup(ctx context.Context, app string) ([]string, error)
}

// registerLoop keeps the attached executors in a Registry of the user's. The
// store's own needs none of it: nodes publish them with their beats.
func (s *scheduler) registerLoop(ctx context.Context) {
	if s.cfg.Registry == nil {
		return
	}
	retry := backoff{log: s.log, what: "registering attached executors"}
	for {
		wait := s.cfg.Beat
		if err := s.registerAttached(ctx); retry.failed(ctx, err) {
			wait = min(wait, retry.delay())
		}
		if !sleep(ctx, wait, s.attachedChanged) {
			return
		}
	}
}

func (s *scheduler) registerAttached(ctx context.Context) error {
	var errs []error
	for _, a := range s.attachments() {
		if err := s.users.register(ctx, a.App, LocalAddress(s.incarnation)); err != nil {
			errs = append(errs, err) // the registry may fail for one app
			continue
		}
		s.attached.register(a.App)
		s.book.forget()
	}
	return errors.Join(errs...)
}

// deregisterAttached takes the attached executors out of a Registry of the
// user's, at Stop.
func (s *scheduler) deregisterAttached(ctx context.Context) {
	if s.cfg.Registry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout) // for all together
	defer cancel()
	for _, a := range s.offered() {
		if err := s.users.deregister(ctx, a.App, LocalAddress(s.incarnation)); err != nil {
			s.log.Warn("xxljob: attached executor not deregistered", "app", a.App, "err", err)
		}
	}
}
