package web

import (
	"context"
	"testing"
	"time"
)

// TestReadingsUnderAClockSetBack: a reading from what is now the future is none that is young.
func TestReadingsUnderAClockSetBack(t *testing.T) {
	var s Readings
	s.Keep("runs", Reading{At: time.Now().Add(time.Hour).Round(0), Value: "from the future"})
	got, err := s.Get(context.Background(), "runs", func(context.Context) (any, error) { return "of now", nil })
	if err != nil || got.Value != "of now" {
		t.Errorf("%v, %v", got, err)
	}
	for i := range 2 * mostReadings {
		s.Keep(string(rune('a'+i)), Reading{At: time.Now().Add(time.Hour).Round(0), Value: i})
	}
	s.Keep("now", Reading{At: time.Now(), Value: 0})
	if len(s.kept) != 2 {
		t.Errorf("%d readings are kept, all but two of the future", len(s.kept))
	}
}
