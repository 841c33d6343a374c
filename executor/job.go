package executor

// job is one job that runs or has runs waiting. It is made by the first run and
// forgotten with the last, so that jobs that are idle cost nothing. All fields are
// guarded by Executor.mu.
type job struct {
	origin  *origin // whose job it is
	id      int64
	running *run    // whose handler has not returned, nil for none or an abandoned one
	queue   runList // runs that wait for running, or for a place
	waiting bool    // it is in Executor.ready; running is nil then
	next    *job    // in Executor.ready
}

// busy reports whether the job runs or waits. A nil job does neither.
func (j *job) busy() bool { return j != nil && (j.running != nil || j.queue.n > 0) }

func (j *job) push(r *run) { j.queue.push(r) }

// placeFree reports whether a job may start now without overtaking another that
// waits for a place. mu is held.
func (e *Executor) placeFree() bool { return e.taken < e.cfg.Places && e.ready.head == nil }

// advance gives a job what it can have: its next handler, a position in the line for a
// place, or oblivion. Every change to a job ends with it. mu is held.
func (e *Executor) advance(j *job) {
	switch {
	case j.running != nil || j.waiting:
	case j.queue.n == 0:
		delete(j.origin.jobs, j.id)
	case e.placeFree():
		e.start(j)
	default:
		j.waiting = true
		e.ready.push(j)
	}
}

// fill gives free places to the jobs that wait for one. mu is held.
func (e *Executor) fill() {
	for e.taken < e.cfg.Places && e.ready.head != nil {
		j := e.ready.pop()
		j.waiting = false
		if j.queue.n == 0 { // what waited was killed meanwhile
			delete(j.origin.jobs, j.id)
			continue
		}
		e.start(j)
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
