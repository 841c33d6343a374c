package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/xxljob/xxljob"
)

// routes is what the service answers: its own API, and the calls of executors.
func routes(s xxljob.Scheduler, j jobs) (http.Handler, error) {
	admin, err := s.AdminHandler()
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Use(middleware.Recoverer)
	// Executors register and report here. The handler knows who may, how large a body is
	// and how long it takes, so no middleware of ours is above it that limits these, and
	// requests that wait for an invoice must not keep results out.
	r.Mount("/scheduler", admin)
	r.Get("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	r.Group(func(r chi.Router) {
		r.Use(middleware.RequestID, middleware.Logger, middleware.Throttle(100))
		r.Post("/invoices/{customer}", func(w http.ResponseWriter, r *http.Request) {
			run, err := runNow(r.Context(), s, j.invoice.ID, order{Customer: chi.URLParam(r, "customer")})
			switch {
			case err != nil:
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			case run.Err() != nil:
				http.Error(w, run.Err().Error(), http.StatusInternalServerError)
			default:
				fmt.Fprintln(w, run.HandleMsg)
			}
		})
		r.Post("/stocktakes", func(w http.ResponseWriter, r *http.Request) {
			// It may take long: the answer is that it is planned.
			ids, err := s.Trigger(r.Context(), j.stocktake.ID, xxljob.Trigger{})
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, "run %d\n", ids[0])
		})
	})
	return r, nil
}

// runNow triggers the job and waits for its result, for less time than the server has to
// shut down.
func runNow(ctx context.Context, s xxljob.Scheduler, jobID int64, param any) (xxljob.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
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
