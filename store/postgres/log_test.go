package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/await"
	"github.com/xxljob/xxljob/internal/pgtest"
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
