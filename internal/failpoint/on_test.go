//go:build failpoint && unix

package failpoint

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestMain makes the test binary the program that is to be hit: it hits a place
// again and again, with a line each time.
func TestMain(m *testing.M) {
	if name := os.Getenv("FAILPOINT_TEST_HIT"); name != "" {
		for range 100_000 { // minutes: whoever arms the place has time for it
			Hit(name)
			if _, err := os.Stdout.WriteString("hit\n"); err != nil {
				break // nobody reads any more
			}
			time.Sleep(time.Millisecond)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func program(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), env...)
	return c
}

func TestKillFromEnvironment(t *testing.T) {
	out, err := program(t, "FAILPOINT_TEST_HIT=start.after_commit", envRules+"=start.after_commit:3:kill").Output()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("ended with %v, want SIGKILL", err)
	}
	if n := strings.Count(string(out), "hit"); n != 2 {
		t.Errorf("died at hit %d, want 3", n+1)
	}
}

func TestArmedWhileItRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "points")
	c := program(t, "FAILPOINT_TEST_HIT=take.begin", envFile+"="+file)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("hit\n"))); err != nil { // it runs
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", []byte("take.begin:2:panic"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out) // to its end
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != 2 {
		t.Errorf("ended with %v, want a panic", err)
	}
	hits, err := os.ReadFile(file + ".hits")
	if err != nil || !strings.HasSuffix(string(hits), " take.begin take.begin:2:panic\n") {
		t.Errorf("hits: %q %v", hits, err)
	}
}

func TestBlockUntilReleased(t *testing.T) {
	file := filepath.Join(t.TempDir(), "points")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("beat.begin:1:block")
	points := table{file: file}
	points.once.Do(func() {})
	var released atomic.Bool
	waited := make(chan bool)
	go func() { points.hit("beat.begin"); waited <- released.Load() }()
	for {
		if _, err := os.Stat(file + ".hits"); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	released.Store(true)
	write("")
	if !<-waited {
		t.Fatal("it did not block")
	}
}
