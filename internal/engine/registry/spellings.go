package registry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// One executor may be known by several spellings of its address ("http://Host:80" and
// "http://host/"). The rule: where two addresses are compared, their normal forms are
// (wire.NormalAddress); what an executor has given is stored, sent, shown, and hashed by the
// strategies as it is, since XXL-JOB does so. Rows of the registry go by the text too, and so
// do what this node knows of them, and its clients.

// byNormal are the spellings in a list of each address, by its normal form.
func byNormal(addrs []string) map[string][]string {
	by := make(map[string][]string, len(addrs))
	for _, a := range addrs {
		normal := wire.NormalAddress(a)
		by[normal] = append(by[normal], a)
	}
	return by
}

// containsSpelling reports whether an address is in a list, however it is spelled.
func containsSpelling(addrs []string, address string) bool {
	normal := wire.NormalAddress(address)
	return slices.ContainsFunc(addrs, func(a string) bool { return a == address || wire.NormalAddress(a) == normal })
}

// oneSpelling leaves the first spelling of each address of a sorted list: an executor must not
// get two parts of a broadcast.
func oneSpelling(addrs []string) []string {
	addrs = slices.Compact(addrs)
	if len(addrs) < 2 {
		return addrs
	}
	seen := make(map[string]bool, len(addrs))
	return slices.DeleteFunc(addrs, func(a string) bool {
		normal := wire.NormalAddress(a)
		again := seen[normal]
		seen[normal] = true
		return again
	})
}

// chosenFrom are the given addresses that an app has, as the app spells them, and the others.
func chosenFrom(all, given []string) (wanted, unknown []string) {
	spelled := byNormal(all)
	for _, g := range given {
		if same := spelled[wire.NormalAddress(g)]; same != nil {
			wanted = append(wanted, same[0])
		} else {
			unknown = append(unknown, g)
		}
	}
	return wanted, unknown
}

// spellings are how the registry spells the addresses of apps, for a good-bye of one that is not
// known as it is spelled. What the registry has of an app is read once a second at most, however
// many ask. It is safe for concurrent use.
type spellings struct {
	core *core.Core
	read singleflight.Group // by app

	mu   sync.Mutex
	apps map[string]spelled // guarded by mu
}

// spelled are an app's addresses by their normal form.
type spelled struct {
	at time.Time
	by map[string][]string
}

// spellingsKept is how long what was read of an app serves.
const spellingsKept = time.Second

func newSpellings(c *core.Core) *spellings { return &spellings{core: c, apps: map[string]spelled{}} }

// others are the registrations of the same address in other spellings. Where they cannot be
// read there are none: they end by their silence.
func (s *spellings) others(ctx context.Context, reg store.Registration) (others []store.Registration) {
	has, err := s.ofApp(ctx, reg.App)
	if err != nil {
		return nil
	}
	for _, address := range has.by[wire.NormalAddress(reg.Address)] {
		if address != reg.Address {
			others = append(others, store.Registration{App: reg.App, Address: address, BootID: reg.BootID})
		}
	}
	return others
}

func (s *spellings) ofApp(ctx context.Context, app string) (spelled, error) {
	if has, ok := s.kept(app); ok {
		return has, nil
	}
	v, err, _ := s.read.Do(app, func() (any, error) {
		if has, ok := s.kept(app); ok { // a reading has ended since
			return has, nil
		}
		return s.look(context.WithoutCancel(ctx), app)
	})
	if err != nil {
		return spelled{}, err
	}
	return v.(spelled), nil
}

// kept is what was read of an app, while it serves.
func (s *spellings) kept(app string) (spelled, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has, ok := s.apps[app]
	return has, ok && time.Since(has.at) < spellingsKept
}

func (s *spellings) look(ctx context.Context, app string) (spelled, error) {
	regs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Registration, error) {
		return s.core.Store.Addresses(ctx, app, s.core.Cfg.Cluster.Dead)
	})
	if err != nil {
		return spelled{}, err
	}
	addrs := make([]string, len(regs))
	for i, r := range regs {
		addrs[i] = r.Address
	}
	has := spelled{at: time.Now(), by: byNormal(addrs)}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.apps, func(_ string, old spelled) bool { return has.at.Sub(old.at) >= spellingsKept })
	s.apps[app] = has
	return has, nil
}
