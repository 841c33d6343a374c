package xxljob

// Who is called for a run at an address: an executor of this process, one elsewhere, or nobody
// from here, for it is another node's.

import (
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/store"
)

// callees knows them. It is safe for concurrent use.
type callees struct {
	incarnation string
	attached    *attachedSet
	remotes     *remotes
}

// equip adds what the address needs.
func (c *callees) equip(r *routed, job *Job) {
	inc, local := store.LocalIncarnation(r.address)
	if !local {
		c.equipRemote(r, job)
		return
	}
	r.serial, r.ordered = serialAt(job, r.address), job.Block == block.SerialExecution
	r.places = attachedPlaces
	if inc != c.incarnation {
		return
	}
	exec := c.attached.get(job.App)
	r.places = c.attached.placesOf(job.App)
	if exec != nil {
		r.exec = exec
	}
	if _, ours := exec.(*executor.Executor); !ours {
		r.lane = laneFast // or slow: decided when the place is taken
	}
}

// equipRemote adds what a call over HTTP needs. What waits at a remote executor waits
// in its own queue, so there are no places there.
func (c *callees) equipRemote(r *routed, job *Job) {
	peer, err := c.remotes.get(job.App, r.address)
	if err != nil {
		r.refused = "address " + r.address + ": " + err.Error() // the book leaves out such ones
		return
	}
	r.exec, r.remote, r.lane = peer, true, laneFast
	r.serial, r.ordered = serialAt(job, r.address), job.Block == block.SerialExecution
}
