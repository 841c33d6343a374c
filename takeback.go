package xxljob

// Runs that could not be started, for they are planned no more.

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// takesBack takes up starts that took effect although this node did not hear of it. It
// belongs to the start loop.
type takesBack struct {
	*shared
	engine   *engine
	inDoubt  *inDoubt
	receiver *receiver
	watcher  *watcher
}

// takeBack acts on a run that could not be started because it is planned no
// more. Where an earlier start of this node took effect behind its back, it is
// this node's to run.
func (t *takesBack) takeBack(r Run, job *Job, began time.Time) {
	switch {
	case r.State.Ended():
		t.engine.waiters.notify(&r)
	case r.State != StateStarted || r.Owner != t.leases.incarnation || t.engine.under.flight(r.ID) != nil:
	case r.Address == store.LocalAddress(t.leases.incarnation), isRemote(r.Address) && !t.inDoubt.list.has(r.ID) && !t.engine.under.hasLanded(r):
		t.life.mishaps.adopted.Add(1)
		t.receiver.receiveOne(r, job, began)
	case isRemote(r.Address):
	default:
		t.engine.adopt(r)
		t.watcher.goneAway(r)
	}
}
