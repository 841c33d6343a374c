package xxljob

// Other spellings of addresses that are registered. Input: an address that is to be
// forgotten, and is not known as it is spelled. Output: how the registry spells it. What the
// registry has of an app is read once a second at most, however many ask.

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/xxljob/xxljob/wire"
)

// twins are the spellings that the registry has. It is safe for concurrent use.
type twins struct {
	s    *shared
	read singleflight.Group // by app

	mu   sync.Mutex
	apps map[string]spellings // guarded by mu
}

// spellings are an app's addresses by their normal form.
type spellings struct {
	at time.Time
	by map[string][]string
}

// spellingsKept is how long what was read of an app serves.
const spellingsKept = time.Second

func newTwins(s *shared) *twins { return &twins{s: s, apps: map[string]spellings{}} }

// of are the registrations of the same address in other spellings. Where they cannot be
// read there are none: they end by their silence.
func (t *twins) of(ctx context.Context, reg Registration) (others []Registration) {
	has, err := t.spellings(ctx, reg.App)
	if err != nil {
		return nil
	}
	for _, address := range has.by[wire.NormalAddress(reg.Address)] {
		if address != reg.Address {
			others = append(others, Registration{App: reg.App, Address: address, BootID: reg.BootID})
		}
	}
	return others
}

func (t *twins) spellings(ctx context.Context, app string) (spellings, error) {
	if has, ok := t.kept(app); ok {
		return has, nil
	}
	v, err, _ := t.read.Do(app, func() (any, error) {
		if has, ok := t.kept(app); ok { // a reading has ended since
			return has, nil
		}
		return t.look(context.WithoutCancel(ctx), app)
	})
	if err != nil {
		return spellings{}, err
	}
	return v.(spellings), nil
}

// kept is what was read of an app, while it serves.
func (t *twins) kept(app string) (spellings, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	has, ok := t.apps[app]
	return has, ok && time.Since(has.at) < spellingsKept
}

func (t *twins) look(ctx context.Context, app string) (spellings, error) {
	regs, err := call(ctx, func(ctx context.Context) ([]Registration, error) {
		return t.s.store.Addresses(ctx, app, t.s.cfg.Cluster.Dead)
	})
	if err != nil {
		return spellings{}, err
	}
	has := spellings{at: time.Now(), by: make(map[string][]string, len(regs))}
	for _, r := range regs {
		normal := wire.NormalAddress(r.Address)
		has.by[normal] = append(has.by[normal], r.Address)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.apps, func(_ string, old spellings) bool { return has.at.Sub(old.at) >= spellingsKept })
	t.apps[app] = has
	return has, nil
}
