package xxljob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// The executors of this process.

// attachedSet are the executors of this process, one an app.
type attachedSet struct {
	mu         sync.RWMutex
	list       []Executor      // guarded by mu
	registered map[string]bool // guarded by mu: apps in a Registry of the user's
}

// unregistered reports whether the app's executor was never registered.
func (a *attachedSet) unregistered(app string) bool {
	has := a.get(app) != nil
	a.mu.RLock()
	defer a.mu.RUnlock()
	return has && !a.registered[app]
}

// register notes that the app's executor was registered.
func (a *attachedSet) register(app string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.registered == nil {
		a.registered = map[string]bool{}
	}
	a.registered[app] = true
}

// get returns the executor of an app, nil when there is none.
func (a *attachedSet) get(app string) Executor {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, e := range a.list {
		if e.App() == app {
			return e
		}
	}
	return nil
}

func (a *attachedSet) add(e Executor) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, has := range a.list {
		if has.App() == e.App() {
			return fmt.Errorf("xxljob: attach: app %q has an executor in this process", e.App())
		}
	}
	a.list = append(a.list, e)
	return nil
}

// drop takes back what add has added.
func (a *attachedSet) drop(e Executor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(a.list, func(has Executor) bool { return has == e })
}

func (a *attachedSet) all() []Executor {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Clone(a.list)
}

// placesOf is how many runs of an app may be under way at this node's executor.
func (a *attachedSet) placesOf(app string) int {
	if p, ok := a.get(app).(interface{ Places() int }); ok {
		return max(1, p.Places())
	}
	return attachedPlaces
}

// attacher attaches executors of this process, and says to others which there are.
type attacher struct {
	*shared
	attached *attachedSet
	own      *executor.Executor
	memory   *addressMemory
	admin    wire.Admin // of the executors that are attached
	moved    func()     // called where this node offers something else
	panics   *guard.Log
}

// attachments is what this node tells the others about its executors.
func (a *attacher) attachments() []store.Attachment {
	if a.life.draining.Load() {
		return nil
	}
	return a.offered()
}

// offered are the executors of this process and their handlers.
func (a *attacher) offered() []store.Attachment {
	all := []store.Attachment{} // nil would say that the node is resting
	for _, e := range a.attached.all() {
		handlers := slices.Sorted(slices.Values(e.Handlers()))
		if e == Executor(a.own) && len(handlers) == 0 {
			continue // a node that only schedules offers nothing
		}
		all = append(all, store.Attachment{App: e.App(), Handlers: handlers})
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
	if err := bind(e, a.admin); err != nil {
		a.attached.drop(e)
		return fmt.Errorf("xxljob: attach: app %q: Bind: %w", e.App(), err)
	}
	a.attachedMoved()
	return nil
}

func (a *attacher) Handle(name string, h executor.Handler, opts ...executor.HandlerOption) error {
	err := a.own.Handle(name, h, opts...)
	if errors.Is(err, executor.ErrStopped) {
		return fmt.Errorf("%w: %w", errs.ErrStopped, err)
	}
	if err != nil {
		return err
	}
	a.attachedMoved()
	return nil
}

// attachedMoved spreads the news that this node offers something else.
func (a *attacher) attachedMoved() {
	a.memory.forget()
	a.life.wakes.lease.Poke()
	a.life.wakes.attachedChanged.Poke()
	a.life.wakes.inbox.Poke()
	if a.life.running() {
		a.moved()
	}
}

// The executors of this process in a Registry of the user's. The store's own needs none of
// it: nodes publish them with their beats.

// publisher registers them there.
type publisher struct {
	*shared
	attacher *attacher
	users    *userCalls // of Config.Registry
	memory   *addressMemory
}

// registerDuty keeps the attached executors in a Registry of the user's. The store's own
// needs none of it: nodes publish them with their beats.
func (p *publisher) registerDuty() loop.Duty {
	return loop.Duty{
		What: "registering attached executors", Wakes: []<-chan struct{}{p.life.wakes.attachedChanged}, Aside: true,
		Once: func(ctx context.Context) (time.Duration, error) { return p.cfg.Cluster.Beat, p.registerAttached(ctx) },
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
	ctx, cancel := context.WithTimeout(ctx, loop.CallTimeout) // for all together
	defer cancel()
	for _, at := range p.attacher.offered() {
		if err := p.users.deregister(ctx, at.App, store.LocalAddress(p.leases.incarnation)); err != nil {
			p.log.Warn("xxljob: could not deregister an attached executor", "app", at.App, "error", err)
		}
	}
}

// Executors that users have made. Input: calls of the scheduler. Output: their answers,
// or errors where they panic.

// userExecutor is an attached executor that is not of our own make.
type userExecutor struct {
	made     Executor
	app      string
	panics   *guard.Log
	handlers atomic.Pointer[[]string] // the latest that it has named
	places   atomic.Int64             // the latest that it has said; zero for none
}

var _ Executor = (*userExecutor)(nil)

// guardExecutor asks an executor for its app, once and for all. One of ours is called
// directly: it recovers from what its handlers do.
func guardExecutor(made Executor, panics *guard.Log) (Executor, error) {
	if ours, ok := made.(*executor.Executor); ok {
		return ours, nil
	}
	e := &userExecutor{made: made, panics: panics}
	err := panics.Call("Executor.App", func() error { e.app = made.App(); return nil })
	return e, err
}

func (e *userExecutor) App() string { return e.app }

// Handlers are those that it names, or has named last.
func (e *userExecutor) Handlers() []string {
	if err := e.call("Handlers", func() error {
		names := slices.Clone(e.made.Handlers())
		e.handlers.Store(&names)
		return nil
	}); err == nil || e.handlers.Load() != nil {
		return *e.handlers.Load()
	}
	return nil
}

// Places is what it says, or has said last, or else what is usual.
func (e *userExecutor) Places() int {
	if p, ok := e.made.(interface{ Places() int }); ok {
		_ = e.call("Places", func() error { e.places.Store(int64(max(1, p.Places()))); return nil })
	}
	if n := e.places.Load(); n > 0 {
		return int(n)
	}
	return attachedPlaces
}

// Bind is bind for those who need no error.
func (e *userExecutor) Bind(admin wire.Admin) { _ = e.bind(admin) }

func (e *userExecutor) bind(admin wire.Admin) error {
	return e.call("Bind", func() error { e.made.Bind(admin); return nil })
}

// bind says where an executor's results go. One that panics has not taken it in.
func bind(e Executor, admin wire.Admin) error {
	if user, ok := e.(*userExecutor); ok {
		return user.bind(admin)
	}
	e.Bind(admin)
	return nil
}

// Run is not accepted where it panics, as with any other error.
func (e *userExecutor) Run(ctx context.Context, req wire.TriggerRequest) (wire.Return, error) {
	return answered(e, "Run", func() (wire.Return, error) { return e.made.Run(urgent.Unmark(ctx), req) })
}

func (e *userExecutor) Beat(ctx context.Context) (wire.Return, error) {
	return answered(e, "Beat", func() (wire.Return, error) { return e.made.Beat(urgent.Unmark(ctx)) })
}

func (e *userExecutor) IdleBeat(ctx context.Context, req wire.IdleBeatRequest) (wire.Return, error) {
	return answered(e, "IdleBeat", func() (wire.Return, error) { return e.made.IdleBeat(urgent.Unmark(ctx), req) })
}

func (e *userExecutor) Kill(ctx context.Context, req wire.KillRequest) (wire.Return, error) {
	return answered(e, "Kill", func() (wire.Return, error) { return e.made.Kill(urgent.Unmark(ctx), req) })
}

func (e *userExecutor) Log(ctx context.Context, req wire.LogRequest) (wire.LogReturn, error) {
	return answered(e, "Log", func() (wire.LogReturn, error) { return e.made.Log(urgent.Unmark(ctx), req) })
}

// call calls a method.
func (e *userExecutor) call(method string, f func() error) error {
	return e.panics.Call("Executor."+method+" of app "+e.app, f)
}

// answered calls a method that has an answer.
func answered[R any](e *userExecutor, method string, f func() (R, error)) (ret R, err error) {
	err = e.call(method, func() error {
		r, err := f()
		ret = r
		return err
	})
	return ret, err
}
