package xxljob

// The admin side of XXL-JOB's protocol. Input: requests of executors. Output: what
// Scheduler has, for the apps that a caller may speak for.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xxljob/xxljob/wire"
)

// adminSide is what executors call over HTTP.
type adminSide struct {
	s         *shared
	registrar *registrar
	results   *adminResults
	speaker   *speaker
	definer   *definer
	quota     *quota
}

var _ wire.JobAdmin = (*adminSide)(nil)

// Registry stores the address of an executor. Any app may register, also one that has
// no group: it is in Store.Registrations from then on.
func (a *adminSide) Registry(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	reg, refusal := a.registration(ctx, req)
	if refusal == "" {
		refusal = a.registrar.regs.enter(ctx, reg)
	}
	if refusal != "" {
		return wire.Failf("%s", refusal), nil
	}
	err := a.registrar.register(ctx, reg)
	if err != nil {
		a.registrar.regs.leave(reg)
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
	return a.registered(a.registrar.deregister(ctx, reg))
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
	caller := a.speaker.callerOf(ctx)
	if refusal, _ := a.speaker.whyNot(caller, req.RegistryKey); refusal != "" {
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

// Callback stores results. Those of unknown runs, of runs of other apps, of runs that
// had an id before, of runs that have ended and of runs that were not sent to a remote executor do not matter.
func (a *adminSide) Callback(ctx context.Context, reqs []wire.CallbackRequest) (wire.Return, error) {
	caller := a.speaker.callerOf(ctx)
	list, size := reportsOf(caller, reqs)
	if err := a.results.report(ctx, caller, list, size); err != nil || slices.ContainsFunc(list, func(r *reported) bool { return r.failed }) {
		return wire.Failf(msgReport), nil
	}
	return wire.Success(), nil
}
