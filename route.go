package xxljob

// Where a due run goes. Input: entries that are due, from start.go. Output: an
// address, or the reason why there is none.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/route"
)

// route decides about one entry. It asks no executor: probing routes go by the
// answers that probes have brought, and wait where there are none.
func (s *scheduler) route(ctx context.Context, en *entry, job *Job) (routed, error) {
	run := &en.run
	addrs, why, err := s.book.addressesFor(ctx, en, job)
	if err != nil {
		return routed{}, err
	}
	if len(addrs) == 0 {
		return routed{refused: why, msg: s.routeMsg(run, job, nil, why)}, nil
	}
	r := s.chooseAddress(ctx, en, job, addrs)
	switch {
	case r.failed != nil:
		return routed{}, r.failed
	case r.probing, r.asks != nil, r.behind.ID != 0:
		return r, nil
	case r.refused != "":
		r.msg = s.routeMsg(run, job, addrs, r.refused)
		return r, nil
	}
	r.msg = s.routeMsg(run, job, addrs, r.msg)
	s.equip(&r, job)
	if isPart(run) && r.serial.kind != lotSerial {
		r.serial = lot{kind: lotSerial, jobID: job.ID, runID: run.TriggerID, address: r.address} // see choosePart
	}
	return r, nil
}

// chooseAddress applies the job's strategy.
func (s *scheduler) chooseAddress(ctx context.Context, en *entry, job *Job, addrs []string) routed {
	run := &en.run
	router := s.routers[job.Route]
	if router == nil {
		return routed{refused: fmt.Sprintf("routing strategy %s is not known on this node: %s", job.Route, oneOf(job.Route, s.routeNames))}
	}
	if job.Route == route.ShardingBroadcast && isPart(run) {
		return s.choosePart(ctx, run, job, addrs)
	}
	var chosen []string
	if s.cfg.Routers[job.Route] == nil {
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
	} else if c := s.engine.choiceFor(en, job, addrs); c == nil {
		return routed{asks: addrs}
	} else if chosen = c.chosen; c.refused != "" {
		return routed{refused: c.refused}
	}
	switch job.Route {
	case route.ShardingBroadcast:
		return routed{address: chosen[0], targets: slices.Clone(chosen)}
	case route.Failover, route.Busyover:
		return s.probes.choose(ctx, job, chosen)
	}
	return routed{address: chosen[0]}
}

// equip adds what the address needs.
func (s *scheduler) equip(r *routed, job *Job) {
	inc, local := LocalIncarnation(r.address)
	if !local {
		s.equipRemote(r, job)
		return
	}
	r.serial, r.ordered = serialAt(job, r.address), job.Block == block.SerialExecution
	r.places = attachedPlaces
	if inc != s.incarnation {
		return
	}
	exec := s.attached.get(job.App)
	r.places = s.placesOf(job.App)
	if exec != nil {
		r.exec = exec
	}
	if _, ours := exec.(*executor.Executor); !ours {
		r.lane = laneFast // or slow: decided when the place is taken
	}
}

// serialAt is the place of a serial job's run at an address: at an attached executor
// until the run ends, at a remote one, which has a queue of its own, until it has
// answered the trigger.
func serialAt(job *Job, address string) lot {
	if job.Block != block.SerialExecution {
		return lot{}
	}
	return lot{kind: lotSerial, jobID: job.ID, address: address}
}

// equipRemote adds what a call over HTTP needs. What waits at a remote executor waits
// in its own queue, so there are no places there.
func (s *scheduler) equipRemote(r *routed, job *Job) {
	peer, err := s.remotes.get(job.App, r.address)
	if err != nil {
		r.refused = "address " + r.address + ": " + err.Error() // the book leaves out such ones
		return
	}
	r.exec, r.remote, r.lane = peer, true, laneFast
	r.serial, r.ordered = serialAt(job, r.address), job.Block == block.SerialExecution
}

// routeMsg is the part of trigger_msg that is known before the call: plain
// lines a person can read.
func (s *scheduler) routeMsg(run *Run, job *Job, addrs []string, outcome string) string {
	msg := "type: " + string(run.Type) + "\nnode: " + s.cfg.Node + "\nroute: " + job.Route + ", block: " + job.Block +
		"\naddresses: " + shorten(strings.Join(addrs, ", "), 1000)
	if outcome != "" {
		msg += "\n" + outcome
	}
	return msg
}

// setAside parks a run whose addresses could not be read, with the others of its
// app: the other apps go on. After a pause they are tried again.
func (s *scheduler) setAside(ctx context.Context, en *entry, err error) {
	if errors.Is(err, errAsking) || errors.Is(err, errBehind) {
		s.parkAsking(en, err)
		return
	}
	app := en.run.App
	b := s.routing[app]
	if b == nil {
		b = &backoff{log: s.log.With("app", app), what: "reading addresses"}
		s.routing[app] = b
	}
	at := errorLot(app)
	if s.engine.parkFirst(at, en) {
		b.failed(ctx, err)
		time.AfterFunc(b.delay(), func() {
			s.engine.admitAll(at)
			s.wakes.start.poke()
		})
	}
}

// routedWell ends a streak of setAside.
func (s *scheduler) routedWell(ctx context.Context, app string) {
	if b := s.routing[app]; b != nil {
		b.failed(ctx, nil)
		delete(s.routing, app)
	}
}
