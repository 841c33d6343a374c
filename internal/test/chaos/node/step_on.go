//go:build unix && clockstep

package main

import (
	"fmt"
	"sync/atomic"
	"time"
	_ "unsafe" // for linkname
)

// wallStep is a variable that the supervisor's overlay adds to package time: what
// time.Now adds to the wall clock, in nanoseconds. The monotonic clock and timers
// go on as they are, just as when an operator sets the machine's clock.
//
//go:linkname wallStep time.wallStep
var wallStep int64

// stepClock sets this process's wall clock forward from the machine's, or back. It
// fails where the step cannot be seen, which would make a test of nothing.
func stepClock(d time.Duration) error {
	atomic.StoreInt64(&wallStep, int64(d))
	got := time.Now().Round(0).Sub(time.UnixMicro(machineClock()))
	if got.Round(time.Second) != d.Round(time.Second) {
		return fmt.Errorf("the clock is off by %v, not by %v", got, d)
	}
	return nil
}
