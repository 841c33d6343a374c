package xxljob

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// Node is one started Scheduler among those that share a store.
type Node struct {
	// ID is Config.Node.
	ID string
	// Incarnation is new with each New, and so with each Start: the ID, a dash and
	// a random suffix. It is the node's address, in the form local://incarnation.
	Incarnation string
	// Beats counts the node's beats. Other nodes watch it change on their own
	// monotonic clocks; no wall clock takes part.
	Beats int64
	// Left is true after a clean Stop, and after another node buried this one.
	Left bool
	// Joined is the store's time of the first beat. Of two incarnations of one
	// ID the later one supersedes the other.
	Joined time.Time
	// Resting is set from the beat on that says that the node takes no more part: it
	// stops, and waits for its handlers. It has no use for shards. One that rests because
	// it is Failing is not meant.
	Resting bool
	// Failing is set while the node says that its claims or starts have failed for a
	// LeaseTTL (SetFailing): it rests, and has no use for shards, as long as a live node
	// is there that neither fails nor stops.
	Failing bool
	// Away reports that the node's connection to the store has ended, with its
	// process perhaps, and that it has not come back: it has no use for shards. A
	// store that cannot tell leaves it false. It is an answer of the store only.
	Away bool
	// Attached are the executors that run inside the node's process.
	Attached []store.Attachment
}

// isRemote reports whether addr is the address of a remote executor.
func isRemote(addr string) bool {
	_, local := store.LocalIncarnation(addr)
	return !local && addr != ""
}

// serves reports whether the node has the app attached, and within it the
// handler.
func (n Node) serves(app, handler string) (hasApp, hasHandler bool) {
	for _, a := range n.Attached {
		if a.App != app {
			continue
		}
		hasApp = true
		for _, h := range a.Handlers {
			if h == handler {
				return true, true
			}
		}
	}
	return hasApp, false
}
