package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Mode is a way to stop a server.
type Mode string

const (
	// Smart waits until the clients have gone.
	Smart Mode = "smart"
	// Fast ends the clients' transactions and writes a checkpoint.
	Fast Mode = "fast"
	// Immediate stops without a checkpoint: the next start recovers from the log,
	// as after a crash.
	Immediate Mode = "immediate"
	// Kill is SIGKILL to the server's first process; the others notice and end.
	Kill Mode = "kill"
)

// patience is how long the start and the stop of a server may take.
const patience = time.Minute

func (m Mode) signal() (os.Signal, error) {
	switch m {
	case Smart:
		return syscall.SIGTERM, nil
	case Fast:
		return syscall.SIGINT, nil
	case Immediate:
		return syscall.SIGQUIT, nil
	case Kill:
		return syscall.SIGKILL, nil
	}
	return nil, fmt.Errorf("unknown mode %q", string(m))
}

// Stop stops the server and waits until it has ended. It does nothing when it
// does not run.
func (c *Cluster) Stop(mode Mode) error {
	signal, err := mode.signal()
	if err == nil {
		err = c.home.stop(signal, patience)
	}
	if err != nil {
		return fmt.Errorf("pgtest: stop: %w", err)
	}
	return nil
}

// Start starts the server after a Stop and waits until it answers.
func (c *Cluster) Start() error {
	if err := c.run(); err != nil {
		return fmt.Errorf("pgtest: start: %w", err)
	}
	return nil
}

// Restart stops the server and starts it again.
func (c *Cluster) Restart(mode Mode) error {
	if err := c.Stop(mode); err != nil {
		return err
	}
	return c.Start()
}

// run starts the server, again while processes of a killed one are ending.
func (c *Cluster) run() error {
	deadline := time.Now().Add(patience)
	for {
		before := len(c.Log())
		p, err := c.home.start(filepath.Join(c.bin, "postgres"), "-D", c.data())
		if err != nil {
			return err
		}
		if err = c.await(p, deadline); err == nil {
			return nil
		}
		log := c.Log()[before:]
		if !strings.Contains(log, "pre-existing shared memory block") || time.Now().After(deadline) {
			return fmt.Errorf("%w; its log:\n%s", err, log)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// await waits until the server answers on its own socket: on the port, another
// one might.
func (c *Cluster) await(p *process, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.SocketDSN(superuser))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.done:
			return errors.New("the server ended")
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer after %v: %w", patience, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Configure changes settings and has the server read them. Those that need a
// restart hold after the next one.
func (c *Cluster) Configure(ctx context.Context, settings map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before, err := c.Exec(ctx, superuser, loadTime)
	if err != nil {
		return err
	}
	if err := c.write(settings); err != nil {
		return fmt.Errorf("pgtest: configure: %w", err)
	}
	if _, err := c.Exec(ctx, superuser, "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	// A new session shows what the server has read.
	for loaded := before; loaded == before; {
		time.Sleep(5 * time.Millisecond)
		if loaded, err = c.Exec(ctx, superuser, loadTime); err != nil {
			return fmt.Errorf("pgtest: the server has not read %v: %w", settings, err)
		}
	}
	faults, err := c.Exec(ctx, superuser, faultySettings)
	if err == nil && faults != "" {
		err = fmt.Errorf("pgtest: the server does not accept:\n%s", faults)
	}
	return err
}

const loadTime = "SELECT extract(epoch FROM pg_conf_load_time())"

// faultySettings are those that a restart would not take either.
const faultySettings = `
	SELECT f.name, f.setting, f.error FROM pg_file_settings f LEFT JOIN pg_settings s USING (name)
	WHERE f.error IS NOT NULL AND s.pending_restart IS NOT TRUE`

// Exec runs statements as the superuser in a session of their own and returns the
// rows as psql -At prints them: a line each, columns parted by |.
func (c *Cluster) Exec(ctx context.Context, dbname, sql string) (string, error) {
	return execute(ctx, c.SocketDSN(dbname), sql)
}

// execute is Exec for an address.
func execute(ctx context.Context, dsn, sql string) (string, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", fmt.Errorf("pgtest: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", fmt.Errorf("pgtest: %s: %w", sql, err)
	}
	var lines []string
	for _, r := range results {
		for _, row := range r.Rows {
			columns := make([]string, len(row))
			for i, value := range row {
				columns[i] = string(value)
			}
			lines = append(lines, strings.Join(columns, "|"))
		}
	}
	return strings.Join(lines, "\n"), nil
}
