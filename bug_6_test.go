package xxljob_test

import (
	"testing"

	"github.com/xxljob/xxljob"
)

// TestSecondsAreOneNumber: the conf of FIX_RATE and FIX_DELAY is seconds. Behind
// it "s" is read as a unit, so units get in.
func TestSecondsAreOneNumber(t *testing.T) {
	for _, conf := range []string{"5s3", "1s1s1", "0s1"} {
		s := xxljob.Schedule{Type: xxljob.ScheduleFixRate, Conf: conf}
		if d, err := s.Every(); err == nil {
			t.Errorf("%q is read as %v", conf, d)
		}
	}
}
