package xxljob

import (
	"strings"
	"time"
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
	Attached []Attachment
}

// Attachment is an executor that runs inside a node's process.
type Attachment struct {
	App      string
	Handlers []string
}

// Shard is a fixed part of all jobs, scheduled by one node at a time.
type Shard struct {
	// ID counts from 0 to Config.Cluster.Shards-1.
	ID int
	// Owner is the incarnation that schedules the shard's jobs; empty when
	// nobody does.
	Owner string
	// Epoch is raised by each take-over. Every write of the loop compares it, so
	// that a former owner writes nothing.
	Epoch int64
	// Free reports that a challenger may take the shard now: it has no owner, or
	// the owner's lock is free. A store that has locks lets a free shard be if another
	// process was quicker to lock it; one that is given without Free is taken whoever
	// holds its lock, as that process is taken for silent.
	Free bool
}

// localScheme begins the address of an attached executor.
const localScheme = "local://"

// LocalAddress is the address of the executors attached to an incarnation.
func LocalAddress(incarnation string) string { return localScheme + incarnation }

// LocalIncarnation returns the incarnation in the address of an attached
// executor; ok is false for every other address.
func LocalIncarnation(addr string) (incarnation string, ok bool) {
	return strings.CutPrefix(addr, localScheme)
}

// isRemote reports whether addr is the address of a remote executor.
func isRemote(addr string) bool {
	_, local := LocalIncarnation(addr)
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
