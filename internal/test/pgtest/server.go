package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

// role is the owner of the database in which tests work, and its name. It may no
// more than a service may.
const role = "xxljob"

// server is where the tests of this process find Postgres.
type server struct {
	dsn     string
	cluster *Cluster // nil when it is not ours

	// admin makes and drops schemas. It is apart from the pools of tests, which
	// may be used up.
	admin *pgxpool.Pool
	// pool is what tests share. It is never closed: the process ends first.
	pool func() (*pgxpool.Pool, error)
}

// theServer starts the one server of the process when the first test asks. The
// server ends with the process, so a package needs no TestMain.
var theServer = sync.OnceValues(openServer)

func openServer() (*server, error) {
	s := &server{dsn: os.Getenv("XXLJOB_TEST_DATABASE_URL")}
	if s.dsn == "" {
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	s.pool = sync.OnceValues(func() (*pgxpool.Pool, error) { return open(s.dsn, sharedConns, nil) })
	var err error
	s.admin, err = open(s.dsn, 4, func(c *pgxpool.Config) {
		// Whoever still holds a table of a schema that is dropped is a bug of a test.
		c.ConnConfig.RuntimeParams["lock_timeout"] = "10s"
	})
	if err != nil {
		return nil, s.abandon(err)
	}
	if err := s.admin.Ping(context.Background()); err != nil {
		return nil, s.abandon(fmt.Errorf("pgtest: %w", err))
	}
	return s, nil
}

// frugal are settings of a server whose data nobody needs once the tests are over: pages are not
// logged as a whole, tables are not vacuumed and analyzed behind the tests' backs, nor statements
// compiled, or planned anew for each of their first calls, which few sessions of tests go beyond.
func frugal() map[string]string {
	return map[string]string{"full_page_writes": "off", "autovacuum": "off", "jit": "off", "plan_cache_mode": "force_generic_plan"}
}

// start makes the cluster of the process, with a database for tests.
func (s *server) start() error {
	c, err := New(Options{NoFsync: true, Settings: frugal()})
	if err != nil {
		return err
	}
	s.cluster = c
	ctx := context.Background()
	if _, err := c.Exec(ctx, superuser, "CREATE ROLE "+role+" LOGIN"); err != nil {
		return s.abandon(err)
	}
	if s.dsn, err = c.CreateDatabase(ctx, role, "", role); err != nil {
		return s.abandon(err)
	}
	return nil
}

// abandon closes what could not be made whole.
func (s *server) abandon(err error) error {
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Close())
	}
	return err
}
