//go:build unix

package pgtest_test

import (
	"bufio"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// sql runs statements on a cluster that have to succeed, and returns the rows.
func sql(t *testing.T, c *pgtest.Cluster, statements string) string {
	t.Helper()
	out, err := c.Exec(t.Context(), "postgres", statements)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func gone(pid int) bool {
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil && strings.Contains(string(status), "State:\tZ") {
		return true // ended, though nobody has reaped it
	}
	return syscall.Kill(pid, 0) != nil
}

// TestRestart: what was committed is there after every way to stop, at the same
// address, and nothing is left after Close.
func TestRestart(t *testing.T) {
	startsServers(t)
	var dir string
	t.Run("cluster", func(t *testing.T) {
		c := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"application_name": "it's"}})
		dir = c.Dir()
		if got := sql(t, c, "SHOW application_name"); got != "it's" {
			t.Errorf("application_name is %s", got)
		}
		sql(t, c, "CREATE TABLE kept (mode text)")
		dsn, modes := c.DSN("postgres"), []pgtest.Mode{pgtest.Fast, pgtest.Immediate, pgtest.Kill}
		for _, mode := range modes {
			sql(t, c, "INSERT INTO kept VALUES ('"+string(mode)+"')")
			pid := c.PID()
			must(t, c.Stop(mode))
			if !gone(pid) || c.PID() != 0 {
				t.Errorf("%s: process %d, PID %d", mode, pid, c.PID())
			}
			must(t, c.Stop(mode))
			must(t, c.Start())
		}
		if got := sql(t, c, "SELECT string_agg(mode, ' ') FROM kept"); got != "fast immediate kill" {
			t.Errorf("kept: %s", got)
		}
		if c.DSN("postgres") != dsn {
			t.Errorf("the address was %s and is %s", dsn, c.DSN("postgres"))
		}
		if err := c.Start(); err == nil {
			t.Error("a running cluster starts")
		}
		if err := c.Restart("at once"); err == nil || c.PID() == 0 {
			t.Errorf("an unknown mode: %v, PID %d", err, c.PID())
		}
	})
	if _, err := os.Stat(dir); dir != "" && !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

// TestConfigure: settings hold at once or after a restart; faults are told.
func TestConfigure(t *testing.T) {
	startsServers(t)
	c := pgtest.Start(t, pgtest.Options{NoFsync: true})
	must(t, c.Configure(t.Context(), map[string]string{"work_mem": "5MB", "max_connections": "77"}))
	const show = "SELECT current_setting('work_mem'), current_setting('max_connections')"
	if got := sql(t, c, show); got != "5MB|400" {
		t.Errorf("before the restart: %s", got)
	}
	must(t, c.Restart(pgtest.Fast))
	if got := sql(t, c, show); got != "5MB|77" {
		t.Errorf("after the restart: %s", got)
	}
	if err := c.Configure(t.Context(), map[string]string{"work_mem": "much"}); err == nil || !strings.Contains(err.Error(), "work_mem|much") {
		t.Errorf("a faulty setting: %v", err)
	}
}

// TestStandby: a synchronous standby has all that was committed when the primary
// is gone, which may become a standby of its own.
func TestStandby(t *testing.T) {
	startsServers(t)
	primary := pgtest.Start(t, pgtest.Options{})
	standby := pgtest.StartStandby(t, primary, pgtest.Options{Name: "second"})
	must(t, primary.Configure(t.Context(), map[string]string{"synchronous_standby_names": "second"}))
	await.Until(t, "the standby is synchronous", func() bool {
		return sql(t, primary, "SELECT application_name, sync_state FROM pg_stat_replication") == "second|sync"
	})
	sql(t, primary, "CREATE TABLE kept AS SELECT 42 AS answer")
	must(t, primary.Stop(pgtest.Immediate))
	if got := sql(t, standby, "SELECT pg_is_in_recovery()"); got != "t" {
		t.Errorf("in recovery: %s", got)
	}
	must(t, standby.Promote())
	sql(t, standby, "INSERT INTO kept VALUES (43)")
	if got := sql(t, standby, "SELECT answer FROM kept ORDER BY 1"); got != "42\n43" {
		t.Errorf("kept: %q", got)
	}
	must(t, primary.Follow(standby))
	await.Until(t, "the former primary has what was written since", func() bool {
		return sql(t, primary, "SELECT pg_is_in_recovery(), count(*) FROM kept") == "t|2"
	})
}

// TestPgBouncer: transactions of a client pass through changing sessions.
func TestPgBouncer(t *testing.T) {
	startsServers(t)
	dsn := pgtest.DSN(t)
	pool := pgtest.Pool(t, pgtest.At(pgtest.PgBouncer(t, dsn)), pgtest.With(func(c *pgxpool.Config) {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}))
	schema := pgtest.Schema(t)
	exec(t, pool, "CREATE TABLE "+schema+".through (id int)")
	conn, err := pool.Acquire(t.Context())
	must(t, err)
	defer conn.Release()
	pids := map[int]bool{}
	for range 2 {
		tx, err := conn.Begin(t.Context())
		must(t, err)
		var pid int
		must(t, tx.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
		pids[pid] = true
		must(t, tx.Commit(t.Context()))
		// Another client takes the session that was free.
		other, err := pool.Begin(t.Context())
		must(t, err)
		_, err = other.Exec(t.Context(), "SELECT 1")
		must(t, err)
		defer other.Rollback(t.Context())
	}
	if len(pids) != 2 {
		t.Errorf("the client had sessions %v, want two", pids)
	}
}

// holder is the environment variable that makes a process of this program hold a
// cluster, and says how it ends.
const holder = "PGTEST_HOLDER"

func TestMain(m *testing.M) {
	if end := os.Getenv(holder); end != "" {
		hold(end)
	}
	os.Exit(m.Run())
}

// hold is the process of TestNothingOutlives.
func hold(end string) {
	c, err := pgtest.New(pgtest.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("holding %d %s\n", c.PID(), c.Dir())
	bufio.NewReader(os.Stdin).ReadString('\n')
	switch end {
	case "panic":
		go panic("as the test wants")
	case "exit":
		os.Exit(0)
	}
	select {}
}

// TestNothingOutlives: however a process ends, its cluster ends with it, and the
// files are removed.
func TestNothingOutlives(t *testing.T) {
	startsServers(t)
	if _, err := pgtest.Find(); err != nil {
		pgtest.GiveUp(t, err)
	}
	for _, end := range []string{"kill", "panic", "exit"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			cmd := osexec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), holder+"="+end)
			in, err := cmd.StdinPipe()
			must(t, err)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			var pid int
			var dir string
			for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
				fmt.Sscanf(lines.Text(), "holding %d %s", &pid, &dir)
			}
			if dir == "" || gone(pid) {
				t.Fatalf("no cluster: pid %d, directory %q", pid, dir)
			}
			if end == "kill" {
				must(t, cmd.Process.Kill())
			} else {
				in.Write([]byte("\n"))
			}
			cmd.Wait()
			await.Until(t, "the server is gone", func() bool { return gone(pid) })
			await.Until(t, "the directory is gone", func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) })
		})
	}
}
