package scenario_test

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// pagedStore is a store with faults that keeps logs: those go through hang and fail too.
type pagedStore struct {
	*storetest.Faults
	xxljob.LogStore
	gate gateOf
	slow time.Duration         // of each call
	sees func([]store.LogPage) // called for each

	mu       sync.Mutex
	calls    int
	most     int // pages of one call
	mostSize int // bytes of lines of one call
}

// gateOf is what becomes of calls that write pages: they wait while it is shut, and return an
// error where there is one.
type gateOf struct {
	mu   sync.Mutex
	shut chan struct{}
	err  error
}

func (g *gateOf) set(shut chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.err = shut, err
}

func (g *gateOf) pass(ctx context.Context) error {
	g.mu.Lock()
	shut, err := g.shut, g.err
	g.mu.Unlock()
	if shut == nil {
		return err
	}
	select {
	case <-shut:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *pagedStore) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) ([]int64, error) {
	size := 0
	for _, p := range pages {
		size += p.Size
	}
	s.mu.Lock()
	s.calls, s.most, s.mostSize = s.calls+1, max(s.most, len(pages)), max(s.mostSize, size)
	s.mu.Unlock()
	if err := s.gate.pass(ctx); err != nil {
		return nil, err
	}
	time.Sleep(s.slow)
	if s.sees != nil {
		s.sees(pages)
	}
	return s.LogStore.AddLogPages(ctx, pages, jobBytes)
}

// logNode is a node whose runs' logs go to the store.
type logNode struct {
	xxljob.Scheduler
	store *pagedStore
}

func startLogNode(t *testing.T, st *memory.Store, name string, tune ...func(*xxljob.Config)) *logNode {
	t.Helper()
	n := &logNode{store: &pagedStore{Faults: storetest.Wrap(st), LogStore: st}}
	cfg := xxljob.Config{App: "app", Node: name, Logger: stage.QuietLog(), Logs: xxljob.LogConfig{InStore: true}}
	for _, f := range tune {
		f(&cfg)
	}
	s, err := xxljob.New(n.store, cfg)
	stage.Must(t, err)
	n.Scheduler = s
	return n
}

// begin registers a handler and starts the node.
func (n *logNode) begin(t *testing.T, h xxljob.Handler) *logNode {
	t.Helper()
	stage.Must(t, n.Handle("chat", h))
	stage.Must(t, n.Start(context.Background()))
	time.Sleep(10 * time.Second)
	return n
}

func (n *logNode) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stage.Must(t, n.Stop(ctx))
}

// observer is a scheduler that was never started, over the store itself: it knows no executor.
func observer(t *testing.T, st xxljob.Store) xxljob.Scheduler {
	t.Helper()
	s, err := xxljob.New(st, xxljob.Config{App: "other", Node: "observer", Logger: stage.QuietLog(), Logs: xxljob.LogConfig{InStore: true}})
	stage.Must(t, err)
	return s
}

// wholeLog reads a log to its end, and checks the numbers of its lines.
func wholeLog(t *testing.T, s xxljob.Scheduler, run int64) []string {
	t.Helper()
	lines, _ := follow(t, s, run)
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\n")
	}
	return lines
}

// TestLogInStore: a log in the store is read at any node, also while the run goes on, and
// after its node is gone.
func TestLogInStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		goOn := make(chan struct{})
		n := startLogNode(t, st, "a").begin(t, chatty(goOn))
		other := observer(t, st)
		id := stage.TriggerNew(t, n, xxljob.Job{Name: "chat", Handler: "chat"})
		time.Sleep(2 * time.Second)
		for from, want := range map[int]string{1: "1 2 one two", 2: "2 2 two", 3: "3 2"} {
			res, err := other.Log(t.Context(), id, from)
			if got := brief(res); err != nil || got != want || res.IsEnd {
				t.Errorf("from %d while it runs: %q %v, want %q", from, got, err, want)
			}
		}
		close(goOn)
		_, err := n.Wait(t.Context(), id)
		stage.Must(t, err)
		if res, err := other.Log(t.Context(), id, 1); err != nil || brief(res) != "1 3 one two three" {
			t.Errorf("at its end: %+v %v", res, err)
		}
		n.stop(t)
		if res, err := other.LogTail(t.Context(), id, 2); err != nil || brief(res) != "2 3 two three" || !res.IsEnd {
			t.Errorf("its tail when the node is gone: %+v %v", res, err)
		}
		if res, err := other.Log(t.Context(), id, 4); err != nil || brief(res) != "4 3" || !res.IsEnd {
			t.Errorf("behind its end: %+v %v", res, err)
		}
	})
}

// TestLogsOfManyRuns: a thousand runs that write at once, together some times what may wait.
// Memory is bounded, and nothing is lost.
func TestLogsOfManyRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs, each := 1000, 250 // a line has 68 bytes or so
		if stage.Detector {
			each = 100
		}
		st := memory.New()
		n := startLogNode(t, st, "a", func(c *xxljob.Config) {
			c.Logs.QueueBytes = 4 << 20
			c.Executor.Places = runs
			c.Executor.Log.TotalBytes = 1 << 20 // what the executor keeps is another matter
		})
		var ready sync.WaitGroup
		ready.Add(runs)
		n.begin(t, func(ctx context.Context, task *xxljob.Task) error {
			ready.Done()
			ready.Wait()
			for i := range each {
				task.Log().Info("a line of this length or so", "run", task.RunID, "line", i+1)
			}
			return nil
		})
		ids := make([]int64, runs)
		for i := range ids {
			ids[i] = stage.TriggerNew(t, n, xxljob.Job{Name: fmt.Sprint("chat ", i), Handler: "chat"})
		}
		for _, id := range ids {
			run, err := n.Wait(t.Context(), id)
			stage.Must(t, err)
			if run.State != xxljob.StateSucceeded {
				t.Fatalf("run %d: %v", id, run.Err())
			}
		}
		stats := n.Stats().Logs
		if stats.Peak > 4<<20 || stats.Waiting != 0 || stats.Written != uint64(runs*each) || stats.Dropped+stats.Cut != 0 {
			t.Errorf("%+v", stats)
		}
		n.stop(t)
		t.Logf("%+v, %d calls of at most %d pages and %d bytes of lines", stats, n.store.calls, n.store.most, n.store.mostSize)
		if n.store.most > store.MostLogPages || n.store.mostSize > 3<<20 {
			t.Errorf("a call of %d pages, one of %d bytes", n.store.most, n.store.mostSize)
		}
		other := observer(t, st)
		for _, id := range ids {
			lines := wholeLog(t, other, id)
			if len(lines) != each {
				t.Fatalf("run %d has %d lines", id, len(lines))
			}
			for i, line := range lines {
				if !strings.HasSuffix(line, fmt.Sprintf(" INFO a line of this length or so run=%d line=%d", id, i+1)) {
					t.Fatalf("line %d of run %d is %q", i+1, id, line)
				}
			}
		}
	})
}

// TestLogOfANodeThatDies: what runs have written a second before their node dies is there.
func TestLogOfANodeThatDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		dead := make(chan struct{})
		n := startLogNode(t, st, "a").begin(t, func(_ context.Context, task *xxljob.Task) error {
			for i := 1; ; i++ {
				select {
				case <-dead:
					return nil
				case <-time.After(100 * time.Millisecond):
					task.Log().Info(fmt.Sprint(i))
				}
			}
		})
		ids := make([]int64, 100)
		for i := range ids {
			ids[i] = stage.TriggerNew(t, n, xxljob.Job{Name: fmt.Sprint("chat ", i), Handler: "chat"})
		}
		time.Sleep(7*time.Second + 50*time.Millisecond) // 70 lines each
		n.store.Faults.Pause(true)
		hang := make(chan struct{})
		n.store.gate.set(hang, nil)
		time.Sleep(time.Minute)
		other := observer(t, st)
		for _, id := range ids {
			res, err := other.LogTail(t.Context(), id, 1)
			var last int
			if _, scanned := fmt.Sscanf(res.LogContent[max(strings.LastIndexByte(res.LogContent, ' '), 0):], "%d", &last); err != nil || scanned != nil || last < 60 || last > 70 {
				t.Errorf("the last line of run %d is %q, %v", id, res.LogContent, err)
			}
		}
		close(dead)
		n.store.Faults.Resume()
		close(hang)
		n.stop(t)
	})
}

// TestLogPagesThatMakeNoSense: what is no page, or says to be of another size than it is, is
// an error, or is bounded.
func TestLogPagesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	if stage.Detector {
		t.Skip("one call after the other: the race detector has nothing to say of it")
	}
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := startLogNode(t, st, "a").begin(t, func(context.Context, *xxljob.Task) error { return nil })
		bomb := func(size int) []byte {
			var b bytes.Buffer
			w, err := flate.NewWriter(&b, flate.BestCompression)
			stage.Must(t, err)
			_, err = w.Write(bytes.Repeat([]byte("x\n"), size/2))
			stage.Must(t, err)
			stage.Must(t, w.Close())
			return b.Bytes()
		}
		for name, c := range map[string]struct {
			page store.LogPage
			fail bool
		}{
			"garbage":                {store.LogPage{FirstLine: 1, LastLine: 2, Size: 10, Content: []byte("no page at all")}, true},
			"nothing":                {store.LogPage{FirstLine: 1, LastLine: 2, Size: 10}, true},
			"cut off":                {store.LogPage{FirstLine: 1, LastLine: 50_000, Size: 100_000, Content: bomb(100_000)[:20]}, true},
			"more than its size":     {store.LogPage{FirstLine: 1, LastLine: 5, Size: 10, Content: bomb(64 << 20)}, false},
			"64 MiB":                 {store.LogPage{FirstLine: 1, LastLine: 32 << 20, Size: 64 << 20, Content: bomb(64 << 20)}, false},
			"other numbers of lines": {store.LogPage{FirstLine: 1_000_000, LastLine: 2_000_000, Size: 10, Content: bomb(10)}, false},
			"up to the last number":  {store.LogPage{FirstLine: 1, LastLine: math.MaxInt32, Size: 10, Content: bomb(10)}, false},
			"the last number":        {store.LogPage{FirstLine: math.MaxInt32, LastLine: math.MaxInt32, Size: 10, Content: bomb(10)}, false},
			"backwards":              {store.LogPage{FirstLine: 5, LastLine: 1, Size: 10, Content: bomb(10)}, false},
		} {
			id := ran(t, n, xxljob.Job{Name: name, Handler: "chat"})
			c.page.RunID = id
			_, err := st.AddLogPages(t.Context(), []store.LogPage{c.page}, 1<<40)
			stage.Must(t, err)
			began := time.Now()
			for _, from := range []int{1, 2, math.MaxInt32} {
				fail := c.fail && from <= c.page.LastLine // others are not there
				if res, err := n.Log(t.Context(), id, from); (err != nil) != fail || len(res.LogContent) > 1<<20 {
					t.Errorf("%s: from %d: %d bytes, %v", name, from, len(res.LogContent), err)
				}
			}
			if res, err := n.LogTail(t.Context(), id, 10_000); (err != nil) != c.fail || len(res.LogContent) > 1<<20 {
				t.Errorf("%s: the tail: %d bytes, %v", name, len(res.LogContent), err)
			}
			if took := time.Since(began); took > 0 {
				t.Errorf("%s: it took %v", name, took)
			}
		}
		n.stop(t)
	})
}
