package xxljob

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/wire"
)

// engine is what a node holds in memory: planned runs of its shards, runs that
// are under way, and the jobs they belong to. All of it can be read again from
// the store. Its methods do not call the store, and hold mu only for moments. They wake the
// start loop where something may start now that could not before.
type engine struct {
	cfg    *Config
	leases *leases
	wakes  wakes
	ring   heldRing
	// inboxFull is set while runs wait in the inbox for room here.
	inboxFull atomic.Bool

	mu       sync.Mutex
	held     map[int64]*entry    // planned runs: on the ring, due, parked or being started
	apps     map[string]*holding // what is held of each app
	jobs     map[int64]*jobRef   // of held runs and of flights
	dueTimes dueTimes            // when the ring has something due
	due      turns
	lots     lots
	round    int64                     // of those that are tried again: see apart.go
	routes   map[routerKey]*routeQueue // runs that wait for routers of the user's
	lanes    lanes
	freed    bool              // see hasFreed
	serial   map[lot]int64     // the run that is at an address, or about to be, for a serial job
	flights  map[int64]*flight // runs that this node runs
	landed   landings          // starts that were under way here and are over
	away     map[int64]awayRun // runs of other nodes whose end this node waits for
	transit  transit           // serial runs on their way to other nodes
	quiet    chan struct{}     // closed when flights is empty; nil while nobody asks
	waiters  map[int64][]chan Run
	tidied   int64 // the minute of the last tidy
}

// jobRef is a job in memory, with what is counted about it.
type jobRef struct {
	job   *Job // a snapshot: replaced, never changed
	stale bool // has to be read again before the next start
	gone  bool // was removed: its entries are dropped when they come up
	slow  slowness
	refs  int
}

// awayRun is a run at another node, with what its end makes free.
type awayRun struct {
	jobID   int64
	address string
	places  addressKey // a place at its address, where app is not empty
	serial  lot
}

// awayAt is a run at another node that has no places here.
func awayAt(r Run) awayRun { return awayRun{jobID: r.JobID, address: r.Address} }

// flight is a run that this node has started at a remote executor, or started at or
// taken for one of its own attached executors. At a remote one it ends with the
// executor's answer, and the run goes on without it.
type flight struct {
	run    Run
	job    *Job
	exec   wire.Executor
	remote bool
	fanned bool // a further part of a broadcast, at a remote executor
	lane   laneName
	key    addressKey
	serial lot  // of kind lotSerial when it is the serial run at its address
	counts bool // holds a place in lanes.running
	// acked is when the store acknowledged the start, on the monotonic clock.
	acked time.Time
	// choices are the further addresses of a probing route.
	choices []string
	sent    bool // guarded by engine.mu
	killed  bool // guarded by engine.mu: not to be sent any more
	// accepted is set when the executor has the run, kill when it is to be killed.
	accepted bool   // guarded by engine.mu
	kill     string // guarded by engine.mu
}

func newEngine(s *shared, panics *guard.Log) *engine {
	cfg := &s.cfg
	return &engine{
		cfg: cfg, leases: s.leases, wakes: s.wakes, ring: newHeldRing(cfg, panics),
		held: map[int64]*entry{}, apps: map[string]*holding{},
		jobs: map[int64]*jobRef{}, dueTimes: newDueTimes(), due: newTurns(), lots: lots{}, routes: map[routerKey]*routeQueue{},
		lanes:  newLanes(cfg.FastLane, cfg.SlowLane),
		serial: map[lot]int64{}, flights: map[int64]*flight{}, away: map[int64]awayRun{}, transit: transit{},
		waiters: map[int64][]chan Run{},
	}
}

// remember keeps the latest definition of a job that has runs in memory. One that the
// store has refused, and one of a job that was removed, give way to any other: a database
// that failed over may have forgotten an edit, or that the job was removed.
func (e *engine) remember(jobs map[int64]*Job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, j := range jobs {
		if ref := e.jobs[id]; ref != nil && (ref.stale || ref.gone || j.Version >= ref.job.Version) {
			ref.know(j)
		}
	}
}

// ref counts a use of the job, which may be nil where it is not known.
func (e *engine) ref(id int64, job *Job) {
	ref := e.jobs[id]
	switch {
	case ref == nil && job != nil:
		ref = &jobRef{job: job}
		e.jobs[id] = ref
	case ref == nil:
		ref = &jobRef{job: &Job{}, stale: true}
		e.jobs[id] = ref
	case job != nil && (ref.stale || ref.gone || job.Version > ref.job.Version):
		ref.know(job)
	case job == nil && ref.gone:
		ref.stale, ref.gone = true, false // who has runs may be there again
	}
	ref.refs++
}

// know takes a definition over from the store.
func (r *jobRef) know(j *Job) { r.job, r.stale, r.gone = j, false, false }

// unref gives a use back. A job that was slow is remembered until tidy.
func (e *engine) unref(id int64) {
	ref := e.jobs[id]
	if ref == nil {
		return
	}
	if ref.refs--; ref.refs <= 0 && ref.slow.count == 0 {
		delete(e.jobs, id)
	}
}

// tidy forgets, once a minute, jobs without runs whose slow minute is over.
func (e *engine) tidy(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if minute := now.Unix() / 60; minute != e.tidied {
		e.tidied = minute
	} else {
		return
	}
	for id, ref := range e.jobs {
		if ref.refs <= 0 && ref.slow.minute != now.Unix()/60 {
			delete(e.jobs, id)
		}
	}
}

// nextDue is when the ring has something due.
func (e *engine) nextDue() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ms, ok := e.dueTimes.next()
	return time.UnixMilli(ms), ok
}

// land frees what the run held, wherever it was.
func (e *engine) land(runID int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.landRun(runID)
}

// landStart is land for one start of a run: a later one that is under way here by now goes
// on.
func (e *engine) landStart(runID, token int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.flights[runID]; f == nil || token == 0 || f.run.Token == token {
		e.landRun(runID)
	}
}

// landRun is land with mu held.
func (e *engine) landRun(runID int64) {
	freed := e.landFlight(runID)
	freed = e.landAway(runID, lot{}) || freed
	e.wakes.start.pokeIf(freed)
	e.wakes.inbox.pokeIf(e.inboxFull.Load())
}

// landFlight frees what a run held that was under way here.
func (e *engine) landFlight(runID int64) (freed bool) {
	f := e.flights[runID]
	if f == nil {
		return false
	}
	delete(e.flights, runID)
	e.landed.add(f.run)
	e.unref(f.run.JobID)
	if f.counts {
		freed = e.admit(e.lanes.ended(f.key))
	}
	freed = e.freeSerial(f.serial, runID) || freed
	freed = e.admitAllOf(lot{kind: lotRun, runID: runID}) || freed
	if len(e.flights) == 0 && e.quiet != nil {
		close(e.quiet)
		e.quiet = nil
	}
	return freed
}

// landAway frees what a run at another node held, but for the lot kept.
func (e *engine) landAway(runID int64, kept lot) (freed bool) {
	a, ok := e.away[runID]
	if !ok {
		return false
	}
	delete(e.away, runID)
	freed = e.arrived(a.jobID, runID)
	if a.places.app != "" {
		freed = e.admit(e.lanes.ended(a.places)) || freed
	}
	if a.serial != kept {
		freed = e.freeSerial(a.serial, runID) || freed
	}
	return e.admitAllOf(lot{kind: lotRun, runID: runID}) || freed
}

// freeSerial gives up the place of a serial job's run at an address, and lets
// the next one in.
func (e *engine) freeSerial(at lot, runID int64) bool {
	if at.kind != lotSerial || e.serial[at] != runID {
		return false
	}
	delete(e.serial, at)
	return e.admit(at)
}

// takeSerial takes that place for a run; false when another run has it. One that has it
// and is not being started yet gives way to an earlier one.
func (e *engine) takeSerial(at lot, r *Run) bool {
	if at.kind != lotSerial {
		return true
	}
	if has := e.serial[at]; has != 0 && has != r.ID {
		if en := e.held[has]; en == nil || en.starting || !keyOfRun(r).before(keyOfRun(&en.run)) {
			return false
		}
	}
	e.serial[at] = r.ID
	return true
}

// admit moves the head of a lot to the due queue. At an address of
// a serial job it has the place from then on, and one that has waited for its turn
// counts as in transit, so that none overtakes it.
func (e *engine) admit(at lot) bool {
	en := e.lots.leave(at)
	if en == nil {
		return false
	}
	switch at.kind {
	case lotSerial:
		e.serial[at] = en.run.ID
	case lotOrder:
		e.transit.add(&en.run)
	default:
		en.from, en.waited = at, true
	}
	e.due.push(en)
	return true
}

// park makes an entry wait in a lot. If it came from another one, the room it
// was let in for goes to the next there. The later runs of a serial job do not wait for
// one that waits for room, but for one that waits to be told where to go.
func (e *engine) park(at lot, en *entry) {
	switch ahead := e.transit.has(&en.run); at.kind {
	case lotProbe, lotRoute, lotAsk, lotSettle:
		e.keepAhead(en)
	case lotOrder:
		e.transit.drop(en.run.JobID, en.run.ID)
	default:
		if ahead {
			e.arrived(en.run.JobID, en.run.ID)
		}
	}
	if en.from != at {
		e.letGoOn(en)
	}
	en.waited = false
	if !at.isRoom() && at.kind != lotAsk && at.kind != lotProbe && at.kind != lotRoute {
		// What it was told may be old when it goes on. One that is let in for room would lose
		// that by asking again.
		en.turned = false
	}
	e.lots.park(at, en)
}

// letGoOn gives the room that an entry was let in for, if it was, to the next.
func (e *engine) letGoOn(en *entry) {
	if en.waited && en.from.isRoom() {
		en.waited = false
		e.admit(en.from)
	}
	en.waited = false
}

// release forgets a held entry that will not start; what it had in its hands
// goes to the next.
func (e *engine) release(en *entry) {
	if e.held[en.run.ID] == en {
		e.unhold(en)
	}
	e.unkeep(en)
	e.letGoOn(en)
	f, flies := e.flights[en.run.ID]
	a, away := e.away[en.run.ID]
	// It was held by a stale reading where it is under way: that has its place then.
	if at := en.route.serial; !(flies && f.serial == at || away && a.serial == at) {
		e.freeSerial(at, en.run.ID)
	}
	if !away {
		e.arrived(en.run.JobID, en.run.ID)
	}
}

// idle waits until no run is under way in this process.
func (e *engine) idle(ctx context.Context) error {
	e.mu.Lock()
	if len(e.flights) == 0 {
		e.mu.Unlock()
		return nil
	}
	if e.quiet == nil {
		e.quiet = make(chan struct{})
	}
	quiet := e.quiet
	e.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dueTimes are the distinct milliseconds at which the ring has something due: a
// ring of the user's need not tell when its next entry is.
type dueTimes struct {
	set  map[int64]struct{}
	heap slot
}

func newDueTimes() dueTimes { return dueTimes{set: map[int64]struct{}{}} }

func (a *dueTimes) add(ms int64) {
	if _, ok := a.set[ms]; ok {
		return
	}
	a.set[ms] = struct{}{}
	a.heap.push(ringEntry{at: ms})
}

func (a *dueTimes) next() (int64, bool) {
	if len(a.heap) == 0 {
		return 0, false
	}
	return a.heap[0].at, true
}

func (a *dueTimes) popUpTo(ms int64) {
	for len(a.heap) > 0 && a.heap[0].at <= ms {
		delete(a.set, a.heap[0].at)
		a.heap.pop()
	}
}
