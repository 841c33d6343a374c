package alarms

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
)

// Calls of alarmers. Input: messages that have the place of a call. Output: their ends.

// alarmHangs is how long after its deadline a call is given up that ignores it.
const alarmHangs = time.Second

// sender calls the alarmers of rules.
type sender struct {
	*core.Core
	rules   []alarmRule
	panics  *guard.Log
	flights *alarmFlights
}

// send calls the alarmer, at the place that was taken for the call. Stop waits for the call,
// unless that ignores its context: then it is left behind, and keeps its place among the calls
// of its rule.
func (c *sender) send(m alarmMessage) {
	rule := &c.rules[m.rule]
	c.Life.Loops.Work.Run(func(ctx context.Context) {
		if err := c.complete(urgent.Unmark(ctx), &m); err != nil {
			c.flights.returned(m.rule)
			c.flights.land(m, err)
			c.Life.Wakes.Alarms.Poke()
			return
		}
		ctx, cancel := context.WithTimeout(urgent.Unmark(ctx), rule.Timeout)
		defer cancel()
		call := guard.Start(c.panics, "Alarmer of "+rule.Name, func() (none struct{}, err error) { return none, rule.To.Alarm(ctx, m.said) }, func(struct{}, error) {
			c.flights.returned(m.rule)
			c.Life.Wakes.Alarms.Poke()
		})
		c.flights.land(m, outcomeOf(ctx, call))
		c.Life.Wakes.Alarms.Poke()
	})
}

// complete reads again what the book does not have any more.
func (c *sender) complete(ctx context.Context, m *alarmMessage) error {
	var more []store.Alarm
	for _, id := range m.missing {
		page, err := loop.Call(ctx, func(ctx context.Context) ([]store.Alarm, error) {
			return c.Store.Alarms(ctx, []store.Shard{{ID: m.last.Shard}}, nil, id-1, 1)
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
func outcomeOf(ctx context.Context, call *guard.Future[struct{}]) error {
	if !call.Wait(ctx) {
		more, cancel := context.WithTimeout(context.Background(), alarmHangs)
		defer cancel()
		if !call.Wait(more) {
			return fmt.Errorf("the alarmer has not returned %v after its deadline", alarmHangs)
		}
	}
	_, err := call.Answer()
	return err
}

// Messages that are on their way to alarmers.

// alarmCalls is how many calls of one alarmer are under way at once: one that hangs holds up
// messages of its own rule and of no other.
const alarmCalls = 8

// alarmFlights are the calls that are under way. It is safe for concurrent use.
type alarmFlights struct {
	mu    sync.Mutex
	ended []endedMessage // guarded by mu; since the loop has looked
	calls map[int]int    // guarded by mu; that have not returned, by the place of the rule
	under int            // guarded by mu; messages that have not ended
}

// endedMessage is a message and what became of it.
type endedMessage struct {
	alarmMessage
	err error
}

// begin takes the place of a call, where there is one.
func (f *alarmFlights) begin(rule int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[rule] >= alarmCalls {
		return false
	}
	f.calls[rule]++
	f.under++
	return true
}

func (f *alarmFlights) returned(rule int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[rule]--
}

// land notes the end of a message, landed returns those that have ended since it was asked.
func (f *alarmFlights) land(m alarmMessage, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, endedMessage{m, err})
	f.under--
}

// none reports whether no message is on its way, nor has ended since landed was asked.
func (f *alarmFlights) none() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.under == 0 && len(f.ended) == 0
}

func (f *alarmFlights) landed() []endedMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	ended := f.ended
	f.ended = nil
	return ended
}

// What an alarmer is told: a message about one job, made of its alarms.

// alarmEmails is how many addresses of a job a message has.
const alarmEmails = 20

// alarmMessage is one that is on its way.
type alarmMessage struct {
	said alarm.Message
	// flight is its number in the book: another one may go later about the same.
	flight int64
	job    int64
	rule   int
	key    string  // of the rule
	rows   []int64 // ids; none for one that says that the job has recovered
	last   store.Alarm
	// found are those that it tells of, missing the ids of more, which have to be read again:
	// of a storm a book has few.
	found   []store.Alarm
	missing []int64
	// mute is what the alarms come under of which this is the last message.
	mute *store.Mute
	// troubles are those that it tells of, nil for one about alarms of a job.
	troubles *troublesOf
}

// complete takes in those of the missing that are still in the store.
func (m *alarmMessage) complete(more []store.Alarm) {
	m.found, m.missing = append(m.found, more...), nil
	m.say()
}

// say sets what the message says of those that are found.
func (m *alarmMessage) say() {
	slices.SortFunc(m.found, func(a, b store.Alarm) int { return cmp.Compare(b.ID, a.ID) })
	m.said.Events = nil
	for i := range m.found {
		m.said.Events = append(m.said.Events, eventOf(&m.found[i]))
	}
	if len(m.found) > 0 {
		m.last = m.found[0]
	}
	if m.last.Trouble != "" {
		m.sayTroubles()
	}
	if m.mute != nil && len(m.said.Events) > 0 {
		e := &m.said.Events[0]
		e.Text = store.AlarmText(mutedText(m.mute) + "\n" + e.Text)
	}
	m.fill(&m.last)
}

// mutedText says that nothing more is sent.
func mutedText(m *store.Mute) string {
	text := "muted until " + m.Until.UTC().Format(time.RFC3339)
	if m.By != "" {
		text += " by " + m.By
	}
	if m.Note != "" {
		text += " (" + m.Note + ")"
	}
	return text + ": no more of this is sent until then"
}

// fill sets what each message says of the job.
func (m *alarmMessage) fill(of *store.Alarm) {
	m.said.Emails = nil
	m.said.App, m.said.JobID, m.said.JobKey, m.said.JobName = of.App, of.JobID, of.JobKey, of.JobName
	for part := range strings.SplitSeq(of.Email, ",") {
		if part = strings.TrimSpace(part); part != "" && len(m.said.Emails) < alarmEmails {
			m.said.Emails = append(m.said.Emails, part)
		}
	}
}

func eventOf(a *store.Alarm) alarm.Event {
	cause := alarm.Cause(a.Cause)
	if a.Over {
		cause = alarm.TroubleOver
	}
	return alarm.Event{Cause: cause, At: a.At, RunID: a.RunID, State: a.State, Attempt: a.Attempt, Instant: a.Instant, Text: a.Text}
}
