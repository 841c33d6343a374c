package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/postgres"
)

// shop takes orders. Its tables and those of the scheduler are in one database, so that one
// transaction can write to both.
type shop struct {
	pool         *pgxpool.Pool
	store        *postgres.Store
	mails        mailer
	confirmation int64 // the id of the job
}

// order is what a customer sends. The id is the customer's choice, so that an order that
// was sent twice is one order.
type order struct {
	ID    string `json:"id"`
	Email string `json:"email"`
	Item  string `json:"item"`
}

// check finds what is wrong with an order, so that it would be of no use to send it again.
func (o order) check() error {
	if len(o.ID) > 100 || o.Email == "" || o.Item == "" {
		return errors.New("want an id of at most 100 bytes, an email and an item")
	}
	return nil
}

// tables are those of the shop, made by one replica at a time. A real one has migrations.
const tables = `
select pg_advisory_xact_lock(20260814);
create table if not exists stock (item text primary key, pieces int not null check (pieces >= 0));
create table if not exists orders (
	id           text primary key,
	email        text not null,
	item         text not null,
	placed_at    timestamptz not null default now(),
	confirmed_at timestamptz
);
insert into stock values ('tea', 1000), ('coffee', 0) on conflict do nothing`

var errSoldOut = errors.New("sold out")

// take takes an order. After an error the customer may send it again: it is the same order,
// and the same confirmation.
func (s *shop) take(ctx context.Context, o order) error {
	// An error here rolls back, so that there is neither the order nor the run.
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.write(ctx, tx, o) })
	if err != nil {
		return fmt.Errorf("order %q: %w", o.ID, err)
	}
	// Whatever happens from here on, the confirmation will be sent. Wake only spares it the
	// wait for the next poll, which is up to a second.
	if err := s.store.Wake(ctx, s.confirmation); err != nil {
		log.Printf("order %q: %v", o.ID, err)
	}
	return nil
}

// write writes the order and plans its confirmation. With database/sql it would call
// TriggerSQLTx.
func (s *shop) write(ctx context.Context, tx pgx.Tx, o order) error {
	tag, err := tx.Exec(ctx, `insert into orders (id, email, item) values ($1, $2, $3) on conflict do nothing`, o.ID, o.Email, o.Item)
	if err != nil {
		return err
	}
	// The key makes it one run for each order, however often the order is sent.
	_, err = s.store.TriggerTx(ctx, tx, s.confirmation, xxljob.Trigger{Param: &o.ID, Key: "confirm-" + o.ID})
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return nil // it was there already, and has its piece
	}
	// Last, since others who buy the same wait from here until the commit.
	tag, err = tx.Exec(ctx, `update stock set pieces = pieces - 1 where item = $1 and pieces > 0`, o.Item)
	if err == nil && tag.RowsAffected() == 0 {
		err = errSoldOut
	}
	return err
}
