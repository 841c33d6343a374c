// Command embedded is an HTTP service with a scheduler inside: what an existing
// service adds to have jobs.
//
//	go run ./examples/embedded
//	curl -X POST localhost:8080/invoices/Ada
//
// With a token, executors in other processes join it at the same port:
//
//	XXLJOB_TOKEN=secret go run ./examples/embedded
//	XXLJOB_TOKEN=secret go run ./examples/worker -app warehouse -admin http://localhost:8080/xxl-job-admin
//	curl -X POST localhost:8080/stocktakes
//
// The routes are those of net/http; examples/chi is the same service with chi.
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
	if err := run(ctx, ln, os.Getenv("XXLJOB_TOKEN")); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends, then stops everything in good order. The token is that of
// the executors in other processes; without one there are none.
func run(ctx context.Context, ln net.Listener, token string) error {
	cfg := xxljob.Config{App: "shop"}
	if token != "" {
		cfg.HTTP.Tokens = map[string][]string{warehouse: {token}}
	}
	s, err := xxljob.New(memory.New(), cfg)
	if err != nil {
		return err
	}
	invoice, err := addJobs(ctx, s)
	if err != nil {
		return err
	}
	mux := routes(s, invoice)
	if token != "" {
		if err := addWarehouse(ctx, s, mux); err != nil {
			return err
		}
	}
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	// The scheduler outlives the server: requests that wait for a run get their answer.
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
		<-ctx.Done()
		defer stop()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 25*time.Second)
		defer cancel()
		return server.Shutdown(grace)
	})
	return g.Wait()
}
