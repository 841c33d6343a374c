package xxljob

// Registrations of executors elsewhere. Input: requests, from admin.go. Output: rows of
// the registry, a batch at a time, and news to the address book of this node; the other
// nodes read the registry again within a second.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xxljob/xxljob/wire"
)

const (
	// registrarPause is the least time between two batches: some fourteen in a second,
	// however many executors beat.
	registrarPause = 70 * time.Millisecond
	// registrarPatience is how long a request waits for its batch; peers wait 3 s.
	registrarPatience = 2500 * time.Millisecond
	// registrationsKept is how long a registration that is dead stays to be seen, and
	// registrationsTidied how often dead ones are looked for.
	registrationsKept   = 24 * time.Hour
	registrationsTidied = time.Hour
)

// registrar stores registrations. It is safe for concurrent use.
type registrar struct {
	s       *scheduler
	changes gather[registryChange]

	mu     sync.Mutex
	known  map[addressKey]knownAddress // guarded by mu: what this node has stored
	tidied time.Time                   // guarded by mu
}

// registryChange is one registration, or the end of one.
type registryChange struct {
	reg  Registration
	gone bool
}

type knownAddress struct {
	bootID string
	at     time.Time // monotonic: when it was stored
}

func newRegistrar(s *scheduler) *registrar {
	return &registrar{s: s, changes: gather[registryChange]{wake: newWake()}, known: map[addressKey]knownAddress{}}
}

// register stores a registration. A heartbeat of an executor that this node has stored
// before is answered at once, and stored with the next batch: should that fail, there
// is another one before it counts as dead.
func (r *registrar) register(ctx context.Context, reg Registration) error {
	c := registryChange{reg: reg}
	if r.beats(reg) && r.s.running() {
		r.changes.add(c)
		return nil
	}
	return r.change(ctx, c)
}

// deregister removes a registration, in whatever spelling it was made.
func (r *registrar) deregister(ctx context.Context, reg Registration) error {
	if r.s.cfg.Registry == nil {
		has, err := call(ctx, func(ctx context.Context) ([]Registration, error) {
			return r.s.store.Addresses(ctx, reg.App, r.s.cfg.Dead)
		})
		if err != nil {
			return err
		}
		for _, other := range has {
			if other.Address != reg.Address && sameAddress(other.Address, reg.Address) {
				twin := Registration{App: reg.App, Address: other.Address, BootID: reg.BootID}
				if err := r.change(ctx, registryChange{reg: twin, gone: true}); err != nil {
					return err
				}
			}
		}
	}
	return r.change(ctx, registryChange{reg: reg, gone: true})
}

// change stores one change, with the next batch where the loops run.
func (r *registrar) change(ctx context.Context, c registryChange) error {
	if !r.s.running() {
		return r.store(ctx, []registryChange{c})
	}
	return r.changes.add(c).wait(ctx, registrarPatience)
}

// beats reports whether a registration only repeats what this node has stored.
func (r *registrar) beats(reg Registration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.known[addressKey{reg.App, reg.Address}]
	return ok && k.bootID == reg.BootID && time.Since(k.at) < r.s.cfg.Dead/2
}

// loop stores what comes until ctx ends.
func (r *registrar) loop(ctx context.Context) {
	retry := backoff{log: r.s.log, what: "storing registrations"}
	r.changes.loop(ctx, registrarPause, func(ctx context.Context, changes []registryChange) error {
		err := r.store(ctx, changes)
		retry.failed(ctx, err)
		return err
	})
}

// store stores changes; of two for one address the later one counts.
func (r *registrar) store(ctx context.Context, changes []registryChange) error {
	last := make(map[addressKey]int, len(changes))
	for i, c := range changes {
		last[addressKey{c.reg.App, c.reg.Address}] = i
	}
	var puts, drops []Registration
	for i, c := range changes {
		switch {
		case last[addressKey{c.reg.App, c.reg.Address}] != i:
		case c.gone:
			drops = append(drops, c.reg)
		default:
			puts = append(puts, c.reg)
		}
	}
	_, err := see(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.write(ctx, puts, drops) })
	r.learn(puts, drops, err)
	if errors.Is(err, ErrLocked) && len(drops) == 0 {
		err = nil // a row that is locked is there, and its executor beats again
	}
	if err == nil {
		err = r.tidy(ctx)
	}
	return err
}

// write writes to the store, or to the user's registry.
func (r *registrar) write(ctx context.Context, puts, drops []Registration) error {
	if user := r.s.cfg.Registry; user != nil {
		for _, reg := range puts {
			if err := user.Register(ctx, reg.App, reg.Address); err != nil {
				return err
			}
		}
		for _, reg := range drops {
			if err := user.Deregister(ctx, reg.App, reg.Address); err != nil {
				return err
			}
		}
		return nil
	}
	if err := r.s.setShards(ctx); err != nil {
		return err
	}
	var locked error
	if len(puts) > 0 {
		locked = r.s.store.PutAddresses(ctx, puts)
		if locked != nil && !errors.Is(locked, ErrLocked) {
			return locked
		}
	}
	if len(drops) > 0 {
		if err := r.s.store.DropAddresses(ctx, drops); err != nil {
			return err
		}
	}
	return locked
}

// learn takes in what was stored, and tells the address book what is new to it. After
// an error nothing counts as stored.
func (r *registrar) learn(puts, drops []Registration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, reg := range puts {
		k := addressKey{reg.App, reg.Address}
		was, known := r.known[k]
		if err != nil {
			delete(r.known, k)
			r.s.book.forgetApp(reg.App)
			continue
		}
		r.known[k] = knownAddress{bootID: reg.BootID, at: now}
		if !known || was.bootID != reg.BootID || now.Sub(was.at) >= r.s.cfg.Dead {
			r.s.book.forgetApp(reg.App)
		}
	}
	for _, reg := range drops {
		delete(r.known, addressKey{reg.App, reg.Address})
		r.s.book.left(reg.App, reg.Address)
	}
}

// tidy forgets, now and then, registrations that are long dead.
func (r *registrar) tidy(ctx context.Context) error {
	r.mu.Lock()
	now := time.Now()
	due := now.Sub(r.tidied) >= registrationsTidied
	if due {
		r.tidied = now
		for k, known := range r.known {
			if now.Sub(known.at) >= r.s.cfg.Dead {
				delete(r.known, k)
			}
		}
	}
	r.mu.Unlock()
	if !due || r.s.cfg.Registry != nil {
		return nil
	}
	_, err := call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.s.store.ForgetAddresses(ctx, max(registrationsKept, 2*r.s.cfg.Dead))
	})
	return err
}

// Words for what cannot be registered.
const (
	msgRegistryGroup = "registryGroup %q is not served: want " + wire.GroupExecutor
	msgRegistryValue = "registryValue cannot be called: %v"
	msgRegistryBusy  = "the registry cannot be written at this moment, try again later"
)
