package alarms_test

// What a node passes on of troubles that last.

import (
	"errors"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/alarms"

	"github.com/xxljob/xxljob/store"
)

// TestTheEndOfATroubleIsTriedForItsOwnDay: that a trouble which lasts could not be noted again for more than
// a day takes nothing from the time for which its end is tried, and such notes are no more than those that
// are made in time.
func TestTheEndOfATroubleIsTriedForItsOwnDay(t *testing.T) {
	b, began := alarms.NewTroubleBook(), alarmNoon()
	refused, begun, ends, failed := false, 0, 0, 0
	pass := func(_ int, over bool) error {
		switch {
		case refused:
			failed++
			return errors.New("refused")
		case over:
			ends++
		default:
			begun++
		}
		return nil
	}
	now := began
	run := func(d time.Duration, all ...store.Trouble) {
		for end := now.Add(d); now.Before(end); now = now.Add(10 * time.Second) {
			b.Note(all, now, pass)
		}
	}
	lasts := store.Trouble{Cause: store.TroubleNoExecutor, App: "far", Since: began}
	run(3*time.Minute, lasts)
	if begun != 1 {
		t.Fatalf("it was noted %d times, want once", begun)
	}
	refused = true
	run(30*time.Hour, lasts)
	if most := 30*60/5 + 1; failed == 0 || failed > most {
		t.Errorf("it was tried to be noted again %d times, want up to %d", failed, most)
	}
	failed = 0
	run(3 * time.Minute)
	if failed == 0 {
		t.Fatal("the first note of its end was not refused")
	}
	refused = false
	run(20 * time.Minute)
	if ends != 1 {
		t.Errorf("its end was noted %d times, want once", ends)
	}
}
