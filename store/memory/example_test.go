package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// A Scheduler calls SetShards; a program that uses a store by itself does too.
func Example() {
	ctx := context.Background()
	s := memory.New(memory.Retain(100, 1000))
	if err := s.SetShards(ctx, 32); err != nil {
		fmt.Println(err)
		return
	}
	job, err := s.AddJob(ctx, xxljob.Job{
		App: "billing", Key: "report", Name: "nightly report", Handler: "report",
		Schedule: xxljob.Cron("0 0 3 * * ?"),
		Next:     time.Date(2030, 1, 1, 3, 0, 0, 0, time.UTC),
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err = s.Job(ctx, job.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := s.JobByKey(ctx, "billing", "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(again.ID == job.ID, job.Name, job.Schedule, job.Next)
	// Output: true nightly report CRON 0 0 3 * * ? 2030-01-01 03:00:00 +0000 UTC
}

// Reports say how runs have ended, over time.
func ExampleStore_Reports() {
	ctx := context.Background()
	s := memory.New()
	if err := s.SetShards(ctx, 32); err != nil {
		fmt.Println(err)
		return
	}
	job, err := s.AddJob(ctx, xxljob.Job{App: "billing", Name: "export", Handler: "export", Schedule: xxljob.Manual()}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := s.AddRun(ctx, job.ID, xxljob.Trigger{})
	if err == nil {
		_, err = s.Kill(ctx, run.ID, "not today")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	from := store.DayOf(run.Scheduled)
	found, err := s.Reports(ctx, xxljob.ReportQuery{From: from, To: from.Add(24 * time.Hour), Length: time.Hour, Together: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range found.Reports {
		fmt.Println(r.Length, r.Ended[xxljob.StateSucceeded], r.Ended[xxljob.StateCancelled])
	}
	// Output: 1h0m0s 0 1
}
