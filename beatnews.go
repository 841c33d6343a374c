package xxljob

// What a beat has brought, and whom it concerns. All of it belongs to the lease loop.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// nodeNews has news of the other nodes reach those whom they concern.
type nodeNews struct {
	*shared
	engine     *engine
	memory     *addressMemory
	desk       *logDesk
	balancer   *balancer
	told       *leaseNews
	superseded bool // another node has this one's name, as it has said in the log
}

// serverNews are about the server process behind the store.
type serverNews struct {
	*shared
	doubts *doubts
	lists  *ownLists
	reload *reloadSet
	last   string // as of the last beat
}

// failingNews are about this node: what the other nodes and the log are to know of whether
// it fails.
type failingNews struct {
	*shared
	fitness *fitness
	rests   bool // this node leaves its shards to others, as it has said in the log
	was     bool // what this node thought of itself at the last beat
}

// noteLook has what a look has shown reach those whom it concerns. It makes no call, so that
// it is done with each look, whatever the node does next.
func (n *nodeNews) noteLook(changed bool, found []store.Shard) {
	if changed {
		n.memory.forget()
	}
	n.balancer.takeUp(found)
	for _, inc := range n.leases.takeDoubts() {
		n.engine.evict(store.LocalAddress(inc))
	}
	n.desk.tell() // a node that was asked may be gone
	n.warnSuperseded()
}

// warnSuperseded says, once, that two nodes have one name.
func (n *nodeNews) warnSuperseded() {
	is := n.leases.isSuperseded()
	if is && !n.superseded {
		n.log.Error("xxljob: another node with the same Config.Node was started later; this one schedules nothing")
	}
	n.superseded = is
}

// noteServer has everything read again that the store may have forgotten, when another
// server has taken the place of the one that acknowledged it.
func (n *serverNews) noteServer(server string) {
	if n.last != "" && server != n.last {
		n.log.Warn("xxljob: the store is now served by another server process; rereading planned runs", "was", n.last, "is", server)
		n.doubts.lookLater()
		n.reload.add(n.leases.owned())
		n.life.wakes.scan.poke()
		n.lists.renewed()
	}
	n.last = server
}

// sayFailing tells the other nodes, where the store has it otherwise, whether this one
// fails, and reports whether it had to.
func (f *failingNews) sayFailing(ctx context.Context, v View, failing bool) (said bool, err error) {
	if rests := f.leases.isResting(); rests != f.rests {
		f.rests = rests
		switch {
		case rests:
			f.log.Error("xxljob: this node is failing and gives up its shards to other nodes", "error", f.fitness.err(rests, 0))
		case failing:
			f.log.Warn("xxljob: this node is still failing but takes shards again, because no other node does better", "error", f.fitness.err(rests, 0))
		default:
			f.log.Info("xxljob: this node has recovered and takes shards again")
		}
	}
	for _, n := range v.Nodes {
		if n.Incarnation == f.leases.incarnation && n.Failing != failing {
			_, err := call(ctx, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, f.store.SetFailing(ctx, f.leases.incarnation, failing)
			})
			if err == nil {
				f.leases.said(failing, time.Now())
			}
			return true, err
		}
	}
	return false, nil
}
