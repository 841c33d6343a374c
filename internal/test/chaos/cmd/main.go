//go:build unix

// Command cmd injects faults into clusters of real scheduler processes and prints
// what an auditor makes of them. It exits with 1 when a promise was broken, and
// with 2 when the test itself failed.
//
//	go run ./internal/test/chaos/cmd             every fault alone, then mixed: about 30 minutes on two cores
//	go run ./internal/test/chaos/cmd -short      about two minutes
//	go run ./internal/test/chaos/cmd -faults sigkill,mixed -for 5m -seed 7 -keep
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/xxljob/xxljob/internal/test/chaos"
)

func main() {
	c := chaos.Config{Out: os.Stdout}
	list := flag.Bool("list", false, "list the faults and end")
	faults := flag.String("faults", "", "comma list of `faults`; empty: all of them")
	store := flag.String("store", "postgres", "postgres or memory")
	flag.Uint64Var(&c.Seed, "seed", 0, "seed of all choices; 0: a new one")
	flag.DurationVar(&c.Mixed, "for", 0, "how long faults are mixed; 0: 90s")
	flag.BoolVar(&c.Short, "short", false, "the short form")
	flag.IntVar(&c.Nodes, "nodes", 0, "nodes of each cluster; 0: 3")
	flag.IntVar(&c.Lanes, "lanes", 0, "clusters at the same time; 0: one more than cores, 4 at most")
	flag.BoolVar(&c.Keep, "keep", false, "keep the evidence also when nothing is wrong")
	flag.Parse()
	if *list {
		fmt.Println(strings.Join(chaos.Names(), "\n"))
		return
	}
	if *faults != "" {
		c.Faults = strings.Split(*faults, ",")
	}
	c.Memory = *store == "memory"
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends it at once
	err := chaos.Run(ctx, c)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, chaos.ErrViolated) {
		os.Exit(1)
	}
	os.Exit(2)
}
