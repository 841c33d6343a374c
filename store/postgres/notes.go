package postgres

import (
	"context"
	"sync"
	"time"
)

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
