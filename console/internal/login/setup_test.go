package login

import (
	"testing"
	"time"
)

// TestTheCodeUnderAClockSetBack: the code of the process is not taken for one that counts for
// longer than it does.
func TestTheCodeUnderAClockSetBack(t *testing.T) {
	s := setup{until: time.Now().Add(codeCounts + time.Hour).Round(0)}
	if s.counts(time.Now().Round(0)) {
		t.Error("it counts for more than a day")
	}
	s.until = time.Now().Add(time.Hour).Round(0)
	if !s.counts(time.Now()) || s.counts(time.Now().Add(2*time.Hour)) {
		t.Error("it does not count until it is over")
	}
}
