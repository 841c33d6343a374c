package pgtest

import (
	"context"
	"errors"
	"os"
	"testing"
)

// Start makes a cluster that is closed with the test. The test is skipped when
// Postgres is not installed.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c, err := New(o)
	if err != nil {
		giveUp(t, err)
	}
	closeWith(t, c)
	return c
}

// StartStandby makes a standby that is closed with the test.
func StartStandby(t testing.TB, primary *Cluster, o Options) *Cluster {
	t.Helper()
	c, err := primary.Standby(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	closeWith(t, c)
	return c
}

// closeWith closes a cluster with a test, and shows its log if the test failed.
func closeWith(t testing.TB, c *Cluster) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the cluster in %s:\n%s", c.Dir(), c.Log())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// PgBouncer starts a pgbouncer in transaction mode in front of a database, ended
// with the test, and returns its address. The test is skipped when pgbouncer is
// not installed. Old versions know no prepared statements: have pgx do without,
// by With or by default_query_exec_mode=exec in the address.
func PgBouncer(t testing.TB, dsn string) string {
	t.Helper()
	b, err := NewBouncer(dsn)
	if err != nil {
		noBouncer(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of pgbouncer:\n%s", b.Log())
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b.DSN()
}

// noBouncer skips a test aloud for lack of pgbouncer, which make test has said then, and fails it for all else.
func noBouncer(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) {
		Skip(t, err.Error()+" (make test does so, or says that these are left out)")
	}
	t.Fatal(err)
}

// usualServer returns the server of the process.
func usualServer(t testing.TB) *server {
	t.Helper()
	s, err := theServer()
	if err != nil {
		giveUp(t, err)
	}
	return s
}

// giveUp skips a test for lack of a program, unless it was said that there has
// to be one (see required). Everything else fails it.
func giveUp(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) && !required() {
		t.Skipf("SKIPPED: %v (make test does so)", err)
	}
	t.Fatal(err)
}

// Skip skips a test aloud. Where CI says that it is one all tests run, and it fails.
func Skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal("not run, where CI=true: " + why)
	}
	t.Skip("SKIPPED: " + why)
}

// required reports whether what is missing fails tests: under make test, and where
// CI says that it is one.
func required() bool {
	return os.Getenv("XXLJOB_REQUIRE_POSTGRES") == "1" || os.Getenv("CI") == "true"
}
