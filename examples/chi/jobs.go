package main

import (
	"context"
	"errors"

	"github.com/xxljob/xxljob"
)

// warehouse is an app whose handlers run in other processes.
const warehouse = "warehouse"

// order is the parameter of the invoice job.
type order struct {
	Customer string `json:"customer"`
}

// invoicer writes the invoice of an order.
type invoicer func(ctx context.Context, o order) (text string, err error)

func writeInvoice(_ context.Context, o order) (string, error) {
	return "invoice for " + o.Customer, nil
}

// jobs are those that the service itself triggers.
type jobs struct{ invoice, stocktake xxljob.Job }

// addJobs says which jobs there are, and what those of this process do.
func addJobs(ctx context.Context, s xxljob.Scheduler, write invoicer) (jobs, error) {
	err := s.Handle("invoice", xxljob.JSON(func(ctx context.Context, t *xxljob.Task, o order) error {
		if o.Customer == "" {
			return xxljob.Permanent(errors.New("no customer")) // trying again is of no use
		}
		text, err := write(ctx, o)
		t.SetResult(text)
		return err
	}))
	if err != nil {
		return jobs{}, err
	}
	invoice, err := s.EnsureJob(ctx, xxljob.Job{Key: "invoice", Name: "Invoice", Handler: "invoice"})
	if err != nil {
		return jobs{}, err
	}
	stocktake, err := s.EnsureJob(ctx, xxljob.Job{
		App: warehouse, Key: "stocktake", Name: "Stocktake",
		Handler: "demoJobHandler", Param: "stocktake", Route: xxljob.RouteRound,
	})
	return jobs{invoice.Job, stocktake.Job}, err
}
