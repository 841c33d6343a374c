// Package audit judges what a cluster of schedulers did while faults were
// injected. It shares no code with the scheduler and imports none of it: it works
// out by itself when each job was due, by plain arithmetic, and matches that with
// what the handlers wrote down themselves.
//
// In: the events of all node processes, the supervisor's journal of operations and
// faults, what sinks have accepted, the rows of the tables of runs, of what is owed
// and of alarms, and the lines of logs. Out: a Report, in the words of the design:
//
//   - lost: a due instant with neither a handler start, nor an interrupted run, nor
//     a permitted skip; a success without one of its children, a window without run
//     and record, a failure without an alarm, an alarm or a trouble that a sink was not told of;
//   - double: two starts of one run, or two schedule-born runs of one (instant,
//     shard); two children of one success, two runs for a window, two rows of one alarm;
//   - early: a start before its instant, or before the end of what leads to it;
//   - unfinished: a run that is still planned or under way when all is over, a child
//     that is still owed, a window that is open, an alarm that is not done with;
//   - not logged: a line of a run's log that is not in the database, though its process
//     lived on for two seconds in which that answered.
//
// Instants between call and return of a concurrent edit, stop or removal may or
// may not fire.
//
// All times are integers: instants are milliseconds since 1970, moments are
// microseconds. Both come from the machine's clock, which database and nodes
// share.
package audit
