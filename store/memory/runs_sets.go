package memory

// A run is in the sets that its state, owner and address call for. Whatever
// changes one of these goes
//
//	s.leave(r); change r; s.enter(r)
//
// so that no change has to know the sets. Both are called with mu held.

import "github.com/xxljob/xxljob/store"

// enter adds the run to its sets. Ended runs are in none.
func (s *Store) enter(r *run) {
	switch r.State {
	case store.StatePlanned:
		sh, at := r.job.shard, r.scheduled
		if r.ahead {
			r.job.ahead.add(r)
			sh.ahead.insert(r.extra().move, r.ID, r)
			return
		}
		r.job.planned.add(r)
		if r.Type == store.TriggerRetry {
			r.job.retries.insert(r.due(), r.ID, r)
			r.job.retrying++
		}
		sh.planned.insert(at, r.ID, r)
		if r.foreign {
			sh.foreign.insert(at, r.ID, r)
		}
	case store.StateStarted:
		r.job.shard.started.add(r)
		s.enterNodes(r)
	case store.StateDispatched:
		r.job.shard.dispatched.insert(0, r.ID, r)
		s.enterNodes(r)
	}
}

// enterNodes adds a started or dispatched run to what its owner and its
// addressee have.
func (s *Store) enterNodes(r *run) {
	if r.terms.owner != "" {
		r.owner = s.peer(r.terms.owner)
		r.owner.unended++
	}
	incarnation, attached := store.LocalIncarnation(r.terms.address)
	if !attached {
		return
	}
	r.addressee = r.owner
	if r.owner == nil || incarnation != r.terms.owner {
		r.addressee = s.peer(incarnation)
	}
	r.addressee.unended++
	if r.State == store.StateStarted {
		r.job.occupy(r.terms.address, 1)
	}
	if r.untaken() {
		r.addressee.inbox.insert(0, r.ID, r)
	}
	if r.toKill() {
		r.addressee.kills.insert(0, r.ID, r)
	}
}

// leave takes the run out of all sets that enter added it to.
func (s *Store) leave(r *run) {
	switch r.State {
	case store.StatePlanned:
		sh, at := r.job.shard, r.scheduled
		if r.ahead {
			r.job.ahead.remove(r)
			sh.ahead.remove(r.extra().move, r.ID)
			return
		}
		r.job.planned.remove(r)
		if r.Type == store.TriggerRetry {
			r.job.retries.remove(r.due(), r.ID)
			r.job.retrying--
		}
		sh.planned.remove(at, r.ID)
		if r.foreign {
			sh.foreign.remove(at, r.ID)
		}
	case store.StateStarted:
		r.job.shard.started.remove(r)
		s.leaveNodes(r)
	case store.StateDispatched:
		r.job.shard.dispatched.remove(0, r.ID)
		s.leaveNodes(r)
	}
}

func (s *Store) leaveNodes(r *run) {
	if p := r.owner; p != nil {
		r.owner = nil
		p.unended--
		s.forget(p)
	}
	p := r.addressee
	if p == nil {
		return
	}
	r.addressee = nil
	p.unended--
	if r.State == store.StateStarted {
		r.job.occupy(r.terms.address, -1)
	}
	if r.untaken() {
		p.inbox.remove(0, r.ID)
	}
	if r.toKill() {
		p.kills.remove(0, r.ID)
	}
	s.forget(p)
}

// untaken reports whether the run is started and waits for its addressee.
func (r *run) untaken() bool { return r.State == store.StateStarted && r.taken == noTime }

// toKill reports whether an unended run's addressee, which took it, is to kill
// it. One that is not taken ends when it is.
func (r *run) toKill() bool { return r.taken != noTime && r.extras != nil && r.extras.killReason != "" }

// newRun is a new run of the job that is filled in, and inserted, next.
func (s *Store) newRun(j *job) *run {
	s.working(j)
	r := s.runs.add()
	r.job = j
	return r
}

// insertRun adds a new run that is filled in but for what the store gives. An
// ended one (a record) is over at once.
func (s *Store) insertRun(r *run) {
	j := r.job
	r.Born = r.Born || r.Type.ScheduleBorn()
	if r.TriggerID == 0 {
		r.TriggerID = r.ID
	}
	s.bear(r)
	if r.first = r; r.TriggerID != r.ID {
		r.first = s.runs.find(r.TriggerID)
	} else {
		r.parts = 1
	}
	r.first.unended++
	if r.Born {
		j.open++
	}
	j.runs.push(r)
	s.enter(r)
}

// end gives the run a final state, with all that follows for the sets and for a
// job that waits for it. The caller calls stopFinished for the job, once what
// else it does to the job is done.
func (s *Store) end(r *run, state store.State, now int64) {
	var out store.Run
	s.endTo(&out, r, state, now)
}

// endTo is end that puts the run into one that is empty.
func (s *Store) endTo(out *store.Run, r *run, state store.State, now int64) {
	s.leave(r)
	r.State, r.ended = state, now
	if state == store.StateSkipped || state == store.StateCancelled {
		r.AlarmStatus = alarmNotNeeded
	}
	j := r.job
	if r.Born {
		j.open--
	}
	if j.waitRun == r.ID {
		s.rearm(j, now)
	}
	s.hasEnded = true
	r.put(out)
	out.CountEnd(s.reports.count)
	s.alarmOf(r, false, out.Ended)
	s.retire(r)
}

// alarmNotNeeded is what Run.AlarmStatus begins with for runs that were never started: XXL-JOB tells
// of none of these. A rule may ask for them all the same; what has become of its alarm is noted then,
// and is greater.
const alarmNotNeeded = 1

// The lists that a run is in: all runs of its job in order of id, and, once it
// has ended, those of its job and those of the store in order of their end.
const (
	ofJob = iota
	endedOfJob
	allEnded
	listKinds
)

// link is a run's place in one list.
type link struct{ prev, next *run }

// list is a list of runs that are linked through themselves: to add at the end
// and to take out anywhere costs no search and no memory. Guarded by Store.mu.
type list struct {
	by         int // which of a run's links
	head, tail *run
	n          int
}

func (l *list) push(r *run) {
	r.links[l.by] = link{prev: l.tail}
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.links[l.by].next = r
	}
	l.tail = r
	l.n++
}

func (l *list) remove(r *run) {
	at := r.links[l.by]
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.links[l.by].next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.links[l.by].prev = at.prev
	}
	r.links[l.by] = link{}
	l.n--
}

// work is what a job has of its runs. A job of which no run is kept has Store.noWork.
type work struct {
	open     int             // unended runs that are Born
	planned  bag[*run]       // planned runs of every type, but for those that are kept apart
	retries  order[run]      // planned runs of type RETRY, by (Instant, ID)
	retrying int             // their number
	ahead    bag[*run]       // runs that are kept apart
	runs     list            // all runs that are kept
	ended    list            // those of them that have ended
	busy     []place         // attached addresses with started runs
	plain    *terms          // of the last run that was planned
	started  *terms          // of the last run that was started
	logged   map[int64]int64 // bytes of pages of logs that are kept, by the day of their runs
}

func newWork() *work { return &work{runs: list{by: ofJob}, ended: list{by: endedOfJob}} }

// maxIdle bounds how many are kept to be used again.
const maxIdle = 1024

// working gives a job that is about to get a run what it needs for that.
func (s *Store) working(j *job) {
	if j.work != s.noWork {
		return
	}
	if last := len(s.idle) - 1; last >= 0 {
		j.work = s.idle[last]
		s.idle[last] = nil
		s.idle = s.idle[:last]
	} else {
		j.work = newWork()
	}
	j.plain = s.plainOf(terms{app: j.app, retries: retriesOfJob})
}

// rest takes it from a job of which the last run was dropped.
func (s *Store) rest(j *job) {
	if j.work == s.noWork || j.runs.n > 0 {
		return
	}
	j.plain, j.started = nil, nil
	if len(s.idle) < maxIdle {
		s.idle = append(s.idle, j.work)
	}
	j.work = s.noWork
}
