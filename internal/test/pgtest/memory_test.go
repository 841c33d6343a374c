//go:build linux

package pgtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// TestMemoryRoot: files lie in memory only where there is such a file system, with room.
func TestMemoryRoot(t *testing.T) {
	if mounts, err := os.ReadFile("/proc/mounts"); err != nil || !strings.Contains(string(mounts), " /dev/shm tmpfs ") {
		t.Skip("there is no /dev/shm in memory")
	}
	for _, c := range []struct {
		dir   string
		least uint64
		want  string
	}{
		{"/dev/shm", 1, "/dev/shm"},
		{"/dev/shm", 1 << 60, ""},
		{"/proc", 0, ""},
		{"/dev/shm/nowhere", 0, ""},
	} {
		if got := pgtest.MemoryRoot(c.dir, c.least); got != c.want {
			t.Errorf("%s, of which %d bytes are wanted: %q, want %q", c.dir, c.least, got, c.want)
		}
	}
}
