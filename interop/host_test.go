package interop_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

// host is a program with a scheduler in it, whose side of the protocol is mounted in
// a server of the program's own.
type host struct {
	xxljob.Scheduler
	*front
	store xxljob.Store
	log   *slog.Logger
	nodes int // schedulers so far
}

func newHost(t *testing.T, store xxljob.Store) *host {
	t.Helper()
	out := &output{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the scheduler:\n%s", out)
		}
	})
	h := &host{store: store, log: slog.New(slog.NewTextHandler(out, nil))}
	h.next(t)
	api, err := h.Handler()
	if err != nil {
		t.Fatal(err)
	}
	h.front = newFront(t, api)
	t.Cleanup(func() { h.end(t) })
	return h
}

// next starts another scheduler on the store.
func (h *host) next(t *testing.T) {
	t.Helper()
	h.nodes++
	s, err := xxljob.New(h.store, xxljob.Config{
		App: "host", Node: fmt.Sprintf("node-%d", h.nodes), Logger: h.log, AllowSubSecond: true,
		Tokens:  map[string][]string{theApp: {theToken}},
		JobsAPI: []string{theApp}, JobsAPIScripts: []string{theApp},
	})
	if err == nil {
		err = s.Start(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	h.Scheduler = s
}

// end stops the scheduler, which waits for no run elsewhere.
func (h *host) end(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}
