package executor

import (
	"context"

	"github.com/xxljob/xxljob/wire"
)

// remote is an executor as one admin outside of this process sees it.
type remote struct {
	exec   *Executor
	origin *origin
}

var _ wire.Executor = remote{}

// Beat implements wire.Executor.
func (r remote) Beat(context.Context) (wire.Return, error) { return r.exec.beat(r.origin), nil }

// IdleBeat implements wire.Executor.
func (r remote) IdleBeat(_ context.Context, req wire.IdleBeatRequest) (wire.Return, error) {
	return r.exec.idleBeat(r.origin, req), nil
}

// Run implements wire.Executor.
func (r remote) Run(_ context.Context, req wire.TriggerRequest) (wire.Return, error) {
	if req.BootID != "" && req.BootID != r.exec.boot {
		// Whether the earlier process has run it before is not known here.
		return wire.Failf(wire.MsgOtherBoot), nil
	}
	return r.exec.accept(r.origin, &req), nil
}

// Kill implements wire.Executor.
func (r remote) Kill(_ context.Context, req wire.KillRequest) (wire.Return, error) {
	return r.exec.kill(r.origin, req), nil
}

// Log implements wire.Executor.
func (r remote) Log(_ context.Context, req wire.LogRequest) (wire.LogReturn, error) {
	return r.exec.readLog(r.origin, req), nil
}
