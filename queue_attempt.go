package xxljob

import (
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/store"
)

// What an entry goes through on its way to be started, and back again where a start has
// come to nothing.

// pop takes up to n entries from a lot whose jobs are known, and names the jobs that have
// to be read first; their entries stay there. It uses the memory of batch, which is empty.
func (e *engine) pop(from lot, n int, batch []attempt) (_ []attempt, unknown []int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var later []*entry
	var asked map[int64]bool
	for len(batch) < n && len(asked) < n {
		en := e.room.leave(from)
		if en == nil {
			break
		}
		if !en.held {
			e.release(en) // forgotten meanwhile, by shed
			continue
		}
		ref := en.ref
		if ref.gone {
			e.release(en)
			continue
		}
		if ref.stale {
			if asked == nil {
				asked = map[int64]bool{}
			}
			if !asked[en.run.JobID] {
				asked[en.run.JobID] = true
				unknown = append(unknown, en.run.JobID)
			}
			later = append(later, en)
			continue
		}
		batch = append(batch, attempt{entry: en, job: ref.job})
	}
	for _, en := range later {
		e.room.comeBack(from, en)
	}
	return batch, unknown
}

// undo gives back the places of attempts, and has their entries tried again.
func (e *engine) undo(batch []attempt) {
	for _, a := range batch {
		e.retry(a, false)
	}
}

// retry has an entry tried again after a start that did not take effect: at once, or when
// its turn comes where it goes apart. With stale its job is read, and the run routed, anew.
func (e *engine) retry(a attempt, stale bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.giveBackPlaces(a)
	if ref := a.ref; stale && ref.job.Version <= a.job.Version {
		ref.stale = true
	}
	e.comeAgain(a)
}

// comeAgain is retry for one that has given its places back. Caller holds mu.
func (e *engine) comeAgain(a attempt) {
	a.turned = false
	if a.goesApart() {
		e.room.parkTried(a.entry)
		return
	}
	e.room.keepAhead(a.entry)
	e.room.due.push(a.entry)
}

// letGo forgets an entry whose run is not this node's to start, as an answer of the store says.
// One that was read again while the answer was under way is tried again: the shard that this node
// had lost, or had given up, is its own once more, or the run was put back. It was held
// then, so that it was not taken up.
func (e *engine) letGo(a attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.giveBackPlaces(a)
	if a.readAgain {
		e.comeAgain(a)
		return
	}
	e.release(a.entry)
}

// giveUp forgets an entry whose run is over.
func (e *engine) giveUp(a attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.giveBackPlaces(a)
	e.release(a.entry)
}

// abandon forgets an entry that has no places.
func (e *engine) abandon(en *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.release(en)
}

// rerouted has an entry tried again at another address, for its own is no more.
func (e *engine) rerouted(a attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.giveBackPlaces(a)
	e.room.freeSerial(a.entry.route.serial, a.run.ID)
	apart := a.goesApart()
	a.entry.route, a.turned = &routed{}, false
	if apart {
		e.room.parkTried(a.entry)
		return
	}
	e.room.due.push(a.entry)
}

// release forgets a held entry that will not start; what it had in its hands
// goes to the next.
func (e *engine) release(en *entry) {
	if en.held {
		e.held.unhold(en)
	}
	e.letPass(en.run.ID) // if it is planned still, they are told so again
	e.room.unkeep(en)
	e.room.letGoOn(en)
	f, flies := e.under.flights.Get(en.run.ID)
	a, away := e.under.away[en.run.ID]
	// It was held by a stale reading where it is under way: that has its place then.
	if at := en.route.serial; !(flies && f.serial == at || away && a.serial == at) {
		e.room.freeSerial(at, en.run.ID)
	}
	if !away {
		e.room.arrived(en.run.JobID, en.run.ID)
	}
}

// openSerial has it noted that it is known of shards what is ahead of runs of serial jobs, and lets
// those go on that have waited for it: what is due by now, where it is late. note is called with
// mu held, so that those who look at runs meanwhile see it at all of them or at none.
func (e *engine) openSerial(note func()) {
	e.takeDue(e.clock.now().Add(e.lead.get()))
	e.mu.Lock()
	defer e.mu.Unlock()
	note()
	e.room.admitAllOf(lot{kind: lotSettle}) // later runs of their jobs are behind them
	e.wakes.start.Poke()
}

// openLost lets go of runs that wait for shards which were lost before it was known what is
// ahead of them: nobody else would, where no shard is left of which that is not known.
func (e *engine) openLost() {
	at := lot{kind: lotSettle}
	if e.room.waits(at) && len(e.leases.unloaded()) == 0 {
		e.room.admitAll(at)
		e.wakes.start.Poke()
	}
}

func (e *engine) parkBehindRun(blocker store.Run, en *entry) {
	if _, away := e.under.away[blocker.ID]; !away && e.under.flights.Of(blocker.ID) == nil {
		e.under.away[blocker.ID] = awayAt(blocker)
	}
	e.room.park(lot{kind: lotRun, runID: blocker.ID}, en)
}

// awaitRun parks an entry behind a run that is in its way. It keeps its place as
// the next serial run at its address.
func (e *engine) awaitRun(a attempt, blocker store.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.giveBackPlaces(a)
	e.parkBehindRun(blocker, a.entry)
}

// evict lets everybody out of the lots of an address at which nobody should wait any
// more: they are routed anew.
func (e *engine) evict(address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	any := false
	for at := range e.room.lots.all() {
		away, isAway := e.under.away[at.runID]
		if at.address == address || at.kind == lotRun && isAway && away.address == address {
			any = e.room.clearOut(at) || any
		}
	}
	e.wakes.start.PokeIf(any)
}

// parkUnrouted parks a run whose app's addresses are being asked for, or behind others that
// wait because these could not be read. It is due again at once where neither is so any
// more; waited says that it was to wait for the answer, which has come meanwhile.
func (e *engine) parkUnrouted(en *entry, asks func(app string) bool, waited bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	app := en.run.App
	switch {
	case asks(app) || e.room.lots.at(askLot(app)) != nil:
		e.room.park(askLot(app), en)
	case e.room.lots.at(errorLot(app)) != nil:
		e.room.park(errorLot(app), en)
	default:
		e.room.letGoOn(en)
		e.room.keepAhead(en)
		if waited {
			e.room.letOut(en, askLot(app))
		}
		e.room.due.push(en)
	}
}

// dueAgain puts an entry that waited nowhere back among those that are due.
func (e *engine) dueAgain(en *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.due.push(en)
	e.wakes.start.Poke()
}

// The places that a due run needs before it is started, and what it waits for where it does
// not get them.

// reserved is what has come of an attempt to take places.
type reserved int

const (
	reservedNot reserved = iota // the entry waits, or is forgotten
	reservedAll                 // it has its places
	reservedAsk                 // a router of the user's has to be asked first; it waits nowhere yet
)

// inTurn returns the attempts whose turn it is, in place. It forgets entries of shards that are
// another node's, and parks those of serial jobs that have to let an earlier run pass, or of
// which it is not known yet whether they have. These are routed when they go on: a strategy is
// asked once about each run.
func (e *engine) inTurn(batch []attempt) []attempt {
	turn := batch[:0]
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range batch {
		a := &batch[i]
		serial := a.job.Block == block.SerialExecution
		if _, owned := e.leases.epoch(int(a.run.Shard)); !serial && !owned {
			e.release(a.entry)
		} else if !serial || !e.waitsBehind(a) && !e.waitsForRetry(a) {
			turn = keep(turn, batch, i)
		}
	}
	return turn
}

// reserveAll is reserve for many, in their order.
func (e *engine) reserveAll(batch []attempt, now time.Time, pending func(jobID int64) bool) []reserved {
	all := make([]reserved, len(batch))
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range batch {
		all[i] = e.reserve(&batch[i], now, pending)
	}
	return all
}

// reserve takes the places that the attempt needs, or parks the entry. pending reports
// whether runs of a job wait for answers to probes. Caller holds mu.
func (e *engine) reserve(a *attempt, now time.Time, pending func(jobID int64) bool) reserved {
	r := a.route
	switch {
	case r.asks != nil && !r.probing && r.behind == nil:
		e.room.letGoOn(a.entry)
		e.room.keepAhead(a.entry)
		return reservedAsk
	case e.isNotRouted(a, pending), r.refused == "" && r.ordered && (e.waitsBehind(a) || e.waitsForPart(a)):
		return reservedNot
	}
	a.choice = nil // it is used up: one that waits behind another keeps its own
	if r.refused == "" {
		if r.lane != laneNone {
			own := *r
			r, a.route = &own, &own
			r.lane = laneFast
			if e.jobs.isSlow(a.ref, now) {
				r.lane = laneSlow
			}
		}
		if !e.room.takeSerial(r.serial, a.run.key()) {
			e.room.park(r.serial, a.entry)
			return reservedNot
		}
		if full, ok := e.room.lanes.fits(r.lane, r.key(a.run.App), r.places); !ok {
			e.room.park(full, a.entry)
			return reservedNot
		}
		e.room.lanes.enter(r.lane, r.key(a.run.App), r.places)
		if r.ordered && (r.exec == nil || len(r.targets) > 0) { // parts of a broadcast go to other nodes
			e.room.transit.add(a.run.JobID, a.run.key())
		}
	}
	if r.refused != "" || a.from == nil || !a.from.isRoomOf(r.lane, r.key(a.run.App), r.places) {
		e.room.letGoOn(a.entry)
	}
	a.waited, a.starting, a.readAgain = false, true, false
	return reservedAll
}

// isNotRouted reports whether an entry has no address yet, and parks it. Caller holds mu.
func (e *engine) isNotRouted(a *attempt, pending func(jobID int64) bool) bool {
	r := a.route
	switch {
	case r.probing && !pending(a.job.ID):
		e.room.keepAhead(a.entry)
		e.room.due.push(a.entry) // the answers have come in meanwhile
	case r.probing:
		e.room.park(lot{kind: lotProbe, jobID: a.job.ID}, a.entry)
	case r.behind != nil:
		e.parkBehindRun(*r.behind, a.entry)
		e.wakes.watch.Poke()
	default:
		return false
	}
	return true
}

// waitsBehind reports whether a run of a serial job has to wait for earlier ones, and
// parks it; that of another node's shard is forgotten. Caller holds mu.
func (e *engine) waitsBehind(a *attempt) bool {
	open, owned := e.leases.isOpen(int(a.run.Shard), a.run.key())
	switch {
	case !owned: // it was lost while an address was looked for
		e.release(a.entry)
	case !open:
		e.room.parkBehind(lot{kind: lotSettle}, a.entry)
	case e.room.transit.isBehind(a.run.JobID, a.run.key()):
		e.room.parkBehind(lotOrderOf(a.run.JobID), a.entry)
		e.wakes.transit.Poke()
	default:
		return false
	}
	return true
}

// waitsForPart reports whether a broadcast of a serial job has to wait for the start of an
// earlier run, which waits for room or for its turn at one of the addresses of the other
// parts, and parks it: those parts take no turn of their own. Caller holds mu.
func (e *engine) waitsForPart(a *attempt) bool {
	for _, address := range a.route.targets {
		at := serialAt(a.job, address)
		for _, en := range []*entry{e.held.runs.Of(e.room.serial.at(at)), e.room.lots.head(at, a.run.App)} {
			if address != a.route.address && en != nil && en.run.key().before(a.run.key()) {
				e.room.keepAhead(en)
				e.room.parkBehind(lotOrderOf(a.run.JobID), a.entry)
				return true
			}
		}
	}
	return false
}

// turnBegins gives back what was kept for an entry until its turn, which it has now. Where
// what was decided about it is outdated it is routed anew.
func (e *engine) turnBegins(a *attempt, outdated bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.unkeep(a.entry)
	if outdated {
		e.room.freeSerial(a.route.serial, a.run.ID)
		a.entry.route = &routed{}
	}
	a.turned = true
}
