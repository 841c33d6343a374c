package scenario_test

import (
	"context"
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

// Whatever number of a line is asked for, and whatever an executor answers to it, the
// store is given no number of more than 32 bits, which it could not keep.
func TestLogLineNumbersStayInBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		attachLog(t, b, "far", func(_ context.Context, req wire.LogRequest) (wire.LogReturn, error) {
			return wire.LogReturn{Code: wire.CodeSuccess, Result: wire.LogResult{
				FromLineNum: req.FromLineNum, ToLineNum: math.MaxInt, LogContent: strings.Repeat("x\n", 1<<20),
			}}, nil
		})
		time.Sleep(10 * time.Second)
		id := ran(t, a, xxljob.Job{App: "far", Name: "far", Handler: "quick"})
		for _, from := range []int{math.MinInt, 1, math.MaxInt32, math.MaxInt} {
			res, err := a.Log(t.Context(), id, from)
			stage.Must(t, err)
			if res.FromLineNum < 1 || res.FromLineNum > math.MaxInt32 || res.ToLineNum < res.FromLineNum || res.ToLineNum > math.MaxInt32 {
				t.Errorf("from line %d: lines %d to %d", from, res.FromLineNum, res.ToLineNum)
			}
		}
		stage.Stop(t, a, b)
	})
}
