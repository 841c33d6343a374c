package xxljob

import "time"

// Numbers that several parts go by. One that a single part goes by is beside it.
const (
	// callTimeout bounds a single call of a loop to the store.
	callTimeout = 5 * time.Second
	// storeBatch is how many runs one call of the store is about at most: starts, results,
	// verdicts, and runs that are read by id.
	storeBatch = 1000
	// scanRuns is how many planned runs one scan, or one page of a reload, reads.
	scanRuns = 5000
	// lockedRetry is the pause before rows that others had locked are tried again.
	lockedRetry = 10 * time.Millisecond
	// maxAnswer bounds what is kept of an executor's answer, in bytes.
	maxAnswer = 2000
	// maxStartMsg bounds what is recorded of a start, in bytes: routers of users and
	// long lists of probes may have much to say.
	maxStartMsg = 16 << 10
	// logBytes bounds the lines of a run's log in one answer, and one line of it.
	logBytes = 1 << 20
	// maxLead is how long before its time a run may be marked started, to make up
	// for the store's round trip. It is sent at its time, never before.
	maxLead = 20 * time.Millisecond
	// attachedPlaces is how many runs one app may have under way at one attached
	// executor, where the executor does not say (Places), or is another node's.
	attachedPlaces = 1000
	// lastWords is how long Stop goes on after its ctx has ended, for the results of the
	// handlers that it then cancels.
	lastWords = 2 * time.Second
)
