package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// at is a registration of the app of these tests.
func at(address string) store.Registration {
	return store.Registration{App: "app", Address: address, BootID: "boot"}
}

// registeredAt are the addresses of all registrations, with those that were refreshed
// after since marked.
func registeredAt(t *testing.T, s *postgres.Store, since time.Time) (list []string) {
	t.Helper()
	regs, err := s.Registrations(t.Context(), store.RegistrationFilter{})
	must(t, err)
	for _, r := range regs {
		if r.Updated.After(since) {
			r.Address += " fresh"
		}
		list = append(list, r.Address)
	}
	return list
}

// lockRow locks a row of a table of the store's until the end of the transaction.
func lockRow(t *testing.T, s *postgres.Store, table, where string, args ...any) pgx.Tx {
	t.Helper()
	x, err := pgtest.SharedPool(t).Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { x.Rollback(context.Background()) })
	tag, err := x.Exec(t.Context(), fmt.Sprintf("select 1 from %q.%s where %s for update", postgres.SchemaOf(s), table, where), args...)
	must(t, err)
	if tag.RowsAffected() != 1 {
		t.Fatalf("%d rows are locked, want one", tag.RowsAffected())
	}
	return x
}

// TestALockedRegistration keeps no other one from being refreshed, dropped or
// forgotten, and nobody waiting for long.
func TestALockedRegistration(t *testing.T) {
	t.Parallel()
	var sent statements
	s := openOn(t, pgtest.Pool(t, traced(&sent)), postgres.Config{})
	own(t, s, inc(t, "registry"), 1)
	must(t, s.PutAddresses(t.Context(), []store.Registration{at("a"), at("b"), at("c")}))
	now, err := s.Now(t.Context())
	must(t, err)
	await.Until(t, "the clock has moved on", func() bool {
		later, err := s.Now(t.Context())
		must(t, err)
		return later.Sub(now) > time.Millisecond
	})
	x := lockRow(t, s, "xxl_job_registry", "registry_value = 'b'")
	step := func(what string, want error, call func() error, left ...string) {
		t.Helper()
		if err := call(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if got := registeredAt(t, s, now); !slices.Equal(got, left) {
			t.Errorf("after %s: %q, want %q", what, got, left)
		}
	}
	put := func(regs ...store.Registration) func() error {
		return func() error { return s.PutAddresses(t.Context(), regs) }
	}
	drop := func(regs ...store.Registration) func() error {
		return func() error { return s.DropAddresses(t.Context(), regs) }
	}
	step("a refresh of others", nil, put(at("a")), "a fresh", "b", "c")
	step("a refresh of all", store.ErrLocked, put(at("d"), at("c"), at("b"), at("a")), "a fresh", "b", "c fresh", "d fresh")
	step("a drop of others", nil, drop(at("d")), "a fresh", "b", "c fresh")
	step("a drop by another process", nil, drop(store.Registration{App: "app", Address: "b", BootID: "former"}), "a fresh", "b", "c fresh")
	step("a drop of some", store.ErrLocked, drop(at("none"), at("c"), at("b")), "a fresh", "b")
	step("forgetting all", nil, func() error { return s.ForgetAddresses(t.Context(), -time.Hour) }, "b")
	must(t, x.Rollback(t.Context()))
	step("a refresh without the lock", nil, put(at("b"), at("a")), "a fresh", "b fresh")
	step("a drop without the lock", nil, drop(at("b"), at("a")))
	if _, most := sent.patiences(t, "b(app, address, boot"); most >= sent.usual(t, s) {
		t.Errorf("a refresh or a drop waits for a lock for %d ms, like what may take its time", most)
	}
}

// whileChanged calls f, which waits for the row of an address that another
// transaction has changed by then and commits.
func whileChanged(t *testing.T, s *postgres.Store, change string, f func() error) error {
	t.Helper()
	x := lockRow(t, s, "xxl_job_registry", "registry_value = 'a'")
	_, err := x.Exec(t.Context(), fmt.Sprintf("update %q.xxl_job_registry set %s where registry_value = 'a'", postgres.SchemaOf(s), change))
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- f() }()
	await.Until(t, "the call waits", func() bool { return len(done) > 0 || blocked(t, s) })
	must(t, x.Commit(t.Context()))
	return <-done
}

// TestADropMeetsARefresh: it removes what was refreshed while it waited, and leaves
// what another process has registered meanwhile.
func TestADropMeetsARefresh(t *testing.T) {
	t.Parallel()
	for change, left := range map[string]int{"update_time = clock_timestamp()": 0, "boot_id = 'next'": 1} {
		s := open(t, postgres.Config{})
		own(t, s, inc(t, "registry"), 1)
		err := store.ErrLocked
		for errors.Is(err, store.ErrLocked) { // the commit took longer than the drop waits
			must(t, s.PutAddresses(t.Context(), []store.Registration{at("a")}))
			err = whileChanged(t, s, change, func() error { return s.DropAddresses(t.Context(), []store.Registration{at("a")}) })
		}
		must(t, err)
		if got := registeredAt(t, s, time.Now()); len(got) != left {
			t.Errorf("after a change of %s and the drop: %q, want %d", change, got, left)
		}
	}
}

// TestARefreshChangesNoIndex: no column that it changes is in one, so it can be HOT.
func TestARefreshChangesNoIndex(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	columns := ask[string](t, pgtest.SharedPool(t), `select coalesce(string_agg(distinct a.attname::text, ' '), '') from pg_index x
	join pg_attribute a on a.attrelid = x.indrelid and a.attnum = any(x.indkey) where x.indrelid = ('"' || $1 || '".xxl_job_registry')::regclass`, postgres.SchemaOf(s))
	if columns != "registry_group registry_key registry_value" {
		t.Errorf("there are indexes of %s", columns)
	}
}

// TestALockedRunIsLeftOutOfDispatched, and the others of its batch are not.
func TestALockedRunIsLeftOutOfDispatched(t *testing.T) {
	t.Parallel()
	for _, careful := range []bool{false, true} {
		var sent statements
		s := openOn(t, pgtest.Pool(t, traced(&sent)), postgres.Config{})
		a := own(t, s, inc(t, "dispatch"), 1)
		var list []store.Dispatch
		for range 3 {
			job := a.job()
			st := a.startOf(a.planned(job), job.Version)
			st.Address = "http://10.0.0.1"
			answers, err := s.Start(a.ctx, nil, []store.Start{st})
			must(t, err)
			list = append(list, store.Dispatch{RunID: answers[0].Run.ID, Owner: st.Owner, Token: st.Token, Msg: "accepted"})
		}
		list = append(list, list[1])
		list[3].Token++ // of that run, it is not the lock that is wrong
		if careful {
			postgres.BeCareful(s)
		}
		x := lockRow(t, s, "xxl_job_log", "id = $1", list[1].RunID)
		runs, err := s.Dispatched(a.ctx, list)
		if !errors.Is(err, store.ErrLocked) || len(runs) != 2 || runs[0].ID != list[0].RunID || runs[1].ID != list[2].RunID {
			t.Errorf("beside a lock: %+v, %v", runs, err)
		}
		const mark = "set state = 2"
		if _, most := sent.patiences(t, mark); most >= sent.usual(t, s) {
			t.Errorf("it waits for a lock for %d ms, like what may take its time", most)
		}
		if n := len(sent.with(mark)); n > 8 {
			t.Errorf("it has tried %d times", n)
		}
		if runs, err := s.Dispatched(a.ctx, append(list[:1:1], list[2:]...)); err != nil || len(runs) != 0 {
			t.Errorf("again, without the locked run: %+v, %v", runs, err)
		}
		must(t, x.Rollback(a.ctx))
		runs, err = s.Dispatched(a.ctx, list)
		if err != nil || len(runs) != 1 || runs[0].ID != list[1].RunID || runs[0].State != store.StateDispatched || runs[0].TriggerMsg != "accepted" {
			t.Errorf("without the lock: %+v, %v", runs, err)
		}
	}
}

// TestARegistryOfTheFirstVersion is brought up to date with its rows, and may still
// be written by a node of that version.
func TestARegistryOfTheFirstVersion(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	backTo(t, pool, schema, 1)
	run(t, pool, fmt.Sprintf("insert into %s.xxl_job_registry (registry_group, registry_key, registry_value, update_time) values ('EXECUTOR', 'app', 'old', now())", schema))
	wantText(t, newStore(t, pool, postgres.Config{Schema: schema}), "has version 1", fmt.Sprint("needs ", postgres.SchemaVersion), "postgres.Migrate")
	must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))
	s, _ := openAt(t, pool, schema)
	run(t, pool, fmt.Sprintf("insert into %s.xxl_job_registry (registry_group, registry_key, registry_value, update_time) values ('EXECUTOR', 'app', 'newer', now())", schema))
	must(t, s.PutAddresses(t.Context(), []store.Registration{at("new")}))
	regs, err := s.Addresses(t.Context(), "app", time.Hour)
	must(t, err)
	if len(regs) != 3 || regs[0].BootID != "boot" || regs[1].BootID+regs[2].BootID != "" || regs[1].Capabilities != nil {
		t.Errorf("registrations %+v", regs)
	}
	must(t, s.DropAddresses(t.Context(), []store.Registration{{App: "app", Address: "newer"}, at("old")}))
	if got := registeredAt(t, s, time.Now()); !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("left are %q", got)
	}
}
