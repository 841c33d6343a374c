package block

import "slices"

// The strategies' names, as XXL-JOB stores them in executor_block_strategy and
// sends them in executorBlockStrategy. Concurrent is ours.
const (
	SerialExecution = "SERIAL_EXECUTION"
	DiscardLater    = "DISCARD_LATER"
	CoverEarly      = "COVER_EARLY"
	Concurrent      = "CONCURRENT"
)

// Names returns the names of the strategies, XXL-JOB's first and in its order. The slice is
// the caller's.
func Names() []string { return []string{SerialExecution, DiscardLater, CoverEarly, Concurrent} }

// Valid reports whether name is the name of a strategy, in exactly the stored
// spelling.
func Valid(name string) bool { return slices.Contains(Names(), name) }

// Title returns what XXL-JOB calls a strategy in its messages: "Discard Later",
// say. A name that is not Valid gets the title of serial execution, which is
// how Decide treats it.
func Title(strategy string) string {
	switch strategy {
	case DiscardLater:
		return "Discard Later"
	case CoverEarly:
		return "Cover Early"
	case Concurrent:
		return "Concurrent"
	default:
		return "Serial execution"
	}
}

// Action is what to do with a trigger.
type Action uint8

const (
	// Start runs the trigger at once: the job is idle.
	Start Action = iota
	// Queue puts the trigger behind what runs and what waits.
	Queue
	// Discard refuses the trigger with MsgDiscard.
	Discard
	// Cover stops what runs and drops what waits, both with the reason
	// MsgCover, and then runs the trigger.
	Cover
)

// String returns the name of the action, in lower case.
func (a Action) String() string {
	switch a {
	case Start:
		return "start"
	case Queue:
		return "queue"
	case Discard:
		return "discard"
	case Cover:
		return "cover"
	default:
		return "unknown action"
	}
}

// Decide returns what to do with a trigger under a strategy. Busy means that a
// run of the job is executing or waiting on this executor; for Concurrent, that it
// is executing as many side by side as it may, or that one is waiting. An unknown strategy
// is treated as serial execution, as XXL-JOB's executors do: the trigger of a
// newer or a mistaken admin is delayed at worst, and not lost.
func Decide(strategy string, busy bool) Action {
	if !busy {
		return Start
	}
	switch strategy {
	case DiscardLater:
		return Discard
	case CoverEarly:
		return Cover
	default:
		return Queue
	}
}
