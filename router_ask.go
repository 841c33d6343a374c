package xxljob

// The addresses of apps, for the start loop, where a registry of the user's has to be
// asked: it does not wait for that, but parks the app's runs until there is an answer.
// Input: runs that are due, from route.go. Output: their addresses.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

var (
	// errAsking: the addresses are being asked for; the run waits for them.
	errAsking = errors.New("xxljob: the addresses are being asked for")
	// errBehind: other runs of the app wait, and this one behind them.
	errBehind = errors.New("xxljob: earlier runs of the app wait")
)

// appAsker has the addresses of apps for the start loop.
type appAsker struct {
	s      *shared
	engine *engine
	book   *addressBook
	asked  *appsAsked // of a registry of the user's
}

// addressesFor is lookup for the start loop. With errAsking or errBehind the run is to be
// parked (parkAsking). A store is waited for, a registry of the user's is not.
func (a *appAsker) addressesFor(ctx context.Context, en *entry, job *Job) (addrs []string, why string, err error) {
	if a.s.cfg.Registry == nil {
		return a.book.lookup(ctx, job, en.run.addresses())
	}
	key := bookKey{job.App, job.Handler, job.GlueType}
	said, ok := a.asked.latest(job.App)
	if waited := en.waited && en.cameFrom(askLot(job.App)); waited && ok {
		en.waited = false
		return a.decide(key, en.run.addresses(), said)
	}
	if a.engine.room.waits(askLot(job.App), errorLot(job.App)) {
		return nil, "", errBehind
	}
	if e, cached := a.book.memory.cached(key); cached && len(en.run.addresses()) == 0 {
		return e.addrs, "", nil
	}
	if a.asked.begin(job.App) {
		a.s.life.loops.plan.run(func(ctx context.Context) { a.askBeside(ctx, job.App) })
	}
	return nil, "", errAsking
}

// decide chooses among the addresses of an answer.
func (a *appAsker) decide(key bookKey, given []string, said appAnswer) ([]string, string, error) {
	if said.err != nil {
		return nil, "", said.err
	}
	all := a.book.allOf(key.app, said.answer)
	if len(given) > 0 {
		e := a.book.chooseGiven(key, all, given)
		return e.addrs, e.none, nil
	}
	e := a.book.choose(key, all)
	if said.stale != nil && len(e.addrs) == 0 {
		return nil, "", said.stale // as in read
	}
	e.read = said.asked
	a.book.memory.keep(key, e, said.version)
	return e.addrs, e.none, nil
}

// askBeside gets the answer about an app and lets its runs go on.
func (a *appAsker) askBeside(ctx context.Context, app string) {
	said := a.askOnce(ctx, app)
	if said.err == nil && !said.manual && a.book.attached.unregistered(app) && !slices.Contains(said.addrs, store.LocalAddress(a.s.leases.incarnation)) {
		// The registry has not heard of this node's executor yet; the runs would be
		// refused for good.
		if err := a.book.register(ctx); err == nil {
			said = a.askOnce(ctx, app)
		} else if len(said.addrs) == 0 {
			said.err = err
		}
	}
	a.asked.end(app, said)
	a.engine.room.admitAll(askLot(app))
}

// askOnce asks the store, which may hang, and the registry.
func (a *appAsker) askOnce(ctx context.Context, app string) appAnswer {
	said := appAnswer{asked: time.Now()}
	said.version = a.book.memory.asOf()
	said.answer, said.err = call(ctx, func(ctx context.Context) (answer, error) { return a.book.ask(ctx, app) })
	return said
}
