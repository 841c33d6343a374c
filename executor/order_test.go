package executor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// TestLaterByDueTime: which of two runs is the later one goes by when they were due, and then by
// their ids, and not by which has come first.
func TestLaterByDueTime(t *testing.T) {
	type sent struct{ due, id int64 }
	for _, c := range []struct {
		name, strategy string
		first, second  sent
		answer         string // to the second
		cause          error  // of the first, which waits
	}{
		{"a later cover", block.CoverEarly, sent{1000, 1}, sent{2000, 2}, wire.MsgSuccess, executor.ErrCovered},
		{"an earlier cover", block.CoverEarly, sent{2000, 1}, sent{1000, 2}, block.MsgCover, nil},
		{"a cover by id", block.CoverEarly, sent{1000, 1}, sent{1000, 2}, wire.MsgSuccess, executor.ErrCovered},
		{"an earlier cover by id", block.CoverEarly, sent{1000, 2}, sent{1000, 1}, block.MsgCover, nil},
		{"a cover that does not say", block.CoverEarly, sent{2000, 2}, sent{0, 1}, wire.MsgSuccess, executor.ErrCovered},
		{"of one that does not say", block.CoverEarly, sent{0, 2}, sent{1000, 1}, wire.MsgSuccess, executor.ErrCovered},
		{"a later one is discarded", block.DiscardLater, sent{1000, 1}, sent{2000, 2}, block.MsgDiscard, nil},
		{"one that does not say is discarded", block.DiscardLater, sent{1000, 2}, sent{0, 1}, block.MsgDiscard, nil},
		{"an earlier one waits", block.DiscardLater, sent{2000, 2}, sent{1000, 1}, wire.MsgSuccess, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, a := open(t, executor.Config{})
				var causes [3]error
				handle(t, e, "h", func(ctx context.Context, task *executor.Task) error {
					select {
					case <-ctx.Done():
						causes[task.RunID] = context.Cause(ctx)
					case <-time.After(time.Second):
					}
					return nil
				})
				answers := map[int64]wire.Return{}
				for _, s := range []sent{c.first, c.second} {
					r := req(7, s.id)
					r.ExecutorBlockStrategy, r.DueAt = c.strategy, s.due
					answers[s.id] = send(t, e, r)
					synctest.Wait()
				}
				if got := answers[c.second.id].Msg; answers[c.first.id] != wire.Success() || got != c.answer {
					t.Errorf("answers %+v, want %q to the second", answers, c.answer)
				}
				time.Sleep(time.Minute)
				if got := causes[c.first.id]; got != c.cause {
					t.Errorf("the first was ended by %v, want %v", got, c.cause)
				}
				want := 1
				if c.answer == wire.MsgSuccess {
					want = 2
				}
				if got := a.ids(); len(got) != want {
					t.Errorf("results of %v, want %d", got, want)
				}
			})
		})
	}
}

// TestAnEarlierCoverAmongOthers: what is under way is covered by the later ones, and an earlier one
// that comes behind these changes nothing.
func TestAnEarlierCoverAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := open(t, executor.Config{})
		handle(t, e, "h", func(context.Context, *executor.Task) error { time.Sleep(time.Second); return nil }) // deaf
		for _, s := range []struct {
			due int64
			msg string
		}{{1000, wire.MsgSuccess}, {3000, wire.MsgSuccess}, {2000, block.MsgCover}, {4000, wire.MsgSuccess}} {
			r := req(7, s.due)
			r.ExecutorBlockStrategy, r.DueAt = block.CoverEarly, s.due
			if got := send(t, e, r); got.Msg != s.msg {
				t.Errorf("the answer to the run due at %d is %q, want %q", s.due, got.Msg, s.msg)
			}
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		for due, msg := range map[int64]string{1000: coveredRunning, 3000: coveredQueued, 4000: ""} {
			if got := a.result(t, due); got.HandleMsg != msg {
				t.Errorf("run %d ended with %q, want %q", due, got.HandleMsg, msg)
			}
		}
		if got := len(a.ids()); got != 3 {
			t.Errorf("%d results, want 3", got)
		}
	})
}
