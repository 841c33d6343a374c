package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// prepared gives a connection beside the pool its settings, or closes it.
func (s *Store) prepared(ctx context.Context, conn *pgx.Conn) (*pgx.Conn, error) {
	err := setAll(ctx, conn, []string{
		fmt.Sprintf("statement_timeout = %d", sessionPatience.Milliseconds()), // before it can hit the others
		fmt.Sprintf("tcp_keepalives_idle = %d", int(keepIdle.Seconds())),
		fmt.Sprintf("tcp_keepalives_interval = %d", int(keepInterval.Seconds())),
		fmt.Sprintf("tcp_keepalives_count = %d", keepCount),
		fmt.Sprintf("tcp_user_timeout = %d", userTimeout.Milliseconds()),
		"client_connection_check_interval = 500",
		"idle_session_timeout = 0",
		fmt.Sprintf("lock_timeout = %d", lockPatience.Milliseconds()),
		"datestyle = 'ISO'", "array_nulls = on",
		"search_path = " + ourPath,
		"default_transaction_isolation = 'read committed'",
		"default_transaction_read_only = off",
	})
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// setAll changes settings of a session in few round trips: a dozen of them would take a slow
// network longer than a connection may. Each is by itself, since which of them a server has
// depends on its version and its platform, and some services let nobody set them: one that
// is refused is left as it was. An error means that the connection is of no use.
func setAll(ctx context.Context, conn *pgx.Conn, settings []string) error {
	if speaksSimply(conn) {
		return setTogether(ctx, conn.PgConn(), settings)
	}
	return setPipelined(ctx, conn.PgConn(), settings)
}

// speaksSimply reports whether the host has set the connection to the simple protocol. What
// is between it and the server may know no other then, be the session its own or not.
func speaksSimply(conn *pgx.Conn) bool {
	return conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol
}

// setPipelined changes them in one round trip, whatever is refused.
func setPipelined(ctx context.Context, conn *pgconn.PgConn, settings []string) error {
	p := conn.StartPipeline(ctx)
	for _, setting := range settings {
		p.SendQueryParams("set "+setting, nil, nil, nil, nil)
		p.SendPipelineSync()
	}
	err := p.Flush()
	for err == nil {
		var got any
		got, err = p.GetResults()
		if result, ok := got.(*pgconn.ResultReader); ok {
			_, err = result.Close()
		}
		if refused(conn, err) {
			err = nil
		} else if err == nil && got == nil {
			break // all is read
		}
	}
	return errors.Join(err, p.Close())
}

// setTogether changes them by the simple protocol, which has no pipeline: all in one
// message, as a batch is sent there too. The server takes that for one transaction, so
// where it refuses one of them, the others go again without it: a round trip more for each.
func setTogether(ctx context.Context, conn *pgconn.PgConn, settings []string) error {
	for len(settings) > 0 {
		made, err := conn.Exec(ctx, "set "+strings.Join(settings, "; set ")).ReadAll()
		if !refused(conn, err) || len(made) == len(settings) {
			return err
		}
		settings = slices.Concat(settings[:len(made)], settings[len(made)+1:])
	}
	return nil
}

// refused reports whether an error is the server's, about a statement, and the connection
// is still there.
func refused(conn *pgconn.PgConn, err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && !conn.IsClosed()
}
