package main

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"
)

const gocronName = "gocron"

// gocronContestant has jobs with a duration of a second that begin at a whole one, which it
// calls sooner than those with a crontab.
type gocronContestant struct{ sched gocron.Scheduler }

func enterGocron(t task, c *calls) (contestant, error) {
	s, err := gocron.NewScheduler()
	if err != nil {
		return nil, err
	}
	// Those that begin in the past are due at the next whole second.
	begin := gocron.WithStartAt(gocron.WithStartDateTimePast(time.Now().Truncate(time.Second)))
	for i := range t.Jobs {
		if _, err := s.NewJob(gocron.DurationJob(time.Second), gocron.NewTask(func() { c.noteSecond(int64(i)) }), begin); err != nil {
			return nil, err
		}
	}
	return &gocronContestant{s}, nil
}

func (g *gocronContestant) start(context.Context) error { g.sched.Start(); return nil }

func (g *gocronContestant) stop(ctx context.Context) error {
	return g.sched.ShutdownWithContext(ctx)
}
