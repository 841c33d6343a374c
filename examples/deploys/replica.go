package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/xxljob/xxljob"
)

// app is the app of the service's jobs.
const app = "shop"

// service is all replicas of a service, and what they share.
type service struct {
	store    xxljob.Store
	out      io.Writer
	replicas map[string]xxljob.Scheduler
}

// start starts a replica: what a service does as it comes up.
func (s *service) start(ctx context.Context, node string, r release, rollback bool) error {
	replica, err := xxljob.New(s.store, xxljob.Config{
		App:     app,
		Node:    node,
		Cluster: xxljob.ClusterConfig{PruneAfter: pruneAfter},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	s.replicas[node] = replica
	for _, j := range r.jobs {
		if err := replica.Handle(j.Handler, work); err != nil {
			return err
		}
	}
	ensured, err := replica.EnsureJobs(ctx, app, r.jobs, xxljob.EnsureOptions{
		Prune:      true,
		Generation: r.build,  // the greater one applies
		Rollback:   rollback, // unless this says otherwise: a flag of the deployment, for one time
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s starts with %d:", node, r.build)
	for _, e := range ensured {
		fmt.Fprintf(s.out, "  %s %s", e.Job.Key, e.Outcome)
	}
	fmt.Fprintln(s.out)
	return replica.Start(context.WithoutCancel(ctx)) // ends with Stop
}

// work is what all of these jobs do.
func work(_ context.Context, t *xxljob.Task) error {
	t.Log().Info("working", "due", t.ScheduledAt)
	return nil
}

// stop stops a replica, in good order. One that is killed counts as alive for a while
// longer: Config.Cluster.LostAfter.
func (s *service) stop(ctx context.Context, node string) error {
	replica := s.replicas[node]
	delete(s.replicas, node)
	fmt.Fprintf(s.out, "%s stops\n", node)
	return replica.Stop(ctx)
}

// stopAll stops the replicas that are left.
func (s *service) stopAll() error {
	var errs []error
	for _, replica := range s.replicas {
		errs = append(errs, replica.Stop(context.Background()))
	}
	return errors.Join(errs...)
}
