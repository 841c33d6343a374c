package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

// step is what one step of .ci/run has said.
type step struct {
	name string
	*book
}

func stepName(file string) string { return strings.TrimSuffix(path.Base(file), ".json") }

// Bounds of what the report repeats: the whole output stands above, once.
const (
	firstLines = 12 // of a failure
	flakyLines = 60 // of the failure of a test that has passed when it was run again
	mostShown  = 60 // failures with their lines; of the others there are names
)

// report prints what is flaky and what failed, and a last line that counts tests. It reports
// whether all is well: no test has failed for good, and there were some.
func report(w io.Writer, steps []step) (ok bool) {
	var flaky, broken []string
	nPassed, nFailed := 0, 0
	for _, s := range steps {
		for _, t := range s.order {
			name := fmt.Sprintf("%s: %s %s", s.name, t.pkg, t.name)
			switch o := t.last().outcome; {
			case t.name == "":
				if f := t.firstBeside(); f != nil {
					nFailed++
					broken = append(broken, block(strings.TrimSpace(name)+" (beside its tests)", first(f)))
				}
			case o == passed:
				nPassed++
				if t.flaky() && !s.failedBelow(t) {
					flaky = append(flaky, block(name, head(t.firstFailed(), flakyLines)))
				}
			case o == failed, o == unknown, t.firstFailed() != nil: // also one that was then skipped
				nFailed++
				if !s.failedBelow(t) {
					broken = append(broken, block(name+ended(o), first(t.firstFailed())))
				}
			}
		}
	}
	section(w, "FLAKY", flaky)
	section(w, "FAILED", broken)
	if nPassed+nFailed == 0 {
		fmt.Fprintln(w, "FAILED: there were no tests")
		nFailed = 1
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", nPassed, nFailed)
	return nFailed == 0
}

func ended(o outcome) string {
	switch o {
	case unknown:
		return " (it has not ended: its process did)"
	case skipped:
		return " (it was skipped when it was run again)"
	}
	return ""
}

// failedBelow says that a subtest has failed as the test has, in the end or at first, which
// shows what there is to see, unless the test itself has said something too.
func (s step) failedBelow(p *test) bool {
	if f := p.firstFailed(); f != nil && slices.ContainsFunc(f.lines, said.MatchString) {
		return false
	}
	return slices.ContainsFunc(s.order, func(t *test) bool {
		return t.pkg == p.pkg && strings.HasPrefix(t.name, p.name+"/") && t.flaky() == p.flaky() && t.firstFailed() != nil
	})
}

func section(w io.Writer, title string, blocks []string) {
	for i, b := range blocks {
		if i == mostShown {
			fmt.Fprintf(w, "%s: and these\n", title)
		}
		if i >= mostShown {
			b, _, _ = strings.Cut(b, "\n")
		}
		fmt.Fprintf(w, "%s %s\n", title, b)
	}
}

func block(name string, lines []string) string {
	return strings.Join(append([]string{name}, lines...), "\n    ")
}

var (
	// said is the beginning of what a test, or the runtime, says of a failure; logs of processes
	// are said in this form too.
	said   = regexp.MustCompile(`^\s*(\S+_test\.go:\d+: |panic: |fatal error: |WARNING: DATA RACE|\S+\.go:\d+:\d+: )`)
	logged = regexp.MustCompile(`^\s*\S+_test\.go:\d+: (output|log) of `)
	seed   = regexp.MustCompile(`(?i)\bseeds?\b`)
)

// first is what a failure has said first, and its seed wherever it stands.
func first(t *try) (lines []string) {
	from := max(0, slices.IndexFunc(t.lines, func(line string) bool { return said.MatchString(line) && !logged.MatchString(line) }))
	for _, line := range t.lines[:from] {
		if seed.MatchString(line) {
			lines = append(lines, clip(line))
		}
	}
	for i, line := range t.lines[from:] {
		if i < firstLines || seed.MatchString(line) {
			lines = append(lines, clip(line))
		}
	}
	if more := len(t.lines) - from - firstLines + t.left; more > 0 {
		lines = append(lines, fmt.Sprintf("[%d more lines above]", more))
	}
	return lines
}

// head is the beginning of what a failure has said.
func head(t *try, most int) (lines []string) {
	for _, line := range t.lines[:min(most, len(t.lines))] {
		lines = append(lines, clip(line))
	}
	if more := len(t.lines) - len(lines) + t.left; more > 0 {
		lines = append(lines, fmt.Sprintf("[%d more lines above]", more))
	}
	return lines
}

func clip(line string) string {
	if line = strings.TrimSpace(line); len(line) > 400 {
		return strings.ToValidUTF8(line[:400], "") + " …"
	}
	return line
}

// slowest prints the packages and tests that took longest; packages run beside each other, and
// tests of a package too.
func slowest(w io.Writer, steps []step, n int) {
	type row struct {
		seconds float64
		name    string
	}
	var packages, tests []row
	for _, s := range steps {
		for _, t := range s.order {
			r := row{name: fmt.Sprintf("%s: %s %s", s.name, t.pkg, t.name)}
			for _, try := range t.tries {
				r.seconds = max(r.seconds, try.seconds)
			}
			switch {
			case t.name == "":
				packages = append(packages, r)
			case !strings.Contains(t.name, "/"):
				tests = append(tests, r)
			}
		}
	}
	for _, list := range []struct {
		of   string
		rows []row
	}{{"packages", packages}, {"tests", tests}} {
		slices.SortStableFunc(list.rows, func(a, b row) int { return cmp.Compare(b.seconds, a.seconds) })
		fmt.Fprintf(w, "slowest %s, in seconds:\n", list.of)
		for _, r := range list.rows[:min(n, len(list.rows))] {
			fmt.Fprintf(w, "%8.1f  %s\n", r.seconds, r.name)
		}
	}
}
