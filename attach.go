package xxljob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/executor"
)

// attachments is what this node tells the others about its executors.
func (s *scheduler) attachments() []Attachment {
	if s.life.draining.Load() {
		return nil
	}
	return s.offered()
}

// offered are the executors of this process and their handlers.
func (s *scheduler) offered() []Attachment {
	all := []Attachment{} // nil would say that the node is resting
	for _, e := range s.attached.all() {
		handlers := slices.Sorted(slices.Values(e.Handlers()))
		if e == Executor(s.own) && len(handlers) == 0 {
			continue // a node that only schedules offers nothing
		}
		all = append(all, Attachment{App: e.App(), Handlers: handlers})
	}
	return all
}

func (s *scheduler) Attach(e Executor) error {
	if e == nil {
		return errors.New("xxljob: attach: the executor is nil")
	}
	e, err := guardExecutor(e, s.panics)
	if err == nil {
		err = s.attached.add(e)
	}
	if err != nil {
		return err
	}
	if err := bind(e, attachedAdmin{s.finisher}); err != nil {
		s.attached.drop(e)
		return fmt.Errorf("xxljob: attach: app %q: Bind: %w", e.App(), err)
	}
	s.attachedMoved()
	return nil
}

func (s *scheduler) Handle(name string, h executor.Handler, opts ...executor.HandlerOption) error {
	err := s.own.Handle(name, h, opts...)
	if errors.Is(err, executor.ErrStopped) {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	if err != nil {
		return err
	}
	s.attachedMoved()
	return nil
}

// attachedMoved spreads the news that this node offers something else.
func (s *scheduler) attachedMoved() {
	s.book.forget()
	s.wakes.lease.poke()
	s.wakes.attachedChanged.poke()
	s.wakes.inbox.poke()
	if s.life.running() {
		s.speaker.warnOfJobsAPI()
	}
}

// registerDuty keeps the attached executors in a Registry of the user's. The store's own
// needs none of it: nodes publish them with their beats.
func (s *scheduler) registerDuty() duty {
	return duty{
		what: "registering attached executors", wakes: []<-chan struct{}{s.wakes.attachedChanged}, aside: true,
		once: func(ctx context.Context) (time.Duration, error) { return s.cfg.Beat, s.registerAttached(ctx) },
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
			s.log.Warn("xxljob: could not deregister an attached executor", "app", a.App, "error", err)
		}
	}
}
