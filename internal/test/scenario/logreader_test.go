package scenario_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// longSink is a sink that has a long log of each run: line i begins with i.
type longSink struct {
	lines int
	mute  bool // it says no ToLineNum
}

func (s *longSink) WriteLogs(context.Context, []xxljob.RunLines) error { return nil }

func (s *longSink) ReadLog(_ context.Context, _ int64, from int) (res wire.LogResult, _ error) {
	var b strings.Builder
	for i := from; i <= s.lines; i++ {
		fmt.Fprintf(&b, "%d %s\n", i, strings.Repeat("x", 525))
	}
	res.LogContent = b.String()
	if res.ToLineNum = s.lines; s.mute {
		res.ToLineNum = 0
	}
	return res, nil
}

func (s *longSink) ReadLogTail(ctx context.Context, run int64, n int) (wire.LogResult, error) {
	return s.ReadLog(ctx, run, max(1, s.lines-n+1))
}

// TestTailOfALongLogInASink: of more than 1 MiB the last lines are returned, with their numbers,
// and whoever follows a log gets each line once.
func TestTailOfALongLogInASink(t *testing.T) {
	t.Parallel()
	for name, mute := range map[string]bool{"with numbers": false, "without numbers": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &longSink{lines: 5000, mute: mute}
				a := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) { c.Logs.Sink = sink })
				time.Sleep(10 * time.Second)
				id := ran(t, a, xxljob.Job{Name: "quiet", Handler: "work"})
				for _, n := range []int{1, 1000, 4000, 10_000} {
					res, err := a.LogTail(t.Context(), id, n)
					stage.Must(t, err)
					lines := strings.SplitAfter(strings.TrimSuffix(res.LogContent, "\n"), "\n")
					first := 5000 - len(lines) + 1
					if !strings.HasPrefix(lines[0], fmt.Sprint(first, " ")) || !strings.HasPrefix(lines[len(lines)-1], "5000 ") {
						t.Errorf("the last %d begin with %.6q and end with %.6q, and are %d", n, lines[0], lines[len(lines)-1], len(lines))
					}
					if len(lines) != min(n, 1<<20/531, 5000) && len(lines) != min(n, 1<<20/531+1, 5000) {
						t.Errorf("the last %d are %d lines of %d bytes", n, len(lines), len(res.LogContent))
					}
					if res.ToLineNum-res.FromLineNum != len(lines)-1 || !mute && res.ToLineNum != 5000 || mute && res.FromLineNum < 1 {
						t.Errorf("the last %d are %d lines, from %d to %d", n, len(lines), res.FromLineNum, res.ToLineNum)
					}
				}
				if lines, pages := follow(t, a, id); len(lines) != 5000 || pages != 3 || !strings.HasPrefix(lines[4999], "5000 ") {
					t.Errorf("all of it: %d lines in %d pages", len(lines), pages)
				}
				stage.Stop(t, a)
			})
		})
	}
}
