package postgres

// The connection in reserve, and what a call gets: one of the pool's, or this one.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
)

// reserve is one connection beside the pool, for the time in which the host has all of
// the pool's: what the loops of the schedulers ask goes over it then, one call after the
// other. It is the store's, for all schedulers that share that: made ahead, for a server
// that is full gives nobody another one when it is needed, and kept while somebody watches
// the store. A call that comes earlier or later may make it, and takes it along.
type reserve struct {
	turns turns     // who has the turn, has what follows
	conn  *pgx.Conn // nil where there is none
	used  time.Time // the last sign of life
	told  bool      // that there is none was logged

	kept atomic.Int64 // by how many; with none it is let go of after each turn
	next atomic.Int64 // Unix nanoseconds: no attempt to connect before
	dry  atomic.Bool  // the pool had no connection, the last time
}

const (
	// openPatience is how long a call waits for a pool that can still make a connection,
	// or has an idle one, before it asks for the reserve; a quarter of what is left of
	// its deadline where that is less. The pool may be asking the connection whether it
	// is there, and who is impatient then loses it.
	openPatience = time.Second
	// poolPatience is the same for a pool of which all connections are in use.
	poolPatience = 250 * time.Millisecond
	// dryPatience is the same for one that was used up the last time as well.
	dryPatience = 10 * time.Millisecond
	// reserveCheck is how often the reserve is looked after.
	reserveCheck = 30 * time.Second
	// reserveStale is how long the reserve is taken for alive after it was used.
	reserveStale = time.Second
	// reservePatience is how long a call may have the reserve: a second more than the
	// server gives a statement, statementPatience, so that it is mostly the server which ends
	// it. With what it takes to clean up after that, it is less than the LeaseTTL that a node
	// has by default.
	reservePatience = 3 * time.Second
	// reserveLook is how often who waits for the reserve looks at the pool.
	reserveLook = 20 * time.Millisecond
	// reserveLeast is what has to be left of a call's deadline for its turn: the end of
	// the deadline would break the connection.
	reserveLeast = 100 * time.Millisecond
	// reserveRetry is how long nobody asks for a connection that was refused.
	reserveRetry = 5 * time.Second
)

// lent is a connection for the time of one call, and how to give it back.
type lent struct {
	*pgx.Conn
	reserve  bool // and not one of the pool's
	giveBack func()
}

// lend gives a connection of the pool, or the reserve where the pool has none in time
// and a scheduler asks for what no run goes on without. It waits for both until ctx ends.
func (s *Store) lend(ctx context.Context) (lent, error) {
	for urgent.Marked(ctx) && s.reserve.usable(s) {
		c, err := s.fromPool(ctx, s.poolPatience(ctx))
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		waits := errors.Is(err, context.DeadlineExceeded) // and may give one after all
		c, ok := s.reserve.take(ctx, s, waits)
		switch {
		case ok:
			return c, nil
		case !waits:
			return lent{}, err
		}
	}
	if store.OriginOf(ctx).RequestID != "" && !urgent.Marked(ctx) {
		return s.toPeople(ctx)
	}
	return s.fromPool(ctx, 0)
}

// ofPeople is how many connections of a pool of so many the requests of people have at a time, such as
// those of a console (store.WithClient): however many look, a quarter is left for others, one at least.
// Of a pool with a single connection they have that.
func ofPeople(most int32) int32 { return max(1, most-(most+3)/4) }

// ConnsOfPeople is how many connections of the pool requests of people have at a time. A console has fewer
// long searches at a time than that, so that its other pages do not wait for these.
func (s *Store) ConnsOfPeople() int { return cap(s.people) }

// toPeople gives a connection of the pool to a request of theirs.
func (s *Store) toPeople(ctx context.Context) (lent, error) {
	select {
	case s.people <- struct{}{}:
	case <-ctx.Done():
		return lent{}, fmt.Errorf("no connection, requests of people have %d of %d connections of the pool: %w", cap(s.people), s.pool.Stat().MaxConns(), ctx.Err())
	}
	c, err := s.fromPool(ctx, 0)
	if err != nil {
		<-s.people
		return c, err
	}
	giveBack := c.giveBack
	c.giveBack = func() { giveBack(); <-s.people }
	return c, nil
}

// fromPool gives a connection of the pool, within the patience where that is not 0.
func (s *Store) fromPool(ctx context.Context, patience time.Duration) (lent, error) {
	if patience > 0 {
		bounded, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = bounded
	}
	began, most := time.Now(), s.pool.Stat().MaxConns()
	for tries := int32(1); ; tries++ {
		conn, err := s.acquire(ctx)
		s.reserve.dry.Store(err != nil)
		if err != nil {
			return lent{}, err
		}
		known := &teach(conn.Conn()).heading
		if !s.doubted(known) {
			return lent{conn.Conn(), false, func() { s.giveBack(conn) }}, nil
		}
		age, err := s.ask(ctx, conn.Conn())
		if err == nil {
			return lent{conn.Conn(), false, func() { s.giveBack(conn) }}, nil
		}
		conn.Conn().Close(ctx)
		s.giveBack(conn)
		if age <= time.Since(began) || tries > most { // it was made for this call, or has not answered
			return lent{}, err
		}
	}
}

// acquire takes a connection out of the pool. An error says how many are in use.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		if isClosedPool(err) {
			s.poolClosed.Store(true)
			return nil, errPoolClosed
		}
		stat := s.pool.Stat()
		return nil, fmt.Errorf("no connection, %d of %d connections of the pool are in use: %w", stat.AcquiredConns(), stat.MaxConns(), err)
	}
	return conn, nil
}

// errPoolClosed is for a host that has closed the pool while schedulers run. A pool is never opened
// again. What is under way can be stored and given up all the same, over the lock connection and the
// reserve, which are beside the pool; but beats are an error, so that Ready says it, shards go to other
// nodes, and nobody takes a scheduler for well that nothing can be asked of.
var errPoolClosed = fmt.Errorf("%w: the host has closed the pool", store.ErrStoreClosed)

// isClosedPool knows the error by its text, since pgxpool has no name for it.
func isClosedPool(err error) bool { return err.Error() == "closed pool" }

// open is an error once the pool is closed. A pool without any connection may be: no other call has
// found that out where this node has no shards.
func (s *Store) open(ctx context.Context) error {
	if !s.poolClosed.Load() && s.pool.Stat().TotalConns() == 0 {
		ctx, cancel := context.WithTimeout(ctx, dryPatience) // the pool connects on where it is open
		defer cancel()
		if conn, err := s.acquire(ctx); err == nil {
			s.giveBack(conn)
		}
	}
	if s.poolClosed.Load() {
		return errPoolClosed
	}
	return nil
}

// usable reports whether it is worth asking for the reserve.
func (r *reserve) usable(s *Store) bool {
	return !s.cfg.NoReserve && s.ctx.Err() == nil && time.Now().UnixNano() >= r.next.Load()
}

// poolPatience is how long the pool is waited for first.
func (s *Store) poolPatience(ctx context.Context) time.Duration {
	patience := openPatience
	if stat := s.pool.Stat(); stat.AcquiredConns() >= stat.MaxConns() {
		if s.reserve.dry.Load() {
			return dryPatience
		}
		patience = poolPatience
	}
	if deadline, bounded := ctx.Deadline(); bounded {
		patience = max(min(patience, time.Until(deadline)/4), time.Millisecond)
	}
	return patience
}

// take waits for its turn at the reserve, in the order of those who wait, and connects it
// where that is to be done. ok is false where there is none, ctx ends, or, as long as that
// may be, the pool has room again.
func (r *reserve) take(ctx context.Context, s *Store, room bool) (c lent, ok bool) {
	if !r.await(ctx, s, room) {
		return lent{}, false
	}
	deadline, bounded := ctx.Deadline()
	if bounded && time.Until(deadline) < reserveLeast || !r.connect(ctx, s) {
		r.turns.done()
		return lent{}, false
	}
	return lent{r.conn, true, r.giveBack}, true
}

// await waits for the turn.
func (r *reserve) await(ctx context.Context, s *Store, room bool) bool {
	turn := r.turns.ask()
	look := time.NewTicker(reserveLook)
	defer look.Stop()
	for {
		select {
		case <-turn:
			return true
		case <-ctx.Done():
			r.turns.leave(turn)
			return false
		case <-look.C:
			if stat := s.pool.Stat(); room && stat.AcquiredConns() < stat.MaxConns() {
				r.turns.leave(turn)
				return false
			}
		}
	}
}

// giveBack ends a turn. A connection that is not as it was is not kept.
func (r *reserve) giveBack() {
	if r.used = time.Now(); r.kept.Load() == 0 || r.conn.IsClosed() || r.conn.PgConn().TxStatus() != 'I' {
		r.drop()
	}
	r.turns.done()
}

// connect sees to it that there is a connection that answers. Caller has the turn.
func (r *reserve) connect(ctx context.Context, s *Store) bool {
	if r.conn != nil && (time.Since(r.used) > reserveStale || s.doubted(&teach(r.conn).heading)) {
		check, cancel := context.WithTimeout(ctx, rollbackPatience)
		_, err := s.ask(check, r.conn)
		cancel()
		if err != nil {
			r.drop()
		}
	}
	if r.conn == nil && r.usable(s) {
		conn, err := s.reserveConn(ctx)
		switch {
		case err == nil:
			r.conn, r.told = conn, false
		case ctx.Err() == nil:
			r.next.Store(time.Now().Add(reserveRetry).UnixNano())
			if !r.told {
				s.log.Warn("xxljob: no reserve connection is available; the scheduler will stall while the pool is exhausted", "error", err)
			}
			r.told = true
		}
	}
	if r.conn != nil {
		r.used = time.Now()
	}
	return r.conn != nil
}

// reserveConn makes the connection as the pool makes its own. Where the pool may lead to
// a pooler that shares sessions out, it is left as it is: the host's would have its
// settings.
func (s *Store) reserveConn(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := s.poolConn(ctx, "xxljob reserve "+s.cfg.Schema)
	if err != nil || !s.locks() || s.cfg.LockConn != nil {
		return conn, err
	}
	return s.prepared(ctx, conn)
}

// drop lets go of the connection. Caller has the turn.
func (r *reserve) drop() {
	if r.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackPatience)
	defer cancel()
	r.conn.Close(ctx)
	r.conn = nil
}

// unkeep lets go of the connection where nobody else keeps it. It does not wait for long:
// who has the turn then does so after it.
func (r *reserve) unkeep() {
	r.kept.Add(-1)
	turn := r.turns.ask()
	select {
	case <-turn:
	case <-time.After(rollbackPatience):
		r.turns.leave(turn)
		return
	}
	if r.kept.Load() == 0 { // somebody may have come meanwhile
		r.drop()
	}
	r.turns.done()
}

// keepReserve has the reserve ready until ctx ends.
func (s *Store) keepReserve(ctx context.Context) {
	s.reserve.kept.Add(1)
	defer s.reserve.unkeep()
	tick := time.NewTicker(reserveCheck)
	defer tick.Stop()
	for {
		if c, ok := s.reserve.take(ctx, s, false); ok {
			c.giveBack()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// turns is a lock that is had in the order of those who ask for it, and that one may
// stop waiting for.
type turns struct {
	mu    sync.Mutex
	taken bool            // guarded by mu
	queue []chan struct{} // guarded by mu: of those who wait
}

// ask returns a channel that is closed when it is the caller's turn. Who asks either
// waits for that and calls done after it, or calls leave.
func (t *turns) ask() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := make(chan struct{})
	if t.taken {
		t.queue = append(t.queue, turn)
	} else {
		t.taken = true
		close(turn)
	}
	return turn
}

// done ends a turn.
func (t *turns) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// leave ends the waiting for a turn, and the turn where it has come meanwhile.
func (t *turns) leave(turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.queue, turn); i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
		return
	}
	t.pass()
}

// pass gives the turn to the next. Called with mu held.
func (t *turns) pass() {
	if len(t.queue) == 0 {
		t.taken = false
		return
	}
	close(t.queue[0])
	t.queue = t.queue[1:]
}
