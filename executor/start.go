package executor

import (
	"context"
	"errors"
	"fmt"
)

// ErrStarted is returned by Start when the executor was started before.
var ErrStarted = errors.New("xxljob: executor: started already")

var errNoContext = errors.New("xxljob: executor: the context is nil")

// Start makes an executor known to Config.Admins: it opens Config.Addr and the
// spool, begins to deliver what an earlier process has left there, and registers
// at once and then every Config.Beat until Stop. It does not wait for an admin:
// one that is away is told when it is there again.
//
// It returns ErrStarted when called again after a success, ErrStopped after Stop,
// and otherwise why the address, the spool or a token cannot be used; then nothing
// was started, and it may be called again. ctx is for Start only: what it has
// started goes on until Stop. A nil ctx is an error, here and for Serve and Stop. An
// executor that serves only the admin it is bound to needs no Start.
func (e *Executor) Start(ctx context.Context) (err error) {
	if ctx == nil {
		return errNoContext
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	switch {
	case e.leaving:
		err = ErrStopped
	case e.started || e.starting:
		err = ErrStarted
	default:
		e.starting = true
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	p, err := e.prepare(ctx)
	return e.begin(p, err)
}

// prepared is what Start opens and Stop closes.
type prepared struct {
	server    *server
	addresses []string // of e.origins[1:], as are
	spools    []*spool
	left      [][]parcel
}

// prepare opens everything, or nothing.
func (e *Executor) prepare(ctx context.Context) (p prepared, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, p.undo())
		}
	}()
	if e.cfg.Addr != "" {
		if p.server, err = e.listen(ctx); err != nil {
			return p, err
		}
	}
	if len(e.cfg.Admins) > 0 {
		if p.addresses, err = e.addresses(ctx, p.server); err != nil {
			return p, err
		}
	}
	for _, o := range e.origins[1:] {
		var s *spool
		var left []parcel
		if e.cfg.SpoolDir != "" {
			if s, left, err = openSpool(e.cfg, o.name, e.boot); err != nil {
				return p, err
			}
		}
		p.spools, p.left = append(p.spools, s), append(p.left, left)
	}
	return p, nil
}

// undo closes what was opened.
func (p *prepared) undo() error {
	var errs []error
	if p.server != nil {
		errs = append(errs, p.server.listen.Close())
	}
	for _, s := range p.spools {
		if s != nil {
			errs = append(errs, s.close())
		}
	}
	return errors.Join(errs...)
}

// begin starts what was prepared, unless that failed or Stop was called
// meanwhile.
func (e *Executor) begin(p prepared, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.starting = false
	if err != nil {
		return err
	}
	if e.leaving {
		return errors.Join(ErrStopped, p.undo())
	}
	if e.cfg.usesDefaultToken() {
		e.cfg.Logger.Warn("executor: the access token is the publicly known default of XXL-JOB's samples: anybody who can reach this process can run its handlers")
	}
	e.started = true
	for i, o := range e.origins[1:] {
		o.out.open(o.cluster, p.spools[i], p.left[i])
		r := newRegistration(e, o, p.addresses[i])
		o.out.onAway(r.soon)
		e.registrations = append(e.registrations, r)
		go r.loop() // Stop waits for it, in deregister
	}
	if e.server = p.server; e.server != nil {
		go e.server.serve() // Stop waits for it, at the very end
	}
	return nil
}

// Serve starts the executor, waits for the end of ctx, and stops it, giving
// running handlers Config.StopGrace. It is made for errgroup. It returns the error
// of Start, or that of Stop, nil when all went well.
func (e *Executor) Serve(ctx context.Context) error {
	if err := e.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	stop, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), e.cfg.StopGrace,
		fmt.Errorf("not ended within %v: %w", e.cfg.StopGrace, context.DeadlineExceeded))
	defer cancel()
	return e.Stop(stop)
}
