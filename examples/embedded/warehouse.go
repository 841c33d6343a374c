package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/xxljob/xxljob"
)

// warehouse is an app whose handlers run in other processes.
const warehouse = "warehouse"

// addWarehouse has the executors of that app register at the service's own port, and gives
// them work.
func addWarehouse(ctx context.Context, s xxljob.Scheduler, mux *http.ServeMux) error {
	admin, err := s.AdminHandler()
	if err != nil {
		return err
	}
	mux.Handle("/xxl-job-admin/", admin) // or below any other prefix
	stocktake, err := s.EnsureJob(ctx, xxljob.Job{
		App: warehouse, Key: "stocktake", Name: "Stocktake",
		Handler: "demoJobHandler", Param: "stocktake", Route: xxljob.RouteRound,
	})
	if err != nil {
		return err
	}
	mux.HandleFunc("POST /stocktakes", func(w http.ResponseWriter, r *http.Request) {
		// It may take long: the answer is that it is planned.
		ids, err := s.Trigger(r.Context(), stocktake.Job.ID, xxljob.Trigger{})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "run %d\n", ids[0])
	})
	return nil
}
