package xxljob

import "context"

// Router chooses among the addresses of an app. The strategies of package route
// are Routers; a Config may bring more, by name. An implementation must be safe
// for concurrent use and return quickly: it is asked on the path of every
// trigger.
type Router interface {
	// Route returns the chosen addresses, the preferred one first; the scheduler
	// sends to the first. addrs is sorted, not empty, and must not be changed. An
	// error ends the run as refused, with the error's text.
	Route(ctx context.Context, jobID int64, addrs []string) ([]string, error)
}

// Registry says which addresses serve an app. The default keeps them in the
// store, with attached executors known by their nodes' beats. With another one
// in Config.Registry the scheduler registers its attached executors there, under
// the address local://incarnation, every Config.Beat, and asks it for every
// automatic group: then its answer alone counts. Executors elsewhere that register
// by Scheduler.Handler are registered there too; it has no place for their boot ids,
// so that none of them is sent a run a second time. It must be safe for concurrent
// use.
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
	for _, a := range s.attachments() {
		if err := s.cfg.Registry.Register(ctx, a.App, LocalAddress(s.incarnation)); err != nil {
			return err
		}
		s.attached.register(a.App)
		s.book.forget()
	}
	return nil
}

// deregisterAttached takes the attached executors out of a Registry of the
// user's, at Stop.
func (s *scheduler) deregisterAttached(ctx context.Context) {
	if s.cfg.Registry == nil {
		return
	}
	for _, a := range s.offered() {
		if err := s.cfg.Registry.Deregister(ctx, a.App, LocalAddress(s.incarnation)); err != nil {
			s.log.Warn("xxljob: attached executor not deregistered", "app", a.App, "err", err)
		}
	}
}
