package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
)

// mailer sends mails. It may be asked to send one twice, and drops the second by its id, as
// the services do that send mail.
type mailer interface {
	send(ctx context.Context, m mail) error
}

type mail struct{ id, to, text string }

// printer is a mailer that only says what it would send.
type printer struct{}

func (printer) send(_ context.Context, m mail) error {
	log.Printf("mail %s to %s: %s", m.id, m.to, m.text)
	return nil
}

// open makes the tables and the jobs. All replicas do the same.
func (s *shop) open(ctx context.Context, scheduler xxljob.Scheduler) error {
	if _, err := s.pool.Exec(ctx, tables); err != nil {
		return err
	}
	err := errors.Join(
		scheduler.Handle("confirm", func(ctx context.Context, t *xxljob.Task) error {
			result, err := s.confirm(ctx, t.Param)
			t.SetResult(result)
			return err
		}),
		scheduler.Handle("confirmMissing", s.confirmMissing),
	)
	if err != nil {
		return err
	}
	ensured, err := scheduler.EnsureJobs(ctx, "", []xxljob.Job{ // "" is Config.App
		// No schedule: each order triggers it. A replica does its runs one after the other;
		// the route gives all replicas their part.
		{Key: "confirm", Name: "Confirm an order", Handler: "confirm", Route: xxljob.RouteRound, Timeout: time.Minute},
		// A run that failed, or was interrupted as its process died, is not run again.
		{Key: "confirm-missing", Name: "Confirm what was left over", Handler: "confirmMissing", Schedule: xxljob.FixedDelay(5 * time.Minute)},
	}, xxljob.EnsureOptions{Prune: true})
	if err != nil {
		return err
	}
	s.confirmation = ensured[0].Job.ID
	return nil
}

// confirm sends the confirmation of an order. It may be called any number of times: a mail
// that was sent is not sent again, and if the process dies before that is written down, the
// mailer knows the mail by its id.
func (s *shop) confirm(ctx context.Context, id string) (result string, err error) {
	var email, item string
	var confirmed bool
	err = s.pool.QueryRow(ctx, `select email, item, confirmed_at is not null from orders where id = $1`, id).Scan(&email, &item, &confirmed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", xxljob.Permanent(fmt.Errorf("there is no order %q", id)) // trying again is of no use
	case err != nil:
		return "", err
	case confirmed:
		return "was sent before", nil
	}
	if err := s.mails.send(ctx, mail{id: "confirm-" + id, to: email, text: "thank you for buying " + item}); err != nil {
		return "", fmt.Errorf("confirmation of order %q: %w", id, err)
	}
	_, err = s.pool.Exec(ctx, `update orders set confirmed_at = now() where id = $1 and confirmed_at is null`, id)
	return "sent", err
}

// confirmMissing sends what should have been sent for a while.
func (s *shop) confirmMissing(ctx context.Context, t *xxljob.Task) error {
	rows, err := s.pool.Query(ctx, `select id from orders
		where confirmed_at is null and placed_at < now() - interval '5 minutes' order by placed_at limit 100`)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		_, err := s.confirm(ctx, id)
		errs = append(errs, err)
	}
	t.SetResult(fmt.Sprintf("%d orders", len(ids)))
	return errors.Join(errs...)
}
