//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// node answers the supervisor.
type node struct {
	s       xxljob.Scheduler
	backend backend
}

// answer carries out a request, unless nobody waits for it any more.
func (n *node) answer(r control.Request) control.Answer {
	left := time.Duration(r.Until-machineClock()) * time.Microsecond
	if r.Until != 0 && left <= 0 {
		return control.Answer{Error: "too late", Refused: true}
	}
	ctx := context.Background()
	if r.Until != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	a, err := n.do(ctx, r)
	if err != nil {
		a.Error, a.Never = err.Error(), errors.Is(err, xxljob.ErrNeverFires)
		if a.Error == "" {
			a.Error = "an error without words"
		}
	}
	return a
}

func (n *node) do(ctx context.Context, r control.Request) (control.Answer, error) {
	switch r.Verb {
	case control.Ready:
		return control.Answer{}, n.s.Ready()
	case control.Ensure, control.Update:
		return n.define(ctx, r)
	case control.Start:
		if err := n.s.StartJob(ctx, r.ID); err != nil {
			return control.Answer{}, err
		}
		j, err := n.backend.store.Job(ctx, r.ID)
		return describe(j), err
	case control.Stop:
		return control.Answer{}, n.s.StopJob(ctx, r.ID)
	case control.Remove:
		err := n.s.RemoveJob(ctx, r.ID)
		if errors.Is(err, xxljob.ErrNotFound) {
			err = nil // by a former attempt
		}
		return control.Answer{}, err
	case control.Trigger:
		return n.trigger(ctx, r)
	case control.Tx:
		return n.backend.triggerTx(ctx, r)
	case control.Kill:
		return control.Answer{}, n.s.Kill(ctx, r.Run)
	case control.Step:
		return control.Answer{}, stepClock(time.Duration(r.StepBy))
	case control.Hold:
		return control.Answer{}, n.backend.hold(ctx, time.Duration(r.HoldFor))
	case control.Rows:
		rows, err := n.backend.rows(ctx)
		if err != nil {
			return control.Answer{}, err
		}
		text, err := json.Marshal(rows)
		return control.Answer{Rows: text}, err
	}
	return control.Answer{}, fmt.Errorf("unknown verb %q", r.Verb)
}

// trigger runs a job by hand, at once or after it was kept apart for a second.
func (n *node) trigger(ctx context.Context, r control.Request) (control.Answer, error) {
	t := xxljob.Trigger{Param: &r.Param, Key: r.Key}
	if r.Ahead {
		now, err := n.backend.store.Now(ctx)
		if err != nil {
			return control.Answer{}, err
		}
		if now.IsZero() { // the clock of the store in memory is that of its process
			now = time.Now()
		}
		t.At = now.Add(2 * time.Second)
		run, err := n.backend.store.AddAhead(ctx, r.ID, t, now.Add(time.Second))
		return control.Answer{Run: run.ID}, err
	}
	ids, err := n.s.Trigger(ctx, r.ID, t)
	if err != nil {
		return control.Answer{}, err
	}
	return control.Answer{Run: ids[0]}, nil
}

// define makes or changes a job.
func (n *node) define(ctx context.Context, r control.Request) (control.Answer, error) {
	j, err := definition(r.Job)
	if err != nil {
		return control.Answer{}, err
	}
	if r.Verb == control.Ensure {
		ensured, err := n.s.EnsureJob(ctx, j)
		return describe(ensured.Job), err
	}
	j.ID = r.ID
	j, err = n.s.UpdateJob(ctx, j)
	return describe(j), err
}

// describe is the answer about a job.
func describe(j xxljob.Job) control.Answer {
	a := control.Answer{ID: j.ID, Shard: j.Shard}
	if !j.Next.IsZero() {
		a.Next = j.Next.UnixMilli()
	}
	return a
}

// definition translates a job of the workload.
func definition(c control.Job) (xxljob.Job, error) {
	j := xxljob.Job{App: c.App, Name: c.Name, Handler: "work", Block: c.Block, Route: c.Route, Param: c.Param,
		OnNoExecutor: xxljob.OnNoExecutor(c.Nobody), MaxPerExecutor: c.Max, MaxRuns: c.MaxRuns,
		Retries: c.Retries, RetryAside: c.Aside, Timeout: milliseconds(c.Timeout),
		Children: c.Children, ChildKeys: c.ChildKeys, After: c.After, AfterKeys: c.AfterKeys,
		AfterWindow: milliseconds(c.Window), AfterTimeout: milliseconds(c.AfterTimeout), LateAfter: milliseconds(c.LateAfter),
		RetryBackoff: xxljob.Backoff{First: milliseconds(c.Pause), Max: milliseconds(c.MostPause), Jitter: c.Jitter}}
	if c.Rerun {
		j.OnLost = xxljob.OnLostRerun
	}
	if c.NotBefore != 0 {
		j.NotBefore = time.UnixMilli(c.NotBefore)
	}
	if c.NotAfter != 0 {
		j.NotAfter = time.UnixMilli(c.NotAfter)
	}
	if c.FireOnce {
		j.Misfire = xxljob.MisfireFireOnceNow
	}
	period := milliseconds(c.Period)
	switch c.Kind {
	case control.Cron:
		if period%time.Second != 0 || time.Minute%period != 0 {
			return j, fmt.Errorf("a period of %v is no part of a minute", period)
		}
		j.Schedule = xxljob.Cron(fmt.Sprintf("0/%d * * * * ?", period/time.Second))
		if c.Zone != "" {
			j.Schedule = j.Schedule.In(c.Zone)
		}
	case control.Rate:
		j.Schedule = xxljob.FixedRate(period)
	case control.Delay:
		j.Schedule = xxljob.FixedDelay(period)
	case "":
	default:
		return j, fmt.Errorf("unknown kind %q", c.Kind)
	}
	return j, nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
