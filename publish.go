package xxljob

// The executors of this process in a Registry of the user's. The store's own needs none of
// it: nodes publish them with their beats.

import (
	"context"
	"errors"
	"time"

	"github.com/xxljob/xxljob/store"
)

// publisher registers them there.
type publisher struct {
	*shared
	attacher *attacher
	users    *userCalls // of Config.Registry
	memory   *addressMemory
}

// registerDuty keeps the attached executors in a Registry of the user's. The store's own
// needs none of it: nodes publish them with their beats.
func (p *publisher) registerDuty() duty {
	return duty{
		what: "registering attached executors", wakes: []<-chan struct{}{p.life.wakes.attachedChanged}, aside: true,
		once: func(ctx context.Context) (time.Duration, error) { return p.cfg.Cluster.Beat, p.registerAttached(ctx) },
	}
}

func (p *publisher) registerAttached(ctx context.Context) error {
	var errs []error
	for _, at := range p.attacher.attachments() {
		if err := p.users.register(ctx, at.App, store.LocalAddress(p.leases.incarnation)); err != nil {
			errs = append(errs, err) // the registry may fail for one app
			continue
		}
		p.attacher.attached.register(at.App)
		p.memory.forget()
	}
	return errors.Join(errs...)
}

// deregisterAttached takes the attached executors out of a Registry of the
// user's, at Stop.
func (p *publisher) deregisterAttached(ctx context.Context) {
	if p.cfg.Registry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout) // for all together
	defer cancel()
	for _, at := range p.attacher.offered() {
		if err := p.users.deregister(ctx, at.App, store.LocalAddress(p.leases.incarnation)); err != nil {
			p.log.Warn("xxljob: could not deregister an attached executor", "app", at.App, "error", err)
		}
	}
}
