package queue

import (
	"iter"

	"github.com/xxljob/xxljob/internal/loop"
)

// What due runs wait for, and who waits, apps in turn. All of it is guarded by the lock of the Queue.

// WaitKey is what due runs wait for. Where it is room, the first of them goes on when some of it is
// given back.
type WaitKey struct {
	kind         waitKind
	lane         laneName
	jobID, runID int64
	round        int64 // of kindTurnAgain
	most         int   // of kindJobPlace: how many have the place at once, 0 for one
	app, address string
}

type waitKind uint8

const (
	// Room: see isRoom.
	kindPlace   waitKind = iota // a place at an attached executor
	kindAddress                 // a place at an address
	kindApp                     // a place of an app in a lane
	kindLane                    // a place in a lane

	kindJobPlace  // the end of the job's run at an address
	kindProbes    // the answers to probes
	kindRun       // the end of a run that is in the way
	kindEarlier   // an earlier run of a serial job, to be taken by another node
	kindSettling  // what a former owner has left of serial jobs, to be known
	kindAddresses // addresses that can be read again
	kindRegistry  // addresses that a registry of the user's is asked for
	kindRouter    // a node that knows the job's routing strategy
	kindExecutor  // an executor of the app, which has none
	kindTurn      // its turn among starts that are made singly
	kindTurnAgain // the same, where the start had no effect before
	kindDue       // nothing: the due queue
)

// isRoom reports whether at is capacity: when some of it is given back, the first in the waitlist may
// go on.
func (at WaitKey) isRoom() bool { return at.kind <= kindLane }

// hasBound reports whether it is told when due runs wait in a waitlist for long.
func (k waitKind) hasBound() bool {
	switch k {
	case kindPlace, kindJobPlace, kindRun, kindEarlier, kindRouter, kindExecutor: // the last two are troubles of their own
		return false
	}
	return true
}

// lacks are the words for what is waited for in a waitlist.
func (k waitKind) lacks() string {
	switch k {
	case kindPlace:
		return "place"
	case kindAddress:
		return "address"
	case kindApp:
		return "app"
	case kindLane:
		return "lane"
	case kindJobPlace:
		return "serial"
	case kindRun:
		return "run"
	case kindEarlier:
		return "order"
	case kindSettling:
		return "settle"
	case kindProbes:
		return LackProbe
	case kindAddresses, kindRegistry:
		return "addresses"
	case kindRouter:
		return "router"
	case kindExecutor:
		return "executor"
	}
	return LackTurn
}

// DueNow is for those that wait for nothing: they are in the due queue.
func DueNow() WaitKey { return WaitKey{kind: kindDue} }

func (at WaitKey) IsDue() bool { return at.kind == kindDue }

// IsJobPlace reports whether it is a place of a job's run at an address.
func (at WaitKey) IsJobPlace() bool { return at.kind == kindJobPlace }

// ForTurn is for those that are started singly, until their turn.
func ForTurn() WaitKey { return WaitKey{kind: kindTurn} }

// forTurnAgain is for those that were tried before. They have turns in rounds: one that is stuck comes
// again when all others of its round have had theirs.
func forTurnAgain(round int64) WaitKey { return WaitKey{kind: kindTurnAgain, round: round} }

// Next is for those of the next round.
func (at WaitKey) Next() WaitKey { return forTurnAgain(at.round + 1) }

// forEarlier is for the later runs of a serial job.
func forEarlier(jobID int64) WaitKey { return WaitKey{kind: kindEarlier, jobID: jobID} }

// forRun is for those that a run is in the way of, until its end.
func forRun(runID int64) WaitKey { return WaitKey{kind: kindRun, runID: runID} }

// forSettling is for those of which it is not known yet which earlier runs a former owner of the shard has left.
func forSettling() WaitKey { return WaitKey{kind: kindSettling} }

// ForProbes is for the runs of a job whose executors are being asked whether they are there.
func ForProbes(jobID int64) WaitKey { return WaitKey{kind: kindProbes, jobID: jobID} }

// ForRegistry is for the runs of an app of which a registry of the user's is being asked.
func ForRegistry(app string) WaitKey { return WaitKey{kind: kindRegistry, app: app} }

// ForAddresses is for the runs of an app whose addresses could not be read.
func ForAddresses(app string) WaitKey { return WaitKey{kind: kindAddresses, app: app} }

// ForRouter is for the runs of a job whose routing strategy no live node has.
func ForRouter(jobID int64) WaitKey { return WaitKey{kind: kindRouter, jobID: jobID} }

// ForExecutor is for the runs of an app that has no executor.
func ForExecutor(app string) WaitKey { return WaitKey{kind: kindExecutor, app: app} }

// waitlists are the entries that wait for room, by what they wait for; those of a kind that nobody
// waits for cost no look.
type waitlists struct {
	by   [kindDue]map[WaitKey]*fairQueue
	left *WaitKey // of the last one who was let out; it is not changed
	// long is woken when somebody waits for what has a bound, unless that is watched already.
	long    loop.Wake
	watched bool
}

// one returns a copy of at that entries share, since a WaitKey is nine words.
func (l *waitlists) one(at WaitKey) *WaitKey {
	if l.left == nil || *l.left != at {
		l.left = new(WaitKey)
		*l.left = at
	}
	return l.left
}

// at is who waits in a waitlist, nil for nobody.
func (l *waitlists) at(at WaitKey) *fairQueue { return l.by[at.kind][at] }

func (l *waitlists) park(at WaitKey, e *Entry) {
	if !l.watched && at.kind.hasBound() {
		l.watched = true
		l.long.Poke()
	}
	if l.by[at.kind] == nil {
		l.by[at.kind] = map[WaitKey]*fairQueue{}
	}
	t := l.by[at.kind][at]
	if t == nil {
		one := newFairQueue()
		t = &one
		l.by[at.kind][at] = t
	}
	t.push(e)
}

// leave takes the head of a waitlist, nil when nobody waits there.
func (l *waitlists) leave(at WaitKey) *Entry {
	t := l.at(at)
	if t == nil {
		return nil
	}
	e := t.pop()
	if len(t.order) == 0 {
		delete(l.by[at.kind], at)
	}
	return e
}

// take takes an entry out of a waitlist, wherever it is there, and reports whether it was.
func (l *waitlists) take(at WaitKey, e *Entry) bool {
	t := l.at(at)
	if t == nil || !t.remove(e) {
		return false
	}
	if len(t.order) == 0 {
		delete(l.by[at.kind], at)
	}
	return true
}

// head is the earliest of an app in a waitlist, nil when none waits there.
func (l *waitlists) head(at WaitKey, app string) *Entry {
	if t := l.at(at); t != nil && t.apps[app] != nil {
		return t.apps[app].First()
	}
	return nil
}

// len is how many waitlists there are.
func (l *waitlists) len() (n int) {
	for _, kind := range l.by {
		n += len(kind)
	}
	return n
}

// all are the waitlists, and who waits there.
func (l *waitlists) all() iter.Seq2[WaitKey, *fairQueue] {
	return func(yield func(WaitKey, *fairQueue) bool) {
		for _, kind := range l.by {
			for at, t := range kind {
				if !yield(at, t) {
					return
				}
			}
		}
	}
}
