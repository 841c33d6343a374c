package router

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// Where a due run goes. Input: entries that are due, from dispatch/start.go. Output: an
// address, or the reason why there is none.

// Router decides where due runs go. It belongs to the start loop, but for what comes of
// routers of the user's.
type Router struct {
	*core.Core
	Lookup     *Lookup
	Parked     *ParkedLookups
	Serving    *registry.Serving
	Resolver   *Resolver
	Probes     *probes
	Asks       *userRouters
	Strategies *Strategies
	said       RouteWords
	missing    missing
}

// New makes it, with what it asks: book and serving for the executors of an app, attached and remotes
// for who is called at an address, users for routers of the user's.
func New(s *core.Core, q *queue.Queue, book *registry.Addresses, serving *registry.Serving, attached *registry.AttachedSet, remotes *registry.Remotes, users *registry.UserCalls, strategies *Strategies) *Router {
	asked := newAppsAsked()
	return &Router{
		Core: s, Lookup: &Lookup{S: s, Queue: q, Book: book, Asked: asked}, Serving: serving,
		Parked:   &ParkedLookups{Core: s, Queue: q, Serving: serving, Asked: asked, Backoffs: map[string]*loop.Backoff{}},
		Resolver: &Resolver{Incarnation: s.Leases.Incarnation, Attached: attached, Remotes: remotes},
		Probes:   newProbes(s, q, newProbeCalls(s, attached, remotes)), Asks: newUserRouters(s, q, attached, users), Strategies: strategies,
	}
}

// Route decides about one entry. It asks no executor: probing routes go by the
// answers that probes have brought, and wait where there are none.
func (ro *Router) Route(ctx context.Context, en *queue.Entry, job *store.Job) (*queue.Routed, error) {
	r, err := ro.decide(ctx, en, job)
	if en.Choice != nil && en.Choice.Nobody != nil {
		en.Choice = nil // it says nothing of later, when somebody may be there
	}
	return r, err
}

func (ro *Router) decide(ctx context.Context, en *queue.Entry, job *store.Job) (*queue.Routed, error) {
	if ro.waitsForAnyone(en, job) {
		return nil, errNobody
	}
	addrs, why, err := ro.Lookup.addressesFor(ctx, en, job)
	if err != nil {
		return nil, err
	}
	if len(addrs) > 0 {
		ro.Serving.Found(job.App, addrs)
	} else if len(en.Run.Addresses()) == 0 && registry.IsNoExecutor(job.App, why) {
		if err := ro.Serving.Gone(ctx, job.App); err != nil {
			return nil, err
		}
		if ro.waitsForAnyone(en, job) {
			return nil, errNobody
		}
	}
	if m, _ := en.Ref.Memo.(*routeMemo); m.isFor(job, addrs, &en.Run) && ro.isStill(m, job, addrs) {
		return m.to, nil
	}
	if len(addrs) == 0 {
		return &queue.Routed{Refused: why, Nobody: len(en.Run.Addresses()) == 0, Msg: ro.routeMsg(&en.Run, job, nil, why)}, nil
	}
	to, err := ro.chooseAddress(ctx, en, job, addrs)
	if err != nil {
		return nil, err
	}
	r := &to
	switch {
	case r.Probing, r.Asks != nil, r.Behind != nil:
		return r, nil
	case r.Refused != "":
		r.Msg = ro.routeMsg(&en.Run, job, addrs, r.Refused)
		return r, nil
	}
	r.Msg = ro.routeMsg(&en.Run, job, addrs, r.Msg)
	r.Refused = ro.Resolver.Equip(&r.Destination, job)
	if en.Run.Sharding() != (store.Sharding{}) && !r.JobPlace.IsJobPlace() && blockrule.Of(job.Block).SentInOrder {
		r.JobPlace = queue.PartAt(job, en.Run.TriggerID(), r.Address) // see choosePart
	} else if ro.isSame(en, job, r) {
		en.Ref.Memo = &routeMemo{job: job, addrs: addrs, kind: en.Run.RunType(), to: r}
	}
	return r, nil
}

// isStill reports whether an address is called as it was. It is asked once after each reading of the
// addresses, which are read again and again.
func (ro *Router) isStill(m *routeMemo, job *store.Job, addrs []string) bool {
	if sameList(addrs, m.addrs) {
		return true
	}
	now := &ro.said.now
	*now = queue.Destination{Address: m.to.Address}
	if ro.Resolver.Equip(now, job) != "" || !isCalledAs(now, &m.to.Destination) {
		return false
	}
	m.addrs = addrs
	return true
}

// isSame reports whether further runs of the job go the same way, as long as it has the same
// addresses: its strategy goes by nothing else, and counts nothing.
func (ro *Router) isSame(en *queue.Entry, job *store.Job, r *queue.Routed) bool {
	if ro.Cfg.AsksRegistry(job.App) || ro.Cfg.Routers[job.Route] != nil || len(en.Run.Addresses()) > 0 || r.Refused != "" {
		return false
	}
	switch job.Route {
	case route.Nearest:
		return r.Exec != nil && !r.Remote
	case route.First, route.Last:
		return true
	}
	return false
}

// chooseAddress applies the job's strategy.
func (ro *Router) chooseAddress(ctx context.Context, en *queue.Entry, job *store.Job, addrs []string) (queue.Routed, error) {
	if job.Route == route.ShardingBroadcast && en.Run.Sharding() != (store.Sharding{}) {
		return ro.choosePart(ctx, &en.Run, job, addrs)
	}
	var chosen []string
	if !ro.Strategies.IsUsers(job.Route) {
		router := ro.Strategies.ByName[job.Route]
		if en.Choice.Fits(job, addrs) { // it has waited behind others: no strategy counts it twice
			chosen = en.Choice.Chosen
		} else if choice, err := router.Route(ctx, job.ID, addrs); err != nil {
			return queue.Routed{Refused: "route " + job.Route + ": " + err.Error()}, nil
		} else {
			chosen = choice
			if job.Route != route.ShardingBroadcast { // which goes to those that are there when it starts
				en.Choice = &queue.RouteChoice{Version: job.Version, Chosen: chosen}
			}
		}
	} else if lack := ro.unknown(en, job); lack != nil {
		return ro.awaitRouter(en, job, lack)
	} else if c := ro.Asks.choiceFor(en, job, addrs); c == nil {
		return queue.Routed{Asks: addrs}, nil
	} else if c.Nobody != nil {
		return ro.awaitRouter(en, job, &unknownRouter{job: job, Unanswered: *c.Nobody})
	} else if ro.missing.told(job); c.Refused != "" {
		return queue.Routed{Refused: c.Refused}, nil
	} else {
		chosen = c.Chosen
	}
	switch job.Route {
	case route.ShardingBroadcast:
		return queue.Routed{Destination: queue.Destination{Address: chosen[0], Targets: slices.Clone(chosen)}}, nil
	case route.Failover, route.Busyover:
		return ro.Probes.Choose(ctx, job, chosen), nil
	}
	return queue.Routed{Destination: queue.Destination{Address: chosen[0]}}, nil
}

// routeMsg is the part of trigger_msg that is known before the call: plain
// lines a person can read.
func (ro *Router) routeMsg(run *compact.Planned, job *store.Job, addrs []string, outcome string) string {
	msg := ro.said.Of(run.RunType(), ro.Cfg.Node, job, addrs)
	if outcome != "" {
		msg += "\n" + outcome
	}
	return msg
}

// RouteWords are the lines that were made last: runs that are routed one after the other mostly
// have the same ones. It belongs to the start loop.
type RouteWords struct {
	kind         store.TriggerType
	route, block string
	addrs        []string // to be told from others by where they are
	msg          string
	now          queue.Destination // memory of router.isStill
}

// Of returns the lines for a run of a job.
func (w *RouteWords) Of(kind store.TriggerType, node string, job *store.Job, addrs []string) string {
	if w.msg == "" || w.kind != kind || w.route != job.Route || w.block != job.Block || !sameList(w.addrs, addrs) {
		said := store.Routed{Type: string(kind), Node: node, Route: job.Route, Block: job.Block, Addresses: errs.Shorten(strings.Join(addrs, ", "), 1000)}
		*w = RouteWords{kind: kind, route: job.Route, block: job.Block, addrs: addrs, msg: said.String()}
	}
	return w.msg
}

// choosePart takes the address that has the part's place in the list, and for a part
// beyond the list the first, as XXL-JOB does; but none at which another part of the same
// broadcast is under way, or the one would cover or discard the other. Where there is no
// such address the part waits. Parts of one trigger that wait at one address are kept
// apart by a serial place of theirs there, whatever the block strategy.
func (ro *Router) choosePart(ctx context.Context, run *compact.Planned, job *store.Job, addrs []string) (queue.Routed, error) {
	i := run.Sharding().Index
	if i >= len(addrs) {
		i = 0
	}
	if blockrule.Of(job.Block).Waits {
		return queue.Routed{Destination: queue.Destination{Address: addrs[i]}}, nil // the parts queue, or run side by side
	}
	under, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
		return ro.Store.Runs(ctx, store.RunFilter{TriggerID: run.TriggerID(), States: []store.State{store.StateStarted, store.StateDispatched}, Limit: loop.StoreBatch})
	})
	if err != nil {
		return queue.Routed{}, err
	}
	at := make(map[string]*store.Run, len(under))
	for i := range under {
		at[under[i].Address] = &under[i]
	}
	for n := range addrs {
		if addr := addrs[(i+n)%len(addrs)]; at[addr] == nil {
			return queue.Routed{Destination: queue.Destination{Address: addr}}, nil
		}
	}
	return queue.Routed{Behind: at[addrs[i]]}, nil
}

// The route strategies that a scheduler has.

// Strategies are XXL-JOB's and the user's. They are only read.
type Strategies struct {
	ByName map[string]core.Router
	Names  []string // XXL-JOB's first, then the user's in order
	Own    []string // of these, the user's
	users  map[string]bool
}

// IsUsers reports whether a strategy is a user's: this node's, or one that it does not know, which is
// another node's.
func (s *Strategies) IsUsers(name string) bool { return s.users[name] || s.ByName[name] == nil }

func NewStrategies(cfg *core.Config, node string) *Strategies {
	s := &Strategies{ByName: map[string]core.Router{}, Names: route.Names(), users: map[string]bool{}}
	for name, r := range route.Builtin(time.Now, node) {
		s.ByName[name] = r
	}
	maps.Copy(s.ByName, cfg.Routers)
	for _, name := range slices.Sorted(maps.Keys(cfg.Routers)) {
		s.users[name] = true
		if !route.Valid(name) {
			s.Own = append(s.Own, name)
		}
	}
	s.Names = append(s.Names, s.Own...)
	return s
}

// Who is called for a run at an address: an executor of this process, one elsewhere, or nobody
// from here, for it is another node's.

// Resolver knows them. It is safe for concurrent use.
type Resolver struct {
	Incarnation string
	Attached    *registry.AttachedSet
	Remotes     *registry.Remotes
}

// Equip adds what the address needs. It returns why nobody there may be called, "" mostly.
func (c *Resolver) Equip(r *queue.Destination, job *store.Job) (refused string) {
	inc, local := store.LocalIncarnation(r.Address)
	if !local {
		return c.equipRemote(r, job)
	}
	r.JobPlace, r.Ordered = queue.JobPlaceAt(job, r.Address), blockrule.Of(job.Block).KeepsOrder
	r.Places = core.AttachedPlaces
	if inc != c.Incarnation {
		return ""
	}
	exec := c.Attached.Get(job.App)
	r.Places = c.Attached.PlacesOf(job.App)
	if exec != nil {
		r.Exec = exec
	}
	if _, ours := exec.(*executor.Executor); !ours {
		r.Lane = queue.LaneFast // or slow: decided when the place is taken
		if r.Exec != nil && !r.JobPlace.IsJobPlace() && blockrule.Of(job.Block).SentInOrder {
			r.JobPlace = queue.OnePlaceAt(job, r.Address) // ours goes by when runs were due, this one perhaps by how they arrive
		}
	}
	return ""
}

// equipRemote adds what a call over HTTP needs. What waits at a remote executor waits
// in its own queue, so there are no places there.
func (c *Resolver) equipRemote(r *queue.Destination, job *store.Job) (refused string) {
	peer, err := c.Remotes.Get(job.App, r.Address)
	if err != nil {
		return "address " + r.Address + ": " + err.Error() // the book leaves out such ones
	}
	r.Exec, r.Remote, r.Lane = peer, true, queue.LaneFast
	r.JobPlace, r.Ordered = queue.JobPlaceAt(job, r.Address), blockrule.Of(job.Block).KeepsOrder
	return ""
}
