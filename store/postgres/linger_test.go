package postgres_test

import (
	"context"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// lingering is a connection of whose end the server hears only when the test ends, as
// one with too much to do hears of it late.
type lingering struct{ net.Conn }

func (l lingering) Write(b []byte) (int, error) {
	if len(b) > 0 && b[0] == 'X' { // Terminate
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func (lingering) Close() error { return nil }

// TestLocksAreFreeAfterTheirConnection: when Leave or Close returns, the locks of the
// shards are there for others, whether the server has heard of the connection's end or
// not.
func TestLocksAreFreeAfterTheirConnection(t *testing.T) {
	for name, leave := range map[string]func(context.Context, *postgres.Store, string) error{
		"leave": func(ctx context.Context, s *postgres.Store, inc string) error { return s.Leave(ctx, inc) },
		"close": func(_ context.Context, s *postgres.Store, _ string) error { s.Close(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := twoStores(t, func(cfg *postgres.Config) {
				cfg.LockConn = func(ctx context.Context) (*pgx.Conn, error) {
					conf, err := pgx.ParseConfig(pgtest.DSN(t))
					if err != nil {
						return nil, err
					}
					dial := conf.DialFunc
					conf.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
						conn, err := dial(ctx, network, addr)
						if err != nil {
							return nil, err
						}
						t.Cleanup(func() { conn.Close() })
						return lingering{conn}, nil
					}
					return pgx.ConnectConfig(ctx, conf)
				}
			})
			former := own(t, a, inc(t, "a"), 4)
			pid := holder(t, former.inc)
			if n := locksOf(t, pid); n != 4 {
				t.Fatalf("backend %d holds %d locks, want 4", pid, n)
			}
			must(t, leave(t.Context(), a, former.inc))
			if n := locksOf(t, pid); n != 0 {
				t.Errorf("backend %d still holds %d locks", pid, n)
			}
			if name == "leave" {
				own(t, b, inc(t, "b"), 4)
			}
		})
	}
}
