package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/xxljob/xxljob/examples/from-cron/internal/begun"
)

func init() { cron.DefaultLogger = cron.DiscardLogger } // it prints each panic with its stack

// TestDays: when the jobs begin. The test of the service after it wants the same. Here no
// invoice is delayed: DelayIfStillRunning waits for a mutex, and in a bubble no time passes
// meanwhile.
func TestDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book begun.Book
		s := book.Shop(4 * time.Second)
		begun.Until(begun.Monday)
		begun.For(t, 25*time.Hour-time.Second, func(ctx context.Context) error { return run(ctx, s) })
		book.Check(t, 25*time.Hour-time.Second)
	})
}

// TestRestart: what was due while the service was down is forgotten.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book begun.Book
		s := book.Shop(4 * time.Second)
		service := func(ctx context.Context) error { return run(ctx, s) }
		begun.Until(begun.Monday)
		begun.For(t, 59*time.Second, service)
		begun.Until(begun.Monday.Add(time.Hour))
		begun.For(t, 59*time.Second, service)
		book.Want(t, "report", nil)
	})
}

// TestReplicas: two replicas run everything twice.
func TestReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book begun.Book
		s := book.Shop(4 * time.Second)
		begun.Until(begun.Monday)
		for range 2 {
			go begun.For(t, time.Hour-time.Second, func(ctx context.Context) error { return run(ctx, s) })
		}
		time.Sleep(2 * time.Hour)
		at := begun.Monday.Add(30 * time.Minute)
		book.Want(t, "report", []time.Time{at, at})
	})
}

// TestNext: what cron says of the next instant.
func TestNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book begun.Book
		c, ids, err := schedule(book.Shop(0))
		if err != nil {
			t.Fatal(err)
		}
		begun.Until(begun.Monday)
		c.Start()
		synctest.Wait()
		if next := c.Entry(ids["report"]).Next; !next.Equal(begun.Monday.Add(30 * time.Minute)) {
			t.Errorf("the report is next at %v", next)
		}
		<-c.Stop().Done()
	})
}
