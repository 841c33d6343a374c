// Command worker is a process that only executes: it registers with admins of
// XXL-JOB's protocol, those of this module or Java's, runs what they send, and
// compiles no scheduler.
//
//	XXLJOB_TOKEN=secret go run ./examples/standalone -listen localhost:8080 -jobs examples/worker/jobs.json
//	XXLJOB_TOKEN=secret go run ./examples/worker -admin http://localhost:8080/xxl-job-admin
//
// Start as many as you like, on as many hosts. With -spool results survive a crash, and
// are delivered by the next process. The first Ctrl-C deregisters and waits for running
// handlers; the second does not.
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
	"time"

	"github.com/xxljob/xxljob/executor"
)

// tokenVariable is the environment's token: on a command line everybody on the host
// would see it.
const tokenVariable = "XXLJOB_TOKEN"

func main() {
	cfg, err := parse(os.Args[1:], os.Getenv, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2) // parse has said why
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from then on Ctrl-C ends the program at once
	if err := run(ctx, cfg, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// parse reads the flags and the environment. What is wrong with them goes to w.
func parse(args []string, env func(string) string, w io.Writer) (executor.Config, error) {
	var cfg executor.Config
	f := flag.NewFlagSet("worker", flag.ContinueOnError)
	f.SetOutput(w)
	admins := f.String("admin", "", "comma list of `addresses` of the nodes of one admin, as http://host:8080/xxl-job-admin")
	f.StringVar(&cfg.App, "app", "worker", "executor `app`, as jobs name it")
	f.StringVar(&cfg.Addr, "addr", ":0", "`address` to listen on; with port 0 the system chooses one")
	f.StringVar(&cfg.Address, "address", "", "`URL` under which admins reach this process, where it is another one than it seems from here")
	f.StringVar(&cfg.SpoolDir, "spool", "", "`directory` in which results wait for the admin; in memory otherwise")
	f.StringVar(&cfg.Log.Dir, "logs", "", "`directory` for the logs of runs; in memory otherwise")
	f.BoolVar(&cfg.Insecure, "insecure", false, "no token: who reaches this process can run its handlers")
	err := f.Parse(args)
	switch {
	case err != nil:
		return cfg, err
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case *admins == "":
		err = errors.New("-admin is missing")
	}
	if err != nil {
		fmt.Fprintln(w, err)
		f.Usage()
	}
	cfg.Admins = []executor.AdminCluster{{Addresses: strings.Split(*admins, ","), Token: env(tokenVariable)}}
	return cfg, err
}

// run executes until ctx ends.
func run(ctx context.Context, cfg executor.Config, out io.Writer) error {
	e, err := executor.New(cfg)
	if err != nil {
		return err
	}
	err = errors.Join(
		e.Handle("demoJobHandler", demo),
		e.Handle("shardingJobHandler", sharding),
	)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "app %s: %s; Ctrl-C ends it\n", e.App(), strings.Join(e.Handlers(), ", "))
	return e.Serve(ctx)
}

// demo works for a moment, as long as its context lasts.
func demo(ctx context.Context, t *executor.Task) error {
	t.Log().Info("demo begins", "param", t.Param, "scheduled", t.ScheduledAt)
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.SetResult("hello " + t.Param)
	return nil
}

// sharding does its part of a broadcast: of a hundred customers those with its number.
func sharding(_ context.Context, t *executor.Task) error {
	mine := 0
	for customer := range 100 {
		if customer%t.ShardTotal == t.ShardIndex {
			mine++
		}
	}
	t.SetResult(fmt.Sprintf("part %d of %d: %d customers", t.ShardIndex, t.ShardTotal, mine))
	return nil
}
