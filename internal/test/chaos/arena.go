//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/chaos/sink"
	"github.com/xxljob/xxljob/internal/test/pgtest"
)

const (
	// schema is where the tables are.
	schema = "chaos"
	// shards is the number of scheduling shards, each with a job of its own that
	// is due every second.
	shards = 16
	// dbUser and dbName are the role of the nodes and its database.
	dbUser, dbName = "chaos", "chaos"
	// leaseLock and leaseRow are the store's lease modes.
	leaseLock, leaseRow = "lock", "row"
	// readyPatience is how long a process may take to begin.
	readyPatience = 30 * time.Second
)

// arena is one cluster with a database, a workload and a journal of its own.
type arena struct {
	dir     string
	program string // the node program
	dsn     string // of the nodes, without a proxy; empty for the store in memory
	direct  bool   // nodes reach the database without a proxy
	lease   string // the mode in which nodes hold their shards; empty: leaseLock
	pool    int    // connections of a node's pool at most; 0: pgx's default
	bare    bool   // nodes have no reserve connection
	alone   bool   // no other fault is on the machine
	slowly  bool   // no job is due more than once a second
	forgets bool   // a promotion may lose what was acknowledged
	journal journal
	turns   []*member // the order in which pauses go around; set by the first
	manual  []int64   // jobs that only triggers run; set by workload
	apart   []int64   // and whose runs are kept apart for a moment
	chained []chained // and whose handlers fail
	hook    *sink.HTTP
	mails   *sink.SMTP
	own     *sink.HTTP     // of the second service; nil where there is none
	zones   string         // the zone data of nodes that have any; empty: the system's
	poison  int64          // runs whose id is a multiple have texts that nobody can store; 0: none
	clock   string         // the file with the step of the server's clock; empty where it has none
	plain   bool           // there are only jobs that nobody edits or triggers, with short runs
	dead    time.Duration  // how long a registration over HTTP is good for; 0: the scheduler's default
	later   []func() error // what is to be done when all is over
	owing   bool           // most jobs lead to others
	failing bool           // there are no other jobs, and almost every run is followed by one
	say     func(format string, args ...any)
	serial  atomic.Int64 // numbers triggers and jobs
	dbFault sync.Mutex   // held while a fault of the database is injected
	spares  atomic.Bool  // faults leave a member alone that is well: see victim
	choice  sync.Mutex   // held while a victim is chosen

	mu        sync.Mutex
	rnd       *rand.Rand      // guarded by mu
	pg        *pgtest.Cluster // guarded by mu: the primary; nil for the store in memory
	standby   *pgtest.Cluster // guarded by mu: nil where there is none, or not any more
	former    *pgtest.Cluster // guarded by mu: what was the primary before a promotion
	members   []*member       // guarded by mu
	executors []*member       // guarded by mu: processes that are no nodes
	notes     []string        // guarded by mu: remarks for the report
	phases    []phase         // guarded by mu
	slow      string          // guarded by mu: see fault
}

// newArena makes one without database, nodes and workload.
func newArena(dir, program string, seed uint64, say func(string, ...any)) (*arena, error) {
	a := &arena{dir: dir, program: program, rnd: rand.New(rand.NewPCG(seed, 0)), say: say}
	var err1, err2 error
	a.hook, err1 = sink.ListenHTTP("http", seed)
	a.mails, err2 = sink.ListenSMTP("smtp", seed)
	return a, errors.Join(err1, err2, os.MkdirAll(dir, 0o700))
}

// openDatabase is the usual database: a single server.
func openDatabase(ctx context.Context, a *arena) error { return a.openPrimary(ctx) }

func (a *arena) openPrimary(ctx context.Context) error {
	var o pgtest.Options
	if a.slowly { // nodes live for seconds: where their statements are planned once, the machine has less to do
		plans := []string{"force_generic_plan", "auto"}[a.intn(2)]
		a.say("plan_cache_mode is %s", plans)
		o.Settings = map[string]string{"plan_cache_mode": plans, "jit": "off"}
	}
	return a.openServer(ctx, o)
}

func (a *arena) openServer(ctx context.Context, o pgtest.Options) (err error) {
	pg, err := pgtest.New(o)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.pg = pg
	a.mu.Unlock()
	if _, err := pg.Exec(ctx, "postgres", "CREATE ROLE "+dbUser+" LOGIN"); err != nil {
		return err
	}
	a.dsn, err = pg.CreateDatabase(ctx, dbName, "", dbUser)
	return err
}

// primary is the database that accepts writes; nil for the store in memory.
func (a *arena) primary() *pgtest.Cluster {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pg
}

// populate starts n nodes, and those of a second service where there is one, and waits until they
// are ready.
func (a *arena) populate(ctx context.Context, n int) error {
	for i := range n {
		if err := a.join(ctx, fmt.Sprintf("n%d", i+1), ""); err != nil {
			return err
		}
	}
	for i := 0; a.own != nil && i < secondNodes; i++ {
		if err := a.join(ctx, fmt.Sprintf("s%d", i+1), second); err != nil {
			return err
		}
	}
	return nil
}

// join starts a node of an app and waits until it is ready.
func (a *arena) join(ctx context.Context, name, app string) error {
	m, err := a.newMember(name)
	if err != nil {
		return err
	}
	m.app = app
	a.mu.Lock()
	a.members = append(a.members, m)
	a.mu.Unlock()
	if err := m.start(); err != nil {
		return err
	}
	return m.awaitReady(ctx, readyPatience)
}

// all returns the members.
func (a *arena) all() []*member {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*member(nil), a.members...)
}

// intn is a random number below n.
func (a *arena) intn(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rnd.IntN(n)
}

// between is a random duration.
func (a *arena) between(least, most time.Duration) time.Duration {
	return least + time.Duration(a.intn(int((most-least)/time.Microsecond)+1))*time.Microsecond
}

// note adds a remark to the report.
func (a *arena) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

// victim claims a random member that no fault has; nil when there is none, or when it
// would be the last that is well and has to be spared.
func (a *arena) victim() *member {
	a.choice.Lock()
	defer a.choice.Unlock()
	for _, m := range a.shuffled() {
		switch {
		case !m.claim():
		case a.spares.Load() && !slices.ContainsFunc(a.all(), (*member).isWell):
			m.unclaim()
		default:
			return m
		}
	}
	return nil
}

// shuffled returns the members in a random order.
func (a *arena) shuffled() []*member {
	all := a.all()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// healthy returns a random member that can be asked for something; nil when there
// is none.
func (a *arena) healthy() *member {
	all := a.all()
	from := a.intn(max(len(all), 1))
	for i := range all {
		if m := all[(from+i)%len(all)]; m.alive() && !m.isMute() {
			return m
		}
	}
	return nil
}

// db opens a session of the superuser's.
func (a *arena) db(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, a.primary().DSN(dbName))
}

// withDB does something in a session of the superuser's.
func (a *arena) withDB(ctx context.Context, f func(*pgx.Conn) error) error {
	db, err := a.db(ctx)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	return f(db)
}

// ownedBy are the shards of a member; none where nobody can say.
func (a *arena) ownedBy(ctx context.Context, m *member) (owned []int) {
	if a.primary() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = a.withDB(ctx, func(db *pgx.Conn) (err error) {
		owned, err = ownedShards(ctx, db, schema, m.name)
		return err
	})
	return owned
}

// close ends all processes and the database, and saves its log.
func (a *arena) close() error {
	a.mu.Lock()
	executors := a.executors
	a.mu.Unlock()
	for _, m := range append(a.all(), executors...) {
		_ = m.signal(syscall.SIGCONT)
		m.close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	errs := []error{a.hook.Close(), a.mails.Close()}
	for _, f := range a.later {
		errs = append(errs, f())
	}
	for name, pg := range map[string]*pgtest.Cluster{"postgres": a.pg, "standby": a.standby, "former": a.former} {
		if pg != nil {
			errs = append(errs, os.WriteFile(filepath.Join(a.dir, name+".log"), []byte(pg.Log()), 0o600), pg.Close())
		}
	}
	return errors.Join(errs...)
}
