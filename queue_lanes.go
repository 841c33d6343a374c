package xxljob

import (
	"iter"
	"slices"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/store"
)

// The bounds on what is under way: lanes, bulkheads and places. All of it is
// guarded by the engine's mutex.

// laneName tells the two lanes apart. laneNone is for runs that need no lane:
// their trigger is a call that only enqueues, or a row that another node finds.
type laneName uint8

const (
	laneNone laneName = iota
	laneFast
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
		limit:   [3]int{laneFast: fast, laneSlow: slow},
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
func (b *lanes) fits(l laneName, k addressKey, places int) (lot, bool) {
	switch {
	case places > 0 && b.running[k] >= places:
		return lot{kind: lotRunning, app: k.app, address: k.address}, false
	case l == laneNone:
		return lot{}, true
	case b.address[addressLane{k, l}] >= b.addressLimit(l):
		return lot{kind: lotAddress, lane: l, app: k.app, address: k.address}, false
	case b.apps[appLane{k.app, l}] >= b.appLimit(l):
		return lot{kind: lotApp, app: k.app, lane: l}, false
	case b.used[l] >= b.limit[l]:
		return lot{kind: lotLane, lane: l}, false
	}
	return lot{}, true
}

// isRoom reports whether what is waited for in a lot is room, of which one lets in the next.
func (at lot) isRoom() bool { return at.kind <= lotLane }

// keep takes the room that is waited for in a lot, and giveUp gives it back.
func (b *lanes) keep(at lot) {
	key := addressKey{at.app, at.address}
	switch at.kind {
	case lotRunning:
		b.running[key]++
	case lotAddress:
		b.address[addressLane{key, at.lane}]++
	case lotApp:
		b.apps[appLane{at.app, at.lane}]++
	case lotLane:
		b.used[at.lane]++
	}
}

func (b *lanes) giveUp(at lot) {
	key := addressKey{at.app, at.address}
	switch at.kind {
	case lotRunning:
		drop(b.running, key)
	case lotAddress:
		drop(b.address, addressLane{key, at.lane})
	case lotApp:
		drop(b.apps, appLane{at.app, at.lane})
	case lotLane:
		b.used[at.lane]--
	}
}

// isRoomOf reports whether the room that is waited for in a lot is among the places of a
// trigger.
func (at lot) isRoomOf(l laneName, k addressKey, places int) bool {
	here := at.app == k.app && at.address == k.address
	switch at.kind {
	case lotRunning:
		return here && places > 0
	case lotAddress:
		return here && at.lane == l
	case lotApp:
		return at.app == k.app && at.lane == l
	case lotLane:
		return at.lane == l
	}
	return false
}

// enter takes the places of a trigger; places is as for fits.
func (b *lanes) enter(l laneName, k addressKey, places int) {
	if places > 0 {
		b.running[k]++
	}
	if l != laneNone {
		b.used[l]++
		b.apps[appLane{k.app, l}]++
		b.address[addressLane{k, l}]++
	}
}

// answered gives back what a trigger held in its lane, and appends the lots that
// may go on, three at most.
func (b *lanes) answered(dst []lot, l laneName, k addressKey) []lot {
	if l == laneNone {
		return dst
	}
	b.used[l]--
	drop(b.apps, appLane{k.app, l})
	drop(b.address, addressLane{k, l})
	return append(dst,
		lot{kind: lotAddress, lane: l, app: k.app, address: k.address},
		lot{kind: lotApp, app: k.app, lane: l},
		lot{kind: lotLane, lane: l},
	)
}

// ended gives back the place of a run at an attached executor.
func (b *lanes) ended(k addressKey) lot {
	drop(b.running, k)
	return lot{kind: lotRunning, app: k.app, address: k.address}
}

// leave frees a place at an attached executor while the result of its run is stored, unless as many
// runs as there are places have left theirs already: what the store is slow to take stays bounded.
func (b *lanes) leave(k addressKey, places int) (lot, bool) {
	if b.storing[k] >= places {
		return lot{}, false
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

// lot is a place where due runs wait for room of one kind. Its head goes on when
// a place of that kind is given back.
type lot struct {
	kind         lotKind
	lane         laneName
	jobID, runID int64
	round        int64 // of lotAgain
	most         int   // of lotSerial: how many have the place at once, 0 for one
	app, address string
}

type lotKind uint8

const (
	// Room: see isRoom.
	lotRunning lotKind = iota // a place at an attached executor
	lotAddress                // a place at an address
	lotApp                    // a place of an app in a lane
	lotLane                   // a place in a lane

	lotSerial // the end of the job's run at an address
	lotProbe  // the answers to probes
	lotRun    // the end of a run that is in the way
	lotOrder  // an earlier run of a serial job, to be taken by another node
	lotSettle // what a former owner has left of serial jobs, to be known
	lotRoute  // addresses that can be read again
	lotAsk    // addresses that a registry of the user's is asked for
	lotApart  // its turn among starts that go apart
	lotAgain  // the same, where the start had no effect before
	lotDue    // nothing: the due queue
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

// lotAgainOf is where those wait that were tried before. They have turns in rounds: one that
// is stuck comes again when all others of its round have had theirs.
func lotAgainOf(round int64) lot { return lot{kind: lotAgain, round: round} }

// next is the lot of the next round.
func (l lot) next() lot { return lotAgainOf(l.round + 1) }

// lotOrderOf is where the later runs of a job wait.
func lotOrderOf(jobID int64) lot { return lot{kind: lotOrder, jobID: jobID} }

func askLot(app string) lot { return lot{kind: lotAsk, app: app} }

func errorLot(app string) lot { return lot{kind: lotRoute, app: app} }

// serialAt is the place of a serial job's run at an address: at an attached executor
// until the run ends, at a remote one, which has a queue of its own, until it has
// answered the trigger. Of a concurrent job with a maximum several have that place at an
// attached executor, so that the others wait in the store.
func serialAt(job *store.Job, address string) lot {
	switch {
	case job.Block == block.SerialExecution:
		return lot{kind: lotSerial, jobID: job.ID, address: address}
	case job.Block == block.Concurrent && job.MaxPerExecutor > 0 && !store.IsRemote(address):
		return lot{kind: lotSerial, jobID: job.ID, address: address, most: job.MaxPerExecutor}
	}
	return lot{}
}

// Runs of concurrent jobs with a maximum: which of them are at an attached executor, or about
// to be. It is guarded by the engine's mutex.

// beside has the runs by their place.
type beside map[lot]map[int64]struct{}

// add gives a run its place, unless as many others have it as may.
func (b beside) add(at lot, runID int64) bool {
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
func (b beside) drop(at lot, runID int64) bool {
	if _, has := b[at][runID]; !has {
		return false
	}
	if delete(b[at], runID); len(b[at]) == 0 {
		delete(b, at)
	}
	return true
}

// Who has the place of a serial job's run at an address.

// serialPlaces are the runs that are at addresses, or about to be, for serial jobs, by job: most
// have one place at most. Lots with a maximum are in beside.
type serialPlaces map[int64]placesOfJob

// placesOfJob are the places of one job that are taken. The first is apart, so that one alone
// takes no memory of its own.
type placesOfJob struct {
	first serialPlace
	rest  []serialPlace
}

// serialPlace is one of them. Its part is the runID of its lot.
type serialPlace struct {
	address     string
	part, runID int64
}

func (p *serialPlace) isAt(at lot) bool { return p.part == at.runID && p.address == at.address }

// at is the run that has a place, 0 where it is free.
func (s serialPlaces) at(at lot) int64 {
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
func (s serialPlaces) take(at lot, runID int64) {
	places, any := s[at.jobID]
	switch i := slices.IndexFunc(places.rest, func(p serialPlace) bool { return p.isAt(at) }); {
	case !any || places.first.isAt(at):
		places.first = serialPlace{at.address, at.runID, runID}
	case i >= 0:
		places.rest[i].runID = runID
		return
	default:
		places.rest = append(places.rest, serialPlace{at.address, at.runID, runID})
	}
	s[at.jobID] = places
}

// free gives a place back.
func (s serialPlaces) free(at lot) {
	places, any := s[at.jobID]
	last := len(places.rest) - 1
	switch {
	case !any:
		return
	case !places.first.isAt(at):
		places.rest = slices.DeleteFunc(places.rest, func(p serialPlace) bool { return p.isAt(at) })
	case last < 0:
		delete(s, at.jobID)
		return
	default:
		places.first, places.rest = places.rest[last], places.rest[:last]
	}
	s[at.jobID] = places
}

// all are the places that are taken, and by whom.
func (s serialPlaces) all() iter.Seq2[lot, int64] {
	return func(yield func(lot, int64) bool) {
		for jobID, places := range s {
			for _, p := range append([]serialPlace{places.first}, places.rest...) {
				if !yield(lot{kind: lotSerial, jobID: jobID, runID: p.part, address: p.address}, p.runID) {
					return
				}
			}
		}
	}
}
