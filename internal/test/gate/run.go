package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// onceOnly is the exit code after which gotestsum runs nothing again: of go test it expects 0
// and 1.
const onceOnly = 3

// goTest runs go test -json and passes its events on. It ends as go test does, but with
// onceOnly where a failure shows what must not be run again, or where no test is there to be. What
// gotestsum appends for a second run, -test.run=^TestX$ and a package, takes the place of the
// packages.
func goTest(ctx context.Context, out, errs io.Writer, args []string) int {
	cmd := exec.CommandContext(ctx, goCommand(), append([]string{"test", "-json"}, testArgs(args)...)...)
	p := passing{out: out, warnings: &warnings{to: errs}, built: map[string][][]byte{}}
	cmd.Stderr = p.warnings
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(errs, "gate:", err)
		return onceOnly
	}
	b := newBook()
	if err := b.read(pipe, p.line); err != nil {
		fmt.Fprintln(errs, "gate:", err)
		cmd.Cancel()
		cmd.Wait()
		return onceOnly
	}
	err = cmd.Wait()
	p.rest()
	if err == nil {
		return 0
	}
	if b.never != "" {
		fmt.Fprintln(errs, "gate: nothing is run again, for this shows", b.never)
		return onceOnly
	}
	if !slices.ContainsFunc(b.order, func(t *test) bool { return t.name != "" && t.firstFailed() != nil }) {
		fmt.Fprintln(errs, "gate: go test failed, and none of the tests did")
		return onceOnly
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	fmt.Fprintln(errs, "gate: go test:", err)
	return onceOnly
}

// passing writes events on. Whatever a build has said gotestsum takes for an error after which it
// runs nothing again, so it gets that of builds which have failed; the others are warnings.
type passing struct {
	out      io.Writer
	warnings *warnings
	built    map[string][][]byte // import path → lines of events
}

func (p *passing) line(line []byte, e event) error {
	switch e.Action {
	case "build-output":
		p.built[e.ImportPath] = append(p.built[e.ImportPath], line)
		return nil
	case "build-fail":
		line = append(bytes.Join(p.built[e.ImportPath], nil), line...)
		delete(p.built, e.ImportPath)
	}
	_, err := p.out.Write(line)
	return err
}

// rest writes what builds have said that went well.
func (p *passing) rest() {
	for _, path := range slices.Sorted(maps.Keys(p.built)) {
		for _, line := range p.built[path] {
			var e event
			if json.Unmarshal(line, &e) == nil {
				io.WriteString(p.warnings, e.Output)
			}
		}
	}
	if len(p.warnings.half) > 0 {
		io.WriteString(p.warnings, "\n")
	}
}

// warnings writes lines so that gotestsum does not take them for errors either.
type warnings struct {
	to   io.Writer
	half []byte // of a line
}

func (w *warnings) Write(text []byte) (int, error) {
	w.half = append(w.half, text...)
	for {
		line, rest, whole := bytes.Cut(w.half, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		w.half = rest
		if _, err := fmt.Fprintf(w.to, "warning: %s\n", line); err != nil {
			return len(text), err
		}
	}
}

func goCommand() string {
	if name := os.Getenv("GO"); name != "" {
		return name
	}
	return "go"
}

// testArgs are the arguments of go test. Those that do not begin with - are packages, so
// values of flags follow a =.
func testArgs(args []string) []string {
	const again = "-test.run="
	var flags, packages []string
	second := false
	for _, arg := range args {
		switch {
		case strings.HasPrefix(arg, again):
			second, packages = true, nil
			flags = append(flags, arg)
		case strings.HasPrefix(arg, "-"):
			flags = append(flags, arg)
		default:
			packages = append(packages, arg)
		}
	}
	if second {
		flags = append(flags, "-count=1")
	}
	return append(flags, packages...)
}
