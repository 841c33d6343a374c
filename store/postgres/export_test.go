package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/stage"
)

// SetAll changes settings of a session.
func SetAll(ctx context.Context, conn *pgx.Conn, settings []string) error {
	return setAll(ctx, conn, settings)
}

// OfPeople is how many connections of a pool of so many people have at a time.
func OfPeople(most int32) int32 { return ofPeople(most) }

// SchemaOf is the name of a store's schema, as it was given.
func SchemaOf(s *Store) string { return s.cfg.Schema }

// MigrateWithin is Migrate with another patience for whoever has the lock of migrations.
func MigrateWithin(ctx context.Context, patience time.Duration, pool *pgxpool.Pool, cfg Config) error {
	s, err := newStore(pool, cfg)
	if err != nil {
		return err
	}
	defer s.cancel()
	s.migrationPatience = patience
	return s.migrate(ctx)
}

// LockClassOf and NodeClassOf are the first halves of the keys of a store's advisory locks.
func LockClassOf(s *Store) int32 { return s.lockClass }
func NodeClassOf(s *Store) int32 { return s.nodeClass }

// DropAsks deletes the questions for logs that are too old, as housekeeping does.
func DropAsks(ctx context.Context, s *Store) error { return s.dropAsks(ctx) }

// AskForReserveAgain ends the pause after a reserve connection was refused.
func AskForReserveAgain(s *Store) { s.reserve.next.Store(0) }

// LockClasses are the first halves of the keys of a store's advisory locks.
func LockClasses(s *Store) []int64 {
	return []int64{int64(uint32(s.lockClass)), int64(uint32(s.nodeClass))}
}

// KeepReserve keeps the reserve ready until ctx ends, as the background work does.
func KeepReserve(ctx context.Context, s *Store) { s.keepReserve(ctx) }

// KeepersOfReserve is how many keep it.
func KeepersOfReserve(s *Store) int { return int(s.reserve.kept.Load()) }

// HoldReserve has the reserve until it is given back.
func HoldReserve(ctx context.Context, s *Store) (giveBack func(), ok bool) {
	c, ok := s.reserve.take(ctx, s, false)
	return c.giveBack, ok
}

// WaitForReserve counts the calls that wait for their turn at the reserve.
func WaitForReserve(s *Store) int { return s.reserve.turns.waiting() }

// WaitForStarts counts those who wait for their turn at starts of serial jobs.
func WaitForStarts(s *Store) int { return s.serials.turn.waiting() }

func (t *turns) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queue)
}

// ReserveIsStale has the reserve asked whether it is alive, as after a while without use.
func ReserveIsStale(s *Store) {
	<-s.reserve.turns.ask()
	defer s.reserve.turns.done()
	s.reserve.used = s.reserve.used.Add(-time.Hour)
}

// BePatient makes the transactions of all stores have five times as long.
func BePatient() { statementPatience, answerPatience = 5*statementPatience, 5*answerPatience }

// MakeFewDays has all stores be as those of FewDays, but for those of AllDays.
func MakeFewDays() { usuallyAhead = 1 }

// AllDays makes stores that make partitions as far ahead as they do for users.
func AllDays(cfg Config) Config {
	cfg.daysAhead = partitionsAhead
	return cfg
}

// FewDays makes stores that make partitions for today and the days beside it only: the server plans
// a statement in less time, and almost no test is about the days behind them.
func FewDays(cfg Config) Config {
	cfg.daysAhead = 1
	return cfg
}

// KnownConns makes stores on a pool on which one was made before: New makes no connections to see
// whether there is a pooler.
func KnownConns(cfg Config) Config {
	cfg.knownConns = true
	return cfg
}

// Patient makes stores whose transactions have ten times as long: the suite is about what comes
// of races, and eight parties of one may wait for more than a second where the machine is busy.
func Patient(cfg Config) Config {
	cfg.patience = 10
	return cfg
}

// BeCareful makes the store pass by what is locked, as after it has met a lock.
func BeCareful(s *Store) { s.beCareful() }

// Listens reports whether the store listens for hints of other processes.
func Listens(s *Store) bool { return s.locks() }

// NotesUnderWay counts the hints that are on their way to other processes, and the
// sender of them.
func NotesUnderWay(s *Store) int {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	n := len(s.notes.pending)
	if s.notes.running {
		n++
	}
	return n
}

// ChannelOf is where hints for other processes are notified.
func ChannelOf(s *Store) string { return s.channel }

// Misdirect has the store notify where nobody listens, before it is used.
func Misdirect(s *Store) { s.channel = "nobody_listens" }

// RaiseStarted reads the least started run anew, as housekeeping does.
func RaiseStarted(ctx context.Context, s *Store) error { return s.floors.raise(ctx, s) }

// Turns is the order of those who wait for the reserve.
type Turns struct{ turns }

// Ask asks for a turn, Done ends one, Leave ends the waiting for one.
func (t *Turns) Ask() chan struct{}       { return t.ask() }
func (t *Turns) Done()                    { t.done() }
func (t *Turns) Leave(turn chan struct{}) { t.leave(turn) }

// SchemaVersion is the number of the newest migration.
const SchemaVersion = schemaVersion

// RaiseFloor looks for the least id of an unended run, as housekeeping does.
func RaiseFloor(ctx context.Context, s *Store) error { return s.raiseFloor(ctx) }

// IsCareful reports whether the store has met rows that others have locked, a moment ago.
func IsCareful(s *Store) bool { return s.careful() }

// EachReportColumn writes something for each column of a report.
var EachReportColumn = eachReportColumn

// SpelledOut is the TriggerMsg of a run l, for statements.
func SpelledOut() string { return spelledOut() }

// InServer is for tests in which one call is made after the other: what is between these is in
// the server, of which the race detector knows nothing.
func InServer(t testing.TB) {
	if stage.Detector {
		t.Skip("what happens is in the server: the race detector has nothing to say of it")
	}
}

// DivideByZero is a read that the server refuses, whatever it is given.
func (s *Store) DivideByZero(ctx context.Context) error {
	return s.read(ctx, statement{sql: "select 1/0"})
}
