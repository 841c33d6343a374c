package dispatch_test

import (
	"testing"

	"github.com/xxljob/xxljob/internal/engine/dispatch"
	"github.com/xxljob/xxljob/wire"
)

// TestResultsHaveTextsThatAreKept: one that is not would be compared in vain with what is stored.
func TestResultsHaveTextsThatAreKept(t *testing.T) {
	for _, c := range []struct{ said, want string }{
		{"a\x00b", "a\uFFFDb"}, {"\xc4\xe3\xba\xc3", "\uFFFD"}, {"cut \xe9\x94", "cut \uFFFD"}, {"𝄞 漢字", "𝄞 漢字"},
	} {
		r := dispatch.ResultOf(&wire.CallbackRequest{HandleCode: wire.CodeFail, HandleMsg: c.said, Progress: wire.Progress{Percent: 50, Text: c.said}})
		if r.HandleMsg != c.want || r.ProgressText != c.want {
			t.Errorf("%q: %q and %q, want %q", c.said, r.HandleMsg, r.ProgressText, c.want)
		}
	}
}
