package lease

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Which node can work out the jobs of a shard: one that lacks the data of a zone, or does not know a schedule
// of a newer release, gives it to one that can. Input: the shards of this node with jobs that it cannot work
// out, and what nodes say of themselves. Output: shards that it gives up to nodes that can, and such shards
// that it keeps.

// giveAgain is how often a shard is given up for this at most, and how long it is not taken back
// while a node is there that can.
const giveAgain = time.Minute

// Lack is why this node cannot work out jobs of a shard.
type Lack struct {
	Cause store.TroubleCause
	Zones []string // that it has no data of; none for another cause
}

// mostZones is how many zones a node remembers that it has no data of.
const mostZones = 100

// Lack notes the shards of this node with jobs that it cannot work out, and why. It reports whether
// another node could, so that the lease loop is to look.
func (l *Leases) Lack(shards map[int]Lack) (other bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.able.lacks = shards
	for shard, lack := range shards {
		l.miss(lack.Zones)
		_, was := l.able.gave[shard]
		other = other || !was && l.anotherCan(lack) // the next time a beat will do
	}
	return other
}

// Miss notes that this node has no data of zones, which others have met.
func (l *Leases) Miss(zones []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.miss(zones)
}

// miss is called with mu held.
func (l *Leases) miss(zones []string) {
	for _, zone := range zones {
		if !slices.Contains(l.able.zones, zone) && len(l.able.zones) < mostZones {
			l.able.zones = append(slices.Clone(l.able.zones), zone) // who has the list goes on reading it
		}
	}
}

// Missing are the zones that this node has no data of, as far as it knows. The caller does not change
// them.
func (l *Leases) Missing() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.able.zones
}

// anotherCan reports whether a live node that has a use for shards can work out what this one cannot.
// Called with mu held.
func (l *Leases) anotherCan(lack Lack) bool {
	me := l.Seen.nodes[l.Incarnation]
	if me == nil || lack.Cause == "" {
		return false
	}
	for inc, o := range l.Seen.nodes {
		if inc != l.Incarnation && o.live && !o.idle && !o.doubted && lack.endsAt(&o.Node, &me.Node) {
			return true
		}
	}
	return false
}

// endsAt reports whether a node can work out what this one, me, cannot.
func (x Lack) endsAt(n, me *store.Node) bool {
	if x.Cause != store.TroubleUnknownZone {
		return n.CanMore(me, x.Cause)
	}
	return n.Zones && !slices.ContainsFunc(x.Zones, func(zone string) bool { return slices.Contains(n.UnknownZones, zone) })
}

// isToBeGiven reports whether a shard is to be given to a node that can work out its jobs: once a
// minute. Called with mu held.
func (l *Leases) isToBeGiven(shard int, now time.Time) bool {
	lack := l.able.lacks[shard]
	if g, was := l.able.gave[shard]; was && now.Sub(g.at) < giveAgain || !l.anotherCan(lack) {
		return false
	}
	l.able.gave[shard] = gift{now, lack}
	return true
}

// isForOthers reports whether a free shard is left to a node that can work out its jobs. Called
// with mu held.
func (l *Leases) isForOthers(shard int, now time.Time) bool {
	g, was := l.able.gave[shard]
	return was && now.Sub(g.at) < giveAgain && l.anotherCan(g.lack)
}

// noteOwners notes which shards have come free that a node had which can do less than this one. It
// may have given them up for that, so they are taken at once, and kept beside the share for as long
// as such a node is there. Where this one misses what that one misses, they are left to others.
// Called with mu held.
func (l *Leases) noteOwners(shards []store.Shard, now time.Time) {
	me := l.Seen.nodes[l.Incarnation]
	if me == nil {
		return
	}
	less := func(o *Observed) bool {
		return o != nil && o.live && (me.Node.CanMore(&o.Node, store.TroubleUnknownZone) || me.Node.CanMore(&o.Node, store.TroubleUnknownSchedule))
	}
	any := false
	for _, o := range l.Seen.nodes {
		any = any || less(o)
	}
	for _, sh := range shards {
		former := l.Seen.nodes[l.able.owner[sh.ID]]
		if sh.Owner == "" && less(former) {
			l.able.kept[sh.ID] = true
		} else if sh.Owner == "" && former != nil && former.live && former != me {
			if both := l.missed(former.Node.UnknownZones); len(both) > 0 {
				l.able.gave[sh.ID] = gift{now, Lack{store.TroubleUnknownZone, both}}
				delete(l.able.owner, sh.ID) // once
			}
		}
		if !any || sh.Owner != "" && sh.Owner != l.Incarnation {
			delete(l.able.kept, sh.ID)
		}
		if sh.Owner != "" {
			l.able.owner[sh.ID] = sh.Owner
		}
	}
}

// missed are those of the zones that this node has no data of. Called with mu held.
func (l *Leases) missed(zones []string) (both []string) {
	for _, zone := range zones {
		if slices.Contains(l.able.zones, zone) {
			both = append(both, zone)
		}
	}
	return both
}
