package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// lowBits are the bits of an id below its milliseconds; entries have the last 512.
const lowBits, ordinaryIDs = 8192, 7680

// ahead keeps a run of the job apart.
func (a *actor) ahead(job store.Job, t store.Trigger, move time.Time) store.Run {
	a.Helper()
	run, err := a.AddAhead(a.ctx, job.ID, t, move)
	must(a.T, err)
	return run
}

// move moves what is to move by now.
func (a *actor) move(oldest time.Time) store.Moved {
	a.Helper()
	moved, err := a.MoveAhead(a.ctx, store.AheadQuery{Shards: a.shards, Before: time.Now(), Oldest: oldest, Limit: 1000})
	must(a.T, err)
	return moved
}

// backdated has the entry lie in an hour some days ago, as if its time had come then.
func backdated(t *testing.T, pool *pgxpool.Pool, schema string, r store.Run, days int) int64 {
	t.Helper()
	id := r.ID - int64(days)*86_400_000*lowBits
	run(t, pool, "update "+schema+".xxl_job_ahead set id = $2, move_time = move_time - $3::bigint * 86400000, scheduled_time = scheduled_time - $3::bigint * 86400000 where id = $1", r.ID, id, days)
	run(t, pool, "update "+schema+".xxl_job_trigger_key set run_id = $2 where run_id = $1", r.ID, id)
	return id
}

// TestAheadIDs: the id of a run that is kept apart lies in the hour in which it moves, so
// that it then is in the partition of that day; ids of many that are due at one instant
// differ, and no other run can have one.
func TestAheadIDs(t *testing.T) {
	inServer(t)
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 2)
	job, ids := a.job(), map[int64]bool{}
	for _, move := range []time.Time{
		time.Date(2034, 2, 28, 23, 59, 59, 999e6, time.UTC), time.Date(2034, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2031, 7, 1, 5, 30, 0, 0, time.FixedZone("east", 19800)),
		time.Date(2058, 12, 30, 23, 59, 59, 0, time.UTC), time.Now().Add(time.Minute), time.Now().Add(-time.Hour), time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		hour := move.UTC().Truncate(time.Hour)
		if now := time.Now().UTC(); move.Before(now) { // it moves at once
			hour = now.Truncate(time.Hour)
		}
		for range 300 {
			id := a.ahead(job, store.Trigger{At: move.Add(24 * time.Hour)}, move).ID
			at := time.UnixMilli(id/lowBits + 1735689600000).UTC()
			if ids[id] || id <= 0 || id >= 1<<53 || id%lowBits < ordinaryIDs || at.Truncate(time.Hour) != hour && move.After(time.Now()) {
				t.Fatalf("a run that is to move at %v has id %d, of %v", move, id, at)
			}
			ids[id] = true
		}
	}
	run(t, pgtest.SharedPool(t), fmt.Sprintf("select setval('%q.xxl_job_log_id', %d)", postgres.SchemaOf(s), ordinaryIDs-20))
	for range 40 {
		added, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
		must(t, err)
		if added.ID%lowBits >= ordinaryIDs {
			t.Errorf("an ordinary run has id %d", added.ID)
		}
	}
	keyed := a.ahead(job, store.Trigger{At: time.Date(2050, 1, 2, 0, 0, 0, 0, time.UTC), Key: "k"}, time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC))
	if at := time.UnixMilli(keyed.ID/lowBits + 1735689600000).UTC(); at.Truncate(time.Hour) != time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC) || keyed.ID%lowBits < ordinaryIDs {
		t.Errorf("one with a key has id %d, of %v", keyed.ID, at)
	}
}

// TestAheadMovesIntoItsDay: the run's row is in the partition that its id belongs to, and the
// entry is gone; a scan finds it although its id may be ahead of the clock, or behind all
// runs that have not ended.
func TestAheadMovesIntoItsDay(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	job := a.job()
	near := a.ahead(job, store.Trigger{At: time.Now().Add(time.Minute)}, time.Now().Add(-time.Millisecond))
	if moved := a.move(time.Time{}); moved != (store.Moved{Runs: 1}) {
		t.Errorf("moved %+v", moved)
	}
	if found := a.found(); !slices.Equal(found, []int64{near.ID}) {
		t.Errorf("a scan finds %v, want %d", found, near.ID)
	}
	if n := ask[int](t, pool, "select count(*)::int from "+schema+".xxl_job_ahead"); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	must(t, postgres.RaiseFloor(t.Context(), s))
	late := a.ahead(job, store.Trigger{At: time.Now().Add(time.Hour), Key: "k"}, time.Now())
	id := backdated(t, pool, schema, late, 9)
	if n := partitions(t, pool, schema); n != allPartitions {
		t.Fatalf("there are %d partitions", n)
	}
	if moved := a.move(time.Now().AddDate(0, 0, -29)); moved != (store.Moved{Runs: 1}) {
		t.Errorf("moved %+v", moved)
	}
	day := time.UnixMilli(id/lowBits + 1735689600000).UTC().Format("20060102")
	if part := ask[string](t, pool, "select tableoid::regclass::text from "+schema+".xxl_job_log where id = $1", id); !strings.HasSuffix(part, "xxl_job_log_"+day) {
		t.Errorf("run %d is in partition %s", id, part)
	}
	if found := a.found(); !slices.Contains(found, id) {
		t.Errorf("a scan finds %v, want %d of nine days ago", found, id)
	}
	if again, err := s.AddRun(t.Context(), job.ID, store.Trigger{Key: "k"}); err != nil || again.ID != id {
		t.Errorf("the run of its key is %d, %v, want %d", again.ID, err, id)
	}
}

// TestAheadThatCannotKeepItsID: a run that moves so late that runs of its day are dropped by
// now, or whose day has no partition and the role cannot make it, or whose id a node of the
// version before has given away, moves under a new id, which its key leads to.
func TestAheadThatCannotKeepItsID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		days   int // ago
		oldest int
		denied bool
		taken  bool
	}{{name: "its day was dropped", days: 40, oldest: 29}, {name: "no partition", days: 9, oldest: 29, denied: true}, {name: "taken", oldest: 29, taken: true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			owner := pgtest.Pool(t)
			schema, pool := migrated(t, owner), owner
			if c.denied {
				pool = runTimePool(t, owner, schema)
			}
			s, a := openAt(t, pool, schema)
			job := a.job()
			param := "p"
			entry := a.ahead(job, store.Trigger{At: time.Now().Add(time.Hour), Key: "k", Param: &param}, time.Now())
			entry.ID = backdated(t, owner, schema, entry, c.days)
			if c.taken {
				other, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
				must(t, err)
				run(t, owner, "update "+schema+".xxl_job_log set id = $2 where id = $1", other.ID, entry.ID)
			}
			before := partitions(t, owner, schema)
			if moved := a.move(time.Now().AddDate(0, 0, -c.oldest)); moved != (store.Moved{Runs: 1}) {
				t.Fatalf("moved %+v", moved)
			}
			got, err := s.AddRun(t.Context(), job.ID, store.Trigger{Key: "k"})
			must(t, err)
			if got.ID == entry.ID || got.TriggerID != got.ID || got.Param != "p" || got.State != store.StatePlanned || !got.Created.Equal(entry.Created) {
				t.Errorf("the run of its key is %+v, of the entry %+v", got, entry)
			}
			if !slices.Contains(a.found(), got.ID) {
				t.Error("a scan does not find it")
			}
			if _, err := s.Run(t.Context(), entry.ID); !c.taken && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the former id: %v", err)
			}
			if n := partitions(t, owner, schema); n != before {
				t.Errorf("there are %d partitions, and were %d", n, before)
			}
			started, err := s.Start(a.ctx, nil, []store.Start{a.startOf(got, job.Version)})
			must(t, err)
			if started[0].Status != store.StartOK {
				t.Errorf("start: status %d", started[0].Status)
			}
		})
	}
}

// runTimePool is of a role that may read and write the tables, and no more.
func runTimePool(t *testing.T, owner *pgxpool.Pool, schema string) *pgxpool.Pool {
	t.Helper()
	super := superPool(t)
	role := "r_" + strings.ToLower(rand.Text()[:12])
	run(t, super, "create role "+role+" login")
	t.Cleanup(func() { super.Exec(context.Background(), "drop owned by "+role+"; drop role "+role) })
	run(t, owner, strings.NewReplacer("%s", schema, "%r", role).Replace(`grant usage on schema %s to %r;
		grant select, insert, update, delete on all tables in schema %s to %r; grant usage on all sequences in schema %s to %r`))
	return pgtest.Pool(t, pgtest.At(as(t, pgtest.DSN(t), role)))
}

// TestAheadPassesByLockedRows: an entry that somebody has locked is left for the next time,
// and holds up no other.
func TestAheadPassesByLockedRows(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := made.take(t)
	_, a := openAt(t, pool, schema)
	job := a.job()
	past := time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	one, two := a.ahead(job, store.Trigger{At: time.Now().Add(time.Hour)}, past), a.ahead(job, store.Trigger{At: time.Now().Add(time.Hour)}, past)
	x, err := pool.Begin(t.Context())
	must(t, err)
	defer x.Rollback(t.Context())
	_, err = x.Exec(t.Context(), "select from "+schema+".xxl_job_ahead where id = $1 for update", one.ID)
	must(t, err)
	if moved := a.move(time.Time{}); moved != (store.Moved{Runs: 1, Next: past}) {
		t.Errorf("moved %+v", moved)
	}
	must(t, x.Rollback(t.Context()))
	if moved := a.move(time.Time{}); moved != (store.Moved{Runs: 1}) {
		t.Errorf("moved %+v", moved)
	}
	if found := a.found(); len(found) != 2 || !slices.Contains(found, one.ID) || !slices.Contains(found, two.ID) {
		t.Errorf("a scan finds %v", found)
	}
}

// TestAheadDoesNotAge: retention drops entries that were cancelled before its time, with their
// keys, and no others, however old the day is on which they were to move.
func TestAheadDoesNotAge(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	longAgo(t, pool, schema)
	job := a.job()
	add := func(key string) store.Run {
		return a.ahead(job, store.Trigger{At: time.Now().AddDate(3, 0, 0), Key: key}, time.Now())
	}
	waits, old, young := add("waits"), add("old"), add("young")
	since := int(time.Since(time.Date(2025, 1, 2, 12, 0, 0, 0, time.UTC)) / (24 * time.Hour))
	waits.ID = backdated(t, pool, schema, waits, since) // in the day that is dropped
	for _, r := range []store.Run{old, young} {
		_, err := s.Kill(t.Context(), r.ID, "x")
		must(t, err)
	}
	run(t, pool, "update "+schema+".xxl_job_ahead set handle_time = now() - interval '31 days' where id = $1", old.ID)
	must(t, s.DropRuns(t.Context(), time.Now().AddDate(0, 0, -30)))
	if n := partitions(t, pool, schema); n != allPartitions {
		t.Errorf("there are %d partitions, want %d", n, allPartitions)
	}
	if _, err := s.Run(t.Context(), old.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("one that was cancelled a month ago: %v", err)
	}
	for key, id := range map[string]int64{"waits": waits.ID, "young": young.ID} {
		if got, err := s.AddRun(t.Context(), job.ID, store.Trigger{Key: key}); err != nil || got.ID != id {
			t.Errorf("key %q leads to run %d, %v, want %d", key, got.ID, err, id)
		}
	}
	if again := add("old"); again.ID == old.ID {
		t.Error("the key of what was dropped is not free")
	}
	if n := ask[int](t, pool, "select count(*)::int from "+schema+".xxl_job_trigger_key"); n != 3 {
		t.Errorf("there are %d keys, want 3", n)
	}
}

// TestTriggerTxFarAhead: in the host's transaction too a run that is due far ahead is kept
// apart, from the commit on.
func TestTriggerTxFarAhead(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{TxNotify: true})
	a := own(t, s, "a", 2)
	job := a.job()
	at := time.Now().AddDate(10, 0, 0).UTC().Truncate(time.Millisecond)
	param := "p"
	want := store.Trigger{At: at, Key: "k", Param: &param, Type: store.TriggerAPI}
	kept := func() int {
		return ask[int](t, pgtest.SharedPool(t), fmt.Sprintf("select count(*)::int from %q.xxl_job_ahead", postgres.SchemaOf(s)))
	}
	for _, level := range levels {
		x := begin(t, level)
		gone, err := s.TriggerTx(t.Context(), x, job.ID, want)
		must(t, err)
		must(t, x.Rollback(t.Context()))
		if _, err := s.Run(t.Context(), gone); !errors.Is(err, store.ErrNotFound) || kept() != 0 {
			t.Errorf("%s: after a rollback: %v", level, err)
		}
	}
	x := begin(t, levels[0])
	id, err := s.TriggerTx(t.Context(), x, job.ID, want)
	must(t, err)
	bare, err := s.TriggerTx(t.Context(), x, job.ID, store.Trigger{At: at})
	must(t, err)
	must(t, x.Commit(t.Context()))
	db := stdlib.OpenDBFromPool(pgtest.SharedPool(t))
	defer db.Close()
	y, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	defer y.Rollback()
	again, err := s.TriggerSQLTx(t.Context(), y, job.ID, want)
	must(t, err)
	more, err := s.TriggerSQLTx(t.Context(), y, job.ID, store.Trigger{At: at})
	must(t, err)
	must(t, y.Commit())
	if again != id || more == id || kept() != 3 {
		t.Errorf("runs %d, %d, %d, %d and %d entries", id, bare, again, more, kept())
	}
	got, err := s.Run(t.Context(), id)
	must(t, err)
	if got.State != store.StatePlanned || !got.Scheduled.Equal(at) || got.Param != "p" || got.Type != store.TriggerAPI {
		t.Errorf("the run is %+v", got)
	}
	moved, err := s.MoveAhead(a.ctx, store.AheadQuery{Shards: a.shards, Before: time.Now(), Limit: 9})
	must(t, err)
	if want := at.Add(-24 * time.Hour); moved != (store.Moved{Next: want}) {
		t.Errorf("moved %+v, want the next at %v", moved, want)
	}
	if _, err := s.TriggerTx(t.Context(), begin(t, levels[0]), 12345, want); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of an absent job: %v", err)
	}
	for _, at := range []time.Time{time.Date(2059, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		_, err := s.TriggerTx(t.Context(), begin(t, levels[0]), job.ID, store.Trigger{At: at})
		wantText(t, err, "trigger: At", "before the year 2059")
	}
	for _, at := range []time.Time{time.Date(-500, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(-1<<62, 0)} {
		got, err := s.AddRun(t.Context(), job.ID, store.Trigger{At: at})
		if err != nil || got.Scheduled.Before(got.Created.Add(-time.Minute)) || got.Scheduled.After(got.Created.Add(time.Minute)) {
			t.Errorf("At %v: %+v, %v", at, got, err)
		}
	}
}

// TestAskingAgainHintsAgain: who asks for a run a second time under its key has had no answer, and
// whoever was asked first may have ended before the owner of the shard was told. So it is told.
func TestAskingAgainHintsAgain(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 2)
	job := a.job()
	told := s.Watch(t.Context(), a.inc).Ahead
	var first store.Run
	for ask := range 3 {
		run := a.ahead(job, store.Trigger{Key: "k", At: time.Now().Add(time.Hour)}, time.Now())
		if ask == 0 {
			first = run
		}
		if run.ID != first.ID {
			t.Fatalf("run %d, want %d", run.ID, first.ID)
		}
		select {
		case <-told:
		default:
			t.Fatalf("the owner is not told when it is asked for the %d. time", ask+1)
		}
	}
}
