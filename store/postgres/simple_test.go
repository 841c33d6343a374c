package postgres_test

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/await"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// spoken are the types of the messages that connections have sent, in order. It is for
// connections without TLS.
type spoken struct {
	mu    sync.Mutex
	types strings.Builder // guarded by mu
}

func (s *spoken) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &spokenConn{Conn: conn, spoken: s}, nil
}

// extended are the messages of the extended protocol among them: parse, bind, describe,
// execute, close, sync and flush.
func (s *spoken) extended() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("PBDECSH", r) {
			return r
		}
		return -1
	}, s.types.String())
}

// queries is how many messages of the simple protocol are among them.
func (s *spoken) queries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.types.String(), "Q")
}

type spokenConn struct {
	net.Conn
	spoken *spoken
	mu     sync.Mutex
	rest   []byte // guarded by mu: of a message that is not written wholly
	begun  bool   // guarded by mu: messages have types, but for those before
}

// protocol3 is the code of the message after which all others have a type.
const protocol3 = 3

func (c *spokenConn) Write(b []byte) (int, error) {
	c.note(b)
	return c.Conn.Write(b)
}

func (c *spokenConn) note(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, b...)
	for {
		head := 0 // bytes before the length
		if c.begun {
			head = 1
		}
		if len(c.rest) < head+4 {
			return
		}
		end := head + int(binary.BigEndian.Uint32(c.rest[head:]))
		if len(c.rest) < end {
			return
		}
		if c.begun {
			c.spoken.mu.Lock()
			c.spoken.types.WriteByte(c.rest[0])
			c.spoken.mu.Unlock()
		} else {
			c.begun = binary.BigEndian.Uint16(c.rest[4:]) == protocol3
		}
		c.rest = c.rest[end:]
	}
}

// TestSimpleProtocolOnly: where the host's connections are set to the simple protocol,
// for what is between them and the server knows no other, the store speaks no other either:
// with its tables, in the life of a job, for locks, to listen, and over the reserve.
func TestSimpleProtocolOnly(t *testing.T) {
	t.Parallel()
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			said := &spoken{}
			pool := pgtest.Pool(t, by(pgx.QueryExecModeSimpleProtocol), pgtest.MaxConns(4), pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.DialFunc = said.dial }))
			s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: pgtest.Schema(t), AutoMigrate: true, LeaseMode: mode})
			must(t, err)
			defer s.Close()
			life(t, s)
			a := own(t, s, inc(t, "a"), 2)
			job := a.job()
			s.Watch(t.Context(), a.inc)
			await.Until(t, "there is a reserve", func() bool { return reserves(t, s) == 1 })
			must(t, s.Wake(t.Context(), job.ID))
			useUp(t, pool)
			_, err = s.Claim(a.ctx, nil, []store.Plan{a.plan(job)})
			must(t, err)
			if extended := said.extended(); extended != "" || said.queries() == 0 {
				t.Errorf("%d queries, and of the extended protocol %q", said.queries(), extended)
			}
		})
	}
}
