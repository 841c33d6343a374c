// Package shop is the work of a service. It is the same whoever schedules it.
package shop

import (
	"context"
	"time"
)

// Shop does the work, or pretends to.
type Shop struct {
	// Say is told what happens.
	Say func(what string)
	// PricesTake and InvoicesTake are how long these jobs take.
	PricesTake, InvoicesTake time.Duration
}

// Poll asks for new orders.
func (s *Shop) Poll(ctx context.Context) error { return s.work(ctx, "poll", 0) }

// Prices fetches all prices. If it is late, the next time will do.
func (s *Shop) Prices(ctx context.Context) error { return s.work(ctx, "prices", s.PricesTake) }

// Invoices writes invoices. Each time counts, and two at once would write them twice.
func (s *Shop) Invoices(ctx context.Context) error { return s.work(ctx, "invoices", s.InvoicesTake) }

// CleanUp removes what is old.
func (s *Shop) CleanUp(ctx context.Context) error { return s.work(ctx, "clean-up", 0) }

// Report writes the report of a working day.
func (s *Shop) Report(ctx context.Context) error { return s.work(ctx, "report", 0) }

// Import has a bug.
func (s *Shop) Import(context.Context) error {
	s.Say("import begins")
	panic("there is a bug")
}

func (s *Shop) work(ctx context.Context, name string, d time.Duration) error {
	s.Say(name + " begins")
	if d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.Say(name + " ends")
	return nil
}
