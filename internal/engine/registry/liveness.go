package registry

import (
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Which processes are at the addresses of runs that executors have accepted, as far as this
// node has heard while it looked. Input: registrations as they come, what is read of an
// app's addresses now and then, and answers. Output: for how long an address has been silent,
// and for how long the process that had a run has been replaced. A node that has not looked
// for a while begins anew: what it did not see says nothing.

// bootsKept is how many processes are remembered of one address, beside those that have runs.
const bootsKept = 16

// liveness are what was heard of addresses. It is safe for concurrent use.
type liveness struct {
	dead time.Duration // Config.Cluster.Dead

	mu     sync.Mutex
	at     map[SiteKey]*presence // guarded by mu: by app and normal address
	shared sharedAddresses       // guarded by mu
}

// presence is one address.
type presence struct {
	wanted map[string]bool // the processes that have runs there
	since  time.Time       // from when on this node has looked without a gap
	looked time.Time       // the last look
	heard  time.Time       // when the address was last heard of; zero for not since then
	listed bool            // it is one of the app's, as of the last look
	manual bool            // it was given by hand
	named  bool            // a process has registered that can be told from others
	// boots are the processes that have registered there, the one that was heard of last
	// behind the others. from is when the first of all was.
	boots []bootSeen
	from  time.Time
	// back is when a process was last heard of again behind another one: several are there.
	back time.Time
	// dropped is when one was forgotten for want of room.
	dropped time.Time
}

// bootSeen is a process that has registered.
type bootSeen struct {
	id   string    // empty for executors of others
	last time.Time // when it was last heard of
	gone time.Time // when another one took its place; zero for the last of all
}

// Standing is what a presence says about a run.
type Standing struct {
	Since    time.Time     // from when on this node has looked
	Manual   bool          // the address was given by hand
	Listed   bool          // the address is one of the app's
	Unnamed  bool          // processes are told apart there by their answers alone, and not by what is registered
	Silent   time.Duration // for how long it was none, and nothing was heard of it
	Replaced time.Duration // for how long another process than the run's is registered there
	Several  bool          // several processes are there, or were until a while ago
	Boots    []string      // where there are several: the boot ids that were heard of lately, nil where they are not all known
}

func newLiveness(dead time.Duration) *liveness {
	return &liveness{dead: dead, at: map[SiteKey]*presence{}}
}

func LivenessKey(app, address string) SiteKey { return SiteKey{app, wire.NormalAddress(address)} }

// Watch has these addresses looked at from now on, and no others, for the runs of these
// processes.
func (p *liveness) Watch(keys map[SiteKey]map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.at {
		if keys[k] == nil {
			delete(p.at, k)
		}
	}
	for k, boots := range keys {
		if p.at[k] == nil {
			p.at[k] = &presence{}
		}
		p.at[k].wanted = boots
	}
}

// Look takes in what was read of an app's addresses at a moment. Where the look before is
// longer ago than gap, what was seen before it does not count.
func (p *liveness) Look(app string, a Answer, now time.Time, gap time.Duration) {
	there := make(map[string]string, len(a.Addrs)) // by normal address, as it is spelled
	for _, address := range a.Addrs {
		there[wire.NormalAddress(address)] = address
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, at := range p.at {
		if k.App != app {
			continue
		}
		if at.looked.IsZero() || now.Sub(at.looked) > gap {
			*at = presence{wanted: at.wanted, since: now, heard: at.heard}
		}
		address, listed := there[k.Address]
		if at.listed && !listed && now.Sub(at.heard) < p.dead {
			at.heard = now // it was taken back since the last look, by an executor that was there
		}
		at.looked, at.listed, at.manual = now, listed, a.Manual
		if !listed || a.Manual {
			continue
		}
		heard := a.at.Add(-a.ages[address])
		at.hear(heard)
		if former, was := a.former[address]; was {
			at.stored(former.id, a.at.Add(-former.ago), now)
		}
		if at.named = at.named || a.boots[address] != ""; at.named && a.boots != nil {
			at.stored(a.boots[address], heard, now)
		}
		p.shared.back(k, at.back)
	}
}

// beat takes in a registration that has come to this node.
func (p *liveness) beat(reg store.Registration, now time.Time) {
	p.mu.Lock()
	watched := len(p.at) > 0
	p.mu.Unlock()
	if !watched {
		return
	}
	key := LivenessKey(reg.App, reg.Address)
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.at[key]; at != nil && !at.looked.IsZero() {
		at.hear(now)
		if at.named = at.named || reg.BootID != ""; at.named {
			at.register(reg.BootID, now, now)
			p.shared.back(key, at.back)
		}
	}
}

// Answered takes in which process has answered a question. It is all that there is to tell them
// apart where the address was given by hand, or comes from a registry of the user's.
func (p *liveness) Answered(key SiteKey, boot string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.at[key]; at != nil && !at.looked.IsZero() {
		at.register(boot, now, now)
		p.shared.back(key, at.back)
	}
}

// TookTurns takes in that a job was idle and then busy at an address, though no run of it has come
// there in between.
func (p *liveness) TookTurns(key SiteKey, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shared.saw(key, now, store.SeenSharedAnswers)
}

// Shared reports whether an address stands for several processes, by what was seen lately: how
// that shows, and for how long it will be held against it.
func (p *liveness) Shared(key SiteKey, now time.Time) (how store.SeenWhat, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shared.of(key, now)
}

func (at *presence) hear(when time.Time) {
	if when.After(at.heard) {
		at.heard = when
	}
}

// stored takes in that a process was registered at a moment, as the store has it. That is a
// little later than it was: the node that took the registration has stored it with others, and
// the estimate of the store's clock is late. So a process that is replaced is heard of again only
// if that is clearly after the other one has come.
func (at *presence) stored(boot string, when, now time.Time) {
	i := slices.IndexFunc(at.boots, func(b bootSeen) bool { return b.id == boot })
	if i < 0 || i == len(at.boots)-1 || when.After(at.boots[i].gone.Add(storedLate)) {
		at.register(boot, when, now)
	}
}

// storedLate is by how much later a registration may look that was read from the store.
const storedLate = 300 * time.Millisecond

// register takes in that a process was registered at a moment, which is known from now on.
func (at *presence) register(boot string, when, now time.Time) {
	i := slices.IndexFunc(at.boots, func(b bootSeen) bool { return b.id == boot })
	switch {
	case i >= 0 && (i == len(at.boots)-1 || !when.After(at.boots[i].gone)): // nothing new
		at.boots[i].last = core.Later(at.boots[i].last, when)
		return
	case i >= 0:
		at.boots, at.back = slices.Delete(at.boots, i, i+1), now
	case len(at.boots) == 0:
		at.from = now
	case len(at.boots) >= bootsKept:
		at.dropOne()
	}
	seen, n := bootSeen{id: boot, last: when}, len(at.boots)
	switch {
	case n > 0 && at.boots[n-1].last.After(when): // it was there before the others, and is only known now
		seen.gone = now
		n = slices.IndexFunc(at.boots, func(b bootSeen) bool { return b.last.After(when) })
	case n > 0 && at.boots[n-1].gone.IsZero():
		at.boots[n-1].gone = now
	}
	at.boots = slices.Insert(at.boots, n, seen)
}

// dropOne forgets the oldest process that has no runs, so that one which comes up and dies
// again and again does not hide for how long its first process has been gone.
func (at *presence) dropOne() {
	if i := slices.IndexFunc(at.boots, func(b bootSeen) bool { return !at.wanted[b.id] }); i >= 0 && i < len(at.boots)-1 {
		at.dropped = core.Later(at.dropped, at.boots[i].last)
		at.boots = slices.Delete(at.boots, i, i+1)
	}
}

// Of says how the address of a run stands, which was started for the process of a boot id.
func (p *liveness) Of(key SiteKey, boot string, now time.Time) Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.at[key]
	if at == nil || at.looked.IsZero() {
		return Standing{Since: now, Listed: true}
	}
	s := Standing{Since: at.since, Manual: at.manual, Listed: at.listed, Unnamed: at.manual || !at.named}
	if from := at.heard; !at.listed {
		if at.since.After(from) {
			from = at.since
		}
		s.Silent = now.Sub(from)
	}
	_, shared := p.shared.of(key, now)
	if s.Several = shared > 0 || at.several(now, p.dead); s.Several {
		s.Boots = at.lately(now, p.dead)
	}
	if boot != "" && !s.Unnamed {
		s.Replaced = at.replaced(boot, now, p.dead, s.Several)
	}
	return s
}

// lately are the processes that were heard of lately, nil where some of them are forgotten.
func (at *presence) lately(now time.Time, dead time.Duration) (ids []string) {
	if !at.dropped.IsZero() && now.Sub(at.dropped) < alternating*dead {
		return nil
	}
	for _, b := range at.boots {
		if b.id != "" && now.Sub(b.last) < alternating*dead {
			ids = append(ids, b.id)
		}
	}
	return ids
}

// replaced is for how long a process has been replaced by others. Where several are there,
// behind a balancer, each takes the place of the others again and again: then it is for how
// long that process itself was not heard of, once that is long enough.
func (at *presence) replaced(boot string, now time.Time, dead time.Duration, several bool) time.Duration {
	if len(at.boots) == 0 {
		return 0
	}
	gone, last := at.from, at.since // where it was not heard of since then
	if i := slices.IndexFunc(at.boots, func(b bootSeen) bool { return b.id == boot }); i >= 0 {
		gone, last = at.boots[i].gone, at.boots[i].last
	}
	switch unheard := now.Sub(last); {
	case gone.IsZero(), several && unheard < alternating*dead:
		return 0
	case several:
		return unheard
	}
	return now.Sub(gone)
}

// several reports whether a process was heard of again behind another one, a while ago at most.
func (at *presence) several(now time.Time, dead time.Duration) bool {
	return !at.back.IsZero() && now.Sub(at.back) < alternating*dead
}

// alternating is for how many times Cluster.Dead an address counts as that of several
// processes after one was heard of again behind another.
const alternating = 3
