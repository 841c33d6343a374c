package xxljob_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

// TestFixedRateOfAnyMillisecond: "d is a whole number of milliseconds". 1.364 s
// is stored as 1.3639999999999999, which no call accepts.
func TestFixedRateOfAnyMillisecond(t *testing.T) {
	for _, d := range []time.Duration{1364 * time.Millisecond, 1001 * time.Millisecond, 2007 * time.Millisecond} {
		if got, err := xxljob.FixedRate(d).Every(); err != nil || got != d {
			t.Errorf("FixedRate(%v): %v, %v", d, got, err)
		}
	}
}
