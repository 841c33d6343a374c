package scenario_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
)

// TestRunErr: why a run did not succeed, in one line.
func TestRunErr(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct {
		name string
		run  xxljob.Run
		want string
	}{
		{"planned", xxljob.Run{State: xxljob.StatePlanned}, ""},
		{"started", xxljob.Run{State: xxljob.StateStarted}, ""},
		{"dispatched", xxljob.Run{State: xxljob.StateDispatched}, ""},
		{"succeeded", xxljob.Run{State: xxljob.StateSucceeded, HandleMsg: "a result"}, ""},
		{"failed", xxljob.Run{State: xxljob.StateFailed, HandleMsg: "disk full"}, "failed: disk full"},
		{"failed without a word", xxljob.Run{State: xxljob.StateFailed, TriggerMsg: "addresses: a"}, "failed"},
		{"panicked", xxljob.Run{State: xxljob.StateFailed, HandleMsg: "panic: out of range\n\ngoroutine 7"}, "failed: panic: out of range"},
		{"lines of a foreign system", xxljob.Run{State: xxljob.StateFailed, HandleMsg: "\r\ndisk full\r\n\tat java"}, "failed: disk full"},
		{"long", xxljob.Run{State: xxljob.StateFailed, HandleMsg: long}, "failed: " + long[:500] + "..."},
		{"timed out", xxljob.Run{State: xxljob.StateTimedOut, HandleMsg: "job execute timeout after 2s"}, "timed out: job execute timeout after 2s"},
		{"killed", xxljob.Run{State: xxljob.StateKilled, HandleMsg: "by hand"}, "was killed: by hand"},
		{"killed before it was taken", xxljob.Run{State: xxljob.StateKilled, KillReason: "by hand"}, "was killed: by hand"},
		{"lost", xxljob.Run{State: xxljob.StateLost, TriggerMsg: "type: CRON\ninterrupted: the node is gone\na result came after the run was lost: succeeded"},
			"was lost: interrupted: the node is gone"},
		{"lost, with words", xxljob.Run{State: xxljob.StateLost, HandleMsg: "its process is gone", TriggerMsg: "type: CRON"}, "was lost: its process is gone"},
		{"refused", xxljob.Run{State: xxljob.StateRefused, HandleMsg: "no address", TriggerMsg: "type: CRON"}, "was refused: no address"},
		{"refused before reasons were kept", xxljob.Run{State: xxljob.StateRefused, TriggerMsg: "type: CRON\nno address\n"}, "was refused: no address"},
		{"discarded", xxljob.Run{State: xxljob.StateDiscarded, HandleMsg: block.MsgDiscard}, "was discarded: " + block.MsgDiscard},
		{"skipped", xxljob.Run{State: xxljob.StateSkipped, Reason: xxljob.ReasonMisfire, First: at, Last: at, Count: 61}, "was skipped: misfire, instants: 61"},
		{"skipped for long", xxljob.Run{State: xxljob.StateSkipped, Reason: xxljob.ReasonBacklog, Count: store.CountCap}, "was skipped: backlog, instants: at least 1000"},
		{"cancelled", xxljob.Run{State: xxljob.StateCancelled, Reason: "stop"}, "was cancelled: stop"},
	} {
		tt.run.ID = 12
		err := tt.run.Err()
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || err.Error() != "xxljob: run 12 "+tt.want):
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

// TestRunErrOfRuns: whatever way a run ends in, its error has the reason.
func TestRunErrOfRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newOutcomeWorld(t, block.DiscardLater, true)
		slow := w.add("slow")
		w.run(slow)
		for what, id := range map[string]int64{
			"disk full":                             w.run(w.add("error")),
			"out of range":                          w.run(w.add("panic")),
			"was refused: job handler [nobody] not": w.run(w.add("nobody")),
			"app elsewhere has no live executor":    w.run(w.add("ok", func(j *xxljob.Job) { j.App = "elsewhere" })),
			block.MsgDiscard:                        w.run(slow),
			"timed out: job execute timeout after":  w.run(w.add("stubborn", func(j *xxljob.Job) { j.Timeout = 3 * time.Second })),
		} {
			err := w.wait(id).Err()
			if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q in one line", err, what)
			}
		}
		if err := w.wait(w.run(w.add("ok"))).Err(); err != nil {
			t.Errorf("a run that has succeeded: %v", err)
		}
		stage.Must(t, w.Stop(t.Context()))
		time.Sleep(2 * time.Minute) // for the abandoned handler to return
	})
}
