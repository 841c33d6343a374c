package postgres_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// severed is a connection that can be cut off from its server without notice: what is
// written goes nowhere, and nothing comes back.
type severed struct {
	net.Conn
	once sync.Once
	cut  chan struct{}
}

func (c *severed) sever() { c.once.Do(func() { close(c.cut) }) }

func (c *severed) Write(b []byte) (int, error) {
	select {
	case <-c.cut:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

// severing dials connections and cuts off those that there are.
type severing struct {
	mu    sync.Mutex
	conns []*severed
}

func (s *severing) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &severed{Conn: conn, cut: make(chan struct{})}
	s.conns = append(s.conns, c)
	return c, nil
}

func (s *severing) severAll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.sever()
	}
	n := len(s.conns)
	s.conns = nil
	return n
}

// TestOrphansFreeTheirPlaces: connections that the server has forgotten, and the node
// has not, cost the calls that find them out. The calls after those get new ones at once,
// though pgx takes its time to close the old.
func TestOrphansFreeTheirPlaces(t *testing.T) {
	t.Parallel()
	conf, err := pgxpool.ParseConfig(pgtest.DSN(t))
	must(t, err)
	var net severing
	closed := make(chan *pgx.Conn, 1)
	conf.MaxConns, conf.ConnConfig.DialFunc = 1, net.dial
	conf.BeforeClose = func(c *pgx.Conn) {
		select {
		case closed <- c:
		default:
		}
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), conf)
	must(t, err)
	t.Cleanup(pool.Close)
	s := openOn(t, pool, postgres.Config{})

	look := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := s.RunsByID(ctx, []int64{1})
		return err
	}
	must(t, look(5*time.Second))
	if net.severAll() == 0 {
		t.Fatal("the store has no connection")
	}
	if err := look(50 * time.Millisecond); err == nil {
		t.Fatal("an answer came over a connection that leads nowhere")
	}
	if n := pool.Stat().TotalConns(); n != 0 {
		t.Errorf("the pool counts %d connections, which leaves no place for another", n)
	}
	if len(closed) == 0 {
		t.Error("the pool's BeforeClose was not told")
	}
	must(t, look(5*time.Second))
}
