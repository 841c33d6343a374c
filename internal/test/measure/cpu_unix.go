//go:build unix

package measure

import (
	"syscall"
	"time"
)

// ownCPU is the CPU time of this process, user and system, in seconds.
func ownCPU() Figure {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return Figure{}
	}
	return Known(time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds())
}
