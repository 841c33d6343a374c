package main

import (
	"context"

	"github.com/robfig/cron/v3"
)

const robfigName = "robfig"

// robfigContestant has jobs with a crontab that is due every second.
type robfigContestant struct{ cron *cron.Cron }

func enterRobfig(t task, c *calls) (contestant, error) {
	r := cron.New(cron.WithSeconds())
	for i := range t.Jobs {
		if _, err := r.AddFunc("* * * * * *", func() { c.noteSecond(int64(i)) }); err != nil {
			return nil, err
		}
	}
	return &robfigContestant{r}, nil
}

func (r *robfigContestant) start(context.Context) error { r.cron.Start(); return nil }

func (r *robfigContestant) stop(ctx context.Context) error {
	select {
	case <-r.cron.Stop().Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
