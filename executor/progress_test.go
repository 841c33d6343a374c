package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// listener is an admin that wants to hear how far runs are.
type listener struct {
	admin
	mu   sync.Mutex
	told []telling
}

type telling struct {
	id, date int64
	wire.Progress
	at time.Time
}

func (l *listener) Progress(id, date int64, p wire.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, telling{id, date, p, time.Now()})
}

func (l *listener) last() (p wire.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.told); n > 0 {
		p = l.told[n-1].Progress
	}
	return p
}

// progressOf runs a handler once, to its end, and returns what the admin was told, the lines
// of the log, and the result.
func progressOf(t *testing.T, cfg executor.Config, h executor.Handler) (*listener, []string, wire.CallbackRequest) {
	t.Helper()
	e, _ := open(t, cfg)
	l := &listener{}
	e.Bind(l)
	handle(t, e, "h", h)
	r := req(7, 1)
	r.LogDateTime = 1700000000123
	mustSend(t, e, r)
	time.Sleep(24 * time.Hour)
	synctest.Wait()
	for _, p := range l.told {
		if p.id != 1 || p.date != r.LogDateTime {
			t.Errorf("told of run %d of %d", p.id, p.date)
		}
	}
	return l, logOf(t, e, r), l.result(t, 1)
}

// logOf are the lines of a run's log, without their times.
func logOf(t *testing.T, e *executor.Executor, r wire.TriggerRequest) (lines []string) {
	t.Helper()
	ret, err := e.Log(t.Context(), wire.LogRequest{LogID: r.LogID, LogDateTim: r.LogDateTime})
	if err != nil || !ret.OK() {
		t.Fatal(ret, err)
	}
	if ret.Result.IsEnd {
		return nil
	}
	for line := range strings.Lines(ret.Result.LogContent) {
		lines = append(lines, strings.TrimSuffix(line[min(len(line), len(time.DateTime)+1):], "\n"))
	}
	return lines
}

// TestProgressOnceASecond: a handler that says it all the time is heard once a second, by the
// log and by the admin, and each time with what was new then. What it said last is in the log
// and with the result.
func TestProgressOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l, lines, res := progressOf(t, executor.Config{}, func(_ context.Context, task *executor.Task) error {
			for i := range 90 {
				task.Progress(i+1, "")
				time.Sleep(110 * time.Millisecond)
			}
			task.Progress(100, "done")
			return nil
		})
		if len(l.told) != 10 || len(lines) != 11 {
			t.Fatalf("told %d times, %d lines", len(l.told), len(lines))
		}
		for i, p := range l.told {
			at, percent := p.at.Sub(began), 1+1000*i/110
			if at != time.Duration(i)*time.Second || p.Percent != percent || lines[i] != fmt.Sprintf("INFO progress percent=%d", percent) {
				t.Errorf("after %v told %d %%, and the log says %q", at, p.Percent, lines[i])
			}
		}
		if last := (wire.Progress{Percent: 100, Text: "done"}); lines[10] != "INFO progress percent=100 text=done" || res.Progress != last {
			t.Errorf("at last %q, and with the result %+v", lines[10], res.Progress)
		}
	})
}

// TestProgressInALoop: a million calls are a few lines.
func TestProgressInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 1_000_000
		text := strings.Repeat("x", 100)
		l, lines, res := progressOf(t, executor.Config{}, func(_ context.Context, task *executor.Task) error {
			for i := range calls {
				task.Progress(i*100/calls, text[:i%100])
			}
			return nil
		})
		if len(l.told) != 1 || len(lines) != 2 || res.Progress != (wire.Progress{Percent: 99, Text: text[:99]}) {
			t.Errorf("told %d times, %d lines, with the result %+v", len(l.told), len(lines), res.Progress)
		}
		if want := []string{"INFO progress percent=0 text=x", "INFO progress percent=99 text=" + text[:99]}; strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("lines %q", lines)
		}
	})
}

// TestProgressThenSilence: what comes too soon after another is told when its second is
// over, though the handler says nothing any more.
func TestProgressThenSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l, lines, res := progressOf(t, executor.Config{}, func(_ context.Context, task *executor.Task) error {
			for i := range 50 {
				task.Progress(i+1, "")
			}
			time.Sleep(time.Hour)
			task.Progress(50, "") // nothing new
			time.Sleep(time.Hour)
			task.Progress(60, "")
			return nil
		})
		if len(l.told) != 3 || l.told[1].Percent != 50 || l.told[1].at.Sub(began) != time.Second || l.told[2].at.Sub(began) != 2*time.Hour {
			t.Errorf("told %+v", l.told)
		}
		if len(lines) != 3 || res.Progress.Percent != 60 {
			t.Errorf("lines %q, with the result %+v", lines, res.Progress)
		}
	})
}

// TestProgressBounds: whatever is said, it is one line of a bounded length.
func TestProgressBounds(t *testing.T) {
	long := strings.Repeat("错", 1<<20/3)
	for _, c := range []struct {
		name    string
		percent int
		text    string
		want    wire.Progress
		line    string
	}{
		{"beyond 100", 1e9, "", wire.Progress{Percent: 100}, "INFO progress percent=100"},
		{"below 0", -1, "x", wire.Progress{Text: "x"}, "INFO progress percent=0 text=x"},
		{"the least", -1 << 31, "begun", wire.Progress{Text: "begun"}, "INFO progress percent=0 text=begun"},
		{"1 MB", 1, long, wire.Progress{Percent: 1, Text: long[:1500] + "..."}, "INFO progress percent=1 text=" + long[:1500] + "..."},
		{"500 characters", 1, long[:1500], wire.Progress{Percent: 1, Text: long[:1500]}, "INFO progress percent=1 text=" + long[:1500]},
		{"control characters", 2, "a\nINFO b\r\x00\x1b[31m\u0085c", wire.Progress{Percent: 2, Text: "a INFO b   [31m c"}, `INFO progress percent=2 text="a INFO b   [31m c"`},
		{"no UTF-8", 3, "a\xff\xfeb", wire.Progress{Percent: 3, Text: "a\uFFFDb"}, "INFO progress percent=3 text=a\uFFFDb"},
		{"quotes", 4, `a="b"`, wire.Progress{Percent: 4, Text: `a="b"`}, `INFO progress percent=4 text="a=\"b\""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, lines, res := progressOf(t, executor.Config{}, func(_ context.Context, task *executor.Task) error {
					task.Progress(c.percent, c.text)
					return nil
				})
				if l.last() != c.want || res.Progress != c.want || !utf8.ValidString(res.Progress.Text) {
					t.Errorf("told %d %.600q, with the result %d %.600q", l.last().Percent, l.last().Text, res.Progress.Percent, res.Progress.Text)
				}
				if len(lines) != 1 || lines[0] != c.line {
					t.Errorf("lines %.600q, want %.600q", lines, c.line)
				}
			})
		})
	}
}

// TestProgressOfNothing: a literal, and a run that says nothing or only zero.
func TestProgressOfNothing(t *testing.T) {
	new(executor.Task).Progress(50, "half")
	synctest.Test(t, func(t *testing.T) {
		l, lines, res := progressOf(t, executor.Config{}, func(_ context.Context, task *executor.Task) error {
			task.Progress(0, "")
			return nil
		})
		if len(l.told) != 0 || len(lines) != 0 || res.Progress != (wire.Progress{}) {
			t.Errorf("told %+v, lines %q, with the result %+v", l.told, lines, res.Progress)
		}
	})
}

// TestProgressBelowTheLevel: the line is one of level INFO; who is told is not asked for it.
func TestProgressBelowTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, lines, res := progressOf(t, executor.Config{Log: executor.LogConfig{Level: slog.LevelWarn}}, func(_ context.Context, task *executor.Task) error {
			task.Progress(50, "")
			return nil
		})
		if len(l.told) != 1 || len(lines) != 0 || res.Progress.Percent != 50 {
			t.Errorf("told %+v, lines %q, with the result %+v", l.told, lines, res.Progress)
		}
	})
}

// TestProgressFromManyGoroutines: the bound is the run's, also where its handler has many
// hands, and what they say after it has returned is nothing.
func TestProgressFromManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, lines, res := progressOf(t, executor.Config{Log: executor.LogConfig{Dir: t.TempDir()}}, func(_ context.Context, task *executor.Task) error {
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					for k := range 1000 {
						task.Progress(i+1, fmt.Sprint(k))
						if k%100 == 99 {
							time.Sleep(time.Second)
						}
					}
				})
			}
			wg.Wait()
			task.Progress(100, "all")
			go func() {
				time.Sleep(time.Minute)
				task.Progress(1, "too late")
			}()
			return nil
		})
		if n := len(l.told); n > 12 || n < 10 || len(lines) > n+1 || lines[len(lines)-1] != "INFO progress percent=100 text=all" {
			t.Errorf("told %d times, %d lines, at last %q", n, len(lines), lines[len(lines)-1])
		}
		if res.Progress.Text != "all" {
			t.Errorf("with the result %+v", res.Progress)
		}
	})
}

// TestProgressFirstAfterTheReturn: a goroutine that the handler has left behind makes no log
// of its own.
func TestProgressFirstAfterTheReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, lines, res := progressOf(t, executor.Config{}, func(_ context.Context, task *executor.Task) error {
			go func() {
				time.Sleep(time.Minute)
				task.Progress(1, "too late")
			}()
			return nil
		})
		if len(l.told) != 0 || len(lines) != 0 || res.Progress != (wire.Progress{}) {
			t.Errorf("told %+v, lines %q, with the result %+v", l.told, lines, res.Progress)
		}
	})
}

// TestProgressOfAKilledRun: the result has what was said until the kill; a handler that goes
// on may go on saying it.
func TestProgressOfAKilledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{})
		l := &listener{}
		e.Bind(l)
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			for i := range 100 {
				task.Progress(i+1, "")
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		mustSend(t, e, req(7, 1))
		time.Sleep(4550 * time.Millisecond)
		if ret, err := e.Kill(t.Context(), wire.KillRequest{JobID: 7}); err != nil || !ret.OK() {
			t.Fatal(ret, err)
		}
		synctest.Wait()
		if res := l.result(t, 1); res.Progress.Percent != 46 || !res.Killed {
			t.Errorf("with the result %+v", res)
		}
		time.Sleep(time.Minute)
		if lines := logOf(t, e, req(7, 1)); lines[len(lines)-1] != "INFO progress percent=100" {
			t.Errorf("at last %q", lines)
		}
		if res := l.result(t, 1); res.Progress.Percent != 46 {
			t.Errorf("with the result %+v", res)
		}
	})
}

// TestProgressWithTheLog: whoever reads the log of a run that goes on is told how far it is,
// whatever the second; not of one that has ended, or of one that has its id.
func TestProgressWithTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			for i := range 100 {
				task.Progress(i+1, "of a hundred")
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		r := req(7, 1)
		r.LogDateTime = 1700000000123
		mustSend(t, e, r)
		time.Sleep(4550 * time.Millisecond)
		ask := func(date int64) wire.Progress {
			t.Helper()
			ret, err := e.Log(t.Context(), wire.LogRequest{LogID: 1, LogDateTim: date, FromLineNum: 1000})
			if err != nil || !ret.OK() {
				t.Fatal(ret, err)
			}
			return ret.Result.Progress
		}
		for _, date := range []int64{1700000000123, 1700000000000, 0} {
			if got := ask(date); got != (wire.Progress{Percent: 46, Text: "of a hundred"}) {
				t.Errorf("the log of %d: %+v", date, got)
			}
		}
		if got := ask(1600000000123); got != (wire.Progress{}) {
			t.Errorf("the log of another run: %+v", got)
		}
		time.Sleep(time.Minute)
		if got := ask(1700000000123); got != (wire.Progress{}) {
			t.Errorf("the log of the ended run: %+v", got)
		}
	})
}
