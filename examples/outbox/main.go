// Command outbox is a shop that sends a confirmation for each order that it has taken, once,
// and none for an order that it has not: the order and the run that sends its confirmation
// are written in one transaction.
//
//	docker run --rm -p 127.0.0.1:5432:5432 -e POSTGRES_PASSWORD=secret postgres:17
//	DATABASE_URL=postgres://postgres:secret@localhost/postgres go run ./examples/outbox
//	curl -X PUT localhost:8080/orders/4711 -d '{"email": "ada@example.com", "item": "tea"}'
//	curl localhost:8080/orders/4711
//
// Start as many replicas as you like, each with another -addr. Kill one: the others send
// what it has not.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/postgres"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s", ln.Addr())
	err = run(ctx, ln, pool, postgres.Config{AutoMigrate: true}, printer{})
	pool.Close()
	if err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends, then stops everything in good order.
func run(ctx context.Context, ln net.Listener, pool *pgxpool.Pool, cfg postgres.Config, mails mailer) error {
	store, err := postgres.New(ctx, pool, cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := xxljob.New(store, xxljob.Config{App: "shop"})
	if err != nil {
		return err
	}
	shop := &shop{pool: pool, store: store, mails: mails}
	if err := shop.open(ctx, s); err != nil {
		return err
	}
	server := &http.Server{
		Handler:           shop.routes(s),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.Run(ctx) })
	g.Go(func() error {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return server.Shutdown(grace) // beside the scheduler: no request waits for a run
	})
	return g.Wait()
}
