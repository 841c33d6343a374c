//go:build unix

package chaos

import (
	"bytes"
	"os"
	"path/filepath"
)

// What the scheduler had to find by itself: in a log, the line that it writes when
// its slow look at the store takes up a planned run that should have been held. In:
// the nodes' log files, and from where to where they are to be read. Out: the lines.

// missedLine is what the scheduler logs for each such run.
const missedLine = "xxljob: picked up a planned run that no node was holding"

// nodeLogs are the log files in a directory, the database's among them at the end.
func nodeLogs(dir string) []string {
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		panic(err) // a bad pattern
	}
	return names
}

// logSizes is how long each log file is.
func logSizes(dir string) map[string]int64 {
	sizes := map[string]int64{}
	for _, name := range nodeLogs(dir) {
		if info, err := os.Stat(name); err == nil {
			sizes[name] = info.Size()
		}
	}
	return sizes
}

// missedRuns returns the lines that were written between two moments, given by the
// sizes that the files had; to their ends where until is nil.
func missedRuns(dir string, from, until map[string]int64) (lines []string, err error) {
	for _, name := range nodeLogs(dir) {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if until != nil {
			data = data[:min(until[name], int64(len(data)))]
		}
		for line := range bytes.Lines(data[min(from[name], int64(len(data))):]) {
			if bytes.Contains(line, []byte(missedLine)) {
				lines = append(lines, string(bytes.TrimSpace(line)))
			}
		}
	}
	return lines, nil
}
