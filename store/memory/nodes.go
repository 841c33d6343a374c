package memory

// Nodes, and the signals by which they hear of each other.

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// peer is what changes often of a node, and what the runs that name an
// incarnation have in common. It is there while either is. All of it is guarded
// by Store.mu; the slow part of the node is in the catalogue.
type peer struct {
	incarnation string

	joined bool // there is a node
	left   bool
	beats  int64

	unended int        // places in unended runs: as owner and as addressee
	inbox   order[run] // started runs addressed to it that wait to be taken
	kills   order[run] // unended runs that it has taken and is to kill
}

// peer returns the incarnation's, making it where need be.
func (s *Store) peer(incarnation string) *peer {
	p := s.peers[incarnation]
	if p == nil {
		p = &peer{incarnation: incarnation}
		s.peers[incarnation] = p
	}
	return p
}

// forget lets go of a peer that nothing names any more.
func (s *Store) forget(p *peer) {
	if !p.joined && p.unended == 0 {
		delete(s.peers, p.incarnation)
	}
}

// tombstone remembers a deleted node, lest it come back as the latest of its ID.
type tombstone struct {
	node store.Node // what a beat that adds it again gives it back
}

// maxTombstones bounds them; the oldest go first.
const maxTombstones = 1024

// Now returns the zero time where the store goes by this process's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownTime(), over(ctx)
}

// ownTime is what its clock says, the zero time where that is this process's. It is called with mu
// held.
func (s *Store) ownTime() time.Time {
	if s.goesBy == nil {
		return time.Time{}
	}
	return s.goesBy().UTC()
}

// Join adds a node.
func (s *Store) Join(ctx context.Context, n store.Node) (store.View, error) {
	if err := s.begin(ctx); err != nil {
		return store.View{}, err
	}
	defer s.done()
	n.Joined, n.Resting, n.Failing, n.Away, n.UnknownZones = s.clock(), false, false, false, nil
	n.Version, n.ClockOffset = "", 0
	if err := s.addNode(n); err != nil {
		return store.View{}, err
	}
	return s.view(n.Incarnation)
}

// addNode adds the node with its first beat.
func (s *Store) addNode(n store.Node) error {
	n.Attached, n.Routers = copiedAttached(n.Attached), plain(n.Routers)
	if err := s.insert(tableNodes, &n); err != nil {
		return err
	}
	p := s.peer(n.Incarnation)
	p.joined, p.left, p.beats = true, false, 1
	s.tellNodes()
	return nil
}

// Beat raises the node's counter. The catalogue is written only when the
// attached executors are others than before.
func (s *Store) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	if err := s.begin(ctx); err != nil {
		return store.View{}, err
	}
	defer s.done()
	if err := s.beat(incarnation, attached); err != nil {
		return store.View{}, err
	}
	return s.view(incarnation)
}

func (s *Store) beat(incarnation string, attached []store.Attachment) error {
	p := s.peers[incarnation]
	if p == nil || !p.joined {
		n := s.exhume(incarnation)
		n.Attached, n.Resting = attached, attached == nil
		return s.addNode(n)
	}
	n, err := first[store.Node](s.db, tableNodes, incarnation)
	if err != nil {
		return err
	}
	if resting := attached == nil; n.Resting != resting || !slices.EqualFunc(n.Attached, attached, sameAttachment) {
		changed := *n
		changed.Attached, changed.Resting = copiedAttached(attached), resting
		if err := s.insert(tableNodes, &changed); err != nil {
			return err
		}
		s.tellNodes()
	}
	p.beats++
	if p.left {
		p.left = false
		s.tellNodes()
	}
	return nil
}

// SetFailing stores whether the node's claims or starts fail.
func (s *Store) SetFailing(ctx context.Context, incarnation string, failing bool) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	if p := s.peers[incarnation]; p == nil || !p.joined {
		return nil
	}
	n, err := first[store.Node](s.db, tableNodes, incarnation)
	if err != nil || n.Failing == failing {
		return err
	}
	changed := *n
	changed.Failing = failing
	if err := s.insert(tableNodes, &changed); err != nil {
		return err
	}
	s.tellNodes()
	return nil
}

// NoteUnknownZones stores of which zones a node has no data.
func (s *Store) NoteUnknownZones(ctx context.Context, incarnation string, zones []string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	if p := s.peers[incarnation]; p == nil || !p.joined {
		return nil
	}
	n, err := first[store.Node](s.db, tableNodes, incarnation)
	if zones = plain(zones); err != nil || slices.Equal(n.UnknownZones, zones) {
		return err
	}
	changed := *n
	changed.UnknownZones = zones
	if err := s.insert(tableNodes, &changed); err != nil {
		return err
	}
	s.tellNodes()
	return nil
}

// NoteProcess stores what a node says of its process. That is no news to other nodes.
func (s *Store) NoteProcess(ctx context.Context, incarnation string, is store.Process) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	if p := s.peers[incarnation]; p == nil || !p.joined {
		return nil
	}
	n, err := first[store.Node](s.db, tableNodes, incarnation)
	if err != nil {
		return err
	}
	changed := *n
	changed.Version, changed.ClockOffset = store.Shown(is.Version, store.MostVersion), is.ClockOffset.Truncate(time.Millisecond)
	return s.insert(tableNodes, &changed)
}

// exhume returns the node that was deleted. One that nobody remembers has the ID
// that its incarnation says, and no age: it supersedes nobody.
func (s *Store) exhume(incarnation string) store.Node {
	for i, t := range s.buried {
		if t.node.Incarnation == incarnation {
			s.buried = slices.Delete(s.buried, i, i+1)
			return t.node
		}
	}
	id := incarnation
	if i := strings.LastIndexByte(id, '-'); i >= 0 {
		id = id[:i]
	}
	return store.Node{ID: id, Incarnation: incarnation}
}

// Leave marks the node as left and releases its shards.
func (s *Store) Leave(ctx context.Context, incarnation string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	any := false
	if p := s.peers[incarnation]; p != nil && p.joined && !p.left {
		p.left, any = true, true
	}
	for _, sh := range s.shards {
		if incarnation != "" && sh.owner == incarnation {
			sh.owner, any = "", true
		}
	}
	if any {
		s.tellNodes()
	}
	return nil
}

// Bury marks a silent node as left and deletes it once its runs are settled.
func (s *Store) Bury(ctx context.Context, incarnation string, beats int64) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	p := s.peers[incarnation]
	if p == nil || !p.joined || p.beats != beats {
		return nil
	}
	if p.unended > 0 {
		if !p.left {
			p.left = true
			s.tellNodes()
		}
		return nil
	}
	n, err := first[store.Node](s.db, tableNodes, incarnation)
	if err != nil {
		return err
	}
	if _, err := s.remove(tableNodes, incarnation); err != nil {
		return err
	}
	if len(s.buried) == maxTombstones {
		s.buried = slices.Delete(s.buried, 0, 1)
	}
	s.buried = append(s.buried, tombstone{store.Node{ID: n.ID, Incarnation: n.Incarnation, Joined: n.Joined, Zones: n.Zones, Knows: n.Knows, UnknownZones: n.UnknownZones, Routers: n.Routers, Version: n.Version, ClockOffset: n.ClockOffset}})
	p.joined, p.left = false, true
	s.jobLists.forget(incarnation)
	s.forget(p)
	s.tellNodes()
	return nil
}

func sameAttachment(a, b store.Attachment) bool {
	return a.App == b.App && slices.Equal(a.Handlers, b.Handlers)
}

func copiedAttached(list []store.Attachment) []store.Attachment {
	out := copied(list)
	for i := range out {
		out[i].App, out[i].Handlers = store.PlainText(out[i].App), plain(out[i].Handlers)
	}
	return out
}

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
