package router

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The addresses of apps, for the start loop, where a registry of the user's has to be
// asked: it does not wait for that, but parks the app's runs until there is an answer.
// Input: runs that are due, from router.go. Output: their addresses.

var (
	// errAsking: the addresses are being asked for; the run waits for them.
	errAsking = errors.New("xxljob: the addresses are being asked for")
	// errBehind: other runs of the app wait, and this one behind them.
	errBehind = errors.New("xxljob: earlier runs of the app wait")
)

// Lookup has the addresses of apps for the start loop.
type Lookup struct {
	S     *core.Core
	Queue *queue.Queue
	Book  *registry.Addresses
	Asked *appsAsked // of a registry of the user's
}

// addressesFor is lookup for the start loop. With errAsking or errBehind the run is to be
// parked (parkAsking). A store is waited for, a registry of the user's is not.
func (a *Lookup) addressesFor(ctx context.Context, en *queue.Entry, job *store.Job) (addrs []string, why string, err error) {
	if !a.S.Cfg.AsksRegistry(job.App) {
		return a.Book.Lookup(ctx, job, en.Run.Addresses())
	}
	key := registry.BookKey{App: job.App, Handler: job.Handler, Glue: job.GlueType}
	said, ok := a.Asked.latest(job.App)
	if waited := en.Waited && en.CameFrom(queue.ForRegistry(job.App)); waited && ok {
		en.Waited = false
		return a.decide(key, en.Run.Addresses(), said)
	}
	if a.Queue.Due.Waits(queue.ForRegistry(job.App), queue.ForAddresses(job.App)) {
		return nil, "", errBehind
	}
	if e, cached := a.Book.Memory.Cached(key); cached && len(en.Run.Addresses()) == 0 {
		return e.Addrs, "", nil
	}
	if a.Asked.begin(job.App) {
		a.S.Life.Loops.Plan.Run(func(ctx context.Context) { a.askBeside(ctx, job.App) })
	}
	return nil, "", errAsking
}

// decide chooses among the addresses of an answer.
func (a *Lookup) decide(key registry.BookKey, given []string, said appAnswer) ([]string, string, error) {
	if said.err != nil {
		return nil, "", said.err
	}
	all := a.Book.AllOf(key.App, said.Answer)
	if len(given) > 0 {
		e := a.Book.ChooseGiven(key, all, given)
		return e.Addrs, e.None, nil
	}
	e := a.Book.Choose(key, all)
	if said.Stale != nil && len(e.Addrs) == 0 {
		return nil, "", said.Stale // as in read
	}
	e.Read = said.asked
	a.Book.Memory.Keep(key, e, said.version)
	return e.Addrs, e.None, nil
}

// askBeside gets the answer about an app and lets its runs go on.
func (a *Lookup) askBeside(ctx context.Context, app string) {
	said := a.askOnce(ctx, app)
	if said.err == nil && !said.Manual && a.Book.Attached.Unregistered(app) && !slices.Contains(said.Addrs, store.LocalAddress(a.S.Leases.Incarnation)) {
		// The registry has not heard of this node's executor yet; the runs would be
		// refused for good.
		if err := a.Book.Register(ctx); err == nil {
			said = a.askOnce(ctx, app)
		} else if len(said.Addrs) == 0 {
			said.err = err
		}
	}
	a.Asked.end(app, said)
	a.Queue.Due.AdmitAll(queue.ForRegistry(app))
}

// askOnce asks the store, which may hang, and the registry.
func (a *Lookup) askOnce(ctx context.Context, app string) appAnswer {
	said := appAnswer{asked: time.Now()}
	said.version = a.Book.Memory.AsOf()
	said.Answer, said.err = loop.Call(ctx, func(ctx context.Context) (registry.Answer, error) { return a.Book.Ask(ctx, app) })
	return said
}

// The apps whose addresses a registry of the user's is being asked for.

// appsAsked are the apps whose addresses are asked for beside the start loop, and the
// latest answers. None of it hangs: the calls are ours, and registry.UserCalls gives up those of
// the user's registry that they wait for. It is safe for concurrent use.
type appsAsked struct {
	mu    sync.Mutex
	under map[string]bool      // guarded by mu
	said  map[string]appAnswer // guarded by mu: for the runs that have waited for them
}

// appAnswer is what has come of it.
type appAnswer struct {
	registry.Answer
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

// ParkedLookups has such runs wait. It belongs to the start loop.
type ParkedLookups struct {
	*core.Core
	Queue    *queue.Queue
	Serving  *registry.Serving
	Asked    *appsAsked
	Backoffs map[string]*loop.Backoff // of apps whose addresses cannot be read
	looks    atomic.Bool              // those that wait for a node which knows their strategy will be tried again
	again    []queue.WaitKey          // those that are tried again once all of a batch are routed
	unknown  map[int64]store.Trouble  // by job, what is to be said of runs of a batch that wait so; nothing of new ones
	tries    tries
}

// SetAside parks a run whose addresses could not be read, with the others of its
// app: the other apps go on. After a pause they are tried again.
func (u *ParkedLookups) SetAside(ctx context.Context, en *queue.Entry, err error) {
	if lack := (*unknownRouter)(nil); errors.As(err, &lack) {
		u.parkUnknown(en, lack)
		return
	}
	if errors.Is(err, errAsking) || errors.Is(err, errBehind) {
		u.parkAsking(en, err)
		return
	}
	app := en.Run.App
	if errors.Is(err, errNobody) {
		at := queue.ForExecutor(app)
		if u.Queue.Due.ParkFirst(at, en); !u.Serving.IsAbsent(app) {
			u.Queue.Due.AdmitAll(at) // somebody has come meanwhile
		}
		return
	}
	b := u.Backoffs[app]
	if b == nil {
		b = &loop.Backoff{Log: u.Logger.With("app", app), What: "reading addresses"}
		u.Backoffs[app] = b
	}
	at := queue.ForAddresses(app)
	if u.Queue.Due.ParkFirst(at, en) {
		b.Failed(ctx, err)
		delay := b.Delay()
		u.Life.Loops.Plan.Try(func(ctx context.Context) { // once Stop has begun the runs stay planned
			if loop.Sleep(ctx, delay) {
				u.Queue.Due.AdmitAll(at)
			}
		})
	}
}

// RoutedWell ends a streak of SetAside.
func (u *ParkedLookups) RoutedWell(ctx context.Context, app string) {
	if b := u.Backoffs[app]; b != nil {
		b.Failed(ctx, nil)
		delete(u.Backoffs, app)
	}
}

// parkAsking parks a run until the addresses of its app are there, or behind those that
// wait because they could not be read.
func (u *ParkedLookups) parkAsking(en *queue.Entry, why error) {
	u.Queue.ParkUnrouted(en, u.Asked.asks, errors.Is(why, errAsking))
}
