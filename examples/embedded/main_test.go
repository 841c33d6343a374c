package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
)

const token = "only-for-tests"

func TestService(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, ln, token) }()
	base := "http://" + ln.Addr().String()

	await.Until(t, "the service is ready", func() bool {
		status, body := call(t, "GET", base+"/readyz")
		if status != http.StatusOK && !strings.Contains(body, "not ready") {
			t.Fatalf("readyz: %d %q", status, body)
		}
		return status == http.StatusOK
	})
	if status, body := call(t, "POST", base+"/invoices/Ada"); status != http.StatusOK || body != "invoice for Ada\n" {
		t.Errorf("invoice: %d %q", status, body)
	}
	if status, body := call(t, "POST", base+"/invoices/%22%7D"); status != http.StatusOK || body != "invoice for \"}\n" {
		t.Errorf("odd name: %d %q", status, body)
	}
	if status, _ := call(t, "GET", base+"/invoices/Ada"); status != http.StatusMethodNotAllowed {
		t.Errorf("wrong method: %d", status)
	}
	stocktake(t, base)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
}

// stocktake has an executor of another process, so to speak, do the warehouse's work.
func stocktake(t *testing.T, base string) {
	t.Helper()
	e, err := executor.New(executor.Config{App: warehouse, Addr: "127.0.0.1:0",
		Admins: []executor.AdminCluster{{Addresses: []string{base + "/xxl-job-admin"}, Token: token}}})
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
}

func call(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
