package xxljob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/guard"
)

// attacher attaches executors of this process, and says to others which there are.
type attacher struct {
	*shared
	attached *attachedSet
	own      *executor.Executor
	users    *userCalls // of Config.Registry
	book     *addressBook
	finisher *finisher
	speaker  *speaker
	panics   *guard.Log
}

// attachments is what this node tells the others about its executors.
func (a *attacher) attachments() []Attachment {
	if a.life.draining.Load() {
		return nil
	}
	return a.offered()
}

// offered are the executors of this process and their handlers.
func (a *attacher) offered() []Attachment {
	all := []Attachment{} // nil would say that the node is resting
	for _, e := range a.attached.all() {
		handlers := slices.Sorted(slices.Values(e.Handlers()))
		if e == Executor(a.own) && len(handlers) == 0 {
			continue // a node that only schedules offers nothing
		}
		all = append(all, Attachment{App: e.App(), Handlers: handlers})
	}
	return all
}

func (a *attacher) Attach(e Executor) error {
	if e == nil {
		return errors.New("xxljob: attach: the executor is nil")
	}
	e, err := guardExecutor(e, a.panics)
	if err == nil {
		err = a.attached.add(e)
	}
	if err != nil {
		return err
	}
	if err := bind(e, attachedAdmin{a.finisher}); err != nil {
		a.attached.drop(e)
		return fmt.Errorf("xxljob: attach: app %q: Bind: %w", e.App(), err)
	}
	a.attachedMoved()
	return nil
}

func (a *attacher) Handle(name string, h executor.Handler, opts ...executor.HandlerOption) error {
	err := a.own.Handle(name, h, opts...)
	if errors.Is(err, executor.ErrStopped) {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	if err != nil {
		return err
	}
	a.attachedMoved()
	return nil
}

// attachedMoved spreads the news that this node offers something else.
func (a *attacher) attachedMoved() {
	a.book.forget()
	a.life.wakes.lease.poke()
	a.life.wakes.attachedChanged.poke()
	a.life.wakes.inbox.poke()
	if a.life.running() {
		a.speaker.warnOfJobsAPI()
	}
}

// registerDuty keeps the attached executors in a Registry of the user's. The store's own
// needs none of it: nodes publish them with their beats.
func (a *attacher) registerDuty() duty {
	return duty{
		what: "registering attached executors", wakes: []<-chan struct{}{a.life.wakes.attachedChanged}, aside: true,
		once: func(ctx context.Context) (time.Duration, error) { return a.cfg.Cluster.Beat, a.registerAttached(ctx) },
	}
}

func (a *attacher) registerAttached(ctx context.Context) error {
	var errs []error
	for _, at := range a.attachments() {
		if err := a.users.register(ctx, at.App, LocalAddress(a.leases.incarnation)); err != nil {
			errs = append(errs, err) // the registry may fail for one app
			continue
		}
		a.attached.register(at.App)
		a.book.forget()
	}
	return errors.Join(errs...)
}

// deregisterAttached takes the attached executors out of a Registry of the
// user's, at Stop.
func (a *attacher) deregisterAttached(ctx context.Context) {
	if a.cfg.Registry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout) // for all together
	defer cancel()
	for _, at := range a.offered() {
		if err := a.users.deregister(ctx, at.App, LocalAddress(a.leases.incarnation)); err != nil {
			a.log.Warn("xxljob: could not deregister an attached executor", "app", at.App, "error", err)
		}
	}
}
