package executor

import (
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// The size that a result is taken for is never below that which it has.
func TestEncodedSize(t *testing.T) {
	for _, msg := range []string{"", "ok", `"\`, "\x00\n\t", "é日本🙂", "\u2028\u2029", "\xff\xfe", strings.Repeat("x", 50_000)} {
		r := wire.CallbackRequest{LogID: -1 << 63, LogDateTim: -1 << 63, HandleCode: -1 << 31, HandleMsg: msg, NoRetry: true, Killed: true, Shutdown: true, RetryIn: 1<<63 - 1, SnoozeIn: 1<<63 - 1, Exact: true}
		has := len(wire.EncodeCallback(nil, wire.CallbackList, []wire.CallbackRequest{r}))
		if est := encodedSize(&r); est < has || est > has+resultOverhead {
			t.Errorf("%.10q: taken for %d bytes, has %d", msg, est, has)
		}
	}
}

func TestBatchLimit(t *testing.T) {
	small := wire.CallbackRequest{HandleMsg: "ok"}
	large := wire.CallbackRequest{HandleMsg: strings.Repeat("x", 300_000)}
	huge := wire.CallbackRequest{HandleMsg: strings.Repeat("x", 3_000_000)}
	many := make([]wire.CallbackRequest, 2000)
	for _, c := range []struct {
		name    string
		limit   batchLimit
		results []wire.CallbackRequest
		want    int
	}{
		{"none", clusterBatch, nil, 0},
		{"few", clusterBatch, many[:3], 3},
		{"many", clusterBatch, many, 50},
		{"many within the process", localBatch, many, 1000},
		{"two large ones are too much", clusterBatch, []wire.CallbackRequest{small, large, large}, 2},
		{"one that is too large goes alone", clusterBatch, []wire.CallbackRequest{huge, small}, 1},
		{"but not with others", clusterBatch, []wire.CallbackRequest{small, huge}, 1},
	} {
		if got := c.limit.cut(c.results); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
