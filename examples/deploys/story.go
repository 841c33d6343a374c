package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
)

// story is a service to which things happen, one after the other, up to the first error.
type story struct {
	service
	err error
}

func (s *story) do(step func() error) {
	if s.err == nil {
		s.err = step()
	}
}

func (s *story) say(lines ...string) {
	s.do(func() error {
		_, err := fmt.Fprintf(s.out, "\n%s\n", strings.Join(lines, "\n"))
		return err
	})
}

func (s *story) start(ctx context.Context, node string, r release) {
	s.do(func() error { return s.service.start(ctx, node, r, false) })
}

func (s *story) rollBack(ctx context.Context, node string, r release) {
	s.do(func() error { return s.service.start(ctx, node, r, true) })
}

func (s *story) stop(ctx context.Context, node string) {
	s.do(func() error { return s.service.stop(ctx, node) })
}

// show prints the jobs as they are stored.
func (s *story) show(ctx context.Context) {
	s.do(func() error {
		jobs, err := s.store.Jobs(ctx, xxljob.JobFilter{App: app})
		if err != nil {
			return err
		}
		slices.SortFunc(jobs, func(a, b xxljob.Job) int { return strings.Compare(a.Key, b.Key) })
		for _, j := range jobs {
			line := fmt.Sprintf("    %-6s  %s", j.Key, j.Schedule.Describe())
			if j.Stopped {
				line += ", stopped: " + j.StopReason
			}
			if _, err := fmt.Fprintln(s.out, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// awaitPruned waits until the job is stopped since no list names it.
func (s *story) awaitPruned(ctx context.Context, key string) {
	s.do(func() error {
		for {
			j, err := s.store.JobByKey(ctx, app, key)
			if err != nil || j.StopReason == xxljob.StopPruned {
				return err
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}
