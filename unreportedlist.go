package xxljob

// The runs that executors have accepted and nobody has reported: those that this node looks
// after, in the same list as runs in doubt, so that an address is asked about them by one at
// a time.

import (
	"maps"
	"time"
)

// unreportedMost is how many of them a node looks after at a time.
const unreportedMost = 50_000

// unreportedTurn is how many runs of one address are looked at in one go: those of one job share
// a question where the executor answers about jobs.
const unreportedTurn = 64

// unreportedList are those runs. It is safe for concurrent use.
type unreportedList struct{ inDoubtList }

// keep has these runs looked after, and returns those that are new here. They are asked about
// now, or later where their executor is one of ours, which says more by itself. A run whose
// shard is another node's by now is kept for a while: where shards go to and fro, each node
// would otherwise begin to look anew each time, and none would look for long enough.
func (l *unreportedList) keep(runs map[int64]Run, owned func(shard int) bool, now time.Time, dead time.Duration) (fresh []Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		l.runs, l.asking, l.turn = map[int64]*runInDoubt{}, map[siteKey]bool{}, unreportedTurn
	}
	for id, o := range l.runs {
		r, is := runs[id]
		switch said := &o.accepted; {
		case is && r.Token == o.run.Token && r.Owner == o.run.Owner && r.Address == o.run.Address:
			if !said.left.IsZero() {
				said.left, o.next = time.Time{}, now
			}
		case !is && !owned(o.run.Shard) && (said.left.IsZero() || now.Sub(said.left) < leftFor*dead):
			setDefault(&said.left, now)
			o.next = said.left.Add(leftFor * dead)
		default:
			delete(l.runs, id)
		}
	}
	for id, r := range runs {
		if l.runs[id] == nil {
			o := &runInDoubt{run: r, since: now, next: now, accepted: saidSoFar{known: now}}
			if r.BootID != "" {
				o.next = now.Add(dead)
			}
			l.runs[id] = o
			fresh = append(fresh, r)
		}
	}
	return fresh
}

// leftFor is for how many times Cluster.Dead a run is kept whose shard is another node's.
const leftFor = 3

// any reports whether there are runs at all, those included whose shards are other nodes'.
func (l *unreportedList) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs) > 0
}

// ofAddress are all runs of an address that are this node's to look after. It is for whoever
// asks about the address.
func (l *unreportedList) ofAddress(k siteKey) (list []*runInDoubt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.runs {
		if o.accepted.left.IsZero() && o.run.App == k.app && o.run.Address == k.address {
			list = append(list, o)
		}
	}
	return list
}

// addresses are those of the runs, as presences know them, with the processes that have the
// runs.
func (l *unreportedList) addresses() map[siteKey]map[string]bool {
	l.mu.Lock()
	spelled := make(map[siteKey]map[string]bool)
	for _, o := range l.runs {
		k := siteKey{o.run.App, o.run.Address}
		if spelled[k] == nil {
			spelled[k] = map[string]bool{}
		}
		if o.run.BootID != "" {
			spelled[k][o.run.BootID] = true
		}
	}
	l.mu.Unlock()
	keys := make(map[siteKey]map[string]bool, len(spelled))
	for k, boots := range spelled {
		key := presenceKey(k.app, k.address)
		if keys[key] == nil {
			keys[key] = boots
			continue
		}
		maps.Copy(keys[key], boots)
	}
	return keys
}

// idle are the runs of addresses that are not being asked.
func (l *unreportedList) idle() []*runInDoubt {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*runInDoubt, 0, len(l.runs))
	for _, o := range l.runs {
		if o.accepted.left.IsZero() && !l.asking[siteKey{o.run.App, o.run.Address}] {
			list = append(list, o)
		}
	}
	return list
}

// at sets when a run is to be asked about again.
func (l *unreportedList) at(o *runInDoubt, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.next = next
}
