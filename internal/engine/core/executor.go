package core

import (
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// Executor is xxljob.Executor.
type Executor interface {
	wire.Executor
	App() string
	Handlers() []string
	Bind(admin wire.Admin)
}

var _ Executor = (*executor.Executor)(nil)
