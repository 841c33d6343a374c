package postgres_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// severed is a connection that can be cut off from its server without notice: what is
// written goes nowhere, and nothing comes back.
type severed struct {
	net.Conn
	once  sync.Once
	cut   chan struct{}
	wrote func() // called when something is written that goes nowhere
}

func (c *severed) sever() { c.once.Do(func() { close(c.cut) }) }

func (c *severed) Write(b []byte) (int, error) {
	select {
	case <-c.cut:
		c.wrote()
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

// severing dials connections and cuts off those that there are.
type severing struct {
	wrote func()

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
	c := &severed{Conn: conn, cut: make(chan struct{}), wrote: s.wrote}
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
	question, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	net := severing{wrote: giveUp} // nobody waits for what goes nowhere
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

	look := func(ctx context.Context) error {
		_, err := s.RunsByID(ctx, []int64{1})
		return err
	}
	must(t, look(t.Context()))
	if net.severAll() == 0 {
		t.Fatal("the store has no connection")
	}
	if err := look(question); err == nil {
		t.Fatal("an answer came over a connection that leads nowhere")
	}
	if n := pool.Stat().TotalConns(); n != 0 {
		t.Errorf("the pool counts %d connections, which leaves no place for another", n)
	}
	if len(closed) == 0 {
		t.Error("the pool's BeforeClose was not told")
	}
	must(t, look(t.Context()))
}
