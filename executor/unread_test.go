package executor_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
)

// spooled makes an executor with three results in files, whose admin is away. Its log
// is kept.
func spooled(t *testing.T, dir string, log io.Writer) (*executor.Executor, *node) {
	t.Helper()
	n := newNode()
	n.set(true)
	e := spooling(t, dir, n, executor.Config{Outbox: 3, Logger: slog.New(slog.NewTextHandler(log, nil))})
	mustGive(t, e, "one", req(100, 100)) // under way, in memory, while the admin is away
	synctest.Wait()
	for id := int64(1); id <= 2; id++ {
		mustGive(t, e, "one", req(id, id))
		synctest.Wait()
		time.Sleep(time.Second)
	}
	return e, n
}

// TestSpoolUnreadForAWhile: files that cannot be opened or read at a moment are whole:
// they are delivered later, in their order.
func TestSpoolUnreadForAWhile(t *testing.T) {
	for _, fails := range []error{syscall.EMFILE, syscall.EIO, syscall.EACCES} {
		for _, op := range []string{"open", "read"} {
			t.Run(fmt.Sprint(op, " ", fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { unreadForAWhile(t, op, fails) })
			})
		}
	}
}

func unreadForAWhile(t *testing.T, fails string, err error) {
	dir := t.TempDir()
	var logged bytes.Buffer
	e, n := spooled(t, dir, &logged)
	var broken atomic.Bool
	var tries atomic.Int64
	e.BreakReads(func(op, _ string) error {
		if broken.Load() && op == fails {
			tries.Add(1)
			return err
		}
		return nil
	})
	broken.Store(true)
	n.set(false)
	time.Sleep(time.Minute)
	if got := n.ids(); !slices.Equal(got, []int64{100}) || len(spoolFiles(t, dir)) != 2 {
		t.Errorf("results of %v, files %q", got, spoolFiles(t, dir))
	}
	if most := int64(2 * 25); tries.Load() > most { // 50 ms, doubled, up to 5 s
		t.Errorf("%d attempts within a minute, want at most %d", tries.Load(), most)
	}
	mustGive(t, e, "one", req(3, 3)) // it still counts what it owes
	wantRefused(t, give(t, e, "one", req(4, 4)), "executor is full: 3 results are running or wait for the admin.")
	time.Sleep(time.Minute)
	broken.Store(false)
	time.Sleep(10 * time.Second)
	if got := n.ids(); !slices.Equal(got, []int64{100, 1, 2, 3}) || len(spoolFiles(t, dir)) != 0 {
		t.Errorf("then results of %v, files %q", got, spoolFiles(t, dir))
	}
	if a, b := strings.Count(logged.String(), "could not read results in the spool; retrying"), strings.Count(logged.String(), "reading the spool has recovered"); a != 1 || b != 1 {
		t.Errorf("logged:\n%s", logged.String())
	}
}

// TestSpoolUnreadAlone: a file on a bad sector does not keep the others.
func TestSpoolUnreadAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var logged bytes.Buffer
		e, n := spooled(t, dir, &logged)
		bad := filepath.Base(spoolFiles(t, dir)[1])
		e.BreakReads(func(op, file string) error {
			if filepath.Base(file) == bad {
				return syscall.EIO
			}
			return nil
		})
		n.set(false)
		for id := int64(3); id <= 6; id++ {
			time.Sleep(time.Minute)
			mustGive(t, e, "one", req(id, id))
		}
		time.Sleep(time.Minute)
		if got := n.ids(); !slices.Equal(got, []int64{100, 2, 3, 4, 5, 6}) || len(spoolFiles(t, dir)) != 1 {
			t.Errorf("results of %v, files %q", got, spoolFiles(t, dir))
		}
		if n := strings.Count(logged.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d errors logged:\n%s", n, logged.String())
		}
		if err := e.Stop(within(t, time.Second)); err != nil { // it is there for the next process
			t.Errorf("Stop: %v", err)
		}
		spooling(t, dir, n, executor.Config{})
		synctest.Wait()
		if got := n.ids(); len(got) != 7 || got[6] != 1 {
			t.Errorf("then results of %v", got)
		}
	})
}

// TestSpoolGone: of a file that somebody has removed nothing can be had any more.
func TestSpoolGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e, n := spooled(t, dir, io.Discard)
		if err := os.Remove(spoolFiles(t, dir)[1]); err != nil {
			t.Fatal(err)
		}
		n.set(false)
		time.Sleep(time.Minute)
		if got := n.ids(); !slices.Equal(got, []int64{100, 2}) {
			t.Errorf("results of %v", got)
		}
		n.set(true)
		for id := int64(3); id <= 5; id++ { // it is not owed
			mustGive(t, e, "one", req(id, id))
		}
	})
}

// TestSpoolTooLong: a file that is longer than any of ours is set aside, and not read
// again.
func TestSpoolTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		_, n := spooled(t, dir, io.Discard)
		if err := os.Truncate(spoolFiles(t, dir)[1], 17<<20); err != nil {
			t.Fatal(err)
		}
		n.set(false)
		time.Sleep(time.Minute)
		left := spoolFiles(t, dir)
		if got := n.ids(); !slices.Equal(got, []int64{100, 2}) || len(left) != 1 || !strings.HasSuffix(left[0], ".bad") {
			t.Errorf("results of %v, files %q", got, left)
		}
	})
}
