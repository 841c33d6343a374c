package memory_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestAsksAreDropped looks at an open and at an answered question shortly before
// and after a minute.
func TestAsksAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		run, err := f.AddRun(t.Context(), f.job().ID, store.Trigger{})
		f.must(err)
		ask := func() int64 {
			a, err := f.AskLog(t.Context(), store.Ask{Incarnation: here, Run: run, FromLine: 1})
			f.must(err)
			return a.ID
		}
		kept := func(what string, open, answered int64, want bool) {
			t.Helper()
			in, err := f.Inbox(t.Context(), here, 0, 10)
			f.must(err)
			if has := len(in.Asks) > 0 && in.Asks[0].ID == open; has != want {
				t.Errorf("%s: question in the inbox: %v, want %v", what, has, want)
			}
			for _, id := range []int64{open, answered} {
				_, is, err := f.LogAnswer(t.Context(), id)
				if absent := errors.Is(err, store.ErrNotFound); absent == want || is != (want && id == answered) {
					t.Errorf("%s: question %d: answered %v, %v", what, id, is, err)
				}
			}
		}
		open, answered := ask(), ask()
		f.must(f.AnswerLog(t.Context(), answered, store.Answer{Content: "x\n"}))
		time.Sleep(time.Minute - time.Millisecond)
		kept("shortly before", open, answered, true)
		time.Sleep(time.Millisecond)
		f.must(f.AnswerLog(t.Context(), open, store.Answer{Content: "late\n"}))
		kept("a minute after", open, answered, false)
		if n := f.Asks(); n != 0 {
			t.Errorf("%d questions are kept", n)
		}
	})
}
