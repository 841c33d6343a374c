package lease

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// Who can work out the jobs of a shard. In: the shards of this node with jobs that it cannot, and
// what nodes say of themselves. Out: shards that it gives up to nodes that can, and such shards that
// it keeps.

// giveAgain is how often a shard is given up for this at most, and how long it is not taken back
// while a node is there that can.
const giveAgain = time.Minute

// Lack notes the shards of this node with jobs that it cannot work out, and why. It reports whether
// another node could, so that the lease loop is to look.
func (l *Leases) Lack(shards map[int]store.TroubleCause) (other bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.able.lacks = shards
	for shard, cause := range shards {
		_, was := l.able.gave[shard]
		other = other || !was && l.canElse(cause) // the next time a beat will do
	}
	return other
}

// canElse reports whether a live node that has a use for shards can work out what this one cannot.
// Called with mu held.
func (l *Leases) canElse(cause store.TroubleCause) bool {
	me := l.Seen.nodes[l.Incarnation]
	if me == nil || cause == "" {
		return false
	}
	for inc, o := range l.Seen.nodes {
		if inc != l.Incarnation && o.live && !o.idle && !o.doubted && o.Node.CanMore(&me.Node, cause) {
			return true
		}
	}
	return false
}

// isGiven reports whether a shard is to be given to a node that can work out its jobs: once a
// minute. Called with mu held.
func (l *Leases) isGiven(shard int, now time.Time) bool {
	cause := l.able.lacks[shard]
	if g, was := l.able.gave[shard]; was && now.Sub(g.at) < giveAgain || !l.canElse(cause) {
		return false
	}
	l.able.gave[shard] = gift{now, cause}
	return true
}

// isForOthers reports whether a free shard is left to a node that can work out its jobs. Called
// with mu held.
func (l *Leases) isForOthers(shard int, now time.Time) bool {
	g, was := l.able.gave[shard]
	return was && now.Sub(g.at) < giveAgain && l.canElse(g.cause)
}

// noteOwners notes which shards have come free that a node had which can do less than this one. It
// may have given them up for that, so they are taken at once, and kept beside the share for as long
// as such a node is there. Called with mu held.
func (l *Leases) noteOwners(shards []store.Shard) {
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
		if sh.Owner == "" && less(l.Seen.nodes[l.able.owner[sh.ID]]) {
			l.able.kept[sh.ID] = true
		}
		if !any || sh.Owner != "" && sh.Owner != l.Incarnation {
			delete(l.able.kept, sh.ID)
		}
		if sh.Owner != "" {
			l.able.owner[sh.ID] = sh.Owner
		}
	}
}
