package queue

import (
	"time"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// What an entry goes through on its way to be started, and back again where a start has
// come to nothing.

// Pop takes up to n entries from a waitlist whose jobs are known, and names the jobs that have
// to be read first; their entries stay there. It uses the memory of batch, which is empty.
func (q *Queue) Pop(from WaitKey, n int, batch []Attempt) (_ []Attempt, unknown []int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var later []*Item
	var asked map[int64]bool
	for len(batch) < n && len(asked) < n {
		en := q.Due.leave(from)
		if en == nil {
			break
		}
		if !en.held {
			q.forget(en) // forgotten meanwhile, by shed
			continue
		}
		ref := en.Ref
		if ref.gone {
			q.forget(en)
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
		for _, other := range q.apart(en) {
			batch = append(batch, Attempt{Item: other, Job: ref.job})
		}
	}
	for _, en := range later {
		q.Due.comeBack(from, en)
	}
	return batch, unknown
}

// TryAgain gives back the places of attempts that did not take effect, and has their entries tried
// again: at once, or when their turn comes where they are started singly. With stale their jobs are
// read, and the runs routed, anew.
func (q *Queue) TryAgain(stale bool, batch ...Attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range batch {
		q.Due.giveBackPlaces(a)
		if ref := a.Ref; stale && ref.job.Version <= a.Job.Version {
			ref.stale = true
		}
		q.comeAgain(a)
	}
}

// comeAgain is TryAgain for one that has given its places back. Caller holds mu.
func (q *Queue) comeAgain(a Attempt) {
	a.HadTurn = false
	if a.StartsSingly() {
		q.Due.parkTried(a.Item)
		return
	}
	q.Due.keepAhead(a.Item)
	q.Due.ready.push(a.Item)
}

// ForgetNotOurs forgets an entry whose run is not this node's to start, as an answer of the store says.
// One that was read again while the answer was under way is tried again: the shard that this node
// had lost, or had given up, is its own once more, or the run was put back. It was held
// then, so that it was not taken up.
func (q *Queue) ForgetNotOurs(a Attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.giveBackPlaces(a)
	if a.readAgain {
		q.comeAgain(a)
		return
	}
	q.forget(a.Item)
}

// ForgetEnded forgets an entry whose run is over.
func (q *Queue) ForgetEnded(a Attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.giveBackPlaces(a)
	q.forget(a.Item)
}

// Rerouted has an entry routed anew, and tried again: at once, or when its turn comes where it is started
// singly.
func (q *Queue) Rerouted(a Attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.giveBackPlaces(a)
	q.Due.freeJobPlace(a.Item.Route.JobPlace, a.Run.ID)
	apart := a.StartsSingly()
	a.Item.Route, a.HadTurn = &Routed{}, false
	if apart {
		q.Due.parkTried(a.Item)
		return
	}
	q.Due.ready.push(a.Item)
}

// StartSingly has an entry started singly when it is tried again: the store has refused what was to be done
// about it, alone.
func (q *Queue) StartSingly(a Attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a.tried = triedRefused
}

// TurnDown makes of an attempt one to record its run as refused: it needs no places.
func (q *Queue) TurnDown(a *Attempt, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.giveBackPlaces(*a)
	q.Due.freeJobPlace(a.Item.Route.JobPlace, a.Run.ID)
	a.Item.Route = &Routed{Refused: why}
	q.Due.passRoomOn(a.Item)
	a.Waited, a.starting, a.readAgain = false, true, false
}

// forget forgets a held entry that will not start; what it had in its hands
// goes to the next.
func (q *Queue) forget(en *Item) {
	q.splitCovered(en, nil)
	if en.held {
		q.Held.unhold(en)
	}
	q.admitBehindRetry(en.Run.ID) // if it is planned still, they are told so again
	q.Due.unkeep(en)
	q.Due.passRoomOn(en)
	f, flies := q.InFlight.here.Get(en.Run.ID)
	a, away := q.InFlight.remote[en.Run.ID]
	// It was held by a stale reading where it is under way: that has its place then.
	if at := en.Route.JobPlace; !(flies && f.JobPlace == at || away && a.jobPlace == at) {
		q.Due.freeJobPlace(at, en.Run.ID)
	}
	if !away {
		q.Due.leaveTransit(en.Run.JobID, en.Run.ID)
	}
}

// OpenSerial puts planned runs on the ring, calls note, which marks shards whose earlier runs are
// known now, and lets the runs of serial jobs go on that have waited for that. What is due by now is
// taken off the ring first. note is called with mu held, so that everybody else sees its marks at
// all shards or at none.
func (q *Queue) OpenSerial(runs []store.Run, note func()) {
	q.takeDue(q.clock.Now().Add(q.LeadTime.get()))
	q.mu.Lock()
	defer q.mu.Unlock()
	q.holdLocked(runs, nil)
	note()
	q.Due.admitAllOf(WaitKey{kind: kindSettling}) // later runs of their jobs are behind them
	q.wakes.Start.Poke()
}

// OpenLost lets go of runs that wait for shards which were lost before it was known what is
// ahead of them: nobody else would, where no shard is left of which that is not known.
func (q *Queue) OpenLost() {
	at := WaitKey{kind: kindSettling}
	if q.Due.Waits(at) && len(q.leases.Unloaded()) == 0 {
		q.Due.AdmitAll(at)
		q.wakes.Start.Poke()
	}
}

func (q *Queue) parkBehindRun(blocker store.Run, en *Item) {
	if _, away := q.InFlight.remote[blocker.ID]; !away && q.InFlight.here.Of(blocker.ID) == nil {
		q.InFlight.remote[blocker.ID] = remoteAt(blocker)
	}
	q.Due.park(WaitKey{kind: kindRun, runID: blocker.ID}, en)
	q.wakes.Watch.Poke()
}

// AwaitRun parks an entry behind a run that is in its way. It keeps its place as
// the next serial run at its address.
func (q *Queue) AwaitRun(a Attempt, blocker store.Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.giveBackPlaces(a)
	q.parkBehindRun(blocker, a.Item)
}

// Evict lets everybody out of the waitlists of an address at which nobody should wait any
// more: they are routed anew.
func (q *Queue) Evict(address string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	any := false
	for at := range q.Due.lists.all() {
		away, isAway := q.InFlight.remote[at.runID]
		if at.address == address || at.kind == kindRun && isAway && away.address == address {
			any = q.Due.clearOut(at) || any
		}
	}
	q.wakes.Start.PokeIf(any)
}

// ParkUnrouted parks a run whose app's addresses are being asked for, or behind others that
// wait because these could not be read. It is due again at once where neither is so any
// more; waited says that it was to wait for the answer, which has come meanwhile.
func (q *Queue) ParkUnrouted(en *Item, asks func(app string) bool, waited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	app := en.Run.App
	switch {
	case asks(app) || q.Due.lists.at(ForRegistry(app)) != nil:
		q.Due.park(ForRegistry(app), en)
	case q.Due.lists.at(ForAddresses(app)) != nil:
		q.Due.park(ForAddresses(app), en)
	default:
		q.Due.passRoomOn(en)
		q.Due.keepAhead(en)
		if waited {
			q.Due.noteAdmitted(en, ForRegistry(app))
		}
		q.Due.ready.push(en)
	}
}

// LookForRouters has those tried again that wait for a node which knows their job's routing strategy.
// Their jobs are read anew: what they ask for may be another one by now. It reports whether there
// are any.
func (e *Queue) LookForRouters() (any bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for at, t := range e.Due.lists.by[kindRouter] {
		for _, q := range t.apps {
			for en := range q.All() {
				en.Ref.stale = true
			}
		}
		any = e.Due.admitAllOf(at) || any
	}
	e.wakes.Start.PokeIf(any)
	return any
}

// isNewBehind reports, once, of a run which has to let others pass whether these wait for a node that
// knows their job's routing strategy. Caller holds mu.
func (q *Queue) isNewBehind(en *Item) bool {
	if en.Choice != nil || q.Due.lists.by[kindRouter][ForRouter(en.Run.JobID)] == nil {
		return false
	}
	en.Choice = NoChoice()
	return true
}

// isOver reports whether the run was cancelled as its job was stopped, or removed, and is still in memory.
func (en *Item) isOver() bool {
	run := en.Run.Rest
	if run == nil {
		run = &store.Run{Type: en.Run.RunType(), Born: en.Run.RunType().ScheduleBorn()}
	}
	return en.Ref.gone || core.MustNotStart(run, en.Ref.job)
}

// lateAt is how many runs of a job wait in a waitlist, but for those that are over. It looks at each where
// there may be such. Caller holds mu.
func (q *Queue) lateAt(at WaitKey, ref *jobRef) (late int) {
	n := q.Due.lenOf(at)
	if n == 0 || ref == nil || !ref.gone && !core.Unscheduled(ref.job) {
		return n
	}
	for _, waiting := range q.Due.lists.at(at).apps {
		for en := range waiting.All() {
			if !en.isOver() {
				late++
			}
		}
	}
	return late
}

// LateByRouter is how many due runs of a job wait for a node that knows its routing strategy, and behind
// those that do. What is over does not count.
func (q *Queue) LateByRouter(jobID int64) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	ref := q.Jobs.refs[jobID]
	late := q.lateAt(ForRouter(jobID), ref) + q.lateAt(forEarlier(jobID), ref)
	for _, id := range q.InFlight.retries.of[jobID] {
		if retry := q.Held.runs.Of(id); retry != nil && retry.due {
			late += q.lateAt(WaitKey{kind: kindRun, runID: id}, ref)
		}
	}
	return late
}

// LateByExecutor is how many due runs of an app wait for an executor, and behind those that do. What is over
// does not count. It looks at each.
func (q *Queue) LateByExecutor(app string) (late int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.Due.lists.at(ForExecutor(app))
	if t == nil || t.apps[app] == nil {
		return 0
	}
	seen := map[int64]bool{}
	for en := range t.apps[app].All() {
		if !en.isOver() {
			late++
		}
		if !seen[en.Run.JobID] {
			seen[en.Run.JobID] = true
			late += q.lateAt(forEarlier(en.Run.JobID), en.Ref)
		}
	}
	return late
}

// DueAgain puts an entry that waited nowhere back among those that are due.
func (q *Queue) DueAgain(en *Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.ready.push(en)
	q.wakes.Start.Poke()
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

// InTurn returns the attempts whose turn it is, in place. It forgets entries of shards that are
// another node's, and parks those of serial jobs that have to let an earlier run pass, or, of all
// jobs that have an order, of which it is not known yet whether they have. These are routed when they go on: a strategy is
// asked once about each run. behind are jobs of which a new run was parked so behind others that wait for
// a node which knows their routing strategy.
func (q *Queue) InTurn(batch []Attempt) (turn []Attempt, behind []int64) {
	turn = batch[:0]
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range batch {
		waits := false
		switch a, rule := &batch[i], blockrule.Of(batch[i].Job.Block); {
		case rule.KeepsOrder:
			if waits = q.waitsBehind(a) || q.waitsForRetry(a); waits && q.isNewBehind(a.Item) {
				behind = append(behind, a.Run.JobID)
			}
		case rule.SentInOrder:
			waits = q.waitsToSettle(a)
		default:
			_, owned := q.leases.Epoch(int(a.Run.Shard))
			if waits = !owned; waits {
				q.forget(a.Item)
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
		q.forget(a.Item)
	case !open:
		q.Due.parkBehind(WaitKey{kind: kindSettling}, a.Item)
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
		q.Due.passRoomOn(a.Item)
		q.Due.keepAhead(a.Item)
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
		q.Due.passRoomOn(a.Item)
	}
	a.Waited, a.starting, a.readAgain = false, true, false
	return reservedAll
}

// isNotRouted reports whether an entry has no address yet, and parks it. Caller holds mu.
func (q *Queue) isNotRouted(a *Attempt, pending func(jobID int64) bool) bool {
	r := a.Route
	switch {
	case r.Probing && !pending(a.Job.ID):
		q.Due.keepAhead(a.Item)
		q.Due.ready.push(a.Item) // the answers have come in meanwhile
	case r.Probing:
		q.Due.park(WaitKey{kind: kindProbes, jobID: a.Job.ID}, a.Item)
	case r.Behind != nil:
		q.parkBehindRun(*r.Behind, a.Item)
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
		q.Due.parkBehind(forEarlier(a.Run.JobID), a.Item)
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
		for _, en := range []*Item{q.Held.runs.Of(q.Due.serial.at(at)), q.Due.lists.head(at, a.Run.App)} {
			if address != a.Route.Address && en != nil && en.Run.Key().Before(a.Run.Key()) {
				q.Due.keepAhead(en)
				q.Due.parkBehind(forEarlier(a.Run.JobID), a.Item)
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
	q.Due.unkeep(a.Item)
	if outdated {
		q.Due.freeJobPlace(a.Route.JobPlace, a.Run.ID)
		a.Item.Route = &Routed{}
	}
	a.HadTurn = true
}
