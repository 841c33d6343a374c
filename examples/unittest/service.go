// Package unittest is a small service with one job, there for its tests: they
// show how jobs are tested. Read service_test.go.
package unittest

import (
	"context"
	"errors"
	"fmt"

	"github.com/xxljob/xxljob"
)

// Ledger is what the service works on.
type Ledger interface {
	// Balance sums up a month's entries, in cents.
	Balance(ctx context.Context, year, month int) (int64, error)
}

// ErrClosed is returned by a Ledger that will never answer again.
var ErrClosed = errors.New("the ledger is closed")

// Service closes the books.
type Service struct{ Ledger Ledger }

// MonthEnd runs at 23:30 on the last day of each month, in Berlin.
func (s *Service) MonthEnd() xxljob.Job {
	return xxljob.Job{
		Key:      "month-end",
		Name:     "Month end",
		Handler:  "closeMonth",
		Schedule: xxljob.Cron("0 30 23 L * ?").In("Europe/Berlin"),
	}
}

// CloseMonth is the handler of MonthEnd.
func (s *Service) CloseMonth(ctx context.Context, t *xxljob.Task) error {
	// The instant the run stands for says which month it is: the clock may be
	// past midnight when the run is late, or tried again.
	year, month, _ := t.ScheduledAt.Date()
	t.Log().Info("closing", "year", year, "month", int(month))

	cents, err := s.Ledger.Balance(ctx, year, int(month))
	if errors.Is(err, ErrClosed) {
		return xxljob.Permanent(err) // trying again is of no use
	}
	if err != nil {
		return fmt.Errorf("balance of %d-%02d: %w", year, month, err)
	}
	t.SetResult(fmt.Sprintf("%d-%02d closed with %d.%02d", year, month, cents/100, cents%100))
	return nil
}
