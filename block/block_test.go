package block

import (
	"slices"
	"testing"
)

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		strategy string
		busy     bool
		want     Action
	}{
		{SerialExecution, false, Start},
		{SerialExecution, true, Queue},
		{DiscardLater, false, Start},
		{DiscardLater, true, Discard},
		{CoverEarly, false, Start},
		{CoverEarly, true, Cover},
		{Concurrent, false, Start},
		{Concurrent, true, Queue},
		{"", false, Start},
		{"", true, Queue},
		{"NO_SUCH_STRATEGY", false, Start},
		{"NO_SUCH_STRATEGY", true, Queue},
		{"discard_later", true, Queue},
	} {
		if got := Decide(tt.strategy, tt.busy); got != tt.want {
			t.Errorf("Decide(%q, %v) = %v, want %v", tt.strategy, tt.busy, got, tt.want)
		}
	}
}

func TestNamesAndTitlesAreXXLJobs(t *testing.T) {
	titles := map[string]string{
		"SERIAL_EXECUTION": "Serial execution",
		"DISCARD_LATER":    "Discard Later",
		"COVER_EARLY":      "Cover Early",
		"CONCURRENT":       "Concurrent",
	}
	want := []string{"SERIAL_EXECUTION", "DISCARD_LATER", "COVER_EARLY", "CONCURRENT"}
	if got := Names(); !slices.Equal(got, want) {
		t.Errorf("Names() = %v, want %v", got, want)
	}
	for _, name := range want {
		if !Valid(name) {
			t.Errorf("Valid(%q) = false", name)
		}
		if got := Title(name); got != titles[name] {
			t.Errorf("Title(%q) = %q, want %q", name, got, titles[name])
		}
	}
	for _, name := range []string{"", "serial_execution", "COVER_EARLY "} {
		if Valid(name) {
			t.Errorf("Valid(%q) = true", name)
		}
	}
	if got := Title("NO_SUCH_STRATEGY"); got != "Serial execution" {
		t.Errorf("the title of an unknown strategy is %q", got)
	}
}

func TestMessagesAreTheWires(t *testing.T) {
	const effect = "block strategy effect\uFF1A"
	if want := effect + Title(DiscardLater); MsgDiscard != want {
		t.Errorf("MsgDiscard = %q, want %q", MsgDiscard, want)
	}
	if want := effect + Title(CoverEarly); MsgCover != want {
		t.Errorf("MsgCover = %q, want %q", MsgCover, want)
	}
}

func TestIsDiscard(t *testing.T) {
	for msg, want := range map[string]bool{
		MsgDiscard:                             true,
		MsgDiscard + "\r\n":                    true,
		"":                                     false,
		MsgCover:                               false,
		"block strategy effect: Discard Later": false, // another colon
		"job handler [" + MsgDiscard + "] is gone":    false,
		"job thread is running or has trigger queue.": false,
	} {
		if got := IsDiscard(msg); got != want {
			t.Errorf("IsDiscard(%q) = %v", msg, got)
		}
	}
}

func TestActionsHaveNames(t *testing.T) {
	for a, want := range []string{"start", "queue", "discard", "cover", "unknown action"} {
		if got := Action(a).String(); got != want {
			t.Errorf("Action(%d) = %q, want %q", a, got, want)
		}
	}
}
