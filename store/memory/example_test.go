package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// A Scheduler calls SetShards; a program that uses a store by itself does too.
func Example() {
	ctx := context.Background()
	store := memory.New(memory.Retain(100, 1000))
	if err := store.SetShards(ctx, 32); err != nil {
		fmt.Println(err)
		return
	}
	job, err := store.AddJob(ctx, xxljob.Job{
		App: "billing", Key: "report", Name: "nightly report", Handler: "report",
		Schedule: xxljob.Cron("0 0 3 * * ?"),
		Next:     time.Date(2030, 1, 1, 3, 0, 0, 0, time.UTC),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err = store.Job(ctx, job.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := store.JobByKey(ctx, "billing", "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(again.ID == job.ID, job.Name, job.Schedule, job.Next)
	// Output: true nightly report CRON 0 0 3 * * ? 2030-01-01 03:00:00 +0000 UTC
}
