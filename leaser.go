package xxljob

// The lease loop: what it has.

// leaser keeps this node's lease, and its part of the shards. It belongs to the lease loop.
type leaser struct {
	*shared
	doubts  *doubts
	lists   *ownLists
	nodes   *nodeNews
	server  *serverNews
	failing *failingNews
	tender  *tender
}
