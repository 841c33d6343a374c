//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// first is the app of the nodes that are not told another.
const first = "chaos"

// options are the flags.
type options struct {
	name, dir, store, dsn, schema, lease string
	app, router, hook, subject           string
	mail                                 int
	shards, pool                         int
	poison                               int64
	dead                                 time.Duration
	executor, listen, address, admins    string
	reserve                              bool
}

func main() {
	var o options
	flag.StringVar(&o.name, "name", "", "name of the node")
	flag.StringVar(&o.dir, "dir", ".", "directory of event files and of the socket")
	flag.StringVar(&o.store, "store", "postgres", "postgres or memory")
	flag.StringVar(&o.dsn, "dsn", "", "address of the database")
	flag.StringVar(&o.schema, "schema", "chaos", "schema of the tables")
	flag.StringVar(&o.lease, "lease", "lock", "how shards are held: lock or row")
	flag.IntVar(&o.shards, "shards", 16, "number of shards")
	flag.IntVar(&o.pool, "pool", 0, "connections of the pool at most; 0 is pgx's default")
	flag.Int64Var(&o.poison, "poison", 0, "runs whose id is a multiple have texts that nobody can store; 0 for none")
	flag.DurationVar(&o.dead, "dead", 0, "how long a registration over HTTP is good for; 0 is the scheduler's default")
	flag.StringVar(&o.executor, "executor", "", "an app: the process is an executor of it over HTTP, and no node")
	flag.StringVar(&o.listen, "listen", "", "where the executor listens")
	flag.StringVar(&o.address, "address", "", "what the executor registers as its address")
	flag.StringVar(&o.admins, "admins", "", "comma list of the admins of the executor")
	flag.BoolVar(&o.reserve, "reserve", true, "whether the store has its reserve connection")
	flag.StringVar(&o.app, "app", first, "the app of the node; another than the default has one rule for its own alarms, told at the hook")
	flag.StringVar(&o.router, "router", "", "a router that the node has; empty for none")
	flag.StringVar(&o.hook, "hook", "", "where alarms are posted; empty for none of any kind")
	flag.IntVar(&o.mail, "mail", 0, "the port of the mail server on this machine")
	flag.StringVar(&o.subject, "subject", "", "template of the subject of mails")
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil))) // of the store as well
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go endWith(os.Stdin)
	if err := run(ctx, o); err != nil {
		slog.Error("node ended", "node", o.name, "error", err)
		os.Exit(1)
	}
}

// endWith ends the process at once when its input ends: whoever started it is gone.
func endWith(input *os.File) {
	_, _ = io.Copy(io.Discard, input)
	os.Exit(1)
}

// run is the process until it is asked to stop.
func run(ctx context.Context, o options) error {
	events, err := openEvents(o)
	if err != nil {
		return err
	}
	if o.executor != "" {
		return serve(ctx, o, events)
	}
	b, err := openBackend(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	alarms, err := rules(o)
	if err != nil {
		return err
	}
	s, err := xxljob.New(b.store, xxljob.Config{
		App: o.app, Node: o.name, Cluster: xxljob.ClusterConfig{Shards: o.shards, Beat: o.dead / 3, Dead: o.dead}, HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {token}}}, StopGrace: 10 * time.Second, Limits: xxljob.Limits{AllowSubSecond: true}, Alarms: alarms,
		Logs: xxljob.LogConfig{InStore: true}, Routers: events.routers(o.router),
	})
	if err != nil {
		return err
	}
	stop := func(context.Context) error { return nil }
	if o.app == first {
		further, err := executor.New(executor.Config{App: "further"})
		if err != nil {
			return err
		}
		if err := errors.Join(further.Handle("work", events.work), s.Attach(further)); err != nil {
			return err
		}
		stop = further.Stop
	}
	if err := s.Handle("work", events.work); err != nil {
		return err
	}
	n := &node{s: s, backend: b}
	ln, err := n.listen(o)
	if err != nil {
		return err
	}
	defer ln.Close()
	go control.Serve(ln, n.answer)
	if err := serveAdmin(o, s); err != nil {
		return err
	}
	go events.watch(ctx, s)
	err = s.Run(ctx)
	return errors.Join(err, stop(context.Background()))
}

// listen takes the socket over from a former process of the same name.
func (n *node) listen(o options) (net.Listener, error) {
	socket := filepath.Join(o.dir, o.name+".sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", socket)
}
