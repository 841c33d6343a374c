// Command xxljob is the command line of the xxljob module. Its verbs:
//
//	bench    put a scheduler under a load, measure it, and audit that every instant has run once
//
// xxljob VERB --help has the flags. It exits with 1 where a verb has found something wrong,
// with 2 where it could not do its work, and with 80 where it was called in a wrong way.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // schedules have zones, and an image may have none

	"github.com/alecthomas/kong"
)

// errFound is the error of a verb that has done its work and found something wrong, and has
// said so.
var errFound = errors.New("found something wrong")

// cli is the command line: a field is a verb.
type cli struct {
	Bench    benchVerb    `cmd:"" help:"Put a scheduler under a load, measure it, and audit that every instant has run once."`
	Executor executorVerb `cmd:"" name:"bench-executor" hidden:"" help:"An executor of bench, which starts it."`
}

// program is what verbs are given of the world.
type program struct {
	args     []string // without the program's name
	in       io.Reader
	out, err io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends it at once
	os.Exit(run(ctx, &program{args: os.Args[1:], in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// run does what the arguments say, and returns the exit code.
func run(ctx context.Context, p *program) int {
	exit := -1
	parser, err := kong.New(&cli{}, kong.Name("xxljob"), kong.Description("An embeddable job scheduler: its command line."),
		kong.UsageOnError(), kong.Writers(p.out, p.err), kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(p))
	if err != nil {
		fmt.Fprintln(p.err, "xxljob:", err)
		return 2
	}
	verb, err := parser.Parse(p.args)
	if exit < 0 && err != nil {
		parser.FatalIfErrorf(err)
	}
	if exit >= 0 { // it has shown the help, or what is wrong
		return exit
	}
	switch err := verb.Run(); {
	case err == nil:
		return 0
	case errors.Is(err, errFound):
		return 1
	default:
		fmt.Fprintln(p.err, "xxljob:", err)
		return 2
	}
}
