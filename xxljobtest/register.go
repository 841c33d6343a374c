package xxljobtest

import (
	"context"
	"net/http"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// heartbeat is the time between two registrations.
const heartbeat = 30 * time.Second

// Register registers the executor with a scheduler, given the handler of its admin side, and
// repeats that every 30 s until Unregister or Close. Results go to the same handler. The test
// fails if the registration is refused. Registering with another scheduler ends the heartbeats
// to the first.
func (e *Executor) Register(admin http.Handler) {
	e.t.Helper()
	e.ReportTo(admin)
	if !e.begin() {
		e.t.Fatalf("xxljobtest: executor of app %q: Register: the executor is closed", e.o.App)
	}
	defer e.work.Done()
	if err := e.registry(e.t.Context(), "registry"); err != nil {
		e.t.Fatalf("xxljobtest: executor of app %q: Register: %v", e.o.App, err)
	}
	e.beat()
}

// Unregister removes the registration and ends the heartbeats. The executor goes on serving
// and reporting, as XXL-JOB's executors do while they stop.
func (e *Executor) Unregister() {
	e.t.Helper()
	e.stopBeating()
	if !e.begin() {
		e.t.Fatalf("xxljobtest: executor of app %q: Unregister: the executor is closed", e.o.App)
	}
	defer e.work.Done()
	if err := e.registry(e.t.Context(), "registryRemove"); err != nil {
		e.t.Fatalf("xxljobtest: executor of app %q: Unregister: %v", e.o.App, err)
	}
}

// registry sends a registration, or the end of one.
func (e *Executor) registry(ctx context.Context, endpoint string) error {
	req := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: e.o.App, RegistryValue: e.o.Address}
	return e.post(ctx, endpoint, e.o.Generation.encode(req))
}

// beat starts the heartbeats.
func (e *Executor) beat() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.beating != nil || e.closed {
		return
	}
	ctx, cancel := context.WithCancel(e.ctx)
	done := make(chan struct{})
	e.beating = func() { cancel(); <-done }
	e.work.Add(1)
	go func() { // Close waits for it, and stopBeating
		defer e.work.Done()
		defer close(done)
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := e.registry(ctx, "registry"); err != nil && ctx.Err() == nil {
				e.logf("heartbeat: %v", err)
			}
		}
	}()
}

// stopBeating ends the heartbeats and waits for one that is under way.
func (e *Executor) stopBeating() {
	e.mu.Lock()
	stop := e.beating
	e.beating = nil
	e.mu.Unlock()
	if stop != nil {
		stop()
	}
}
