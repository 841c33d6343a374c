package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// planted are packages of a module that each fail in their own way.
var planted = map[string]struct {
	test  string
	code  int    // of gate test
	never string // what it says of running again
	shows []string
}{
	"good": {`func TestGood(t *testing.T) {}`, 0, "", nil},
	"failing": {`func TestBad(t *testing.T) {
		t.Log("seed 42")
		t.Run("sub", func(t *testing.T) { t.Error("this is wrong") })
	}
	func TestSeeded(t *testing.T) { for range 50 { t.Log("much") }; t.Error("wrong", "Seed=7") }
	func TestLogs(t *testing.T) { t.Log("what a process logged: panic: as it was to"); t.Log("panic: in a text of ours"); t.Error("not as it should be") }`,
		1, "", []string{"x/failing TestBad/sub\n", "x_test.go:9: this is wrong", "x/failing TestSeeded\n", "x_test.go:11: wrong Seed=7", "x/failing TestLogs\n", "x_test.go:12: not as it should be"}},
	"panics":   {`func TestPanics(t *testing.T) { panic("out of reach") }`, onceOnly, "a panic", []string{"out of reach"}},
	"fatal":    {`func TestFatal(t *testing.T) { var m = map[int]int{}; for range 8 { go func() { for { m[1]++ } }() }; select {} }`, onceOnly, "", []string{"concurrent map writes"}},
	"exits":    {`func TestExits(t *testing.T) { os.Exit(3) }`, onceOnly, "a process ended in the middle of a test", []string{"x/exits TestExits (it has not ended"}},
	"hangs":    {`func TestHangs(t *testing.T) { select { case <-t.Context().Done(): case <-time.After(time.Hour): } }`, onceOnly, "a test that hangs", []string{"test timed out after"}},
	"stuck":    {`func TestStuck(t *testing.T) { synctest.Test(t, func(*testing.T) { <-make(chan int) }) }`, onceOnly, "a deadlock", []string{"deadlock"}},
	"uncooked": {`func TestUncooked(t *testing.T) { undefined() }`, onceOnly, "was not built", []string{"x/uncooked (beside its tests)", "undefined: undefined"}},
	"long":     {`func TestLong(t *testing.T) { for i := range 500 { t.Errorf("run %d was started twice", i) }; t.Log("audited: not run again") }`, onceOnly, "an audit that failed", []string{"run 0 was started twice"}},
	"main":     {`func TestMain(m *testing.M) { m.Run(); println("dirty"); os.Exit(1) }; func TestClean(t *testing.T) {}`, onceOnly, "failed beside its tests", []string{"x/main (beside its tests)"}},
}

// TestPlanted runs them as gotestsum does, and reads what the report makes of it.
func TestPlanted(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a dozen programs; leave out -short")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo 1.26.0\n"), 0o600))
	for name, p := range planted {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		text := "package x\n\nimport (\n\t\"testing\"\n"
		for pkg, use := range map[string]string{"os": "os.", "time": "time.", "testing/synctest": "synctest."} {
			if strings.Contains(p.test, use) {
				text += fmt.Sprintf("\t%q\n", pkg)
			}
		}
		must(t, os.WriteFile(filepath.Join(dir, name, "x_test.go"), []byte(text+")\n\n"+p.test+"\n"), 0o600))
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	for name, p := range planted {
		t.Run(name, func(t *testing.T) {
			var events, errs bytes.Buffer
			if code := goTest(t.Context(), &events, &errs, []string{"-vet=off", "-timeout=2s", "./" + name}); code != p.code || !strings.Contains(errs.String(), p.never) {
				t.Errorf("ended with %d, want %d, and said %q, want %q", code, p.code, errs.String(), p.never)
			}
			b := newBook()
			must(t, b.read(&events, unread))
			b.close()
			var out strings.Builder
			ok := report(&out, []step{{"test", b}})
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; ok != (p.code == 0) || ok != strings.HasSuffix(last, " 0 failed") {
				t.Errorf("all is well: %t, and the last line is %q", ok, last)
			}
			for _, want := range p.shows {
				if !strings.Contains(out.String(), want) {
					t.Errorf("does not say %q:\n%s", want, out.String())
				}
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bookOf are events in short: "action package test output".
func bookOf(t *testing.T, lines ...string) *book {
	t.Helper()
	b := newBook()
	for _, line := range lines {
		f := append(strings.SplitN(line, " ", 4), "", "", "")
		e := event{Action: f[0], Package: f[1], Test: f[2], Output: f[3]}
		if strings.HasPrefix(e.Action, "build-") {
			e.Package, e.ImportPath = "", e.Package+" ["+e.Package+".test]"
		}
		b.add(e)
	}
	b.close()
	return b
}

func TestReport(t *testing.T) {
	once := []string{"start p", "run p A", "output p A     x_test.go:1: wrong", "fail p A", "run p B", "pass p B", "fail p"}
	again := []string{"start p", "run p A", "pass p A", "pass p"}
	for _, c := range []struct {
		name   string
		events []string
		want   string
	}{
		{"flaky", slices.Concat(once, again), "FLAKY test: p A\n    x_test.go:1: wrong\n2 passed, 0 failed\n"},
		{"failed", once, "FAILED test: p A\n    x_test.go:1: wrong\n1 passed, 1 failed\n"},
		{"failed each time", slices.Concat(once, once), "FAILED test: p A\n    x_test.go:1: wrong\n1 passed, 1 failed\n"},
		{"failed and then skipped", slices.Concat(once, []string{"start p", "run p A", "skip p A", "pass p"}), "FAILED test: p A (it was skipped when it was run again)\n    x_test.go:1: wrong\n1 passed, 1 failed\n"},
		{"nothing", nil, "FAILED: there were no tests\n0 passed, 1 failed\n"},
		{"cut short", []string{"start p", "run p A", "output p A     x_test.go:1: began"}, "FAILED test: p A (it has not ended: its process did)\n    x_test.go:1: began\n0 passed, 1 failed\n"},
		{"skipped", []string{"start p", "run p A", "skip p A", "run p B", "pass p B", "pass p"}, "1 passed, 0 failed\n"},
		// What is under a failure is shown in its place.
		{"below", []string{"start p", "run p A", "run p A/b", "output p A/b     x_test.go:1: wrong", "fail p A/b", "fail p A", "fail p"},
			"FAILED test: p A/b\n    x_test.go:1: wrong\n0 passed, 2 failed\n"},
		{"not built", []string{"build-output p  x.go:1:2: undefined: y", "build-fail p", "start p", "fail p"}, "FAILED test: p (beside its tests)\n    x.go:1:2: undefined: y\n0 passed, 1 failed\n"},
		// A package that passes later does not make up for a process that has ended.
		{"a TestMain beside a flaky test", slices.Concat(once, []string{"start p", "run p A", "pass p A", "output p  dirty", "fail p"}),
			"FLAKY test: p A\n    x_test.go:1: wrong\nFAILED test: p (beside its tests)\n    dirty\n2 passed, 1 failed\n"},
		{"warnings of builds", slices.Concat([]string{"build-output c  x.c:1: warning: old", "build-output p  x.c:2: warning: old"}, again), "1 passed, 0 failed\n"},
		{"ended once", []string{"start p", "fail p", "start p", "run p A", "pass p A", "pass p"}, "FAILED test: p (beside its tests)\n1 passed, 1 failed\n"},
	} {
		var out strings.Builder
		if ok := report(&out, []step{{"test", bookOf(t, c.events...)}}); out.String() != c.want || ok != strings.HasSuffix(c.want, " 0 failed\n") {
			t.Errorf("%s: all is well: %t\n%swant\n%s", c.name, ok, out.String(), c.want)
		}
	}
}

// TestTestArgs: a second run is of one test of one package.
func TestTestArgs(t *testing.T) {
	first := []string{"-race", "-p=3", "./a", "./b/..."}
	if got := testArgs(first); !slices.Equal(got, first) {
		t.Errorf("got %q", got)
	}
	if got, want := testArgs(append(first, "-test.run=^TestX$", "m/a")), []string{"-race", "-p=3", "-test.run=^TestX$", "-count=1", "m/a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRounds: each combination comes, those that differ most first, and one can be chosen.
func TestRounds(t *testing.T) {
	all := combinations("")
	met := map[string]int{}
	for _, c := range rounds(all, 20) {
		met[c.String()]++
	}
	if len(met) != 12 || met["procs=8"] < 3 || met["race,procs=8,busy"] != 1 {
		t.Errorf("20 rounds are %v", met)
	}
	clear(met)
	for _, c := range rounds(all, 240) {
		met[c.String()]++
	}
	for name, n := range met {
		if n != 20 {
			t.Errorf("of 240 rounds %d are %s", n, name)
		}
	}
	for only, want := range map[string]int{"": 12, "race": 6, "procs=2": 1, "race,busy": 3, "race,procs=8,busy": 1, "fast": 0} {
		if got := combinations(only); len(got) != want {
			t.Errorf("%q chooses %v, want %d", only, got, want)
		}
	}
}

// TestStress: a test that fails every second time falls, and what was done is not done again.
func TestStress(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs; leave out -short")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo 1.26.0\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(`package x

import (
	"os"
	"testing"
)

func TestSteady(t *testing.T) {}

func TestSub(t *testing.T) {
	t.Run("one", func(t *testing.T) {})
	t.Run("other", func(t *testing.T) {})
}

func TestSecond(t *testing.T) {
	if os.Remove("odd") != nil {
		os.WriteFile("odd", nil, 0o600)
		return
	}
	t.Error("the second time, seed 5")
}
`), 0o600))
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	o := stressOptions{packages: ".", run: ".", n: 4, long: 3, only: "procs=2", dir: filepath.Join(dir, "out"), timeout: time.Minute}
	for _, resumed := range []int{4, 8} {
		var out strings.Builder
		o.n, o.resume = resumed, resumed > 4
		ok, err := stress(t.Context(), &out, o)
		must(t, err)
		for _, want := range []string{fmt.Sprintf(". TestSecond in procs=2: failed %d of %d\n", resumed/2, resumed), "the second time, seed 5", fmt.Sprintf("%d rounds, 1 tests fell", resumed)} {
			if ok || !strings.Contains(out.String(), want) {
				t.Errorf("all is well: %t, and it does not say %q:\n%s", ok, want, out.String())
			}
		}
		if n := strings.Count(out.String(), "round "); n != 4 {
			t.Errorf("%d rounds were run, want 4:\n%s", n, out.String())
		}
	}
	var out strings.Builder
	o.n, o.resume, o.run = 1, false, "TestSub/one|TestSteady"
	ok, err := stress(t.Context(), &out, o)
	must(t, err)
	if !ok || !strings.Contains(out.String(), "round 1 of 1, procs=2: 3 tests, 0 failed") || !strings.Contains(out.String(), "rounds.before.json: ") {
		t.Errorf("all is well: %t, and one subtest beside a test is\n%s", ok, out.String())
	}
	text, err := os.ReadFile(filepath.Join(o.dir, "rounds.before.json"))
	if lines := bytes.Count(text, []byte("\n")); err != nil || lines != 8 {
		t.Errorf("%d rounds are put aside, want 8: %v", lines, err)
	}
	for _, none := range []string{"TestNone", "TestSub/none"} {
		o.run = none
		if _, err := stress(t.Context(), io.Discard, o); err == nil || !strings.Contains(err.Error(), "no test that matches") {
			t.Errorf("without a test: %v", err)
		}
	}
}

// TestTopLevel: -test.list knows no subtests.
func TestTopLevel(t *testing.T) {
	for run, want := range map[string]string{
		".": ".", "TestA/b": "TestA", "^TestA$/^b/c$": "^TestA$", "TestA/b|TestC": "TestA|TestC", "Test(A/|B)/(c|d)": "Test(A/|B)", `TestA\/b[/]/c`: `TestA\/b[/]`,
	} {
		if got := topLevel(run); got != want {
			t.Errorf("of %s it is %s, want %s", run, got, want)
		}
	}
}

// TestTerminated: nothing that stress has started goes on when it is ended.
func TestTerminated(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs; leave out -short")
	}
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skip("there is no /proc to look for processes in")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "gate")
	if out, err := exec.Command(goCommand(), "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo 1.26.0\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "x_test.go"), []byte("package x\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestLong(t *testing.T) { time.Sleep(time.Hour) }\n"), 0o600))
	for _, end := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		cmd := exec.Command(program, "stress", "-pkg", ".", "-only", "procs=1,busy", "-n", "1", "-busy", "2")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		must(t, cmd.Start())
		for len(processesIn(t, dir)) < 4 { // itself, two busy ones, and the test
			time.Sleep(10 * time.Millisecond)
		}
		must(t, cmd.Process.Signal(end))
		if err := cmd.Wait(); err == nil {
			t.Errorf("%v: it has ended well", end)
		}
		if left := processesIn(t, dir); len(left) > 0 {
			t.Errorf("%v: these go on: %q", end, left)
		}
	}
}

// processesIn are the processes whose programs are in a folder.
func processesIn(t *testing.T, dir string) (programs []string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	must(t, err)
	all, err := filepath.Glob("/proc/[0-9]*/exe")
	must(t, err)
	for _, exe := range all {
		if program, err := os.Readlink(exe); err == nil && strings.HasPrefix(program, dir+"/") {
			programs = append(programs, exe+" "+program)
		}
	}
	return programs
}

// TestWarnings: what a build says that goes well keeps no test from being run again.
func TestWarnings(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs; leave out -short")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no gcc")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo 1.26.0\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte("package x\n\n// #cgo CFLAGS: -Wcpp\n// #warning \"this is old\"\nimport \"C\"\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "x_test.go"), []byte("package x\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Error(\"wrong\") }\n"), 0o600))
	t.Chdir(dir)
	// With -trimpath it would have been built by an earlier run of this test, and what is built already warns of nothing.
	for name, value := range map[string]string{"GOWORK": "off", "GOFLAGS": "", "CGO_ENABLED": "1", "CC": "gcc"} {
		t.Setenv(name, value)
	}
	var events, errs bytes.Buffer
	code := goTest(t.Context(), &events, &errs, []string{"./..."})
	if code != 1 || !strings.Contains(errs.String(), "this is old") || strings.Contains(events.String(), "this is old") {
		t.Errorf("ended with %d, want 1 for a test to be run again, and said\n%s\n%s", code, errs.String(), events.String())
	}
	for line := range strings.Lines(errs.String()) {
		if !strings.HasPrefix(line, "warning:") {
			t.Errorf("gotestsum would take this for an error: %s", line)
		}
	}
}
