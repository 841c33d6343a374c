package queue

import (
	"iter"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/store"
)

// The bounds on what is under way: lanes, bulkheads and places. All of it is
// guarded by the lock of the Queue.

// laneName tells the two lanes apart. LaneNone is for runs that need no lane:
// their trigger is a call that only enqueues, or a row that another node finds.
type laneName uint8

const (
	LaneNone laneName = iota
	LaneFast
	laneSlow
)

// addressKey is a bulkhead: an app at an address. One address may serve several
// apps, and one that hangs must not take the others with it.
type addressKey struct{ app, address string }

// lanes count what is under way. A trigger holds a place in its lane, of its
// app and at its address until the executor has answered; a run at an attached
// executor holds a place at the address until it has ended.
type lanes struct {
	limit   [3]int // by lane
	used    [3]int
	apps    map[appLane]int
	address map[addressLane]int
	running map[addressKey]int
	// storing are the runs whose handlers have returned, and that have left their places, while
	// their results are stored: as many as there are places at most.
	storing map[addressKey]int
}

type appLane struct {
	app  string
	lane laneName
}

// addressLane is a bulkhead in one lane: slow jobs do not keep the ordinary ones
// of their address waiting.
type addressLane struct {
	addressKey
	lane laneName
}

func newLanes(fast, slow int) lanes {
	return lanes{
		limit:   [3]int{LaneFast: fast, laneSlow: slow},
		apps:    map[appLane]int{},
		address: map[addressLane]int{},
		running: map[addressKey]int{},
		storing: map[addressKey]int{},
	}
}

// One app may hold half of a lane and one address of it a quarter, so that an
// app that hangs, or a few addresses that do, leave room for the others.
func (b *lanes) appLimit(l laneName) int     { return max(1, b.limit[l]/2) }
func (b *lanes) addressLimit(l laneName) int { return max(1, b.limit[l]/4) }

// fits says whether there is room for a trigger, and if not, what to wait for.
func (b *lanes) fits(l laneName, k addressKey, places int) (WaitKey, bool) {
	switch {
	case places > 0 && b.running[k] >= places:
		return WaitKey{kind: kindPlace, app: k.app, address: k.address}, false
	case l == LaneNone:
		return WaitKey{}, true
	case b.address[addressLane{k, l}] >= b.addressLimit(l):
		return WaitKey{kind: kindAddress, lane: l, app: k.app, address: k.address}, false
	case b.apps[appLane{k.app, l}] >= b.appLimit(l):
		return WaitKey{kind: kindApp, app: k.app, lane: l}, false
	case b.used[l] >= b.limit[l]:
		return WaitKey{kind: kindLane, lane: l}, false
	}
	return WaitKey{}, true
}

// isRoom reports whether at is capacity: when some of it is given back, the first in the waitlist may
// go on.
func (at WaitKey) isRoom() bool { return at.kind <= kindLane }

// reserve takes the room that is waited for in a waitlist, and unreserve gives it back.
func (b *lanes) reserve(at WaitKey) {
	key := addressKey{at.app, at.address}
	switch at.kind {
	case kindPlace:
		b.running[key]++
	case kindAddress:
		b.address[addressLane{key, at.lane}]++
	case kindApp:
		b.apps[appLane{at.app, at.lane}]++
	case kindLane:
		b.used[at.lane]++
	}
}

func (b *lanes) unreserve(at WaitKey) {
	key := addressKey{at.app, at.address}
	switch at.kind {
	case kindPlace:
		drop(b.running, key)
	case kindAddress:
		drop(b.address, addressLane{key, at.lane})
	case kindApp:
		drop(b.apps, appLane{at.app, at.lane})
	case kindLane:
		b.used[at.lane]--
	}
}

// isRoomOf reports whether the room that is waited for in a waitlist is among the places of a
// trigger.
func (at WaitKey) isRoomOf(l laneName, k addressKey, places int) bool {
	here := at.app == k.app && at.address == k.address
	switch at.kind {
	case kindPlace:
		return here && places > 0
	case kindAddress:
		return here && at.lane == l
	case kindApp:
		return at.app == k.app && at.lane == l
	case kindLane:
		return at.lane == l
	}
	return false
}

// enter takes the places of a trigger; places is as for fits.
func (b *lanes) enter(l laneName, k addressKey, places int) {
	if places > 0 {
		b.running[k]++
	}
	if l != LaneNone {
		b.used[l]++
		b.apps[appLane{k.app, l}]++
		b.address[addressLane{k, l}]++
	}
}

// answered gives back what a trigger held in its lane, and appends the waitlists that
// may go on, three at most.
func (b *lanes) answered(dst []WaitKey, l laneName, k addressKey) []WaitKey {
	if l == LaneNone {
		return dst
	}
	b.used[l]--
	drop(b.apps, appLane{k.app, l})
	drop(b.address, addressLane{k, l})
	return append(dst,
		WaitKey{kind: kindAddress, lane: l, app: k.app, address: k.address},
		WaitKey{kind: kindApp, app: k.app, lane: l},
		WaitKey{kind: kindLane, lane: l},
	)
}

// ended gives back the place of a run at an attached executor.
func (b *lanes) ended(k addressKey) WaitKey {
	drop(b.running, k)
	return WaitKey{kind: kindPlace, app: k.app, address: k.address}
}

// leave frees a place at an attached executor while the result of its run is stored, unless as many
// runs as there are places have left theirs already: what the store is slow to take stays bounded.
func (b *lanes) leave(k addressKey, places int) (WaitKey, bool) {
	if b.storing[k] >= places {
		return WaitKey{}, false
	}
	b.storing[k]++
	return b.ended(k), true
}

// stored is called when the end of a run that has left its place is known.
func (b *lanes) stored(k addressKey) { drop(b.storing, k) }

// drop lowers a count and forgets it at zero.
func drop[K comparable](m map[K]int, k K) {
	if m[k]--; m[k] <= 0 {
		delete(m, k)
	}
}

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
	kindOrder     // an earlier run of a serial job, to be taken by another node
	kindSettling  // what a former owner has left of serial jobs, to be known
	kindAddresses // addresses that can be read again
	kindRegistry  // addresses that a registry of the user's is asked for
	kindRouter    // a node that knows the job's routing strategy
	kindExecutor  // an executor of the app, which has none
	kindTurn      // its turn among starts that are made singly
	kindTurnAgain // the same, where the start had no effect before
	kindDue       // nothing: the due queue
)

// slowness counts a job's slow triggers by the minute (XXL-JOB: more than ten
// of over 500 ms in one minute).
type slowness struct {
	minute int64
	count  int
}

func (s *slowness) add(now time.Time) {
	if m := now.Unix() / 60; m != s.minute {
		s.minute, s.count = m, 0
	}
	s.count++
}

func (s *slowness) slow(now time.Time, most int) bool {
	return s.minute == now.Unix()/60 && s.count > most
}

// DueNow is for those that wait for nothing: they are in the due queue.
func DueNow() WaitKey { return WaitKey{kind: kindDue} }

func (k WaitKey) IsDue() bool { return k.kind == kindDue }

// IsJobPlace reports whether it is a place of a job's run at an address.
func (k WaitKey) IsJobPlace() bool { return k.kind == kindJobPlace }

// ForTurn is for those that are started singly, until their turn.
func ForTurn() WaitKey { return WaitKey{kind: kindTurn} }

// forTurnAgain is for those that were tried before. They have turns in rounds: one that is stuck comes
// again when all others of its round have had theirs.
func forTurnAgain(round int64) WaitKey { return WaitKey{kind: kindTurnAgain, round: round} }

// Next is for those of the next round.
func (k WaitKey) Next() WaitKey { return forTurnAgain(k.round + 1) }

// ForEarlier is for the later runs of a serial job.
func ForEarlier(jobID int64) WaitKey { return WaitKey{kind: kindOrder, jobID: jobID} }

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

// JobPlaceAt is the place of a job's run at an address. At a remote one a run has it until its
// trigger was answered, so that the triggers of a job arrive in order; how a job is blocked there
// is the executor's to decide. At an attached one it has it until it ends, where the job is a
// serial one. Of a concurrent job with a maximum several have that place at an attached executor,
// so that the others wait in the store; a concurrent job has no order.
func JobPlaceAt(job *store.Job, address string) WaitKey {
	remote, rule := store.IsRemote(address), blockrule.Of(job.Block)
	switch {
	case rule.KeepsOrder, remote && rule.SentInOrder:
		return AnswerAt(job, address)
	case rule.SideBySide && job.MaxPerExecutor > 0 && !remote:
		return WaitKey{kind: kindJobPlace, jobID: job.ID, address: address, most: job.MaxPerExecutor}
	}
	return WaitKey{}
}

// PartAt is the place of the parts of one trigger that wait at an address.
func PartAt(job *store.Job, triggerID int64, address string) WaitKey {
	return WaitKey{kind: kindJobPlace, jobID: job.ID, runID: triggerID, address: address}
}

// AnswerAt is the place of a run at an address for the one that is called there.
func AnswerAt(job *store.Job, address string) WaitKey {
	return WaitKey{kind: kindJobPlace, jobID: job.ID, address: address}
}

// AwaitsAnswer reports whether a run has its place at the address until its trigger was answered,
// and not until it ends.
func (r *Destination) AwaitsAnswer() bool {
	return r.JobPlace.kind == kindJobPlace && r.JobPlace.most == 0 && r.JobPlace.runID == 0 && (r.Remote || !r.Ordered)
}

// Runs of concurrent jobs with a maximum: which of them are at an attached executor, or about
// to be. It is guarded by the lock of the Queue.

// concurrentSlots has the runs by their place.
type concurrentSlots map[WaitKey]map[int64]struct{}

// add gives a run its place, unless as many others have it as may.
func (b concurrentSlots) add(at WaitKey, runID int64) bool {
	runs := b[at]
	if _, has := runs[runID]; has {
		return true
	}
	if len(runs) >= at.most {
		return false
	}
	if runs == nil {
		runs = map[int64]struct{}{}
		b[at] = runs
	}
	runs[runID] = struct{}{}
	return true
}

// drop takes it away, and reports whether the run had it.
func (b concurrentSlots) drop(at WaitKey, runID int64) bool {
	if _, has := b[at][runID]; !has {
		return false
	}
	if delete(b[at], runID); len(b[at]) == 0 {
		delete(b, at)
	}
	return true
}

// Who has the place of a serial job's run at an address.

// serialSlots are the runs that are at addresses, or about to be, for serial jobs, by job: most
// have one place at most. Waitlists with a maximum are in concurrentSlots.
type serialSlots map[int64]slotsOfJob

// slotsOfJob are the places of one job that are taken. The first is apart, so that one alone
// takes no memory of its own.
type slotsOfJob struct {
	first serialSlot
	rest  []serialSlot
}

// serialSlot is one of them. Its part is the RunID of its WaitKey.
type serialSlot struct {
	address     string
	part, runID int64
}

func (p *serialSlot) isAt(at WaitKey) bool { return p.part == at.runID && p.address == at.address }

// at is the run that has a place, 0 where it is free.
func (s serialSlots) at(at WaitKey) int64 {
	places, any := s[at.jobID]
	switch {
	case !any:
		return 0
	case places.first.isAt(at):
		return places.first.runID
	}
	for i := range places.rest {
		if places.rest[i].isAt(at) {
			return places.rest[i].runID
		}
	}
	return 0
}

// take gives a place to a run, whoever has it.
func (s serialSlots) take(at WaitKey, runID int64) {
	places, any := s[at.jobID]
	switch i := slices.IndexFunc(places.rest, func(p serialSlot) bool { return p.isAt(at) }); {
	case !any || places.first.isAt(at):
		places.first = serialSlot{at.address, at.runID, runID}
	case i >= 0:
		places.rest[i].runID = runID
		return
	default:
		places.rest = append(places.rest, serialSlot{at.address, at.runID, runID})
	}
	s[at.jobID] = places
}

// free gives a place back.
func (s serialSlots) free(at WaitKey) {
	places, any := s[at.jobID]
	last := len(places.rest) - 1
	switch {
	case !any:
		return
	case !places.first.isAt(at):
		places.rest = slices.DeleteFunc(places.rest, func(p serialSlot) bool { return p.isAt(at) })
	case last < 0:
		delete(s, at.jobID)
		return
	default:
		places.first, places.rest = places.rest[last], places.rest[:last]
	}
	s[at.jobID] = places
}

// all are the places that are taken, and by whom.
func (s serialSlots) all() iter.Seq2[WaitKey, int64] {
	return func(yield func(WaitKey, int64) bool) {
		for jobID, places := range s {
			for _, p := range append([]serialSlot{places.first}, places.rest...) {
				if !yield(WaitKey{kind: kindJobPlace, jobID: jobID, runID: p.part, address: p.address}, p.runID) {
					return
				}
			}
		}
	}
}
