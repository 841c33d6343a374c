package postgres

// Signals for those who watch, and the hints that carry them between processes.

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// watcher is one call of Watch that has not ended. Sending never waits: a channel
// that is full has its signal already.
type watcher struct {
	incarnation                                     string
	scan, ahead, owed, alarms, inbox, nodes, finish chan struct{}
}

func tell(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// Polls without and with notifications.
const (
	scanPoll       = time.Second
	inboxPoll      = time.Second
	inboxPollQuick = 100 * time.Millisecond
)

// Watch returns signals for the incarnation until ctx ends. Those of this process
// come at once; those of others by LISTEN, in lock mode, while that works.
func (s *Store) Watch(ctx context.Context, incarnation string) store.Signals {
	w := &watcher{incarnation, make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
	if ended(ctx) == nil {
		s.mu.Lock()
		s.watchers = append(s.watchers, w)
		s.startWork()
		s.mu.Unlock()
		context.AfterFunc(ctx, func() { s.unwatch(w) })
	}
	return store.Signals{Scan: w.scan, Ahead: w.ahead, Owed: w.owed, Alarms: w.alarms, Inbox: w.inbox, Nodes: w.nodes, Ended: w.finish}
}

func (s *Store) unwatch(w *watcher) {
	s.mu.Lock()
	s.watchers = slices.DeleteFunc(s.watchers, func(other *watcher) bool { return other == w })
	stop := func() {}
	if len(s.watchers) == 0 && s.stopWork != nil {
		stop, s.stopWork = s.stopWork, nil
	}
	s.mu.Unlock()
	stop()
}

// Poll is a second for everything while notifications come in, and a tenth of
// that for the inbox while they do not.
func (s *Store) Poll() (scan, inbox time.Duration) {
	if s.listening.Load() {
		return scanPoll, inboxPoll
	}
	return scanPoll, inboxPollQuick
}

// The kinds of hints, as they are sent.
const (
	hintScan  = 's' // then the shard
	hintAhead = 'a' // then the shard
	hintOwed  = 'o' // then the shard
	hintAlarm = 'w' // then the shard
	hintInbox = 'i' // then the incarnation
	hintNodes = 'n'
	hintEnded = 'e'
)

// wakeScan: a job of the shard is due at the time.
func (s *Store) wakeScan(shard int, at time.Time) {
	if at.IsZero() {
		return
	}
	s.region.reach(at)
	s.hint(string(hintScan) + strconv.Itoa(shard) + "@" + strconv.FormatInt(milli(at), 10))
}

// wakeRun: a run of the shard is planned that no claim has planned.
func (s *Store) wakeRun(shard int) { s.hint(string(hintScan) + strconv.Itoa(shard)) }

// wakeAhead: a run of the shard is kept apart.
func (s *Store) wakeAhead(shard int) { s.hint(string(hintAhead) + strconv.Itoa(shard)) }

// wakeOwed: something is owed in the shard, or a window was opened there.
func (s *Store) wakeOwed(shard int) { s.hint(string(hintOwed) + strconv.Itoa(shard)) }

// wakeAlarms: there are alarms in the shard.
func (s *Store) wakeAlarms(shard int) { s.hint(string(hintAlarm) + strconv.Itoa(shard)) }

func (s *Store) wakeInbox(incarnation string) { s.hint(string(hintInbox) + incarnation) }

func (s *Store) wakeNodes() { s.hint(string(hintNodes)) }

func (s *Store) wakeEnded(n int) {
	if n > 0 {
		s.hint(string(hintEnded))
	}
}

// tellStarted tells the addressees of started runs.
func (s *Store) tellStarted(starts []store.Start, places []int, answers []store.Started) {
	for _, i := range places {
		a := &answers[i]
		if a.Run.ID == 0 {
			continue
		}
		if a.Run.State.Ended() {
			s.wakeEnded(1)
			continue
		}
		for _, address := range append([]string{starts[i].Address}, starts[i].Targets...) {
			if inc := inboxColumn(starts[i].Owner, address); inc != "" {
				s.wakeInbox(inc)
			}
		}
	}
}

// hint passes a hint on in this process, and to the others.
func (s *Store) hint(text string) {
	if s.deliver(text) || s.alone() {
		return
	}
	s.notes.add(s, text)
}

// deliver gives a hint to the watchers of this process that it concerns. It
// reports whether it concerns them alone.
func (s *Store) deliver(text string) (only bool) {
	if text == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, known := "", false
	if text[0] == hintScan || text[0] == hintAhead || text[0] == hintOwed {
		shard, _ := parseScanHint(text)
		owner, known = s.owners[shard]
	}
	for _, w := range s.watchers {
		switch text[0] {
		case hintScan:
			if !known || owner == w.incarnation || owner == "" {
				tell(w.scan)
			}
			only = only || known && owner == w.incarnation
		case hintAhead:
			if !known || owner == w.incarnation || owner == "" {
				tell(w.ahead)
			}
			only = only || known && owner == w.incarnation
		case hintOwed:
			if !known || owner == w.incarnation || owner == "" {
				tell(w.owed)
			}
			only = only || known && owner == w.incarnation
		case hintAlarm: // any node may have the rule
			tell(w.alarms)
		case hintInbox:
			if text[1:] == w.incarnation {
				tell(w.inbox)
				only = true
			}
		case hintNodes:
			tell(w.nodes)
		case hintEnded:
			tell(w.finish)
		}
	}
	return only
}

// remember keeps what a view says about who has which shard, and whether there
// are others.
func (s *Store) remember(v *viewReader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners = make(map[int]string, len(v.view.Shards))
	for _, sh := range v.view.Shards {
		s.owners[sh.ID] = sh.Owner
	}
	s.others = false
	for _, n := range v.view.Nodes {
		if !n.Left && !slices.ContainsFunc(s.watchers, func(w *watcher) bool { return w.incarnation == n.Incarnation }) {
			s.others = true
		}
	}
	s.viewed = time.Now()
}

// alone reports whether a view of late has shown no node outside of this process.
func (s *Store) alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.others && time.Since(s.viewed) < 2*time.Second
}

// listen receives the hints of other processes until ctx ends, over a connection
// of its own. Whenever it has been without one, everything may have happened.
func (s *Store) listen(ctx context.Context) {
	for wait := time.Duration(0); ; wait = min(2*wait+50*time.Millisecond, 5*time.Second) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		began := time.Now()
		s.listenOnce(ctx)
		s.listening.Store(false)
		if time.Since(began) > time.Minute {
			wait = 0
		}
	}
}

func (s *Store) listenOnce(ctx context.Context) {
	conn, err := s.lockConn(ctx)
	if err != nil {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
		defer cancel()
		conn.Close(ctx)
	}()
	if _, err := s.ask(ctx, conn); err != nil {
		return
	}
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{s.channel}.Sanitize()); err != nil {
		return
	}
	s.listening.Store(true)
	s.deliverAll()
	for {
		// The connection is asked now and then whether it is still there.
		quiet, cancel := context.WithTimeout(ctx, listenCheck)
		note, err := conn.WaitForNotification(quiet)
		idle := quiet.Err() != nil
		cancel()
		switch {
		case err == nil:
			if strings.HasPrefix(note.Payload, string(hintScan)) {
				if _, at := parseScanHint(note.Payload); at != 0 {
					s.region.reach(fromMilli(at))
				}
			}
			s.deliver(note.Payload)
		case ctx.Err() != nil || !idle:
			return
		default:
			check, cancel := context.WithTimeout(ctx, statementPatience)
			_, err := s.ask(check, conn)
			cancel()
			if err != nil {
				return
			}
		}
	}
}

// listenCheck is how long the listening connection may be quiet.
const listenCheck = 15 * time.Second

// parseScanHint reads the shard, and the time where there is one.
func parseScanHint(text string) (shard int, at int64) {
	head, tail, _ := strings.Cut(text[1:], "@")
	shard, _ = strconv.Atoi(head)
	at, _ = strconv.ParseInt(tail, 10, 64)
	return shard, at
}

// deliverAll tells every watcher of this process everything.
func (s *Store) deliverAll() {
	s.region.reach(time.Time{})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watchers {
		tell(w.scan)
		tell(w.ahead)
		tell(w.owed)
		tell(w.alarms)
		tell(w.inbox)
		tell(w.nodes)
		tell(w.finish)
	}
}

// notes are hints on their way to other processes. They are sent together, a few
// times a second, by a goroutine that is there while there are any: a NOTIFY takes
// a lock of the whole server at its commit, so it is never in a transaction of the
// loop.
type notes struct {
	mu      sync.Mutex
	pending map[string]bool // guarded by mu
	running bool            // guarded by mu
}

const (
	// noteGap is the least time between two NOTIFYs.
	noteGap = 25 * time.Millisecond
	// maxNotes bounds what is sent at once; a hint more or less does not matter.
	maxNotes = 500
)

func (n *notes) add(s *Store, text string) {
	if !s.locks() || s.ctx.Err() != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pending == nil {
		n.pending = map[string]bool{}
	}
	if len(n.pending) < maxNotes {
		n.pending[text] = true
	}
	if !n.running {
		n.running = true
		s.work.Go(func() { n.run(s) })
	}
}

func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []string
	for text := range n.pending {
		list = append(list, text)
	}
	clear(n.pending)
	n.running = len(list) > 0
	return list
}

func (n *notes) run(s *Store) {
	for {
		list := n.take()
		if len(list) == 0 {
			return
		}
		// What was under way when Close came is sent all the same: it may be for a run
		// that a process has planned as the last thing it did.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), statementPatience)
		closed := context.AfterFunc(s.ctx, func() { time.AfterFunc(rollbackPatience, cancel) })
		_ = s.notify(ctx, list) // hints may be lost
		closed()
		cancel()
		select {
		case <-s.ctx.Done():
		case <-time.After(noteGap):
		}
	}
}

// hintSettings are those of a transaction that sends hints: nobody waits for its commit.
const hintSettings = "select pg_catalog.set_config('search_path', '" + ourPath + "', true), " +
	"pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.set_config('statement_timeout', '1000', true)"

func (s *Store) notify(ctx context.Context, list []string) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.giveBack(conn)
	t := &tx{conn: conn.Conn(), head: []string{"begin isolation level read committed read write", hintSettings}}
	if err := t.do(ctx, s.sql.notify.with(s.channel, list), statement{sql: "commit"}); err != nil {
		t.rollback(ctx)
		return err
	}
	return nil
}

// noteQueries are the statements of this file.
type noteQueries struct {
	notify query
}

func (q *noteQueries) define(sql template) {
	q.notify = sql(`select pg_catalog.pg_notify($1, p) from unnest($2::text[]) p`)
}
