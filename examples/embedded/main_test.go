package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestService(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, ln) }()
	base := "http://" + ln.Addr().String()

	for {
		status, body := call(t, "GET", base+"/readyz")
		if status == http.StatusOK {
			break
		}
		if !strings.Contains(body, "not ready") {
			t.Fatalf("readyz: %d %q", status, body)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if status, body := call(t, "POST", base+"/invoices/Ada"); status != http.StatusOK || body != "invoice for Ada\n" {
		t.Errorf("invoice: %d %q", status, body)
	}
	if status, body := call(t, "POST", base+"/invoices/%22%7D"); status != http.StatusOK || body != "invoice for \"}\n" {
		t.Errorf("odd name: %d %q", status, body)
	}
	if status, _ := call(t, "GET", base+"/invoices/Ada"); status != http.StatusMethodNotAllowed {
		t.Errorf("wrong method: %d", status)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
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
