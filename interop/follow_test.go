package interop_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/wire"
)

// follows reads the log of a run as a console does: on and on from behind the last
// line, until nothing will come.
func follows(t *testing.T, s *stage) {
	const n = 8
	id := s.begun(t, s.job(t, "lines", fmt.Sprintf("%d 400", n)))
	var text strings.Builder
	next, pulls := 1, 0
	eventually(t, time.Minute, "the end of the log", func() bool {
		got, err := s.Log(t.Context(), id, next)
		if err != nil {
			t.Fatal(err)
		}
		if got.LogContent != "" {
			text.WriteString(got.LogContent)
			pulls++
		}
		if got.FromLineNum != next || got.ToLineNum < next-1 || got.ToLineNum < next != (got.LogContent == "") {
			t.Errorf("asked from line %d: %+v", next, got)
		}
		next = got.ToLineNum + 1
		time.Sleep(50 * time.Millisecond)
		return got.IsEnd
	})
	if run := s.now(t, id); !run.State.Ended() {
		t.Errorf("the log has ended while the run is %v", run.State)
	}
	if pulls < 3 {
		t.Errorf("the log came in %d pieces", pulls)
	}
	rest := text.String()
	for i := range n {
		line := fmt.Sprintf("line %d of %d", i+1, n)
		if strings.Count(text.String(), line) != 1 {
			t.Errorf("%q is there %d times:\n%s", line, strings.Count(text.String(), line), text.String())
		}
		_, after, ok := strings.Cut(rest, line)
		if !ok {
			t.Fatalf("%q is out of turn:\n%s", line, text.String())
		}
		rest = after
	}
	s.wellEnded(t, id, "")
	whole, err := s.Log(t.Context(), id, 1)
	if err != nil || !strings.HasPrefix(whole.LogContent, text.String()) {
		t.Errorf("%v; in pieces:\n%s\nas a whole:\n%s", err, text.String(), whole.LogContent)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(whole.LogContent, "\n"), "\n")
	for _, last := range []int{1, 3, 1000} {
		tail, err := s.LogTail(t.Context(), id, last)
		want := strings.Join(lines[max(len(lines)-last, 0):], "") + "\n"
		if err != nil || tail.LogContent != want || tail.ToLineNum != whole.ToLineNum || tail.FromLineNum != max(whole.ToLineNum-last+1, 1) || !tail.IsEnd {
			t.Errorf("the last %d lines: %+v, %v, want up to %d\n%s", last, tail, err, whole.ToLineNum, want)
		}
	}
	if behind, err := s.Log(t.Context(), id, whole.ToLineNum+100); err != nil || behind.LogContent != "" || !behind.IsEnd || behind.ToLineNum >= behind.FromLineNum {
		t.Errorf("behind the end: %+v, %v", behind, err)
	}
	refused := s.trigger(t, s.job(t, "nobody", ""), 0)
	s.ended(t, refused)
	none, err := s.Log(t.Context(), refused, 1)
	if s.noLog == wire.MsgNoLog && !errors.Is(err, xxljob.ErrNoLog) || s.noLog != wire.MsgNoLog && (err != nil || none.LogContent != s.noLog) {
		t.Errorf("of a run that was refused: %+v, %v", none, err)
	}
}
