package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
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

// TestBootIDsCostNothingWhereThereAreNone: a run that was started for no known
// process, as all attached ones are, has null for it and not a text.
func TestBootIDsCostNothingWhereThereAreNone(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "boot"), 1)
	stored := func(run store.Run) string {
		return ask[string](t, pgtest.SharedPool(t), fmt.Sprintf(`select coalesce(executor_boot_id, 'null') from %q.xxl_job_log where id = $1`, postgres.SchemaOf(s)), run.ID)
	}
	check := func(what string, run store.Run, want string) {
		t.Helper()
		if got := stored(run); got != want {
			t.Errorf("%s: the column is %q, want %q", what, got, want)
		}
	}
	remote := func(boot string, targets, boots []string) store.Started {
		job := a.job()
		st := a.startOf(a.planned(job), job.Version)
		st.Address, st.BootID, st.Targets, st.TargetBoots = "http://10.0.0.1", boot, targets, boots
		answers, err := a.Start(a.ctx, nil, []store.Start{st})
		must(t, err)
		if answers[0].Status != store.StartOK {
			t.Fatalf("start: status %d", answers[0].Status)
		}
		return answers[0]
	}
	check("an attached run", a.started(a.job()), "null")
	check("a remote run", remote("", nil, nil).Run, "null")
	run := remote("one", nil, nil).Run
	check("a run for a process", run, "one")
	parts := remote("one", []string{"http://10.0.0.1", "http://10.0.0.2", "http://10.0.0.3"}, []string{"one", "", "three"})
	check("the part before", parts.Run, "one")
	check("a part for no process", parts.Siblings[0], "null")
	check("a part for a process", parts.Siblings[1], "three")
	moved, err := a.Readdress(a.ctx, store.Readdress{RunID: run.ID, Shard: run.Shard, Epoch: a.epoch(run.Shard), Owner: run.Owner, Token: run.Token, Address: "http://10.0.0.2"})
	must(t, err)
	check(fmt.Sprintf("a run that was moved (%v)", moved), run, "null")
	back, err := a.Settle(a.ctx, []store.Verdict{{RunID: parts.Run.ID, Shard: parts.Run.Shard, Epoch: a.epoch(parts.Run.Shard), Owner: parts.Run.Owner, Token: parts.Run.Token, To: store.StatePlanned}})
	must(t, err)
	check(fmt.Sprintf("a run that was put back (%d)", len(back)), parts.Run, "null")
}

// TestOwnersResultsPassByLockedRows: what an owner concludes is held up by a lock as
// any result is, and holds up no other. The fence is the same where the store passes
// by locks.
func TestOwnersResultsPassByLockedRows(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "locked"), 1)
	var list []store.Result
	for range 3 {
		run := a.started(a.job())
		list = append(list, store.Result{RunID: run.ID, Owner: run.Owner, Token: run.Token, State: store.StateFailed})
	}
	wrong := list[2]
	wrong.Token++
	blocker := lockRow(t, s, "xxl_job_log", "id = $1", list[1].RunID)
	runs, err := s.Finish(t.Context(), nil, []store.Result{list[0], list[1], wrong})
	if !errors.Is(err, store.ErrLocked) || len(runs) != 1 || runs[0].ID != list[0].RunID {
		t.Errorf("while a row is locked: %d runs, %v; want the first, and ErrLocked", len(runs), err)
	}
	must(t, blocker.Rollback(t.Context()))
	runs, err = s.Finish(t.Context(), nil, list)
	if err != nil || len(runs) != 2 || runs[0].ID != list[1].RunID || runs[1].ID != list[2].RunID {
		t.Errorf("after it: %d runs, %v; want the two that were left", len(runs), err)
	}
}

// TestAFencedStatementKeepsItsShard: while a statement that has compared a shard's epoch is
// under way, nobody gets the row of the shard as a take-over locks it; one of another shard is
// there for the taking. So what it writes is there when the next owner looks.
func TestAFencedStatementKeepsItsShard(t *testing.T) {
	inServer(t)
	t.Parallel()
	s := open(t, postgres.Patient(postgres.Config{}))
	a := own(t, s, inc(t, "a"), 2)
	r := a.started(a.job())
	hold := begin(t, pgx.ReadCommitted)
	_, err := hold.Exec(t.Context(), fmt.Sprintf("select from %q.xxl_job_log where id = $1 for update", postgres.SchemaOf(s)), r.ID)
	must(t, err)
	settled := make(chan error, 1)
	go func() {
		_, err := s.Settle(a.ctx, []store.Verdict{{RunID: r.ID, Shard: r.Shard, Epoch: a.epoch(r.Shard), Owner: a.inc, Token: r.Token, Taken: true, To: store.StatePlanned}})
		settled <- err
	}()
	await.Until(t, "the verdict waits for the run that is held", func() bool { return blocked(t, s) })
	free := ask[[]int16](t, pgtest.SharedPool(t), fmt.Sprintf("select coalesce(array_agg(shard), '{}') from (select shard from %q.xxl_job_lock for update skip locked) k", postgres.SchemaOf(s)))
	if len(free) != 1 || int(free[0]) == r.Shard {
		t.Errorf("beside a verdict about a run of shard %d, shards %v can change hands", r.Shard, free)
	}
	must(t, hold.Rollback(t.Context()))
	must(t, <-settled)
}
