package xxljob

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The addresses of apps, for the start loop, where a registry of the user's has to be
// asked: it does not wait for that, but parks the app's runs until there is an answer.
// Input: runs that are due, from router_router.go. Output: their addresses.

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
func (a *appAsker) addressesFor(ctx context.Context, en *entry, job *store.Job) (addrs []string, why string, err error) {
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
		a.s.life.loops.plan.Run(func(ctx context.Context) { a.askBeside(ctx, job.App) })
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
	said.answer, said.err = loop.Call(ctx, func(ctx context.Context) (answer, error) { return a.book.ask(ctx, app) })
	return said
}

// The apps whose addresses a registry of the user's is being asked for.

// appsAsked are the apps whose addresses are asked for beside the start loop, and the
// latest answers. It is safe for concurrent use.
type appsAsked struct {
	mu    sync.Mutex
	under map[string]bool      // guarded by mu
	said  map[string]appAnswer // guarded by mu: for the runs that have waited for them
}

// appAnswer is what has come of it.
type appAnswer struct {
	answer
	err     error
	version int       // of the book, when it was asked for
	asked   time.Time // when
}

func newAppsAsked() *appsAsked {
	return &appsAsked{under: map[string]bool{}, said: map[string]appAnswer{}}
}

// begin reports whether nobody was asking about an app until now.
func (a *appsAsked) begin(app string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := !a.under[app]
	a.under[app] = true
	return began
}

func (a *appsAsked) end(app string, said appAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.under, app)
	if len(a.said) > 10_000 {
		clear(a.said)
	}
	a.said[app] = said
}

func (a *appsAsked) asks(app string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.under[app]
}

func (a *appsAsked) latest(app string) (appAnswer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	said, ok := a.said[app]
	return said, ok
}

// Due runs of apps whose addresses cannot be read, or are being asked for.

// unrouted has such runs wait. It belongs to the start loop.
type unrouted struct {
	*shared
	engine   *engine
	asked    *appsAsked
	backoffs map[string]*loop.Backoff // of apps whose addresses cannot be read
}

// setAside parks a run whose addresses could not be read, with the others of its
// app: the other apps go on. After a pause they are tried again.
func (u *unrouted) setAside(ctx context.Context, en *entry, err error) {
	if errors.Is(err, errAsking) || errors.Is(err, errBehind) {
		u.parkAsking(en, err)
		return
	}
	app := en.run.App
	b := u.backoffs[app]
	if b == nil {
		b = &loop.Backoff{Log: u.log.With("app", app), What: "reading addresses"}
		u.backoffs[app] = b
	}
	at := errorLot(app)
	if u.engine.room.parkFirst(at, en) {
		b.Failed(ctx, err)
		time.AfterFunc(b.Delay(), func() {
			u.engine.room.admitAll(at)
		})
	}
}

// routedWell ends a streak of setAside.
func (u *unrouted) routedWell(ctx context.Context, app string) {
	if b := u.backoffs[app]; b != nil {
		b.Failed(ctx, nil)
		delete(u.backoffs, app)
	}
}

// parkAsking parks a run until the addresses of its app are there, or behind those that
// wait because they could not be read.
func (u *unrouted) parkAsking(en *entry, why error) {
	u.engine.parkUnrouted(en, u.asked.asks, errors.Is(why, errAsking))
}
