package xxljob

import (
	"context"
)

// Traces of the host's: what a tracer is asked.

// Tracer carries the traces of a program through its runs: from the context of who asks for a
// run to the handler, whichever node starts it and wherever the handler is. Module otelxxl has
// one for OpenTelemetry. A trace is a text as Trigger.Trace has it; one that is too long, or has
// other characters, is left out.
//
// Its methods are called from many goroutines, and should return at once. A call that takes
// longer than 100 ms is left behind, and no span is begun for the next ten seconds; that is logged
// when it begins and when it is over, and counted (FaultStats.Untraced). Meanwhile, and after a
// panic, which is logged once a method, runs go on without spans of their own. What ends a span is
// called then too, without being waited for; and after a call that was left behind, when it has
// returned.
type Tracer interface {
	// Triggering is called as a run is asked for, by Trigger and the like and by TriggerTx of
	// the store, with the caller's context. The trace is stored with the run, and empty for
	// none. Done, which may be nil, is called once with the run's ID, or the error. It is not
	// called for a Trigger that has a Trace, nor for the runs of schedules.
	Triggering(ctx context.Context, jobID int64) (trace string, done func(runID int64, err error))
	// Sending is called by the node that sends a run to its executor, in this process or
	// elsewhere, for each time that it does. The trace goes to the handler (Task.Trace) and is
	// that of the run, run.Trace, where it is empty. Done, which may be nil, is called once with
	// nil where the executor has accepted the run, or else with what it has answered, or why
	// there is no answer.
	Sending(ctx context.Context, run Run) (trace string, done func(err error))
}
