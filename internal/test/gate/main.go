// Command gate is what .ci/run and make stress have beside gotestsum: a rule for what is
// never run again, a report that names what failed, and a search for tests that fail now
// and then.
//
//	gate test FLAGS PACKAGES      go test -json, as gotestsum's raw command
//	gate report STEP.json...      what the steps say together; the last line counts tests
//	gate slowest STEP.json...     the twenty slowest packages and tests
//	gate stress -pkg ./x -run TestY -n 200
//
// Comes in: the events that go test prints (go doc test2json). Goes out: the same events, and
// text. It is run by hand and by CI; nothing of the library imports it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		usage()
	}
	args := os.Args[2:]
	switch os.Args[1] {
	case "test":
		os.Exit(goTest(ctx, os.Stdout, os.Stderr, args))
	case "report":
		os.Exit(exitCode(withSteps(args, func(steps []step) bool { return report(os.Stdout, steps) })))
	case "slowest":
		os.Exit(exitCode(withSteps(args, func(steps []step) bool { slowest(os.Stdout, steps, 20); return true })))
	case "stress":
		os.Exit(exitCode(stressCommand(ctx, os.Stdout, args)))
	case "spin": // a busy process of stress, which ends with its input, and so with who started it
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		runtime.GOMAXPROCS(1)
		for ctx.Err() == nil {
		}
	default:
		usage()
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: gate test|report|slowest|stress; see go doc ./internal/test/gate")
	os.Exit(2)
}

// exitCode is 0 where all is well, 1 where something failed, and 2 where that is not known.
func exitCode(ok bool, err error) int {
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "gate:", err)
		return 2
	case !ok:
		return 1
	}
	return 0
}

// withSteps reads the events of each file, and passes them on.
func withSteps(files []string, f func([]step) bool) (ok bool, err error) {
	var steps []step
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return false, err
		}
		b := newBook()
		err = b.read(file, unread)
		file.Close()
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		b.close()
		steps = append(steps, step{name: stepName(name), book: b})
	}
	return f(steps), nil
}

// stressCommand reads the flags of the verb.
func stressCommand(ctx context.Context, out io.Writer, args []string) (ok bool, err error) {
	f := flag.NewFlagSet("gate stress", flag.ContinueOnError)
	o := stressOptions{}
	f.StringVar(&o.packages, "pkg", "", "packages, `./x,./y`")
	f.StringVar(&o.run, "run", ".", "only tests whose name matches this `expression`")
	f.IntVar(&o.n, "n", 20, "how often each test is run, spread over the combinations")
	f.IntVar(&o.long, "long", 3, "how often a test is run that takes more than ten seconds")
	f.StringVar(&o.only, "only", "", "only combinations whose name contains each of these, as in `race,procs=8,busy`")
	f.IntVar(&o.busy, "busy", 4, "how many busy processes there are beside half of the runs")
	f.StringVar(&o.dir, "dir", "bin/stress", "`folder` for programs and results")
	f.BoolVar(&o.resume, "resume", false, "go on where the last run with the same flags was ended; without it the rounds of that run are put aside")
	f.DurationVar(&o.timeout, "timeout", 30*time.Minute, "of one round of a package")
	if err := f.Parse(args); err != nil {
		return false, err
	}
	if o.packages == "" || f.NArg() > 0 {
		return false, fmt.Errorf("stress: want -pkg, and flags only; got %q", strings.Join(args, " "))
	}
	return stress(ctx, out, o)
}
