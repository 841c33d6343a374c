package executor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

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
