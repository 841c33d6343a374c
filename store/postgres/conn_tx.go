package postgres

// Transactions of ours and reads, each a batch of statements with its bounds.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/failpoint"
	"github.com/xxljob/xxljob/store"
)

// Bounds of a transaction of ours. A node that is paused in the middle of one is
// thrown out by the server within the idle bound, so that it keeps nobody waiting
// longer than a take-over may take.
const (
	lockPatience = time.Second
	idlePatience = 2 * time.Second
	// sessionPatience is what a session beside the pool gives a statement.
	sessionPatience = 2 * time.Second
	// quickPatience is how long a batch of the loop waits for rows that others
	// have locked, before it goes on without them.
	quickPatience = 100 * time.Millisecond
	// listPatience is how long a page of a list may take.
	listPatience = 30 * time.Second
	// rollbackPatience bounds the clean-up after an error.
	rollbackPatience = time.Second
)

// Bounds that tests make longer: on a machine that is busy enough, a server takes seconds for
// a statement that is new to its session.
var (
	statementPatience = 2 * time.Second
	// answerPatience is how long a transaction of ours may take as seen from here.
	answerPatience = 4 * time.Second
)

// bounds are what a transaction begins with.
type bounds struct {
	name string // of the failpoints
	lock time.Duration
}

// tx is a transaction of ours. What it begins with travels with its first
// statement.
type tx struct {
	ctx   context.Context // of the whole, with a bound of ours; nil for the caller's
	conn  *pgx.Conn
	head  []string
	ask   []statement // with the head: see conn_fit.go
	name  string
	tally store.Tally // of the runs that have ended in it
	store *Store
	apart bool // what it begins with goes first, because the session has no patience, or too much of it, or another path
}

// newTx is a transaction that has not begun. On the reserve, what it begins with goes
// first: a statement that is new to the connection is prepared before all that travels
// with it, and that may wait for a lock too.
func (s *Store) newTx(conn lent, b bounds) *tx {
	return &tx{store: s, conn: conn.Conn, head: s.begin(orDefault(b.lock, s.cfg.patience*lockPatience)), ask: s.askFit(conn.Conn), name: b.name, apart: s.hasty || s.apartPath || conn.reserve}
}

// result reads the rows of one statement.
type result func(pgx.Rows) error

// statement is SQL with its arguments and the reader of its rows.
type statement struct {
	sql  string
	args []any
	read result
	said bool // see query.saying
}

// begin are the statements that every transaction of ours begins with, whatever
// the host's sessions are set to.
func (s *Store) begin(lock time.Duration) []string {
	settings := "select pg_catalog.set_config('lock_timeout', '" + strconv.FormatInt(lock.Milliseconds(), 10) + "', true)" + s.settings
	return append([]string{"begin isolation level read committed read write", settings}, s.oddSettings...)
}

// localSettings are what every transaction of ours sets for itself, behind its
// patience for locks; in one statement, for there are many transactions.
//
// Those of the planner make it reach every row by an index, one after the other.
// Left to itself it goes by statistics, and those of a partition that is a minute
// old say that it is empty: a plan made then reads all of it each time, until an
// analyze comes by.
func localSettings(raiseCommit bool, patience time.Duration) string {
	settings := []struct{ name, value string }{
		{"statement_timeout", strconv.FormatInt((patience * statementPatience).Milliseconds(), 10)},
		{"idle_in_transaction_session_timeout", strconv.FormatInt((patience * idlePatience).Milliseconds(), 10)},
		{"enable_seqscan", "off"}, {"enable_hashjoin", "off"}, {"enable_mergejoin", "off"}, {"enable_bitmapscan", "off"},
		{"search_path", ourPath},
		{"jit", "off"}, // where nothing else is left, the cost of what is off would call for it
	}
	if raiseCommit {
		settings = append(settings, struct{ name, value string }{"synchronous_commit", "on"})
	}
	var b strings.Builder
	for _, x := range settings {
		b.WriteString(", pg_catalog.set_config('" + x.name + "', '" + x.value + "', true)")
	}
	return b.String()
}

// inTx runs f in a transaction and commits it. Any error means that the outcome
// is not known.
func (s *Store) inTx(ctx context.Context, b bounds, f func(*tx) error) error {
	return s.onConn(ctx, func(ctx context.Context, conn lent) error {
		t := s.newTx(conn, b)
		t.ctx = ctx
		if err := f(t); err != nil {
			t.rollback(ctx)
			return err
		}
		return t.commit(ctx)
	})
}

// onConn runs f on a connection of the pool, or where it may on the reserve (see
// conn_reserve.go), with a bound of ours on the time it takes: the server has its own, so who
// does not answer within it is not there. Connections that lead nowhere are mostly not
// alone, so all that are idle are thrown away with the one that was found out; each would
// cost as long again.
func (s *Store) onConn(ctx context.Context, f func(context.Context, lent) error) error {
	expired, err := s.within(ctx, s.cfg.patience*answerPatience, f)
	if expired > 0 {
		s.pool.Reset()
		return &unanswered{expired, err}
	}
	return err
}

// unanswered is the error of a call that our own patience has ended, and not its caller.
type unanswered struct {
	after time.Duration
	err   error
}

func (u *unanswered) Error() string {
	return fmt.Sprintf("the database has not answered for %v: %v", u.after, u.err)
}
func (u *unanswered) Unwrap() error { return u.err }

// within runs f on a connection of the pool, or where it may on the reserve. expired is
// the patience that was over where that was it, and not the caller's; else 0.
func (s *Store) within(ctx context.Context, patience time.Duration, f func(context.Context, lent) error) (expired time.Duration, err error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	conn, err := s.lend(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.giveBack()
	if conn.reserve {
		patience = min(patience, reservePatience)
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err = f(bounded, conn); err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return patience, err
	}
	return 0, s.blame(ctx, conn.Conn, err)
}

// giveBack returns a connection to the pool, or takes it out of the pool if it is of no
// more use. One whose server does not answer is closed in the background, which takes
// pgx up to 15 s; the pool would count it for as long, and a pool whose connections have
// all been orphaned would have no place for new ones, which the server does answer.
func (s *Store) giveBack(conn *pgxpool.Conn) {
	if !conn.Conn().IsClosed() {
		conn.Release()
		return
	}
	lost := conn.Hijack()
	if tell := s.pool.Config().BeforeClose; tell != nil {
		tell(lost) // as the pool would
	}
}

// one runs a transaction of one statement, in one round trip.
func (s *Store) one(ctx context.Context, b bounds, st statement) error {
	if failpoint.Enabled { // the points lie between the round trips
		return s.inTx(ctx, b, func(t *tx) error { return t.do(ctx, st) })
	}
	return s.onConn(ctx, func(ctx context.Context, conn lent) error {
		t := s.newTx(conn, b)
		err := t.do(ctx, st, statement{sql: "commit"})
		if err != nil {
			t.rollback(ctx)
		}
		return err
	})
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// do sends the statements in one round trip and reads their rows in turn.
func (t *tx) do(ctx context.Context, statements ...statement) error {
	if t.ctx != nil {
		ctx = t.ctx
	}
	if len(t.head) > 0 && (t.apart || failpoint.Enabled) {
		head, ask := t.takeHead()
		if err := send(ctx, t.conn, head, ask); err != nil {
			return err
		}
		failpoint.Hit(t.name + ".begin")
	}
	head, ask := t.takeHead()
	if len(ask) > 0 {
		statements = append(ask, statements...)
	}
	return send(ctx, t.conn, head, statements)
}

// takeHead is what a transaction begins with, the first time.
func (t *tx) takeHead() (head []string, ask []statement) {
	head, ask = t.head, t.ask
	t.head, t.ask = nil, nil
	return head, ask
}

// send runs statements as one batch.
func send(ctx context.Context, conn *pgx.Conn, head []string, statements []statement) error {
	var batch pgx.Batch
	for _, sql := range head {
		batch.Queue(sql)
	}
	known, bytes := teach(conn), len(head)*statementRoom
	if known.encoding != nil {
		if err := known.encoding.fit(ctx, conn, statements); err != nil {
			return err
		}
	}
	for _, st := range statements {
		bytes += statementRoom + len(st.args)*argRoom + packArrays(st.args)
		batch.Queue(st.sql, st.args...)
	}
	known.makeRoom(conn, bytes)
	results := conn.SendBatch(ctx, &batch)
	err := readAll(results, len(head), statements)
	if closed := results.Close(); err == nil {
		err = closed
	}
	return err
}

func readAll(results pgx.BatchResults, head int, statements []statement) error {
	for range head {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	for _, st := range statements {
		rows, err := results.Query()
		if err != nil {
			return err
		}
		for rows.Next() {
			if st.read == nil {
				continue
			}
			if err := st.read(rows); err != nil {
				rows.Close()
				return err
			}
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) commit(ctx context.Context) error {
	if len(t.head) > 0 { // nothing was sent
		return nil
	}
	failpoint.Hit(t.name + ".before_commit")
	if err := t.sendCommit(ctx); err != nil {
		t.rollback(ctx)
		return err
	}
	failpoint.Hit(t.name + ".after_commit")
	return nil
}

// sendCommit writes what is to be counted, and commits, in one round trip.
func (t *tx) sendCommit(ctx context.Context) error {
	if reports := t.tally.Reports(); len(reports) > 0 {
		return send(ctx, t.conn, nil, append(t.store.writeReports(reports), statement{sql: "commit"}))
	}
	tag, err := t.conn.Exec(ctx, "commit")
	if err == nil && tag.String() == "ROLLBACK" {
		err = pgx.ErrTxCommitRollback
	}
	return err
}

// rollback leaves the connection fit for the pool where that is quick, and else
// for the bin.
func (t *tx) rollback(ctx context.Context) {
	if t.conn.IsClosed() || t.conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
	defer cancel()
	t.conn.Exec(ctx, "rollback")
}

// read runs statements that change nothing: outside a transaction, unless the
// host's sessions are set so that they need one of ours around them.
func (s *Store) read(ctx context.Context, statements ...statement) error {
	return s.onConn(ctx, func(ctx context.Context, conn lent) error { return s.readOn(ctx, conn, statements) })
}

// readByIndex is read for what has to find its rows by an index whatever the planner
// knows of the tables: it has a transaction of ours around it.
func (s *Store) readByIndex(ctx context.Context, statements ...statement) error {
	return s.onConn(ctx, func(ctx context.Context, conn lent) error { return s.readInTx(ctx, conn, statements) })
}

// readOn has a transaction of ours around them on the reserve too: what takes too long is
// then ended by the server, and the connection is not lost with it.
func (s *Store) readOn(ctx context.Context, conn lent, statements []statement) error {
	if !s.guardReads && !conn.reserve {
		if ask := s.askFit(conn.Conn); len(ask) > 0 {
			statements = append(ask, statements...)
		}
		return send(ctx, conn.Conn, []string{setOurPath}, statements)
	}
	return s.readInTx(ctx, conn, statements)
}

func (s *Store) readInTx(ctx context.Context, conn lent, statements []statement) error {
	t := s.newTx(conn, bounds{})
	err := t.do(ctx, append(slices.Clone(statements), statement{sql: "commit"})...)
	t.rollback(ctx)
	return err
}

// list reads a page of a list. What it asks for may make the database look through much,
// so that it takes long says nothing about the connections. Over the reserve it has no
// longer than any other statement.
func (s *Store) list(ctx context.Context, st statement) error {
	patience := statement{sql: "select pg_catalog.set_config('statement_timeout', $1, $2)",
		args: []any{strconv.FormatInt(listPatience.Milliseconds(), 10), true}}
	_, err := s.within(ctx, listPatience, func(ctx context.Context, conn lent) error {
		if s.guardReads && !conn.reserve {
			return s.readOn(ctx, conn, []statement{patience, st})
		}
		return s.readOn(ctx, conn, []statement{st})
	})
	return err
}

// SQLSTATEs that mean something to the store. Nothing goes by the text of an
// error, which comes in the language of lc_messages.
const (
	codeLockNotAvailable = "55P03"
	codeDeadlock         = "40P01"
	codeNoPartition      = "23514"
	codeUnique           = "23505"
	codeCancelled        = "57014"
	codeDenied           = "42501"
	codeNoTable          = "42P01"
	codeReadOnly         = "25006"
	codeUntranslatable   = "22P05"
)

func codeOf(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// refuses reports whether the server has answered, by an error with this code, that it refuses what
// it was sent: for what that says or breaks, its size or kind, since it takes too long (57014), or for
// whatever a trigger says with a code of its own. It does not where it is the server that cannot at the
// moment: connections and who makes them, transactions and their conflicts, statements that a connection
// has lost, room, locks, a shutdown, faults of the machine or its own. Nor is it one where a partition is
// missing, which is ours to make.
func refuses(code string) bool {
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "08", "25", "26", "28", "2D", "3D", "40", "53", "55", "57", "58", "72", "F0", "XX":
		return code == codeCancelled
	}
	return true
}

// refusal is such an error.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// Is implements what errors.Is asks.
func (r refusal) Is(target error) bool { return target == store.ErrRefused }

// noPartition reports whether there was no partition for a row: the tables have no
// check constraints, and no constraint is named where a partition is missing.
func noPartition(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == codeNoPartition && pg.ConstraintName == ""
}

// sameRunID reports whether an id of a run was made a second time.
func sameRunID(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == codeUnique && (strings.HasPrefix(pg.TableName, "xxl_job_log_") || pg.TableName == "xxl_job_ahead")
}

// lockedOut reports whether a statement gave up because others have rows locked.
func lockedOut(err error) bool {
	code := codeOf(err)
	return code == codeLockNotAvailable || code == codeDeadlock
}
