package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/store/memory"
)

const token = "only-for-tests"

// start runs the service until stop is called, or the test ends.
func start(t *testing.T, store xxljob.Store, write invoicer) (base string, stop func() error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, ln, store, token, write) }()
	base = "http://" + ln.Addr().String()
	await.Until(t, "the service is ready", func() bool {
		status, body := call(t, "GET", base+"/readyz")
		if status != http.StatusOK && !strings.Contains(body, "not ready") {
			t.Fatalf("readyz: %d %q", status, body)
		}
		return status == http.StatusOK
	})
	return base, func() error { cancel(); return <-done }
}

func TestService(t *testing.T) {
	base, stop := start(t, memory.New(), writeInvoice)
	if status, body := call(t, "POST", base+"/invoices/Ada"); status != http.StatusOK || body != "invoice for Ada\n" {
		t.Errorf("invoice: %d %q", status, body)
	}
	if status, _ := call(t, "GET", base+"/invoices/Ada"); status != http.StatusMethodNotAllowed {
		t.Errorf("wrong method: %d", status)
	}
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
}

// An executor registers below the prefix of the router, and is sent what there is to do.
func TestExecutorElsewhere(t *testing.T) {
	base, stop := start(t, memory.New(), writeInvoice)
	e, err := executor.New(executor.Config{App: warehouse, Addr: "127.0.0.1:0",
		Admins: []executor.AdminCluster{{Addresses: []string{base + "/scheduler"}, Token: token}}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	err = e.Handle("demoJobHandler", func(_ context.Context, task *executor.Task) error {
		select {
		case done <- task.Param:
		default: // a later one of the runs that were asked for
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the executor has registered and works", func() bool {
		if status, body := call(t, "POST", base+"/stocktakes"); status != http.StatusAccepted {
			t.Fatalf("stocktake: %d %q", status, body)
		}
		select {
		case param := <-done:
			return param == "stocktake"
		default:
			return false
		}
	})
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
}

// Requests that wait while the program stops get their answers, that of a run which has not
// begun yet too: the server goes first, and the scheduler after it.
func TestStopAnswersRequests(t *testing.T) {
	store, end := memory.New(), make(chan struct{})
	base, stop := start(t, store, func(ctx context.Context, o order) (string, error) {
		select {
		case <-end:
			return writeInvoice(ctx, o)
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	answers := make(chan string, 2)
	for _, customer := range []string{"Ada", "Bob"} {
		go func() {
			_, body := call(t, "POST", base+"/invoices/"+customer)
			answers <- body
		}()
	}
	await.Until(t, "one run has begun, and one waits for it", func() bool {
		runs, err := store.Runs(t.Context(), xxljob.RunFilter{})
		return err == nil && len(runs) == 2 && runs[0].State != runs[1].State
	})
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	await.Until(t, "no new request is taken", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(end)
	for range 2 {
		if got := <-answers; got != "invoice for Ada\n" && got != "invoice for Bob\n" {
			t.Errorf("an answer: %q", got)
		}
	}
	if err := <-stopped; err != nil {
		t.Errorf("run: %v", err)
	}
}

func call(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(text)
}
