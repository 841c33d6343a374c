package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// onceOnly is the exit code after which gotestsum runs nothing again: of go test it expects 0
// and 1.
const onceOnly = 3

// goTest runs go test -json and passes its events on. It ends as go test does, but with
// onceOnly where a failure shows what must not be run again. What gotestsum appends for a
// second run, -test.run=^TestX$ and a package, takes the place of the packages.
func goTest(ctx context.Context, out, errs io.Writer, args []string) int {
	cmd := exec.CommandContext(ctx, goCommand(), append([]string{"test", "-json"}, testArgs(args)...)...)
	cmd.Stderr = errs
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(errs, "gate:", err)
		return onceOnly
	}
	b := newBook()
	if err := b.read(pipe, out); err != nil {
		fmt.Fprintln(errs, "gate:", err)
		cmd.Cancel()
		cmd.Wait()
		return onceOnly
	}
	err = cmd.Wait()
	if err == nil {
		return 0
	}
	if b.never != "" {
		fmt.Fprintln(errs, "gate: nothing is run again, for this shows", b.never)
		return onceOnly
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	fmt.Fprintln(errs, "gate: go test:", err)
	return onceOnly
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
