package xxljob

// The runs that executors have accepted and nobody has reported: those that this node looks
// after, in the same list as runs in doubt, so that an address is asked about them by one at
// a time.

import "time"

const (
	// unreportedMost is how many of them a node looks after at a time: the oldest.
	unreportedMost = 50_000
	// unreportedTurn is how many runs of one address are looked at in one go: those of one
	// job share a question where the executor answers about jobs.
	unreportedTurn = 64
)

// unreportedList are those runs. It is safe for concurrent use.
type unreportedList struct{ inDoubtList }

// keep has these runs looked after and no others. Those that are new are asked about now, or
// later where their executor is one of ours, which says more by itself.
func (l *unreportedList) keep(runs map[int64]Run, now, later time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		l.runs, l.asking, l.turn = map[int64]*runInDoubt{}, map[addressKey]bool{}, unreportedTurn
	}
	for id, o := range l.runs {
		if r, is := runs[id]; !is || r.Token != o.run.Token || r.Owner != o.run.Owner || r.Address != o.run.Address {
			delete(l.runs, id)
		}
	}
	for id, r := range runs {
		if l.runs[id] == nil {
			o := &runInDoubt{run: r, since: now, next: now}
			if r.BootID != "" {
				o.next = later
			}
			l.runs[id] = o
		}
	}
}

// slimmed is a run without what may be long and nobody asks for here.
func slimmed(r Run) Run {
	r.Param, r.TriggerMsg, r.HandleMsg, r.ProgressText, r.Addresses = "", "", "", "", nil
	return r
}

// addresses are those of the runs, as presences know them.
func (l *unreportedList) addresses() map[addressKey]bool {
	l.mu.Lock()
	spelled := make(map[addressKey]bool)
	for _, o := range l.runs {
		spelled[addressKey{o.run.App, o.run.Address}] = true
	}
	l.mu.Unlock()
	keys := make(map[addressKey]bool, len(spelled))
	for k := range spelled {
		keys[presenceKey(k.app, k.address)] = true
	}
	return keys
}

// idle are the runs of addresses that are not being asked.
func (l *unreportedList) idle() []*runInDoubt {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*runInDoubt, 0, len(l.runs))
	for _, o := range l.runs {
		if !l.asking[addressKey{o.run.App, o.run.Address}] {
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
