package main

import (
	"context"
	"strconv"

	"github.com/reugn/go-quartz/job"
	"github.com/reugn/go-quartz/quartz"
)

const quartzName = "quartz"

// quartzContestant has jobs with a crontab that is due every second.
type quartzContestant struct{ sched quartz.Scheduler }

func enterQuartz(t task, c *calls) (contestant, error) {
	s, err := quartz.NewStdScheduler()
	if err != nil {
		return nil, err
	}
	for i := range t.Jobs {
		trigger, err := quartz.NewCronTrigger("* * * * * *")
		if err != nil {
			return nil, err
		}
		do := job.NewFunctionJob(func(context.Context) (bool, error) { c.noteSecond(int64(i)); return true, nil })
		if err := s.ScheduleJob(quartz.NewJobDetail(do, quartz.NewJobKey(strconv.Itoa(i))), trigger); err != nil {
			return nil, err
		}
	}
	return &quartzContestant{s}, nil
}

// start has the scheduler live until it is stopped.
func (q *quartzContestant) start(ctx context.Context) error {
	q.sched.Start(context.WithoutCancel(ctx))
	return nil
}

func (q *quartzContestant) stop(ctx context.Context) error {
	q.sched.Stop()
	q.sched.Wait(ctx)
	return ctx.Err()
}
