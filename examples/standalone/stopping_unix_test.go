//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStoppingBeforeStopped: that it stops is said at once, and before it has stopped, also
// while a file is being read again.
func TestStoppingBeforeStopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.json")
	content := []byte(`[{"key": "a", "name": "a", "handler": "demoJobHandler", "schedule": {"type": "CRON", "conf": "0 0 3 * * ?"}}]`)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, hup, done := &screen{}, make(chan os.Signal), make(chan error, 1)
	go func() { done <- run(ctx, options{jobs: file, zone: time.UTC}, out, hup) }()
	text := read(t, out, done, "state\n") // the head of the table

	// Who opens a pipe waits for its other end.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	hup <- syscall.SIGHUP
	cancel()
	text += read(t, out, done, "# stopp")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	text += out.take()
	stopping, stopped := strings.Index(text, "# stopping: waiting for running handlers\n"), strings.Index(text, "# stopped\n")
	if stopping < 0 || stopped < stopping || !strings.HasSuffix(text, "# stopped\n") {
		t.Errorf("printed\n%s", text)
	}
}
