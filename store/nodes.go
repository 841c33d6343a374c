package store

import "strings"

// localScheme begins the address of an attached executor.
const localScheme = "local://"

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
