package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"testing"
	"time"
)

// Schema makes a schema of the test's own and returns its name. It is dropped
// with all that is in it when the test ends, so ask for it before anything that
// uses it is opened. Only At is of use as an option.
func Schema(t testing.TB, opts ...Option) string {
	t.Helper()
	o := apply(t, opts)
	name := "t_" + random()
	if err := admin(t, o, "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin(t, o, "DROP SCHEMA "+name+" CASCADE"); err != nil {
			t.Errorf("pgtest: drop the schema of the test: %v", err)
		}
	})
	return name
}

// Database makes a database of the test's own with another collation, and
// returns its address; see Cluster.CreateDatabase. The test is skipped when the
// server is not ours or lacks the collation.
func Database(t testing.TB, collation string) string {
	t.Helper()
	s := usualServer(t)
	if s.cluster == nil {
		Skip(t, "databases are made on a cluster of our own only: unset XXLJOB_TEST_DATABASE_URL")
	}
	ctx, name := context.Background(), "d_"+random()
	dsn, err := s.cluster.CreateDatabase(ctx, name, collation, role)
	if err != nil && !required() {
		t.Skipf("pgtest: SKIPPED: no database with collation %s: %v", collation, err)
	}
	if err != nil {
		t.Fatalf("pgtest: no database with collation %s, which Postgres has from version 15 on: %v", collation, err)
	}
	t.Cleanup(func() {
		if _, err := s.cluster.Exec(ctx, superuser, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return dsn
}

// admin runs a statement in the database of the options.
func admin(t testing.TB, o options, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if s := usualServer(t); o.dsn == s.dsn {
		_, err := s.admin.Exec(ctx, sql)
		return err
	}
	_, err := execute(ctx, o.dsn, sql)
	return err
}

// random returns eight bytes, enough for schemas of concurrent processes.
func random() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
