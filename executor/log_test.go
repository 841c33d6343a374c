package executor_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

func readLog(t *testing.T, e *executor.Executor, r wire.LogRequest) wire.LogResult {
	t.Helper()
	ret, err := e.Log(t.Context(), r)
	if err != nil || !ret.OK() {
		t.Errorf("log of %d: %+v %v", r.LogID, ret, err)
	}
	return ret.Result
}

var noLog = wire.LogResult{FromLineNum: 1, LogContent: "readLog fail, logFile not exists", IsEnd: true}

// Both kinds of log answer alike.
func TestLogRead(t *testing.T) {
	for _, kind := range []string{"memory", "files"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := executor.Config{}
				if kind == "files" {
					cfg.Log.Dir = filepath.Join(t.TempDir(), "a", "b")
				}
				e, _ := open(t, cfg)
				handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
					if task.Param == "silent" {
						time.Sleep(time.Hour)
						return nil
					}
					task.Log().Info("one")
					task.Log().Debug("not kept")
					task.Log().Warn("two\nthree\n")
					time.Sleep(time.Hour)
					task.Log().Error("four")
					return nil
				})
				r := req(1, 1)
				r.LogDateTime = time.Now().UnixMilli()
				mustSend(t, e, r)
				s := req(2, 2)
				s.ExecutorParams = "silent"
				mustSend(t, e, s)
				synctest.Wait()
				at := r.LogDateTime
				three := "2000-01-01 00:00:00 INFO one\n2000-01-01 00:00:00 WARN two\nthree\n"
				for _, c := range []struct {
					req  wire.LogRequest
					want wire.LogResult
				}{
					{wire.LogRequest{LogID: 1, LogDateTim: at, FromLineNum: 1}, wire.LogResult{FromLineNum: 1, ToLineNum: 3, LogContent: three}},
					{wire.LogRequest{LogID: 1, LogDateTim: at, FromLineNum: -1}, wire.LogResult{FromLineNum: 1, ToLineNum: 3, LogContent: three}},
					{wire.LogRequest{LogID: 1, LogDateTim: at, FromLineNum: 3}, wire.LogResult{FromLineNum: 3, ToLineNum: 3, LogContent: "three\n"}},
					{wire.LogRequest{LogID: 1, LogDateTim: at, FromLineNum: 4}, wire.LogResult{FromLineNum: 4, ToLineNum: 3}},
					{wire.LogRequest{LogID: 1, LogDateTim: at, FromLineNum: 1 << 30}, wire.LogResult{FromLineNum: 1 << 30, ToLineNum: 3}},
					{wire.LogRequest{LogID: 1}, wire.LogResult{FromLineNum: 1, ToLineNum: 3, LogContent: three}},
					{wire.LogRequest{LogID: 2, LogDateTim: at}, wire.LogResult{FromLineNum: 1}}, // may still log
					{wire.LogRequest{LogID: 3, LogDateTim: at}, noLog},
				} {
					if got := readLog(t, e, c.req); got != c.want {
						t.Errorf("%+v:\n got %+v\nwant %+v", c.req, got, c.want)
					}
				}
				time.Sleep(time.Hour + 1)
				if got := readLog(t, e, wire.LogRequest{LogID: 1, LogDateTim: at, FromLineNum: 4}); got.LogContent != "2000-01-01 01:00:00 ERROR four\n" || got.ToLineNum != 4 {
					t.Errorf("later: %+v", got)
				}
				if got := readLog(t, e, wire.LogRequest{LogID: 2, LogDateTim: at}); got != noLog {
					t.Errorf("silent run: %+v", got)
				}
			})
		})
	}
}

func TestLogLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{Location: time.FixedZone("", 3600), Log: executor.LogConfig{Level: slog.LevelDebug}})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			l := task.Log()
			l.Debug("plain text", "k", "v", "two words", "a b", "empty", "", "quote", `"`)
			l.With("a", 1).WithGroup("g").With("b", 2).Info("m", "c", time.Second, slog.Group("h", "d", true), slog.Group("", "e", 1.5))
			l.Info("m", "err", errors.New("no such thing"), "nil", nil, "at", time.Unix(0, 0).UTC(), "v", []int{1})
			l.WithGroup("").Info("m", slog.Attr{}, slog.Group("none"))
			l.Log(context.Background(), slog.LevelError+2, "m")
			return nil
		})
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		want := `DEBUG plain text k=v "two words"="a b" empty="" quote="\""
INFO m a=1 g.b=2 g.c=1s g.h.d=true g.e=1.5
INFO m err="no such thing" nil=<nil> at=1970-01-01T00:00:00Z v=[1]
INFO m
ERROR+2 m
`
		got := strings.ReplaceAll(readLog(t, e, wire.LogRequest{LogID: 1}).LogContent, "2000-01-01 01:00:00 ", "")
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

func TestLogCaps(t *testing.T) {
	for _, kind := range []string{"memory", "files"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := executor.Config{Log: executor.LogConfig{MaxBytes: 1000}}
				if kind == "files" {
					cfg.Log.Dir = t.TempDir()
				}
				e, _ := open(t, cfg)
				handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
					var wg sync.WaitGroup
					for range 4 {
						wg.Go(func() {
							for range 100 {
								task.Log().Info("x")
							}
						})
					}
					wg.Wait()
					return nil
				})
				mustSend(t, e, req(1, 1))
				synctest.Wait()
				got := readLog(t, e, wire.LogRequest{LogID: 1})
				const n = len("2000-01-01 00:00:00 INFO x\n")
				if want := 1000/n + 1; got.ToLineNum != want || !strings.HasSuffix(got.LogContent, "(the log is cut here: no more than 1000 bytes are kept of a run)\n") {
					t.Errorf("%d lines, want %d, the last one the notice:\n%s", got.ToLineNum, want, got.LogContent)
				}
			})
		})
	}
}

// A long log is read page by page.
func TestLogPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{Log: executor.LogConfig{MaxBytes: 8 << 20}})
		const lines = 50_000
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			for i := range lines {
				task.Log().Info(fmt.Sprintf("line %d %s", i, strings.Repeat("x", 50)))
			}
			task.Log().Info(strings.Repeat("y", 2<<20))
			return nil
		})
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		var all strings.Builder
		pages, from := 0, 1
		for {
			got := readLog(t, e, wire.LogRequest{LogID: 1, FromLineNum: from})
			if got.FromLineNum > got.ToLineNum {
				break
			}
			if n := strings.Count(got.LogContent, "\n"); n != got.ToLineNum-got.FromLineNum+1 {
				t.Fatalf("%d lines from %d to %d", n, got.FromLineNum, got.ToLineNum)
			}
			all.WriteString(got.LogContent)
			from = got.ToLineNum + 1
			pages++
		}
		if n := strings.Count(all.String(), "\n"); n != lines+1 || pages < 4 {
			t.Errorf("%d lines on %d pages", n, pages)
		}
	})
}

// All logs in memory together are bounded; the oldest go.
func TestLogMemoryTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{Log: executor.LogConfig{TotalBytes: 10_000}})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			task.Log().Info(strings.Repeat("x", 700))
			return nil
		})
		long := make(chan struct{})
		handle(t, e, "long", func(_ context.Context, task *executor.Task) error {
			task.Log().Info("first")
			<-long
			task.Log().Info("lost with the rest of it")
			return nil
		})
		r := req(100, 100)
		r.ExecutorHandler = "long"
		mustSend(t, e, r)
		synctest.Wait()
		for id := range int64(50) {
			mustSend(t, e, req(id, id))
			synctest.Wait()
		}
		close(long)
		synctest.Wait()
		var kept []int64
		for id := range int64(101) {
			if readLog(t, e, wire.LogRequest{LogID: id}) != noLog {
				kept = append(kept, id)
			}
		}
		if len(kept) != 10 || kept[0] != 40 || kept[9] != 49 {
			t.Errorf("logs of %v are kept", kept)
		}
	})
}

func TestLogFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e, _ := open(t, executor.Config{Location: time.FixedZone("", -3600), Log: executor.LogConfig{Dir: dir}})
		var late *slog.Logger
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			late = task.Log()
			if task.RunID != 2 {
				late.Info("x")
			}
			return nil
		})
		midnight := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC) // in that zone
		for id, at := range map[int64]time.Time{1: midnight.Add(-time.Millisecond), 2: midnight, -3: midnight} {
			r := req(id, id)
			r.LogDateTime = at.UnixMilli()
			mustSend(t, e, r)
			synctest.Wait()
			late.Info("too late")
		}
		var found []string
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || p == dir {
				return err
			}
			info, err := d.Info()
			rel, _ := filepath.Rel(dir, p)
			found = append(found, fmt.Sprint(info.Mode(), " ", rel))
			return err
		})
		want := []string{"drwx------ 1999-12-31", "-rw------- 1999-12-31/1-946688399.log", "drwx------ 2000-01-01", "-rw------- 2000-01-01/-3-946688400.log"}
		if !slices.Equal(found, want) { // none for a run that logs nothing
			t.Errorf("files are\n%q, want\n%q", found, want)
		}
		// An admin that rounds to whole seconds asks for the next day.
		if got := readLog(t, e, wire.LogRequest{LogID: 1, LogDateTim: midnight.UnixMilli()}); got.ToLineNum != 1 {
			t.Errorf("log of a run before midnight: %+v", got)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if got := readLog(t, e, wire.LogRequest{LogID: 1, LogDateTim: midnight.UnixMilli()}); got != noLog {
			t.Errorf("after Stop: %+v", got)
		}
	})
}

// A day goes when its date + retention is before today; on 2000-01-01 that is
// 1999-12-02 with 30 days. Old days go with the first line of a day only.
func TestLogRetention(t *testing.T) {
	for _, c := range []struct {
		retention int
		first     []string // what is there after a line on 2000-01-01
		second    []string // and after one on the next day
	}{
		{0, []string{"1999-12-02", "1999-12-03", "2000-01-01", "keep"}, []string{"1999-12-03", "2000-01-01", "2000-01-02", "keep"}},
		{2, []string{"2000-01-01", "keep"}, []string{"2000-01-01", "2000-01-02", "keep"}},
		{-1, []string{"1999-12-01", "1999-12-02", "1999-12-03", "2000-01-01", "keep"},
			[]string{"1999-12-01", "1999-12-02", "1999-12-03", "2000-01-01", "2000-01-02", "keep"}},
		{math.MaxInt, []string{"1999-12-01", "1999-12-02", "1999-12-03", "2000-01-01", "keep"},
			[]string{"1999-12-01", "1999-12-02", "1999-12-03", "2000-01-01", "2000-01-02", "keep"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			e, _ := open(t, executor.Config{Log: executor.LogConfig{Dir: dir, RetentionDays: c.retention}})
			handle(t, e, "h", func(_ context.Context, task *executor.Task) error { task.Log().Info("x"); return nil })
			for _, d := range []string{"1999-12-01", "1999-12-02", "1999-12-03", "keep"} {
				if err := os.MkdirAll(filepath.Join(dir, d, "sub"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			check := func(id int64, want []string) {
				t.Helper()
				mustSend(t, e, req(id, id))
				synctest.Wait()
				var got []string
				entries, _ := os.ReadDir(dir)
				for _, d := range entries {
					got = append(got, d.Name())
				}
				if !slices.Equal(got, want) {
					t.Errorf("retention %d: there are %q, want %q", c.retention, got, want)
				}
			}
			check(1, c.first)
			time.Sleep(23 * time.Hour)
			check(2, c.first)
			time.Sleep(time.Hour)
			check(3, c.second)
		})
	}
}

func TestLogDirErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := executor.New(executor.Config{Log: executor.LogConfig{Dir: file}}); err == nil || !strings.Contains(err.Error(), "Config.Log.Dir") {
		t.Errorf("a file for a directory: %v", err)
	}
}

// A log that cannot be written does not disturb its run.
func TestLogFileFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e, a := open(t, executor.Config{Log: executor.LogConfig{Dir: dir}})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			task.Log().Info("x")
			task.Log().Info("y")
			return nil
		})
		if err := os.WriteFile(filepath.Join(dir, "2000-01-01"), nil, 0o600); err != nil { // in the way
			t.Fatal(err)
		}
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		if got := a.result(t, 1); got.HandleCode != 200 {
			t.Errorf("result is %+v", got)
		}
		if ret, err := e.Log(t.Context(), wire.LogRequest{LogID: 1}); err != nil || ret.OK() || !strings.HasPrefix(ret.Msg, "readLog fail, ") {
			t.Errorf("reading it: %+v %v", ret, err)
		}
	})
}

// A directory of logs that is removed under a running executor is made again, which is said
// once: no run is without its log for that. Where it cannot be made that is said once, and so is
// the end of it.
func TestLogDirRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logs")
		said, mu := new(strings.Builder), new(sync.Mutex)
		e, _ := open(t, executor.Config{Log: executor.LogConfig{Dir: dir}, Logger: slog.New(slog.NewTextHandler(lockedWriter{mu, said}, nil))})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			task.Log().Info("x")
			time.Sleep(10 * time.Second)
			task.Log().Info("y")
			return nil
		})
		next := int64(0)
		run := func(count int) {
			for range count {
				next++
				mustSend(t, e, req(next, next))
			}
			synctest.Wait()
		}
		content := func(id int64) string {
			return readLog(t, e, wire.LogRequest{LogID: id, FromLineNum: 1}).LogContent
		}
		remove := func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		lines := func(level, text string) int {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for line := range strings.Lines(said.String()) {
				if strings.Contains(line, "level="+level) && strings.Contains(line, text) {
					n++
				}
			}
			return n
		}

		run(1)
		remove()
		run(2)
		for _, id := range []int64{2, 3} {
			if got := content(id); !strings.HasSuffix(got, "INFO x\n") {
				t.Errorf("run %d after the directory was removed has the log %q", id, got)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := content(1); !strings.HasSuffix(got, "INFO y\n") {
			t.Errorf("the run under way when the directory was removed has the log %q", got)
		}
		if n := lines("WARN", "made it again"); n != 1 || lines("ERROR", "") != 0 {
			t.Errorf("said %d times that it was made again:\n%s", n, said)
		}

		remove()
		if err := os.WriteFile(dir, nil, 0o600); err != nil { // in the way
			t.Fatal(err)
		}
		run(5)
		time.Sleep(5 * time.Second)
		run(5)
		if n := lines("ERROR", "could not write the log of a run"); n != 1 {
			t.Errorf("said %d times that logs cannot be written:\n%s", n, said)
		}
		remove()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := content(4); !strings.HasSuffix(got, "INFO y\n") {
			t.Errorf("a run that went on when logs could be written again has the log %q", got)
		}
		run(1)
		if n := lines("INFO", "has recovered"); n != 1 {
			t.Errorf("said %d times that it is over:\n%s", n, said)
		}
		time.Sleep(time.Minute)
	})
}

// logAdmin is an admin that wants the lines of runs, and notes what it is called with.
type logAdmin struct {
	admin
	mu    sync.Mutex
	calls []string
}

func (a *logAdmin) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, what)
}

func (a *logAdmin) noted() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

func (a *logAdmin) Callback(ctx context.Context, batch []wire.CallbackRequest) (wire.Return, error) {
	a.note("result")
	return a.admin.Callback(ctx, batch)
}

func (a *logAdmin) OpenLog(id, _ int64) (write func(time.Time, slog.Level, string), end func()) {
	a.note(fmt.Sprint("open ", id))
	return func(_ time.Time, _ slog.Level, lines string) {
			a.note("write " + lines[len("2000-01-01 00:00:00 INFO "):len(lines)-1])
		},
		func() { a.note("end") }
}

// TestLogIsOpenedBeforeTheHandler: the admin is asked where lines go before the handler is
// called, however late that logs; once it has returned nothing follows.
func TestLogIsOpenedBeforeTheHandler(t *testing.T) {
	for name, c := range map[string]struct {
		handler func(ctx context.Context, task *executor.Task) error
		want    []string
	}{
		"silent": {func(context.Context, *executor.Task) error { return nil }, []string{"open 1", "end", "result"}},
		"one line": {func(_ context.Context, task *executor.Task) error { task.Log().Info("x"); return nil },
			[]string{"open 1", "write x", "end", "result"}},
		"after it was killed": {func(ctx context.Context, task *executor.Task) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			task.Log().Info("x")
			return nil
		}, []string{"open 1", "result", "write x", "end"}},
		"its first progress is its last": {func(_ context.Context, task *executor.Task) error { task.Progress(50, ""); return nil },
			[]string{"open 1", "write progress percent=50", "end", "result"}},
		"a panic": {func(context.Context, *executor.Task) error { panic(errors.New("x")) }, nil},
		"behind its return": {func(_ context.Context, task *executor.Task) error {
			time.AfterFunc(time.Second, func() { task.Log().Info("x") })
			return nil
		}, []string{"open 1", "end", "result"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := open(t, executor.Config{})
				a := &logAdmin{}
				e.Bind(a)
				handle(t, e, "h", c.handler)
				mustSend(t, e, req(1, 1))
				time.Sleep(100 * time.Millisecond)
				_, err := e.Kill(t.Context(), wire.KillRequest{JobID: 1, LogID: 1})
				if err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Second)
				got := a.noted()
				if c.want == nil { // its text is of many lines
					if len(got) != 4 || got[0] != "open 1" || got[2] != "end" || got[3] != "result" {
						t.Errorf("got %q", got)
					}
				} else if !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestLateLogLeavesNoFileOpen: what a handler has left behind may log when it has returned, and
// then nobody closes the file.
func TestLateLogLeavesNoFileOpen(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{Log: executor.LogConfig{Dir: dir}})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			time.AfterFunc(time.Second, func() { task.Log().Info("x") })
			return nil
		})
		mustSend(t, e, req(1, 1))
		time.Sleep(10 * time.Second)
	})
	if files, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(files) > 0 {
		t.Errorf("%q %v", files, err)
	}
}

// TestLogTail: the last lines with their numbers, from either kind of log.
func TestLogTail(t *testing.T) {
	for _, kind := range []string{"memory", "files"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := executor.Config{Log: executor.LogConfig{MaxBytes: 8 << 20}}
				if kind == "files" {
					cfg.Log.Dir = t.TempDir()
				}
				e, _ := open(t, cfg)
				handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
					switch task.Param {
					case "long":
						task.Log().Info("short")
						task.Log().Info(strings.Repeat("x", 700<<10))
						task.Log().Info(strings.Repeat("y", 500<<10))
						task.Log().Info("end")
					case "longer":
						task.Log().Info(strings.Repeat("z", 3<<20))
					case "many":
						for i := range 20_000 {
							task.Log().Info(fmt.Sprint(i + 1))
						}
					case "few":
						task.Log().Info("one\ntwo")
						task.Log().Info("three")
					}
					return nil
				})
				for i, param := range []string{"few", "many", "long", "longer", "silent"} {
					r := req(int64(i+1), int64(i+1))
					r.ExecutorParams = param
					mustSend(t, e, r)
				}
				synctest.Wait()
				for _, c := range []struct {
					run      int64
					n        int
					from, to int
					begins   string
				}{
					{1, 1, 3, 3, "2000-01-01 00:00:00 INFO three"}, {1, 2, 2, 3, "two"}, {1, 3, 1, 3, "2000-01-01 00:00:00 INFO one"}, {1, 9, 1, 3, "2000-01-01 00:00:00 INFO one"},
					{2, 3, 19_998, 20_000, "2000-01-01 00:00:00 INFO 19998"}, {2, 10_000, 10_001, 20_000, "2000-01-01 00:00:00 INFO 10001"}, {2, 1 << 30, 10_001, 20_000, "2000-01-01 00:00:00 INFO 10001"},
					{3, 100, 3, 4, "2000-01-01 00:00:00 INFO yyyy"}, {3, 1, 4, 4, "2000-01-01 00:00:00 INFO end"}, {4, 5, 1, 1, "2000-01-01 00:00:00 INFO zzzz"},
				} {
					res := readLog(t, e, wire.LogRequest{LogID: c.run, Tail: c.n, FromLineNum: 7})
					if res.FromLineNum != c.from || res.ToLineNum != c.to || !res.Tail || !strings.HasPrefix(res.LogContent, c.begins) || strings.Count(res.LogContent, "\n") != c.to-c.from+1 {
						t.Errorf("%+v: lines %d to %d, %d of them, %.60q", c, res.FromLineNum, res.ToLineNum, strings.Count(res.LogContent, "\n"), res.LogContent)
					}
				}
				if res := readLog(t, e, wire.LogRequest{LogID: 5, Tail: 3}); res.LogContent != wire.MsgNoLog || !res.IsEnd {
					t.Errorf("a run that said nothing: %+v", res)
				}
			})
		})
	}
}
