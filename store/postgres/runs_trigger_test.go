package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// levels are the isolation levels at which a host may plan a run.
var levels = []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}

func begin(t *testing.T, level pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	x, err := pgtest.SharedPool(t).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
	must(t, err)
	t.Cleanup(func() { x.Rollback(context.Background()) })
	return x
}

// found are the ids of the runs that a scan of everything finds.
func (a *actor) found() (ids []int64) {
	a.Helper()
	res, err := a.Scan(a.ctx, store.ScanResult{}, store.ScanQuery{Shards: a.shards, Before: time.Now().Add(time.Hour), Jobs: 1, Runs: 100})
	must(a.T, err)
	for _, r := range res.Runs {
		ids = append(ids, r.ID)
	}
	return ids
}

// TestTriggerTxIsTheHostsTransaction: the run is there after the commit, with all
// that was asked for, and never after a rollback.
func TestTriggerTxIsTheHostsTransaction(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 2)
	job := a.job()
	param, retries := "p", 3
	at := time.Now().Add(time.Minute).UTC().Truncate(time.Millisecond)
	want := store.Trigger{Key: "order", At: at, Param: &param, Retries: &retries, Addresses: []string{"http://a", `odd"{},\`},
		Shard: store.Sharding{Index: 1, Total: 3}, Type: store.TriggerAPI}
	for _, level := range levels {
		x := begin(t, level)
		gone, err := s.TriggerTx(t.Context(), x, job.ID, want)
		must(t, err)
		must(t, x.Rollback(t.Context()))
		if _, err := s.Run(t.Context(), gone); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: the run of a transaction that was rolled back: %v", level, err)
		}
		x = begin(t, level)
		id, err := s.TriggerTx(t.Context(), x, job.ID, want)
		must(t, err)
		if got := a.found(); len(got) > 0 {
			t.Errorf("%s: found before the commit: %v", level, got)
		}
		must(t, x.Commit(t.Context()))
		got, err := s.Run(t.Context(), id)
		must(t, err)
		if got.State != store.StatePlanned || got.PlanEpoch != 0 || got.JobID != job.ID || got.Shard != job.Shard || got.App != job.App ||
			got.Type != want.Type || !got.Scheduled.Equal(at) || got.Param != param || !got.ParamSet || got.Retries != retries ||
			!slices.Equal(got.Addresses, want.Addresses) || got.Sharding != want.Shard || got.TriggerID != id {
			t.Errorf("%s: the run is %+v", level, got)
		}
		if got := a.found(); !slices.Equal(got, []int64{id}) {
			t.Errorf("%s: found %v, want %d", level, got, id)
		}
		again, err := s.AddRun(t.Context(), job.ID, want)
		must(t, err)
		if again.ID != id {
			t.Errorf("%s: the run of the key is %d, want %d", level, again.ID, id)
		}
		want.Key += "+"
	}
}

func TestTriggerSQLTxIsTheHostsTransaction(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 1)
	job := a.job()
	db, err := sql.Open("pgx", pgtest.DSN(t))
	must(t, err)
	defer db.Close()
	var _ *stdlib.Driver // the driver of that name
	for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelRepeatableRead, sql.LevelSerializable} {
		x, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
		must(t, err)
		defer x.Rollback()
		id, err := s.TriggerSQLTx(t.Context(), x, job.ID, store.Trigger{Key: level.String(), Addresses: []string{"http://a", `odd"{},\`}})
		must(t, err)
		again, err := s.TriggerSQLTx(t.Context(), x, job.ID, store.Trigger{Key: level.String()})
		must(t, err)
		if again != id {
			t.Errorf("%v: the same key in one transaction made runs %d and %d", level, id, again)
		}
		_, err = s.TriggerSQLTx(t.Context(), x, job.ID+1000, store.Trigger{Key: "k"})
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v: an absent job: %v", level, err)
		}
		must(t, x.Commit())
		got, err := s.Run(t.Context(), id)
		must(t, err)
		if len(got.Addresses) != 2 || got.Addresses[1] != `odd"{},\` || got.ParamSet || got.Retries != -1 {
			t.Errorf("%v: the run is %+v", level, got)
		}
	}
}

// TestATransactionThatTakesLong: the run is due when it was asked for.
func TestATransactionThatTakesLong(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 1)
	job := a.job()
	x := begin(t, pgx.ReadCommitted)
	before, err := s.Now(t.Context())
	must(t, err)
	id, err := s.TriggerTx(t.Context(), x, job.ID, store.Trigger{})
	must(t, err)
	after, err := s.Now(t.Context())
	must(t, err)
	await.Until(t, "time passes", func() bool {
		now, err := s.Now(t.Context())
		must(t, err)
		return now.Sub(after) > 100*time.Millisecond
	})
	must(t, x.Commit(t.Context()))
	if got := a.found(); !slices.Equal(got, []int64{id}) {
		t.Errorf("found %v, want %d", got, id)
	}
	got, err := s.Run(t.Context(), id)
	must(t, err)
	if got.Scheduled.Before(before.Add(-time.Millisecond)) || got.Scheduled.After(after.Add(time.Millisecond)) {
		t.Errorf("it is due at %v, and was asked for between %v and %v", got.Scheduled, before, after)
	}
}

// TestAKeyIsForOneRun: within a transaction, and among concurrent ones, of which
// the second waits for the first.
func TestAKeyIsForOneRun(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 1)
	job := a.job()
	for _, level := range levels {
		for _, end := range []string{"commit", "rollback"} {
			trigger := store.Trigger{Key: string(level) + end}
			first, second := begin(t, level), begin(t, level)
			_, err := second.Exec(t.Context(), "select 1") // its snapshot is older than the first's commit
			must(t, err)
			id, err := s.TriggerTx(t.Context(), first, job.ID, trigger)
			must(t, err)
			again, err := s.TriggerTx(t.Context(), first, job.ID, trigger)
			must(t, err)
			if again != id {
				t.Errorf("%s: twice in one transaction: runs %d and %d", level, id, again)
			}
			beside, other := begin(t, level), make(chan error, 1)
			go func() {
				_, err := s.TriggerTx(t.Context(), beside, job.ID, store.Trigger{Key: trigger.Key + " other"})
				other <- err
			}()
			await.Until(t, "a run of another key is planned, or waits", func() bool { return len(other) > 0 || blocked(t, s) })
			if len(other) == 0 {
				t.Fatalf("%s: another key waits", level)
			}
			must(t, <-other)
			type answer struct {
				id  int64
				err error
			}
			answers := make(chan answer, 1)
			go func() {
				id, err := s.TriggerTx(t.Context(), second, job.ID, trigger)
				answers <- answer{id, err}
			}()
			await.Until(t, "the second waits, or does not", func() bool { return len(answers) > 0 || blocked(t, s) })
			if len(answers) > 0 {
				t.Fatalf("%s: the second did not wait: %+v", level, <-answers)
			}
			if end == "commit" {
				must(t, first.Commit(t.Context()))
			} else {
				must(t, first.Rollback(t.Context()))
			}
			got := <-answers
			var pg *pgconn.PgError
			switch {
			case end == "rollback" && (got.err != nil || got.id == id):
				t.Errorf("%s: after the rollback the second got %+v", level, got)
			case end == "commit" && level == pgx.ReadCommitted && (got.err != nil || got.id != id):
				t.Errorf("%s: after the commit the second got %+v, want %d", level, got, id)
			case end == "commit" && level != pgx.ReadCommitted && (!errors.As(got.err, &pg) || pg.Code != "40001"):
				t.Errorf("%s: after the commit the second got %+v, want a serialization error", level, got)
			}
			second.Rollback(t.Context())
		}
	}
}

// TestAnOpenTriggerKeepsNobodyWaiting: neither a claim, a start or a result, nor
// an edit or the removal of the job.
func TestAnOpenTriggerKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		s := open(t, postgres.Config{})
		a := own(t, s, "a", 1)
		job := a.job()
		x := begin(t, level)
		id, err := s.TriggerTx(t.Context(), x, job.ID, store.Trigger{Key: "k"})
		must(t, err)
		run := a.started(job) // what waits for a lock is ended by the store's patience
		_, err = s.Finish(a.ctx, nil, []store.Result{result(run)})
		must(t, err)
		_, err = s.EditJob(a.ctx, job.ID, store.Edit{Verb: "stop", Change: func(j *store.Job) (bool, error) { j.Stopped = true; return true, nil }})
		must(t, err)
		must(t, s.RemoveJob(a.ctx, job.ID))
		must(t, x.Commit(t.Context()))
		answers, err := s.Start(t.Context(), nil, []store.Start{a.startOf(store.Run{ID: id, JobID: job.ID}, job.Version)})
		must(t, err)
		if answers[0].Status != store.StartStale {
			t.Errorf("%s: the start of a run whose job was removed: status %d, want StartStale", level, answers[0].Status)
		}
	}
}

// TestBadTriggersSendNothing: the host's transaction can go on.
func TestBadTriggersSendNothing(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 1)
	job := a.job()
	x := begin(t, pgx.ReadCommitted)
	bad := -5
	for name, trigger := range map[string]store.Trigger{
		"retries": {Retries: &bad},
		"shard":   {Shard: store.Sharding{Index: 3, Total: 2}},
		"key":     {Key: "a\x00b"},
	} {
		if _, err := s.TriggerTx(t.Context(), x, job.ID, trigger); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, key := range []string{"", "k"} {
		_, err := s.TriggerTx(t.Context(), x, job.ID+1000, store.Trigger{Key: key})
		if want := fmt.Sprintf("postgres: trigger: job %d does not exist", job.ID+1000); !errors.Is(err, store.ErrNotFound) || err.Error() != want {
			t.Errorf("an absent job: %v, want %s", err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.TriggerTx(ended, x, job.ID, store.Trigger{}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	id, err := s.TriggerTx(t.Context(), x, job.ID, store.Trigger{Key: "k"})
	must(t, err)
	must(t, x.Commit(t.Context()))
	if got := a.found(); !slices.Equal(got, []int64{id}) {
		t.Errorf("found %v, want %d", got, id)
	}
}

// triggerCommitted triggers the job in a transaction of its own.
func triggerCommitted(t *testing.T, s *postgres.Store, pool *pgxpool.Pool, job int64, trigger store.Trigger) int64 {
	t.Helper()
	x, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = x.Rollback(context.WithoutCancel(t.Context())) }()
	id, err := s.TriggerTx(t.Context(), x, job, trigger)
	must(t, err)
	must(t, x.Commit(t.Context()))
	return id
}

// TestTriggerTxKnowsTheRetention: a transaction of the host keeps apart what Scheduler.Trigger
// keeps apart, and no run is dropped before it is due. The store is told by its Config, where
// the process has no scheduler, or by its scheduler.
func TestTriggerTxKnowsTheRetention(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.SharedPool(t)
	for _, retention := range []time.Duration{time.Hour, 24 * time.Hour, 60 * time.Hour, 30 * 24 * time.Hour} {
		for _, by := range []string{"Config", "New"} {
			var cfg postgres.Config
			if by == "Config" {
				cfg.RunRetention = retention
			}
			s := open(t, cfg)
			schema := postgres.SchemaOf(s)
			if by == "New" {
				_, err := xxljob.New(s, xxljob.Config{App: "app", RunRetention: retention})
				must(t, err)
			}
			job := own(t, s, "a", 1).job()
			for _, ahead := range []time.Duration{20 * time.Minute, 5 * time.Hour, 23 * time.Hour, 47 * time.Hour, 100 * time.Hour} {
				at := time.Now().Add(ahead)
				move, far := store.Ahead(at, time.Now(), retention)
				id := triggerCommitted(t, s, pool, job.ID, store.Trigger{At: at})
				entries := 0
				must(t, pool.QueryRow(t.Context(), fmt.Sprintf("select count(*) from %q.xxl_job_ahead where id = $1 and move_time = $2", schema), id, move.UnixMilli()).Scan(&entries))
				if (entries == 1) != far {
					t.Errorf("runs kept for %v, known by %s: one that is due in %v is kept apart until %v: %v, want %v", retention, by, ahead, move, entries == 1, far)
				}
			}
		}
	}
	for _, bad := range []time.Duration{-time.Hour, time.Minute, 100*365*24*time.Hour + 1} {
		if _, err := postgres.New(t.Context(), pool, postgres.Config{Schema: "any", RunRetention: bad}); err == nil {
			t.Errorf("a RunRetention of %v is accepted", bad)
		}
	}
}

// before calls a function once, before the first statement that has a text.
type before struct {
	mu   sync.Mutex
	text string // guarded by mu
	call func() // guarded by mu; nil once it was called
}

func (b *before) set(text string, call func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text, b.call = text, call
}

func (b *before) sent(sql string) {
	b.mu.Lock()
	call := b.call
	if call == nil || !strings.Contains(sql, b.text) {
		b.mu.Unlock()
		return
	}
	b.call = nil
	b.mu.Unlock()
	call()
}

func (b *before) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	b.sent(d.SQL)
	return ctx
}

func (b *before) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		b.sent(q.SQL)
	}
	return ctx
}

func (*before) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*before) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*before) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// TestATriggerWhoseRunIsJustDeleted: the key is there when it is inserted, and gone with its run
// when that is looked for. A new run is made, and the job is not said to be absent.
func TestATriggerWhoseRunIsJustDeleted(t *testing.T) {
	t.Parallel()
	b, owner := &before{}, pgtest.Pool(t)
	pool := pgtest.Pool(t, pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.Tracer = b }))
	schema := migrated(t, owner)
	other, a := openAt(t, owner, schema)
	s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema})
	must(t, err)
	t.Cleanup(s.Close)
	job, far := a.job(), time.Now().AddDate(1, 0, 0)
	for name, trigger := range map[string]func(store.Trigger) (int64, error){
		"AddRun": func(x store.Trigger) (int64, error) { r, err := s.AddRun(t.Context(), job.ID, x); return r.ID, err },
		"AddAhead": func(x store.Trigger) (int64, error) {
			x.At = far
			r, err := s.AddAhead(t.Context(), job.ID, x, far.AddDate(0, 0, -1))
			return r.ID, err
		},
		"TriggerTx": func(x store.Trigger) (int64, error) {
			tx, err := pool.Begin(t.Context())
			must(t, err)
			defer tx.Rollback(t.Context())
			id, err := s.TriggerTx(t.Context(), tx, job.ID, x)
			return id, errors.Join(err, tx.Commit(t.Context()))
		},
	} {
		key := store.Trigger{Key: name}
		run, err := other.AddRun(t.Context(), job.ID, key)
		must(t, err)
		_, err = other.Kill(t.Context(), run.ID, "over")
		must(t, err)
		b.set("select k.run_id from", func() {
			if got, err := other.DropEnded(t.Context(), store.RunDrop{All: true}); err != nil || got.Runs != 1 {
				t.Errorf("%s: %+v, %v, want one run deleted", name, got, err)
			}
		})
		id, err := trigger(key)
		if err != nil || id == run.ID {
			t.Errorf("%s: run %d, %v, want a new one", name, id, err)
		}
		again, err := other.AddRun(t.Context(), job.ID, key)
		if err != nil || again.ID != id {
			t.Errorf("%s: the key is that of run %d, %v, want %d", name, again.ID, err, id)
		}
		job.ID++
		_, err = trigger(key)
		if job.ID--; !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: of an absent job: %v", name, err)
		}
	}
}

// answering is a tracer of a host's transactions.
type answering struct {
	answer func() string
	done   func(id int64, err error)
}

func (a answering) Triggering(context.Context, int64) (string, func(int64, error)) {
	return a.answer(), a.done
}

func (answering) Sending(context.Context, store.Run) (string, func(error)) { return "", nil }

// TestTracerOfTriggerTx: what the tracer answers is in the row, unless the trigger has a trace;
// one that panics, or answers what cannot be stored, costs the trace.
func TestTracerOfTriggerTx(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer      func() string
		given, want string
		asked       bool
	}{
		"its answer":         {answer: func() string { return "00-1 a=b" }, want: "00-1 a=b", asked: true},
		"a trace was given":  {answer: func() string { return "00-1" }, given: "00-2", want: "00-2"},
		"nothing":            {answer: func() string { return "" }, asked: true},
		"too long an answer": {answer: func() string { return strings.Repeat("a", 601) }, asked: true},
		"a line feed":        {answer: func() string { return "00-1\nb" }, asked: true},
		"a panic":            {answer: func() string { panic("no") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []int64
			tracer := answering{tt.answer, func(id int64, err error) {
				if err == nil {
					told = append(told, id)
				}
				panic("not even now")
			}}
			pool := pgtest.SharedPool(t)
			s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: pgtest.Schema(t), AutoMigrate: true, Tracer: tracer})
			must(t, err)
			t.Cleanup(s.Close)
			scheduler, err := xxljob.New(s, xxljob.Config{App: "app"})
			must(t, err)
			job, err := scheduler.AddJob(t.Context(), store.Job{Name: "j", Handler: "h"})
			must(t, err)
			tx, err := pool.Begin(t.Context())
			must(t, err)
			id, err := s.TriggerTx(t.Context(), tx, job.ID, store.Trigger{Trace: tt.given})
			must(t, err)
			must(t, tx.Commit(t.Context()))
			run, err := s.Run(t.Context(), id)
			must(t, err)
			if run.Trace != tt.want {
				t.Errorf("the row has trace %q, want %q", run.Trace, tt.want)
			}
			if asked := len(told) == 1 && told[0] == id; asked != tt.asked {
				t.Errorf("the tracer was told of %v, want run %d: %t", told, id, tt.asked)
			}
		})
	}
}
