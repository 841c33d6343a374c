package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// Routing strategies that this node does not have, of services that share its store. Input: due runs of
// their jobs, and questions of other nodes about those that this node has. Output: an address that a
// node which has the strategy has chosen; or the run waits until there is such a node.

const (
	// RouterWait is for how long a run waits for a node that knows its job's routing strategy. Then
	// it ends as refused.
	RouterWait = time.Hour
	// routerPause is how often those that wait are tried again; what a look at the nodes shows has them
	// tried at once, and so has another run of their job, newRunPause after the last try.
	routerPause = 5 * time.Second
	newRunPause = 500 * time.Millisecond
	// askPatience is how long other nodes have for their answer, beside a call of the store or a LeaseTTL.
	askPatience = 2 * time.Second
	// askNext is after how long without an answer the next one is asked as well.
	askNext = time.Second
	// mostQuestions bounds the questions of other nodes that are being answered.
	mostQuestions = 100
	// questionKept is how long stores keep a question.
	questionKept = time.Minute
)

// missing has since when nobody has told a choice of a strategy, by its name and by app, on this
// process's own clock, and when a run of a job has waited for one last, by the store's. It is safe for
// concurrent use.
type missing struct {
	mu    sync.Mutex
	since map[[2]string]time.Time // guarded by mu
	last  map[int64]time.Time     // guarded by mu
}

// add notes that a choice is missing now, and returns since when.
func (m *missing) add(job *store.Job) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since == nil || len(m.since) > 1000 {
		m.since = map[[2]string]time.Time{}
	}
	key := [2]string{job.Route, job.App}
	if _, known := m.since[key]; !known {
		m.since[key] = time.Now()
	}
	return m.since[key]
}

// waits notes that a run of the job waits for a choice now.
func (m *missing) waits(jobID int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil || len(m.last) > 10_000 {
		m.last = map[int64]time.Time{}
	}
	m.last[jobID] = now
}

// told notes that somebody has told a choice.
func (m *missing) told(job *store.Job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.since, [2]string{job.Route, job.App})
	delete(m.last, job.ID)
}

// lastOf is when a run of the job has waited for a choice last, unless one was told since; zero for never.
func (m *missing) lastOf(jobID int64) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[jobID]
}

// unknownRouter is why a run waits. One that is new, where others of its job wait, has them all tried
// soon: it is to wait for no pause of theirs. One that is over was cancelled, and is still in memory.
type unknownRouter struct {
	job           *store.Job
	isNew, isOver bool
	queue.Unanswered
}

func (e *unknownRouter) Error() string { return e.Why }

// seen is that as it is told.
func (e *unknownRouter) seen() store.Seen {
	seen := store.Seen{What: store.SeenRouterWaits, Names: e.Route, For: RouterWait, Said: e.Said}
	if e.Said != "" {
		seen.What = store.SeenRouterSilent
	}
	return seen
}

// near is how near this node is to the app of a run, as to where the run's strategy is asked.
func (ro *userRouters) near(key routerKey) lease.Nearness {
	switch {
	case ro.Cfg.Routers[key.route] == nil:
		return lease.Lacks
	case route.Valid(key.route) || ro.attached.Get(key.app) != nil: // nodes tell no strategies with a name of XXL-JOB's
		return lease.Attaches
	}
	return lease.Knows
}

// unknown says why nobody can be asked about a run now; nil where somebody can. A run that comes later
// than those that wait already goes with them, in their order.
func (ro *Router) unknown(en *queue.Entry, job *store.Job) *unknownRouter {
	near, seen := ro.Asks.near(routerOf(job)), ro.Leases.Changes()
	if near == lease.Lacks && len(ro.Leases.Knowing(job.Route, job.App, job.ID, near)) == 0 {
		return &unknownRouter{job: job, Unanswered: queue.Unanswered{Route: job.Route, Why: "no live node has the routing strategy " + job.Route, Seen: seen}}
	}
	if en.Choice == nil && ro.Lookup.Queue.Due.Waits(queue.ForRouter(job.ID)) {
		return &unknownRouter{job: job, isNew: true}
	}
	return nil
}

// awaitRouter has a run wait, or ends it where that was for too long: its own time and that of the
// strategy are over, so that a node which comes up after an outage does not refuse what waited for it.
func (ro *Router) awaitRouter(en *queue.Entry, job *store.Job, lack *unknownRouter) (queue.Routed, error) {
	if lack.isNew {
		return queue.Routed{}, lack
	}
	now, run := ro.Clock.Now(), store.Run{}
	en.Run.Fill(&run)
	if lack.isOver = core.MustNotStart(&run, job); !lack.isOver {
		ro.missing.waits(job.ID, now)
	}
	if time.Since(ro.missing.add(job)) >= RouterWait && now.Sub(run.Scheduled) >= RouterWait {
		return queue.Routed{Unknown: true, Refused: fmt.Sprintf("%s, and the run has waited for one for %v", lack.Why, RouterWait)}, nil
	}
	return queue.Routed{}, lack
}

// parkUnknown has a run wait for a node that knows its strategy.
func (u *ParkedLookups) parkUnknown(en *queue.Entry, lack *unknownRouter) {
	at := queue.ForRouter(lack.job.ID)
	en.Choice = queue.NoChoice()
	u.Queue.Due.ParkFirst(at, en)
	switch {
	case lack.isNew:
		u.newWaits(lack.job.ID)
		return
	case !lack.isOver:
		u.toSay(lack.job.ID, troubleOfRouter(lack.job.App, lack.job.ID, lack.seen()))
	}
	u.tries.failed(lack.job.ID)
	if u.Leases.Changes() != lack.Seen { // who knows it may have come meanwhile
		u.again = append(u.again, at)
		return
	}
	if u.looks.CompareAndSwap(false, true) {
		u.Life.Loops.Plan.Try(func(ctx context.Context) {
			if loop.Sleep(ctx, routerPause) {
				u.looks.Store(false)
				u.Queue.LookForRouters()
			}
		})
	}
}

// newWaits has those of a job that wait for a node which knows their strategy tried again, since one of
// them is new: once all of the batch are routed, or when it is long enough since they were tried last.
func (u *ParkedLookups) newWaits(jobID int64) {
	u.toSay(jobID, u.unknown[jobID])
	at := queue.ForRouter(jobID)
	switch now, first := u.tries.next(jobID); {
	case now:
		u.again = append(u.again, at)
	case first:
		u.Life.Loops.Plan.Try(u.tryThoseDue)
	}
}

// tryThoseDue has those of each job tried again when it is long enough since they were, until there are none.
func (u *ParkedLookups) tryThoseDue(ctx context.Context) {
	for more := true; more && loop.Sleep(ctx, newRunPause/10); {
		var jobs []int64
		jobs, more = u.tries.begin()
		for _, id := range jobs {
			u.Queue.Due.AdmitAll(queue.ForRouter(id))
		}
	}
}

// toSay notes what is to be said once all of the batch are routed.
func (u *ParkedLookups) toSay(jobID int64, x store.Trouble) {
	if u.unknown == nil {
		u.unknown = map[int64]store.Trouble{}
	}
	u.unknown[jobID] = x
}

// AllRouted is called when all of a batch are routed. It says what is late of jobs whose strategy nobody
// tells, and has those tried again that need not wait for a pause: so the new ones among them go on
// with those that came before, in their order. behind are jobs of which new runs wait behind these.
func (u *ParkedLookups) AllRouted(behind []int64) {
	for _, id := range behind {
		u.newWaits(id)
	}
	for id, x := range u.unknown {
		if x.Cause == "" { // all of them are new, and it was said before, if it was
			known := u.Core.Troubles.Of(store.TroubleUnknownRouter)
			i := slices.IndexFunc(known, func(k store.Trouble) bool { return k.JobID == id })
			if i < 0 {
				continue
			}
			x = known[i]
		}
		if x.Late = u.Queue.LateByRouter(id); x.Late == 0 {
			continue // what waits is over
		}
		u.Core.Troubles.SawLate(store.TroubleUnknownRouter, u.Clock.Now(), refusedKept, x)
	}
	clear(u.unknown)
	for _, at := range u.again {
		u.Queue.Due.AdmitAll(at)
	}
	u.again = u.again[:0]
}

// tries are when nobody could tell where runs of a job go: a new run has those that wait tried again no
// sooner than newRunPause after that, however many come. It is safe for concurrent use.
type tries struct {
	mu   sync.Mutex
	last map[int64]time.Time // guarded by mu: by job, when a try has failed last
	due  map[int64]time.Time // guarded by mu: by job, when the next is made for a new run that waits for it
	made bool                // guarded by mu: somebody makes those
}

// triesKept bounds of how many jobs that is known. The new runs of others are tried at once, or with those
// that wait for routerPause.
const triesKept = 10_000

// failed notes that one has.
func (t *tries) failed(jobID int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || len(t.last) > triesKept {
		t.last = map[int64]time.Time{}
	}
	t.last[jobID] = time.Now()
}

// next reports whether the next one may be made now. It is made later otherwise; first says that nobody makes
// such yet.
func (t *tries) next(jobID int64) (now, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, tried := t.last[jobID]
	if _, waits := t.due[jobID]; !waits && (!tried || time.Since(last) >= newRunPause) {
		return true, false
	}
	if t.due == nil {
		t.due = map[int64]time.Time{}
	}
	if len(t.due) < triesKept {
		t.due[jobID] = last.Add(newRunPause)
	}
	first, t.made = !t.made, true
	return false, first
}

// begin takes the jobs of which one is to be made now. It reports whether there are more: where not, nobody
// makes such any more.
func (t *tries) begin() (jobs []int64, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, at := range t.due {
		if !time.Now().Before(at) {
			jobs = append(jobs, id)
			delete(t.due, id)
		}
	}
	t.made = len(t.due) > 0
	return jobs, t.made
}

func troubleOfRouter(app string, jobID int64, seen store.Seen) store.Trouble {
	return store.Trouble{
		Cause: store.TroubleUnknownRouter, App: app, JobID: jobID, Seen: seen,
		Remedy: "start a node that has this routing strategy in its Config.Routers, or correct the job's",
	}
}

// askElsewhere asks other nodes about a run, beside the start loop. Caller holds mu.
func (ro *userRouters) askElsewhere(q *routeQueue, c *routeCall, near lease.Nearness) {
	w := c.about
	ro.Life.Loops.Plan.Try(func(ctx context.Context) { // once Stop has begun the runs stay planned
		choice, seen := &queue.RouteChoice{Version: w.version}, ro.Leases.Changes()
		switch a, err := ro.askInTurn(ctx, q.key, near, store.Ask{Run: store.Run{ID: w.key.RunID}, Route: q.key.route, Addresses: w.addrs}); {
		case errors.Is(err, errNoneKnows):
			choice.Nobody = &queue.Unanswered{Route: q.key.route, Why: "no live node has the routing strategy " + q.key.route, Seen: seen}
		case err != nil:
			choice.Nobody = &queue.Unanswered{Route: q.key.route, Said: err.Error(), Why: fmt.Sprintf("no node with the routing strategy %s answers: %v", q.key.route, err), Seen: seen}
		case a.Refusal != "":
			choice.Refused = a.Refusal
		default:
			choice.Chosen, choice.Refused = picked(q.key.route, []string{a.Content}, w.addrs)
		}
		ro.routeAnswered(q, c, choice)
	})
}

// errNoneKnows: no live node has the strategy.
var errNoneKnows = errors.New("xxljob: no live node has the routing strategy")

// askInTurn asks one node that knows a strategy, and after a moment without an answer another one as
// well, since the first may be dead or its router may hang: those that are there by then. What comes
// first is the answer.
func (ro *userRouters) askInTurn(ctx context.Context, key routerKey, near lease.Nearness, ask store.Ask) (store.Answer, error) {
	patience := ro.patience()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers, asked, under, failed := make(chan nodeAnswer), map[string]bool{}, 0, errNoneKnows
	for {
		nodes := ro.Leases.Knowing(key.route, key.app, key.jobID, near)
		if i := slices.IndexFunc(nodes, func(inc string) bool { return !asked[inc] }); i >= 0 {
			ask.Incarnation = nodes[i]
			asked[nodes[i]], under = true, under+1
			ask := ask
			ro.Life.Loops.Plan.Run(func(context.Context) {
				a, err := ro.Ask(ctx, ask)
				select {
				case answers <- nodeAnswer{a, err}:
				case <-ctx.Done():
				}
			})
		} else if under == 0 {
			return store.Answer{}, failed
		}
		select {
		case a := <-answers:
			if a.err == nil {
				return a.Answer, nil
			}
			under, failed = under-1, a.err
		case <-time.After(askNext):
		case <-ctx.Done():
			return store.Answer{}, fmt.Errorf("nothing has come within %v", patience)
		}
	}
}

// patience is for how long other nodes are waited for.
func (ro *userRouters) patience() time.Duration {
	return min(loop.CallTimeout, ro.Cfg.Cluster.LeaseTTL) + askPatience
}

// nodeAnswer is what has come of a question.
type nodeAnswer struct {
	store.Answer
	err error
}

// questions are those of other nodes. All of it is guarded by userRouters.mu.
type questions struct {
	open int
	left bool // one was left in the inbox for want of room
	// seen are those that were taken on this minute, and former those of the minute before: what was
	// answered may be in an inbox that was read before that.
	seen, former map[int64]bool
	since        time.Time
}

// begin takes on a question, unless it was before or there is no room.
func (a *questions) begin(id int64, now time.Time) bool {
	if a.seen == nil || now.Sub(a.since) >= questionKept {
		a.seen, a.former, a.since = map[int64]bool{}, a.seen, now
	}
	if a.seen[id] || a.former[id] {
		return false
	}
	if a.open >= mostQuestions {
		a.left = true
		return false
	}
	a.seen[id] = true
	a.open++
	return true
}

// end is done with one, and reports whether others wait for its room.
func (a *questions) end() bool {
	left := a.left
	a.open, a.left = a.open-1, false
	return left
}

// AnswerRoutes has questions of other nodes answered as runs of this node are: in their order, by one
// call of a router and job at once. What there is no room for stays in the inbox; and so does all once
// Stop has begun, so that another node is asked.
func (ro *userRouters) AnswerRoutes(asks []store.Ask) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	for _, ask := range asks {
		if ro.Cfg.Routers[ask.Route] == nil || ro.Life.Loops.Plan.Ctx.Err() != nil || !ro.asked.begin(ask.ID, time.Now()) {
			continue
		}
		w := &routeWait{key: timering.Key{At: ask.Run.Scheduled.UnixMilli(), RunID: ask.Run.ID}, addrs: ask.Addresses, since: time.Now(), asked: true}
		w.goOn = func() { ro.answer(ask.ID, w.choice) }
		ro.wait(routerKey{ask.Route, ask.Run.App, ask.Run.JobID}, w)
	}
}

// answer tells another node what was chosen. Caller holds mu.
func (ro *userRouters) answer(id int64, choice *queue.RouteChoice) {
	a := store.Answer{Refusal: choice.Refused, IsEnd: true}
	if a.Refusal == "" {
		a.Content = choice.Chosen[0]
	}
	ro.Life.Loops.Work.Try(func(ctx context.Context) {
		kept, cancel := context.WithTimeout(ctx, questionKept)
		defer cancel()
		backoff := loop.Backoff{Log: ro.Logger, What: "telling another node where a run goes"}
		tell := func(ctx context.Context) (struct{}, error) { return struct{}{}, ro.Store.AnswerLog(ctx, id, a) }
		_, _ = loop.CallUntil(kept, &backoff, tell, tell)
		ro.mu.Lock()
		defer ro.mu.Unlock()
		ro.Life.Wakes.Inbox.PokeIf(ro.asked.end())
	})
}
