package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
)

// routes is the shop's HTTP API.
func (s *shop) routes(scheduler xxljob.Scheduler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := scheduler.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("PUT /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		o.ID = r.PathValue("id")
		if err := o.check(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch err := s.take(r.Context(), o); {
		case errors.Is(err, errSoldOut):
			http.Error(w, err.Error(), http.StatusConflict)
		case err != nil:
			log.Print(err)
			http.Error(w, "please send the order again", http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		var confirmed bool
		err := s.pool.QueryRow(r.Context(), `select confirmed_at is not null from orders where id = $1`, r.PathValue("id")).Scan(&confirmed)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			http.NotFound(w, r)
		case err != nil:
			log.Print(err)
			http.Error(w, "please ask again", http.StatusServiceUnavailable)
		case confirmed:
			fmt.Fprintln(w, "confirmed")
		default:
			fmt.Fprintln(w, "taken")
		}
	})
	return mux
}
