//go:build !unix

package postgres

import "time"

// cpuUsed is zero where the system does not tell it.
func cpuUsed() time.Duration { return 0 }
