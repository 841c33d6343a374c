package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// The executors of this process.

// AttachedSet are the executors of this process, one an app.
type AttachedSet struct {
	mu         sync.RWMutex
	list       []core.Executor // guarded by mu
	registered map[string]bool // guarded by mu: apps in a Registry of the user's
}

// Unregistered reports whether the app's executor was never registered.
func (a *AttachedSet) Unregistered(app string) bool {
	has := a.Get(app) != nil
	a.mu.RLock()
	defer a.mu.RUnlock()
	return has && !a.registered[app]
}

// register notes that the app's executor was registered.
func (a *AttachedSet) register(app string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.registered == nil {
		a.registered = map[string]bool{}
	}
	a.registered[app] = true
}

// Get returns the executor of an app, nil when there is none.
func (a *AttachedSet) Get(app string) core.Executor {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, e := range a.list {
		if e.App() == app {
			return e
		}
	}
	return nil
}

func (a *AttachedSet) add(e core.Executor) error {
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
func (a *AttachedSet) drop(e core.Executor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(a.list, func(has core.Executor) bool { return has == e })
}

func (a *AttachedSet) all() []core.Executor {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Clone(a.list)
}

// PlacesOf is how many runs of an app may be under way at this node's executor.
func (a *AttachedSet) PlacesOf(app string) int {
	if p, ok := a.Get(app).(interface{ Places() int }); ok {
		return max(1, p.Places())
	}
	return core.AttachedPlaces
}

// AllReturned reports whether no handler runs at executors of this process. Of executors of another
// make that is not known.
func (a *AttachedSet) AllReturned() bool {
	return !slices.ContainsFunc(a.all(), func(e core.Executor) bool {
		ours, ok := e.(*executor.Executor)
		return !ok || ours.Running() > 0
	})
}

// Stuck is what abandoned handlers hold at an executor of this process.
type Stuck struct {
	executor.Stuck
	App string
	Of  int // places of the executor
}

// Keep reports whether they keep due runs from being run: they hold half of the places or more,
// and a run waits since then, or since before.
func (s *Stuck) Keep(before time.Time) bool {
	return s.Places > 0 && 2*s.Places >= s.Of && !s.Waiting.IsZero() && !s.Waiting.After(before)
}

// Stuck are the executors of ours at which abandoned handlers hold places.
func (a *AttachedSet) Stuck() (all []Stuck) {
	for _, e := range a.all() {
		if ours, ok := e.(*executor.Executor); ok {
			if s := ours.Stuck(); s.Places > 0 {
				all = append(all, Stuck{Stuck: s, App: e.App(), Of: ours.Places()})
			}
		}
	}
	return all
}

// Attacher attaches executors of this process, and says to others which there are.
type Attacher struct {
	*core.Core
	attached *AttachedSet
	own      *executor.Executor
	memory   *Memory
	admin    wire.Admin // of the executors that are attached
	moved    func()     // called where this node offers something else
	panics   *guard.Log
}

// NewAttacher makes it. What it attaches is bound to nothing yet: see ReportTo.
func NewAttacher(s *core.Core, attached *AttachedSet, own *executor.Executor, memory *Memory, panics *guard.Log) *Attacher {
	return &Attacher{Core: s, attached: attached, own: own, memory: memory, panics: panics, moved: func() {}}
}

// ReportTo sets, before the first is attached, to whom executors of this process report, and what is
// called where this node offers something else.
func (a *Attacher) ReportTo(admin wire.Admin, moved func()) { a.admin, a.moved = admin, moved }

// Attachments is what this node tells the others about its executors.
func (a *Attacher) Attachments() []store.Attachment {
	if a.Life.Draining.Load() {
		return nil
	}
	return a.offered()
}

// offered are the executors of this process and their handlers.
func (a *Attacher) offered() []store.Attachment {
	all := []store.Attachment{} // nil would say that the node is resting
	for _, e := range a.attached.all() {
		handlers := slices.Sorted(slices.Values(e.Handlers()))
		if e == core.Executor(a.own) && len(handlers) == 0 {
			continue // a node that only schedules offers nothing
		}
		all = append(all, store.Attachment{App: e.App(), Handlers: handlers})
	}
	return all
}

func (a *Attacher) Attach(e core.Executor) error {
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
		return errs.In(fmt.Sprintf("attach: app %q: Bind", e.App()), err)
	}
	a.attachedMoved()
	return nil
}

func (a *Attacher) Handle(name string, h executor.Handler, opts ...executor.HandlerOption) error {
	err := a.own.Handle(name, h, opts...)
	if errors.Is(err, executor.ErrStopped) {
		both := fmt.Errorf("%w: %w", errs.ErrStopped, err)
		return errs.Reword(strings.ReplaceAll(both.Error(), ": xxljob: ", ": "), both)
	}
	if err != nil {
		return err
	}
	a.attachedMoved()
	return nil
}

// attachedMoved spreads the news that this node offers something else.
func (a *Attacher) attachedMoved() {
	a.memory.Forget()
	a.Life.Wakes.Lease.Poke()
	a.Life.Wakes.AttachedChanged.Poke()
	a.Life.Wakes.Inbox.Poke()
	if a.Life.Running() {
		a.moved()
	}
}

// The executors of this process in a Registry of the user's. The store's own needs none of
// it: nodes publish them with their beats.

// Advertiser registers them there.
type Advertiser struct {
	*core.Core
	attacher *Attacher
	users    *UserCalls // of Config.Registry
	memory   *Memory
}

func NewAdvertiser(s *core.Core, attacher *Attacher, users *UserCalls, memory *Memory) *Advertiser {
	return &Advertiser{Core: s, attacher: attacher, users: users, memory: memory}
}

// RegisterDuty keeps the attached executors in a Registry of the user's.
func (p *Advertiser) RegisterDuty() loop.Duty {
	return loop.Duty{
		What: "registering attached executors", Wakes: []<-chan struct{}{p.Life.Wakes.AttachedChanged}, Aside: true,
		Once: func(ctx context.Context) (time.Duration, error) { return p.Cfg.Cluster.Beat, p.RegisterAttached(ctx) },
	}
}

func (p *Advertiser) RegisterAttached(ctx context.Context) error {
	var failed []error
	for _, at := range p.attacher.Attachments() {
		if !p.Cfg.AsksRegistry(at.App) {
			continue
		}
		err := p.users.register(ctx, at.App, store.LocalAddress(p.Leases.Incarnation))
		switch {
		case errors.Is(err, errs.ErrStopped): // while these were registered
			return nil
		case err != nil:
			failed = append(failed, err) // the registry may fail for one app
		default:
			loop.Answered(ctx)
			p.attacher.attached.register(at.App)
			p.memory.Forget()
		}
	}
	return errors.Join(failed...)
}

// DeregisterAttached takes the attached executors out of a Registry of the
// user's, at Stop, and has none of them registered again.
func (p *Advertiser) DeregisterAttached(ctx context.Context) {
	if p.Cfg.Registry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, loop.CallTimeout) // for all together
	defer cancel()
	var apps []string
	for _, at := range p.attacher.offered() {
		if p.Cfg.AsksRegistry(at.App) {
			apps = append(apps, at.App)
		}
	}
	for i, err := range p.users.withdraw(ctx, apps, store.LocalAddress(p.Leases.Incarnation)) {
		if err != nil {
			p.Logger.Warn("xxljob: could not deregister an attached executor", "app", apps[i], "error", err)
		}
	}
}

// Executors that users have made. Input: calls of the scheduler. Output: their answers,
// or errors where they panic.

// userExecutor is an attached executor that is not of our own make.
type userExecutor struct {
	made     core.Executor
	app      string
	panics   *guard.Log
	handlers atomic.Pointer[[]string] // the latest that it has named
	places   atomic.Int64             // the latest that it has said; zero for none
}

var _ core.Executor = (*userExecutor)(nil)

// guardExecutor asks an executor for its app, once and for all. One of ours is called
// directly: it recovers from what its handlers do.
func guardExecutor(made core.Executor, panics *guard.Log) (core.Executor, error) {
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
	return core.AttachedPlaces
}

// Bind is bind for those who need no error.
func (e *userExecutor) Bind(admin wire.Admin) { _ = e.bind(admin) }

func (e *userExecutor) bind(admin wire.Admin) error {
	return e.call("Bind", func() error { e.made.Bind(admin); return nil })
}

// bind says where an executor's results go. One that panics has not taken it in.
func bind(e core.Executor, admin wire.Admin) error {
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
