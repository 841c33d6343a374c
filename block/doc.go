// Package block decides what becomes of a trigger whose job is still busy on
// the executor it reached, by XXL-JOB's block strategies under their stored
// names.
//
//	SERIAL_EXECUTION  it waits for its turn
//	DISCARD_LATER     it is refused
//	COVER_EARLY       it takes the place of what runs and of what waits
//	CONCURRENT        it runs beside the others, up to a number; ours
//
// Which run is the later one goes by when they became due, and then by their ids. Who does not know
// when a run became due goes by which has come first.
//
// A strategy works per job and per executor, as in XXL-JOB: an executor knows
// nothing of what its job does elsewhere. The package only decides; who calls
// [Decide] queues, refuses and stops. That is an executor, when a trigger has reached it
// (executor/accept.go). What a strategy means before that, for whoever plans, orders and sends runs,
// is one table, package internal/blockrule: whether the order of a job's runs is kept, whether its
// triggers are sent one after the other, whether runs may be side by side, whether a later one covers
// those that wait.
package block
