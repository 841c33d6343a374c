//go:build unix

package pgtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
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
func (f *failure) Fatal(args ...any)        { f.failed = fmt.Sprint(args...); panic(f) }
func (f *failure) Skip(args ...any)         { f.skipped = fmt.Sprint(args...); panic(f) }
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

// TestWithoutBouncer: where pgbouncer is missing its tests are skipped, and say why and how to install it, unless CI
// says that it is one; anything else that keeps it from starting fails them.
func TestWithoutBouncer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, missing := pgtest.FindBouncerIn([]string{t.TempDir()})
	if !errors.Is(missing, pgtest.ErrMissing) {
		t.Fatalf("nowhere: %v", missing)
	}
	for _, c := range []struct {
		ci    string
		err   error
		skips bool
	}{{"", missing, true}, {"false", missing, true}, {"true", missing, false}, {"", context.Canceled, false}} {
		t.Setenv("CI", c.ci)
		f := &failure{}
		func() {
			defer func() { recover() }()
			pgtest.NoBouncer(f, c.err)
		}()
		said := f.failed
		if c.skips {
			said = f.skipped
		}
		if c.skips == (f.failed != "") || !strings.Contains(said, c.err.Error()) || c.skips && !strings.HasPrefix(said, "SKIPPED: ") {
			t.Errorf("CI=%s, %v: skipped %q, failed %q", c.ci, c.err, f.skipped, f.failed)
		}
	}
}

// TestMakeWithoutBouncer: what make test does before all else says which tests are left out where pgbouncer alone
// is missing and is not installed, and does not fail, unless CI says that it is one. Without Postgres it fails.
func TestMakeWithoutBouncer(t *testing.T) {
	script, err := os.ReadFile("install.sh")
	must(t, err)
	root := t.TempDir()
	text := string(script)
	for _, places := range [][]string{pgtest.PostgresPlaces(), pgtest.BouncerPlaces()} {
		text = strings.Replace(text, strings.Join(places, "\n"), root+"/*/bin", 1)
	}
	program := func(path string) {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("#!/bin/sh\nexit 7\n"), 0o755))
	}
	program(filepath.Join(root, "path", "apt-get")) // installs nothing
	here := filepath.Join(root, "install.sh")
	must(t, os.WriteFile(here, []byte(text), 0o644))
	sh, err := osexec.LookPath("sh")
	must(t, err)
	for _, c := range []struct {
		has  []string
		ci   string
		fail bool
		left bool // it says what is left out
		want string
	}{
		{has: []string{"initdb", "pgbouncer"}},
		{has: []string{"initdb"}, left: true, want: "apt-get install -y pgbouncer"},
		{has: []string{"initdb"}, ci: "true", fail: true, want: "apt-get install -y pgbouncer"},
		{has: []string{"pgbouncer"}, fail: true, want: "apt-get install -y postgresql"},
		{fail: true, want: "apt-get install -y postgresql pgbouncer"},
	} {
		must(t, os.RemoveAll(filepath.Join(root, "there")))
		for _, name := range c.has {
			program(filepath.Join(root, "there", "bin", name))
		}
		cmd := osexec.Command(sh, here)
		cmd.Env = []string{"PATH=" + filepath.Join(root, "path"), "NO_INSTALL=1", "CI=" + c.ci}
		out, err := cmd.CombinedOutput()
		if left := strings.Contains(string(out), "LEFT OUT: the tests behind pgbouncer"); (err != nil) != c.fail || left != c.left || !strings.Contains(string(out), c.want) || len(c.has) == 2 && len(out) > 0 {
			t.Errorf("with %v, CI=%s: %v, %s", c.has, c.ci, err, out)
		}
	}
}
