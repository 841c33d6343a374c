package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// TestLogTailAcrossNodes: the last lines of a run's log, at the node that runs it and at
// another one, with the number to go on from.
func TestLogTailAcrossNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		goOn := make(chan struct{})
		stage.Must(t, b.Handle("chat", chatty(goOn)))
		time.Sleep(10 * time.Second)
		id := stage.TriggerNew(t, a, xxljob.Job{Name: "chat", Handler: "chat"})
		time.Sleep(2 * time.Second)
		for _, n := range []*stage.Node{a, b} {
			for last, want := range map[int]string{1: "2 2 two", 2: "1 2 one two", 3: "1 2 one two", 0: "2 2 two", math.MinInt: "2 2 two", math.MaxInt: "1 2 one two"} {
				res, err := n.LogTail(t.Context(), id, last)
				if got := brief(res); err != nil || got != want || res.IsEnd {
					t.Errorf("%s, the last %d while it runs: %q %v, want %q", n.Name, last, got, err, want)
				}
			}
		}
		close(goOn)
		_, err := a.Wait(t.Context(), id)
		stage.Must(t, err)
		for _, n := range []*stage.Node{a, b} {
			res, err := n.LogTail(t.Context(), id, 2)
			if got := brief(res); err != nil || got != "2 3 two three" || !res.IsEnd {
				t.Errorf("%s after its end: %q %v %t", n.Name, got, err, res.IsEnd)
			}
		}
		_, err = a.LogTail(t.Context(), id+1000, 2)
		if !errors.Is(err, xxljob.ErrNotFound) {
			t.Errorf("the tail of an unknown run: %v", err)
		}
		stage.Stop(t, a, b)
	})
}

// TestLogTailOfOthers: executors that do not know of tails are asked in two ways, and
// whatever they say stays within the bounds.
func TestLogTailOfOthers(t *testing.T) {
	t.Parallel()
	if stage.Detector {
		t.Skip("one request after the other, of long texts: the race detector has nothing to say of it")
	}
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "%d\n", i)
		}
		return b.String()
	}
	const all = 300_000
	calls, longest := 0, 0
	answer := func(from, to int, content string) (wire.LogReturn, error) {
		longest = max(longest, len(content))
		return wire.LogReturn{Code: wire.CodeSuccess, Result: wire.LogResult{FromLineNum: from, ToLineNum: to, LogContent: content}}, nil
	}
	for name, c := range map[string]struct {
		log      func(from int) (wire.LogReturn, error)
		from, to int
		begins   string
		calls    int
	}{
		"counts its lines, as Java does": {func(from int) (wire.LogReturn, error) { return answer(from, all, lines(from, all)) }, all - 9_999, all, "290001\n", 2},
		"says zero where there is none": {func(from int) (wire.LogReturn, error) {
			if from > all {
				return answer(from, 0, "")
			}
			return answer(from, all, lines(from, all))
		}, all - 9_999, all, "290001\n", 3},
		"echoes the line": {func(from int) (wire.LogReturn, error) {
			if from > 3 {
				return answer(from, from, "")
			}
			return answer(from, 3, lines(from, 3))
		}, 1, 3, "1\n", 2},
		"answers in pages": {func(from int) (wire.LogReturn, error) {
			if from > all {
				return answer(from, 0, "")
			}
			to := min(from+149_999, all)
			return answer(from, to, lines(from, to))
		}, all - 9_999, all, "290001\n", 4},
		"always the same":       {func(from int) (wire.LogReturn, error) { return answer(from, 2, "one\ntwo") }, 1, 2, "one\n", 2},
		"has no end":            {func(from int) (wire.LogReturn, error) { return answer(from, from+99_999, lines(1, 100_000)) }, 3_190_001, 3_200_000, "90001\n", 33},
		"absurd numbers":        {func(from int) (wire.LogReturn, error) { return answer(math.MinInt, math.MaxInt, "x\n") }, math.MaxInt32 - 1, math.MaxInt32 - 1, "x\n", 2},
		"one line of 4 MiB":     {func(from int) (wire.LogReturn, error) { return answer(from, 1, strings.Repeat("y", 4<<20)) }, 1, 1, "yyy", 3},
		"no line at all":        {func(from int) (wire.LogReturn, error) { return answer(from, 0, "") }, 1, 0, "", 2},
		"bytes that no text is": {func(from int) (wire.LogReturn, error) { return answer(from, 1, "a\x00\xff\n") }, 1, 1, "a\uFFFD\uFFFD\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := stage.StartNode(t, memory.New(), "a", &stage.Journal{})
				calls = 0
				attachLog(t, a, "far", func(_ context.Context, req wire.LogRequest) (wire.LogReturn, error) {
					calls++
					return c.log(req.FromLineNum)
				})
				time.Sleep(10 * time.Second)
				id := ran(t, a, xxljob.Job{App: "far", Name: "far", Handler: "quick"})
				res, err := a.LogTail(t.Context(), id, math.MaxInt)
				if err != nil || res.FromLineNum != c.from || res.ToLineNum != c.to || !strings.HasPrefix(res.LogContent, c.begins) || len(res.LogContent) > 1<<20 || !res.IsEnd {
					t.Errorf("lines %d to %d, %d bytes %.40q, %v; want %d to %d %q", res.FromLineNum, res.ToLineNum, len(res.LogContent), res.LogContent, err, c.from, c.to, c.begins)
				}
				if calls != c.calls {
					t.Errorf("%d calls, want %d", calls, c.calls)
				}
				stage.Stop(t, a)
			})
		})
	}
}
