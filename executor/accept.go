package executor

// Whether a run is accepted. Comes in: requests, each of the admin (origin) that it is from.
// Goes out: runs, to job.go, and what is known of runs that have been here, so that none is run
// twice.

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/idmap"
	"github.com/xxljob/xxljob/wire"
)

// Refusals of our own.
const (
	msgStopping   = "executor is stopping."
	msgNotStarted = "executor is not started."
	msgQueueFull  = "job queue is full: %d runs of job %d wait."
	msgBacklog    = "executor is full: %d handlers running, %d runs waiting."
	msgOutbox     = "executor is full: %d results are running or wait for the admin."
	msgSpool      = "executor is full: %d bytes of results wait on disk for the admin."
)

// Run accepts a run or refuses it, at once; it never waits for the handler. The
// error is always nil, and ctx is not used: a handler's context outlives the
// request. Answers, in the order they are decided:
//
//   - 200 wire.MsgRepeat: it waits or runs. Runs with the same id and another
//     LogDateTime are other runs; one without a date is whichever has the id;
//   - 200 wire.MsgRepeatEnded: it ended within Config.KeepFinished, or its result is
//     not delivered yet;
//   - 500 wire.MsgWithdrawn: IdleBeat has said that it is not known, within
//     Config.KeepFinished or ten minutes, and this is no later start of it;
//   - 500 wire.MsgForgotten: it is sent again, and may have ended before that;
//   - 500: the executor is stopping;
//   - 500 wire.MsgGlueType, wire.MsgHandlerNotFound: it cannot be run here;
//   - 500 block.MsgDiscard: the strategy is DISCARD_LATER, and an earlier run of the job runs
//     or waits;
//   - 500 block.MsgCover: the strategy is COVER_EARLY, and a later run of the job runs or waits;
//   - 500: one of the bounds of Config is reached;
//   - 200 wire.MsgSuccess: its result will be delivered.
func (e *Executor) Run(_ context.Context, req wire.TriggerRequest) (wire.Return, error) {
	return e.accept(e.local, &req), nil
}

// runAtOnce is how many runs are accepted while others wait for Executor.mu.
const runAtOnce = 16

// RunAll is Run for several requests, in their order, and costs less than as many calls. It
// returns dst with the answers appended, one for each request. What Run says of its error, of
// ctx and of waiting is true of RunAll as well. The requests may be changed when it has
// returned.
func (e *Executor) RunAll(_ context.Context, dst []wire.Return, reqs []wire.TriggerRequest) []wire.Return {
	for some := range slices.Chunk(reqs, runAtOnce) {
		dst = e.acceptAll(e.local, dst, some)
	}
	return dst
}

// acceptAll is accept for several requests.
func (e *Executor) acceptAll(o *origin, dst []wire.Return, reqs []wire.TriggerRequest) []wire.Return {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range reqs {
		dst = append(dst, e.admit(o, &reqs[i], now))
	}
	return dst
}

// accept is Run for one origin.
func (e *Executor) accept(o *origin, req *wire.TriggerRequest) wire.Return {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.admit(o, req, now)
}

// admit is accept when mu is held.
func (e *Executor) admit(o *origin, req *wire.TriggerRequest, now time.Time) wire.Return {
	k := idOf(req)
	runs, owed := o.known(k)
	if runs {
		return wire.Noted(wire.MsgRepeat, req.LogID)
	}
	if owed || o.recent.has(k, now) {
		return wire.Noted(wire.MsgRepeatEnded, req.LogID)
	}
	if o.withdrawn.has(k, req.StartToken, now) {
		return wire.Failf(wire.MsgWithdrawn, req.LogID)
	}
	// Before any other refusal: they say that the run has not been here.
	if req.AgainAfter > 0 && o.recent.forgets(sentBefore(req.AgainAfter, now)) {
		return wire.Failf(wire.MsgForgotten, req.LogID)
	}
	if refusal, ok := e.takesRuns(o); !ok {
		return refusal
	}
	if req.GlueType != "" && req.GlueType != wire.GlueBean {
		return wire.Failf(wire.MsgGlueType, req.GlueType)
	}
	h := e.handlers[req.ExecutorHandler]
	if h == nil {
		return wire.Failf(wire.MsgHandlerNotFound, req.ExecutorHandler)
	}
	j := o.jobs[req.JobID]
	busy := j.busy()
	if blockrule.Of(req.ExecutorBlockStrategy).SideBySide {
		busy = !j.takes(sideBySide(req))
	}
	action := block.Decide(req.ExecutorBlockStrategy, busy)
	switch {
	case action == block.Discard && j.hasEarlier(req):
		return wire.Failf(block.MsgDiscard)
	case action == block.Discard:
		action = block.Queue // those that are under way came first, and are the later ones
	case action == block.Cover && j.hasLater(req):
		return wire.Failf(block.MsgCover)
	}
	if refusal, full := e.full(o, j, req.JobID, action, busy); full {
		return refusal
	}
	if j == nil {
		j = o.job(req.JobID)
	}
	if action == block.Cover {
		e.stopJob(j, block.MsgCover, ErrCovered)
	}
	r := newRun(e, h, j, req, now)
	o.runs.put(r.id, r)
	o.out.owed.Add(1)
	j.push(r)
	e.queued++
	e.advance(j)
	return wire.Success()
}

// agoMargin is how much earlier than it says something is taken to have been sent: a
// request is on its way for a while.
const agoMargin = time.Second

// sentBefore is when something was sent that is said to have been sent so many
// milliseconds ago, or a little earlier.
func sentBefore(ms int64, now time.Time) time.Time {
	ago := time.Duration(min(max(ms, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	return now.Add(-ago).Add(-agoMargin)
}

// takesRuns reports whether runs of an origin are taken at all, or else why not.
// mu is held.
func (e *Executor) takesRuns(o *origin) (wire.Return, bool) {
	switch {
	case e.stopping:
		return wire.Failf(msgStopping), false
	case o.remote() && !e.started: // its results would have nowhere to go
		return wire.Failf(msgNotStarted), false
	}
	return wire.Return{}, true
}

// full reports whether one more run of j would break a bound, before anything is
// changed for it. mu is held.
func (e *Executor) full(o *origin, j *job, id int64, action block.Action, busy bool) (wire.Return, bool) {
	if owed := o.out.owed.Load(); owed >= int64(e.cfg.Outbox) {
		return wire.Failf(msgOutbox, owed), true
	}
	if size, full := o.out.diskFull(); full {
		return wire.Failf(msgSpool, size), true
	}
	waiting := e.queued
	if action == block.Cover {
		waiting -= j.queue.n // they make room for the new one
	} else if j != nil && j.queue.n >= e.cfg.Queue {
		return wire.Failf(msgQueueFull, j.queue.n, id), true
	}
	if waits := busy || !e.placeFree(); waits && waiting >= e.cfg.Backlog {
		return wire.Failf(msgBacklog, e.taken, e.queued), true
	}
	return wire.Return{}, false
}

// origin is one admin that this executor works for: the scheduler in the same
// process, or one AdminCluster. Ids of runs and jobs are each admin's own and
// collide, so whatever is known by an id is known per origin. Handlers, places
// and the backlog are shared by all.
type origin struct {
	name string    // the cluster's, "" for the one within the process
	exec *Executor // set by New
	out  *outbox   // set by New, has its own lock, which may be taken under Executor.mu
	logs logStore  // set by New, has its own lock

	// Of clusters only; set by New.
	cluster *cluster
	tokens  []string // the access tokens that it may show; may be none

	// Guarded by Executor.mu.
	jobs      map[int64]*job // jobs that run or wait, and some that have
	runs      byRun[*run]    // accepted runs without a result, and nil for those whose result no admin has
	recent    recent         // runs with a result
	withdrawn withdrawn      // starts that are refused should they arrive
}

func newOrigin(cfg Config, name string, logs logStore, limit batchLimit) *origin {
	o := &origin{
		name:      name,
		out:       newOutbox(cfg, limit),
		logs:      logs,
		jobs:      make(map[int64]*job),
		recent:    newRecent(cfg.KeepFinished, cfg.KeepFinishedMax),
		withdrawn: newWithdrawn(cfg.KeepFinished, cfg.KeepFinishedMax),
	}
	o.out.settled = o.forget
	return o
}

// known reports whether a request means a run that waits or runs, and whether it means one
// that has ended and whose result is not delivered. Executor.mu is held.
func (o *origin) known(k runID) (runs, owed bool) {
	head, ok := o.runs.head(k.id)
	for at := &head; ok && at != nil; at = at.next {
		if k.is(runID{k.id, at.date}) {
			runs, owed = runs || at.val != nil, owed || at.val == nil
		}
	}
	return runs, owed
}

// forgetAtOnce is how many runs are forgotten while others wait for Executor.mu.
const forgetAtOnce = 100

// forget ends what is known of runs whose results are delivered, or will never be.
func (o *origin) forget(runs []runID) {
	for some := range slices.Chunk(runs, forgetAtOnce) {
		o.exec.mu.Lock()
		for _, k := range some {
			if r, ok := o.runs.exactly(k); ok && r == nil {
				o.runs.drop(k)
			}
		}
		o.exec.mu.Unlock()
	}
}

// remote reports whether the origin is an admin outside of this process.
func (o *origin) remote() bool { return o.cluster != nil }

// addOrigin makes the origin of one cluster.
func (e *Executor) addOrigin(a AdminCluster, c *cluster) error {
	logs, err := e.local.logs.of(e.cfg, a.Name)
	if err != nil {
		return err
	}
	cfg := e.cfg
	cfg.Logger = cfg.Logger.With("admin", a.Name)
	o := newOrigin(cfg, a.Name, logs, clusterBatch)
	o.exec, o.cluster, o.tokens = e, c, e.cfg.tokensOf(a)
	e.origins = append(e.origins, o)
	return nil
}

// runID is the identity of a run of one admin. An admin whose database begins its ids
// anew, or a scheduler that keeps its runs in memory, gives an id twice: the date, which
// is when the run was made, tells the two runs apart. A request that carries no date
// means whichever run has the id.
type runID struct {
	id   int64 // the protocol's logId
	date int64 // the protocol's logDateTime in ms, 0 where it is missing
}

func idOf(req *wire.TriggerRequest) runID { return runID{req.LogID, req.LogDateTime} }

// is reports whether two requests may mean one run.
func (a runID) is(b runID) bool {
	return a.id == b.id && (a.date == b.date || a.date == 0 || b.date == 0)
}

// isAsked reports whether a log request of that date may mean the run: Java admins ask
// for whole seconds, cut off or, where their database has rounded, up to half a second
// too late.
func (a runID) isAsked(asked int64) bool {
	switch {
	case asked == 0 || a.date == 0 || asked == a.date:
		return true
	case asked%1000 != 0:
		return false
	}
	return secondOf(a.date) == asked/1000 || secondOf(a.date+roundedUp) == asked/1000
}

// roundedUp is how much later a date may be that a database has rounded, in ms.
const roundedUp = 500

// secondOf is the second that a date lies in.
func secondOf(ms int64) int64 {
	s := ms / 1000
	if ms%1000 < 0 {
		s--
	}
	return s
}

// instant is a date of the protocol as a time, and false where it is missing or beyond
// the years that have four digits: nobody means such a date.
func instant(ms int64) (time.Time, bool) {
	const year10000 = 253402300800000
	return time.UnixMilli(ms), ms > 0 && ms < year10000
}

// byRun holds something for each of some runs. Nearly always an id is there once; those
// that are there with several dates are linked. The zero value is empty.
type byRun[T any] struct {
	heads idmap.Map[dated[T]]
	n     int // runs

	// All ids lie within these two. Most schedulers count their runs, so that a new one is
	// beyond them, and known to be new without a look into the map.
	least, greatest int64
}

type dated[T any] struct {
	date int64
	val  T
	next *dated[T]
}

// head returns the last put with an id.
func (b *byRun[T]) head(id int64) (dated[T], bool) {
	if b.n == 0 || id < b.least || id > b.greatest {
		return dated[T]{}, false
	}
	return b.heads.Get(id)
}

// find returns what is held for the run that a request means: the one with its date, or
// else the last put with its id where one of both has no date.
func (b *byRun[T]) find(k runID) (val T, found bool) {
	head, ok := b.head(k.id)
	if !ok {
		return val, false
	}
	for at := &head; at != nil; at = at.next {
		if at.date == k.date {
			return at.val, true
		}
		if !found && k.is(runID{k.id, at.date}) {
			val, found = at.val, true
		}
	}
	return val, found
}

// exactly returns what is held for exactly this id and date.
func (b *byRun[T]) exactly(k runID) (val T, found bool) {
	head, ok := b.head(k.id)
	for at := &head; ok && at != nil; at = at.next {
		if at.date == k.date {
			return at.val, true
		}
	}
	return val, false
}

// all returns what is held under an id, whatever the date, the last put first.
func (b *byRun[T]) all(id int64) (vals []T) {
	head, ok := b.head(id)
	for at := &head; ok && at != nil; at = at.next {
		vals = append(vals, at.val)
	}
	return vals
}

// put holds val for exactly this id and date.
func (b *byRun[T]) put(k runID, val T) {
	n := dated[T]{date: k.date, val: val}
	if _, ok := b.head(k.id); ok {
		b.drop(k)
		if head, ok := b.head(k.id); ok {
			n.next = new(dated[T])
			*n.next = head
		}
	}
	if b.n == 0 {
		b.least, b.greatest = k.id, k.id
	}
	b.least, b.greatest = min(b.least, k.id), max(b.greatest, k.id)
	b.heads.Set(k.id, n)
	b.n++
}

// change puts val in the place of what is held for exactly this id and date, if there is
// anything.
func (b *byRun[T]) change(k runID, val T) {
	head, ok := b.head(k.id)
	switch {
	case !ok:
		return
	case head.date == k.date:
		head.val = val
		b.heads.Set(k.id, head)
		return
	}
	for at := head.next; at != nil; at = at.next { // these are shared with the map
		if at.date == k.date {
			at.val = val
			return
		}
	}
}

// drop forgets exactly this id and date.
func (b *byRun[T]) drop(k runID) {
	head, ok := b.head(k.id)
	if !ok {
		return
	}
	if head.date == k.date {
		b.n--
		if head.next == nil {
			b.heads.Delete(k.id)
		} else {
			b.heads.Set(k.id, *head.next)
		}
		return
	}
	for at := &head; at.next != nil; at = at.next {
		if at.next.date != k.date {
			continue
		}
		at.next = at.next.next
		b.heads.Set(k.id, head) // its own link may be the changed one
		b.n--
		return
	}
}

// generations keep something of runs for a while, in two generations: what is new goes
// to the young one, and when that is old enough it becomes the old one, and what the old
// one had is forgotten. Nothing needs a timestamp or a deletion of its own. They are
// guarded by Executor.mu.
type generations[T any] struct {
	keep       time.Duration
	young, old byRun[T]
	since      time.Time // when young was begun
	lostBefore time.Time // what is from before may be forgotten, what came later is not; zero while nothing is
}

// find returns what is kept for a run.
func (g *generations[T]) find(k runID, now time.Time) (T, bool) {
	g.age(now)
	if val, ok := g.young.find(k); ok {
		return val, true
	}
	return g.old.find(k)
}

// age forgets what is too old, with its memory.
func (g *generations[T]) age(now time.Time) {
	switch old := now.Sub(g.since); {
	case old >= 2*g.keep:
		g.turn()
		g.turn()
		g.since = now
	case old >= g.keep:
		g.turn()
	}
}

// turn makes the young generation, which has had its time, the old one.
func (g *generations[T]) turn() {
	if g.old.n > 0 {
		g.lostBefore = g.since
	}
	g.young, g.old = byRun[T]{}, g.young
	g.since = g.since.Add(g.keep) // not now, or the old ones would stay for longer
}

// recent remembers runs for a while.
type recent struct {
	generations[struct{}]
	max int // runs of one generation
}

// newRecent remembers runs for keep at least and less than twice as long, but no more
// than max of them, the last half as many always.
func newRecent(keep time.Duration, max int) recent {
	return recent{generations[struct{}]{keep: keep}, (max + 1) / 2}
}

func (g *recent) add(k runID, now time.Time) {
	g.age(now)
	if g.young.n >= g.max {
		g.turn()
		g.since = now
	}
	g.young.put(k, struct{}{})
}

func (g *recent) has(k runID, now time.Time) bool {
	_, ok := g.find(k, now)
	return ok
}

// forgets reports whether a run of that time, or of a later one, may be forgotten.
// It is asked after has.
func (g *recent) forgets(at time.Time) bool { return at.Before(g.lostBefore) }

// withdrawn are starts of runs that an admin was told are not known here. It may have
// started them anew since, elsewhere perhaps: should one still arrive, it is refused.
// They are guarded by Executor.mu.
//
// None is forgotten before its time, unlike ids of recent: where there is no room for one
// more the admin is told that the run may be forgotten, which promises nothing.
type withdrawn struct {
	generations[int64] // the greatest StartToken that is refused
	max                int
}

// withdrawnFor is how long a start is refused at least: longer than a request is on its
// way through a network that comes and goes. A late one does not say that it is late.
const withdrawnFor = 10 * time.Minute

// newWithdrawn refuses starts for keep, and withdrawnFor, at least, and no more than most
// of them.
func newWithdrawn(keep time.Duration, most int) withdrawn {
	return withdrawn{generations[int64]{keep: max(keep, withdrawnFor)}, most}
}

// add refuses a start and earlier ones of the same run from now on, and reports whether
// it can.
func (w *withdrawn) add(k runID, token int64, now time.Time) bool {
	before, _ := w.find(k, now)
	_, young := w.young.exactly(k)
	_, old := w.old.exactly(k)
	if !young && !old && w.young.n+w.old.n >= w.max {
		return false
	}
	w.young.put(k, max(token, before))
	return true
}

// has reports whether a start is refused. One without a token is of a scheduler that does
// not number starts. That it is no later one of the same run nobody can tell: so it is
// refused too, where the date leaves no doubt that it is the same run.
func (w *withdrawn) has(k runID, token int64, now time.Time) bool {
	w.age(now)
	return refuses(&w.young, k, token) || refuses(&w.old, k, token)
}

func refuses(b *byRun[int64], k runID, token int64) bool {
	last, known := b.find(k)
	switch {
	case !known:
		return false
	case token != 0:
		return token <= last
	}
	_, same := b.exactly(k)
	return k.date != 0 && same
}
