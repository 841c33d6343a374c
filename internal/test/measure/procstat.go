package measure

import (
	"strconv"
	"strings"
)

// ticks is in how many parts of a second Linux tells times to programs: the same on all the
// architectures that Go has.
const ticks = 100

// process is what /proc/PID/stat says of a process. Times are in seconds.
type process struct {
	program     string
	parent      int
	own, reaped float64 // CPU time: its own, and that of children it has waited for
	sinceBoot   float64 // when it was started
}

// The fields of /proc/PID/stat behind the name of the program, counted from zero.
const (
	statParent = 1
	statUser   = 11 // user, system, and both of the children that were waited for
	statStart  = 19
)

// parseProcess reads a /proc/PID/stat. The name of the program is in brackets, and may have
// brackets and spaces.
func parseProcess(text string) (process, bool) {
	head, tail, found := cutLast(text, ")")
	fields := strings.Fields(tail)
	if !found || len(fields) <= statStart {
		return process{}, false
	}
	var times [4]float64
	for i := range times {
		n, err := strconv.ParseUint(fields[statUser+i], 10, 64)
		if err != nil {
			return process{}, false
		}
		times[i] = float64(n) / ticks
	}
	parent, err := strconv.Atoi(fields[statParent])
	if err != nil {
		return process{}, false
	}
	start, err := strconv.ParseUint(fields[statStart], 10, 64)
	if err != nil {
		return process{}, false
	}
	_, program, _ := strings.Cut(head, "(")
	return process{program, parent, times[0] + times[1], times[2] + times[3], float64(start) / ticks}, true
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// parseBusy reads the first line of /proc/stat: user, nice, system, idle, iowait, irq,
// softirq, steal, and guests, which are in user already.
func parseBusy(text string) Figure {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return Figure{}
	}
	busy := 0.0
	for i, f := range fields[1:9] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return Figure{}
		}
		if i != 3 && i != 4 { // idle, and idle while a disk is waited for
			busy += float64(n) / ticks
		}
	}
	return Known(busy)
}

// parseKB finds the line with a label in a file such as /proc/self/status, and returns its
// number of kibibytes in bytes.
func parseKB(text, label string) Figure {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != label || fields[2] != "kB" {
			continue
		}
		if n, err := strconv.ParseUint(fields[1], 10, 54); err == nil {
			return Known(float64(n) * 1024)
		}
	}
	return Figure{}
}
