package xxljob_test

import (
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
)

// TestDescribeInvalid: Describe says "invalid: ..." of what Next refuses; but of
// an unknown type it says "only when triggered", of a bad time "once at
// tomorrow".
func TestDescribeInvalid(t *testing.T) {
	for _, s := range []xxljob.Schedule{
		{Type: "LUNAR", Conf: "full"},
		{Type: xxljob.ScheduleOnce, Conf: "tomorrow"},
	} {
		if _, err := s.Next(planNow); err == nil {
			t.Errorf("%v is accepted", s)
		}
		if got := s.Describe(); !strings.HasPrefix(got, "invalid: ") {
			t.Errorf("%v: %q", s, got)
		}
	}
}

// TestZoneOfEverySchedule: an unknown zone is an error wherever it stands. On a
// rate, a delay or a single instant it is stored unseen.
func TestZoneOfEverySchedule(t *testing.T) {
	for _, s := range []xxljob.Schedule{xxljob.FixedRate(1e9), xxljob.FixedDelay(1e9), xxljob.At(planNow)} {
		if err := s.In("Mars/Phobos").Check(false); err == nil {
			t.Errorf("%v is accepted", s.In("Mars/Phobos"))
		}
	}
}
