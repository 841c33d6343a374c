package xxljob

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// Where a due run goes. Input: entries that are due, from dispatch_start.go. Output: an
// address, or the reason why there is none.

// router decides where due runs go. It belongs to the start loop, but for what comes of
// routers of the user's.
type router struct {
	*shared
	asker      *appAsker
	callees    *callees
	probes     *probes
	asks       *userRouters
	strategies *strategies
	said       routeWords
}

// route decides about one entry. It asks no executor: probing routes go by the
// answers that probes have brought, and wait where there are none.
func (ro *router) route(ctx context.Context, en *entry, job *store.Job) (*routed, error) {
	addrs, why, err := ro.asker.addressesFor(ctx, en, job)
	if err != nil {
		return nil, err
	}
	if m := en.ref.memo; m.isFor(job, addrs, &en.run) && ro.isStill(m, job, addrs) {
		return m.r, nil
	}
	if len(addrs) == 0 {
		return &routed{refused: why, msg: ro.routeMsg(&en.run, job, nil, why)}, nil
	}
	to := ro.chooseAddress(ctx, en, job, addrs)
	r := &to
	switch {
	case r.failed != nil:
		return nil, r.failed
	case r.probing, r.asks != nil, r.behind != nil:
		return r, nil
	case r.refused != "":
		r.msg = ro.routeMsg(&en.run, job, addrs, r.refused)
		return r, nil
	}
	r.msg = ro.routeMsg(&en.run, job, addrs, r.msg)
	ro.callees.equip(r, job)
	if en.run.sharding() != (store.Sharding{}) && r.serial.kind != lotSerial && job.Block != block.Concurrent {
		r.serial = lot{kind: lotSerial, jobID: job.ID, runID: en.run.triggerID(), address: r.address} // see choosePart
	} else if ro.isSame(en, job, r) {
		en.ref.memo = &routeMemo{job: job, addrs: addrs, kind: en.run.runType(), r: r}
	}
	return r, nil
}

// isStill reports whether an address is called as it was. It is asked once after each reading of the
// addresses, which are read again and again.
func (ro *router) isStill(m *routeMemo, job *store.Job, addrs []string) bool {
	if sameList(addrs, m.addrs) {
		return true
	}
	now := &ro.said.now
	*now = routed{address: m.r.address}
	if ro.callees.equip(now, job); !now.isCalledAs(m.r) {
		return false
	}
	m.addrs = addrs
	return true
}

// isSame reports whether further runs of the job go the same way, as long as it has the same
// addresses: its strategy goes by nothing else, and counts nothing.
func (ro *router) isSame(en *entry, job *store.Job, r *routed) bool {
	if ro.cfg.Registry != nil || ro.cfg.Routers[job.Route] != nil || len(en.run.addresses()) > 0 || r.refused != "" {
		return false
	}
	switch job.Route {
	case route.Nearest:
		return r.exec != nil && !r.remote
	case route.First, route.Last:
		return true
	}
	return false
}

// chooseAddress applies the job's strategy.
func (ro *router) chooseAddress(ctx context.Context, en *entry, job *store.Job, addrs []string) routed {
	router := ro.strategies.byName[job.Route]
	if router == nil {
		return routed{refused: fmt.Sprintf("routing strategy %s is not known on this node: %s", job.Route, errs.OneOf(job.Route, ro.strategies.names))}
	}
	if job.Route == route.ShardingBroadcast && en.run.sharding() != (store.Sharding{}) {
		return ro.choosePart(ctx, &en.run, job, addrs)
	}
	var chosen []string
	if ro.cfg.Routers[job.Route] == nil {
		if en.choice.fits(job, addrs) { // it has waited behind others: no strategy counts it twice
			chosen = en.choice.chosen
		} else if choice, err := router.Route(ctx, job.ID, addrs); err != nil {
			return routed{refused: "route " + job.Route + ": " + err.Error()}
		} else {
			chosen = choice
			if job.Route != route.ShardingBroadcast { // which goes to those that are there when it starts
				en.choice = &routeChoice{version: job.Version, chosen: chosen}
			}
		}
	} else if c := ro.asks.choiceFor(en, job, addrs); c == nil {
		return routed{asks: addrs}
	} else if chosen = c.chosen; c.refused != "" {
		return routed{refused: c.refused}
	}
	switch job.Route {
	case route.ShardingBroadcast:
		return routed{address: chosen[0], targets: slices.Clone(chosen)}
	case route.Failover, route.Busyover:
		return ro.probes.choose(ctx, job, chosen)
	}
	return routed{address: chosen[0]}
}

// routeMsg is the part of trigger_msg that is known before the call: plain
// lines a person can read.
func (ro *router) routeMsg(run *plannedRun, job *store.Job, addrs []string, outcome string) string {
	msg := ro.said.of(run.runType(), ro.cfg.Node, job, addrs)
	if outcome != "" {
		msg += "\n" + outcome
	}
	return msg
}

// routeWords are the lines that were made last: runs that are routed one after the other mostly
// have the same ones. It belongs to the start loop.
type routeWords struct {
	kind         store.TriggerType
	route, block string
	addrs        []string // to be told from others by where they are
	msg          string
	now          routed // memory of router.isStill
}

// of returns the lines for a run of a job.
func (w *routeWords) of(kind store.TriggerType, node string, job *store.Job, addrs []string) string {
	if w.msg == "" || w.kind != kind || w.route != job.Route || w.block != job.Block || !sameList(w.addrs, addrs) {
		said := store.Routed{Type: string(kind), Node: node, Route: job.Route, Block: job.Block, Addresses: errs.Shorten(strings.Join(addrs, ", "), 1000)}
		*w = routeWords{kind: kind, route: job.Route, block: job.Block, addrs: addrs, msg: said.String()}
	}
	return w.msg
}

// choosePart takes the address that has the part's place in the list, and for a part
// beyond the list the first, as XXL-JOB does; but none at which another part of the same
// broadcast is under way, or the one would cover or discard the other. Where there is no
// such address the part waits. Parts of one trigger that wait at one address are kept
// apart by a serial place of theirs there, whatever the block strategy.
func (ro *router) choosePart(ctx context.Context, run *plannedRun, job *store.Job, addrs []string) routed {
	i := run.sharding().Index
	if i >= len(addrs) {
		i = 0
	}
	if job.Block == block.SerialExecution || job.Block == block.Concurrent {
		return routed{address: addrs[i]} // the parts queue, or run side by side
	}
	under, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
		return ro.store.Runs(ctx, store.RunFilter{TriggerID: run.triggerID(), States: []store.State{store.StateStarted, store.StateDispatched}, Limit: loop.StoreBatch})
	})
	if err != nil {
		return routed{failed: err}
	}
	at := make(map[string]*store.Run, len(under))
	for i := range under {
		at[under[i].Address] = &under[i]
	}
	for n := range addrs {
		if addr := addrs[(i+n)%len(addrs)]; at[addr] == nil {
			return routed{address: addr}
		}
	}
	return routed{behind: at[addrs[i]]}
}

// The route strategies that a scheduler has.

// strategies are XXL-JOB's and the user's. They are only read.
type strategies struct {
	byName map[string]Router
	names  []string // XXL-JOB's first, then the user's in order
}

func newStrategies(cfg *Config, node string) *strategies {
	s := &strategies{byName: map[string]Router{}, names: route.Names()}
	for name, r := range route.Builtin(time.Now, node) {
		s.byName[name] = r
	}
	maps.Copy(s.byName, cfg.Routers)
	for _, name := range slices.Sorted(maps.Keys(cfg.Routers)) {
		if !route.Valid(name) {
			s.names = append(s.names, name)
		}
	}
	return s
}

// Who is called for a run at an address: an executor of this process, one elsewhere, or nobody
// from here, for it is another node's.

// callees knows them. It is safe for concurrent use.
type callees struct {
	incarnation string
	attached    *attachedSet
	remotes     *remotes
}

// equip adds what the address needs.
func (c *callees) equip(r *routed, job *store.Job) {
	inc, local := store.LocalIncarnation(r.address)
	if !local {
		c.equipRemote(r, job)
		return
	}
	r.serial, r.ordered = serialAt(job, r.address), job.Block == block.SerialExecution
	r.places = attachedPlaces
	if inc != c.incarnation {
		return
	}
	exec := c.attached.get(job.App)
	r.places = c.attached.placesOf(job.App)
	if exec != nil {
		r.exec = exec
	}
	if _, ours := exec.(*executor.Executor); !ours {
		r.lane = laneFast // or slow: decided when the place is taken
	}
}

// equipRemote adds what a call over HTTP needs. What waits at a remote executor waits
// in its own queue, so there are no places there.
func (c *callees) equipRemote(r *routed, job *store.Job) {
	peer, err := c.remotes.get(job.App, r.address)
	if err != nil {
		r.refused = "address " + r.address + ": " + err.Error() // the book leaves out such ones
		return
	}
	r.exec, r.remote, r.lane = peer, true, laneFast
	r.serial, r.ordered = serialAt(job, r.address), job.Block == block.SerialExecution
}
