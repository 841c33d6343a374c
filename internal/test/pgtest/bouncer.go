package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bouncer is a pgbouncer in transaction mode, in front of one database.
type Bouncer struct {
	home    *home
	program string
	server  *pgx.ConnConfig
	port    int
}

// NewBouncer starts a pgbouncer in front of a database. The caller has to close
// it; it does not outlive the process.
func NewBouncer(dsn string) (*Bouncer, error) {
	program, err := findBouncer(bouncerPlaces())
	if err != nil {
		return nil, err
	}
	server, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	h, err := newHome(syscall.SIGKILL, true) // there is nothing to lose in it
	if err != nil {
		return nil, err
	}
	b := &Bouncer{home: h, program: program, server: server}
	for range 5 { // another process may be faster in taking the port
		if err = b.run(); err == nil {
			return b, nil
		}
		if !strings.Contains(b.Log(), "in use") {
			break
		}
	}
	return nil, errors.Join(fmt.Errorf("pgtest: start pgbouncer: %w; its log:\n%s", err, b.Log()), b.Close())
}

func (b *Bouncer) run() error {
	var err error
	if b.port, err = freePort(); err != nil {
		return err
	}
	name := b.home.path("pgbouncer.ini")
	if err := os.WriteFile(name, []byte(b.config()), 0o600); err != nil {
		return err
	}
	if err := b.home.account.own(name); err != nil {
		return err
	}
	p, err := b.home.start(b.program, name)
	if err != nil {
		return err
	}
	return b.await(p)
}

// config connects everybody as the user of the address, whoever they say they are.
func (b *Bouncer) config() string {
	value := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	s := b.server
	server := fmt.Sprintf("host=%s port=%d dbname=%s user=%s", value(s.Host), s.Port, value(s.Database), value(s.User))
	if s.Password != "" {
		server += " password=" + value(s.Password)
	}
	tls := "disable"
	if s.TLSConfig != nil {
		tls = "prefer"
	}
	return fmt.Sprintf(`[databases]
%s = %s

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 1000
server_tls_sslmode = %s
ignore_startup_parameters = extra_float_digits
`, s.Database, server, b.port, tls)
}

// await waits until a query goes through.
func (b *Bouncer) await(p *process) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		_, err := execute(ctx, b.DSN(), "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return errors.New("it ended")
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// DSN returns the address of the database through pgbouncer.
func (b *Bouncer) DSN() string {
	u := url.URL{Scheme: "postgres", User: url.User(b.server.User), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)), Path: "/" + b.server.Database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Log returns what pgbouncer has logged.
func (b *Bouncer) Log() string { return b.home.log() }

// Close ends pgbouncer and removes its files.
func (b *Bouncer) Close() error { return b.home.close() }
