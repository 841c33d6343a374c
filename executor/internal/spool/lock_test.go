package spool

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// lockedDir, in the environment, makes TestLockGoesWithItsProcess the process that
// has a lock.
const lockedDir = "XXLJOB_TEST_LOCKED_DIR"

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func mustLock(t *testing.T, root *os.Root) io.Closer {
	t.Helper()
	lock, err := lockFile(root, lockName)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	return lock
}

func TestLockIsRefusedWhileHeld(t *testing.T) {
	dir := t.TempDir()
	lock := mustLock(t, openRoot(t, dir))
	other := openRoot(t, dir)
	for range 2 { // an attempt that is refused takes nothing from who has it
		if _, err := lockFile(other, lockName); !errors.Is(err, errLocked) {
			t.Errorf("a second lock: %v", err)
		}
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	mustLock(t, other)
	info, err := other.Stat(lockName)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode != 0o600 {
		t.Errorf("the file is %v", mode)
	}
}

func TestLockGoesWithItsProcess(t *testing.T) {
	if dir := os.Getenv(lockedDir); dir != "" {
		mustLock(t, openRoot(t, dir))
		_, _ = os.Stdout.WriteString("\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or the test is over
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), lockedDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	root := openRoot(t, dir)
	if _, err := lockFile(root, lockName); !errors.Is(err, errLocked) {
		t.Errorf("a lock that another process has: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	mustLock(t, root)
}

// A lock is of a file inside the directory that was opened, whatever its path leads to.
func TestLockStaysInTheDirectory(t *testing.T) {
	parent := t.TempDir()
	path := func(name string) string { return filepath.Join(parent, name) }
	mkdir := func(name string) {
		t.Helper()
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mkdir("spool")
	root := openRoot(t, path("spool"))

	if err := os.Symlink(path("elsewhere"), path("spool/link")); err != nil {
		skipOnWindows(t, err) // where links need a right of their own
	}
	if _, err := lockFile(root, "link"); err == nil {
		t.Error("a link out of the directory was followed")
	}
	if _, err := os.Stat(path("elsewhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file outside the directory: %v", err)
	}

	if err := os.Rename(path("spool"), path("moved")); err != nil {
		skipOnWindows(t, err) // where no directory that is open can be moved
	}
	mkdir("spool")
	other := mustLock(t, openRoot(t, path("spool")))
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if _, err := lockFile(root, lockName); err == nil || errors.Is(err, errLocked) {
		t.Errorf("a lock in another directory: %v", err)
	}
	mustLock(t, openRoot(t, path("spool"))) // which has not kept it
}

// BenchmarkLock locks and unlocks, as who starts does for each slot of a dead process.
func BenchmarkLock(b *testing.B) {
	root, err := os.OpenRoot(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	b.ReportAllocs()
	for b.Loop() {
		lock, err := lockFile(root, lockName)
		if err != nil {
			b.Fatal(err)
		}
		if err := lock.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// skipOnWindows ends a test at what Windows alone may refuse; anywhere else it is a failure.
func skipOnWindows(t *testing.T, err error) {
	t.Helper()
	if runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	t.Skipf("SKIPPED: Windows refuses it: %v", err)
}
