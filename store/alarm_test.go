package store_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/xxljob/xxljob/store"
)

// alarmWanted is which alarm an end is, worked out in another way than Run.Alarm does it.
func alarmWanted(state store.State, followed, late, kill bool) string {
	if late && !state.Ended() {
		return "late"
	}
	causes := map[store.State][2]string{ // of the last attempt, of any other
		store.StateFailed: {"failed", "attempt"}, store.StateTimedOut: {"failed", "attempt"}, store.StateRefused: {"failed", "attempt"},
		store.StateLost: {"lost", "attempt"}, store.StateKilled: {"failed", "attempt"}, store.StateDiscarded: {"failed", "attempt"}, // as a further attempt
		store.StateSkipped: {"skipped", "skipped"},
	}
	return causes[state][max(btoi(followed), btoi(kill))]
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestAlarmOfEachState is the decider over every state, with and without what follows.
func TestAlarmOfEachState(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, state := range everyState {
		for bits := range 8 {
			followed, late, kill := bits&1 != 0, bits&2 != 0, bits&4 != 0
			run := store.Run{ID: 9, TriggerID: 7, JobID: 5, Shard: 3, App: "app", State: state, Attempt: 2, Type: store.TriggerRetry,
				Scheduled: at.Add(time.Hour), First: at.Add(-time.Minute), Last: at, HandleMsg: "boom"}
			if kill {
				run.KillReason = "unwanted"
			}
			a, ok := run.Alarm(followed, late)
			want := alarmWanted(state, followed, late, kill)
			if ok != (want != "") || a.Cause != want {
				t.Errorf("%s, followed %v, late %v, to be killed %v: %q, %v, want %q", state, followed, late, kill, a.Cause, ok, want)
			}
			if !ok {
				continue
			}
			text := a.Text
			a.Cause, a.Text = "", ""
			if said := (store.Alarm{Shard: 3, App: "app", JobID: 5, RunID: 9, TriggerID: 7, State: state.String(), Attempt: 2, Instant: at}); a.RunID != said.RunID ||
				a.TriggerID != said.TriggerID || a.Shard != said.Shard || a.App != said.App || a.JobID != said.JobID || a.State != said.State || a.Attempt != said.Attempt || !a.Instant.Equal(said.Instant) {
				t.Errorf("%s says %+v, want %+v", state, a, said)
			}
			if text == "" {
				t.Errorf("%s has no text", state)
			}
		}
	}
}

// TestAlarmSaysWhy: what is said of each kind of end.
func TestAlarmSaysWhy(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		run  store.Run
		want string
	}{
		{"a handler's error", store.Run{State: store.StateFailed, HandleMsg: " boom\r\n"}, "boom"},
		{"lost", store.Run{State: store.StateLost, TriggerMsg: "started\nthe node has died\n"}, "the node has died"},
		{"refused", store.Run{State: store.StateRefused, HandleMsg: "no address", TriggerMsg: "tried"}, "no address"},
		{"killed", store.Run{State: store.StateKilled, KillReason: "unwanted"}, "unwanted"},
		{"a record", store.Run{State: store.StateSkipped, Reason: store.ReasonMisfire, Count: 3}, "misfire, instants: 3"},
		{"a record of very many", store.Run{State: store.StateSkipped, Reason: store.ReasonBacklog, Count: store.CountCap}, "backlog, instants: at least"},
		{"a record that says more", store.Run{State: store.StateSkipped, Reason: store.ReasonJoin, Count: 1, TriggerMsg: "the window is over"}, "the window is over"},
		{"not started", store.Run{State: store.StatePlanned}, "it has not started"},
		{"not ended", store.Run{State: store.StateStarted, Started: at}, "it has started at "},
		{"with the executor", store.Run{State: store.StateDispatched, Started: at}, "it has started at "},
		{"too long", store.Run{State: store.StateFailed, HandleMsg: strings.Repeat("错", 1000)}, strings.Repeat("错", store.MostAlarmText/3)},
	} {
		a, ok := tt.run.Alarm(false, true)
		if !ok || !strings.HasPrefix(a.Text, tt.want) || len(a.Text) > store.MostAlarmText {
			t.Errorf("%s: %v, text %q, want %q", tt.name, ok, a.Text, tt.want)
		}
	}
}

// TestAlarmTexts: whatever comes in, what comes out is text that everybody can show.
func TestAlarmTexts(t *testing.T) {
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, seed))
	pieces := []string{"a", "错", "\x00", "\x80", "\xff", "\n", "\r", "\t", "\u0085", "\u200b", "🙂", "\ufffd", "\xe9\x94", " "}
	for range 2000 {
		var b strings.Builder
		for range rnd.IntN(2 * store.MostAlarmText) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		text := b.String()
		got := store.AlarmText(text)
		bad := strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && unicode.IsControl(r) || r == unicode.ReplacementChar })
		if bad || !utf8.ValidString(got) || len(got) > store.MostAlarmText || got != strings.TrimSpace(got) || store.AlarmText(got) != got {
			t.Fatalf("seed %d: AlarmText(%q) is %q", seed, text, got)
		}
	}
	for in, want := range map[string]string{"": "", "boom": "boom", " a\nb\r\n": "a\nb", "\x00\x01": "", "a\x00b": "a b"} {
		if got := store.AlarmText(in); got != want {
			t.Errorf("AlarmText(%q) is %q, want %q", in, got, want)
		}
	}
}

// TestCut: the longest beginning of whole runes; of what is no text no more is lost.
func TestCut(t *testing.T) {
	for _, text := range []string{"", "abc", "错错错", "a🙂b", strings.Repeat("🙂", 9)} {
		for n := range len(text) + 3 {
			got, want := store.Cut(text, n), ""
			for i, r := range text {
				if i+utf8.RuneLen(r) <= n {
					want += string(r)
				}
			}
			if got != want {
				t.Errorf("Cut(%q, %d) is %q, want %q", text, n, got, want)
			}
		}
	}
	garbage := strings.Repeat("boom", 10) + strings.Repeat("\x80", 1000)
	if got := store.Cut(garbage, 100); !strings.HasPrefix(got, "boomboom") || !utf8.ValidString(got) || len(got) > 100 {
		t.Errorf("of garbage %q is left", got)
	}
}
