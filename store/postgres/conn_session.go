package postgres

// Connections beside the pool, and the session that holds a node's locks.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xxljob/xxljob/internal/failpoint"
)

// lockSession is the connection that holds a node's locks. Nothing but short
// statements run on it, and never a transaction that stays open. It breaks when
// the context of a call on it ends, and its locks are gone with it: that is not
// an error to be waited out but the loss of the locks, which the next beat asks
// for again.
type lockSession struct {
	mu    sync.Mutex
	conn  *pgx.Conn      // guarded by mu; nil until it is made
	over  bool           // guarded by mu: no connection is made any more
	pid   int64          // guarded by mu: of the backend, which a pooler does not tell
	held  map[int16]bool // guarded by mu: locks that the connection holds
	start *time.Time     // guarded by mu: the backend's; nil where the role may not know
	name  string         // guarded by mu: its application_name
	there bool           // guarded by mu: it has the lock that says that the node is there
	key   int64          // guarded by mu: of that lock, the second half
}

// Settings of the lock connection. The server gives up on a client that it does
// not reach within five seconds; see Leases in DESIGN.md, beside this file.
const (
	keepIdle     = 2 * time.Second
	keepInterval = time.Second
	keepCount    = 3
	userTimeout  = 5 * time.Second
	dialTimeout  = 3 * time.Second
)

// identity is what others need to end the session's backend.
func (l *lockSession) identity() (pid *int64, start *time.Time, name *string) {
	if l == nil || l.conn == nil {
		return nil, nil, nil
	}
	return &l.pid, l.start, &l.name
}

// session returns the incarnation's, which may not be connected.
func (s *Store) session(incarnation string) *lockSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.sessions[incarnation]
	if l == nil {
		l = &lockSession{}
		s.sessions[incarnation] = l
	}
	return l
}

// endSession gives back the incarnation's locks and closes its lock connection.
func (s *Store) endSession(incarnation string) {
	s.mu.Lock()
	l := s.sessions[incarnation]
	delete(s.sessions, incarnation)
	s.mu.Unlock()
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true // for a call that has it already
	ctx, cancel := context.WithTimeout(context.Background(), rollbackPatience)
	defer cancel()
	// The server may be some time in hearing of the connection's end.
	l.giveBack(ctx, s, slices.Collect(maps.Keys(l.held)))
	l.close()
}

// close is called with mu held.
func (l *lockSession) close() {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackPatience)
	defer cancel()
	l.conn.Close(ctx)
	l.conn, l.held = nil, nil
}

// onSession runs a statement on the incarnation's lock connection.
func (s *Store) onSession(ctx context.Context, name, incarnation string, build func(*lockSession) statement) error {
	l := s.session(incarnation)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.connect(ctx, s, incarnation); err != nil {
		return err
	}
	failpoint.Hit(name + "." + failpoint.Begin)
	err := s.blame(ctx, l.conn, send(ctx, l.conn, nil, []statement{build(l)}))
	l.checkAlive()
	if err != nil && l.conn == nil && ctx.Err() == nil {
		// It had broken since it was last used, or breaks now. Locks that others
		// have not taken meanwhile are had again by asking at once.
		if err = l.connect(ctx, s, incarnation); err == nil {
			err = send(ctx, l.conn, nil, []statement{build(l)})
			l.checkAlive()
		}
	}
	if err == nil {
		failpoint.Hit(name + "." + failpoint.AfterCommit)
	}
	return err
}

// besidePool runs a transaction of one statement on the incarnation's lock connection,
// and on one of the pool where there is none, or it breaks.
func (s *Store) besidePool(ctx context.Context, b bounds, incarnation string, st statement) error {
	if err := ended(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	l := s.sessions[incarnation]
	s.mu.Unlock()
	if l != nil {
		if done, err := l.inTx(ctx, s, b, st); done {
			return err
		}
	}
	return s.one(ctx, b, st)
}

// inTx runs a transaction of one statement on the lock connection. done is false where
// that has to be done elsewhere, perhaps again.
func (l *lockSession) inTx(ctx context.Context, s *Store, b bounds, st statement) (done bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil || l.conn.IsClosed() {
		return false, nil
	}
	t := s.newTx(lent{Conn: l.conn}, b)
	if err = t.do(ctx, st); err == nil {
		err = t.commit(ctx)
	} else {
		t.rollback(ctx)
	}
	err = s.blame(ctx, l.conn, err)
	l.checkAlive()
	return err == nil || l.conn != nil || ctx.Err() != nil, err
}

// checkAlive lets go of a connection that an error has closed.
func (l *lockSession) checkAlive() {
	if l.conn != nil && l.conn.IsClosed() {
		l.conn, l.held = nil, nil
	}
}

// connect makes the connection where there is none, or one that leads elsewhere than later ones.
func (l *lockSession) connect(ctx context.Context, s *Store, incarnation string) error {
	if l.conn != nil && !l.conn.IsClosed() {
		if s.fitness.leads(teach(l.conn).server) {
			return nil
		}
		l.close()
	}
	if l.over || s.ctx.Err() != nil {
		return errors.New("the lock connection: the store is closed, or the node has left")
	}
	conn, err := s.lockConn(ctx)
	if err != nil {
		return fmt.Errorf("the lock connection: %w", err)
	}
	l.conn, l.held = conn, map[int16]bool{}
	l.name = shortName("xxljob " + incarnation)
	var here bearing
	err = send(ctx, conn, nil, []statement{
		s.lookAt(&here),
		s.sql.nodeLock.with(s.nodeClass, incarnation).into(scanInto(&l.there, &l.key)),
		{sql: "select pg_catalog.set_config('application_name', $1, false)", args: []any{l.name}},
		{sql: "select a.pid, a.backend_start from pg_catalog.pg_stat_activity a where a.pid = pg_catalog.pg_backend_pid()", read: scanInto(&l.pid, &l.start)},
	})
	if err == nil {
		err = s.judge(conn, &here)
	}
	if err != nil {
		l.close()
		return fmt.Errorf("the lock connection: %w", err)
	}
	return nil
}

// shortName fits an application_name of 63 bytes.
func shortName(name string) string {
	const most = 63
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
	if len(name) > most {
		return name[:20] + "..." + name[len(name)-(most-23):]
	}
	return name
}

// lockConn makes a connection beside the pool, from the pool's configuration and
// hooks or by Config.LockConn, with the settings of a lock connection.
func (s *Store) lockConn(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := s.connectBeside(ctx)
	if err != nil {
		return nil, err
	}
	return s.prepared(ctx, conn)
}

// connectBeside makes a connection like those of the pool, outside of it.
func (s *Store) connectBeside(ctx context.Context) (*pgx.Conn, error) {
	if s.cfg.LockConn != nil {
		return s.cfg.LockConn(ctx)
	}
	return s.poolConn(ctx, "")
}

// poolConn makes a connection as the pool makes its own, under this application_name
// where it is not empty.
func (s *Store) poolConn(ctx context.Context, name string) (*pgx.Conn, error) {
	pool := s.pool.Config()
	cfg := pool.ConnConfig
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, cfg); err != nil {
			return nil, err
		}
	}
	cfg.OnNotification = nil
	if name != "" {
		cfg.RuntimeParams["application_name"] = shortName(name)
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if pool.AfterConnect != nil {
		if err := pool.AfterConnect(ctx, conn); err != nil {
			conn.Close(ctx)
			return nil, err
		}
	}
	return conn, nil
}

// sessionQueries are the statements of this file.
type sessionQueries struct {
	nodeLock query
}

func (q *sessionQueries) define(sql template) {
	q.nodeLock = sql(`select pg_catalog.pg_try_advisory_lock_shared($1, pg_catalog.hashtext($2)), pg_catalog.hashtext($2)::bigint & 4294967295`)
}

// prepared gives a connection beside the pool its settings, or closes it.
func (s *Store) prepared(ctx context.Context, conn *pgx.Conn) (*pgx.Conn, error) {
	err := setAll(ctx, conn, []string{
		fmt.Sprintf("statement_timeout = %d", sessionPatience.Milliseconds()), // before it can hit the others
		fmt.Sprintf("tcp_keepalives_idle = %d", int(keepIdle.Seconds())),
		fmt.Sprintf("tcp_keepalives_interval = %d", int(keepInterval.Seconds())),
		fmt.Sprintf("tcp_keepalives_count = %d", keepCount),
		fmt.Sprintf("tcp_user_timeout = %d", userTimeout.Milliseconds()),
		"client_connection_check_interval = 500",
		"idle_session_timeout = 0",
		fmt.Sprintf("lock_timeout = %d", lockPatience.Milliseconds()),
		"datestyle = 'ISO'", "array_nulls = on",
		"search_path = " + ourPath,
		"default_transaction_isolation = 'read committed'",
		"default_transaction_read_only = off",
	})
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// setAll changes settings of a session in few round trips: a dozen of them would take a slow
// network longer than a connection may. Each is by itself, since which of them a server has
// depends on its version and its platform, and some services let nobody set them: one that
// is refused is left as it was. An error means that the connection is of no use.
func setAll(ctx context.Context, conn *pgx.Conn, settings []string) error {
	if speaksSimply(conn) {
		return setTogether(ctx, conn.PgConn(), settings)
	}
	return setPipelined(ctx, conn.PgConn(), settings)
}

// speaksSimply reports whether the host has set the connection to the simple protocol. What
// is between it and the server may know no other then, be the session its own or not.
func speaksSimply(conn *pgx.Conn) bool {
	return conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol
}

// setPipelined changes them in one round trip, whatever is refused.
func setPipelined(ctx context.Context, conn *pgconn.PgConn, settings []string) error {
	p := conn.StartPipeline(ctx)
	for _, setting := range settings {
		p.SendQueryParams("set "+setting, nil, nil, nil, nil)
		p.SendPipelineSync()
	}
	err := p.Flush()
	for err == nil {
		var got any
		got, err = p.GetResults()
		if result, ok := got.(*pgconn.ResultReader); ok {
			_, err = result.Close()
		}
		if refused(conn, err) {
			err = nil
		} else if err == nil && got == nil {
			break // all is read
		}
	}
	return errors.Join(err, p.Close())
}

// setTogether changes them by the simple protocol, which has no pipeline: all in one
// message, as a batch is sent there too. The server takes that for one transaction, so
// where it refuses one of them, the others go again without it: a round trip more for each.
func setTogether(ctx context.Context, conn *pgconn.PgConn, settings []string) error {
	for len(settings) > 0 {
		made, err := conn.Exec(ctx, "set "+strings.Join(settings, "; set ")).ReadAll()
		if !refused(conn, err) || len(made) == len(settings) {
			return err
		}
		settings = slices.Concat(settings[:len(made)], settings[len(made)+1:])
	}
	return nil
}

// refused reports whether an error is the server's, about a statement, and the connection
// is still there.
func refused(conn *pgconn.PgConn, err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && !conn.IsClosed()
}
