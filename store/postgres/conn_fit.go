package postgres

// Connections that answer and are of no use: to a standby, to another database, to a server that
// later connections do not reach, or with a role that has lost its rights. Comes in: a connection
// that a call has been given, or one of our own. Goes out: whether anything may be done over it,
// and why not.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// fitFor is for how long a connection that was asked is taken to lead where it led: a LeaseTTL, as
// nodes have it by default. The question goes with what a transaction or a read begins with, and
// ends that where the answer is wrong.
const fitFor = 5 * time.Second

// fitness is what a store knows of where its connections lead, and when it last had doubts.
type fitness struct {
	doubts atomic.Int64 // Unix nanoseconds of the last error that others may have as well

	mu       sync.Mutex
	database string    // guarded by mu: where New was; empty before New is done
	server   int64     // guarded by mu: when the server was started, in milliseconds: it is known by that
	youngest time.Time // guarded by mu: when the youngest session there was begun
	former   int64     // guarded by mu: the server before
	since    time.Time // guarded by mu: when that was left
	several  bool      // guarded by mu: the address leads to several servers at once
}

// unfit is the error of a connection over which nothing was done, for it is of no use.
type unfit struct{ why string }

func (u *unfit) Error() string { return u.why }

// heading is what is known of one connection.
type heading struct {
	asked  time.Time
	server int64
}

// bearing is what a connection says of itself.
type bearing struct {
	recovering, rights bool
	database, role     string
	server, age        int64 // when the server was started, and for how long the session has been there, in milliseconds
}

// begin takes in what New has found: from here on connections are asked.
func (f *fitness) begin(l *bearing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.database, f.server, f.youngest = l.database, l.server, l.begun()
}

func (l *bearing) begun() time.Time { return time.Now().Add(-time.Duration(l.age) * time.Millisecond) }

// meets takes in a session, and reports whether its server is the one. Of two, it is the one that
// the younger session leads to: that is where the address leads now. One that was left and is met
// again within a minute was not replaced: the address leads to several, and nothing is said any
// more about which of them is right.
func (f *fitness) meets(l *bearing) (fits bool, news string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	begun := l.begun()
	switch {
	case l.server == f.server:
		if begun.After(f.youngest) {
			f.youngest = begun
		}
		return true, ""
	case f.several:
		return true, ""
	case begun.Before(f.youngest):
		return false, ""
	case l.server == f.former && time.Since(f.since) < time.Minute:
		f.several = true
		return true, "xxljob: the address of the database leads to several servers in turns; which of them is right the store cannot know"
	}
	f.former, f.since = f.server, time.Now()
	f.server, f.youngest = l.server, begun
	return true, "xxljob: the address of the database leads to another server, or to one that was started again; connections to the one before are closed as they are met"
}

// leads reports whether a connection that was asked still leads to where the youngest does.
func (f *fitness) leads(server int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.server == server || f.several || f.database == ""
}

// expected is what the question is asked with; ok is false as long as New is not done.
func (f *fitness) expected() (database string, server, age int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	server = f.server
	if f.several {
		server = 0
	}
	return f.database, server, time.Since(f.youngest).Milliseconds(), f.database != ""
}

// doubted reports whether a connection is to be asked before anything else goes over it.
func (s *Store) doubted(known *heading) bool {
	if !known.asked.IsZero() && !s.fitness.leads(known.server) {
		return true
	}
	doubts := time.Unix(0, s.fitness.doubts.Load())
	return known.asked.Before(doubts) && time.Since(doubts) < fitFor
}

// askFit is the question that goes in front of what a call does over a connection; none where it
// was answered of late.
func (s *Store) askFit(conn *pgx.Conn) []statement {
	known := &teach(conn).heading
	if time.Since(known.asked) < fitFor {
		return nil
	}
	database, server, age, ok := s.fitness.expected()
	if !ok {
		return nil
	}
	l := bearing{}
	read := scanInto(nil, &l.server, &l.age)
	return []statement{s.sql.fits.by(named{{"database", database}, {"lock", s.schema + ".xxl_job_lock"}, {"server", server}, {"age", age}}).into(func(rows pgx.Rows) error {
		if err := read(rows); err != nil {
			return err
		}
		return s.met(known, &l)
	})}
}

// met takes in what a connection has said.
func (s *Store) met(known *heading, l *bearing) error {
	fits, news := s.fitness.meets(l)
	if !fits {
		return &unfit{"the connection leads to a server that later connections to the same address do not reach"}
	}
	if news != "" {
		s.log.Warn(news, "schema", s.cfg.Schema)
	}
	known.asked, known.server = time.Now(), l.server
	return nil
}

// ask asks a connection by itself, and returns for how long the session has been there. An error
// that is unfit says why it is of no use.
func (s *Store) ask(ctx context.Context, conn *pgx.Conn) (age time.Duration, err error) {
	var l bearing
	if err := send(ctx, conn, []string{setOurPath}, []statement{s.lookAt(&l)}); err != nil {
		if codeOf(err) != "" {
			return 0, &unfit{"the connection cannot say where it leads: " + err.Error()}
		}
		return 0, err
	}
	return time.Duration(l.age) * time.Millisecond, s.judge(conn, &l)
}

// judge says what is wrong with a connection, by what it says of itself.
func (s *Store) judge(conn *pgx.Conn, l *bearing) error {
	database, _, _, ok := s.fitness.expected()
	switch {
	case !ok:
		return nil
	case l.recovering:
		return &unfit{"the connection leads to a standby, which cannot be written to (with several hosts in the DSN, target_session_attrs=read-write passes by it)"}
	case l.database != database:
		return &unfit{fmt.Sprintf("the connection leads to database %q, and the store is in %q", l.database, database)}
	case !l.rights:
		return &unfit{fmt.Sprintf("the role %q of the connection has no rights on the tables of schema %s", l.role, s.schema)}
	}
	return s.met(&teach(conn).heading, l)
}

func (s *Store) lookAt(l *bearing) statement {
	return s.sql.look.with(s.cfg.Schema, s.schema+".xxl_job_lock").into(scanInto(&l.recovering, &l.rights, &l.database, &l.role, &l.server, &l.age))
}

// blame looks at a connection over which a call has failed. Where others may fail for the same
// reason they are asked before they are used, and where this one is of no use it is closed.
func (s *Store) blame(ctx context.Context, conn *pgx.Conn, err error) error {
	code := codeOf(err)
	var found *unfit
	switch {
	case err == nil || !errors.As(err, &found) && !doubtful(code) && !conn.IsClosed():
		return err
	case code == "" && found == nil && ctx.Err() != nil: // the caller has lost patience
		return err
	}
	s.fitness.doubts.Store(time.Now().UnixNano())
	if conn.IsClosed() {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
	defer cancel()
	if found == nil {
		_, asked := s.ask(ctx, conn)
		if !errors.As(asked, &found) && code != codeReadOnly { // all we send asks to be read write
			return err
		}
		if found == nil {
			found = &unfit{"the connection leads to where nothing can be written: " + err.Error()}
		}
	}
	conn.Close(ctx)
	return found
}

// doubtful reports whether an error may come of where a connection leads: nothing can be written
// there, tables or rights are missing, or the server ends sessions; and 22P02 is how the question
// answers.
func doubtful(code string) bool {
	switch code {
	case codeReadOnly, codeDenied, codeNoTable, "0A000", "22P02", "3F000", "42704":
		return true
	}
	return len(code) == 5 && (code[:2] == "08" || code[:4] == "57P0")
}

// fitQueries are the statements of this file.
type fitQueries struct {
	fits, look query
}

// A session says when it was begun by the clock of its server, so what is compared between servers
// is for how long it has been there.
func (q *fitQueries) define(sql template) {
	const server = `pg_catalog.pg_postmaster_start_time()`
	age := milliseconds(`pg_catalog.clock_timestamp()`) + ` operator(pg_catalog.-) ` +
		milliseconds(`(select a.backend_start from pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) a)`)
	// What ends the transaction is the error of a text that is no truth value: the server's log has it.
	q.fits = sql(`select (case when pg_catalog.pg_is_in_recovery() then 'xxljob: this is a standby'
	when pg_catalog.current_database() <> {{arg.database}}::pg_catalog.name then 'xxljob: this is another database'
	when not pg_catalog.has_table_privilege({{arg.lock}}::pg_catalog.text, 'update') then 'xxljob: this role has lost its rights'
	when {{arg.server}}::bigint not in (0::bigint, ` + milliseconds(server) + `) and ` + age + ` > {{arg.age}}::bigint then 'xxljob: this is another server'
	else 'on' end)::pg_catalog.bool, ` + milliseconds(server) + `, coalesce(` + age + `, 0)`)
	q.look = sql(`select pg_catalog.pg_is_in_recovery(), case when pg_catalog.has_schema_privilege($1::pg_catalog.text, 'usage') then pg_catalog.has_table_privilege($2::pg_catalog.text, 'update') else false end,
	pg_catalog.current_database()::pg_catalog.text, current_user::pg_catalog.text, ` + milliseconds(server) + `, coalesce(` + age + `, 0)`)
}
