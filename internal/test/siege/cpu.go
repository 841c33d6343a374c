//go:build unix

package siege

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which Linux tells CPU time.
const tick = 10 * time.Millisecond

// usage is the CPU time that each has used until now; negative where the system does not
// tell.
type usage struct {
	at                              time.Duration
	node, hostile, honest, postgres time.Duration
	machine                         time.Duration // of everybody on it
}

// cpuOf is the CPU time of a process and, where they are asked for, of the children that
// it has waited for.
func cpuOf(pid int, children bool) time.Duration {
	f := statOf(pid)
	if f == nil {
		return -1
	}
	last := 13 // utime, stime
	if children {
		last = 15 // and those of children
	}
	return ticks(f[11:last])
}

// statOf returns the fields of /proc/PID/stat behind the name of the program, which may
// have blanks in it: the state is the first, the parent the second. Nil where there is no
// such process.
func statOf(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) < 15 {
		return nil
	}
	return f
}

func ticks(fields []string) (sum time.Duration) {
	for _, f := range fields {
		n, _ := strconv.ParseInt(f, 10, 64) // the kernel writes numbers
		sum += time.Duration(n) * tick
	}
	return sum
}

// cpuOfPostgres is the CPU time of a server: of its first process, of those that have
// ended, which it has waited for, and of those that run.
func cpuOfPostgres(pid int) time.Duration {
	sum := cpuOf(pid, true)
	if sum < 0 {
		return sum
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, d := range dirs {
		child, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			continue
		}
		if f := statOf(child); f != nil && f[1] == strconv.Itoa(pid) {
			sum += max(cpuOf(child, false), 0)
		}
	}
	return sum
}

// cpuOfMachine is the time in which the cores of the machine did something.
func cpuOfMachine() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return -1
	}
	line, _, _ := strings.Cut(string(text), "\n")
	f := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal …
	if len(f) < 9 {
		return -1
	}
	return ticks(f[1:4]) + ticks(f[6:9])
}

// percent is a share of one core between two moments, as text.
func percent(before, after, span time.Duration) string {
	if before < 0 || after < 0 || span <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", 100*float64(after-before)/float64(span))
}
