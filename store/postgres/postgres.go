package postgres

// The store: its configuration, how it is opened and closed.

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/store"
)

// LeaseMode says how nodes hold their shards.
type LeaseMode string

const (
	// LeaseLock, the default, holds each shard by a session advisory lock as well
	// as by its row: a node whose process dies is followed within two seconds. It
	// needs connections that keep their session. Whoever may connect to the database can
	// take these locks: see the package comment.
	LeaseLock LeaseMode = "lock"
	// LeaseRow goes by the rows alone, for databases behind a pooler that shares
	// sessions out by transaction, such as PgBouncer: a node that dies is followed
	// once it was silent for Config.Cluster.LeaseTTL. Nothing is listened for either.
	LeaseRow LeaseMode = "row"
)

// Config says how the store uses the database. The zero value is good.
type Config struct {
	// Schema is the schema of the tables. Empty means "xxljob". A name is a letter of
	// ASCII or an underscore, then letters, digits, underscores and dollar signs, up to 63
	// bytes in all: New and Migrate refuse any other. It is quoted wherever it is used, so
	// that capitals stay what they are. Names that begin with pg_, and information_schema,
	// are the server's.
	//
	// It is made by Migrate where it is not there. It need not be in the search_path of the
	// pool's sessions, which the store neither goes by nor changes (see the package's
	// documentation). No role but the owner should have CREATE on it.
	Schema string
	// AutoMigrate makes New bring the tables up to date, as Migrate does.
	AutoMigrate bool
	// LeaseMode is LeaseLock where it is empty. The first node that joins stores
	// it; another one is refused from then on.
	LeaseMode LeaseMode
	// LockConn makes a connection for the locks or for LISTEN, which the store
	// closes. Nil makes them from the pool's ConnConfig, BeforeConnect and
	// AfterConnect. Such connections are outside of the pool: two a node; the reserve is
	// another.
	LockConn func(ctx context.Context) (*pgx.Conn, error)
	// NoReserve does without the reserve: one more connection outside of the pool, in
	// both lease modes, made as the pool makes its own. Over it a node claims, starts
	// and stores results, one call after the other, when the pool has had no connection
	// to give for a moment, a quarter of a second at most, because the host uses them
	// all. Without it, and where the server refuses it, such a node gives its shards to
	// other nodes once its claims or starts have failed for Config.Cluster.LeaseTTL. What the
	// host itself asks, by AddJob, Trigger or Wait or of the Store, waits for the pool
	// until its context ends, and the error says how many connections are in use. The
	// Schedulers on one Store share one reserve.
	NoReserve bool
	// AllowAsyncCommit leaves synchronous_commit as the session has it. After a
	// crash of the database, what it had acknowledged may be gone, and runs start
	// again that have run. Without it, every transaction of the store waits for
	// its commit to be on disk.
	AllowAsyncCommit bool
	// NoReports has this store count nothing in reports, those that store.ReportReader
	// returns: what BenchmarkDrain says they cost.
	NoReports bool
	// TxNotify makes TriggerTx and TriggerSQLTx notify the owner of the job's shard in
	// the host's own transaction, so that it hears of the run as soon as that commits.
	// Without it the host calls Wake after the commit, or the run is found within Poll.
	//
	// It has a price, which the host's transactions pay: a commit with a notification
	// takes a lock of the whole server, so that such commits go one after the other, of
	// all databases of the server; the transaction cannot be prepared (PREPARE
	// TRANSACTION is an error); and its commit fails where the server's queue of
	// notifications is full, because some session that listens has kept a transaction
	// open for very long. BenchmarkTxNotifyCommits measures the first. A notification
	// that is lost costs the wait for the poll. It needs LeaseLock: in LeaseRow nothing
	// listens.
	TxNotify bool
	// RunRetention is Config.RunRetention of the schedulers over the schema, where that is
	// less than three days and this process has none: TriggerTx and TriggerSQLTx go by it
	// when they keep a run apart that is due far ahead. It is an hour to a hundred years, as
	// there. Zero means three days or more. A Scheduler over this Store says its own.
	RunRetention time.Duration
	// Tracer is asked for the traces of runs that TriggerTx and TriggerSQLTx plan, as
	// Config.Tracer of a Scheduler is for those of Trigger, and in the same way. It knows of
	// the insert, and not whether the host's transaction commits. Nil means nobody is asked.
	Tracer Tracer

	daysAhead  int           // of partitions; zero stands for partitionsAhead
	patience   time.Duration // how many times as long as the usual bounds a transaction may take; zero stands for one
	knownConns bool          // New need not look at what is between here and the server
	// Logger is slog.Default() where it is nil.
	Logger *slog.Logger
}

// Store keeps everything in one schema of a Postgres database. It is safe for
// concurrent use, by several Schedulers too.
type Store struct {
	pool      *pgxpool.Pool
	cfg       Config
	log       *slog.Logger
	schema    string // quoted
	sql       *queries
	lockClass int32  // the first half of the keys of our advisory locks
	nodeClass int32  // and of the locks that say that a node is there
	channel   string // of NOTIFY
	settings  string // of every transaction: see localSettings

	// What the host's sessions make necessary, as New has found them.
	narrow            bool          // the database is not in UTF-8: see sql_encoding.go
	oddSettings       []string      // to be changed by each transaction
	hasty             bool          // statement_timeout is below ours
	migrationPatience time.Duration // for another process that migrates, in each try
	apartPath         bool          // search_path looks elsewhere before pg_catalog: nothing may be prepared on it
	guardReads        bool          // reads need a transaction of ours as well

	joined sync.Map // what nodes that are here have said when they joined: store.Node by incarnation

	shardCount  atomic.Int64
	modeStored  atomic.Bool
	listening   atomic.Bool
	poolClosed  atomic.Bool  // see errPoolClosed
	carefulTill atomic.Int64 // Unix nanoseconds
	floor       atomic.Int64 // no run below this id is unended
	learnt      atomic.Pointer[reading]
	ceiling     atomic.Int64 // see setBack
	clockAhead  atomic.Int64 // the database's clock less ours, in nanoseconds
	retention   atomic.Int64 // of runs, a time.Duration; zero where nobody has said it

	tracing  *tracing
	floors   startFloors
	days     days
	region   region
	defs     definitions
	backlogs backlogs
	notes    notes
	serials  serials
	aside    asides
	unknown  unknownWindows
	dropped  droppedAlarms
	grouping groupings
	dueRows  rowLists[dueJob]
	newRows  rowLists[inserted]
	reserve  reserve
	people   chan struct{} // has the calls of people that have a connection of the pool, see ofPeople
	squatted squatted
	fitness  fitness

	mu       sync.Mutex
	sessions map[string]*lockSession // guarded by mu: by incarnation
	watchers []*watcher              // guarded by mu
	owners   map[int]string          // guarded by mu: of shards, as last seen
	others   bool                    // guarded by mu: nodes of other processes were seen
	viewed   time.Time               // guarded by mu
	stopWork func()                  // guarded by mu: ends the background work of Watch

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// New opens the store on a pool, which stays the caller's and is not closed by
// Close. It checks the server, the rights, the settings of the session and the
// tables, and says what to do about what it finds.
func New(ctx context.Context, pool *pgxpool.Pool, cfg Config) (*Store, error) {
	switch {
	case ctx == nil:
		return nil, errNoContext
	case pool == nil:
		return nil, errors.New("postgres: the pool is nil")
	}
	s, err := newStore(pool, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.AutoMigrate {
		if err := s.migrate(ctx); err != nil {
			s.cancel()
			return nil, err
		}
	}
	if err := s.check(ctx); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

func newStore(pool *pgxpool.Pool, cfg Config) (*Store, error) {
	if cfg.Schema == "" {
		cfg.Schema = "xxljob"
	}
	if cfg.LeaseMode == "" {
		cfg.LeaseMode = LeaseLock
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.patience == 0 {
		cfg.patience = 1
	}
	if cfg.daysAhead == 0 {
		cfg.daysAhead = usuallyAhead
	}
	var errs []error
	if err := checkSchema(cfg.Schema); err != nil {
		errs = append(errs, err)
	}
	if cfg.LeaseMode != LeaseLock && cfg.LeaseMode != LeaseRow {
		errs = append(errs, fmt.Errorf("postgres: Config.LeaseMode %q: want %q or %q", cfg.LeaseMode, LeaseLock, LeaseRow))
	}
	if cfg.TxNotify && cfg.LeaseMode == LeaseRow {
		errs = append(errs, fmt.Errorf("postgres: Config.TxNotify: nothing listens in LeaseMode %q; call Store.Wake after the commit, which reaches the schedulers of the same process, or wait for the poll", LeaseRow))
	}
	if d := cfg.RunRetention; d != 0 && (d < time.Hour || d > maxRetention) {
		errs = append(errs, fmt.Errorf("postgres: Config.RunRetention is %v: want %v to %v, or 0 for three days or more", d, time.Hour, maxRetention))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	schema := pgx.Identifier{cfg.Schema}.Sanitize()
	hash := fnv.New32a()
	hash.Write([]byte("xxljob/" + cfg.Schema))
	s := &Store{
		pool: pool, cfg: cfg, log: cfg.Logger, schema: schema, sql: newQueries(schema),
		lockClass: int32(hash.Sum32()), nodeClass: int32(hash.Sum32() ^ 0x6e6f6465), channel: fmt.Sprintf("xxljob_%08x", hash.Sum32()),
		sessions: map[string]*lockSession{}, migrationPatience: 10 * time.Second,
		people: make(chan struct{}, ofPeople(pool.Stat().MaxConns())),
	}
	s.KnowRetention(cfg.RunRetention)
	s.tracing = newTracing(cfg.Tracer, s.log)
	s.settings = localSettings(!cfg.AllowAsyncCommit, cfg.patience)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// maxRetention is the longest Config.RunRetention, of a Scheduler too.
const maxRetention = 100 * 365 * 24 * time.Hour

// schemaName is what a schema may be called. There is nothing in such a name that could end
// the quotes, the comment or the text in which it may come to stand.
var schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]*$`)

func checkSchema(name string) error {
	switch {
	case !schemaName.MatchString(name) || len(name) > 63:
		return fmt.Errorf("postgres: Config.Schema %q: want [A-Za-z_][A-Za-z0-9_$]*, at most 63 bytes", name)
	case strings.HasPrefix(name, "pg_"), name == "information_schema":
		return fmt.Errorf("postgres: Config.Schema %q: information_schema, and names that begin with pg_, are the server's own", name)
	}
	return nil
}

// Close ends what the store does in the background and closes its own
// connections. It waits for both, and before for hints that are on their way to other
// processes, a second at most. The pool stays open.
func (s *Store) Close() {
	s.cancel()
	s.mu.Lock()
	var incarnations []string
	for inc := range s.sessions {
		incarnations = append(incarnations, inc)
	}
	s.mu.Unlock()
	for _, inc := range incarnations {
		s.endSession(inc)
	}
	s.work.Wait()
}

func (s *Store) locks() bool { return s.cfg.LeaseMode == LeaseLock }

// careful reports whether rows were locked by others of late: then the loop's
// statements pass by what is locked, which costs a little more.
func (s *Store) careful() bool { return time.Now().UnixNano() < s.carefulTill.Load() }

// carefulFor is how long a store is careful after it met a lock.
const carefulFor = 5 * time.Second

func (s *Store) beCareful() { s.carefulTill.Store(time.Now().Add(carefulFor).UnixNano()) }

// learn takes in a reading of the database's clock.
func (s *Store) learn(now time.Time) {
	if s.learnt.Load() != nil {
		if was := s.estimate(); now.Before(was.Add(-backLeast)) {
			s.setBack(was, now)
		}
	}
	s.clockAhead.Store(int64(time.Until(now)))
	s.learnt.Store(&reading{now, time.Now()})
}

// reading is what the database's clock was, and when.
type reading struct{ database, local time.Time }

// estimate is about the database's time: the later one by the local wall clock, which
// may have been set, and by the monotonic one, which may have stood still. What
// decides about runs goes by neither.
func (s *Store) estimate() time.Time {
	wall := time.Now().Add(time.Duration(s.clockAhead.Load())).Round(0)
	if r := s.learnt.Load(); r != nil {
		if steady := r.database.Add(time.Since(r.local)).Round(0); steady.After(wall) {
			return steady
		}
	}
	return wall
}

// startWork begins the background work where it is not under way. It is called
// with mu held.
func (s *Store) startWork() {
	if s.stopWork != nil || s.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.stopWork = cancel
	if s.locks() {
		s.work.Go(func() { s.listen(ctx) })
	}
	s.work.Go(func() { s.housekeep(ctx) })
	if !s.cfg.NoReserve {
		s.work.Go(func() { s.keepReserve(ctx) })
	}
}

var (
	_ store.Store          = (*Store)(nil)
	_ store.Retainer       = (*Store)(nil)
	_ store.RetentionAware = (*Store)(nil)
	_ store.ClockMarker    = (*Store)(nil)
	_ store.ZoneNoter      = (*Store)(nil)
	_ store.ProcessNoter   = (*Store)(nil)
)
