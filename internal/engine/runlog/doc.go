// Package runlog is about the lines that runs write: the way out of this process, and whom to
// ask for them.
//
// # Where lines are
//
// Logs stay with the executors that ran the runs. Nothing but the lines that somebody asked for
// goes through the store, unless Config.Logs says more: then lines of executors of this process
// are also gathered here and written to the store or to a sink of the user's. docs/Reader.md has
// the whole of it for users.
//
// # Writing
//
// A handler's line goes into logBook, which is bounded in bytes. Writer writes it: once a
// second, in full batches sooner, and at the end of a run before its result (Apart, Settle), so
// that whoever sees the result finds the lines. It is one loop, with one call at a time, and a
// batch is tried again until it is taken.
//
// Where there is no room, handlers wait, and results wait for their lines, for as long as
// something is written every two seconds (logPatient). After that lines are dropped, which the
// log says, and results go without. Dropping at once would lose lines of a burst, and waiting
// for ever would let a store that is away stop all handlers.
//
// A run of which nothing was logged has no log here: core.StartLog, in room core, opens one with the
// first line, so that handlers which do not log cost nothing. What the lines of one run may
// take is bounded, and so is what those of a job may take in the store; a log that was cut says
// so.
//
// # Reading
//
// logs reads lines wherever the run was sent: from an executor of this process, from a remote
// one, or from another node. A question to another node is a row that the asked node finds in
// its inbox and answers by a compare-and-set; the store drops it after a minute. A node answers
// four questions at once for an app, so that an executor that hangs keeps no other app from
// being asked (Desk, calls). Where the store or the sink has the lines, they are read
// there (logSource). An answer is within LogBytes, whatever the executor says, and an
// ErrNoLog says in the reader's language why there is no log.
//
// Lines of a remote executor bring with them how far the run is; that goes to the progress of
// room dispatch.
//
// # Stop
//
// What is left of lines is written after the loops have ended, for two seconds (last). A sink
// that hangs is left behind.
//
// # Locks and goroutines
//
// logBook.mu is a leaf, and so is Desk.mu; runLog.writing is held while one record is
// written, so that its lines stay together. The log loop exists where Config.Logs names
// something. Answers to questions have goroutines of stage work; a call that ignores its
// context is left behind, and holds its place until the executor answers.
package runlog
