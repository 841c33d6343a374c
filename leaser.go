package xxljob

// The lease loop: what it has.

// leaser keeps this node's lease, and its part of the shards. It belongs to the lease loop.
type leaser struct {
	*shared
	engine   *engine
	fitness  *fitness
	attacher *attacher
	book     *addressBook
	desk     *logDesk
	lists    *ownLists
	doubts   *doubts
	settler  *settler
	reload   *reloadSet
	unswept  reloadSet // shards whose waiting jobs have to be mended yet

	server     string // the store's, as of the last beat
	superseded bool   // another node has this one's name
	rests      bool   // this node leaves its shards to others, as it has said in the log
	failing    bool   // what this node thought of itself at the last beat
	tended     int    // how many duties it has done beside its beats
	outrun     bool   // others were quicker to take shards, the last time
}
