package postgres_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/postgres"
)

// Every replica of a service does the same. (serve is in the README and
// in docs/postgres.md, see readme_test.go.)
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx); err != nil {
		log.Println(err)
	}
}

func serve(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL")) // yours: the store does not close it
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := postgres.New(ctx, pool, postgres.Config{AutoMigrate: true})
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := xxljob.New(store, xxljob.Config{App: "orders"})
	if err != nil {
		return err
	}
	if err := s.Handle("expire", expireOrders); err != nil {
		return err
	}
	if _, err := s.EnsureJob(ctx, xxljob.Job{Key: "expire", Name: "Expire orders", Handler: "expire", Schedule: xxljob.Crontab("*/10 * * * *")}); err != nil {
		return err
	}
	return s.Run(ctx)
}

// The pool of a host gives connections to the primary only. (writable is in docs/postgres.md.)
func ExampleNew() {
	pool, err := writable(context.Background(), "postgres://app@db1,db2/orders?target_session_attrs=read-write")
	if err != nil {
		log.Println(err)
		return
	}
	defer pool.Close()
}

func writable(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn) // postgres://app@db1,db2/orders?target_session_attrs=read-write
	if err != nil {
		return nil, err
	}
	cfg.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		var standby bool
		err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby)
		return err == nil && !standby, nil // false closes it, and the pool gives another one
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

func expireOrders(_ context.Context, t *xxljob.Task) error {
	t.Log().Info("expiring", "due", t.ScheduledAt)
	return nil
}

// The order is paid and its invoice will be written, or neither. (pay is in
// docs/postgres.md.)
func ExampleStore_TriggerTx() {
	var pool *pgxpool.Pool    // from pgxpool.New
	var store *postgres.Store // from postgres.New
	var invoice xxljob.Job    // from EnsureJob
	if pool == nil {
		return
	}
	if err := pay(context.Background(), pool, store, invoice.ID, 4711); err != nil {
		log.Println(err)
	}
}

func pay(ctx context.Context, pool *pgxpool.Pool, store *postgres.Store, invoiceJob, order int64) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) // nothing, after the commit
	if _, err := tx.Exec(ctx, "UPDATE orders SET state = 'paid' WHERE id = $1", order); err != nil {
		return err
	}
	param := fmt.Sprint(order)
	if _, err := store.TriggerTx(ctx, tx, invoiceJob, xxljob.Trigger{Param: &param, Key: "invoice-" + param}); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if err := store.Wake(ctx, invoiceJob); err != nil { // the run is planned all the same
		log.Println(err)
	}
	return nil
}
