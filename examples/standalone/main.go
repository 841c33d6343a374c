// Command standalone is a scheduler as a program of its own. Without flags it runs
// the schedules of a real server beside a few demo jobs and prints a line for each
// run:
//
//	go run ./examples/standalone -for 10s
//	go run ./examples/standalone -jobs examples/standalone/jobs.json -zone Europe/Berlin
//
// Jobs and runs are in memory, and gone with the process. With -store they are in
// Postgres: whatever becomes of the process, the next one goes on where it ended,
// and several share the work.
//
//	go run ./examples/standalone -store postgres://user:password@localhost/db
//
// It prints a link to its console, where the first user is made. -console loopback lets
// everybody on this machine in, -console off does without. It has an address of its own, on this
// machine alone unless -console-listen names another.
//
// With -listen executors in other processes join it, of any language that speaks
// XXL-JOB's protocol; jobs name their app. ./examples/worker is one.
//
//	XXLJOB_TOKEN=secret go run ./examples/standalone -listen :8080
//
// SIGHUP reads the file again, where there is such a signal. The first Ctrl-C waits for
// running handlers, the second does not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // schedules have zones, and an image may have none

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/postgres"
)

// options are the flags.
type options struct {
	jobs   string         // -jobs: the file, or "" for the demo
	zone   *time.Location // -zone
	allow  []string       // -http-allow
	logs   string         // -logs
	runFor time.Duration  // -for: 0 is for ever
	store  string         // -store: "" is in memory
	schema string         // -schema
	listen string         // -listen: "" is for no executors elsewhere
	token  string         // -token
	unsafe bool           // -insecure

	console string // -console: who gets in
	// -console-listen: "" is for an address of this machine alone
	consoleListen string
	proxies       []netip.Prefix // -trusted-proxy

	jobsAPI []string // -jobs-api

	storeFrom, tokenFrom string // what -store and -token were given by, for errors

	cluster xxljob.ClusterConfig // no flag: tests wait for less long
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from then on Ctrl-C ends the program at once
	if err := run(ctx, o, os.Stdout, reloadSignal()); err != nil {
		fmt.Fprint(os.Stderr, faultText(err))
		os.Exit(1)
	}
}

// parse reads the flags. What is wrong with them goes to w, with the usage.
func parse(args []string, w io.Writer) (options, error) {
	o := options{zone: time.UTC}
	f := flag.NewFlagSet("standalone", flag.ContinueOnError)
	f.SetOutput(w)
	f.StringVar(&o.jobs, "jobs", "", "`file` of jobs: a JSON list, or lines of name, tab, crontab expression")
	f.StringVar(&o.logs, "logs", "", "`directory` for the logs of runs; they are kept in memory otherwise")
	f.DurationVar(&o.runFor, "for", 0, "stop by itself after this `time`")
	f.StringVar(&o.store, "store", "", "`address` of a database for jobs and runs, as postgres://user:password@host/db; else that in "+storeVariable+"; they are kept in memory otherwise")
	f.StringVar(&o.schema, "schema", "xxljob", "with -store: `schema` of the tables, which are made when they are not there")
	f.StringVar(&o.listen, "listen", "", "`address`, such as :8080, at which executors in other processes and languages register (XXL-JOB's protocol)")
	f.StringVar(&o.token, "token", "", "with -listen: access `token` of executors, or two with a comma between them; else that in "+tokenVariable)
	f.BoolVar(&o.unsafe, "insecure", false, "with -listen: no token; who reaches the address can take jobs and report results")
	f.Func("jobs-api", "with -listen: comma list of `apps` whose programs may manage the app's own jobs (XXL-JOB 3.5's addJob and the like; default none)", func(list string) error {
		o.jobsAPI = strings.Split(list, ",")
		return nil
	})
	f.StringVar(&o.console, "console", consoleAccounts, "who gets into the console in the browser: `accounts`, whose first is made with the code in the printed link; loopback, whoever is on this machine; off, nobody")
	f.StringVar(&o.consoleListen, "console-listen", "", "`address`, such as :8081, of the console for other machines (default localhost:8080, or another port if that is taken)")
	f.Func("trusted-proxy", "comma list of `addresses` of proxies in front of the console, or networks such as 10.0.0.0/8, whose X-Forwarded-For is believed (default none)", func(list string) (err error) {
		o.proxies, err = networks(list)
		return err
	})
	f.Func("zone", "IANA `zone` of schedules that name none, and of what is printed (default UTC)", func(name string) (err error) {
		if name == "Local" {
			return errors.New("want an IANA name such as Europe/Berlin")
		}
		o.zone, err = time.LoadLocation(name)
		return err
	})
	f.Func("http-allow", "comma list of `hosts`, with a port unless it is the usual one, that httpJobHandler may call (default none)", func(list string) error {
		o.allow = strings.Split(list, ",")
		return nil
	})
	err := f.Parse(args)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
		fmt.Fprintln(w, err)
		f.Usage()
	}
	o.storeFrom, o.tokenFrom = "-store", "-token"
	if text := os.Getenv(storeVariable); o.store == "" && text != "" {
		o.store, o.storeFrom = text, storeVariable
	}
	if text := os.Getenv(tokenVariable); o.token == "" && text != "" {
		o.token, o.tokenFrom = text, tokenVariable
	}
	return o, err
}

// run schedules until ctx ends.
func run(ctx context.Context, o options, out io.Writer, reload <-chan os.Signal) error {
	if o.runFor > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.runFor)
		defer cancel()
	}
	if err := o.check(); err != nil {
		return err
	}
	l, err := o.bind(ctx)
	if err != nil {
		return err
	}
	defer l.close() // where nothing has been served
	web, err := o.bindConsole(ctx)
	if err != nil {
		return err
	}
	defer web.close()
	store, shut, err := openStore(ctx, o)
	if err != nil {
		return err
	}
	defer shut()
	p := &printer{out: out, zone: o.zone, store: store}
	s, err := xxljob.New(store, xxljob.Config{
		App:      appName,
		Cluster:  o.cluster,
		HTTP:     xxljob.HTTPConfig{Tokens: o.tokens(), Insecure: o.unsafe, JobsAPI: o.jobsAPI},
		Location: o.zone,
		Executor: executor.Config{Log: executor.LogConfig{Dir: o.logs}},
		Hooks:    xxljob.Hooks{RunEnded: p.runEnded, RunSkipped: p.runEnded},
	})
	if err != nil {
		return err
	}
	if err := addHandlers(s, o.allow); err != nil {
		return err
	}
	load := &loader{scheduler: s, file: o.jobs, has: held{}}
	if err := load.remember(ctx, store); err != nil {
		return err
	}
	jobs, _, err := load.load(ctx)
	if err != nil {
		return err
	}
	if o.store != "" {
		p.say("jobs and runs are kept in Postgres, schema %s", o.schema)
	}
	pages, page, err := o.consoleHandler(ctx, store, s)
	if err != nil {
		return err
	}
	p.begin(jobs)

	// The scheduler stops when that was said, and not as soon as ctx ends.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.Run(life) })
	g.Go(func() error { return l.serveExecutors(ctx, s, p) })
	g.Go(func() error { return web.serveConsole(ctx, p, pages, page) })
	g.Go(func() error {
		<-ctx.Done()
		p.say("stopping: waiting for running handlers")
		stop()
		return nil
	})
	g.Go(func() error {
		for {
			select {
			case <-reload:
				p.reloaded(load.load(ctx))
			case <-ctx.Done():
				return nil
			}
		}
	})
	err = g.Wait()
	p.say("stopped")
	return err
}

// openStore opens the store that the flags name.
func openStore(ctx context.Context, o options) (store xxljob.Store, shut func(), err error) {
	if o.store == "" {
		return memory.New(), func() {}, nil
	}
	pool, err := pgxpool.New(ctx, o.store)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", o.storeFrom, err)
	}
	s, err := postgres.New(ctx, pool, postgres.Config{Schema: o.schema, AutoMigrate: true})
	if err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("%s: %w", o.storeFrom, err)
	}
	return s, func() { s.Close(); pool.Close() }, nil
}

// loader makes the scheduler's jobs those of a file.
type loader struct {
	scheduler xxljob.Scheduler
	file      string
	apps      []string // that have had jobs: those of an app may all be gone later
	has       held
	loaded    map[jobID]xxljob.Job // by the last load of this process
}

// remember takes in the jobs of an earlier process that have had their last
// instant, for they may stay in the file.
func (l *loader) remember(ctx context.Context, store xxljob.Store) error {
	const page = 1000
	for after := int64(0); ; {
		jobs, err := store.Jobs(ctx, xxljob.JobFilter{After: after, Limit: page})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			after = j.ID
			if j.Next.IsZero() && j.Key != "" && !j.Schedule.IsManual() {
				j.Stopped = j.Stopped && j.StopReason == "" // as the file had it
				l.has[idOf(j)] = j
			}
		}
		if len(jobs) < page {
			return nil
		}
	}
}

// load reads the file and applies it. Faults in the file change nothing. It returns how
// many jobs were stopped that are gone from the file since the last load: here the
// operator says so. Those that went while no process ran are stopped by Prune, once no
// other process has them in its file.
func (l *loader) load(ctx context.Context) (all []xxljob.Ensured, gone int, err error) {
	jobs, err := demoJobs()
	if l.file != "" {
		jobs, err = readJobs(l.file, l.has)
	}
	if err != nil {
		return nil, 0, err
	}
	for _, j := range jobs {
		if !slices.Contains(l.apps, j.App) {
			l.apps = append(l.apps, j.App)
		}
	}
	loaded := map[jobID]xxljob.Job{}
	for _, app := range l.apps {
		list := slices.DeleteFunc(slices.Clone(jobs), func(j xxljob.Job) bool { return j.App != app })
		ensured, err := l.scheduler.EnsureJobs(ctx, app, list, xxljob.EnsureOptions{Prune: true, ApplyStopped: true})
		if err != nil {
			return nil, 0, fmt.Errorf("jobs of app %q: %w", app, err)
		}
		maps.DeleteFunc(l.has, func(id jobID, _ xxljob.Job) bool { return id.app == app })
		for i, j := range list {
			l.has[idOf(j)] = j
			loaded[idOf(j)] = ensured[i].Job
		}
		all = append(all, ensured...)
	}
	was := l.loaded
	l.loaded = loaded
	for id, j := range was {
		if _, has := loaded[id]; has || j.Stopped || j.ID == 0 {
			continue
		}
		if err := l.scheduler.StopJob(ctx, j.ID); err != nil && !errors.Is(err, xxljob.ErrNotFound) {
			return all, gone, fmt.Errorf("stop job %q, which is gone from the file: %w", j.Key, err)
		}
		gone++
	}
	return all, gone, nil
}

// addHandlers registers what the jobs of a file can name.
func addHandlers(s xxljob.Scheduler, allow []string) error {
	caller, err := newCaller(allow)
	if err != nil {
		return err
	}
	return errors.Join(
		s.Handle("demoJobHandler", demo),
		s.Handle("shardingJobHandler", sharding),
		s.Handle("httpJobHandler", xxljob.JSON(caller.call)),
	)
}
