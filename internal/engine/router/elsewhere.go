package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// Routing strategies that this node does not have, of services that share its store. In: due runs of
// their jobs, and questions of other nodes about those that this node has. Out: an address that a
// node which has the strategy has chosen; or the run waits until there is such a node.

const (
	// RouterWait is for how long a run waits for a node that knows its job's routing strategy. Then
	// it ends as refused.
	RouterWait = time.Hour
	// routerPause is how often those that wait are tried again; what a look at the nodes shows, or
	// another run of their job, has them tried at once.
	routerPause = 5 * time.Second
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
// process's own clock. It is safe for concurrent use.
type missing struct {
	mu sync.Mutex
	of map[[2]string]lack // guarded by mu
}

// lack is when a choice was missing first, and last.
type lack struct{ since, last time.Time }

// add notes that a choice is missing now, and returns since when.
func (m *missing) add(job *store.Job) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil || len(m.of) > 1000 {
		m.of = map[[2]string]lack{}
	}
	key, now := [2]string{job.Route, job.App}, time.Now()
	l, known := m.of[key]
	if !known {
		l.since = now
	}
	l.last = now
	m.of[key] = l
	return l.since
}

// told notes that somebody has told a choice.
func (m *missing) told(job *store.Job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, [2]string{job.Route, job.App})
}

// isWithin reports whether a choice was missing that long ago or later.
func (m *missing) isWithin(job *store.Job, ago time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, known := m.of[[2]string{job.Route, job.App}]
	return known && time.Since(l.last) <= ago
}

// unknownRouter is why a run waits. One that is new, where others of its job wait, has them all tried
// now: it is to wait for no pause of theirs.
type unknownRouter struct {
	jobID int64
	isNew bool
	queue.Unanswered
}

func (e *unknownRouter) Error() string { return e.Why }

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
func (ro *Router) unknown(en *queue.Item, job *store.Job) *unknownRouter {
	near, seen := ro.Asks.near(routerOf(job)), ro.Leases.Changes()
	if near == lease.Lacks && len(ro.Leases.Knowing(job.Route, job.App, job.ID, near)) == 0 {
		return &unknownRouter{jobID: job.ID, Unanswered: queue.Unanswered{Why: "no live node has the routing strategy " + job.Route, Seen: seen}}
	}
	if en.Choice == nil && ro.Lookup.Queue.Due.Waits(queue.ForRouter(job.ID)) {
		return &unknownRouter{jobID: job.ID, isNew: true}
	}
	return nil
}

// awaitRouter has a run wait, or ends it where that was for too long: its own time and that of the
// strategy are over, so that a node which comes up after an outage does not refuse what waited for it.
func (ro *Router) awaitRouter(en *queue.Item, job *store.Job, lack *unknownRouter) (queue.Routed, error) {
	if !lack.isNew && time.Since(ro.missing.add(job)) >= RouterWait && ro.Clock.Now().Sub(en.Run.Scheduled()) >= RouterWait {
		return queue.Routed{Unknown: true, Refused: fmt.Sprintf("%s, and the run has waited for one for %v", lack.Why, RouterWait)}, nil
	}
	return queue.Routed{}, lack
}

// parkUnknown has a run wait for a node that knows its strategy.
func (u *ParkedLookups) parkUnknown(en *queue.Item, lack *unknownRouter) {
	at := queue.ForRouter(lack.jobID)
	if !lack.isNew && !en.CameFrom(at) {
		u.Core.Troubles.Saw(store.TroubleUnknownRouter, u.Clock.Now(), refusedKept, troubleOfRouter(en.Run.App, lack.jobID, 1, fmt.Sprintf("%s: its due runs wait for one, each for %v", lack.Why, RouterWait)))
	}
	en.Choice = queue.NoChoice()
	u.Queue.Due.ParkFirst(at, en)
	if lack.isNew {
		u.countLate(en.Run.App, lack.jobID)
	}
	if lack.isNew || u.Leases.Changes() != lack.Seen { // who knows it may have come meanwhile
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

// countLate counts another run of a job that waits for a node which knows its strategy, and finds
// others waiting.
func (u *ParkedLookups) countLate(app string, jobID int64) {
	for _, x := range u.Core.Troubles.Of(store.TroubleUnknownRouter) {
		if x.App == app && x.JobID == jobID {
			x.Late = 1 // they are added up
			u.Core.Troubles.Saw(store.TroubleUnknownRouter, u.Clock.Now(), refusedKept, x)
		}
	}
}

// AllRouted has those tried again that wait for a node which knows their strategy and need not wait
// for a pause. It is called when all of a batch are routed, so that the new ones among them wait with
// those that came before, and all go on in their order.
func (u *ParkedLookups) AllRouted() {
	for _, at := range u.again {
		u.Queue.Due.AdmitAll(at)
	}
	u.again = u.again[:0]
}

func troubleOfRouter(app string, jobID int64, late int, detail string) store.Trouble {
	return store.Trouble{
		Cause: store.TroubleUnknownRouter, App: app, JobID: jobID, Late: late, Detail: detail,
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
			choice.Nobody = &queue.Unanswered{Why: "no live node has the routing strategy " + q.key.route, Seen: seen}
		case err != nil:
			choice.Nobody = &queue.Unanswered{Why: fmt.Sprintf("no node with the routing strategy %s answers: %v", q.key.route, err), Seen: seen}
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
