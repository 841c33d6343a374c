package postgres

// Whoever may connect to the database may take any advisory lock of it. Such a stranger
// keeps nobody from a shard: the lock says who bothers to try, and the epoch, which only a
// role with rights on the tables can raise, who is right. A session of a role with these
// rights is taken for a node's, which may have been paused between giving up a shard and
// its lock; who holds a lock for longer than that loses the shard too, after a LeaseTTL.
// Migrations alone have nothing else to go by, before there are tables.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

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

// strangerQueries are the statements of this file.
type strangerQueries struct {
	strangers, migrators query
}

func (q *strangerQueries) define(sql template) {
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
