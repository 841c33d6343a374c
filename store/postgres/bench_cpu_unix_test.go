//go:build unix

package postgres

import (
	"syscall"
	"time"
)

// cpuUsed is the CPU time that this process has used.
func cpuUsed() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
