package scenario_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// keptSink is a sink that keeps all lines, and does first what it is told.
type keptSink struct {
	mu    sync.Mutex
	lines map[int64][]xxljob.LogLine
	ended map[int64]int
	calls int
	under int
	most  int // calls at once
	first func(ctx context.Context, call int) error
}

func newKeptSink(first func(ctx context.Context, call int) error) *keptSink {
	return &keptSink{lines: map[int64][]xxljob.LogLine{}, ended: map[int64]int{}, first: first}
}

func (s *keptSink) WriteLogs(ctx context.Context, batch []xxljob.RunLines) error {
	s.mu.Lock()
	s.calls++
	s.under++
	s.most = max(s.most, s.under)
	call := s.calls
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.under--
		s.mu.Unlock()
	}()
	if s.first != nil {
		if err := s.first(ctx, call); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range batch {
		s.lines[r.RunID] = append(s.lines[r.RunID][:min(r.First-1, len(s.lines[r.RunID]))], r.Lines...)
		if r.End {
			s.ended[r.RunID]++
		}
	}
	for i := range batch { // they are ours
		clear(batch[i].Lines)
	}
	return nil
}

func (s *keptSink) texts(run int64) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines[run] {
		list = append(list, line.Text)
	}
	return list
}

func (s *keptSink) ends(run int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended[run]
}

// readSink can be read too.
type readSink struct {
	*keptSink
	read func(ctx context.Context) error
}

func (s *readSink) answer(ctx context.Context, run int64, from int) (wire.LogResult, error) {
	if s.read != nil {
		if err := s.read(ctx); err != nil {
			return wire.LogResult{}, err
		}
	}
	list := s.texts(run)
	if list == nil {
		return wire.LogResult{}, xxljob.ErrNoLog
	}
	if from < 0 {
		from = max(1, len(list)+1+from)
	}
	res := wire.LogResult{ToLineNum: len(list)}
	for _, line := range list[min(from-1, len(list)):] {
		res.LogContent += line + "\n"
	}
	return res, nil
}

func (s *readSink) ReadLog(ctx context.Context, run int64, from int) (wire.LogResult, error) {
	return s.answer(ctx, run, from)
}

func (s *readSink) ReadLogTail(ctx context.Context, run int64, n int) (wire.LogResult, error) {
	return s.answer(ctx, run, -n)
}

// linesOfLog counts the lines of a log that say something.
func linesOfLog(text string, says string) (n int) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, says) {
			n++
		}
	}
	return n
}

// syncBuffer is a buffer that several may write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestLogSink: a sink gets each line once, with time, level and number, and is told of the
// end of each run; where it can be read, logs are read there.
func TestLogSink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, sink := memory.New(), newKeptSink(nil)
		began := time.Now()
		a := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.Logs.Sink = &readSink{keptSink: sink} })
		stage.Must(t, a.Handle("chat", func(_ context.Context, task *xxljob.Task) error {
			task.Log().Warn("one\ntwo")
			time.Sleep(2 * time.Second)
			task.Log().Info("three")
			return nil
		}))
		time.Sleep(10 * time.Second)
		id := stage.TriggerNew(t, a, xxljob.Job{Name: "chat", Handler: "chat"})
		time.Sleep(1500 * time.Millisecond)
		if got := sink.texts(id); len(got) != 2 || got[1] != "two" || sink.ends(id) != 0 {
			t.Errorf("after a second: %q, ended %d times", got, sink.ends(id))
		}
		_, err := a.Wait(t.Context(), id)
		stage.Must(t, err)
		if got := sink.texts(id); len(got) != 3 || sink.ends(id) != 1 {
			t.Errorf("at the end: %q, ended %d times", got, sink.ends(id))
		}
		sink.mu.Lock()
		line := sink.lines[id][1]
		sink.mu.Unlock()
		if line.Level != slog.LevelWarn || line.Time.Sub(began) < 10*time.Second || line.Time.Sub(began) > 11*time.Second {
			t.Errorf("a line of %v at %v", line.Level, line.Time.Sub(began))
		}
		if res, err := a.Log(t.Context(), id, 2); err != nil || brief(res) != "2 3 two three" || res.IsEnd {
			t.Errorf("from 2: %+v %v", res, err)
		}
		if res, err := a.Log(t.Context(), id, 4); err != nil || brief(res) != "4 3" || !res.IsEnd {
			t.Errorf("behind the end: %+v %v", res, err)
		}
		if res, err := a.LogTail(t.Context(), id, 1); err != nil || brief(res) != "3 3 three" || !res.IsEnd {
			t.Errorf("the tail: %+v %v", res, err)
		}
		quiet := ran(t, a, xxljob.Job{Name: "quiet", Handler: "work"})
		_, err = a.Log(t.Context(), quiet, 1)
		wantNoLog(t, "that said nothing", err, "its executor has none")
		stage.Stop(t, a)
	})
}

// TestLogSinkFaults: a sink that fails, panics, ends its goroutine or hangs has a bounded
// effect: runs go on, results are stored within seconds, memory is bounded, and the
// scheduler's own log has one line about it.
func TestLogSinkFaults(t *testing.T) {
	t.Parallel()
	down := errors.New("the sink is down")
	hang := make(chan struct{})
	for name, c := range map[string]struct {
		fault func(ctx context.Context) error
		says  string
	}{
		"fails":                 {func(context.Context) error { return down }, "the sink is down"},
		"panics":                {func(context.Context) error { panic("boom") }, "panic: boom"},
		"ends its goroutine":    {func(context.Context) error { runtime.Goexit(); return nil }, "has ended its goroutine"},
		"hangs within its time": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "deadline exceeded"},
		"hangs":                 {func(context.Context) error { <-hang; return down }, "has not returned"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang = make(chan struct{})
				var text syncBuffer
				broken := true
				var mu sync.Mutex
				sink := newKeptSink(func(ctx context.Context, _ int) error {
					mu.Lock()
					fails := broken
					mu.Unlock()
					if fails {
						return c.fault(ctx)
					}
					return nil
				})
				a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(cfg *xxljob.Config) {
					cfg.Logs = xxljob.LogConfig{Sink: sink, QueueBytes: 2 << 20}
					cfg.Logger = slog.New(slog.NewTextHandler(&text, nil))
				})
				stage.Must(t, a.Handle("chat", func(_ context.Context, task *xxljob.Task) error {
					for i := range 5000 {
						task.Log().Info("line", "of", i)
					}
					return nil
				}))
				time.Sleep(10 * time.Second)
				job, err := a.AddJob(t.Context(), xxljob.Job{Name: "chat", Handler: "chat"})
				stage.Must(t, err)
				var ids []int64
				for range 20 {
					began := time.Now()
					id, err := a.TriggerOne(t.Context(), job.ID, xxljob.Trigger{})
					stage.Must(t, err)
					ids = append(ids, id)
					run, err := a.Wait(t.Context(), id)
					stage.Must(t, err)
					if took := time.Since(began); run.State != xxljob.StateSucceeded || took > 5*time.Second {
						t.Errorf("run %d: %v after %v", len(ids), run.State, took)
					}
				}
				time.Sleep(10 * time.Second)
				if stats := a.Stats().Logs; stats.Peak > 2<<20+256<<10 || stats.Dropped == 0 {
					t.Errorf("%+v", stats)
				}
				if n := linesOfLog(text.String(), "writing the logs of runs failed"); n != 1 || !strings.Contains(text.String(), c.says) {
					t.Errorf("%d lines about it:\n%s", n, text.String())
				}
				if n := linesOfLog(text.String(), "user code panicked"); n > 1 {
					t.Errorf("%d lines about the panic", n)
				}
				mu.Lock()
				broken = false
				mu.Unlock()
				close(hang)
				time.Sleep(time.Minute)
				last := ran(t, a, xxljob.Job{Name: "again", Handler: "chat"})
				if got := len(sink.texts(last)); got != 5000 {
					t.Errorf("a run after that has %d lines", got)
				}
				whole, cut := 0, 0
				for _, id := range ids {
					lines := sink.texts(id)
					switch missing := slices.ContainsFunc(lines, func(s string) bool { return strings.Contains(s, "lines are missing here") }); {
					case missing:
						cut++
					case len(lines) == 5000:
						whole++
					case len(lines) > 0:
						t.Errorf("run %d has %d lines, and does not say that some are missing", id, len(lines))
					}
				}
				if whole == 0 || cut == 0 || sink.most != 1 || a.Stats().Logs.Waiting != 0 {
					t.Errorf("%d whole logs, %d that say what is missing, %d calls at once, %+v", whole, cut, sink.most, a.Stats().Logs)
				}
				stage.Stop(t, a)
			})
		})
	}
}

// TestLogSinkThatHangsAtStop: Stop waits for it for two seconds.
func TestLogSinkThatHangsAtStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) {
			c.Logs.Sink = newKeptSink(func(context.Context, int) error { <-hang; return nil })
		})
		stage.Must(t, a.Handle("chat", func(_ context.Context, task *xxljob.Task) error { task.Log().Info("x"); return nil }))
		time.Sleep(10 * time.Second)
		ran(t, a, xxljob.Job{Name: "chat", Handler: "chat"})
		began := time.Now()
		stage.Stop(t, a)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Stop took %v", took)
		}
		close(hang)
	})
}

// TestLogReaderFaults: whatever a sink does that is read, the caller gets an error in time.
func TestLogReaderFaults(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	for name, c := range map[string]struct {
		fault func(ctx context.Context) error
		says  string
	}{
		"fails":  {func(context.Context) error { return errors.New("down") }, "down"},
		"panics": {func(context.Context) error { panic("boom") }, "panic: boom"},
		"hangs":  {func(context.Context) error { <-hang; return nil }, "no answer within 5s"},
		"none":   {func(context.Context) error { return fmt.Errorf("x: %w", xxljob.ErrNoLog) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang = make(chan struct{})
				sink := &readSink{keptSink: newKeptSink(nil), read: c.fault}
				a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(cfg *xxljob.Config) { cfg.Logs.Sink = sink })
				stage.Must(t, a.Handle("chat", func(_ context.Context, task *xxljob.Task) error { task.Log().Info("x"); return nil }))
				time.Sleep(10 * time.Second)
				id := ran(t, a, xxljob.Job{Name: "chat", Handler: "chat"})
				for range 10 {
					res, err := a.Log(t.Context(), id, 1)
					if c.says == "" && (err != nil || brief(res) != "1 1 x") {
						t.Errorf("read where it ran: %+v %v", res, err)
					}
					if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
						t.Errorf("%v, want %q", err, c.says)
					}
				}
				close(hang)
				stage.Stop(t, a)
			})
		})
	}
}

// TestLogsOfAStoreThatIsAway: results do not wait for it, lines are there when it is back, and
// a run whose lines had no room says so.
func TestLogsOfAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := startLogNode(t, st, "a", func(c *xxljob.Config) { c.Logs.QueueBytes = 2 << 20 })
		n.begin(t, func(_ context.Context, task *xxljob.Task) error {
			for i := range 100 {
				task.Log().Info("line", "of", i)
			}
			return nil
		})
		n.store.gate.set(nil, errors.New("no pages today"))
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "chat", Handler: "chat"})
		stage.Must(t, err)
		began := time.Now()
		var ids []int64
		for range 100 {
			id, err := n.TriggerOne(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			_, err = n.Wait(t.Context(), id)
			stage.Must(t, err)
			ids = append(ids, id)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("a hundred runs took %v", took)
		}
		n.store.gate.set(nil, nil)
		time.Sleep(5 * time.Second)
		other := observer(t, st)
		for _, id := range ids {
			if got := wholeLog(t, other, id); len(got) != 100 {
				t.Errorf("run %d has %d lines", id, len(got))
			}
		}
		n.stop(t)
	})
}

// TestAbsurdLogs: what no log should have is bounded, and read back as text.
func TestAbsurdLogs(t *testing.T) {
	t.Parallel()
	if stage.Detector {
		t.Skip("one line after the other: the race detector has nothing to say of it")
	}
	for name, c := range map[string]struct {
		log  func(*slog.Logger)
		want func(lines []string) bool
	}{
		"a line of a megabyte": {func(l *slog.Logger) { l.Info(strings.Repeat("x", 1<<20)); l.Info("end") }, func(lines []string) bool {
			return len(lines) == 2 && len(lines[0]) == 1<<20-1 && strings.HasPrefix(lines[1], "(the log is cut here: no more than 1048576 bytes are kept of a run)")
		}},
		"NUL and invalid UTF-8": {func(l *slog.Logger) { l.Info("a\x00b\xff\xfec"); l.Info("é", "k", "\x00") }, func(lines []string) bool {
			return len(lines) == 2 && strings.HasSuffix(lines[0], " INFO a\uFFFDb\uFFFDc") && strings.HasSuffix(lines[1], ` INFO é k="\x00"`)
		}},
		"a million empty lines": {func(l *slog.Logger) {
			for range 1_000_000 {
				l.Info("")
			}
		}, func(lines []string) bool {
			return len(lines) > 30_000 && strings.HasSuffix(lines[len(lines)-1], "bytes are kept of a run)")
		}},
		"a million empty lines in one": {func(l *slog.Logger) { l.Info(strings.Repeat("\n", 1_000_000) + "end") }, func(lines []string) bool {
			return len(lines) == 1_000_001 && lines[1_000_000] == "end"
		}},
		"many goroutines": {func(l *slog.Logger) {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					for range 20 {
						l.Info("one\ntwo\nthree")
					}
				})
			}
			wg.Wait()
		}, func(lines []string) bool {
			for i, line := range lines {
				if i%3 == 1 && line != "two" {
					return false
				}
			}
			return len(lines) == 3000
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				n := startLogNode(t, st, "a").begin(t, func(_ context.Context, task *xxljob.Task) error { c.log(task.Log()); return nil })
				id := ran(t, n, xxljob.Job{Name: "chat", Handler: "chat"})
				other := observer(t, st)
				lines := wholeLog(t, other, id)
				if !c.want(lines) {
					t.Errorf("%d lines, the first %.60q, the last %.80q", len(lines), lines[0], lines[len(lines)-1])
				}
				tail, err := other.LogTail(t.Context(), id, 3)
				if got := strings.Split(strings.TrimSuffix(tail.LogContent, "\n"), "\n"); err != nil || got[len(got)-1] != lines[len(lines)-1] || tail.ToLineNum != len(lines) {
					t.Errorf("the tail ends at %d with %.80q, %v", tail.ToLineNum, got[len(got)-1], err)
				}
				if stats := n.Stats().Logs; stats.Peak > 16<<20 || stats.Dropped > 0 {
					t.Errorf("%+v", stats)
				}
				n.stop(t)
			})
		})
	}
}

// TestLogsOfAJobAreBounded: a job whose runs of a day have too much gets no more, each log
// says so, and another job is none the worse for it.
func TestLogsOfAJobAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := startLogNode(t, st, "a", func(c *xxljob.Config) { c.Logs.JobBytes = 64 << 10 })
		n.begin(t, func(_ context.Context, task *xxljob.Task) error {
			for i := range 1000 {
				task.Log().Info("line", "of", i*i*i, "and", fmt.Sprintf("%x", i*7919*7919))
			}
			return nil
		})
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "chat", Handler: "chat"})
		stage.Must(t, err)
		whole, cut := 0, 0
		other := observer(t, st)
		for range 30 {
			id, err := n.TriggerOne(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			_, err = n.Wait(t.Context(), id)
			stage.Must(t, err)
			time.Sleep(2 * time.Second)
			switch lines := wholeLog(t, other, id); {
			case len(lines) == 1000:
				whole++
			case len(lines) == 1 && lines[0] == "(the log is cut here: no more than 65536 bytes are kept of a job's runs of one day, or the store is full)":
				cut++
			default:
				t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
			}
		}
		if whole < 3 || cut < 10 {
			t.Errorf("%d whole logs and %d that are cut", whole, cut)
		}
		if lines := wholeLog(t, other, ran(t, n, xxljob.Job{Name: "other", Handler: "chat"})); len(lines) != 1000 {
			t.Errorf("another job's log has %d lines", len(lines))
		}
		n.stop(t)
	})
}
