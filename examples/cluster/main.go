// Command cluster is one program that is started several times against one
// Postgres. Kill any of them and watch the others go on with its jobs.
//
//	go run ./examples/cluster -store postgres://user:password@localhost/db -node a
//	go run ./examples/cluster -store postgres://user:password@localhost/db -node b
//	go run ./examples/cluster -store postgres://user:password@localhost/db -node c
//
// Or all in one terminal: -n starts that many nodes as processes of their own, and
// kills one of them now and then, or whenever a line is entered. Then it prints, for
// each routing strategy, how late the runs were that the killed node had not taken.
//
//	go run ./examples/cluster -store postgres://user:password@localhost/db -n 3
//
// Ctrl-C is a clean stop; a second one ends the program at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	store  string        // -store
	schema string        // -schema
	node   string        // -node
	nodes  int           // -n: 0 is one node, here
	every  time.Duration // -every: 0 is never
	away   time.Duration // -away
	window time.Duration // -window
	piped  bool          // -piped
}

// storeVariable is the environment's -store: a password in it is seen by fewer.
const storeVariable = "XXLJOB_STORE"

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2) // parse has said why
	}
	ctx, stop := untilStopped(o.piped)
	defer stop()
	if o.nodes > 0 {
		err = runNodes(ctx, o, os.Stdin, os.Stdout)
	} else {
		err = runNode(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// parse reads the flags. What is wrong with them goes to w, with the usage.
func parse(args []string, w io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("cluster", flag.ContinueOnError)
	f.SetOutput(w)
	f.StringVar(&o.store, "store", "", "`address` of the database, as postgres://user:password@host/db; else that in "+storeVariable)
	f.StringVar(&o.schema, "schema", "xxljob", "`schema` of the tables, which are made when they are not there")
	f.StringVar(&o.node, "node", "", "`name` of this node; no two that run may have the same")
	f.IntVar(&o.nodes, "n", 0, "start this `number` of nodes, each as a process of its own")
	f.DurationVar(&o.every, "every", 15*time.Second, "with -n: kill a node each such `time`; 0 is never")
	f.DurationVar(&o.away, "away", 5*time.Second, "with -n: start a killed node again after this `time`")
	f.DurationVar(&o.window, "window", 15*time.Second, "with -n: after a kill, print how late the runs are that fall due in this `time`")
	f.BoolVar(&o.piped, "piped", false, "stop when the standard input ends, and not by Ctrl-C")
	err := f.Parse(args)
	if err != nil {
		return o, err
	}
	if o.store == "" {
		o.store = os.Getenv(storeVariable)
	}
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.store == "":
		err = errors.New("-store is missing: nodes of a cluster share a database, such as that of\n" +
			"  docker run --rm -p 5432:5432 -e POSTGRES_PASSWORD=secret postgres:17\n" +
			"  -store postgres://postgres:secret@localhost/postgres")
	case o.nodes < 0 || o.nodes > 26:
		err = fmt.Errorf("-n %d: want 1 to 26", o.nodes)
	case (o.node == "") == (o.nodes == 0):
		err = errors.New("want -node, for one node with this name, or else -n, for several")
	}
	if err != nil {
		fmt.Fprintln(w, err)
		f.Usage()
	}
	return o, err
}

// untilStopped returns a context that ends when the program is to stop.
func untilStopped(piped bool) (context.Context, context.CancelFunc) {
	if piped {
		signal.Ignore(os.Interrupt) // the terminal sends it to the whole group
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		go func() { // ends with the input, or the process
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
		return ctx, stop
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from then on Ctrl-C ends the program at once
	return ctx, stop
}
