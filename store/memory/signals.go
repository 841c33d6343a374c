package memory

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// watcher is one call of Watch that has not ended. Signals are sent while mu is
// held, and never wait: a channel that is full has its signal already.
type watcher struct {
	incarnation                                     string
	scan, ahead, owed, alarms, inbox, nodes, finish chan struct{}
}

// Watch returns signals for the incarnation until ctx ends. With an empty one
// they are Nodes and Ended only.
func (s *Store) Watch(ctx context.Context, incarnation string) store.Signals {
	w := &watcher{
		incarnation: incarnation,
		scan:        make(chan struct{}, 1),
		ahead:       make(chan struct{}, 1),
		owed:        make(chan struct{}, 1),
		alarms:      make(chan struct{}, 1),
		inbox:       make(chan struct{}, 1),
		nodes:       make(chan struct{}, 1),
		finish:      make(chan struct{}, 1),
	}
	if over(ctx) == nil {
		s.mu.Lock()
		s.watchers = append(s.watchers, w)
		s.mu.Unlock()
		context.AfterFunc(ctx, func() { s.unwatch(w) })
	}
	return store.Signals{Scan: w.scan, Ahead: w.ahead, Owed: w.owed, Alarms: w.alarms, Inbox: w.inbox, Nodes: w.nodes, Ended: w.finish}
}

func (s *Store) unwatch(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = slices.DeleteFunc(s.watchers, func(other *watcher) bool { return other == w })
}

func tell(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// tellScan tells the owner of the job's shard that the job, or a planned run of
// it, may be due earlier than it knows.
func (s *Store) tellScan(j *job) {
	s.tellOwner(j.shard, func(w *watcher) { tell(w.scan) })
}

// tellAhead tells the owner of the job's shard that a run of it is kept apart.
func (s *Store) tellAhead(j *job) {
	s.tellOwner(j.shard, func(w *watcher) { tell(w.ahead) })
}

func (s *Store) tellOwner(sh *shard, tell func(*watcher)) {
	if sh.owner == "" {
		return
	}
	for _, w := range s.watchers {
		if w.incarnation == sh.owner {
			tell(w)
		}
	}
}

// tellInbox tells the addressee of a run that waits to be taken.
func (s *Store) tellInbox(r *run) {
	if r.untaken() {
		s.tellKill(r)
	}
}

// tellKill tells the addressee of a run, if it has one.
func (s *Store) tellKill(r *run) {
	if r.addressee != nil {
		s.tellNode(r.addressee.incarnation)
	}
}

// tellNode tells a node that something waits for it.
func (s *Store) tellNode(incarnation string) {
	for _, w := range s.watchers {
		if w.incarnation == incarnation {
			tell(w.inbox)
		}
	}
}

func (s *Store) tellNodes() {
	for _, w := range s.watchers {
		tell(w.nodes)
	}
}

func (s *Store) tellEnded() {
	for _, w := range s.watchers {
		tell(w.finish)
	}
}
