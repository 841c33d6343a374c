package xxljob

// Executors that users have made. Input: calls of the scheduler. Output: their answers,
// or errors where they panic.

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/wire"
)

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
