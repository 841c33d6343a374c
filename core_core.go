package xxljob

import (
	"time"

	"github.com/xxljob/xxljob/wire"
)

// Numbers that several parts go by. One that a single part goes by is beside it.
const (
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

// maxPreRead is how far ahead of its time an instant is planned at most, and so
// what a node that takes a shard over has to look for.
const maxPreRead = 55 * time.Second

// doubtLasts is how long after an error a node looks for orphans: far longer than
// a call to the store may be under way.
const doubtLasts = 6 * callTimeout

// watchPoll is how often Wait looks by itself.
const watchPoll = time.Second

// maxProgressText is how much of a progress's text is kept, in bytes: executors of ours keep
// 500 characters.
const maxProgressText = 2 << 10

// boundProgress is what is kept of what an executor says.
func boundProgress(p wire.Progress) (percent int, text string) {
	return min(max(p.Percent, 0), 100), plainText(shorten(p.Text, maxProgressText))
}
