package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/xxljob/xxljob"
)

// routes is the service's HTTP API.
func routes(s xxljob.Scheduler, invoice xxljob.Job) *http.ServeMux {
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
