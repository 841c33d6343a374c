package measure

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Query asks a Postgres server and returns the first column of the first row as text, so that
// nothing here depends on a driver. Statements end with no semicolon and have no arguments.
type Query func(ctx context.Context, sql string) (string, error)

// Server is what a Postgres server says of itself.
type Server struct {
	// Version is server_version, such as "15.18".
	Version string `json:"version"`
	// Settings are those that figures depend on, as SHOW has them.
	Settings map[string]string `json:"settings"`
}

// settings are those that figures depend on.
func settings() []string {
	return []string{"fsync", "synchronous_commit", "full_page_writes", "wal_level", "wal_compression", "shared_buffers", "max_wal_size", "max_connections", "autovacuum", "jit", "plan_cache_mode"}
}

// String is one line.
func (s Server) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Postgres %s:", s.Version)
	for _, name := range settings() {
		if v, ok := s.Settings[name]; ok {
			fmt.Fprintf(&b, " %s=%s", name, v)
		}
	}
	return b.String()
}

// AskServer asks for the version and the settings. One that the server does not know is left
// out.
func AskServer(ctx context.Context, ask Query) (Server, error) {
	s := Server{Settings: map[string]string{}}
	var err error
	if s.Version, err = ask(ctx, "select current_setting('server_version')"); err != nil {
		return s, fmt.Errorf("measure: %w", err)
	}
	for _, name := range settings() {
		v, err := ask(ctx, "select coalesce(current_setting('"+name+"', true), '')")
		if err != nil {
			return s, fmt.Errorf("measure: %w", err)
		}
		if v != "" {
			s.Settings[name] = v
		}
	}
	return s, nil
}

// WAL is the position up to which the server's log is filled, in bytes: the difference of two
// is what was written between them, by all of its databases.
func WAL(ctx context.Context, ask Query) Figure {
	text, err := ask(ctx, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text")
	if err != nil {
		return Figure{}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return Figure{float64(n), err == nil}
}

// Postmaster finds the first process of the server that answers, as the parent of the one that
// serves the session. It returns 0 where it is not certain that the server is on this machine:
// what has the number here has to be called postgres, and to have been started when the server
// says that it was.
func (p Proc) Postmaster(ctx context.Context, ask Query) int {
	text, err := ask(ctx, "select pg_backend_pid()::text || ' ' || extract(epoch from pg_postmaster_start_time())::text")
	if err != nil {
		return 0
	}
	var pid int
	var started float64
	if _, err := fmt.Sscan(text, &pid, &started); err != nil {
		return 0
	}
	backend, ok := p.process(pid)
	if !ok || !isPostgres(backend) {
		return 0
	}
	first, ok := p.process(backend.parent)
	at, known := p.startedAt(backend.parent)
	// The time of the boot is told in whole seconds, and the server takes a while to its own.
	if !ok || !known || !isPostgres(first) || math.Abs(at-started) > 10 {
		return 0
	}
	return backend.parent
}

func isPostgres(p process) bool { return p.program == "postgres" || p.program == "postmaster" }
