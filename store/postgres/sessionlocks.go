package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// lockShards takes the locks of the shards on the session, and returns the
// shards whose rows the caller should go for.
func (s *Store) lockShards(ctx context.Context, incarnation string, shards []store.Shard) ([]store.Shard, error) {
	l := s.session(incarnation)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.connect(ctx, s, incarnation); err != nil {
		return nil, err
	}
	if err := l.tryLock(ctx, s, shards); err != nil {
		return nil, err
	}
	var held []store.Shard
	silent := map[string]bool{}
	for _, sh := range shards {
		if !l.held[int16(sh.ID)] && !sh.Free {
			silent[sh.Owner] = true
		}
	}
	if len(silent) > 0 {
		if err := l.evict(ctx, s, silent, shards); err != nil {
			return nil, err
		}
	}
	strangers, err := s.strangers(ctx, l, shards)
	if err != nil {
		return nil, err
	}
	for _, sh := range shards {
		// A free shard whose lock another node has got is the other's. A silent owner's
		// is taken by its epoch even where its lock is not to be had, and so is one whose
		// lock a stranger holds.
		if l.held[int16(sh.ID)] || !sh.Free || strangers[sh.ID] {
			held = append(held, sh)
		}
	}
	return held, nil
}

// tryLock asks for locks that the session does not hold.
func (l *lockSession) tryLock(ctx context.Context, s *Store, shards []store.Shard) error {
	var ids []int16
	for _, sh := range shards {
		if !l.held[int16(sh.ID)] {
			ids = append(ids, int16(sh.ID))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	err := send(ctx, l.conn, nil, []statement{s.sql.tryLock.with(s.lockClass, ids).into(func(rows pgx.Rows) error {
		var id int16
		var got bool
		err := rows.Scan(&id, &got)
		if got {
			l.held[id] = true
		}
		return err
	})})
	l.checkAlive()
	return err
}

// evict ends the lock connections of silent owners and waits for their locks, for
// at most lockPatience. That it may not is no error.
func (l *lockSession) evict(ctx context.Context, s *Store, silent map[string]bool, shards []store.Shard) error {
	var owners []string
	for inc := range silent {
		owners = append(owners, inc)
	}
	if err := send(ctx, l.conn, nil, []statement{s.sql.evict.with(owners)}); err != nil {
		l.checkAlive()
		if codeOf(err) == "" {
			return err
		}
		s.log.Warn("xxljob: could not end the lock connection of a silent node; taking its shards by epoch", "error", err)
		return nil
	}
	var wanted []store.Shard
	for _, sh := range shards {
		if silent[sh.Owner] {
			wanted = append(wanted, sh)
		}
	}
	for wait := 5 * time.Millisecond; wait < lockPatience; wait *= 2 {
		if err := l.tryLock(ctx, s, wanted); err != nil || l.holdsAll(wanted) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	return nil
}

func (l *lockSession) holdsAll(shards []store.Shard) bool {
	for _, sh := range shards {
		if !l.held[int16(sh.ID)] {
			return false
		}
	}
	return true
}

// relock asks for locks of shards that the incarnation owns and the session does
// not hold: after its connection broke, or after a take-over by epoch alone; and for
// the lock that says that the node is there, where a stranger had it when the session
// connected: without it the node looks dead as soon as that one lets go. The next beat
// tries again, so an error is nothing.
func (s *Store) relock(ctx context.Context, incarnation string, shards []store.Shard) {
	l := s.session(incarnation)
	l.mu.Lock()
	defer l.mu.Unlock()
	var mine []store.Shard
	for _, sh := range shards {
		if sh.Owner == incarnation && !l.held[int16(sh.ID)] {
			mine = append(mine, sh)
		}
	}
	if l.conn != nil && !l.there {
		_ = l.do(ctx, s.sql.nodeLock.with(s.nodeClass, incarnation).into(scanInto(&l.there, &l.key)))
	}
	if l.conn != nil && len(mine) > 0 {
		_ = l.tryLock(ctx, s, mine)
	}
	if l.conn != nil && !(l.there && l.holdsAll(mine)) && s.squatted.due() {
		_, _ = s.strangers(ctx, l, mine)
		_ = s.strangersOfNode(ctx, l)
	}
}

// unlockOthers gives back locks of shards that were not taken after all.
func (s *Store) unlockOthers(ctx context.Context, incarnation string, wanted, taken []store.Shard) {
	got := map[int]bool{}
	for _, sh := range taken {
		got[sh.ID] = true
	}
	var rest []store.Shard
	for _, sh := range wanted {
		if !got[sh.ID] {
			rest = append(rest, sh)
		}
	}
	s.unlock(ctx, incarnation, rest)
}

// unlock gives locks back. Where it cannot, it gives up the connection: a lock
// that nobody uses must not be held.
func (s *Store) unlock(ctx context.Context, incarnation string, shards []store.Shard) {
	l := s.session(incarnation)
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []int16
	for _, sh := range shards {
		if l.held[int16(sh.ID)] {
			ids = append(ids, int16(sh.ID))
		}
	}
	l.giveBack(ctx, s, ids)
}

// giveBack is called with mu held.
func (l *lockSession) giveBack(ctx context.Context, s *Store, ids []int16) {
	for _, id := range ids {
		delete(l.held, id)
	}
	if l.conn == nil || len(ids) == 0 {
		return
	}
	if err := send(ctx, l.conn, nil, []statement{s.sql.unlock.with(s.lockClass, ids)}); err != nil {
		l.close()
	}
}

// lockQueries are the statements of this file.
type lockQueries struct {
	tryLock, unlock, evict query
}

func (q *lockQueries) define(sql template) {
	q.tryLock = sql(`select s, pg_catalog.pg_try_advisory_lock($1, s::int) from unnest($2::smallint[]) s`)
	q.unlock = sql(`select pg_catalog.pg_advisory_unlock($1, s::int) from unnest($2::smallint[]) s`)
	q.evict = sql(`select pg_catalog.pg_terminate_backend(a.pid) from {{schema}}.xxl_job_node n
	join pg_catalog.pg_stat_activity a on a.pid = n.lock_pid and a.backend_start = n.lock_start and a.application_name = n.lock_name
	where n.incarnation = any($1::text[])`)
}
