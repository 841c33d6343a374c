package main

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/xxljob/xxljob"
)

// release is another one for each release of the service, and greater than those before:
// the number of the build, for example, set by the linker.
const release = 1

// order is the parameter of the invoice job.
type order struct {
	Customer string `json:"customer"`
}

// addJobs says which jobs there are and what they do. It returns the one that
// the service itself triggers.
func addJobs(ctx context.Context, s xxljob.Scheduler) (invoice xxljob.Job, err error) {
	err = errors.Join(
		s.Handle("invoice", xxljob.JSON(func(_ context.Context, t *xxljob.Task, o order) error {
			if o.Customer == "" {
				return xxljob.Permanent(errors.New("no customer")) // final: trying again is of no use
			}
			t.SetResult("invoice for " + o.Customer)
			return nil
		})),
		s.Handle("cleanup", func(_ context.Context, t *xxljob.Task) error {
			log.Printf("cleaning up, due at %s", t.ScheduledAt.Format(time.TimeOnly))
			return nil
		}),
	)
	if err != nil {
		return xxljob.Job{}, err
	}
	ensured, err := s.EnsureJobs(ctx, "", []xxljob.Job{ // "" is Config.App
		{Key: "invoice", Name: "Invoice", Handler: "invoice"}, // no schedule: only when triggered
		{Key: "month-invoices", Name: "Invoices of the month", Handler: "invoice", Param: `{"customer":"all"}`, Schedule: xxljob.Cron("0 0 6 1 * ?").In("Europe/Berlin")},
		{Key: "cleanup", Name: "Clean-up", Handler: "cleanup", Schedule: xxljob.FixedRate(10 * time.Second)},
	}, xxljob.EnsureOptions{Prune: true, Generation: release})
	if err != nil {
		return xxljob.Job{}, err
	}
	return ensured[0].Job, nil
}
