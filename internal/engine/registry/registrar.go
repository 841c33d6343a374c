package registry

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/fairqueue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Registrations of executors elsewhere. Input: requests, from admin/admin.go. Output: rows of
// the registry, a batch at a time, and news to the address book of this node; the other
// nodes read the registry again within a second.

const (
	// registrarPause is the least time between two batches: some fourteen in a second,
	// however many executors beat.
	registrarPause = 70 * time.Millisecond
	// registrarPatience is how long a request waits for its batch; peers wait 3 s.
	registrarPatience = 2500 * time.Millisecond
)

// registryBounds are room for ten thousand executors of an app that register at once. A
// registration is not stored when its executor may be dead by then, and not tried again:
// its executor does that, unless it has gone.
func registryBounds(dead time.Duration) fairqueue.Bounds {
	return fairqueue.Bounds{OfApp: 8 << 20, InAll: 64 << 20, Batch: 2000, BatchBytes: 8 << 20, AtOnce: 1, Kept: dead / 3}
}

// Registrar stores registrations. It is safe for concurrent use.
type Registrar struct {
	s       *core.Core
	memory  *Memory
	users   *UserCalls
	Changes *fairqueue.Queue[registryChange]
	spelled *spellings
	Regs    *registrations
}

// registryChange is one registration, or the end of one.
type registryChange struct {
	reg  store.Registration
	gone bool
}

func NewRegistrar(s *core.Core, memory *Memory, users *UserCalls) *Registrar {
	return &Registrar{
		s: s, memory: memory, users: users, Changes: fairqueue.New[registryChange](registryBounds(s.Cfg.Cluster.Dead)), spelled: newSpellings(s),
		Regs: newRegistrations(s),
	}
}

// Register stores a registration. A heartbeat of an executor that the store is known to
// have is answered at once, and stored with the next batch: should that fail, there is
// another one before it counts as dead.
func (r *Registrar) Register(ctx context.Context, reg store.Registration) error {
	if !r.s.Cfg.AsksRegistry(reg.App) && r.Regs.beats(reg) && r.s.Life.Running() {
		p, err := r.add(ctx, registryChange{reg: reg})
		if err == nil {
			p.Leave()
		}
		return err
	}
	return r.change(ctx, registryChange{reg: reg})
}

// Deregister removes a registration. One that is not known as it is spelled is looked
// for in other spellings.
func (r *Registrar) Deregister(ctx context.Context, reg store.Registration) error {
	if !r.s.Cfg.AsksRegistry(reg.App) && !r.Regs.knows(reg) {
		for _, other := range r.spelled.others(ctx, reg) {
			if err := r.change(ctx, registryChange{reg: other, gone: true}); err != nil {
				return err
			}
		}
	}
	return r.change(ctx, registryChange{reg: reg, gone: true})
}

// change stores one change, with the next batch where the loops run. A registry of the
// user's gets each by itself: it may fail for one app.
func (r *Registrar) change(ctx context.Context, c registryChange) error {
	if r.s.Cfg.AsksRegistry(c.reg.App) || !r.s.Life.Running() {
		return r.store(ctx, []*registryChange{&c})
	}
	p, err := r.add(ctx, c)
	if err != nil {
		return err
	}
	return p.Wait(ctx, registrarPatience)
}

// add takes in a change.
func (r *Registrar) add(ctx context.Context, c registryChange) (*fairqueue.Request[registryChange], error) {
	caller, _ := wire.CallerFrom(ctx)
	size := fairqueue.PartSize + len(c.reg.App) + len(c.reg.Address) + len(c.reg.BootID)
	for _, can := range c.reg.Capabilities {
		size += 16 + len(can)
	}
	return r.Changes.Add(fairqueue.Origin{Scope: caller.Scope, App: c.reg.App}, size, &c)
}

// store stores changes.
func (r *Registrar) store(ctx context.Context, changes []*registryChange) error {
	puts, drops := settled(changes)
	_, err := loop.Detached(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.write(ctx, puts, drops) })
	r.learn(puts, drops, err)
	return err
}

// settled leaves of several changes for one address the one that counts: the last. But a
// process that says good-bye does not take away the one that has taken its place.
func settled(changes []*registryChange) (puts, drops []store.Registration) {
	last := make(map[SiteKey]*registryChange, len(changes))
	var order []SiteKey
	for _, c := range changes {
		k := SiteKey{c.reg.App, c.reg.Address}
		was := last[k]
		if was == nil {
			order = append(order, k)
		}
		if was == nil || !c.gone || c.reg.BootID == "" || was.gone || was.reg.BootID == c.reg.BootID {
			last[k] = c
		}
	}
	for _, k := range order {
		if c := last[k]; c.gone {
			drops = append(drops, c.reg)
		} else {
			puts = append(puts, c.reg)
		}
	}
	return puts, drops
}

// write writes to the store, or to the user's registry, which gets each change by itself.
func (r *Registrar) write(ctx context.Context, puts, drops []store.Registration) error {
	if all := slices.Concat(puts, drops); len(all) == 1 && r.s.Cfg.AsksRegistry(all[0].App) {
		return writeTo(ctx, r.users, puts, drops)
	}
	if err := r.s.SetShards(ctx); err != nil {
		return err
	}
	if len(puts) > 0 {
		if err := r.s.Store.PutAddresses(ctx, puts); err != nil && len(drops) == 0 {
			return err
		} else if err != nil {
			return errors.Join(err, r.s.Store.DropAddresses(ctx, drops))
		}
	}
	if len(drops) > 0 {
		return r.s.Store.DropAddresses(ctx, drops)
	}
	return nil
}

func writeTo(ctx context.Context, user *UserCalls, puts, drops []store.Registration) error {
	for _, reg := range puts {
		if err := user.register(ctx, reg.App, reg.Address); err != nil {
			return err
		}
	}
	for _, reg := range drops {
		if err := user.deregister(ctx, reg.App, reg.Address); err != nil {
			return err
		}
	}
	return nil
}

// learn takes in what was stored, and tells the address book what is new to it. After
// an error nothing counts as stored.
func (r *Registrar) learn(puts, drops []store.Registration, err error) {
	r.Regs.mu.Lock()
	defer r.Regs.mu.Unlock()
	now := time.Now()
	for _, reg := range puts {
		r.memory.Liveness.beat(reg, now) // stored or not: it is there
		k := SiteKey{reg.App, reg.Address}
		was, known := r.Regs.known[k]
		if err != nil {
			delete(r.Regs.known, k) // whoever waits for it gives back its room
		} else {
			r.Regs.known[k] = knownAddress{bootID: reg.BootID, at: now}
			r.Regs.quota.put(reg.App, reg.Address, quotaEntry{at: now, there: true})
		}
		if err != nil || !known || was.bootID != reg.BootID || now.Sub(was.at) >= r.s.Cfg.Cluster.Dead {
			r.memory.ForgetApp(reg.App)
		}
	}
	for _, reg := range drops {
		k := SiteKey{reg.App, reg.Address}
		if was, known := r.Regs.known[k]; known && reg.BootID != "" && was.bootID != reg.BootID {
			continue // another process is there by now
		} else if known || reg.BootID == "" {
			r.memory.left(reg.App, reg.Address, known)
		} else {
			r.memory.ForgetApp(reg.App) // whose it was the next reading tells, and whether it has gone
			continue
		}
		delete(r.Regs.known, k)
		if err == nil {
			r.Regs.quota.drop(reg.App, reg.Address, now)
		}
	}
}

// Words for what cannot be registered.
const (
	MsgRegistryGroup = "registryGroup %q is not served: want " + wire.GroupExecutor
	MsgRegistryValue = "registryValue cannot be called: %v"
	MsgRegistryBusy  = "the registry cannot be written at this moment, try again later"
)

// Loop stores what comes until ctx ends.
func (r *Registrar) Loop(ctx context.Context) {
	backoff := loop.Backoff{Log: r.s.Logger, What: "storing registrations"}
	r.Changes.Loop(ctx, registrarPause, backoff, func(ctx context.Context, changes []*registryChange) error {
		err := r.store(ctx, changes)
		if looks, tidies := r.Regs.due(); looks || tidies {
			r.s.Life.Loops.Work.Aside(func(ctx context.Context) { r.Regs.look(ctx, looks, tidies) })
		}
		return err
	})
}
