package executor_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// dated is req of a run that was made at a date.
func dated(job, id, date int64) wire.TriggerRequest {
	r := req(job, id)
	r.LogDateTime = date
	return r
}

// TestTwins: an admin that begins its ids anew gives an id twice. The date tells the two
// runs apart, whatever became of the first.
func TestTwins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		handle(t, e, "h", untilDone)
		mustSend(t, e, dated(7, 1, 1000))
		mustSend(t, e, dated(8, 1, 1001)) // beside it
		mustSend(t, e, dated(8, 1, 1002)) // behind it
		for _, date := range []int64{1000, 1001, 1002, 0} {
			wantRepeat(t, send(t, e, dated(7, 1, date)), 1)
		}
		for _, k := range []struct {
			kill wire.KillRequest
			left []int64
		}{
			{wire.KillRequest{JobID: 7, LogID: 1, LogDateTime: 1003}, []int64{1000, 1001, 1002}},
			{wire.KillRequest{JobID: 7, LogID: 1, LogDateTime: 1001}, []int64{1000, 1001, 1002}}, // another job's
			{wire.KillRequest{JobID: 8, LogID: 1, LogDateTime: 1001}, []int64{1000, 1002}},
			{wire.KillRequest{LogID: 1}, nil},
		} {
			if _, err := e.Kill(t.Context(), k.kill); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			var left []int64
			for _, date := range []int64{1000, 1001, 1002} {
				if send(t, e, dated(7, 1, date)) == wire.Noted(wire.MsgRepeat, 1) {
					left = append(left, date)
				}
			}
			if !slices.Equal(left, k.left) {
				t.Errorf("after %+v: %v run, want %v", k.kill, left, k.left)
			}
		}
		for _, date := range []int64{1000, 1001, 1002, 0} {
			wantEnded(t, send(t, e, dated(7, 1, date)), 1)
		}
		mustSend(t, e, dated(7, 1, 1003))
		mustSend(t, e, dated(9, 2, 0))
		wantRepeat(t, send(t, e, dated(9, 2, 1000)), 2) // may be that one
		synctest.Wait()
		var dates []int64
		for _, r := range a.results() {
			dates = append(dates, r.LogDateTim)
		}
		slices.Sort(dates)
		if !slices.Equal(dates, []int64{1000, 1001, 1002}) {
			t.Errorf("results of %v", dates)
		}
		for _, job := range []int64{7, 9} {
			if _, err := e.Kill(t.Context(), wire.KillRequest{JobID: job}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestIdsBeginAnew is an admin that starts at 1 again, within minutes: all of its runs run.
func TestIdsBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		var runs atomic.Int32
		handle(t, e, "h", func(context.Context, *executor.Task) error { runs.Add(1); return nil })
		for range 2 {
			for id := range int64(25) {
				mustSend(t, e, dated(1, id+1, time.Now().UnixMilli()))
			}
			synctest.Wait()
			time.Sleep(time.Second)
		}
		if runs.Load() != 50 || len(a.results()) != 50 {
			t.Errorf("%d runs, %d results, want 50", runs.Load(), len(a.results()))
		}
	})
}

// TestTwinLogs has logs of runs with the same id, asked for as our admins and Java's do.
func TestTwinLogs(t *testing.T) {
	for _, kind := range []string{"memory", "files"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := executor.Config{}
				if kind == "files" {
					cfg.Log.Dir = t.TempDir()
				}
				e, _ := open(t, cfg)
				handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
					if task.Param != "" {
						task.Log().Info(task.Param)
						return nil
					}
					time.Sleep(time.Minute)
					return nil
				})
				day := time.Now().UnixMilli()
				for i, date := range []int64{day + 100, day + 5700, day + 9000} {
					r := dated(int64(i), 1, date)
					if r.ExecutorParams = fmt.Sprint("run ", i); i == 2 {
						r.ExecutorParams = "" // silent
					}
					mustSend(t, e, r)
					synctest.Wait()
				}
				line := func(i int) wire.LogResult {
					return wire.LogResult{FromLineNum: 1, ToLineNum: 1, LogContent: fmt.Sprintf("2000-01-01 00:00:00 INFO run %d\n", i)}
				}
				silent := wire.LogResult{FromLineNum: 1}
				for _, c := range []struct {
					asked int64
					want  wire.LogResult
				}{
					{day + 100, line(0)}, {day, line(0)}, {day + 5700, line(1)}, {day + 5000, line(1)}, {day + 6000, line(1)}, // rounded
					{day + 9000, silent}, {day + 3000, noLog}, {day + 7001, noLog}, {0, line(1)},
				} {
					if got := readLog(t, e, wire.LogRequest{LogID: 1, LogDateTim: c.asked}); got != c.want {
						t.Errorf("asked for %d ms: %+v, want %+v", c.asked-day, got, c.want)
					}
				}
				if got := readLog(t, e, wire.LogRequest{LogID: 2}); got != noLog {
					t.Errorf("another id: %+v", got)
				}
			})
		})
	}
}

// TestTwinLogsAreDropped: logs in memory with the same id go one by one, the oldest first.
func TestTwinLogsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, executor.Config{Log: executor.LogConfig{TotalBytes: 1500}})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error { task.Log().Info("x"); return nil })
		for date := int64(1); date <= 20; date++ { // about 290 bytes each
			mustSend(t, e, dated(date, date%2, date))
			synctest.Wait()
		}
		var kept []int64
		for date := int64(1); date <= 20; date++ {
			if readLog(t, e, wire.LogRequest{LogID: date % 2, LogDateTim: date}) != noLog {
				kept = append(kept, date)
			}
		}
		if !slices.Equal(kept, []int64{16, 17, 18, 19, 20}) {
			t.Errorf("logs of %v are kept", kept)
		}
	})
}

// TestAbsurdDates: such a date is told back, and makes neither a directory nor an instant.
func TestAbsurdDates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e, a := open(t, executor.Config{Log: executor.LogConfig{Dir: dir}})
		var at []time.Time
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			at = append(at, task.ScheduledAt)
			task.Log().Info("x")
			return nil
		})
		now := time.Now()
		dates := []int64{253402300800000, math.MaxInt64, -1, -62135596800001, math.MinInt64}
		for _, date := range dates {
			r := dated(1, 1, date)
			r.ScheduledAt = date
			mustSend(t, e, r)
			synctest.Wait()
			if got := readLog(t, e, wire.LogRequest{LogID: 1, LogDateTim: date}); got.ToLineNum != 1 {
				t.Errorf("log of %d: %+v", date, got)
			}
			if ret, _ := e.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 1, LogID: 1, LogDateTime: date, StartedAgo: date}); ret.RunState != wire.RunReported {
				t.Errorf("%d: %+v", date, ret)
			}
		}
		for i, r := range a.results() {
			if r.LogDateTim != dates[i] || r.HandleCode != wire.CodeSuccess {
				t.Errorf("result %+v of a run of %d", r, dates[i])
			}
		}
		for _, got := range at {
			if !got.Equal(now) {
				t.Errorf("an instant of %v", got)
			}
		}
		days, err := filepath.Glob(filepath.Join(dir, "*"))
		if want := []string{filepath.Join(dir, "2000-01-01")}; err != nil || !slices.Equal(days, want) || len(at) != len(dates) {
			t.Errorf("%d runs, directories %q", len(at), days)
		}
	})
}

// TestHandlerChangesItsTask: what a handler does to its copy of the ids is its own affair.
func TestHandlerChangesItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		handle(t, e, "h", func(ctx context.Context, task *executor.Task) error {
			task.RunID, task.JobID = 99, 99
			<-ctx.Done()
			return nil
		})
		mustSend(t, e, req(7, 1))
		synctest.Wait()
		if ret, _ := e.Kill(t.Context(), wire.KillRequest{JobID: 7, LogID: 1}); ret != wire.Success() {
			t.Errorf("kill: %+v", ret)
		}
		synctest.Wait()
		if got := a.ids(); !slices.Equal(got, []int64{1}) {
			t.Errorf("results of %v", got)
		}
		wantEnded(t, send(t, e, req(7, 1)), 1)
	})
}
