package postgres

// Advisory locks of shards, and strangers who hold them.

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// Whoever may connect to the database may take any advisory lock of it. Such a stranger
// keeps nobody from a shard: the lock says who bothers to try, and the epoch, which only a
// role with rights on the tables can raise, who is right. A session of a role with these
// rights is taken for a node's, which may have been paused between giving up a shard and
// its lock; who holds a lock for longer than that loses the shard too, after a LeaseTTL.
// Migrations alone have nothing else to go by, before there are tables.

// ifHolderMay and holderMay enclose a right of a role r, in SQL that says whether the holder
// of a lock p, whose session is a, has it: by itself, or by a role that it is a member of,
// whose rights it may not inherit and may yet have taken on. A prepared transaction, which
// has no session, is none of ours; a session that ends just now may be.
const (
	ifHolderMay = `(p.pid is not null and (a.usesysid is null or exists (select from pg_catalog.pg_roles r
		where pg_catalog.pg_has_role(a.usesysid, r.oid, 'MEMBER') and `
	holderMay = `)))`
)

// stranger is a session that holds locks of ours, and whose role may not write the tables;
// or a prepared transaction.
type stranger struct {
	pid        int32 // 0: a prepared transaction
	role, name string
	locks      []int64
}

func (x stranger) String() string {
	if x.pid == 0 {
		return "a prepared transaction (see pg_prepared_xacts)"
	}
	return fmt.Sprintf("the session with pid %d of role %q (application_name %q)", x.pid, x.role, x.name)
}

// strangers are the shards whose locks are held by such sessions. It asks where a
// shard that is free could not be locked, and says in the log who keeps it.
func (s *Store) strangers(ctx context.Context, l *lockSession, shards []store.Shard) (map[int]bool, error) {
	var missing []int64
	for _, sh := range shards {
		if !l.held[int16(sh.ID)] {
			missing = append(missing, int64(sh.ID))
		}
	}
	if len(missing) == 0 || l.conn == nil {
		return nil, nil // it may have been ended while it ended those of silent nodes
	}
	found, err := s.holders(ctx, s.lockClass, missing, l.do)
	if err != nil {
		return nil, err
	}
	held := map[int]bool{}
	for _, x := range found {
		for _, id := range x.locks {
			held[int(id)] = true
		}
		if s.squatted.isNew(x) {
			s.log.Warn("xxljob: a session whose role has no rights on the tables, or with pid 0 a prepared transaction, holds advisory locks of shards, which are taken without them. End it, and beside roles that are not trusted take a database of its own, or LeaseRow",
				"schema", s.cfg.Schema, "shards", len(x.locks), "pid", x.pid, "role", x.role, "application_name", x.name)
		}
	}
	return held, nil
}

// strangersOfNode says in the log who has the lock that says that the session's node is
// there. While another has it, the node's death is noticed by its silence alone.
func (s *Store) strangersOfNode(ctx context.Context, l *lockSession) error {
	if l.there || l.conn == nil {
		return nil
	}
	found, err := s.holders(ctx, s.nodeClass, []int64{l.key}, l.do)
	for _, x := range found {
		if s.squatted.isNew(x) {
			s.log.Warn("xxljob: a session whose role has no rights on the tables, or with pid 0 a prepared transaction, holds the advisory lock of a node, whose death would be noticed after a LeaseTTL only. End it, and beside roles that are not trusted take a database of its own, or LeaseRow",
				"schema", s.cfg.Schema, "pid", x.pid, "role", x.role, "application_name", x.name)
		}
	}
	return err
}

// do runs a statement on a session that is connected.
func (l *lockSession) do(ctx context.Context, st statement) error {
	err := send(ctx, l.conn, nil, []statement{st})
	l.checkAlive()
	return err
}

// holders are the strangers that hold some of these locks.
func (s *Store) holders(ctx context.Context, class int32, ids []int64, do func(context.Context, statement) error) (found []stranger, err error) {
	err = do(ctx, s.sql.strangers.with(int64(uint32(class)), ids).into(func(rows pgx.Rows) error {
		var x stranger
		err := rows.Scan(&x.pid, &x.role, &x.name, &x.locks)
		found = append(found, x)
		return err
	}))
	return found, err
}

// squatted remembers who was named in the log, and when was looked last. It is safe for
// concurrent use.
type squatted struct {
	mu     sync.Mutex
	named  map[int32]time.Time // guarded by mu: by pid
	looked time.Time           // guarded by mu
}

// namedEvery is how often a stranger is named, and lookedEvery how often a node that owns
// shards without their locks looks who has these.
const (
	namedEvery  = 5 * time.Minute
	lookedEvery = time.Minute
)

// isNew reports whether a stranger is to be named.
func (q *squatted) isNew(x stranger) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at, known := q.named[x.pid]; known && time.Since(at) < namedEvery {
		return false
	}
	if q.named == nil || len(q.named) > 1000 {
		q.named = map[int32]time.Time{}
	}
	q.named[x.pid] = time.Now()
	return true
}

// due reports whether it is time for a look.
func (q *squatted) due() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.looked) < lookedEvery {
		return false
	}
	q.looked = time.Now()
	return true
}

// errSquatted says that somebody has the lock of migrations who may not migrate.
var errSquatted = errors.New("end it; beside roles that are not trusted take a database of its own")

// whoMigrates puts into an error that the lock of migrations was not to be had who has it:
// another process that migrates, or a role that could not.
func (s *Store) whoMigrates(ctx context.Context, conn *pgx.Conn, err error) error {
	if !lockedOut(err) {
		return err
	}
	var x stranger
	found, may := false, true
	lock := int32(migrationLock)
	asked := send(ctx, conn, nil, []statement{s.sql.migrators.by(named{
		{"class", int64(uint32(s.lockClass))}, {"lock", int64(uint32(lock))}, {"schema", s.cfg.Schema},
	}).into(func(rows pgx.Rows) error {
		found = true
		return rows.Scan(&x.pid, &x.role, &x.name, &may)
	})})
	switch {
	case asked != nil || !found:
		return err
	case may:
		return fmt.Errorf("%w; the lock of migrations is held by %v", err, x)
	}
	return fmt.Errorf("%w; the lock of migrations is held by %v, which may not migrate: %w", err, x, errSquatted)
}

// lockQueries are the statements of this file.
type lockQueries struct {
	tryLock, unlock, evict query
	strangers, migrators   query
}

func (q *lockQueries) define(sql template) {
	q.tryLock = sql(`select s, pg_catalog.pg_try_advisory_lock($1, s::int) from unnest($2::smallint[]) s`)
	q.unlock = sql(`select pg_catalog.pg_advisory_unlock($1, s::int) from unnest($2::smallint[]) s`)
	q.evict = sql(`select pg_catalog.pg_terminate_backend(a.pid) from {{schema}}.xxl_job_node n
	join pg_catalog.pg_stat_activity a on a.pid = n.lock_pid and a.backend_start = n.lock_start and a.application_name = n.lock_name
	where n.incarnation = any($1::text[])`)

	q.strangers = sql(`select coalesce(p.pid, 0), coalesce(a.usename::text, ''), coalesce(a.application_name, ''), array_agg(p.objid::bigint)
	from pg_catalog.pg_locks p left join pg_catalog.pg_stat_activity a on a.pid = p.pid
	where p.locktype = 'advisory' and p.objsubid = 2 and p.granted and p.classid = $1::bigint::oid and p.objid = any($2::bigint[]::oid[])
	and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
	and not ` + ifHolderMay + `pg_catalog.has_table_privilege(r.oid, '{{literal}}.xxl_job_lock'::pg_catalog.regclass::oid, 'UPDATE')` + holderMay + `
	group by p.pid, a.usename, a.application_name order by p.pid`)
	q.migrators = sql(`select coalesce(p.pid, 0), coalesce(a.usename::text, ''), coalesce(a.application_name, ''),
		` + ifHolderMay + `(pg_catalog.has_database_privilege(r.oid, p.database, 'CREATE') or exists (select from pg_catalog.pg_namespace n
			where n.nspname = {{arg.schema}}::text and pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE')))` + holderMay + `
	from pg_catalog.pg_locks p left join pg_catalog.pg_stat_activity a on a.pid = p.pid
	where p.locktype = 'advisory' and p.objsubid = 2 and p.granted and p.classid = {{arg.class}}::bigint::oid and p.objid = {{arg.lock}}::bigint::oid
	and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())`)
}
