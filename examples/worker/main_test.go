package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/store/memory"
)

// output is a buffer that several goroutines may write to.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Two workers join a scheduler, share its broadcast, and are gone from it when they stop.
func TestTwoWorkers(t *testing.T) {
	const token = "only-for-tests"
	store := memory.New()
	s, err := xxljob.New(store, xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {token}}}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.AdminHandler()
	if err != nil {
		t.Fatal(err)
	}
	admin := httptest.NewServer(handler)
	defer admin.Close()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(context.Background()) }()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended sync.WaitGroup
	env := func(name string) string { return map[string]string{tokenVariable: token}[name] }
	for range 2 {
		var said output
		cfg, err := parse([]string{"-admin", admin.URL + "/xxl-job-admin", "-addr", "127.0.0.1:0", "-spool", t.TempDir()}, env, &said)
		if err != nil {
			t.Fatal(err, said.String())
		}
		ended.Go(func() {
			if err := run(ctx, cfg, &said); err != nil || !strings.Contains(said.String(), "demoJobHandler") {
				t.Errorf("%v: %s", err, said.String())
			}
		})
	}
	await.Until(t, "both workers are registered", func() bool { return registered(t, store) == 2 })

	job, err := s.AddJob(ctx, xxljob.Job{App: "worker", Key: "all", Name: "All customers", Handler: "shardingJobHandler", Route: xxljob.RouteShardingBroadcast})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.Trigger(ctx, job.ID, xxljob.Trigger{})
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "both parts have succeeded", func() bool {
		parts, err := store.Runs(ctx, xxljob.RunFilter{TriggerID: ids[0], States: []xxljob.State{xxljob.StateSucceeded}})
		return err == nil && len(parts) == 2 && parts[0].HandleMsg != parts[1].HandleMsg && strings.HasSuffix(parts[0].HandleMsg, "50 customers")
	})
	cancel()
	ended.Wait()
	if n := registered(t, store); n != 0 {
		t.Errorf("%d workers are registered after their end", n)
	}
}

func registered(t *testing.T, store xxljob.Store) int {
	regs, err := store.Registrations(context.Background(), xxljob.RegistrationFilter{App: "worker"})
	if err != nil {
		t.Fatal(err)
	}
	return len(regs)
}

// What is missing or too much is said.
func TestFlags(t *testing.T) {
	for args, want := range map[string]string{"": "-admin is missing", "-admin http://a x": `unexpected argument "x"`, "-nonsense": "nonsense"} {
		var said output
		if _, err := parse(strings.Fields(args), func(string) string { return "" }, &said); err == nil || !strings.Contains(said.String(), want) {
			t.Errorf("%q: %v: %s", args, err, said.String())
		}
	}
	if err := run(t.Context(), mustParse(t), &output{}); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("without a token: %v", err)
	}
}

// mustParse is a config without a token.
func mustParse(t *testing.T) executor.Config {
	cfg, err := parse([]string{"-admin", "http://localhost:1/", "-addr", "127.0.0.1:0"}, func(string) string { return "" }, &output{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
