package wire_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// stuckAdmin is an admin whose registrations wait for a store that hangs.
type stuckAdmin struct {
	*peer
	store chan struct{}
}

func (a stuckAdmin) Registry(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	<-a.store
	return a.ask(ctx, req)
}

// large is a body with blanks behind it, which make it need a slot.
func large(body string) string { return body + strings.Repeat(" ", 64<<10) }

// TestMaxBodies: requests with large bodies over the bound, which is a quarter for a
// caller, wait for others of their kind, and for no others.
func TestMaxBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := stuckAdmin{newPeer(), make(chan struct{})}
		cfg := config(t)
		cfg.MaxBodies = 8
		h := adminHandler(t, a, cfg)
		var waiting sync.WaitGroup
		for range 5 {
			waiting.Go(func() {
				if got := returned(t, post(t, h, "/api/registry", large(registration))); !got.OK() {
					t.Errorf("registry: %+v", got)
				}
			})
		}
		synctest.Wait()
		answered := make(chan wire.Return, 1)
		go func() { answered <- returned(t, post(t, h, "/api/callback", large(`[{"logId":1,"handleCode":200}]`))) }()
		select {
		case got := <-answered:
			if !got.OK() || a.count() != 1 {
				t.Errorf("callback: %+v, asked %v", got, a.asked)
			}
		case <-time.After(time.Minute):
			t.Error("registrations that wait keep a callback out")
		}
		a.store <- struct{}{} // one registration is done, and lets the next one in
		synctest.Wait()
		if n := a.count(); n != 2 {
			t.Errorf("asked %d times", n)
		}
		close(a.store)
		waiting.Wait()
		if n := a.count(); n != 6 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestMaxBodiesOfAKind: no more large bodies than the caller's quarter are served at a
// time, whichever of its names a request goes by.
func TestMaxBodiesOfAKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &busyExecutor{peer: newPeer()}
		cfg := config(t)
		cfg.MaxBodies = 8
		h := executorHandler(t, e, cfg)
		var calls sync.WaitGroup
		for range 3 {
			for _, path := range []string{"/run", "/trigger"} {
				calls.Go(func() { post(t, h, path, large(`{"jobId":1,"logId":2}`)) })
			}
		}
		calls.Wait()
		if e.most != 2 || e.count() != 6 {
			t.Errorf("%d runs at a time, %d in all", e.most, e.count())
		}
	})
}

// busyExecutor counts the runs that it is handed at a time.
type busyExecutor struct {
	*peer
	lock     sync.Mutex
	at, most int
}

func (e *busyExecutor) Run(ctx context.Context, req wire.TriggerRequest) (wire.Return, error) {
	e.lock.Lock()
	e.at++
	e.most = max(e.most, e.at)
	e.lock.Unlock()
	time.Sleep(500 * time.Millisecond)
	e.lock.Lock()
	e.at--
	e.lock.Unlock()
	return e.ask(ctx, req)
}
