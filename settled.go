package xxljob

import "github.com/xxljob/xxljob/store"

// What is known of shards that are new to this node: until their former owner's runs are
// looked at and what is planned is loaded, no run of a serial job is started there.

// isOpen reports whether a run of a serial job of a shard may be started, for what its former
// owner has left of those up to it is known, and whether the shard is this node's at all.
func (l *leases) isOpen(shard int, run ringEntry) (open, owned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, owned := l.mine[shard]
	return h.settled && (h.loaded || !h.loadedTo.before(run)), owned
}

// isSettled reports whether what the former owner of a shard has left was looked at.
func (l *leases) isSettled(shard int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mine[shard].settled
}

// unsettled returns the shards that are not settled, and unloaded those that are not
// loaded (see hold).
func (l *leases) unsettled() []store.Shard {
	return l.which(func(h hold) bool { return !h.settled })
}

func (l *leases) unloaded() []store.Shard {
	return l.which(func(h hold) bool { return !h.loaded })
}

func (l *leases) which(is func(hold) bool) (shards []store.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, h := range l.mine {
		if is(h) {
			shards = append(shards, store.Shard{ID: id, Owner: l.incarnation, Epoch: h.epoch})
		}
	}
	return shards
}

// note changes what is known of shards, unless they were lost meanwhile.
func (l *leases) note(shards []store.Shard, change func(*hold)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sh := range shards {
		if h, ok := l.mine[sh.ID]; ok && h.epoch == sh.Epoch {
			change(&h)
			l.mine[sh.ID] = h
		}
	}
}

// verdict is about a run as this node has seen it.
func (l *leases) verdict(r Run, to State, msg string) Verdict {
	epoch, _ := l.epoch(r.Shard)
	return Verdict{RunID: r.ID, Shard: r.Shard, Epoch: epoch, Owner: r.Owner, Token: r.Token, Taken: !r.Taken.IsZero(), To: to, Msg: msg}
}

// newToken numbers a start, or the adoption of one, under the epoch of its shard. Of two
// starts of a run the later has the greater number: under one epoch they are one node's,
// and a later owner has a greater epoch.
func (l *leases) newToken(epoch int64) int64 {
	return epoch<<tokenBits | l.token.Add(1)&(1<<tokenBits-1)
}

// tokenBits is how many bits of a token number the starts of a node.
const tokenBits = 36
