package xxljob

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/wire"
)

// engine is what a node holds in memory: planned runs of its shards, runs that
// are under way, and the jobs they belong to. All of it can be read again from
// the store. Its methods do not call the store, and hold mu only for moments. They wake the
// start loop where something may start now that could not before.
type engine struct {
	cfg    *Config
	clock  *clock
	leases *leases
	lead   lead
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
		cfg: cfg, clock: s.clock, leases: s.leases, wakes: s.wakes, ring: newHeldRing(cfg, panics),
		held: map[int64]*entry{}, apps: map[string]*holding{},
		jobs: map[int64]*jobRef{}, dueTimes: newDueTimes(), due: newTurns(), lots: lots{}, routes: map[routerKey]*routeQueue{},
		lanes:  newLanes(cfg.Limits.FastLane, cfg.Limits.SlowLane),
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

// holding is what a node holds of one app.
type holding struct {
	n int
	// bounded says that runs behind the horizon are in the store only.
	bounded bool
	horizon ringEntry
}

// job returns what is known of a job, nil when nothing is.
func (e *engine) job(id int64) *Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ref := e.jobs[id]; ref != nil && !ref.stale {
		return ref.job
	}
	return nil
}

// jobGone notes that a job was removed; its runs were cancelled with it.
func (e *engine) jobGone(id int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ref := e.jobs[id]; ref != nil {
		ref.gone = true
	}
}

// refreshRuns is entry.refresh for those of the runs that are held.
func (e *engine) refreshRuns(runs []Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range runs {
		if en := e.held[runs[i].ID]; en != nil {
			en.refresh(&runs[i])
		}
	}
}

// isSerial reports whether a job is known to be a serial one.
func (e *engine) isSerial(jobID int64) bool {
	ref := e.jobs[jobID]
	return ref != nil && ref.job.Block == block.SerialExecution
}
