package queue

import "github.com/xxljob/xxljob/store"

// What an entry goes through on its way to be started, and back again where a start has
// come to nothing.

// Pop takes up to n entries from a waitlist whose jobs are known, and names the jobs that have
// to be read first; their entries stay there. It uses the memory of batch, which is empty.
func (q *Queue) Pop(from WaitKey, n int, batch []Attempt) (_ []Attempt, unknown []int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var later []*Entry
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
		batch = append(batch, Attempt{Entry: en, Job: ref.job})
		for _, other := range q.apart(en) {
			batch = append(batch, Attempt{Entry: other, Job: ref.job})
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
		q.Due.parkTried(a.Entry)
		return
	}
	q.Due.keepAhead(a.Entry)
	q.Due.ready.push(a.Entry)
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
	q.forget(a.Entry)
}

// ForgetEnded forgets an entry whose run is over.
func (q *Queue) ForgetEnded(a Attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.giveBackPlaces(a)
	q.forget(a.Entry)
}

// Rerouted has an entry routed anew, and tried again: at once, or when its turn comes where it is started
// singly.
func (q *Queue) Rerouted(a Attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.giveBackPlaces(a)
	q.Due.freeJobPlace(a.Entry.Route.JobPlace, a.Run.ID)
	apart := a.StartsSingly()
	a.Entry.Route, a.HadTurn = &Routed{}, false
	if apart {
		q.Due.parkTried(a.Entry)
		return
	}
	q.Due.ready.push(a.Entry)
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
	q.Due.freeJobPlace(a.Entry.Route.JobPlace, a.Run.ID)
	a.Entry.Route = &Routed{Refused: why}
	q.Due.passRoomOn(a.Entry)
	a.Waited, a.starting, a.readAgain = false, true, false
}

// forget forgets a held entry that will not start; what it had in its hands
// goes to the next.
func (q *Queue) forget(en *Entry) {
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
	q.Due.admitAllOf(forSettling()) // later runs of their jobs are behind them
	q.wakes.Start.Poke()
}

// OpenLost lets go of runs that wait for shards which were lost before it was known what is
// ahead of them: nobody else would, where no shard is left of which that is not known.
func (q *Queue) OpenLost() {
	at := forSettling()
	if q.Due.Waits(at) && len(q.leases.Unloaded()) == 0 {
		q.Due.AdmitAll(at)
		q.wakes.Start.Poke()
	}
}

func (q *Queue) parkBehindRun(blocker store.Run, en *Entry) {
	if _, away := q.InFlight.remote[blocker.ID]; !away && q.InFlight.here.Of(blocker.ID) == nil {
		q.InFlight.remote[blocker.ID] = remoteAt(blocker)
	}
	q.Due.park(forRun(blocker.ID), en)
	q.wakes.Watch.Poke()
}

// AwaitRun parks an entry behind a run that is in its way. It keeps its place as
// the next serial run at its address.
func (q *Queue) AwaitRun(a Attempt, blocker store.Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.giveBackPlaces(a)
	q.parkBehindRun(blocker, a.Entry)
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
func (q *Queue) ParkUnrouted(en *Entry, asks func(app string) bool, waited bool) {
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
func (q *Queue) LookForRouters() (any bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for at, waiting := range q.Due.lists.by[kindRouter] {
		for _, ofApp := range waiting.apps {
			for en := range ofApp.All() {
				en.Ref.stale = true
			}
		}
		any = q.Due.admitAllOf(at) || any
	}
	q.wakes.Start.PokeIf(any)
	return any
}

// DueAgain puts an entry that waited nowhere back among those that are due.
func (q *Queue) DueAgain(en *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.ready.push(en)
	q.wakes.Start.Poke()
}
