package interop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// log asks for a run's log and wants it answered.
func (s *site) log(t *testing.T, req wire.TriggerRequest, from int) wire.LogResult {
	t.Helper()
	// Real admins have the date from a column of whole seconds.
	r, err := s.client.Log(t.Context(), wire.LogRequest{LogDateTim: req.LogDateTime / 1000 * 1000, LogID: req.LogID, FromLineNum: from})
	if err != nil || !r.OK() {
		t.Fatalf("log: %+v, %v", r, err)
	}
	return r.Result
}

func rollingLog(t *testing.T, s *site) {
	const n = 8
	req := s.request("lines", fmt.Sprintf("%d 400", n))
	s.accepted(t, req, 1)
	var text strings.Builder
	next, pulls := 1, 0
	pull := func() {
		got := s.log(t, req, next)
		if got.LogContent == "" {
			return
		}
		if got.IsEnd && !s.early {
			t.Errorf("isEnd at line %d", got.ToLineNum)
		}
		text.WriteString(got.LogContent)
		next = got.ToLineNum + 1
		pulls++
	}
	s.started(t, req)
	eventually(t, time.Minute, "the end", func() bool {
		pull()
		time.Sleep(50 * time.Millisecond)
		return len(s.admin.resultsOf(req.LogID)) > 0
	})
	pull()
	if pulls < 3 {
		t.Errorf("the log came in %d pieces", pulls)
	}
	rest := text.String()
	for i := range n {
		line := fmt.Sprintf("line %d of %d", i+1, n)
		before, after, ok := strings.Cut(rest, line)
		if !ok || strings.Contains(before, "line ") && strings.Contains(before, " of ") {
			t.Fatalf("%q is missing, or out of turn:\n%s", line, text.String())
		}
		rest = after
	}
	s.resultIs(t, req, success(""))
	whole := s.log(t, req, 1)
	// What a Java executor adds after the report may have come meanwhile.
	if !strings.HasPrefix(whole.LogContent, text.String()) {
		t.Errorf("in pieces:\n%s\nas a whole:\n%s", text.String(), whole.LogContent)
	}

	behind := s.log(t, req, whole.ToLineNum+100)
	// Java may add its line about the report at any moment here: what the log
	// held when it was asked lies between this page and the one of before.
	after := s.log(t, req, 1)
	low, high := whole.ToLineNum, after.ToLineNum
	switch s.pastEnd {
	case "zero":
		low, high = 0, 0
	case "same":
		low, high = whole.ToLineNum+100, whole.ToLineNum+100
	}
	if behind.LogContent != "" || behind.ToLineNum < low || behind.ToLineNum > high {
		t.Errorf("behind the end: %+v, want toLineNum %d to %d", behind, low, high)
	}
	none := s.request("echo", "")
	if got := s.log(t, none, 1); got.LogContent != s.noLog {
		t.Errorf("of an unknown run: %+v, want %q", got, s.noLog)
	}
}
