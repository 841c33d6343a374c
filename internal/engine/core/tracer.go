package core

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// Traces of the host's: what a tracer is asked.

// Tracer is xxljob.Tracer.
type Tracer interface {
	Triggering(ctx context.Context, jobID int64) (trace string, done func(runID int64, err error))
	Sending(ctx context.Context, run store.Run) (trace string, done func(err error))
}
