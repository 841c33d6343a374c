package registry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// crowded is a store with an app of very many addresses, which takes a while to read them.
type crowded struct {
	store.Store
	mu          sync.Mutex
	reads, most int // guarded by mu: how often they were read, and how often at once
	now         int // guarded by mu
	fails       bool
}

func (*crowded) Group(context.Context, string) (store.Group, error) {
	return store.Group{}, store.ErrNotFound
}

func (c *crowded) Addresses(ctx context.Context, app string, _ time.Duration) ([]store.Registration, error) {
	c.mu.Lock()
	c.reads++
	c.now++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	time.Sleep(100 * time.Millisecond)
	c.mu.Lock()
	c.now--
	fails := c.fails
	c.mu.Unlock()
	if fails {
		return nil, errors.New("away")
	}
	regs := make([]store.Registration, 10)
	for i := range regs {
		regs[i] = store.Registration{App: app, Address: fmt.Sprintf("http://10.0.0.%d:1/", i)}
	}
	return regs, nil
}

// TestAddressesAreReadOnce: of many who ask for the addresses of an app at the same moment, one reads
// them, of those who come meanwhile another one, and they are never in memory twice; others who give up
// wait for nobody, and an error is nobody else's.
func TestAddressesAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &crowded{}
		all := &core.Core{Cfg: core.Config{}.WithDefaults(), Store: st, Logger: slog.New(slog.DiscardHandler), Clock: &core.Clock{}, Leases: &lease.Leases{}}
		b := registry.NewAddresses(all, &registry.AttachedSet{}, nil, nil, nil, registry.NewMemory(time.Minute, loop.NewWake()))
		ask := func(ctx context.Context, asks int) (answers, failed int) {
			var all sync.WaitGroup
			var mu sync.Mutex
			for i := range asks {
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					a, err := b.Ask(ctx, "crowded")
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						failed++
					} else if len(a.Addrs) == 10 {
						answers++
					}
				})
			}
			all.Wait()
			return answers, failed
		}
		if answers, _ := ask(t.Context(), 40); answers != 40 || st.reads > 2 || st.most != 1 {
			t.Errorf("%d answers of 40, %d reads, %d at once", answers, st.reads, st.most)
		}
		b.Memory.ForgetApp("crowded")
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		go func() { _, _ = b.Ask(t.Context(), "crowded") }()
		time.Sleep(time.Millisecond)
		if _, failed := ask(ctx, 3); failed != 3 {
			t.Errorf("%d of 3 have given up", failed)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		st.mu.Lock()
		st.fails, st.reads = true, 0
		st.mu.Unlock()
		if _, failed := ask(t.Context(), 3); failed != 0 || st.reads == 0 {
			t.Errorf("%d failures, %d reads", failed, st.reads) // the last answer serves
		}
	})
}
