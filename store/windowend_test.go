package store_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestWindowEnd: a window ends where the next one begins, on days of 23, 24 and 25 hours too.
func TestWindowEnd(t *testing.T) {
	for _, tt := range []struct {
		zone        string
		window      time.Duration
		begins, end string
	}{
		{"UTC", 0, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"Europe/Berlin", 0, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},                  // 23 hours
		{"Europe/Berlin", 0, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},                  // 25 hours
		{"Australia/Lord_Howe", 0, "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"},            // half an hour more
		{"Pacific/Apia", 0, "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},                   // the next day is skipped
		{"Europe/Berlin", 7 * 24 * time.Hour, "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"}, // a week
		{"Europe/Berlin", 15 * time.Minute, "2026-10-25T00:45:00Z", "2026-10-25T01:00:00Z"},   // an hour comes twice
		{"Europe/Berlin", 6 * time.Hour, "2026-03-28T23:00:00Z", "2026-03-29T04:00:00Z"},      // of five hours
	} {
		j := store.Job{AfterZone: tt.zone, AfterWindow: tt.window}
		begins, err := time.Parse(time.RFC3339, tt.begins)
		if err != nil {
			t.Fatal(err)
		}
		if w, err := j.Window(begins); err != nil || !w.Equal(begins) {
			t.Fatalf("%s, %v: a window begins at %v, not %v: %v", tt.zone, tt.window, w, begins, err)
		}
		ends, err := j.WindowEnd(begins)
		if got := ends.Format(time.RFC3339); err != nil || got != tt.end {
			t.Errorf("%s, %v from %s: %s, want %s", tt.zone, tt.window, tt.begins, got, tt.end)
		}
	}
}
