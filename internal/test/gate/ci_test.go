package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scripts stand for what .ci/run calls and this does not test. Each test has one event, that a test
// has passed, or failed where the step is named.
var scripts = map[string]string{
	"tools/go": `case "$1" in
build) cp "$GATE_PROGRAM" "$3" ;;
install) mkdir -p "$GOBIN" && name=${2##*/} && cp tools/tool "$GOBIN/${name%@*}" ;;
env) echo "$PWD/tools" ;;
test) case "$*" in *"$GATE_FAILS"*) end=fail ;; *) end=pass ;; esac
	for action in run $end; do echo '{"Action":"'$action'","Package":"x","Test":"TestX"}'; done
	[ $end = pass ] ;;
esac`,
	"tools/tool": `for arg; do
	shift
	case "$arg" in
	--jsonfile=*) file=${arg#*=} ;;
	--) "$@" >"$file" && exit 0 || exit 1 ;;
	esac
done`,
	"tools/bin/gofmt":                 "",
	"console/browser/install.sh":      "",
	"interop/build.sh":                "",
	"internal/test/pgtest/install.sh": "",
}

// TestWholeRun: .ci/run goes through all its steps where the path of the repository, and that of
// temporary files, has a space, and ends with an error if a test of any step fails.
func TestWholeRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program; leave out -short")
	}
	for _, tool := range []string{"bash", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	root := filepath.Join(t.TempDir(), "a path")
	write := func(name, text string) {
		must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700))
		must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o700))
	}
	for name, text := range scripts {
		write(name, "#!/bin/sh\n"+text+"\n")
	}
	for _, name := range []string{"Makefile", ".ci/run"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", name))
		must(t, err)
		write(name, string(text))
	}
	write("otelxxl/go.mod", "module x\n")
	program := filepath.Join(root, "program")
	if out, err := exec.Command(goCommand(), "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	must(t, os.Mkdir(filepath.Join(root, "tmp"), 0o700))
	for fails, want := range map[string]string{"none": "4 passed, 0 failed", "-race": "3 passed, 1 failed", "./interop": "3 passed, 1 failed"} {
		cmd := exec.Command("bash", filepath.Join(root, ".ci/run"))
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(root, "tools")+":"+os.Getenv("PATH"), "TMPDIR="+filepath.Join(root, "tmp"),
			"GATE_PROGRAM="+program, "GATE_FAILS="+fails, "GO=go", "CC=true", "MAKEFLAGS=")
		out, err := cmd.CombinedOutput()
		if text := strings.TrimSpace(string(out)); (err == nil) != (fails == "none") || !strings.HasSuffix(text, "\n"+want) {
			t.Errorf("where %s fails it ends with %v, want %q last:\n%s", fails, err, want, text)
		}
		for _, step := range []string{"test", "lint", "race", "browser", "interop"} {
			if ok := strings.Contains(string(out), "== "+step+": ok"); fails == "none" && !ok {
				t.Errorf("step %s is not ok", step)
			}
		}
	}
}
