package postgres_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/stage"
)

// callMeter counts what calls of one kind cost: see begin and end. It is the tracer of the one
// connection that they use, and allocates nothing for a run.
type callMeter struct {
	flights
	sent, received atomic.Int64    // bytes
	statements     int             // that the calls have sent
	texts          map[string]bool // of these statements
	heap           stage.Allocated // before the calls
	calls, runs    float64         // that there were, for the caller to say
}

// use has the connections of a pool counted.
func (m *callMeter) use(cfg *pgxpool.Config) {
	cfg.ConnConfig.Tracer = m
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := m.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &measuredConn{conn, m}, nil
	}
}

// measuredConn counts bytes.
type measuredConn struct {
	net.Conn
	meter *callMeter
}

func (c *measuredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.meter.sent.Add(int64(n))
	return n, err
}

func (c *measuredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.meter.received.Add(int64(n))
	return n, err
}

// measured says in a context that its statements count; those of the store's own work do not.
type measured struct{}

func (m *callMeter) count(ctx context.Context, sql string) {
	if ctx.Value(measured{}) == nil {
		return
	}
	m.statements++
	m.texts[sql] = true
}

// TraceQueryStart, and the methods below it, are called by pgx: for statements that are sent one
// by one, and for those that are sent together.
func (m *callMeter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	m.count(ctx, data.SQL)
	return ctx
}

func (m *callMeter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (m *callMeter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (m *callMeter) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	m.count(ctx, data.SQL)
}

func (m *callMeter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// begin is called before the calls: it forgets what was counted.
func (m *callMeter) begin() {
	m.texts, m.runs, m.calls = map[string]bool{}, 0, 0
	m.heap = stage.AllocatedNow()
	m.statements = 0
	m.n.Store(0)
	m.sent.Store(0)
	m.received.Store(0)
}

// end adds to the figures what the calls have cost since begin, which are a share of those of
// their kind.
func (m *callMeter) end(t *testing.T, pool *pgxpool.Pool, call, load string, share float64, figures map[string]float64) {
	t.Helper()
	statements, trips, sent, received := float64(m.statements), float64(m.n.Load()), float64(m.sent.Load()), float64(m.received.Load())
	bytes, objects := stage.AllocatedNow().Since(m.heap)
	figures[call+", statements a call"] += share * statements / m.calls
	figures[call+", round trips a call"] += share * trips / m.calls
	figures[call+", columns returned"] = max(figures[call+", columns returned"], m.columns(t, pool))
	figures[load+", bytes sent a run"] += share * sent / m.runs
	figures[load+", bytes received a run"] += share * received / m.runs
	figures[load+", bytes allocated by "+call] += share * bytes / m.runs
	figures[load+", objects allocated by "+call] += share * objects / m.runs
}

// columns are those that the statements return which know our tables.
func (m *callMeter) columns(t *testing.T, pool *pgxpool.Pool) (n float64) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	must(t, err)
	defer conn.Release()
	for sql := range m.texts {
		if strings.Contains(sql, "xxl_job") {
			d, err := conn.Conn().Prepare(t.Context(), sql, sql)
			must(t, err)
			n += float64(len(d.Fields))
		}
	}
	return n
}
