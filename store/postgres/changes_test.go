package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// changes are what a search finds.
func changes(t *testing.T, s *postgres.Store, q store.ChangeSearch) []store.Change {
	t.Helper()
	found, err := s.SearchChanges(t.Context(), q)
	must(t, err)
	return found.Changes
}

// TestTriggerTxIsRecorded with the host's transaction, where somebody is named, and never
// without it.
func TestTriggerTxIsRecorded(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 2)
	job := a.job()
	ctx := store.WithClient(store.WithActor(t.Context(), "ann"), "10.0.0.1:9", "r-1")
	param := "p"
	for _, level := range levels {
		x := begin(t, level)
		_, err := s.TriggerTx(ctx, x, job.ID, store.Trigger{Param: &param})
		must(t, err)
		must(t, x.Rollback(t.Context()))
		x = begin(t, level)
		id, err := s.TriggerTx(ctx, x, job.ID, store.Trigger{Param: &param, Key: "key " + string(level)})
		must(t, err)
		again, err := s.TriggerTx(ctx, x, job.ID, store.Trigger{Key: "key " + string(level)})
		must(t, err)
		unnamed, err := s.TriggerTx(t.Context(), x, job.ID, store.Trigger{})
		must(t, err)
		must(t, x.Commit(t.Context()))
		got := changes(t, s, store.ChangeSearch{Object: store.ObjectRun})
		if len(got) == 0 || id != again || id == unnamed {
			t.Fatalf("%s: runs %d, %d, %d; entries %+v", level, id, again, unnamed, got)
		}
		want := store.Change{ID: got[0].ID, At: got[0].At, Actor: "ann", Client: "10.0.0.1:9", RequestID: "r-1", Verb: "trigger", Object: store.ObjectRun,
			ObjectID: fmt.Sprint(id), App: job.App, JobID: job.ID, After: fmt.Sprintf(`{"Key":"key %s","Param":"p"}`, level)}
		if got[0] != want {
			t.Errorf("%s:\n got %+v\nwant %+v", level, got[0], want)
		}
	}
	if got := changes(t, s, store.ChangeSearch{Object: store.ObjectRun}); len(got) != len(levels) {
		t.Errorf("%d entries of %d commits: %+v", len(got), len(levels), got)
	}
	db := stdlib.OpenDBFromPool(pgtest.SharedPool(t))
	t.Cleanup(func() { db.Close() })
	x, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = s.TriggerSQLTx(ctx, x, job.ID, store.Trigger{})
	must(t, err)
	must(t, x.Commit())
	if got := changes(t, s, store.ChangeSearch{Object: store.ObjectRun}); len(got) != len(levels)+1 {
		t.Errorf("%d entries after TriggerSQLTx", len(got))
	}
}

// TestARolledBackChangeHasNoEntry: where the entry cannot be written the change is not made,
// and where the change fails behind it the entry is gone.
func TestARolledBackChangeHasNoEntry(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	job := a.job()
	planned := a.planned(job)
	before := len(changes(t, s, store.ChangeSearch{}))
	ctx := store.WithActor(t.Context(), "ann")
	calls := map[string]func() error{
		"EditJob": func() error {
			_, err := s.EditJob(ctx, job.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) { j.Param += "x"; return false, nil }})
			return err
		},
		"AddJob":    func() error { _, err := s.AddJob(ctx, store.Job{App: "app", Name: "more"}, nil); return err },
		"AddRun":    func() error { _, err := s.AddRun(ctx, job.ID, store.Trigger{}); return err },
		"Kill":      func() error { _, err := s.Kill(ctx, planned.ID, "x"); return err },
		"SaveGroup": func() error { return s.SaveGroup(ctx, store.Group{App: "g"}) },
		"RemoveJob": func() error { return s.RemoveJob(ctx, job.ID) },
	}
	for _, trigger := range []string{"before insert on %s.xxl_job_change for each row", "after insert on %s.xxl_job_change deferrable initially deferred for each row"} {
		run(t, pool, "create or replace function "+schema+".refuse() returns trigger language plpgsql as 'begin raise exception ''refused''; end'")
		kind := "create trigger refuse "
		if trigger[0] == 'a' { // at the commit
			kind = "create constraint trigger refuse "
		}
		run(t, pool, kind+fmt.Sprintf(trigger, schema)+" execute function "+schema+".refuse()")
		for name, call := range calls {
			if err := call(); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		run(t, pool, "drop trigger refuse on "+schema+".xxl_job_change")
		if after, err := s.Job(t.Context(), job.ID); err != nil || after.Version != 1 {
			t.Errorf("the job: %+v %v", after, err)
		}
		if n := len(changes(t, s, store.ChangeSearch{})); n != before {
			t.Errorf("%d entries, want %d", n, before)
		}
	}
	if r, err := s.Run(t.Context(), planned.ID); err != nil || r.State != store.StatePlanned {
		t.Errorf("the run: %+v %v", r, err)
	}
}

// TestEntriesFromBefore the record had what it has are found by what they say; so are those of
// a node of that version.
func TestEntriesFromBefore(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	backTo(t, pool, schema, 17)
	const insert = "insert into %s.xxl_job_change (job_id, version, at, actor, verb) values (7, %d, '2026-01-02', 'ann', 'add')"
	run(t, pool, fmt.Sprintf(insert, schema, 1))
	must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))
	run(t, pool, fmt.Sprintf(insert, schema, 2))
	s, _ := openAt(t, pool, schema)
	for _, q := range []store.ChangeSearch{
		{}, {Object: store.ObjectJob, ObjectID: "7"}, {JobID: 7}, {Object: store.ObjectJob}, {Actor: "ann"}, {Verb: "add"}, {Until: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)},
	} {
		got := changes(t, s, q)
		if len(got) != 2 {
			t.Fatalf("%+v: %+v", q, got)
		}
		want := store.Change{ID: got[1].ID, At: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Actor: "ann", Verb: "add", Object: store.ObjectJob, ObjectID: "7", JobID: 7, Version: 1}
		if got[1].At = got[1].At.UTC(); got[1] != want {
			t.Errorf("%+v:\n got %+v\nwant %+v", q, got[1], want)
		}
	}
	if _, err := s.JobAt(t.Context(), 7, 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a definition that was not written: %v", err)
	}
}

// TestDroppedDaysAreRecorded: one entry a day, whether its partition is dropped or emptied.
func TestDroppedDaysAreRecorded(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	longAgo(t, pool, schema)
	s, _ := openAt(t, pool, schema)
	for range 2 {
		must(t, s.DropRuns(t.Context(), time.Now().AddDate(0, 0, -30)))
	}
	got := changes(t, s, store.ChangeSearch{Object: store.ObjectRuns})
	if len(got) != 1 || got[0].Actor != store.Scheduler || got[0].Verb != "drop" || got[0].ObjectID != "2025-01-02" {
		t.Errorf("entries: %+v", got)
	}
}

// TestManyOldEntriesAreDropped in batches, and a ctx that ends stops that.
func TestManyOldEntriesAreDropped(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, _ := openAt(t, pool, schema)
	run(t, pool, "insert into "+schema+".xxl_job_change (job_id, version, at, actor, verb) select n, 1, '2026-01-02', 'ann', 'add' from generate_series(1, 2500) n")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.DropChanges(over, time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of ctx: %v", err)
	}
	must(t, s.DropChanges(t.Context(), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)))
	if n := ask[int](t, pool, "select count(*)::int from "+schema+".xxl_job_change"); n != 2500 {
		t.Errorf("%d entries are left that are not older", n)
	}
	must(t, s.DropChanges(t.Context(), time.Now()))
	if n := ask[int](t, pool, "select count(*)::int from "+schema+".xxl_job_change"); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
