//go:build unix

package pgtest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// TestFind: without Postgres, the error says so, and how to install it.
func TestFind(t *testing.T) {
	t.Setenv("XXLJOB_TEST_POSTGRES_BIN", "")
	t.Setenv("PATH", t.TempDir())
	_, err := pgtest.FindIn([]string{t.TempDir(), "/nowhere/*/bin"})
	if !errors.Is(err, pgtest.ErrMissing) || !strings.Contains(err.Error(), "install postgresql") {
		t.Errorf("nowhere: %v", err)
	}
	t.Setenv("XXLJOB_TEST_POSTGRES_BIN", "/nowhere")
	if _, err := pgtest.Find(); err == nil || errors.Is(err, pgtest.ErrMissing) {
		t.Errorf("a directory that is named and not there: %v", err)
	}
}

// TestFindNewest: of several versions the newest counts, as a number.
func TestFindNewest(t *testing.T) {
	t.Setenv("XXLJOB_TEST_POSTGRES_BIN", "")
	root := t.TempDir()
	for _, version := range []string{"9.6.24", "13.1", "100beta1"} {
		for _, program := range []string{"initdb", "postgres"} {
			dir := filepath.Join(root, version)
			must(t, os.MkdirAll(dir, 0o755))
			must(t, os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\necho 'postgres (PostgreSQL) "+version+" (Debian)'\n"), 0o755))
		}
	}
	t.Setenv("PATH", filepath.Join(root, "9.6.24")+":/bin:/usr/bin") // too old to be taken from there
	dir, err := pgtest.FindIn([]string{root + "/*"})
	if err != nil || filepath.Base(dir) != "100beta1" {
		t.Errorf("%s, %v", dir, err)
	}
}

// TestInstallScript: the script looks where Find does.
func TestInstallScript(t *testing.T) {
	script, err := os.ReadFile("install.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, places := range [][]string{pgtest.PostgresPlaces(), pgtest.BouncerPlaces()} {
		if text := "\n" + strings.Join(places, "\n") + "\n"; !strings.Contains(string(script), text) {
			t.Errorf("install.sh lacks%s", text)
		}
	}
}

// failure is a test that records how it was given up.
type failure struct {
	testing.TB
	skipped, failed string
}

func (f *failure) Helper()                  {}
func (f *failure) Fatal(args ...any)        { f.failed = args[0].(error).Error(); panic(f) }
func (f *failure) Skipf(_ string, a ...any) { f.skipped = a[0].(error).Error(); panic(f) }

// TestGiveUp: a missing program skips a test, unless it is required; anything
// else fails it.
func TestGiveUp(t *testing.T) {
	missing := errors.Join(pgtest.ErrMissing)
	for _, c := range []struct {
		required, ci string
		err          error
		skips        bool
	}{
		{"", "", missing, true}, {"0", "", missing, true}, {"1", "", missing, false}, {"", "", context.Canceled, false},
		{"", "true", missing, false}, {"", "false", missing, true},
	} {
		t.Setenv("XXLJOB_REQUIRE_POSTGRES", c.required)
		t.Setenv("CI", c.ci)
		f := &failure{}
		func() {
			defer func() { recover() }()
			pgtest.GiveUp(f, c.err)
		}()
		if skips := f.skipped != ""; skips != c.skips || skips == (f.failed != "") {
			t.Errorf("XXLJOB_REQUIRE_POSTGRES=%s, CI=%s, %v: skipped %q, failed %q", c.required, c.ci, c.err, f.skipped, f.failed)
		}
	}
}
