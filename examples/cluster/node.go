package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/postgres"
)

// runNode is one node: what a service would do, and what it prints.
func runNode(ctx context.Context, o options, out io.Writer) error {
	pool, err := pgxpool.New(ctx, o.store)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := postgres.New(ctx, pool, postgres.Config{Schema: o.schema, AutoMigrate: true})
	if err != nil {
		return err
	}
	defer store.Close()
	p := &printer{node: o.node, out: out}
	s, err := xxljob.New(store, xxljob.Config{
		App:       "cluster",
		Node:      o.node,
		StopGrace: 3 * time.Second, // 30 s by default: for the long handler
		Cluster: xxljob.ClusterConfig{
			Shards:    8,                // 32 by default; with so few jobs one node might have them all
			LostAfter: 10 * time.Second, // 30 s by default, which is long to watch
		},
		Hooks: xxljob.Hooks{RunEnded: p.ended, RunSkipped: p.ended},
	})
	if err != nil {
		return err
	}
	if err := addJobs(ctx, s, p); err != nil {
		return err
	}
	w := &shardWatch{pool: pool, schema: o.schema, printer: p}
	if err := w.begin(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.run(ctx) })
	g.Go(func() error { return s.Run(ctx) })
	err = g.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // StopGrace was over: the long handler was cancelled
	}
	p.say("stopped")
	return err
}

// addJobs says which jobs there are and what they do. All nodes say the same.
func addJobs(ctx context.Context, s xxljob.Scheduler, p *printer) error {
	work := func(d time.Duration) func(context.Context, *xxljob.Task) error {
		return func(ctx context.Context, t *xxljob.Task) error {
			p.started(t)
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	err := errors.Join(
		s.Handle("short", work(0)),
		s.Handle("delayed", work(300*time.Millisecond)),
		s.Handle("long", work(20*time.Second)),
	)
	if err != nil {
		return err
	}
	var jobs []xxljob.Job
	add := func(name, handler string, schedule xxljob.Schedule, how string) {
		jobs = append(jobs, xxljob.Job{Key: name, Name: name, Param: name, Handler: handler, Schedule: schedule, Route: how})
	}
	for i := range 6 {
		add(fmt.Sprintf("second-%d", i+1), "short", xxljob.Cron("* * * * * ?"), xxljob.RouteNearest)
	}
	for i := range 2 {
		add(fmt.Sprintf("delay-%d", i+1), "delayed", xxljob.FixedDelay(2*time.Second), xxljob.RouteNearest)
	}
	add("broadcast", "short", xxljob.Cron("0/5 * * * * ?"), xxljob.RouteShardingBroadcast)
	for _, how := range route.Names() {
		add("by-"+strings.ToLower(how), "short", xxljob.Cron("* * * * * ?"), how)
	}
	add("long", "long", xxljob.FixedDelay(5*time.Second), xxljob.RouteNearest)
	_, err = s.EnsureJobs(ctx, "", jobs, xxljob.EnsureOptions{Prune: true})
	return err
}

// clock is how times of the day are printed.
const clock = "15:04:05.000"

// printer writes what a node does, a line each that begins with its name.
type printer struct {
	node string

	mu  sync.Mutex
	out io.Writer // guarded by mu
}

func (p *printer) say(format string, args ...any) {
	line := plain(fmt.Sprintf("%s "+format, append([]any{p.node}, args...)...))
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.out, line)
}

// plain is a line without what a terminal obeys or does not show: what rows of the
// database say comes to the screen as text.
func plain(line string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, line)
}

// started is the first thing that a handler does.
func (p *printer) started(t *xxljob.Task) {
	part := ""
	if t.ShardTotal > 1 {
		part = fmt.Sprintf("  part %d of %d", t.ShardIndex, t.ShardTotal)
	}
	p.say("run %d  %-9s  due %s  late %d ms%s", t.RunID, t.Param,
		t.ScheduledAt.UTC().Format(clock), time.Since(t.ScheduledAt).Milliseconds(), part)
}

// ended tells of runs that did not end well.
func (p *printer) ended(r xxljob.Run) {
	if err := r.Err(); err != nil {
		p.say("end %d  job %d  due %s  %v", r.ID, r.JobID, r.Scheduled.Format(clock), err)
	}
}
