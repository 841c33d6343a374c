//go:build unix && !clockstep

package main

import (
	"errors"
	"time"
)

// stepClock is not possible in this build.
func stepClock(time.Duration) error {
	return errors.New("built without the tag clockstep")
}
