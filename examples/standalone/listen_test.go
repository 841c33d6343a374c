package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
)

// lines is what the program has printed so far.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// wait returns the first match.
func (l *lines) wait(t *testing.T, pattern string) (match []string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	defer func() {
		if match == nil {
			t.Logf("printed:\n%s", l.text())
		}
	}()
	await.Until(t, "a line like "+pattern, func() bool {
		match = re.FindStringSubmatch(l.text())
		return match != nil
	})
	return match
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// An executor in another process joins the scheduler and runs the jobs of its app.
func TestListen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.json")
	job := `[{"app": "billing", "key": "greet", "name": "greet", "schedule": {"type": "FIX_RATE", "conf": "1"}, "route": "ROUND", "handler": "greet", "param": "Ada"}]`
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out lines
	ended := make(chan error, 1)
	o := options{zone: time.UTC, listen: "127.0.0.1:0", token: "old-one,new-one", jobs: file,
		cluster: xxljob.ClusterConfig{Beat: time.Second, Dead: 5 * time.Second}} // a run is refused once nobody was there for Dead
	go func() { ended <- run(ctx, o, &out, nil) }()
	admin := out.wait(t, `executors register at (\S+)`)[1]

	e, err := executor.New(executor.Config{App: "billing", Addr: "127.0.0.1:0", Beat: time.Second,
		Admins: []executor.AdminCluster{{Addresses: []string{admin}, Token: "new-one"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Handle("greet", func(_ context.Context, task *executor.Task) error { task.SetResult("hello " + task.Param); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(ctx); err != nil {
		t.Fatal(err)
	}
	out.wait(t, `greet .*hello Ada`)
	if err := e.Stop(ctx); err != nil {
		t.Error(err)
	}
	out.wait(t, `greet .*refused`)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Without a token nobody is let in, and the default one of XXL-JOB is none.
func TestListenNeedsAToken(t *testing.T) {
	for token, want := range map[string]string{"": "-insecure", "default_token": "everybody knows", "a,b,c": "at most 2"} {
		err := run(t.Context(), options{zone: time.UTC, listen: "127.0.0.1:0", token: token, runFor: time.Second}, &lines{}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", token, err)
		}
	}
}
