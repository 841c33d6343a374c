package xxljob

// Calls of alarmers. In: messages that have the place of a call. Out: their ends.

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
)

// alarmHangs is how long after its deadline a call is given up that ignores it.
const alarmHangs = time.Second

// alarmCaller calls the alarmers of rules.
type alarmCaller struct {
	*shared
	rules   []alarmRule
	panics  *guard.Log
	flights *alarmFlights
}

// send calls the alarmer, at the place that was taken for the call. Stop waits for the call,
// unless that ignores its context: then it is left behind, and keeps its place among the calls
// of its rule.
func (c *alarmCaller) send(m alarmMessage) {
	rule := &c.rules[m.rule]
	c.life.loops.work.run(func(ctx context.Context) {
		if err := c.complete(urgent.Unmark(ctx), &m); err != nil {
			c.flights.returned(m.rule)
			c.flights.land(m, err)
			c.life.wakes.alarms.poke()
			return
		}
		ctx, cancel := context.WithTimeout(urgent.Unmark(ctx), rule.Timeout)
		defer cancel()
		returned := make(chan error, 1)
		guard.Go(func() error { return rule.To.Alarm(ctx, m.said) }, func(err error) {
			c.flights.returned(m.rule)
			returned <- c.panics.Note("Alarmer of "+rule.Name, err)
			c.life.wakes.alarms.poke()
		})
		c.flights.land(m, outcomeOf(ctx, returned))
		c.life.wakes.alarms.poke()
	})
}

// complete reads again what the book does not have any more.
func (c *alarmCaller) complete(ctx context.Context, m *alarmMessage) error {
	var more []store.Alarm
	for _, id := range m.missing {
		page, err := call(ctx, func(ctx context.Context) ([]store.Alarm, error) {
			return c.store.Alarms(ctx, []store.Shard{{ID: m.last.Shard}}, id-1, 1)
		})
		if err != nil {
			return err
		}
		if len(page) > 0 && page[0].ID == id {
			more = append(more, page[0])
		}
	}
	if m.missing != nil {
		m.complete(more)
	}
	return nil
}

// outcomeOf is what a call returns, or that it does not.
func outcomeOf(ctx context.Context, returned <-chan error) error {
	select {
	case err := <-returned:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-returned:
		return err
	case <-time.After(alarmHangs):
		return fmt.Errorf("the alarmer has not returned %v after its deadline", alarmHangs)
	}
}
