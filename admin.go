package xxljob

// The admin side of XXL-JOB's protocol. Input: requests of executors. Output: what
// Scheduler has, for the apps that a caller may speak for.

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/xxljob/xxljob/wire"
)

// adminSide is what executors call over HTTP.
type adminSide struct {
	s     *scheduler
	quota *quota
}

var _ wire.JobAdmin = (*adminSide)(nil)

func (s *scheduler) Handler() (http.Handler, error) {
	authorize, err := s.cfg.authorize()
	if err != nil {
		return nil, err
	}
	return wire.NewAdminHandler(&adminSide{s, newQuota()}, wire.HandlerConfig{Authorize: authorize, Logger: s.log})
}

// Registry stores the address of an executor. Any app may register, also one that has
// no group: it is in Store.Registrations from then on.
func (a *adminSide) Registry(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	reg, refusal := a.registration(ctx, req)
	if refusal == "" {
		refusal = a.s.registrar.enter(ctx, reg)
	}
	if refusal != "" {
		return wire.Failf("%s", refusal), nil
	}
	err := a.s.registrar.register(ctx, reg)
	if err != nil {
		a.s.registrar.leave(reg)
	}
	return a.registered(err)
}

// RegistryRemove forgets the address. It is answered when no node will route to it any
// more but for what it has read a second ago.
func (a *adminSide) RegistryRemove(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	reg, refusal := a.registration(ctx, req)
	if refusal != "" {
		return wire.Failf("%s", refusal), nil
	}
	return a.registered(a.s.registrar.deregister(ctx, reg))
}

// registered is the answer to a registration. The loop logs errors of the store.
func (a *adminSide) registered(err error) (wire.Return, error) {
	if err != nil {
		return wire.Failf(msgRegistryBusy), nil
	}
	return wire.Success(), nil
}

// registration checks a request: what it names will be called with a token, and shown to
// people, in pages and in terminals.
func (a *adminSide) registration(ctx context.Context, req wire.RegistryRequest) (reg Registration, refusal string) {
	caller := a.callerOf(ctx)
	if refusal, _ := a.s.whyNot(caller, req.RegistryKey); refusal != "" {
		return reg, refusal
	}
	f := faults{what: "registry"}
	f.plain("registryKey", req.RegistryKey, 1, 64)
	f.plain("registryValue", req.RegistryValue, 1, 255)
	f.plain("bootId", req.BootID, 0, 64)
	if len(req.Capabilities) > 16 {
		f.add("capabilities", len(req.Capabilities), errors.New("at most 16"))
	}
	for _, c := range req.Capabilities {
		f.plain("capabilities", c, 1, 32)
	}
	if err := f.err(); err != nil {
		return reg, err.Error()
	}
	if req.RegistryGroup != wire.GroupExecutor {
		return reg, fmt.Sprintf(msgRegistryGroup, shorten(req.RegistryGroup, 40))
	}
	if _, err := wire.ParseAddress(req.RegistryValue); err != nil {
		return reg, fmt.Sprintf(msgRegistryValue, err)
	}
	return Registration{App: req.RegistryKey, Address: req.RegistryValue, BootID: req.BootID, Capabilities: req.Capabilities}, ""
}
