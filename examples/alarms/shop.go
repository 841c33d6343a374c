package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob"
)

// day is how long a day lasts here.
const day = 10 * time.Second

// shop is the program, but for who is told.
type shop struct {
	breaks func(task *xxljob.Task) bool // whether an attempt to count the stock fails
	says   func(format string, args ...any)
}

// everyThird has each third day's count fail, each second time for good.
func everyThird() func(*xxljob.Task) bool {
	var days atomic.Int64
	return func(task *xxljob.Task) bool {
		if task.Attempt == 0 {
			days.Add(1)
		}
		n := days.Load()
		return n%3 == 0 && (task.Attempt == 0 || n%6 == 0)
	}
}

// run runs the shop until ctx ends.
func (s *shop) run(ctx context.Context, cfg xxljob.Config, store xxljob.Store) error {
	if s.says == nil {
		s.says = log.Printf
	}
	scheduler, err := xxljob.New(store, cfg)
	if err != nil {
		return err
	}
	if err := s.handlers(scheduler); err != nil {
		return err
	}
	if _, err := scheduler.EnsureJobs(ctx, cfg.App, jobs(cfg.App), xxljob.EnsureOptions{}); err != nil {
		return err
	}
	return scheduler.Run(ctx)
}

// jobs are the shop's: two counts, a report behind both, and its child.
func jobs(app string) []xxljob.Job {
	daily := xxljob.FixedRate(day)
	return []xxljob.Job{
		{Key: "orders", Name: "count the orders", Handler: "orders", Schedule: daily},
		{
			Key: "stock", Name: "count the stock", Handler: "stock", Schedule: daily,
			Retries: 1, RetryBackoff: xxljob.Backoff{First: time.Second}, LateAfter: day,
			AlarmEmail: "stock@example.com",
		},
		{
			Key: "report", Name: "report the day", Handler: "report",
			AfterKeys: []string{app + "/orders", app + "/stock"}, AfterWindow: day, AfterTimeout: day,
			ChildKeys: []string{app + "/publish"}, ChildParam: xxljob.ChildParamResult,
		},
		{Key: "publish", Name: "publish the report", Handler: "publish"},
	}
}

func (s *shop) handlers(scheduler xxljob.Scheduler) error {
	return errors.Join(
		scheduler.Handle("orders", func(context.Context, *xxljob.Task) error { return nil }),
		scheduler.Handle("stock", func(_ context.Context, task *xxljob.Task) error {
			if s.breaks(task) {
				return errors.New("the warehouse does not answer")
			}
			return nil
		}),
		scheduler.Handle("report", func(_ context.Context, task *xxljob.Task) error {
			task.SetResult(fmt.Sprintf("all is counted, at %s", time.Now().UTC().Format(time.TimeOnly)))
			return nil
		}),
		scheduler.Handle("publish", func(_ context.Context, task *xxljob.Task) error {
			s.says("published: %s", task.Param)
			return nil
		}),
	)
}
