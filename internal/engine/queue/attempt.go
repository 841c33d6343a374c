package queue

import (
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/store"
)

// What an entry goes through on its way to be started, and back again where a start has
// come to nothing.

// Pop takes up to n entries from a waitlist whose jobs are known, and names the jobs that have
// to be read first; their entries stay there. It uses the memory of batch, which is empty.
func (e *Queue) Pop(from WaitKey, n int, batch []Attempt) (_ []Attempt, unknown []int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var later []*Item
	var asked map[int64]bool
	for len(batch) < n && len(asked) < n {
		en := e.Room.leave(from)
		if en == nil {
			break
		}
		if !en.held {
			e.release(en) // forgotten meanwhile, by shed
			continue
		}
		ref := en.Ref
		if ref.gone {
			e.release(en)
			continue
		}
		if ref.stale {
			if asked == nil {
				asked = map[int64]bool{}
			}
			if !asked[en.Run.JobID] {
				asked[en.Run.JobID] = true
				unknown = append(unknown, en.Run.JobID)
			}
			later = append(later, en)
			continue
		}
		batch = append(batch, Attempt{Item: en, Job: ref.job})
		for _, other := range e.apart(en) {
			batch = append(batch, Attempt{Item: other, Job: ref.job})
		}
	}
	for _, en := range later {
		e.Room.comeBack(from, en)
	}
	return batch, unknown
}

// Undo gives back the places of attempts, and has their entries tried again.
func (e *Queue) Undo(batch []Attempt) {
	for _, a := range batch {
		e.TryAgain(a, false)
	}
}

// TryAgain has an entry tried again after a start that did not take effect: at once, or when
// its turn comes where it is started singly. With stale its job is read, and the run routed, anew.
func (e *Queue) TryAgain(a Attempt, stale bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Room.giveBackPlaces(a)
	if ref := a.Ref; stale && ref.job.Version <= a.Job.Version {
		ref.stale = true
	}
	e.comeAgain(a)
}

// comeAgain is retry for one that has given its places back. Caller holds mu.
func (e *Queue) comeAgain(a Attempt) {
	a.HadTurn = false
	if a.StartsSingly() {
		e.Room.parkTried(a.Item)
		return
	}
	e.Room.keepAhead(a.Item)
	e.Room.due.push(a.Item)
}

// LetGo forgets an entry whose run is not this node's to start, as an answer of the store says.
// One that was read again while the answer was under way is tried again: the shard that this node
// had lost, or had given up, is its own once more, or the run was put back. It was held
// then, so that it was not taken up.
func (e *Queue) LetGo(a Attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Room.giveBackPlaces(a)
	if a.readAgain {
		e.comeAgain(a)
		return
	}
	e.release(a.Item)
}

// GiveUp forgets an entry whose run is over.
func (e *Queue) GiveUp(a Attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Room.giveBackPlaces(a)
	e.release(a.Item)
}

// Rerouted has an entry routed anew, and tried again: at once, or when its turn comes where it is started
// singly.
func (e *Queue) Rerouted(a Attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Room.giveBackPlaces(a)
	e.Room.freeSerial(a.Item.Route.Serial, a.Run.ID)
	apart := a.StartsSingly()
	a.Item.Route, a.HadTurn = &Routed{}, false
	if apart {
		e.Room.parkTried(a.Item)
		return
	}
	e.Room.due.push(a.Item)
}

// StartSingly has an entry started singly when it is tried again: the store has refused what was to be done
// about it, alone.
func (e *Queue) StartSingly(a Attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a.tried = triedRefused
}

// TurnDown makes of an attempt one to record its run as refused: it needs no places.
func (e *Queue) TurnDown(a *Attempt, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Room.giveBackPlaces(*a)
	e.Room.freeSerial(a.Item.Route.Serial, a.Run.ID)
	a.Item.Route = &Routed{Refused: why}
	e.Room.letGoOn(a.Item)
	a.Waited, a.starting, a.readAgain = false, true, false
}

// release forgets a held entry that will not start; what it had in its hands
// goes to the next.
func (e *Queue) release(en *Item) {
	e.letApart(en, nil)
	if en.held {
		e.Held.unhold(en)
	}
	e.letPass(en.Run.ID) // if it is planned still, they are told so again
	e.Room.unkeep(en)
	e.Room.letGoOn(en)
	f, flies := e.InFlight.here.Get(en.Run.ID)
	a, away := e.InFlight.remote[en.Run.ID]
	// It was held by a stale reading where it is under way: that has its place then.
	if at := en.Route.Serial; !(flies && f.Serial == at || away && a.serial == at) {
		e.Room.freeSerial(at, en.Run.ID)
	}
	if !away {
		e.Room.arrived(en.Run.JobID, en.Run.ID)
	}
}

// OpenSerial has it noted that it is known of shards what is ahead of runs of serial jobs, and lets
// those go on that have waited for it: what is due by now, where it is late. note is called with
// mu held, so that those who look at runs meanwhile see it at all of them or at none.
func (e *Queue) OpenSerial(note func()) {
	e.takeDue(e.clock.Now().Add(e.LeadTime.get()))
	e.mu.Lock()
	defer e.mu.Unlock()
	note()
	e.Room.admitAllOf(WaitKey{kind: kindSettling}) // later runs of their jobs are behind them
	e.wakes.Start.Poke()
}

// OpenLost lets go of runs that wait for shards which were lost before it was known what is
// ahead of them: nobody else would, where no shard is left of which that is not known.
func (e *Queue) OpenLost() {
	at := WaitKey{kind: kindSettling}
	if e.Room.Waits(at) && len(e.leases.Unloaded()) == 0 {
		e.Room.AdmitAll(at)
		e.wakes.Start.Poke()
	}
}

func (e *Queue) parkBehindRun(blocker store.Run, en *Item) {
	if _, away := e.InFlight.remote[blocker.ID]; !away && e.InFlight.here.Of(blocker.ID) == nil {
		e.InFlight.remote[blocker.ID] = remoteAt(blocker)
	}
	e.Room.park(WaitKey{kind: kindRun, runID: blocker.ID}, en)
}

// AwaitRun parks an entry behind a run that is in its way. It keeps its place as
// the next serial run at its address.
func (e *Queue) AwaitRun(a Attempt, blocker store.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Room.giveBackPlaces(a)
	e.parkBehindRun(blocker, a.Item)
}

// Evict lets everybody out of the waitlists of an address at which nobody should wait any
// more: they are routed anew.
func (e *Queue) Evict(address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	any := false
	for at := range e.Room.lists.all() {
		away, isAway := e.InFlight.remote[at.runID]
		if at.address == address || at.kind == kindRun && isAway && away.address == address {
			any = e.Room.clearOut(at) || any
		}
	}
	e.wakes.Start.PokeIf(any)
}

// ParkUnrouted parks a run whose app's addresses are being asked for, or behind others that
// wait because these could not be read. It is due again at once where neither is so any
// more; waited says that it was to wait for the answer, which has come meanwhile.
func (e *Queue) ParkUnrouted(en *Item, asks func(app string) bool, waited bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	app := en.Run.App
	switch {
	case asks(app) || e.Room.lists.at(ForRegistry(app)) != nil:
		e.Room.park(ForRegistry(app), en)
	case e.Room.lists.at(ForAddresses(app)) != nil:
		e.Room.park(ForAddresses(app), en)
	default:
		e.Room.letGoOn(en)
		e.Room.keepAhead(en)
		if waited {
			e.Room.letOut(en, ForRegistry(app))
		}
		e.Room.due.push(en)
	}
}

// LookForRouters has those tried again that wait for a node which knows their job's routing strategy.
// Their jobs are read anew: what they ask for may be another one by now. It reports whether there
// are any.
func (e *Queue) LookForRouters() (any bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for at, t := range e.Room.lists.by[kindRouter] {
		for _, q := range t.apps {
			for _, w := range *q {
				w.value.Ref.stale = true
			}
		}
		any = e.Room.admitAllOf(at) || any
	}
	e.wakes.Start.PokeIf(any)
	return any
}

// DueAgain puts an entry that waited nowhere back among those that are due.
func (e *Queue) DueAgain(en *Item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Room.due.push(en)
	e.wakes.Start.Poke()
}

// The places that a due run needs before it is started, and what it waits for where it does
// not get them.

// reserved is what has come of an attempt to take places.
type reserved int

const (
	reservedNot reserved = iota // the entry waits, or is forgotten
	ReservedAll                 // it has its places
	ReservedAsk                 // a router of the user's has to be asked first; it waits nowhere yet
)

// InTurn returns the attempts whose turn it is, in place. It forgets entries of shards that are
// another node's, and parks those of serial jobs that have to let an earlier run pass, or, of all
// jobs that have an order, of which it is not known yet whether they have. These are routed when they go on: a strategy is
// asked once about each run.
func (e *Queue) InTurn(batch []Attempt) []Attempt {
	turn := batch[:0]
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range batch {
		waits := false
		switch a := &batch[i]; a.Job.Block {
		case block.SerialExecution:
			waits = e.waitsBehind(a) || e.waitsForRetry(a)
		case block.Concurrent:
			_, owned := e.leases.Epoch(int(a.Run.Shard))
			if waits = !owned; waits {
				e.release(a.Item)
			}
		default:
			waits = e.waitsToSettle(a)
		}
		if !waits {
			turn = Keep(turn, batch, i)
		}
	}
	return turn
}

// waitsToSettle reports whether it is not known yet which earlier runs of its job a run has to let
// pass, and parks it; that of another node's shard is forgotten. Caller holds mu.
func (e *Queue) waitsToSettle(a *Attempt) bool {
	open, owned := e.leases.IsOpen(int(a.Run.Shard), a.Run.Key())
	switch {
	case !owned: // it was lost while an address was looked for
		e.release(a.Item)
	case !open:
		e.Room.parkBehind(WaitKey{kind: kindSettling}, a.Item)
	default:
		return false
	}
	return true
}

// ReserveAll is reserve for many, in their order.
func (e *Queue) ReserveAll(batch []Attempt, now time.Time, pending func(jobID int64) bool) []reserved {
	all := make([]reserved, len(batch))
	e.mu.Lock()
	defer e.mu.Unlock()
	left := e.bringTogether(batch, now.UnixMilli())
	for i := range batch {
		if !left[i] {
			all[i] = e.reserve(&batch[i], now, pending)
		}
	}
	return all
}

// reserve takes the places that the attempt needs, or parks the entry. pending reports
// whether runs of a job wait for answers to probes. Caller holds mu.
func (e *Queue) reserve(a *Attempt, now time.Time, pending func(jobID int64) bool) reserved {
	r := a.Route
	switch {
	case r.Asks != nil && !r.Probing && r.Behind == nil:
		e.Room.letGoOn(a.Item)
		e.Room.keepAhead(a.Item)
		return ReservedAsk
	case e.isNotRouted(a, pending), r.Refused == "" && r.Ordered && (e.waitsBehind(a) || e.waitsForPart(a)):
		return reservedNot
	}
	a.Choice = nil // it is used up: one that waits behind another keeps its own
	if r.Refused == "" {
		if r.Lane != LaneNone {
			own := *r
			r, a.Route = &own, &own
			r.Lane = LaneFast
			if e.Jobs.isSlow(a.Ref, now) {
				r.Lane = laneSlow
			}
		}
		if !e.Room.takeSerial(r.Serial, a.Run.Key()) {
			e.parkForRoom(r.Serial, a)
			return reservedNot
		}
		if full, ok := e.Room.lanes.fits(r.Lane, r.key(a.Run.App), r.Places); !ok {
			e.parkForRoom(full, a)
			return reservedNot
		}
		e.Room.lanes.enter(r.Lane, r.key(a.Run.App), r.Places)
		if r.Ordered && (r.Exec == nil || len(r.Targets) > 0) { // parts of a broadcast go to other nodes
			e.Room.inTransit.add(a.Run.JobID, a.Run.Key())
		}
	}
	if r.Refused != "" || a.from == nil || !a.from.isRoomOf(r.Lane, r.key(a.Run.App), r.Places) {
		e.Room.letGoOn(a.Item)
	}
	a.Waited, a.starting, a.readAgain = false, true, false
	return ReservedAll
}

// isNotRouted reports whether an entry has no address yet, and parks it. Caller holds mu.
func (e *Queue) isNotRouted(a *Attempt, pending func(jobID int64) bool) bool {
	r := a.Route
	switch {
	case r.Probing && !pending(a.Job.ID):
		e.Room.keepAhead(a.Item)
		e.Room.due.push(a.Item) // the answers have come in meanwhile
	case r.Probing:
		e.Room.park(WaitKey{kind: kindProbes, jobID: a.Job.ID}, a.Item)
	case r.Behind != nil:
		e.parkBehindRun(*r.Behind, a.Item)
		e.wakes.Watch.Poke()
	default:
		return false
	}
	return true
}

// WaitsBehind reports whether a run of a serial job has to wait for earlier ones, and
// parks it; that of another node's shard is forgotten. Caller holds mu.
func (e *Queue) waitsBehind(a *Attempt) bool {
	switch {
	case e.waitsToSettle(a):
	case e.Room.inTransit.isBehind(a.Run.JobID, a.Run.Key()):
		e.Room.parkBehind(ForEarlier(a.Run.JobID), a.Item)
		e.wakes.Transit.Poke()
	default:
		return false
	}
	return true
}

// WaitsForPart reports whether a broadcast of a serial job has to wait for the start of an
// earlier run, which waits for room or for its turn at one of the addresses of the other
// parts, and parks it: those parts take no turn of their own. Caller holds mu.
func (e *Queue) waitsForPart(a *Attempt) bool {
	for _, address := range a.Route.Targets {
		at := SerialAt(a.Job, address)
		for _, en := range []*Item{e.Held.runs.Of(e.Room.serial.at(at)), e.Room.lists.head(at, a.Run.App)} {
			if address != a.Route.Address && en != nil && en.Run.Key().Before(a.Run.Key()) {
				e.Room.keepAhead(en)
				e.Room.parkBehind(ForEarlier(a.Run.JobID), a.Item)
				return true
			}
		}
	}
	return false
}

// TurnBegins gives back what was kept for an entry until its turn, which it has now. Where
// what was decided about it is outdated it is routed anew.
func (e *Queue) TurnBegins(a *Attempt, outdated bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Room.unkeep(a.Item)
	if outdated {
		e.Room.freeSerial(a.Route.Serial, a.Run.ID)
		a.Item.Route = &Routed{}
	}
	a.HadTurn = true
}
