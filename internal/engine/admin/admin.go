package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xxljob/xxljob/internal/engine/catalog"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// The admin side of XXL-JOB's protocol. Input: requests of executors. Output: what
// Scheduler has, for the apps that a caller may speak for.

// Admin is what executors call over HTTP.
type Admin struct {
	S          *core.Core
	Registrar  *registry.Registrar
	Results    *Results
	Authorizer *Authorizer
	Catalog    *catalog.Catalog
	Quota      *loop.RateLimit
}

func New(s *core.Core, registrar *registry.Registrar, results *Results, authorizer *Authorizer, c *catalog.Catalog) *Admin {
	return &Admin{S: s, Registrar: registrar, Results: results, Authorizer: authorizer, Catalog: c, Quota: loop.NewRateLimit()}
}

var _ wire.JobAdmin = (*Admin)(nil)

// Registry stores the address of an executor. Any app may register, also one that has
// no group: it is in Store.Registrations from then on.
func (a *Admin) Registry(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	reg, refusal := a.registration(ctx, req)
	if refusal == "" {
		refusal = a.Registrar.Regs.Enter(ctx, reg)
	}
	if refusal != "" {
		return wire.Failf("%s", refusal), nil
	}
	err := a.Registrar.Register(ctx, reg)
	if err != nil {
		a.Registrar.Regs.Leave(reg)
	}
	return a.registered(err)
}

// RegistryRemove forgets the address. It is answered when no node will route to it any
// more but for what it has read a second ago.
func (a *Admin) RegistryRemove(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	reg, refusal := a.registration(ctx, req)
	if refusal != "" {
		return wire.Failf("%s", refusal), nil
	}
	return a.registered(a.Registrar.Deregister(ctx, reg))
}

// registered is the answer to a registration. The loop logs errors of the store.
func (a *Admin) registered(err error) (wire.Return, error) {
	if err != nil {
		return wire.Failf(registry.MsgRegistryBusy), nil
	}
	return wire.Success(), nil
}

// registration checks a request: what it names will be called with a token, and shown to
// people, in pages and in terminals.
func (a *Admin) registration(ctx context.Context, req wire.RegistryRequest) (reg store.Registration, refusal string) {
	caller := a.Authorizer.callerOf(ctx)
	if refusal, _ := a.Authorizer.whyNot(caller, req.RegistryKey); refusal != "" {
		return reg, refusal
	}
	f := store.Faults{Of: "registry"}
	f.Plain("registryKey", req.RegistryKey, 1, 64)
	f.Plain("registryValue", req.RegistryValue, 1, 255)
	f.Plain("bootId", req.BootID, 0, 64)
	if len(req.Capabilities) > 16 {
		f.Add("capabilities", len(req.Capabilities), errors.New("at most 16"))
	}
	for _, c := range req.Capabilities {
		f.Plain("capabilities", c, 1, 32)
	}
	if err := f.Err(); err != nil {
		return reg, err.Error()
	}
	if req.RegistryGroup != wire.GroupExecutor {
		return reg, fmt.Sprintf(registry.MsgRegistryGroup, errs.Shorten(req.RegistryGroup, 40))
	}
	if _, err := wire.ParseAddress(req.RegistryValue); err != nil {
		return reg, fmt.Sprintf(registry.MsgRegistryValue, err)
	}
	return store.Registration{App: req.RegistryKey, Address: req.RegistryValue, BootID: req.BootID, Capabilities: req.Capabilities}, ""
}

// Callback stores results. Those of unknown runs, of runs of other apps, of runs that
// had an id before, of runs that have ended and of runs that were not sent to a remote executor do not matter.
func (a *Admin) Callback(ctx context.Context, reqs []wire.CallbackRequest) (wire.Return, error) {
	caller := a.Authorizer.callerOf(ctx)
	list, size := reportsOf(caller, reqs)
	if err := a.Results.report(ctx, caller, list, size); err != nil || slices.ContainsFunc(list, func(r *reported) bool { return r.failed }) {
		return wire.Failf(msgReport), nil
	}
	return wire.Success(), nil
}
