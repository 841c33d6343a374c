package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// logNode is a started scheduler on a store of its own.
func logNode(t *testing.T, st store.Store, name string, handle func(xxljob.Scheduler) error) xxljob.Scheduler {
	t.Helper()
	s, err := xxljob.New(st, xxljob.Config{App: "app", Node: name, StrictHandlers: true, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	must(t, handle(s))
	must(t, s.Start(context.Background()))
	t.Cleanup(func() { stopLogNode(t, s) })
	return s
}

func stopLogNode(t *testing.T, s xxljob.Scheduler) {
	t.Helper()
	must(t, s.Stop(context.Background())) // t's context has ended when this cleans up
}

// TestLogAcrossStores reads the log of a run from the store of another process,
// while the run goes on, after its end, and when its node has left.
func TestLogAcrossStores(t *testing.T) {
	t.Parallel()
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			one := open(t, postgres.Config{LeaseMode: mode})
			two, err := postgres.New(t.Context(), pgtest.SharedPool(t), postgres.Config{Schema: postgres.SchemaOf(one), LeaseMode: mode})
			must(t, err)
			t.Cleanup(two.Close)
			goOn := make(chan struct{})
			a := logNode(t, one, "a", func(xxljob.Scheduler) error { return nil })
			b := logNode(t, two, "b", func(s xxljob.Scheduler) error {
				return s.Handle("chat", func(ctx context.Context, task *xxljob.Task) error {
					task.Log().Info("Grüße \x00 \xff")
					select {
					case <-goOn:
					case <-ctx.Done():
					}
					task.Log().Info("done")
					return nil
				})
			})
			var job store.Job
			await.Until(t, "the handler is known to the other node", func() bool {
				job, err = a.AddJob(t.Context(), store.Job{Name: "chat", Handler: "chat"})
				return err == nil
			})
			ids, err := a.Trigger(t.Context(), job.ID, store.Trigger{})
			must(t, err)
			read := func(from int) (string, bool) {
				began := time.Now()
				res, err := a.Log(t.Context(), ids[0], from)
				if err != nil {
					t.Logf("log from %d: %v, after %v", from, err, time.Since(began).Round(time.Millisecond))
					return "", false
				}
				t.Logf("log from %d: lines %d to %d, end %v, after %v", from, res.FromLineNum, res.ToLineNum, res.IsEnd, time.Since(began).Round(time.Millisecond))
				return fmt.Sprint(res.ToLineNum, " ", res.LogContent), res.IsEnd
			}
			await.Until(t, "the line of a running run", func() bool {
				got, end := read(1)
				return !end && strings.HasPrefix(got, "1 ") && strings.HasSuffix(got, "Grüße \uFFFD \uFFFD\n")
			})
			if got, end := read(2); got != "1 " || end {
				t.Errorf("behind the last line: %q, end %v", got, end)
			}
			close(goOn)
			_, err = a.Wait(t.Context(), ids[0])
			must(t, err)
			if got, end := read(2); !strings.HasPrefix(got, "2 ") || !strings.HasSuffix(got, "done\n") || end {
				t.Errorf("the last line: %q, end %v", got, end)
			}
			if got, end := read(3); got != "2 " || !end {
				t.Errorf("the end: %q, end %v", got, end)
			}
			stopLogNode(t, b)
			began := time.Now()
			if _, err := a.Log(t.Context(), ids[0], 1); !errors.Is(err, xxljob.ErrNoLog) {
				t.Errorf("log at a node that has left: %v", err)
			}
			t.Logf("that the node has left is known after %v", time.Since(began).Round(time.Millisecond))
		})
	}
}

// TestAsksAreDropped makes an open and an answered question a minute old: nobody
// sees them any more, and housekeeping deletes them.
func TestAsksAreDropped(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	o := own(t, s, "a", 2)
	run := o.started(o.job())
	var asks [3]store.Ask
	for i := range asks {
		var err error
		asks[i], err = s.AskLog(t.Context(), store.Ask{Incarnation: "b", Run: run, FromLine: 1})
		must(t, err)
	}
	must(t, s.AnswerLog(t.Context(), asks[1].ID, store.Answer{Content: "x\n"}))
	pool, table := pgtest.SharedPool(t), fmt.Sprintf("%q.xxl_job_ask", postgres.SchemaOf(s))
	_, err := pool.Exec(t.Context(), "update "+table+" set asked = asked - interval '1 minute' where id <= $1", asks[1].ID)
	must(t, err)
	must(t, s.AnswerLog(t.Context(), asks[0].ID, store.Answer{Content: "late\n"}))
	in, err := s.Inbox(t.Context(), "b", 0, 10)
	must(t, err)
	if len(in.Asks) != 1 || in.Asks[0].ID != asks[2].ID {
		t.Errorf("questions in the inbox: %+v", in.Asks)
	}
	for i, ask := range asks {
		if _, _, err := s.LogAnswer(t.Context(), ask.ID); errors.Is(err, store.ErrNotFound) != (i < 2) {
			t.Errorf("answer to question %d: %v", i, err)
		}
	}
	must(t, postgres.DropAsks(t.Context(), s))
	var left int
	must(t, pool.QueryRow(t.Context(), "select count(*) from "+table).Scan(&left))
	if left != 1 {
		t.Errorf("%d questions are kept, want 1", left)
	}
}

// pagePartitions counts those of logs.
const pagePartitions = "select count(*)::int from pg_inherits where inhparent = ($1 || '.xxl_job_log_page')::regclass"

// TestLogsGoWithTheirRuns: pages and what is known of their size are dropped with the runs of
// their day; where the role may not drop, rows are deleted. A run that is gone gets no page.
func TestLogsGoWithTheirRuns(t *testing.T) {
	inServer(t)
	t.Parallel()
	owner := pgtest.Pool(t)
	for _, right := range []string{"MayDrop", "MayDelete"} {
		t.Run(right, func(t *testing.T) {
			schema, pool := migrated(t, owner), owner
			longAgo(t, owner, schema)
			must(t, postgres.Migrate(t.Context(), owner, postgres.Config{Schema: schema})) // makes the partition of their logs
			if n := ask[int](t, owner, pagePartitions, schema); n != allPartitions+1 {
				t.Fatalf("%d partitions of logs, want %d", n, allPartitions+1)
			}
			if right == "MayDelete" {
				pool = mayNotDrop(t, owner, schema)
			}
			s, a := openAt(t, pool, schema)
			job := a.job()
			old, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
			must(t, err)
			run(t, owner, fmt.Sprintf("update %s.xxl_job_log set id = id %% 1000000 + %d", schema, 86_400_000<<13))
			old.ID = old.ID%1_000_000 + 86_400_000<<13
			fresh, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
			must(t, err)
			var pages []store.LogPage
			for i := range 500 {
				pages = append(pages, logPage(old.ID, i+1), logPage(fresh.ID, i+1))
			}
			add := func(want ...int64) {
				t.Helper()
				refused, err := s.AddLogPages(t.Context(), pages, 500)
				slices.Sort(refused) // their order is the server's
				slices.Sort(want)
				if err != nil || fmt.Sprint(refused) != fmt.Sprint(want) {
					t.Errorf("refused %v %v, want %v", refused, err, want)
				}
			}
			add()
			pages = []store.LogPage{logPage(old.ID, 1001), logPage(fresh.ID, 1001)}
			add(old.ID, fresh.ID)
			for range 2 {
				must(t, s.DropRuns(t.Context(), time.UnixMilli(1735689600000).AddDate(0, 0, 2)))
			}
			if n, want := ask[int](t, owner, pagePartitions, schema), map[string]int{"MayDrop": allPartitions, "MayDelete": allPartitions + 1}[right]; n != want {
				t.Errorf("%d partitions of logs, want %d", n, want)
			}
			if n := ask[int](t, owner, "select count(*)::int from "+schema+".xxl_job_log_page where run_id = $1", old.ID); n != 0 {
				t.Errorf("%d pages of the run that was dropped", n)
			}
			if n := ask[int](t, owner, "select count(*)::int from "+schema+".xxl_job_log_use"); n != 1 {
				t.Errorf("what %d days of the job have is known, want 1", n)
			}
			add(fresh.ID) // the other is not there
			got, last, err := s.LogPages(t.Context(), fresh.ID, -2, 10)
			if err != nil || len(got) != 2 || last != 500 {
				t.Errorf("%d pages of the other run up to %d, %v", len(got), last, err)
			}
		})
	}
}

func logPage(run int64, line int) store.LogPage {
	return store.LogPage{RunID: run, FirstLine: line, LastLine: line, Size: 1, Content: []byte{byte(line)}}
}

// TestLogsOfManyRuns: a thousand runs that write a hundred lines each at once, with memory for
// a part of them. Nothing is lost, and all of it can be read when the node is gone.
func TestLogsOfManyRuns(t *testing.T) {
	inServer(t)
	t.Parallel()
	const runs, each = 1000, 100
	st := open(t, postgres.Config{})
	config := func(name string) xxljob.Config {
		c := xxljob.Config{App: "app", Node: name, Logger: slog.New(slog.DiscardHandler), Logs: xxljob.LogConfig{InStore: true, QueueBytes: 2 << 20}}
		c.Executor.Places = runs
		return c
	}
	s, err := xxljob.New(st, config("a"))
	must(t, err)
	var ready sync.WaitGroup
	ready.Add(runs)
	must(t, s.Handle("chat", func(_ context.Context, task *xxljob.Task) error {
		ready.Done()
		ready.Wait()
		for i := range each {
			task.Log().Info("a line of this length or so", "run", task.RunID, "line", i+1)
		}
		return nil
	}))
	must(t, s.Start(context.Background()))
	stop := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		must(t, s.Stop(ctx))
	})
	defer stop()
	ids := make([]int64, runs)
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i := n; i < runs; i += 4 {
				job, err := s.AddJob(t.Context(), store.Job{Name: fmt.Sprint("chat ", i), Handler: "chat", Block: block.Concurrent})
				if err == nil {
					ids[i], err = s.TriggerOne(t.Context(), job.ID, store.Trigger{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for _, id := range ids {
		run, err := s.Wait(t.Context(), id)
		must(t, err)
		if run.State != store.StateSucceeded {
			t.Fatal(run.Err())
		}
	}
	stats := s.Stats()
	if calls := stats.Calls["AddLogPages"]; stats.Logs.Dropped > 0 && (calls.Longest > time.Second || calls.Errors > 0) {
		t.Logf("the server was too slow for the promise that nothing is lost: %+v, %+v", stats.Logs, calls)
		return
	}
	if got := stats.Logs; got.Peak > 2<<20 || got.Waiting != 0 || got.Written != runs*each || got.Dropped+got.Cut != 0 {
		t.Errorf("%+v", got)
	}
	t.Logf("%+v, %+v", stats.Logs, stats.Calls["AddLogPages"])
	stop()
	other, err := xxljob.New(st, config("b"))
	must(t, err)
	for i, id := range ids {
		if i%20 == 0 {
			res, err := other.Log(t.Context(), id, 1)
			if want := fmt.Sprintf(" run=%d line=%d\n", id, each); err != nil || res.ToLineNum != each || !strings.HasSuffix(res.LogContent, want) {
				t.Fatalf("run %d: lines up to %d, %v", id, res.ToLineNum, err)
			}
		}
		res, err := other.LogTail(t.Context(), id, 1)
		if want := fmt.Sprintf(" run=%d line=%d\n", id, each); err != nil || res.FromLineNum != each || !strings.HasSuffix(res.LogContent, want) || !res.IsEnd {
			t.Fatalf("run %d: %+v, %v", id, res, err)
		}
	}
}
