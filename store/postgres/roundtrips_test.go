package postgres_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// flights counts the round trips of the connections that it dials.
type flights struct{ n atomic.Int64 }

func (f *flights) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &flightConn{Conn: conn, flights: f}, nil
}

type flightConn struct {
	net.Conn
	flights *flights
	mu      sync.Mutex
	asked   bool // guarded by mu: something was written since the last read
}

func (c *flightConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	first := !c.asked
	c.asked = true
	c.mu.Unlock()
	if first {
		c.flights.n.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *flightConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	c.asked = false
	c.mu.Unlock()
	return n, err
}

// TestALockConnectionTakesFewRoundTrips: where each takes a third of a second, one that made
// its dozen settings one by one would never be there in time.
func TestALockConnectionTakesFewRoundTrips(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) { lockConnectionTakesFewRoundTrips(t, mode) })
	}
}

func lockConnectionTakesFewRoundTrips(t *testing.T, mode pgx.QueryExecMode) {
	fly := &flights{}
	dsn := pgtest.DSN(t)
	var made *pgx.Conn
	connect := func(ctx context.Context) (*pgx.Conn, error) {
		cfg, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		cfg.DialFunc, cfg.DefaultQueryExecMode = fly.dial, mode
		made, err = pgx.ConnectConfig(ctx, cfg)
		return made, err
	}
	bare, err := connect(t.Context())
	must(t, err)
	must(t, bare.Close(t.Context()))
	alone := fly.n.Swap(0)

	st := open(t, postgres.Config{LeaseMode: postgres.LeaseLock, LockConn: connect})
	must(t, st.SetShards(t.Context(), 8))
	_, err = st.Join(t.Context(), store.Node{ID: "a", Incarnation: "a-1"})
	must(t, err)
	if more := fly.n.Load() - alone; more < 2 || more > 7 {
		t.Errorf("%d round trips more than the %d of a bare connection, want 7 at most for settings, identity, the first beat and their preparation", more, alone)
	}
	for name, want := range map[string]string{"lock_timeout": "1s", "statement_timeout": "2s", "idle_session_timeout": "0", "client_connection_check_interval": "500ms"} {
		var got string
		must(t, made.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestAReadTakesOneRoundTrip: the path that it runs on goes with it.
func TestAReadTakesOneRoundTrip(t *testing.T) {
	inServer(t)
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		fly := &flights{}
		pool := pgtest.Pool(t, by(mode), pgtest.MaxConns(1), pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.DialFunc = fly.dial }))
		s := openOn(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow, NoReserve: true})
		var trips int64
		for range 2 { // the first prepares the statement
			fly.n.Store(0)
			_, err := s.Runs(t.Context(), store.RunFilter{})
			must(t, err)
			trips = fly.n.Load()
		}
		if trips != 1 {
			t.Errorf("%s: %d round trips, want 1", mode, trips)
		}
	}
}

// TestASettingThatIsRefused: the others are made all the same, and the connection is of use.
func TestASettingThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		for name, settings := range map[string][]string{
			"some":  {"lock_timeout = 7", "there_is_no_such_thing = 1", "max_connections = 5", "statement_timeout = 8"},
			"first": {"there_is_no_such_thing = 1", "lock_timeout = 7", "statement_timeout = 8"},
			"last":  {"lock_timeout = 7", "statement_timeout = 8", "max_connections = 5"},
		} {
			t.Run(mode.String()+", "+name, func(t *testing.T) {
				cfg, err := pgx.ParseConfig(pgtest.DSN(t))
				must(t, err)
				cfg.DefaultQueryExecMode = mode
				conn, err := pgx.ConnectConfig(t.Context(), cfg)
				must(t, err)
				defer conn.Close(context.Background())
				before := slices.Clone(settings)
				must(t, postgres.SetAll(t.Context(), conn, settings))
				if !slices.Equal(settings, before) {
					t.Errorf("the caller's list is %q, was %q", settings, before)
				}
				must(t, postgres.SetAll(t.Context(), conn, []string{"max_connections = 5"}))
				var lock, statement string
				must(t, conn.QueryRow(t.Context(), "select current_setting('lock_timeout'), current_setting('statement_timeout')").Scan(&lock, &statement))
				if lock != "7ms" || statement != "8ms" {
					t.Errorf("lock_timeout %s, statement_timeout %s", lock, statement)
				}
				over, cancel := context.WithCancel(t.Context())
				cancel()
				if err := postgres.SetAll(over, conn, []string{"lock_timeout = 9"}); err == nil {
					t.Error("no error after the end of ctx")
				}
			})
		}
	}
}
