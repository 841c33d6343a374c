package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob"
)

// addJobs adds jobs whose lines on the dashboard differ: one that is quick, one that takes its
// time and leads to another, one that is tried again, one that
// cuts its work into pieces, which wait for each other, and one that is done with after a run.
func addJobs(ctx context.Context, s xxljob.Scheduler) error {
	var attempts atomic.Int64
	handlers := map[string]xxljob.Handler{
		"quick":  func(context.Context, *xxljob.Task) error { return nil },
		"report": func(ctx context.Context, _ *xxljob.Task) error { return work(ctx, 700*time.Millisecond) },
		"flaky": func(ctx context.Context, _ *xxljob.Task) error {
			if attempts.Add(1)%3 != 0 {
				return errors.New("the supplier does not answer")
			}
			return work(ctx, 50*time.Millisecond)
		},
		"cut": func(ctx context.Context, _ *xxljob.Task) error { // in the trace of this run
			for range 5 {
				if _, err := s.TriggerJob(ctx, "", "piece", xxljob.Trigger{}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for name, h := range handlers {
		if err := s.Handle(name, h); err != nil {
			return err
		}
	}
	for _, job := range []xxljob.Job{
		{Key: "sent", Name: "mail the report", Handler: "quick"},
		{Key: "orders", Name: "collect orders", Handler: "quick", Schedule: xxljob.FixedRate(time.Second)},
		{Key: "report", Name: "write a report", Handler: "report", Schedule: xxljob.FixedRate(2 * time.Second), ChildKeys: []string{"shop/sent"}},
		{Key: "prices", Name: "fetch prices", Handler: "flaky", Schedule: xxljob.FixedRate(2 * time.Second), Retries: 1, RetryBackoff: xxljob.Backoff{First: 300 * time.Millisecond}},
		{Key: "piece", Name: "a piece of work", Handler: "report"},
		{Key: "cut", Name: "cut the work into pieces", Handler: "cut", Schedule: xxljob.FixedRate(5 * time.Second)},
		{Key: "open", Name: "open the shop", Handler: "quick", Schedule: xxljob.At(time.Now().Add(2 * time.Second))},
	} {
		if _, err := s.EnsureJob(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// work takes so long, unless it is to end.
func work(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
