package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
)

// Routers of the user's, which may take their time. Input: due runs of their jobs, from
// dispatch/start.go, and questions of other nodes, from elsewhere.go. Output: the same runs with an
// answer, in their order, to the due queue, and answers.

// userRouters calls routers of the user's.
type userRouters struct {
	*core.Core
	queue    *queue.Queue
	attached *registry.AttachedSet
	users    *registry.UserCalls // of Config.Routers
	// Ask puts a question to another node, and waits for the answer.
	Ask func(context.Context, store.Ask) (store.Answer, error)

	mu     sync.Mutex                // before the mutex of the queue
	queues map[routerKey]*routeQueue // guarded by mu, and all in them, and the choices of their runs
	asked  questions                 // guarded by mu
}

func newUserRouters(s *core.Core, e *queue.Queue, attached *registry.AttachedSet, users *registry.UserCalls) *userRouters {
	return &userRouters{Core: s, queue: e, attached: attached, users: users, queues: map[routerKey]*routeQueue{}}
}

// choiceFor returns what a router has chosen for a run; nil when it has to be asked yet,
// or when an earlier run of the job has.
func (ro *userRouters) choiceFor(en *queue.Entry, job *store.Job, addrs []string) *queue.RouteChoice {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	if !en.Choice.Fits(job, addrs) {
		en.Choice = nil
		return nil
	}
	q := ro.queues[routerOf(job)]
	if q != nil && len(q.waiting) > 0 && q.waiting[0].key.Before(en.Run.Key()) {
		return nil
	}
	return en.Choice
}

// AskRouter makes a run wait for its router, in the order of the job's runs.
func (ro *userRouters) AskRouter(en *queue.Entry, job *store.Job, addrs []string) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	w := &routeWait{key: en.Run.Key(), choice: en.Choice, version: job.Version, addrs: addrs, since: time.Now()}
	w.goOn = func() {
		en.Choice = w.choice
		ro.queue.DueAgain(en)
	}
	ro.wait(routerOf(job), w)
}

// wait has a run wait for its router. Caller holds mu.
func (ro *userRouters) wait(key routerKey, w *routeWait) {
	q := ro.queues[key]
	if q == nil {
		q = &routeQueue{key: key}
		ro.queues[key] = q
	}
	at, _ := slices.BinarySearchFunc(q.waiting, w.key, func(w *routeWait, key timering.Key) int {
		if w.key.Before(key) {
			return -1
		}
		return 1
	})
	q.waiting = slices.Insert(q.waiting, at, w)
	ro.routeNext(q)
}

// routeNext lets those at the head of a queue go on that have their answer, and has the
// next one asked about. Once Stop has begun nobody is asked: the runs stay planned.
// Caller holds mu.
func (ro *userRouters) routeNext(q *routeQueue) {
	if ro.Life.Loops.Plan.Ctx.Err() != nil {
		return
	}
	for len(q.waiting) > 0 {
		w := q.waiting[0]
		if w.choice == nil && q.call == nil {
			ro.callRouter(q, w)
		}
		if w.choice == nil && q.call.about == nil {
			// An earlier call hangs. It may return while this run has time.
			ro.awaitRouter(q, w)
		}
		if w.choice == nil {
			return
		}
		q.waiting[0], q.waiting = nil, q.waiting[1:]
		w.goOn()
	}
	if q.call == nil && ro.queues[q.key] == q { // not another one, of later runs
		delete(ro.queues, q.key)
	}
}

// awaitRouter refuses a run that has waited long enough for a call that hangs, or has it
// looked at again then. Caller holds mu.
func (ro *userRouters) awaitRouter(q *routeQueue, w *routeWait) {
	left := ro.Cfg.Limits.RouteTimeout - time.Since(w.since)
	if left <= 0 {
		w.choice = ro.noChoice(q, w, ", and an earlier call still hangs")
		return
	}
	if q.awaits { // which looks at whoever is the first by then
		return
	}
	q.awaits = ro.Life.Loops.Plan.Try(func(ctx context.Context) {
		over := loop.Sleep(ctx, left)
		ro.mu.Lock()
		defer ro.mu.Unlock()
		if q.awaits = false; over {
			ro.routeNext(q)
		}
	})
}

// noChoice refuses a run whose router did not answer.
func (ro *userRouters) noChoice(q *routeQueue, w *routeWait, why string) *queue.RouteChoice {
	return &queue.RouteChoice{Version: w.version, Refused: fmt.Sprintf("route %s: no answer within %v%s", q.key.route, ro.Cfg.Limits.RouteTimeout, why)}
}

// callRouter asks about a run, beside the start loop. A router that does not return
// leaves one goroutine behind for a job. Caller holds mu.
func (ro *userRouters) callRouter(q *routeQueue, w *routeWait) {
	c := &routeCall{about: w}
	q.call = c
	router := ro.Cfg.Routers[q.key.route]
	if near := ro.near(q.key); router == nil || !w.asked && len(ro.Leases.Knowing(q.key.route, q.key.app, q.key.jobID, near)) > 0 {
		ro.askElsewhere(q, c, near)
		return
	}
	overdue := time.AfterFunc(ro.Cfg.Limits.RouteTimeout, func() { ro.routeOverdue(q, c) })
	ro.users.Start(ro.Life.Loops.Plan.Ctx, "Router.Route of "+q.key.route, func(ctx context.Context) ([]string, error) {
		chosen, err := router.Route(ctx, q.key.jobID, slices.Clone(w.addrs))
		if err != nil && ctx.Err() != nil {
			err = errNoChoice
		}
		return chosen, err
	}, func(chosen []string, err error) {
		overdue.Stop()
		choice := &queue.RouteChoice{Version: w.version}
		switch {
		case errors.Is(err, errNoChoice):
			choice = ro.noChoice(q, w, "")
		case err != nil:
			choice.Refused = "route " + q.key.route + ": " + errs.Shorten(err.Error(), core.MaxAnswer)
		default:
			choice.Chosen, choice.Refused = picked(q.key.route, chosen, w.addrs)
		}
		ro.routeAnswered(q, c, choice)
	})
}

// errNoChoice: a router has returned because its time was over.
var errNoChoice = errors.New("xxljob: the router gave up")

// picked are the addresses that a router has chosen, each once, or what is wrong with its
// answer; addrs are sorted.
func picked(name string, chosen, addrs []string) (list []string, refused string) {
	if len(chosen) == 0 {
		return nil, "route " + name + " chose no address"
	}
	seen := make([]bool, len(addrs))
	for _, a := range chosen {
		i, there := slices.BinarySearch(addrs, a)
		if !there {
			return nil, fmt.Sprintf("route %s chose %s, which is not an address of the app", name, errs.Shorten(a, 300))
		}
		if !seen[i] {
			seen[i] = true
			list = append(list, addrs[i])
		}
	}
	return list, ""
}

// routeAnswered takes in a router's answer, if somebody waits for it.
func (ro *userRouters) routeAnswered(q *routeQueue, c *routeCall, choice *queue.RouteChoice) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	q.call = nil
	if ro.Life.Loops.Plan.Ctx.Err() != nil {
		return // the end of its context may be why: the run stays planned
	}
	if c.about != nil {
		c.about.choice = choice
	}
	if choice.Nobody != nil {
		for _, w := range q.waiting { // they wait together, and so in their order
			w.choice = choice
		}
	}
	ro.routeNext(q)
}

// routeOverdue is called when the time of a call is over.
func (ro *userRouters) routeOverdue(q *routeQueue, c *routeCall) {
	if ro.leaveCall(q, c) {
		ro.Logger.Warn("xxljob: a router did not answer in time; runs of its job are refused until it does", "router", q.key.route, "job", q.key.jobID, "timeout", ro.Cfg.Limits.RouteTimeout)
	}
}

// leaveCall refuses the run that a call is about, if one still waits for it.
func (ro *userRouters) leaveCall(q *routeQueue, c *routeCall) bool {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	if q.call != c || c.about == nil || ro.Life.Loops.Plan.Ctx.Err() != nil {
		return false
	}
	c.about.choice = ro.noChoice(q, c.about, "")
	c.about = nil
	ro.routeNext(q)
	return true
}

// Runs that wait for a router of the user's. All of it is guarded by userRouters.mu.

// routerKey is a router of the user's, by its name, and a job, of an app.
type routerKey struct {
	route, app string
	jobID      int64
}

func routerOf(job *store.Job) routerKey { return routerKey{job.Route, job.App, job.ID} }

// routeQueue are the runs of a job that wait for a router's answers. Each gets a call of
// its own, one after the other. It is there while runs wait or a call has not returned.
type routeQueue struct {
	key     routerKey
	waiting []*routeWait // the earliest first
	call    *routeCall   // what has not returned
	awaits  bool         // the first waits for a call that hangs, and is looked at again when its time is over
}

// routeWait is a run that waits, of this node or of one that has asked.
type routeWait struct {
	key     timering.Key
	choice  *queue.RouteChoice
	goOn    func() // once there is a choice; called with mu held
	version int64  // of its job
	addrs   []string
	since   time.Time
	asked   bool // by another node
}

// routeCall is a call of a router. Nobody waits for it any more where it is about nil.
type routeCall struct{ about *routeWait }
