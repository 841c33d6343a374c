package control

import "time"

// Chain is the first word of a parameter that is a script: what a handler does in each of
// the attempts of a trigger, by a letter each. A name of the trigger is in between.
const Chain = "chain"

// The letters of scripts.
const (
	Well      = 'o'
	Fails     = 'f'
	Later     = 'r' // fails, and says when to try again
	Panics    = 'p'
	Permanent = 'n' // fails, and says that it is of no use to try again
	Snoozes   = 's' // a few times
	Hangs     = 'h' // for HangFor, whatever its context says
	Stuck     = 'z' // for StuckFor, likewise
	Takes     = 't' // TakeFor
	Works     = 'w' // for TakeFor, and fails
	Exits     = 'x' // ends its process
	Halves    = 'i' // fails in every other two seconds of the instants that there are
)

// HangFor is longer than the timeout of the jobs with scripts, StuckFor so much longer that an
// executor abandons the handler, and TakeFor shorter.
const (
	HangFor  = 1600 * time.Millisecond
	StuckFor = 14 * time.Second
	TakeFor  = 300 * time.Millisecond
)

// Poison is in the texts of runs that a database is to refuse.
const Poison = "poisoned"

// AdminFile is the name of the file that says where a node takes the calls of executors.
func AdminFile(node string) string { return node + ".admin" }

// ExitsFile is the name of the file that permits the handlers of a node to end its process.
func ExitsFile(node string) string { return node + ".exits" }
