package pgtest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// memoryRoot returns dir where that is a file system in memory with so many bytes free, of which
// the machine has twice as many to give; "" elsewhere.
func memoryRoot(dir string, least uint64) string {
	const tmpfs = 0x01021994
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Type != tmpfs || fs.Bavail*uint64(fs.Bsize) < least {
		return ""
	}
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return ""
	}
	var available uint64 // in KiB
	_, line, _ := strings.Cut(string(info), "MemAvailable:")
	if _, err := fmt.Sscan(line, &available); err != nil || available/2 < least>>10 {
		return ""
	}
	return dir
}
