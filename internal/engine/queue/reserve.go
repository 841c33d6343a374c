package queue

import (
	"time"

	"github.com/xxljob/xxljob/internal/blockrule"
)

// Whether a due run may be started now. Input: attempts, from dispatch/start.go. Output: those that may, with
// their places taken; the entries of all others in the waitlist of what they lack.
//
// It is asked twice. Before a run is routed: whether it is its turn (InTurn), which it is not while an earlier
// run of its serial job is in transit (waitsBehind, order.go) or is to be tried again (waitsForRetry,
// retries.go). Once it is routed: whether it gets the places that it needs there (ReserveAll). One of them is
// the job's own place at the address (jobplaces.go), which an earlier run that is under way there still has.

// reserved is what has come of an attempt to take places.
type reserved int

const (
	reservedNot reserved = iota // the entry waits, or is forgotten
	reservedAll                 // it has its places
	reservedAsk                 // a router of the user's has to be asked first; it waits nowhere yet
)

// InTurn returns the attempts whose turn it is, in place. It forgets entries of shards that are
// another node's, and parks those of serial jobs that have to let an earlier run pass, or, of all
// jobs that have an order, those of which it is not known yet whether they have to (waitsToSettle). What is
// parked is routed when it goes on: a strategy is asked once about each run. behind are jobs of which a new
// run was parked behind others that wait for a node which knows their routing strategy.
func (q *Queue) InTurn(batch []Attempt) (turn []Attempt, behind []int64) {
	turn = batch[:0]
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range batch {
		waits := false
		switch a, rule := &batch[i], blockrule.Of(batch[i].Job.Block); {
		case rule.KeepsOrder:
			if waits = q.waitsBehind(a) || q.waitsForRetry(a); waits && q.isNewBehind(a.Entry) {
				behind = append(behind, a.Run.JobID)
			}
		case rule.SentInOrder:
			waits = q.waitsToSettle(a)
		default:
			_, owned := q.leases.Epoch(int(a.Run.Shard))
			if waits = !owned; waits {
				q.forget(a.Entry)
			}
		}
		if !waits {
			turn = Keep(turn, batch, i)
		}
	}
	return turn, behind
}

// waitsToSettle reports whether it is not known yet which earlier runs of its job a run has to let
// pass, and parks it; that of another node's shard is forgotten. Caller holds mu.
func (q *Queue) waitsToSettle(a *Attempt) bool {
	open, owned := q.leases.IsOpen(int(a.Run.Shard), a.Run.Key())
	switch {
	case !owned: // it was lost while an address was looked for
		q.forget(a.Entry)
	case !open:
		q.Due.parkBehind(forSettling(), a.Entry)
	default:
		return false
	}
	return true
}

// ReserveAll takes the places that attempts need, in their order. It returns the indices in batch of
// those that have them, and of those about which a router of the user's has to be asked first; the
// entries of all others wait, or are forgotten. pending reports whether runs of a job wait for answers to
// probes.
func (q *Queue) ReserveAll(batch []Attempt, now time.Time, pending func(jobID int64) bool) (ready, ask []int) {
	ready = make([]int, 0, len(batch))
	q.mu.Lock()
	defer q.mu.Unlock()
	grouped := q.groupCovers(batch, now.UnixMilli())
	for i := range batch {
		if grouped[i] {
			continue
		}
		switch q.reserve(&batch[i], now, pending) {
		case reservedAll:
			ready = append(ready, i)
		case reservedAsk:
			ask = append(ask, i)
		}
	}
	return ready, ask
}

// reserve takes the places that the attempt needs, or parks the entry. pending reports
// whether runs of a job wait for answers to probes. Caller holds mu.
func (q *Queue) reserve(a *Attempt, now time.Time, pending func(jobID int64) bool) reserved {
	r := a.Route
	switch {
	case r.Asks != nil && !r.Probing && r.Behind == nil:
		q.Due.passRoomOn(a.Entry)
		q.Due.keepAhead(a.Entry)
		return reservedAsk
	case q.isNotRouted(a, pending), r.Refused == "" && r.Ordered && (q.waitsBehind(a) || q.waitsForPart(a)):
		return reservedNot
	}
	a.Used, a.Choice = a.Choice, nil // one that waits behind another keeps its own
	if r.Refused == "" {
		if r.Lane != LaneNone {
			own := *r
			r, a.Route = &own, &own
			r.Lane = LaneFast
			if q.Jobs.isSlow(a.Ref, now) {
				r.Lane = laneSlow
			}
		}
		if !q.Due.takeJobPlace(r.JobPlace, a.Run.Key()) {
			q.parkForRoom(r.JobPlace, a)
			q.wakes.Transit.PokeIf(len(q.InFlight.answers) > 0)
			return reservedNot
		}
		if full, ok := q.Due.lanes.fits(r.Lane, r.key(a.Run.App), r.Places); !ok {
			q.parkForRoom(full, a)
			return reservedNot
		}
		q.Due.lanes.enter(r.Lane, r.key(a.Run.App), r.Places)
		if r.Ordered && (r.Exec == nil || len(r.Targets) > 0) { // parts of a broadcast go to other nodes
			q.Due.inTransit.add(a.Run.JobID, a.Run.Key())
		}
	}
	if r.Refused != "" || a.from == nil || !a.from.isRoomOf(r.Lane, r.key(a.Run.App), r.Places) {
		q.Due.passRoomOn(a.Entry)
	}
	a.Waited, a.starting, a.readAgain = false, true, false
	return reservedAll
}

// isNotRouted reports whether an entry has no address yet, and parks it. Caller holds mu.
func (q *Queue) isNotRouted(a *Attempt, pending func(jobID int64) bool) bool {
	r := a.Route
	switch {
	case r.Probing && !pending(a.Job.ID):
		q.Due.keepAhead(a.Entry)
		q.Due.ready.push(a.Entry) // the answers have come in meanwhile
	case r.Probing:
		q.Due.park(ForProbes(a.Job.ID), a.Entry)
	case r.Behind != nil:
		q.parkBehindRun(*r.Behind, a.Entry)
	default:
		return false
	}
	return true
}

// waitsBehind reports whether a run of a serial job has to wait for earlier ones, and
// parks it; that of another node's shard is forgotten. Caller holds mu.
func (q *Queue) waitsBehind(a *Attempt) bool {
	switch {
	case q.waitsToSettle(a):
	case q.Due.inTransit.isBehind(a.Run.JobID, a.Run.Key()):
		q.Due.parkBehind(forEarlier(a.Run.JobID), a.Entry)
		q.wakes.Transit.Poke()
	default:
		return false
	}
	return true
}

// waitsForPart reports whether a broadcast of a serial job has to wait for the start of an
// earlier run, which waits for room or for its turn at one of the addresses of the other
// parts, and parks it: those parts take no turn of their own. Caller holds mu.
func (q *Queue) waitsForPart(a *Attempt) bool {
	for _, address := range a.Route.Targets {
		at := JobPlaceAt(a.Job, address)
		for _, en := range []*Entry{q.Held.runs.Of(q.Due.serial.at(at)), q.Due.lists.head(at, a.Run.App)} {
			if address != a.Route.Address && en != nil && en.Run.Key().Before(a.Run.Key()) {
				q.Due.keepAhead(en)
				q.Due.parkBehind(forEarlier(a.Run.JobID), a.Entry)
				return true
			}
		}
	}
	return false
}

// TurnBegins gives back what was kept for an entry until its turn, which it has now. Where
// what was decided about it is outdated it is routed anew.
func (q *Queue) TurnBegins(a *Attempt, outdated bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.unkeep(a.Entry)
	if outdated {
		q.Due.freeJobPlace(a.Route.JobPlace, a.Run.ID)
		a.Entry.Route = &Routed{}
	}
	a.HadTurn = true
}

// isNewBehind reports, once, of a run which has to let others pass whether these wait for a node that
// knows their job's routing strategy. Caller holds mu.
func (q *Queue) isNewBehind(en *Entry) bool {
	if en.Choice != nil || q.Due.lists.by[kindRouter][ForRouter(en.Run.JobID)] == nil {
		return false
	}
	en.Choice = NoChoice()
	return true
}
