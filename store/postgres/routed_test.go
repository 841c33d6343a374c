package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// routing is a node whose scheduler says how it has routed its runs.
type routing struct {
	*actor
	pool   *pgxpool.Pool
	schema string
}

func newRouting(t *testing.T) *routing {
	t.Helper()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema})
	must(t, err)
	t.Cleanup(s.Close)
	return &routing{own(t, s, "node-1-6mzgexfqgw", 1), pool, schema}
}

// says is what it says of a run.
func (r *routing) says(name, addresses string) string {
	return store.Routed{Type: "CRON", Node: "node-1", Route: name, Block: "SERIAL_EXECUTION", Addresses: addresses}.String()
}

// start starts a run, which is known.
func (r *routing) start(run store.Run, msg string) store.Run {
	r.Helper()
	st := r.startOf(run, 1)
	st.Msg, st.Known = msg, &run
	answers, err := r.Start(r.ctx, nil, []store.Start{st})
	must(r.T, err)
	if answers[0].Run.TriggerMsg == "" {
		r.Fatalf("started %+v", answers[0])
	}
	return answers[0].Run
}

// wantRow checks what a row has, and what is read of it.
func (r *routing) wantRow(what string, id int64, routed, more, msg string) {
	r.Helper()
	run, err := r.Store.Run(r.ctx, id)
	must(r.T, err)
	if run.TriggerMsg != msg {
		r.Errorf("%s: %q is read, want %q", what, run.TriggerMsg, msg)
	}
	if out := ask[string](r.T, r.pool, "select coalesce("+postgres.SpelledOut()+", '') from "+r.schema+".xxl_job_log l where id = $1", id); out != msg {
		r.Errorf("%s: %q is spelled out, want %q", what, out, msg)
	}
	const columns = "select coalesce(routed, '') || '|' || coalesce(trigger_msg, '') from "
	if row := ask[string](r.T, r.pool, columns+r.schema+".xxl_job_log where id = $1", id); row != routed+"|"+more {
		r.Errorf("%s: the row has %q, want %q", what, row, routed+"|"+more)
	}
}

// TestRoutedInShort: of how a run was routed a row has a few characters, and what is said later.
// The numbers are stored, and stay what they are.
func TestRoutedInShort(t *testing.T) {
	t.Parallel()
	r := newRouting(t)
	numbers := map[string]string{
		route.First: "1", route.Last: "2", route.Round: "3", route.Random: "4", route.ConsistentHash: "5", route.LeastFrequentlyUsed: "6",
		route.LeastRecentlyUsed: "7", route.Failover: "8", route.Busyover: "9", route.ShardingBroadcast: "10", route.Nearest: "11",
	}
	here, there := store.LocalAddress(r.inc), store.LocalAddress("node-2-x")
	for _, name := range route.Names() {
		run, msg := r.planned(r.job()), r.says(name, here)
		r.start(run, msg)
		r.wantRow(name, run.ID, numbers[name], "", msg)
	}

	msg := r.says(route.Nearest, here+", "+there)
	run := r.start(r.planned(r.job()), msg)
	r.wantRow("of several addresses", run.ID, "11 "+here+", "+there, "", msg)
	res := result(run)
	res.TriggerMsg = "the end"
	_, err := r.Finish(r.ctx, nil, []store.Result{res})
	must(t, err)
	r.wantRow("with a further line", run.ID, "11 "+here+", "+there, "the end", msg+"\nthe end")

	tried := r.says(route.Failover, here) + "\ntried"
	run = r.start(r.planned(r.job()), tried)
	r.wantRow("that was tried before", run.ID, "", tried, tried)
	own := r.says("OURS", here)
	run = r.start(r.planned(r.job()), own)
	r.wantRow("of a user's route", run.ID, "", own, own)
}

// TestRoutedBeforeAnUpgrade: runs from before keep their texts, and nodes of the version before
// leave nothing in short that says something else of a later start.
func TestRoutedBeforeAnUpgrade(t *testing.T) {
	t.Parallel()
	r := newRouting(t)
	msg := r.says(route.Nearest, store.LocalAddress(r.inc))
	old, later, back := r.start(r.planned(r.job()), msg), r.planned(r.job()), r.planned(r.job())
	backTo(t, r.pool, r.schema, 21)
	_, err := r.pool.Exec(t.Context(), "update "+r.schema+".xxl_job_log set trigger_msg = $2 where id = $1", old.ID, msg) // as that version has it
	must(t, err)
	must(t, postgres.Migrate(t.Context(), r.pool, postgres.Config{Schema: r.schema}))
	r.wantRow("from before", old.ID, "", msg, msg)
	r.start(later, msg)
	r.wantRow("after the upgrade", later.ID, "11", "", msg)

	r.start(back, msg)
	// That version puts a run back without a look at what is in short.
	_, err = r.pool.Exec(t.Context(), "update "+r.schema+`.xxl_job_log set state = 0, trigger_msg = 'back',
		start_token = null, executor_address = null, executor_block_strategy = null where id = $1`, back.ID)
	must(t, err)
	r.wantRow("that was put back", back.ID, "11", "back", "back")
	r.start(back, msg)
	r.wantRow("that was put back and started", back.ID, "", "back\n"+msg, "back\n"+msg)
}

// TestRoutedAndStartedByAnOldNode: a node of the version before, which knows nothing of what is in
// short, puts a run back and starts it elsewhere. What it says of that start is all that is read.
func TestRoutedAndStartedByAnOldNode(t *testing.T) {
	t.Parallel()
	r := newRouting(t)
	run := r.start(r.planned(r.job()), r.says(route.Nearest, store.LocalAddress(r.inc)))
	said := "back\n" + store.Routed{Type: "CRON", Node: "old", Route: route.First, Block: "SERIAL_EXECUTION", Addresses: "http://executor.test"}.String()
	_, err := r.pool.Exec(t.Context(), "update "+r.schema+`.xxl_job_log set trigger_msg = $2, executor_address = 'http://executor.test' where id = $1`, run.ID, said)
	must(t, err)
	r.wantRow("started by an old node", run.ID, "11", said, said)
}

// TestRoutedByAnyIncarnation: an incarnation that is none of a scheduler's has no node in it.
func TestRoutedByAnyIncarnation(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := made.take(t)
	s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema})
	must(t, err)
	t.Cleanup(s.Close)
	for _, inc := range []string{"solo", "-x", "a-b-c"} {
		r := &routing{own(t, s, inc, 1), pool, schema}
		msg := store.Routed{Type: "CRON", Node: store.NodeOf(inc), Route: route.Nearest, Block: "SERIAL_EXECUTION", Addresses: store.LocalAddress(inc)}.String()
		run := r.start(r.planned(r.job()), msg)
		r.wantRow(inc, run.ID, "11", "", msg)
	}
}
