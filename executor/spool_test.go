package executor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/xxljob/xxljob/wire"
)

// spoolFiles lists the files below a spool directory with their modes, but for
// locks.
func spoolFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir || d.Name() == "lock" {
			return err
		}
		info, err := d.Info()
		if want := fs.FileMode(0o600); err == nil && (!d.IsDir() && info.Mode().Perm() != want || d.IsDir() && info.Mode().Perm() != 0o700) {
			t.Errorf("%s is %v", p, info.Mode())
		}
		if !d.IsDir() {
			names = append(names, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// spooling makes a started executor for one node, with a spool.
func spooling(t *testing.T, dir string, n *node, cfg executor.Config) *executor.Executor {
	t.Helper()
	a := admins{}
	cfg.SpoolDir, cfg.Admins = dir, []executor.AdminCluster{a.cluster("one", n)}
	e := over(t, a, cfg)
	handle(t, e, "h", func(_ context.Context, task *executor.Task) error { task.SetResult(task.Param); return nil })
	start(t, e)
	return e
}

// die is the death of a process: nothing more goes to the disk or to its admin.
func die(e *executor.Executor, n *node) {
	n.set(true)
	e.Crash()
}

func TestSpoolSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := newNode()
		first.set(true)
		e := spooling(t, dir, first, executor.Config{})
		for id := range int64(5) {
			r := req(id+1, id+1)
			r.LogDateTime = 1000 + id
			r.ExecutorParams = "of run \"" + fmt.Sprint(id+1) + "\""
			mustGive(t, e, "one", r)
			synctest.Wait()
			time.Sleep(time.Second)
		}
		if n := len(spoolFiles(t, dir)); n != 5 {
			t.Fatalf("%d files", n)
		}
		die(e, first)

		second := newNode()
		spooling(t, dir, second, executor.Config{})
		synctest.Wait()
		if got := second.ids(); !slices.Equal(got, []int64{1, 2, 3, 4, 5}) {
			t.Errorf("results of %v, want the oldest first", got)
		}
		want := wire.CallbackRequest{LogID: 2, LogDateTim: 1001, HandleCode: 200, HandleMsg: `of run "2"`, Exact: true}
		if got := second.result(t, 2); got != want {
			t.Errorf("result %+v, want %+v", got, want)
		}
		if second.calls != 1 {
			t.Errorf("%d callbacks for five small files", second.calls)
		}
		if left := spoolFiles(t, dir); len(left) != 0 {
			t.Errorf("files left: %q", left)
		}
	})
}

// A result is on the disk before the admin is first asked to take it.
func TestSpoolBeforeFirstAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := newNode()
		var had int
		n.answer = func([]wire.CallbackRequest) (wire.Return, error) {
			had = len(spoolFiles(t, dir))
			return wire.Success(), nil
		}
		e := spooling(t, dir, n, executor.Config{})
		mustGive(t, e, "one", req(1, 1))
		synctest.Wait()
		if had != 1 || len(n.ids()) != 1 || len(spoolFiles(t, dir)) != 0 {
			t.Errorf("%d files at the callback, results %v, files after it %q", had, n.ids(), spoolFiles(t, dir))
		}
	})
}

// What is not delivered at Stop is on the disk: it is no error, and not lost.
func TestSpoolAtStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := newNode()
		n.set(true)
		e := spooling(t, dir, n, executor.Config{})
		mustGive(t, e, "one", req(1, 1))
		if err := e.Stop(within(t, time.Second)); err != nil {
			t.Errorf("Stop: %v", err)
		}
		n.set(false)
		spooling(t, dir, n, executor.Config{})
		synctest.Wait()
		if got := n.ids(); !slices.Equal(got, []int64{1}) {
			t.Errorf("results %v", got)
		}
	})
}

func TestSpoolSetsGarbageAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := newNode()
		first.set(true)
		e := spooling(t, dir, first, executor.Config{})
		for id := range int64(4) {
			mustGive(t, e, "one", req(id+1, id+1))
			synctest.Wait()
			time.Sleep(time.Second)
		}
		die(e, first)
		files := spoolFiles(t, dir)
		slot := filepath.Dir(files[0])
		whole, err := os.ReadFile(files[1])
		if err != nil {
			t.Fatal(err)
		}
		write := func(name string, b []byte) {
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(files[1], whole[:len(whole)/2]) // torn
		write(files[2], nil)
		write(filepath.Join(slot, "garbage.json"), []byte("\x00\x01"))
		write(filepath.Join(slot, "unfinished.json.tmp"), whole)

		var logged sharedLines
		second := newNode()
		e = spooling(t, dir, second, executor.Config{Outbox: 2, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		synctest.Wait()
		if got := second.ids(); !slices.Equal(got, []int64{1, 4}) {
			t.Errorf("results of %v, want those that can be read", got)
		}
		left := spoolFiles(t, dir)
		if len(left) != 3 || slices.ContainsFunc(left, func(n string) bool { return !strings.HasSuffix(n, ".json.bad") }) {
			t.Errorf("files left: %q", left)
		}
		if n := strings.Count(logged.String(), "level=ERROR"); n != 3 {
			t.Errorf("%d errors logged:\n%s", n, logged.String())
		}
		mustGive(t, e, "one", req(9, 9)) // and it goes on
		synctest.Wait()
		stop(t, e)
		spooling(t, dir, second, executor.Config{}) // what was set aside stays there
		synctest.Wait()
		if got := second.ids(); !slices.Equal(got, []int64{1, 4, 9}) || len(spoolFiles(t, dir)) != 3 {
			t.Errorf("then results of %v, files %q", got, spoolFiles(t, dir))
		}
	})
}

// A full disk is logged once; results stay in memory, are delivered, and go to the
// disk again when there is room.
func TestSpoolDiskFull(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		t.Run(op, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { diskFull(t, op) }) })
	}
}

func diskFull(t *testing.T, fails string) {
	dir := t.TempDir()
	var logged sharedLines
	n := newNode()
	n.set(true)
	e := spooling(t, dir, n, executor.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	var full atomic.Bool
	e.BreakDisk(func(op string) error {
		if full.Load() && op == fails {
			return syscall.ENOSPC
		}
		return nil
	})
	full.Store(true)
	for id := range int64(3) {
		mustGive(t, e, "one", req(id+1, id+1))
		synctest.Wait()
	}
	if files := spoolFiles(t, dir); len(files) != 0 || e.InMemory() != 3 {
		t.Errorf("files %q, %d results in memory", files, e.InMemory())
	}
	full.Store(false)
	mustGive(t, e, "one", req(4, 4))
	synctest.Wait()
	if files := spoolFiles(t, dir); len(files) != 1 {
		t.Errorf("files %q", files)
	}
	n.set(false)
	time.Sleep(time.Minute)
	synctest.Wait()
	if got := n.ids(); !slices.Equal(got, []int64{1, 2, 3, 4}) {
		t.Errorf("results %v", got)
	}
	if a, b := strings.Count(logged.String(), "keeping them in memory"), strings.Count(logged.String(), "to the spool has recovered"); a != 1 || b != 1 {
		t.Errorf("logged:\n%s", logged.String())
	}
	if files := spoolFiles(t, dir); len(files) != 0 || e.InMemory() != 0 {
		t.Errorf("files %q, %d results in memory", files, e.InMemory())
	}
}

// At the very end, results in memory have one more chance to get to the disk; those
// that have not are lost, and Stop says so.
func TestSpoolDiskFullAtStop(t *testing.T) {
	for _, recovers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			n := newNode()
			n.set(true)
			e := spooling(t, dir, n, executor.Config{})
			var fail atomic.Bool
			e.BreakDisk(func(string) error {
				if fail.Load() {
					return errors.New("disk on fire")
				}
				return nil
			})
			fail.Store(true)
			mustGive(t, e, "one", req(1, 1))
			mustGive(t, e, "one", req(2, 2))
			synctest.Wait()
			fail.Store(!recovers)
			err := e.Stop(within(t, time.Second))
			if recovers && err != nil || !recovers && (err == nil || !strings.Contains(err.Error(), "2 results were not delivered")) {
				t.Errorf("recovers: %v, Stop: %v", recovers, err)
			}
			n.set(false)
			spooling(t, dir, n, executor.Config{})
			synctest.Wait()
			if got := n.ids(); recovers && len(got) != 2 || !recovers && got != nil {
				t.Errorf("recovers: %v, results %v", recovers, got)
			}
		})
	}
}

func TestSpoolBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := newNode()
		n.set(true)
		e := spooling(t, dir, n, executor.Config{SpoolBytes: 3 * 4096})
		for id := range int64(3) {
			mustGive(t, e, "one", req(id+1, id+1))
			synctest.Wait()
		}
		const words = "executor is full: 12288 bytes of results wait on disk for the admin."
		wantRefused(t, give(t, e, "one", req(4, 4)), words)
		mustSend(t, e, req(4, 4)) // of another admin
		die(e, n)
		n = newNode()
		n.set(true)
		e = spooling(t, dir, n, executor.Config{SpoolBytes: 3 * 4096}) // what is left counts
		wantRefused(t, give(t, e, "one", req(5, 5)), words)
		n.set(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		mustGive(t, e, "one", req(5, 5))
		synctest.Wait()
		if got := n.ids(); !slices.Equal(got, []int64{1, 2, 3, 5}) {
			t.Errorf("results %v", got)
		}
	})
}

// An admin that is away for hours costs disk, not memory.
func TestSpoolBoundsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := newNode()
		n.set(true)
		e := spooling(t, dir, n, executor.Config{})
		const runs = 300
		for id := range int64(runs) {
			mustGive(t, e, "one", req(id+1, id+1))
			if id%10 == 9 {
				synctest.Wait()
				if n := e.InMemory(); n != 0 {
					t.Fatalf("%d results in memory", n)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
			}
		}
		n.set(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := n.ids(); len(got) != runs || n.result(t, runs).LogID != runs {
			t.Errorf("%d results", len(got))
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, size := range n.batches {
			if size > 50 {
				t.Errorf("a batch of %d", size)
			}
		}
		if most := runs/50 + 3; len(n.batches) > most {
			t.Errorf("%d batches, want at most %d", len(n.batches), most)
		}
	})
}

// Two processes share a directory. What one leaves when it dies goes to the other,
// while it runs.
func TestSpoolShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		dead, alive := newNode(), newNode()
		dead.set(true)
		first := spooling(t, dir, dead, executor.Config{})
		second := spooling(t, dir, alive, executor.Config{})
		for id := range int64(3) {
			mustGive(t, first, "one", req(id+1, id+1))
			mustGive(t, second, "one", req(id+11, id+11))
			synctest.Wait()
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if got := alive.ids(); !slices.Equal(got, []int64{11, 12, 13}) {
			t.Errorf("results %v of the living, whose neighbour is alive too", got)
		}
		die(first, dead)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := alive.ids(); !slices.Equal(got, []int64{11, 12, 13, 1, 2, 3}) {
			t.Errorf("results %v, want those of the dead too", got)
		}
		if left := spoolFiles(t, dir); len(left) != 0 {
			t.Errorf("files left: %q", left)
		}
	})
}

// A file that is broken while its process lives does not count for ever.
func TestSpoolBrokenFileIsNotOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := newNode()
		n.set(true)
		e := spooling(t, dir, n, executor.Config{Outbox: 2})
		for id := range int64(2) { // the first one is under way, the second waits
			mustGive(t, e, "one", req(id+1, id+1))
			synctest.Wait()
			time.Sleep(time.Second)
		}
		if err := os.WriteFile(spoolFiles(t, dir)[1], []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		n.set(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := n.ids(); !slices.Equal(got, []int64{1}) {
			t.Errorf("results %v", got)
		}
		n.set(true)
		mustGive(t, e, "one", req(3, 3))
		mustGive(t, e, "one", req(4, 4))
	})
}

// A disk that is slow at the end is waited for, and the admin is not asked again.
func TestSpoolSlowDiskAtStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := newNode()
		n.set(true)
		e := spooling(t, dir, n, executor.Config{})
		mustGive(t, e, "one", req(1, 1))
		synctest.Wait()
		e.BreakDisk(func(op string) error {
			if op == "sync" {
				time.Sleep(5 * time.Second)
			}
			return nil
		})
		mustGive(t, e, "one", req(2, 2))
		began := time.Now()
		var calls atomic.Int64
		go func() {
			time.Sleep(2 * time.Second)
			n.admin.mu.Lock()
			defer n.admin.mu.Unlock()
			calls.Store(int64(n.calls))
		}()
		if err := e.Stop(within(t, time.Second)); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if d := time.Since(began); d != 5*time.Second || int64(n.calls) != calls.Load() {
			t.Errorf("Stop took %v, %d callbacks, want %d and none after giving up", d, n.calls, calls.Load())
		}
		if files := spoolFiles(t, dir); len(files) != 2 {
			t.Errorf("files %q", files)
		}
	})
}

func TestSpoolDirErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		a := admins{}
		n := newNode()
		e := over(t, a, executor.Config{SpoolDir: file, Admins: []executor.AdminCluster{a.cluster("one", n)}})
		if err := e.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "Config.SpoolDir") {
			t.Errorf("a file for a directory: %v", err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		start(t, e)
	})
}

// Without a spool, and before Start, nothing is written.
func TestNoSpoolNoFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		t.Chdir(dir)
		n := newNode()
		n.set(true)
		e := spooling(t, "", n, executor.Config{})
		mustGive(t, e, "one", req(1, 1))
		synctest.Wait()
		mustGive(t, e, "one", req(2, 2))
		synctest.Wait()
		if files := spoolFiles(t, dir); len(files) != 0 {
			t.Errorf("files %q", files)
		}
		n.set(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := n.ids(); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("results %v", got)
		}
	})
}

// Batches for clusters hold 50 results, and about 1 MiB, wherever they are kept.
func TestClusterBatches(t *testing.T) {
	for _, kept := range []string{"in memory", "on the disk", "on a disk that fails"} {
		t.Run(kept, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				if kept == "in memory" {
					dir = ""
				}
				clusterBatches(t, dir, kept == "on a disk that fails")
			})
		})
	}
}

func clusterBatches(t *testing.T, dir string, fails bool) {
	n := newNode()
	n.set(true)
	var sizes []int
	n.answer = func(batch []wire.CallbackRequest) (wire.Return, error) {
		ret, err := n.state()
		if err == nil {
			sizes = append(sizes, len(wire.EncodeCallback(nil, wire.CallbackList, batch)))
		}
		return ret, err
	}
	e := spooling(t, dir, n, executor.Config{})
	if fails {
		e.BreakDisk(func(string) error { return syscall.ENOSPC })
	}
	big := strings.Repeat("\x01", 50_000) // six bytes each, twice
	for id := range int64(260) {
		r := req(id+1, id+1)
		if id >= 250 {
			r.ExecutorParams = big
		}
		mustGive(t, e, "one", r)
		if id%3 == 0 {
			synctest.Wait() // one file, or a few
		}
	}
	synctest.Wait()
	n.set(false)
	time.Sleep(time.Hour)
	synctest.Wait()
	if got := len(n.ids()); got != 260 {
		t.Fatalf("%d results", got)
	}
	for i, count := range n.batches {
		if count > 50 || sizes[i] > 1<<20 && count > 1 {
			t.Errorf("a batch of %d results and %d bytes", count, sizes[i])
		}
	}
	if len(n.batches) > 30 {
		t.Errorf("%d batches of 260 results", len(n.batches))
	}
}

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
	var logged sharedLines
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

// TestSpoolUnreadKeepsItsOrder: a result that comes while those before it cannot be read is behind them, though it is
// tried, in vain too, before these are again.
func TestSpoolUnreadKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged sharedLines
		e, n := spooled(t, t.TempDir(), &logged)
		var broken atomic.Bool
		var tries atomic.Int64
		e.BreakReads(func(op, _ string) error {
			if !broken.Load() || op != "read" {
				return nil
			}
			if tries.Add(1) == 2 {
				mustGive(t, e, "one", req(3, 3))
				time.Sleep(time.Second) // its result is in the spool
			}
			return syscall.EIO
		})
		broken.Store(true)
		n.set(false)
		time.Sleep(time.Minute)
		broken.Store(false)
		time.Sleep(10 * time.Second)
		if got := n.ids(); !slices.Equal(got, []int64{100, 1, 2, 3}) || tries.Load() < 3 {
			t.Errorf("results of %v after %d attempts", got, tries.Load())
		}
	})
}

// TestSpoolUnreadAlone: a file on a bad sector does not keep the others.
func TestSpoolUnreadAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var logged sharedLines
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

// TestSpoolDirRemoved: a spool that is removed under a running executor is made again with the
// next result, which is said once. What is reported while that fails is kept in memory.
func TestSpoolDirRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "spool")
		said := new(strings.Builder)
		n := newNode()
		e := spooling(t, dir, n, executor.Config{Logger: slog.New(slog.NewTextHandler(said, nil))})
		give := func(ids ...int64) {
			for _, id := range ids {
				mustGive(t, e, "one", req(id, id))
				synctest.Wait()
			}
		}
		give(1)
		time.Sleep(time.Minute)
		n.set(true)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		give(2, 3)
		if files := spoolFiles(t, dir); len(files) != 2 {
			t.Errorf("the spool has %q after it was removed", files)
		}
		if got := strings.Count(said.String(), "made it again"); got != 1 || strings.Contains(said.String(), "level=ERROR") {
			t.Errorf("said %d times that it was made again:\n%s", got, said)
		}
		n.set(false)
		time.Sleep(time.Minute)

		n.set(true)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil { // in the way
			t.Fatal(err)
		}
		give(4, 5)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		give(6)
		if got := strings.Count(said.String(), "could not write results"); got != 1 {
			t.Errorf("said %d times that results cannot be written:\n%s", got, said)
		}
		if got := strings.Count(said.String(), "writing results to the spool has recovered"); got != 1 {
			t.Errorf("said %d times that it is over:\n%s", got, said)
		}
		n.set(false)
		time.Sleep(time.Minute)
		if got := n.ids(); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6}) {
			t.Errorf("results of %v\n%s", got, said)
		}
	})
}

// TestUnreadableFilesAreBounded: of files that make no sense the newest hundred are kept, with those that
// a former release has left in its slot, and that others are removed is said.
func TestUnreadableFilesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := newNode()
		first.set(true)
		e := spooling(t, dir, first, executor.Config{})
		mustGive(t, e, "one", req(1, 1))
		synctest.Wait()
		die(e, first)
		slot := filepath.Dir(spoolFiles(t, dir)[0])
		write := func(name string) {
			if err := os.WriteFile(filepath.Join(slot, name), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 90 {
			write(fmt.Sprintf("%019d-old-000000001-1.json.bad", i))
		}
		for i := range 30 {
			write(fmt.Sprintf("%019d-new-000000001-1.json", 1000+i))
		}
		var said sharedLines
		n := newNode()
		spooling(t, dir, n, executor.Config{Logger: slog.New(slog.NewTextHandler(&said, nil))})
		synctest.Wait()
		time.Sleep(time.Minute)
		left := spoolFiles(t, dir)
		if len(left) != 100 || filepath.Base(left[0]) != "0000000000000000020-old-000000001-1.json.bad" || filepath.Base(left[99]) != "0000000000000001029-new-000000001-1.json.bad" {
			t.Errorf("%d files, from %q", len(left), left[0])
		}
		if got := n.ids(); !slices.Equal(got, []int64{1}) || strings.Count(said.String(), "removed the oldest files") != 20 {
			t.Errorf("results of %v\n%s", got, said.String())
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
