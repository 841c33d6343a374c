package xxljob_test

import (
	"context"

	"github.com/xxljob/xxljob/wire"
)

// userExecutor is an executor of a user's, each part replaceable.
type userExecutor struct {
	app   string
	run   func(ctx context.Context, admin wire.Admin, r wire.TriggerRequest) (wire.Return, error)
	beat  func() (wire.Return, error)
	kill  func(wire.KillRequest) (wire.Return, error)
	admin wire.Admin
}

func (e *userExecutor) App() string        { return e.app }
func (e *userExecutor) Handlers() []string { return []string{"work"} }
func (e *userExecutor) Bind(a wire.Admin)  { e.admin = a }

func (e *userExecutor) Run(ctx context.Context, r wire.TriggerRequest) (wire.Return, error) {
	if e.run != nil {
		return e.run(ctx, e.admin, r)
	}
	go e.admin.Callback(context.WithoutCancel(ctx), []wire.CallbackRequest{{LogID: r.LogID, HandleCode: 200}})
	return wire.Success(), nil
}

func (e *userExecutor) Beat(context.Context) (wire.Return, error) {
	if e.beat != nil {
		return e.beat()
	}
	return wire.Success(), nil
}

func (e *userExecutor) IdleBeat(context.Context, wire.IdleBeatRequest) (wire.Return, error) {
	return e.Beat(context.Background())
}

func (e *userExecutor) Kill(_ context.Context, r wire.KillRequest) (wire.Return, error) {
	if e.kill != nil {
		return e.kill(r)
	}
	return wire.Success(), nil
}

func (e *userExecutor) Log(context.Context, wire.LogRequest) (wire.LogReturn, error) {
	return wire.LogReturn{Code: 200}, nil
}
