// Package blockrule says what each block strategy means for whoever schedules, sends or looks at runs:
// one row for each strategy of package block, which all rooms of the engine, the executor and the
// deciders ask. Nobody compares a strategy by its name but for what is here and in package block,
// which decides what becomes of a trigger at an executor that is busy.
package blockrule

import "github.com/xxljob/xxljob/block"

// Rule is what a strategy means. Where one is asked, and what for, stands at each field.
type Rule struct {
	// KeepsOrder: the runs of a job are in order, over all nodes. None is started before the earlier
	// ones are taken (room queue, order.go) or, where they are to be tried again, have been
	// (Start.AfterRetries). At an attached executor a run has the job's place at the address until
	// it has ended, and the next one stays planned in the store (queue.JobPlaceAt).
	KeepsOrder bool
	// SentInOrder: the triggers of a job reach an executor one after the other, in the order in which
	// the runs became due. At an executor elsewhere, and at one of the user's, a run has the job's place
	// at the address until its trigger is answered; and none is started before it is known which
	// earlier runs a former owner of the shard has left (Queue.InTurn).
	SentInOrder bool
	// SideBySide: several runs of a job may be under way at one executor, as many as
	// Job.MaxPerExecutor says, which no other strategy may have. An attached executor has as many
	// places for the job.
	SideBySide bool
	// Covers: a later run takes the place of earlier ones. Of several that are due at one address the
	// latest is started (queue/covers.go).
	Covers bool
	// Waits: what comes to a busy executor waits there, and is neither refused nor takes the place of
	// others. Where it does not, the executor has to know which run is the later one, so it is told when
	// each was due (wire.TriggerRequest.DueAt), and no two parts of a broadcast may meet at an address
	// (room router, choosePart).
	Waits bool
}

// Of returns what a strategy means. One that is not known, a newer release's, is treated as serial
// execution, as [block.Decide] does: its runs are delayed at worst, and not lost.
func Of(strategy string) Rule {
	switch strategy {
	case block.DiscardLater:
		return Rule{SentInOrder: true}
	case block.CoverEarly:
		return Rule{SentInOrder: true, Covers: true}
	case block.Concurrent:
		return Rule{SideBySide: true, Waits: true}
	default: // block.SerialExecution
		return Rule{KeepsOrder: true, SentInOrder: true, Waits: true}
	}
}

// OneByOne reports whether an executor runs a job's runs one after the other, and others queue: those of
// a strategy, and the most that may be side by side, 0 for any number.
func OneByOne(strategy string, most int) bool {
	r := Of(strategy)
	return r.KeepsOrder || r.SideBySide && most == 1
}
