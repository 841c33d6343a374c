package executor

import "slices"

// job is one job that runs or has runs waiting, or has had some. It is made by the first run;
// some that are idle are kept for the next one. All fields are guarded by Executor.mu.
type job struct {
	origin  *origin // whose job it is
	id      int64
	running []*run  // whose handlers have not returned, without abandoned ones
	one     [1]*run // the room of running while it is one, as it mostly is
	queue   runList // runs that wait for those, or for a place
	waiting bool    // it is in Executor.ready
	next    *job    // in Executor.ready
	labels  *labels // of its last run
}

// keptJobs is from how many jobs of an origin on idle ones are forgotten: those up to there
// take some 25 MB, and much less than that of the time of their next runs.
const keptJobs = 1 << 16

// job returns one, made where there is none. Executor.mu is held.
func (o *origin) job(id int64) *job {
	j := o.jobs[id]
	if j == nil {
		j = &job{origin: o, id: id}
		j.running = j.one[:0]
		o.jobs[id] = j
	}
	return j
}

// rest has a job that is idle kept, instead of another one where there are many.
// Executor.mu is held.
func (o *origin) rest(j *job) {
	if len(o.jobs) <= keptJobs {
		return
	}
	tries := 4 // many may be busy
	for id, other := range o.jobs {
		if tries--; tries == 0 {
			break
		}
		if other != j && !other.waiting && !other.busy() {
			delete(o.jobs, id)
			return
		}
	}
	delete(o.jobs, j.id)
}

// busy reports whether the job runs or waits. A nil job does neither.
func (j *job) busy() bool { return j != nil && (len(j.running) > 0 || j.queue.n > 0) }

// hasRoomFor reports whether a run that shares its job with as many others as most says, zero
// for any number and one for none, may begin beside those that are running.
func (j *job) hasRoomFor(most int) bool {
	if j == nil || len(j.running) == 0 {
		return true
	}
	alone := func(r *run) bool { return r.most == 1 }
	return most != 1 && (most == 0 || len(j.running) < most) && !slices.ContainsFunc(j.running, alone)
}

// mayStart reports whether the first that waits may begin.
func (j *job) mayStart() bool { return j.queue.n > 0 && j.hasRoomFor(int(j.queue.head.most)) }

// takes reports whether a run would begin at once, were there a place for it.
func (j *job) takes(most int) bool { return j == nil || j.queue.n == 0 && j.hasRoomFor(most) }

// gone takes a run from those that are running.
func (j *job) gone(r *run) {
	if len(j.running) == 1 && j.running[0] == r {
		j.one[0] = nil
		j.running[0], j.running = nil, j.one[:0]
		return
	}
	j.running = slices.DeleteFunc(j.running, func(x *run) bool { return x == r })
}

func (j *job) push(r *run) { j.queue.push(r) }

// placeFree reports whether a job may start now without overtaking another that
// waits for a place. mu is held.
func (e *Executor) placeFree() bool { return e.taken < e.cfg.Places && e.ready.head == nil }

// advance gives a job what it can have: its next handlers, a position in the line for a
// place, or rest. Every change to a job ends with it. mu is held.
func (e *Executor) advance(j *job) {
	for !j.waiting && j.mayStart() {
		if !e.placeFree() {
			j.waiting = true
			e.ready.push(j)
			return
		}
		e.start(j)
	}
	if !j.waiting && !j.busy() {
		j.origin.rest(j)
	}
}

// start gives the job's first waiting run a place, and has its handler called. mu is held.
func (e *Executor) start(j *job) {
	r := j.queue.pop()
	e.queued--
	j.running = append(j.running, r)
	e.active++
	e.taken++
	r.holds = true
	if r.limit != nil {
		r.setLimit()
	}
	e.callSoon(r)
}

// hasRoomBeside reports whether one more run like the last of the job would begin at once,
// beside others. mu is held.
func (e *Executor) hasRoomBeside(j *job) bool {
	if len(j.running) == 0 || j.queue.n > 0 || !e.placeFree() {
		return false
	}
	last := j.running[len(j.running)-1]
	return last.most != 1 && j.hasRoomFor(int(last.most))
}

// fill gives free places to the jobs that wait for one. mu is held.
func (e *Executor) fill() {
	for e.taken < e.cfg.Places && e.ready.head != nil {
		j := e.ready.pop()
		j.waiting = false
		if j.mayStart() { // what waited may have been killed meanwhile
			e.start(j)
		}
		e.advance(j)
	}
}

// runList is a queue of runs, linked through run.next.
type runList struct {
	head, tail *run
	n          int
}

func (l *runList) push(r *run) {
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
	l.n++
}

// pop takes the first run. The list must not be empty.
func (l *runList) pop() *run {
	r := l.head
	l.remove(nil, r)
	return r
}

// remove takes r, which follows prev (nil for the first).
func (l *runList) remove(prev, r *run) {
	if prev == nil {
		l.head = r.next
	} else {
		prev.next = r.next
	}
	if l.tail == r {
		l.tail = prev
	}
	r.next = nil
	l.n--
}

// drop takes r wherever it is and reports whether it was there.
func (l *runList) drop(r *run) bool {
	for prev, at := (*run)(nil), l.head; at != nil; prev, at = at, at.next {
		if at == r {
			l.remove(prev, r)
			return true
		}
	}
	return false
}

// jobList is a queue of jobs, linked through job.next.
type jobList struct{ head, tail *job }

func (l *jobList) push(j *job) {
	if l.tail == nil {
		l.head = j
	} else {
		l.tail.next = j
	}
	l.tail = j
}

// pop takes the first job. The list must not be empty.
func (l *jobList) pop() *job {
	j := l.head
	if l.head = j.next; l.head == nil {
		l.tail = nil
	}
	j.next = nil
	return j
}
