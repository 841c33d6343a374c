// Command embedded is an HTTP service with a scheduler inside: what an existing
// service adds to have jobs.
//
//	go run ./examples/embedded
//	curl -X POST localhost:8080/invoices/Ada
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// release is another one for each release of the service, and greater than those before:
// the number of the build, for example, set by the linker.
const release = 1

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
	if err := run(ctx, ln); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends, then stops everything in good order.
func run(ctx context.Context, ln net.Listener) error {
	s, err := xxljob.New(memory.New(), xxljob.Config{App: "shop"})
	if err != nil {
		return err
	}
	invoice, err := addJobs(ctx, s)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           routes(s, invoice),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
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
		return server.Shutdown(grace)
	})
	return g.Wait()
}

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

// routes is the service's HTTP API.
func routes(s xxljob.Scheduler, invoice xxljob.Job) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("POST /invoices/{customer}", func(w http.ResponseWriter, r *http.Request) {
		run, err := runNow(r.Context(), s, invoice.ID, order{Customer: r.PathValue("customer")})
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case run.Err() != nil:
			http.Error(w, run.Err().Error(), http.StatusInternalServerError)
		default:
			fmt.Fprintln(w, run.HandleMsg)
		}
	})
	return mux
}

// runNow triggers the job and waits for its result.
func runNow(ctx context.Context, s xxljob.Scheduler, jobID int64, param any) (xxljob.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	text, err := json.Marshal(param)
	if err != nil {
		return xxljob.Run{}, err
	}
	p := string(text)
	ids, err := s.Trigger(ctx, jobID, xxljob.Trigger{Param: &p})
	if err != nil {
		return xxljob.Run{}, err
	}
	return s.Wait(ctx, ids[0])
}
