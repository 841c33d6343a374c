package lease

// Which node has which shards: the live ones hold equal shares, and take over
// what nobody looks after.

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Shares compares what this node has with what is due to it: the live nodes that
// have a use for shards, in order of their incarnations, have equal shares within
// one. What is to be taken above the share comes by itself.
func (l *Leases) Shares(shards []store.Shard, now time.Time) (give, take, above []store.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// What was seen before a time without a look says nothing about what was in it.
	since := l.idle.since
	l.idle.since = nil
	if l.mood.stops || l.mood.rests {
		// Also what a take brought in that was under way when the rest began. Stop itself gives
		// up what is known here, when all has been put back.
		for _, sh := range shards {
			if sh.Owner == l.Incarnation && (l.mood.rests || l.Mine[sh.ID].Epoch != sh.Epoch) {
				give = append(give, sh)
			}
		}
		return give, nil, nil
	}
	if len(shards) == 0 {
		return nil, nil, nil
	}
	var live []string
	for inc, o := range l.Seen.nodes {
		if o.live && !o.idle {
			live = append(live, inc)
		}
	}
	slices.Sort(live)
	rank := slices.Index(live, l.Incarnation)
	if rank < 0 { // superseded
		for id, h := range l.Mine {
			give = append(give, store.Shard{ID: id, Owner: l.Incarnation, Epoch: h.Epoch})
		}
		return give, nil, nil
	}
	share := len(shards) / len(live)
	if rank < len(shards)%len(live) {
		share++
	}
	give = l.surplus(shards, share, len(live), now)
	want := share - (len(l.Mine) - len(give))
	if want == 0 && l.Times.MaxHold > 0 {
		want = 1 // what another gave up for its age; the surplus goes to it in turn
	}
	free := l.takeable(shards, now)
	l.noteIdle(free, since, now)
	if want > 0 {
		// Each node begins at a place of its own, so that they do not all reach for
		// the same ones.
		from := rank * len(free) / len(live)
		take = append(free[from:len(free):len(free)], free[:from]...)
		take = take[:min(want, len(take))]
	}
	return give, take, l.abandoned(free, take, now)
}

// keepAbove is how long a node keeps what it took above its share.
const keepAbove = time.Minute

// noteIdle remembers since when shards have been there for the taking. Where that is
// longer than a lease lasts, something else than their rows keeps them from whoever
// should have taken them, such as a process that was paused between giving up a shard and
// giving up its lock: they are no longer Free, and are taken by their epochs.
func (l *Leases) noteIdle(free []store.Shard, since map[int]time.Time, now time.Time) {
	if now.Sub(l.idle.look) > l.Times.TTL/2 {
		since = nil
	}
	l.idle.look = now
	l.idle.since = make(map[int]time.Time, len(free))
	for i := range free {
		first, known := since[free[i].ID]
		if !known {
			first = now
		}
		l.idle.since[free[i].ID] = first
		if now.Sub(first) > l.Times.TTL {
			free[i].Free = false
		}
	}
}

// abandoned are shards that have been free for longer than two beats take. A node to which
// they are due has seen them by then, if it is well, and has had a beat to take them in,
// unless it came too late to find their owner silent; and a shard without an owner stands
// still.
func (l *Leases) abandoned(free, take []store.Shard, now time.Time) (above []store.Shard) {
	for _, sh := range free {
		if (now.Sub(l.idle.since[sh.ID]) > 2*l.Times.TTL/5 || l.able.kept[sh.ID]) && !hasShard(take, sh.ID) {
			above = append(above, sh)
			l.idle.rescue[sh.ID] = now // until it is known that it was not taken
		}
	}
	return above
}

// surplus are the shards to give up: those above the share, and with
// LeaseMaxHold those held for too long while others are there to take them. What
// was rescued does not count: it would drive others out, and they would be idle in
// turn.
func (l *Leases) surplus(shards []store.Shard, share, live int, now time.Time) (give []store.Shard) {
	kept := 0
	for id := range l.Mine {
		if at, above := l.idle.rescue[id]; above && now.Sub(at) < keepAbove || l.able.kept[id] {
			kept++
		}
	}
	for i := len(shards) - 1; i >= 0; i-- {
		sh := shards[i]
		h, ok := l.Mine[sh.ID]
		if !ok {
			continue
		}
		old := l.Times.MaxHold > 0 && live > 1 && now.Sub(h.since) >= l.Times.MaxHold
		if l.isToBeGiven(sh.ID, now) {
			give = append(give, store.Shard{ID: sh.ID, Owner: l.Incarnation, Epoch: h.Epoch})
			continue
		}
		if old {
			l.idle.rest[sh.ID] = now.Add(l.Times.TTL)
		}
		if at, above := l.idle.rescue[sh.ID]; above && now.Sub(at) < keepAbove || l.able.kept[sh.ID] && !old {
			continue
		}
		if old || len(l.Mine)-kept-len(give) > share {
			give = append(give, store.Shard{ID: sh.ID, Owner: l.Incarnation, Epoch: h.Epoch})
		}
	}
	return give
}

// takeable are the shards that nobody looks after.
func (l *Leases) takeable(shards []store.Shard, now time.Time) (take []store.Shard) {
	for _, sh := range shards {
		if _, mine := l.Mine[sh.ID]; mine || now.Before(l.idle.rest[sh.ID]) || l.isForOthers(sh.ID, now) {
			continue
		}
		delete(l.idle.rest, sh.ID)
		owner := l.Seen.nodes[sh.Owner]
		if sh.Free || sh.Owner == "" || owner != nil && !owner.live {
			take = append(take, sh)
		}
	}
	return take
}
