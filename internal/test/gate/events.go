package main

import (
	"bufio"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of what is built, in place of Package
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

// outcome is how one run of a test, or of a package, ended.
type outcome int

const (
	unknown outcome = iota // it has not ended: the process did
	passed
	failed
	skipped
)

// try is one run of a test.
type try struct {
	outcome outcome
	seconds float64
	lines   []string // what it said, without framing; at most mostLines
	left    int      // lines that were not kept
	never   string   // what it shows that nothing may be run again for; the first there is
	beside  bool     // of a package: it failed, and none of its tests had
}

// mostLines bounds what is kept of one run: a test that hangs shows all goroutines.
const mostLines = 400

// test is all runs of a test, or with an empty name what a package did beside its tests.
type test struct {
	pkg, name string
	tries     []try
}

// last is the try that counts: each later run is one of what had failed.
func (t *test) last() *try { return &t.tries[len(t.tries)-1] }

// flaky says that the test has failed, and has passed when it was run again.
func (t *test) flaky() bool { return t.last().outcome == passed && t.firstFailed() != nil }

func (t *test) firstFailed() *try {
	return t.first(func(t *try) bool { return t.outcome == failed || t.outcome == unknown })
}

// firstBeside is where a package has failed and none of its tests had: it was not built, its
// process ended, or its TestMain failed.
func (t *test) firstBeside() *try { return t.first(func(t *try) bool { return t.beside }) }

func (t *test) first(is func(*try) bool) *try {
	for i := range t.tries {
		if is(&t.tries[i]) {
			return &t.tries[i]
		}
	}
	return nil
}

// book is what a run of go test, and those after it, have said.
type book struct {
	order []*test // in the order of their first event
	tests map[[2]string]*test
	open  map[string][]*test // package → its tests that have begun and not ended
	bad   map[string]bool    // package → one of its tests has failed since the package began
	built map[string]*try    // package → what its build has said: warnings, unless the build fails
	// never says why nothing may be run again, the first reason there is.
	never string
}

func newBook() *book {
	return &book{tests: map[[2]string]*test{}, open: map[string][]*test{}, bad: map[string]bool{}, built: map[string]*try{}}
}

// read reads events to the end, and passes each line on; its event is empty where it is none, as
// the go command prints such lines too.
func (b *book) read(r io.Reader, pass func(line []byte, e event) error) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				b.add(e)
			}
			if err := pass(line, e); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func unread([]byte, event) error { return nil }

func (b *book) of(pkg, name string) *test {
	t := b.tests[[2]string{pkg, name}]
	if t == nil {
		t = &test{pkg: pkg, name: name}
		b.tests[[2]string{pkg, name}] = t
		b.order = append(b.order, t)
	}
	return t
}

func (b *book) begin(t *test) {
	t.tries = append(t.tries, try{})
	b.open[t.pkg] = append(b.open[t.pkg], t)
}

func (b *book) add(e event) {
	if e.Package == "" {
		b.build(e)
		return
	}
	t := b.of(e.Package, e.Test)
	if len(t.tries) == 0 || t.name == "" && e.Action == "start" || t.name != "" && e.Action == "run" {
		b.begin(t)
	}
	switch e.Action {
	case "output":
		t.last().said(e.Output)
	case "pass":
		b.end(t, passed, e.Elapsed)
	case "skip":
		b.end(t, skipped, e.Elapsed)
	case "fail":
		b.end(t, failed, e.Elapsed)
	}
}

// build notes what is said of a build, whose path is that of a package, or "path [tests of it]".
func (b *book) build(e event) {
	pkg, _, _ := strings.Cut(e.ImportPath, " ")
	if b.built[pkg] == nil {
		b.built[pkg] = &try{}
	}
	switch e.Action {
	case "build-output":
		b.built[pkg].said(e.Output)
	case "build-fail":
		t := b.of(pkg, "")
		t.tries = append(t.tries, *b.built[pkg])
		delete(b.built, pkg)
		b.end(t, failed, 0)
	}
}

// framing is what go test prints around what tests say.
var framing = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME|ATTR)\b|--- (PASS|FAIL|SKIP|BENCH)\b|PASS$|FAIL$|FAIL\t|ok  \t|exit status \d+$)`)

func (t *try) said(line string) {
	line = strings.TrimRight(line, "\n")
	if line == "" || framing.MatchString(line) {
		return
	}
	if t.never == "" {
		t.never = shown(line)
	}
	if len(t.lines) == mostLines {
		t.left++
		return
	}
	t.lines = append(t.lines, line)
}

// end notes how a run of a test ended. With a package those of its tests end that have not.
func (b *book) end(t *test, o outcome, seconds float64) {
	last := t.last()
	last.outcome, last.seconds = o, seconds
	if t.name != "" {
		if o == failed {
			b.bad[t.pkg] = true
			b.judge(last)
		}
		return
	}
	cut := false
	for _, open := range b.open[t.pkg] {
		if open.name != "" && open.last().outcome == unknown && o == failed {
			cut = true
			b.judge(open.last())
		}
	}
	if o == failed {
		b.judge(last)
		last.beside = !cut && !b.bad[t.pkg]
		switch {
		case b.never != "":
		case cut:
			b.never = "a process ended in the middle of a test"
		case last.beside:
			b.never = "a package failed beside its tests: it was not built, or its process ended"
		}
	}
	delete(b.open, t.pkg)
	delete(b.bad, t.pkg)
}

// close ends what has not ended, as the process has that printed the events.
func (b *book) close() {
	for pkg, open := range b.open {
		tests := slices.ContainsFunc(open, func(t *test) bool { return t.name != "" && t.last().outcome == unknown })
		for _, t := range open {
			if last := t.last(); t.name == "" && last.outcome == unknown {
				last.outcome, last.beside = failed, !tests && !b.bad[pkg]
			}
		}
	}
}

// neverAgain is what a failure may not be run again for: what it shows is there, however
// often it does not show.
var neverAgain = []struct{ what, text string }{
	{"a data race", "WARNING: DATA RACE"},
	{"a data race", "race detected during execution of test"},
	{"a test that hangs", "panic: test timed out"},
	{"a deadlock", "panic: deadlock:"},
	{"a deadlock", "fatal error: all goroutines are asleep"},
	{"a panic", "panic: "},
	{"a fatal error", "fatal error: "},
	{"an audit that failed", "audited: not run again"},
}

// shown is what a line of a failure shows of that.
func shown(line string) string {
	line = strings.TrimSpace(line)
	for _, n := range neverAgain {
		if i := strings.Index(line, n.text); i == 0 || i > 0 && !strings.HasSuffix(n.text, ": ") {
			return n.what
		}
	}
	return ""
}

// judge goes by all that a failure has said, kept or not.
func (b *book) judge(t *try) {
	if b.never == "" {
		b.never = t.never
	}
}
