package xxljob

// Alarms on their way to people. Input: alarms in the store, signals that there are more.
// Output: calls of alarmers, and in the store what they have told.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
)

const (
	// alarmOverlap is for how long the store is asked again for what may have been inserted
	// behind the alarms that were read: ids are given before they are committed.
	alarmOverlap = 30 * time.Second
	// alarmWhole is how often it is asked for all that is not done with: a process that is paused,
	// or a commit that waits for a standby, may take longer than the overlap.
	alarmWhole = 5 * time.Minute
	// alarmReread is how often at most it is asked for that: in a storm this is much, and each
	// message that ends is a reason to look.
	alarmReread = time.Second
	// recoverEvery is how often the store is asked whether jobs have recovered.
	recoverEvery = 5 * time.Second
	// recoverSaved is when that is done where something has to be saved before.
	recoverSaved = 10 * time.Millisecond
	// alarmHangs is how long after its deadline a call is given up that ignores it.
	alarmHangs = time.Second
)

// herald tells of alarms, in the shards of this node.
type herald struct {
	*shared
	panics *guard.Log
	book   *alarmBook

	reading alarmReading

	flights *alarmFlights
}

// alarmReading is how far the store was read.
type alarmReading struct {
	shards []store.Shard
	low    int64 // all below were read for longer than the overlap
	mark   int64 // what high was at the time of since
	high   int64 // the greatest that was read
	since  time.Time
	whole  time.Time // when all of it was
	reread time.Time // when it was read from low on
	behind bool      // since then it was read from high on only
	asked  time.Time // whether jobs have recovered
	open   bool      // some have not
}

func newHerald(all *shared, rules []alarmRule, panics *guard.Log) *herald {
	return &herald{shared: all, panics: panics, book: newAlarmBook(rules, all.cfg.Node), flights: &alarmFlights{calls: map[int]int{}}, reading: alarmReading{open: true}}
}

// alarmDuty tells of alarms as soon as the store signals them.
func (h *herald) alarmDuty(signals store.Signals) duty {
	return duty{
		what: "sending alarms", wakes: []<-chan struct{}{signals.Alarms, h.life.wakes.alarms}, aside: true,
		once: h.once,
	}
}

func (h *herald) once(ctx context.Context) (time.Duration, error) {
	h.land()
	shards := h.leases.owned()
	if !slices.Equal(shards, h.reading.shards) {
		_ = h.save(ctx) // what cannot be noted before others have the shards is told again there
		h.reading = alarmReading{shards: shards, since: time.Now(), whole: time.Now(), open: true}
		h.book.keep(shards)
	}
	if len(shards) == 0 {
		return alarmIdle, h.save(ctx) // of messages that were on their way
	}
	read, err := h.read(ctx)
	if err != nil {
		return 0, err
	}
	messages, next := h.book.due(h.clock.now(), h.flights.begin)
	again, err := h.recover(ctx, &messages)
	for i := range messages {
		h.send(messages[i])
	}
	if err := h.save(ctx); err != nil {
		return 0, err
	}
	wait := min(h.untilNext(next), again)
	if h.reading.behind {
		wait = min(wait, max(alarmReread-time.Since(h.reading.reread), time.Millisecond))
	} else if read > storeBatch { // a storm: what came is read again within the overlap
		wait = max(wait, recoverEvery)
	}
	return wait, err
}

// alarmIdle is how often a node without shards looks whether it has some, and any node
// whose store may lose signals whether there are alarms.
const alarmIdle = time.Second

func (h *herald) untilNext(next time.Time) time.Duration {
	wait := time.Duration(forever)
	if poll, _ := h.store.Poll(); poll > 0 {
		wait = alarmIdle
	}
	if !next.IsZero() {
		wait = min(wait, max(next.Sub(h.clock.now()), time.Millisecond))
	}
	return wait
}

// land takes in the messages that have ended.
func (h *herald) land() {
	ended := h.flights.landed()
	for i := range ended {
		m := &ended[i]
		h.book.sent(&m.alarmMessage, h.clock.now(), m.err)
		if m.err != nil {
			h.log.Warn("xxljob: an alarm could not be sent; it is tried again for a day after its event", "rule", h.book.rules[m.rule].Name, "job", m.said.JobID, "error", m.err)
		}
	}
}

// read reads what is new, and when its jobs were told of last.
func (h *herald) read(ctx context.Context) (n int, err error) {
	r := &h.reading
	now, after := time.Now(), r.low
	if r.behind = now.Sub(r.reread) < alarmReread; r.behind {
		after = r.high
	} else if now.Sub(r.whole) >= alarmWhole {
		after, r.whole = 0, now
	}
	for {
		page, err := call(ctx, func(ctx context.Context) ([]store.Alarm, error) {
			return h.store.Alarms(ctx, r.shards, after, storeBatch)
		})
		if err != nil {
			return n, err
		}
		for _, a := range page {
			h.book.take(a)
			after = a.ID
		}
		n += len(page)
		r.high = max(r.high, after)
		if len(page) < storeBatch {
			break
		}
	}
	if !r.behind {
		r.reread = now
		if now.Sub(r.since) > alarmOverlap {
			r.low, r.mark, r.since = r.mark, r.high, now
		}
	}
	for ids := range slices.Chunk(h.book.unknown(), storeBatch) {
		told, err := call(ctx, func(ctx context.Context) ([]store.JobTold, error) { return h.store.ToldJobs(ctx, ids) })
		if err != nil {
			return n, err
		}
		h.book.know(ids, told)
	}
	return n, nil
}

// recover adds the messages about jobs that have recovered, where a rule asks for them, and
// returns in how long to look again.
func (h *herald) recover(ctx context.Context, messages *[]alarmMessage) (time.Duration, error) {
	r := &h.reading
	r.open = r.open || len(h.book.marks.Jobs) > 0 // they are saved when this is asked again
	if !anyWants(h.book.rules, alarm.Recovered) || !r.open {
		return forever, nil
	}
	if ago := time.Since(r.asked); !r.asked.IsZero() && ago < recoverEvery {
		return recoverEvery - ago, nil
	}
	if len(h.book.marks.Jobs) > 0 { // the store would answer as of before them: they are saved first
		return recoverSaved, nil
	}
	type answer struct {
		list []store.JobTold
		open int
	}
	a, err := call(ctx, func(ctx context.Context) (answer, error) {
		list, open, err := h.store.OpenAlarms(ctx, r.shards, storeBatch)
		return answer{list, open}, err
	})
	if err != nil {
		return 0, err
	}
	r.asked, r.open = time.Now(), a.open > 0 || len(h.book.marks.Jobs) > 0
	ids := map[int64]bool{}
	for _, t := range a.list {
		ids[t.JobID] = true
	}
	jobs, err := h.readJobs(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return 0, err
	}
	for _, t := range a.list {
		job := jobs[t.JobID]
		if job == nil { // removed: the row goes with the next mark
			h.book.marks.Jobs = append(h.book.marks.Jobs, t)
			continue
		}
		if m, ok := h.book.recovered(t, job, h.clock.now(), h.flights.begin); ok {
			*messages = append(*messages, m)
		}
	}
	return recoverEvery, nil
}

// send calls the alarmer, at the place that was taken for the call. Stop waits for the call,
// unless that ignores its context: then it is left behind, and keeps its place among the calls
// of its rule.
func (h *herald) send(m alarmMessage) {
	rule := &h.book.rules[m.rule]
	h.life.loops.work.run(func(ctx context.Context) {
		if err := h.complete(urgent.Unmark(ctx), &m); err != nil {
			h.flights.returned(m.rule)
			h.flights.land(m, err)
			h.life.wakes.alarms.poke()
			return
		}
		ctx, cancel := context.WithTimeout(urgent.Unmark(ctx), rule.Timeout)
		defer cancel()
		returned := make(chan error, 1)
		guard.Go(func() error { return rule.To.Alarm(ctx, m.said) }, func(err error) {
			h.flights.returned(m.rule)
			returned <- h.panics.Note("Alarmer of "+rule.Name, err)
			h.life.wakes.alarms.poke()
		})
		h.flights.land(m, outcomeOf(ctx, returned))
		h.life.wakes.alarms.poke()
	})
}

// complete reads again what the book does not have any more.
func (h *herald) complete(ctx context.Context, m *alarmMessage) error {
	var more []store.Alarm
	for _, id := range m.missing {
		page, err := call(ctx, func(ctx context.Context) ([]store.Alarm, error) {
			return h.store.Alarms(ctx, []store.Shard{{ID: m.last.Shard}}, id-1, 1)
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

// save tells the store what became of alarms.
func (h *herald) save(ctx context.Context) error {
	for {
		all := &h.book.marks
		m := store.AlarmMarks{
			Told: all.Told[:min(len(all.Told), storeBatch)], Done: all.Done[:min(len(all.Done), storeBatch)], Jobs: all.Jobs[:min(len(all.Jobs), storeBatch)],
		}
		if len(m.Told)+len(m.Done)+len(m.Jobs) == 0 {
			return nil
		}
		if _, err := call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, h.store.MarkAlarms(ctx, m) }); err != nil {
			return err
		}
		h.book.saved(m)
	}
}
