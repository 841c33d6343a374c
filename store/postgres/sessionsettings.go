package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// prepared gives a connection beside the pool its settings, or closes it.
func (s *Store) prepared(ctx context.Context, conn *pgx.Conn) (*pgx.Conn, error) {
	err := setAll(ctx, conn.PgConn(), []string{
		fmt.Sprintf("statement_timeout = %d", statementPatience.Milliseconds()), // before it can hit the others
		fmt.Sprintf("tcp_keepalives_idle = %d", int(keepIdle.Seconds())),
		fmt.Sprintf("tcp_keepalives_interval = %d", int(keepInterval.Seconds())),
		fmt.Sprintf("tcp_keepalives_count = %d", keepCount),
		fmt.Sprintf("tcp_user_timeout = %d", userTimeout.Milliseconds()),
		"client_connection_check_interval = 500",
		"idle_session_timeout = 0",
		fmt.Sprintf("lock_timeout = %d", lockPatience.Milliseconds()),
		"datestyle = 'ISO'", "array_nulls = on",
		"default_transaction_isolation = 'read committed'",
		"default_transaction_read_only = off",
	})
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// setAll changes settings of a session in one round trip: a dozen of them would take a slow
// network longer than a connection may. Each is by itself, since which of them a server has
// depends on its version and its platform, and some services let nobody set them: one that
// is refused is left as it was. An error means that the connection is of no use.
func setAll(ctx context.Context, conn *pgconn.PgConn, settings []string) error {
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
		var refused *pgconn.PgError
		if errors.As(err, &refused) && !conn.IsClosed() {
			err = nil
		} else if err == nil && got == nil {
			break // all is read
		}
	}
	return errors.Join(err, p.Close())
}
