package xxljob_test

import (
	"testing"

	"github.com/xxljob/xxljob"
)

// TestStatesThatDoNotExist: no run becomes a state that there is not.
func TestStatesThatDoNotExist(t *testing.T) {
	for _, s := range everyState {
		if s.CanBecome(xxljob.StateCancelled + 1) {
			t.Errorf("%v can become %v", s, xxljob.StateCancelled+1)
		}
	}
}
