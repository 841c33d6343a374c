package store

import (
	"slices"
	"strings"
	"time"
)

// localScheme begins the address of an attached executor.
const localScheme = "local://"

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
	// Zones is true where the node has data of time zones, and Knows counts what its release knows
	// of schedules, as Join was told; false and 0 of a node that has not said so.
	Zones bool
	Knows int
	// UnknownZones are zones that the node has met in jobs and has no data of, whether it has data of
	// others or not (ZoneNoter). Join says none.
	UnknownZones []string
	// Routers are the names of the node's own routing strategies (Config.Routers), in order, but for
	// those of XXL-JOB, which each node has. Join was told them; a node that has not said so has none.
	Routers []string
	// Version is the release of the node's program, and ClockOffset how far the store's clock is ahead
	// of its own, at least and to the millisecond, as it has seen and said last (ProcessNoter); empty and
	// zero of a node that has said neither. Join says none.
	Version     string
	ClockOffset time.Duration
	// Attached are the executors that run inside the node's process.
	Attached []Attachment
}

// CanMore reports whether a node can work out what another one cannot for a cause: a job in a zone
// that the other has met, or with a schedule of a newer release.
func (n *Node) CanMore(than *Node, cause TroubleCause) bool {
	switch cause {
	case TroubleUnknownZone:
		return n.Zones && (!than.Zones || slices.ContainsFunc(than.UnknownZones, func(zone string) bool { return !slices.Contains(n.UnknownZones, zone) }))
	case TroubleUnknownSchedule:
		return n.Knows > than.Knows
	}
	return false
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

// LocalAddress is the address of the executors attached to an incarnation.
func LocalAddress(incarnation string) string { return localScheme + incarnation }

// LocalIncarnation returns the incarnation in the address of an attached
// executor; ok is false for every other address.
func LocalIncarnation(addr string) (incarnation string, ok bool) {
	return strings.CutPrefix(addr, localScheme)
}

// IsRemote reports whether addr is the address of a remote executor.
func IsRemote(addr string) bool {
	_, local := LocalIncarnation(addr)
	return !local && addr != ""
}

// NodeOf returns the ID of the node of which the incarnation is one: what stands before the
// last hyphen, behind which schedulers have a random text.
func NodeOf(incarnation string) string {
	return incarnation[:max(strings.LastIndexByte(incarnation, '-'), 0)]
}
