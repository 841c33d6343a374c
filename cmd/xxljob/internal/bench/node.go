package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
)

// The app whose jobs are due, and that of jobs that only wait.
const (
	appDue     = "bench"
	appWaiting = "waiting"
	handler    = "noop"
)

// node is the scheduler, with its executors.
type node struct {
	cfg   Config
	sched xxljob.Scheduler
	store xxljob.Store
	calls *calls
	fleet *fleet // nil where handlers run in this process
}

// newNode makes a scheduler that is not started yet, and starts executors where they are
// elsewhere.
func newNode(ctx context.Context, cfg Config, b *backend, c *calls, misfire time.Duration) (*node, error) {
	n := &node{cfg: cfg, store: b.store, calls: c}
	of := xxljob.Config{App: appDue, MisfireThreshold: misfire, Logger: warnings(cfg.Log), Executor: executor.Config{Places: cfg.Places}}
	token := rand.Text()
	if cfg.Executor == HTTP {
		of.App, of.HTTP.Tokens = "scheduler", map[string][]string{"": {token}}
	}
	var err error
	if n.sched, err = xxljob.New(b.store, of); err != nil {
		return nil, err
	}
	if cfg.Executor == InProcess {
		return n, n.sched.Handle(handler, func(_ context.Context, t *xxljob.Task) error {
			c.note(t)
			return nil
		})
	}
	n.fleet, err = startFleet(ctx, n, token)
	return n, err
}

// start starts the scheduler and returns how long that took until it had all shards and was
// ready.
func (n *node) start(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	// It is stopped by stop, which waits for what is under way.
	if err := n.sched.Start(context.WithoutCancel(ctx)); err != nil {
		return 0, err
	}
	err := poll(ctx, time.Minute, time.Millisecond, func() (bool, error) {
		return n.sched.Ready() == nil && n.sched.Stats().Shards == shards, nil
	})
	if err != nil {
		return 0, fmt.Errorf("the scheduler is not ready: %w", errors.Join(n.sched.Ready(), err))
	}
	return time.Since(began), nil
}

// registered waits until all executors elsewhere are.
func (n *node) registered(ctx context.Context) error {
	if n.fleet == nil {
		return nil
	}
	return poll(ctx, time.Minute, 10*time.Millisecond, func() (bool, error) {
		all, err := n.store.Registrations(ctx, xxljob.RegistrationFilter{})
		return len(all) == n.cfg.Executors, err
	})
}

// stop ends the scheduler, then the executors, and returns all calls. Of an interrupted run it
// returns those that there were.
func (n *node) stop() ([]call, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := n.sched.Stop(ctx)
	if n.fleet == nil {
		return n.calls.log.All(), err
	}
	all, ended := n.fleet.stop()
	return all, errors.Join(err, ended)
}

// poll asks over and over whether something is so, until it is, or fails, or time is up.
func poll(ctx context.Context, patience, every time.Duration, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if ok, err := is(); ok || err != nil {
			return err
		}
		if err := sleep(ctx, every); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
