//go:build unix

// Command cmd puts a scheduler under the load of a hostile app and prints how an honest
// app was served meanwhile. It exits with 1 when that was not as promised, and with 2 when
// the test itself failed.
//
//	go run ./internal/test/siege/cmd                          twenty minutes of all attacks
//	go run ./internal/test/siege/cmd -for 2m -seed 7 -log
//	go run ./internal/test/siege/cmd -attacks flood,dribble -store-stall
//	go run ./internal/test/siege/cmd -for 1m -attacks none    the machine by itself
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/xxljob/xxljob/internal/test/siege"
)

func main() {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case siege.RoleNode:
			child(siege.Node)
			return
		case siege.RoleHostile:
			child(siege.Hostile)
			return
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends it at once
	err := siege.Run(ctx, flags())
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, siege.ErrViolated) {
		os.Exit(1)
	}
	os.Exit(2)
}

// child is this program in another role.
func child(do func(context.Context, io.Reader, io.Writer) error) {
	if err := do(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, os.Args[1]+":", err)
		os.Exit(1)
	}
}

func flags() siege.Config {
	c := siege.Config{Out: os.Stdout}
	log := flag.Bool("log", false, "print what the processes log, on stderr")
	attacks := flag.String("attacks", "", "comma list of `attacks` out of "+strings.Join(siege.Attacks(), ", ")+", or none; empty: all of them")
	bound := flag.Int64("heap-bound", 0, "by how much the live heap must not exceed what it was before the siege, in `MiB`; 0: 64")
	flag.StringVar(&c.Profiles, "profiles", "", "a `directory` for profiles of the scheduler's heap, one whenever more of it is live than before; empty: none")
	flag.DurationVar(&c.For, "for", 0, "how long the siege lasts; 0: 20m")
	flag.Uint64Var(&c.Seed, "seed", 0, "seed of all choices; 0: a new one")
	flag.DurationVar(&c.Row, "row", 0, "what each line sums up; 0: 1m")
	flag.BoolVar(&c.StoreStall, "store-stall", false, "hang the store for 3s once a minute; such times are not judged but for the heap")
	flag.IntVar(&c.Executors, "executors", 0, "executors of the honest app; 0: 50")
	flag.DurationVar(&c.Beat, "beat", 0, "time between two heartbeats of one; 0: 1s")
	flag.IntVar(&c.Runs, "runs", 0, "runs of the honest app a second; 0: 50")
	flag.IntVar(&c.Rates.Repeats, "repeats", 0, "connections with pages of repeats; 0: 3")
	flag.Float64Var(&c.Rates.RepeatsRate, "repeats-rate", 0, "such pages a second; 0: 6")
	flag.IntVar(&c.Rates.Flood, "flood", 0, "connections with the largest pages; 0: 8")
	flag.Float64Var(&c.Rates.FloodRate, "flood-rate", 0, "such pages a second, of 4 MiB; 0: 3.2")
	flag.Float64Var(&c.Rates.Registrations, "registrations", 0, "registrations of new addresses a second; 0: 50")
	flag.IntVar(&c.Rates.Dribbles, "dribbles", 0, "connections that dribble; 0: 400")
	flag.DurationVar(&c.Rates.DribbleEvery, "dribble-every", 0, "time between two bytes of one; 0: 3s")
	flag.IntVar(&c.Rates.ConsoleForms, "console-forms", 0, "connections with slow forms to the console; 0: 150")
	flag.Float64Var(&c.Rates.ConsolePages, "console-pages", 0, "heavy pages of the console a second; 0: 4")
	flag.Float64Var(&c.Rates.ConsoleSearches, "console-searches", 0, "searches in runs a second; 0: 2")
	flag.Float64Var(&c.Rates.ConsoleLogins, "console-logins", 0, "wrong passwords a second; 0: 4")
	flag.Float64Var(&c.Rates.ConsoleTokens, "console-tokens", 0, "wrong tokens a second; 0: 100")
	flag.Parse()
	switch *attacks {
	case "":
	case "none":
		c.Attacks = []string{}
	default:
		c.Attacks = strings.Split(*attacks, ",")
	}
	c.HeapBound = *bound << 20
	if *log {
		c.Log = os.Stderr
	}
	return c
}
