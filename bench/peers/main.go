package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/xxljob/xxljob/internal/test/pgtest"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == childArg {
		if err := childMain(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "peers, in a process of a contestant:", err)
			os.Exit(2)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends it at once
	err := compare(ctx, flags())
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, errMissed) {
		os.Exit(1)
	}
	os.Exit(2)
}

// config says what is compared, and how long.
type config struct {
	Only   []string // parts
	Rounds int
	Units  int           // that wait, in a drain
	Jobs   int           // of ours, which they are of
	Conns  int           // of each process to Postgres
	For    time.Duration // how long a schedule is measured
	Rate   int           // what River drains, where the drain is not among the parts
	JSON   bool
	Strict bool
}

func flags() config {
	var c config
	only := flag.String("only", "", "comma list of `parts` out of "+strings.Join(parts(), ", ")+"; empty: all of them")
	flag.IntVar(&c.Rounds, "rounds", 3, "rounds of each contestant in each situation; of several nodes, and in memory, two at most")
	flag.IntVar(&c.Units, "units", 200_000, "units that wait, in a drain")
	flag.IntVar(&c.Jobs, "jobs", 5000, "jobs of ours that they are of")
	flag.IntVar(&c.Conns, "conns", 8, "connections of the pool of each process")
	flag.DurationVar(&c.For, "for", 6*time.Second, "how long each schedule is measured, in whole seconds")
	flag.IntVar(&c.Rate, "river", 0, "what River drains a second, where part drain is left out; 0: ask it once")
	flag.BoolVar(&c.JSON, "json", false, "print one JSON object instead of tables")
	flag.BoolVar(&c.Strict, "strict", false, "exit with 1 where a target is not met")
	flag.Parse()
	if *only != "" {
		c.Only = strings.Split(*only, ",")
	}
	for _, part := range c.Only {
		if !slices.Contains(parts(), part) {
			fmt.Fprintf(os.Stderr, "there is no part %q\n", part)
			os.Exit(2)
		}
	}
	if flag.NArg() > 0 || c.Rounds < 1 || c.Units < 1 || c.Jobs < 1 || c.For < 3*time.Second {
		fmt.Fprintln(os.Stderr, "there are no arguments but flags; rounds, units and jobs are positive, and -for is at least 3s")
		os.Exit(2)
	}
	return c
}

// compare starts a server where a part needs one, and measures.
func compare(ctx context.Context, c config) (err error) {
	b := &bench{config: c, pace: usualPace(), out: os.Stdout, progress: os.Stderr}
	if b.has(partDrain) || b.has(partNodes) || b.has(partScheduled) {
		cluster, err := pgtest.New(serverOptions())
		if err != nil {
			return err
		}
		defer cluster.Close() // the directory goes with the process in any case
		if b.server, err = newServer(ctx, cluster); err != nil {
			return err
		}
		defer b.server.pool.Close()
	}
	return b.run(ctx)
}
