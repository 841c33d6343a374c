// Command chi is the service of examples/embedded with a chi router: its own routes have
// middleware that those of executors must not have, and everything stops in good order.
// It is a module of its own, so that the scheduler does not depend on chi.
//
//	cd examples/chi
//	XXLJOB_TOKEN=secret go run .
//	curl -X POST localhost:8080/invoices/Ada
//
// Executors of the app "warehouse" join it at the same port. From the root of the
// repository:
//
//	XXLJOB_TOKEN=secret go run ./examples/worker -app warehouse -admin http://localhost:8080/scheduler
//	curl -X POST localhost:8080/stocktakes
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

	"golang.org/x/sync/errgroup"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s", ln.Addr())
	if err := run(ctx, ln, memory.New(), os.Getenv("XXLJOB_TOKEN"), writeInvoice); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends. The token is that of the warehouse's executors.
func run(ctx context.Context, ln net.Listener, store xxljob.Store, token string, write invoicer) error {
	s, err := xxljob.New(store, xxljob.Config{
		App:  "shop",
		HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{warehouse: {token}}},
	})
	if err != nil {
		return err
	}
	jobs, err := addJobs(ctx, s, write)
	if err != nil {
		return err
	}
	handler, err := routes(s, jobs)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	// In this order: the server takes no new requests and answers those that it has, for
	// which the scheduler has to run; then the scheduler waits for its handlers.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.Run(life) })
	g.Go(func() error {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done() // a signal, or one of the two has failed
		defer stop()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 25*time.Second)
		defer cancel()
		return server.Shutdown(grace)
	})
	return g.Wait()
}
