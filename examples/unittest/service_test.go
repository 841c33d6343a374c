package unittest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/xxljobtest"
)

// ledger is a Ledger for tests: it answers with what it holds.
type ledger struct {
	cents int64
	err   error
}

func (l ledger) Balance(context.Context, int, int) (int64, error) { return l.cents, l.err }

// 1. The handler alone: neither a scheduler nor a store is needed.
func TestCloseMonth(t *testing.T) {
	service := &Service{Ledger: ledger{cents: 12_345}}

	got := xxljobtest.Work(t, t.Context(), service.CloseMonth, xxljob.Task{
		ScheduledAt: time.Date(2026, 2, 28, 22, 30, 0, 0, time.UTC),
	})

	if got.Err != nil || got.Result != "2026-02 closed with 123.45" {
		t.Errorf("got %q, %v", got.Result, got.Err)
	}
	if len(got.Log) != 1 || got.Log[0] != "INFO closing year=2026 month=2" {
		t.Errorf("log: %q", got.Log)
	}
}

// 2. A handler that fails: is it worth trying again?
func TestCloseMonthFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		final bool
	}{
		{"timeout", context.DeadlineExceeded, false},
		{"closed", ErrClosed, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := &Service{Ledger: ledger{err: c.err}}

			got := xxljobtest.Work(t, t.Context(), service.CloseMonth, xxljob.Task{})

			if !errors.Is(got.Err, c.err) || executor.IsPermanent(got.Err) != c.final {
				t.Errorf("got %v, final %v, want %v, final %v", got.Err, executor.IsPermanent(got.Err), c.err, c.final)
			}
		})
	}
}

// 3. The schedule. A bubble has its own clock, which begins on 2000-01-01 and
// jumps ahead when everybody sleeps: months pass in no time.
func TestMonthEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &Service{Ledger: ledger{}}
		s := xxljobtest.New(t, service.MonthEnd())
		if err := s.Handle("closeMonth", service.CloseMonth); err != nil {
			t.Fatal(err)
		}

		time.Sleep(120 * 24 * time.Hour)

		// 23:30 in Berlin is 22:30 UTC in winter and 21:30 UTC in summer.
		s.RequireRuns("month-end",
			time.Date(2000, 1, 31, 22, 30, 0, 0, time.UTC),
			time.Date(2000, 2, 29, 22, 30, 0, 0, time.UTC),
			time.Date(2000, 3, 31, 21, 30, 0, 0, time.UTC),
			// Day 120 is 30 April, midnight: the fourth month end is still ahead.
		)
		if next, want := s.NextFireOf("month-end"), time.Date(2000, 4, 30, 21, 30, 0, 0, time.UTC); !next.Equal(want) {
			t.Errorf("next at %v, want %v", next, want)
		}
	})
}

// 4. A daily job: 31 days pass in milliseconds.
func TestThirtyOneDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var days []int
		s := xxljobtest.New(t, xxljob.Job{Key: "daily", Name: "Daily note", Handler: "note", Schedule: xxljob.Crontab("0 3 * * *")})
		if err := s.Handle("note", func(_ context.Context, task *xxljob.Task) error {
			days = append(days, task.ScheduledAt.Day()) // one run at a time: no lock needed
			return nil
		}); err != nil {
			t.Fatal(err)
		}

		time.Sleep(31 * 24 * time.Hour)
		synctest.Wait() // let the last run end before days is read

		if len(days) != 31 || days[0] != 1 || days[30] != 31 {
			t.Errorf("ran on %v", days)
		}
	})
}

// 5. A failing job on the scheduler: the run says why, and the job goes on.
func TestFailingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &Service{Ledger: ledger{err: ErrClosed}}
		s := xxljobtest.New(t, service.MonthEnd())
		if err := s.Handle("closeMonth", service.CloseMonth); err != nil {
			t.Fatal(err)
		}

		run := s.RunNow("month-end") // now, beside its schedule
		if run.State != xxljob.StateFailed || run.HandleMsg != "the ledger is closed" || !run.NoRetry {
			t.Errorf("got %s: %q, no retry: %v", run.State, run.HandleMsg, run.NoRetry)
		}

		time.Sleep(31 * 24 * time.Hour)
		s.RequireRuns("month-end", time.Date(2000, 1, 31, 22, 30, 0, 0, time.UTC))
	})
}
