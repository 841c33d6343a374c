package alarms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
)

// Alarms on their way to people. Input: alarms in the store, signals that there are more.
// Output: calls of alarmers, and in the store what they have told.

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
	// recoverSoon is when that is done where there was no room for all.
	recoverSoon = 100 * time.Millisecond
	// alarmRest is for how long Stop waits for messages that are on their way before others
	// have the shards: they would tell the same again.
	alarmRest = 100 * time.Millisecond
)

// Notifier tells of the alarms that the rules of this node want.
type Notifier struct {
	*core.Core
	Rules    []alarmRule
	tellers  []*teller
	troubles *troubleBook
	sender   *sender
	quiet    atomic.Bool   // Stop has begun: nothing more is sent
	came     atomic.Bool   // it is known what this node can tell itself of troubles before it was there
	notesToo bool          // that was so when the troubles were looked at last; of the alarm loop
	resting  chan struct{} // closed by rested when it is quiet, and what was sent is noted; made by NewNotifier
	rested   sync.Once
	rarely   loop.LogLimiter
	// muted is when mutes were read for troubles, muteAsked when they were asked for.
	muted, muteAsked time.Time
	differed         atomic.Pointer[time.Time] // when it was said last that nodes of this app have other rules
}

// teller tells of what one rule wants, while this node holds it.
type teller struct {
	*Notifier
	at      int // the place of the rule
	book    *alarmBook
	reading alarmReading
	hold    ruleHold
	// look says that there may be something to tell though nothing is seen: at first, and when
	// another node has held the rule.
	look  bool
	muted time.Time // when the mutes were read
}

// alarmReading is how far the store was read.
type alarmReading struct {
	shards []store.Shard
	low    int64 // all below were read for longer than the overlap
	mark   int64 // what high was at the time of since
	high   int64 // the greatest that was read
	since  time.Time
	whole  time.Time     // when all of it was
	reread time.Time     // when it was read from low on
	brief  bool          // since then it was read from high on only
	more   bool          // the book was full before the end
	asked  time.Time     // whether jobs have recovered
	again  time.Duration // how long after that to ask again
	behind store.JobTold // which was the last that was read, the zero value at the end
	open   bool          // some have not
}

func NewNotifier(all *core.Core, rules []alarmRule, panics *guard.Log) *Notifier {
	h := &Notifier{
		Core: all, Rules: rules, troubles: newTroubleBook(rules, all.Cfg.Node), resting: make(chan struct{}),
		sender: &sender{Core: all, rules: rules, panics: panics, flights: &alarmFlights{calls: map[int]int{}}},
	}
	if _, ok := core.Given(all.Store).(store.TroubleNoter); ok {
		h.troubles.passOn()
	}
	for i := range rules {
		h.tellers = append(h.tellers, &teller{Notifier: h, at: i, book: newAlarmBook(rules[i:i+1], all.Cfg.Node), look: true, reading: alarmReading{open: true}})
	}
	return h
}

// AlarmDuty tells of alarms as soon as the store signals them.
func (h *Notifier) AlarmDuty(signals store.Signals) loop.Duty {
	return loop.Duty{
		What: "sending alarms", Wakes: []<-chan struct{}{signals.Alarms, h.Life.Wakes.Alarms}, Aside: true,
		Once: h.once,
	}
}

func (h *Notifier) once(ctx context.Context) (time.Duration, error) {
	h.land()
	if h.quiet.Load() {
		return loop.Forever, h.rest(ctx)
	}
	h.notesToo = h.came.Load()           // before that is asked for
	troubles, soon := h.troublesDue(ctx) // in front: the store may be what is in trouble
	wait := soon
	if h.noteAll(ctx, troubles) {
		wait = min(wait, time.Second)
	}
	var errs error
	for _, t := range h.tellers {
		more, err := t.tell(ctx)
		wait, errs = min(wait, more), errors.Join(errs, err)
	}
	return wait, errs
}

// tell tells of the alarms in the store, if nobody else does.
func (t *teller) tell(ctx context.Context) (time.Duration, error) {
	if !t.busy() && !t.look {
		if any, err := t.peek(ctx); err != nil || !any {
			return t.untilNext(time.Time{}), err
		}
	}
	held, wait, err := t.holdRule(ctx, t.at)
	if err != nil {
		return 0, err
	}
	t.look = !held
	if next, err := t.tellHeld(ctx, t.heldShards(held)); !held || err != nil {
		return wait, err
	} else if t.busy() {
		return min(next, t.hold.renewIn()), nil
	} else {
		return next, nil
	}
}

// busy reports whether the rule has to stay held.
func (t *teller) busy() bool {
	return len(t.book.jobs) > 0 || len(t.book.marks.Told)+len(t.book.marks.Jobs)+len(t.book.marks.Done) > 0 || t.reading.more || t.waits() && !t.reading.asked.IsZero() || t.troubles.awaits(t.at, time.Now())
}

// waits reports whether the rule waits for jobs to recover.
func (t *teller) waits() bool { return t.reading.open && AnyWants(t.book.Rules, alarm.Recovered) }

// peek reports whether there is something to tell, perhaps, for whoever holds the rule.
func (t *teller) peek(ctx context.Context) (bool, error) {
	return loop.Call(ctx, func(ctx context.Context) (bool, error) {
		list, err := t.Store.Alarms(ctx, t.every(), t.keys(), 0, alarmEvents)
		if err != nil || len(list) > 0 || !AnyWants(t.book.Rules, alarm.Recovered) {
			return len(list) > 0, err
		}
		_, open, err := t.Store.OpenAlarms(ctx, t.every(), t.keys(), store.JobTold{}, 0)
		return open > 0, err
	})
}

func (t *teller) keys() []string { return []string{t.book.Rules[0].kept.Key} }

// every are all shards: who tells of them need not own them.
func (t *teller) every() []store.Shard {
	list := make([]store.Shard, t.Cfg.Cluster.Shards)
	for i := range list {
		list[i].ID = i
	}
	return list
}

// heldShards are those of which the book is to have the jobs, each with how often this node has
// come to hold the rule anew: what was known before is not relied upon.
func (t *teller) heldShards(held bool) []store.Shard {
	if !held {
		return nil
	}
	list := t.every()
	for i := range list {
		list[i].Epoch = t.hold.gained()
	}
	return list
}

// tellHeld tells of the alarms in these shards, which are none where another node holds the rule.
func (t *teller) tellHeld(ctx context.Context, shards []store.Shard) (time.Duration, error) {
	h := t
	if !slices.Equal(shards, h.reading.shards) {
		_ = h.save(ctx) // what cannot be noted before others hold the rule is told again there
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
	h.readMutes(ctx)
	messages, next := h.book.due(h.Clock.Now(), h.room)
	again, err := h.recoveries(ctx, &messages)
	for i := range messages {
		messages[i].rule = h.at
		h.sender.send(messages[i])
	}
	if err := h.save(ctx); err != nil {
		return 0, err
	}
	wait := min(h.untilNext(next), again)
	switch {
	case h.reading.more: // which no signal says
		wait = min(wait, alarmReread)
	case h.reading.brief:
		wait = min(wait, max(alarmReread-time.Since(h.reading.reread), time.Millisecond))
	case read > loop.StoreBatch: // a storm: what came is read again within the overlap
		wait = max(wait, recoverEvery)
	}
	return wait, err
}

// mutesFor is for how long mutes are known that were read.
const mutesFor = time.Second

// readMutes reads the mutes that are not over, where there is something to tell.
func (t *teller) readMutes(ctx context.Context) {
	k, ok := core.Given(t.Store).(store.MuteKeeper)
	if !ok || len(t.book.jobs) == 0 && !t.waits() || !t.muted.IsZero() && time.Since(t.muted) < mutesFor {
		return
	}
	list, err := loop.Call(store.WithTrustedTime(ctx, t.Clock.Trusted()), k.Mutes)
	if err != nil {
		t.book.mutes = t.unread(t.book.mutes, t.muted, err)
		return
	}
	if t.book.mutes, t.muted = list, time.Now(); len(list) == 0 {
		return
	}
	if rules, err := loop.Call(ctx, t.Store.Rules); err == nil {
		t.book.kept = rules
	}
}

// mutesLast is for how long mutes count that cannot be read anew.
const mutesLast = time.Minute

// unread are the mutes that count when they cannot be read: for a moment those that were read last, and
// then none. An alarm that is told though it is muted costs less than one that nobody hears of.
func (h *Notifier) unread(mutes []store.Mute, read time.Time, err error) []store.Mute {
	if h.rarely.Allow("mutes") {
		h.Logger.Warn("xxljob: it could not be read which alarms are muted; after a minute all are sent", "error", err)
	}
	if time.Since(read) >= mutesLast {
		return nil
	}
	now := h.Clock.Trusted()
	return slices.DeleteFunc(slices.Clone(mutes), func(m store.Mute) bool { return !m.Until.After(now) })
}

// room takes the place of a call of the rule.
func (t *teller) room(int) bool { return t.sender.flights.begin(t.at) }

// rest ends the telling at Stop, once what was sent has come to an end.
func (h *Notifier) rest(ctx context.Context) error {
	err := h.saveAll(ctx)
	if err == nil && h.sender.flights.none() {
		h.letGo(ctx)
		h.rested.Do(func() { close(h.resting) })
	}
	return err
}

func (h *Notifier) saveAll(ctx context.Context) (err error) {
	for _, t := range h.tellers {
		err = errors.Join(err, t.save(ctx))
	}
	return err
}

// Hush has it send nothing more.
func (h *Notifier) Hush() {
	h.quiet.Store(true)
	h.Life.Wakes.Alarms.Poke()
}

// Settle waits until what was sent has come to an end and is noted, shortly.
func (h *Notifier) Settle(ctx context.Context) {
	if len(h.Rules) == 0 {
		return
	}
	timer := time.NewTimer(alarmRest)
	defer timer.Stop()
	select {
	case <-h.resting:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// LastMarks notes what has come to an end behind that. It is called when the loop has ended.
func (h *Notifier) LastMarks(ctx context.Context) {
	h.land()
	if err := h.saveAll(urgent.Unmark(ctx)); err != nil {
		h.Logger.Warn("xxljob: it could not be noted which alarms were sent; the next node with their rule sends them again", "error", err)
	}
	h.letGo(urgent.Unmark(ctx))
}

// alarmIdle is how often a node whose store may lose signals looks whether there are alarms.
const alarmIdle = time.Second

func (h *teller) untilNext(next time.Time) time.Duration {
	wait := time.Duration(loop.Forever)
	if poll, _ := h.Store.Poll(); poll > 0 {
		wait = alarmIdle
	}
	if !next.IsZero() {
		wait = min(wait, max(next.Sub(h.Clock.Now()), time.Millisecond))
	}
	return wait
}

// land takes in the messages that have ended.
func (h *Notifier) land() {
	ended := h.sender.flights.landed()
	for i := range ended {
		m := &ended[i]
		if m.troubles != nil {
			h.troubles.sent(&m.alarmMessage, time.Now(), m.err)
		} else {
			said := m.alarmMessage
			said.rule = 0 // the only one in its book
			h.tellers[m.rule].book.sent(&said, h.Clock.Now(), m.err)
		}
		if m.err != nil {
			h.Life.FaultCounts.Alarms.Add(1)
			h.Logger.Warn("xxljob: an alarm could not be sent; it is tried again for a day after its event", "rule", h.Rules[m.rule].Name, "cause", m.said.Cause, "job", m.said.JobID, "error", m.err)
		}
	}
}

// read reads what is new, and when its jobs were told of last.
func (h *teller) read(ctx context.Context) (n int, err error) {
	r := &h.reading
	now, after := time.Now(), r.low
	if r.brief = now.Sub(r.reread) < alarmReread; r.brief {
		after = r.high
	} else if now.Sub(r.whole) >= alarmWhole {
		after, r.whole = 0, now
	}
	for {
		page, err := loop.Call(ctx, func(ctx context.Context) ([]store.Alarm, error) {
			return h.Store.Alarms(ctx, r.shards, h.keys(), after, loop.StoreBatch)
		})
		if err != nil {
			return n, err
		}
		for _, a := range page {
			switch {
			case a.Trouble == "":
				h.book.take(a)
			case !h.notesToo: // it is read again
			case h.troubles.tells(h.at, &a, now):
				h.book.tellsElse(a.ID)
			default:
				h.book.take(a)
			}
			after = a.ID
		}
		n += len(page)
		r.high = max(r.high, after)
		if r.more = len(page) == loop.StoreBatch && h.book.full(); r.more || len(page) < loop.StoreBatch {
			break
		}
	}
	if !r.brief {
		r.reread = now
		if now.Sub(r.since) > alarmOverlap {
			r.low, r.mark, r.since = r.mark, r.high, now
		}
	}
	for ids := range slices.Chunk(h.book.unknown(), loop.StoreBatch) {
		told, err := loop.Call(ctx, func(ctx context.Context) ([]store.JobTold, error) { return h.Store.ToldJobs(ctx, ids) })
		if err != nil {
			return n, err
		}
		h.book.know(ids, told)
	}
	return n, nil
}

// recoveries adds the messages about jobs that have recovered, where a rule asks for them, and
// returns in how long to look again.
func (h *teller) recoveries(ctx context.Context, messages *[]alarmMessage) (time.Duration, error) {
	r := &h.reading
	r.open = r.open || len(h.book.marks.Jobs) > 0 // they are saved when this is asked again
	if !AnyWants(h.book.Rules, alarm.Recovered) || !r.open {
		return loop.Forever, nil
	}
	if ago := time.Since(r.asked); !r.asked.IsZero() && ago < r.again {
		return r.again - ago, nil
	}
	if len(h.book.marks.Jobs) > 0 { // the store would answer as of before them: they are saved first
		return recoverSaved, nil
	}
	type answer struct {
		list []store.JobTold
		open int
	}
	a, err := loop.Call(ctx, func(ctx context.Context) (answer, error) {
		list, open, err := h.Store.OpenAlarms(ctx, r.shards, h.keys(), r.behind, loop.StoreBatch)
		return answer{list, open}, err
	})
	if err != nil {
		return 0, err
	}
	r.asked, r.open = time.Now(), a.open > 0 || len(h.book.marks.Jobs) > 0
	told, err := h.recovered(ctx, a.list)
	*messages = append(*messages, told...)
	r.behind = store.JobTold{}
	if len(a.list) == loop.StoreBatch {
		r.behind = a.list[loop.StoreBatch-1]
	}
	r.again = recoverEvery
	if len(told) > 0 && (len(told) < len(a.list) || len(a.list) == loop.StoreBatch) {
		r.again = recoverSoon
	}
	return r.again, err
}

// recovered makes the messages about jobs that have, as far as there is room.
func (h *teller) recovered(ctx context.Context, list []store.JobTold) (messages []alarmMessage, err error) {
	ids := map[int64]bool{}
	for _, t := range list {
		ids[t.JobID] = true
	}
	jobs, err := h.ReadJobs(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		job := jobs[t.JobID]
		if job == nil { // removed: the row goes with the next mark
			h.book.marks.Jobs = append(h.book.marks.Jobs, t)
			continue
		}
		if m, ok := h.book.recovered(t, job, h.Clock.Now(), h.room); ok {
			messages = append(messages, m)
		}
	}
	return messages, nil
}

// save tells the store what became of alarms.
func (h *teller) save(ctx context.Context) error {
	for {
		all := &h.book.marks
		m := store.AlarmMarks{
			Told: all.Told[:min(len(all.Told), loop.StoreBatch)], Jobs: all.Jobs[:min(len(all.Jobs), loop.StoreBatch)],
			Done: all.Done[:min(len(all.Done), loop.StoreBatch)],
		}
		if len(m.Told)+len(m.Jobs)+len(m.Done) == 0 {
			return nil
		}
		err := h.mark(ctx, m)
		if errors.Is(err, store.ErrRefused) {
			err = h.markHalves(ctx, m, h.book.giveUp)
		}
		if err != nil {
			return err
		}
		h.book.saved(m)
	}
}

func (h *Notifier) mark(ctx context.Context, m store.AlarmMarks) error {
	_, err := loop.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, h.Store.MarkAlarms(ctx, m) })
	return err
}

// markHalves saves each half by itself of marks that the store has refused together, in any order,
// until it seems to refuse all. One that it refuses alone is given up: where the alarm was told, this
// node tells it no more; the next one with the rule may.
func (h *Notifier) markHalves(ctx context.Context, m store.AlarmMarks, giveUp func(store.AlarmMarks)) error {
	var each []store.AlarmMarks
	for i := range m.Told {
		each = append(each, store.AlarmMarks{Told: m.Told[i : i+1]})
	}
	for i := range m.Done {
		each = append(each, store.AlarmMarks{Done: m.Done[i : i+1]})
	}
	for i := range m.Jobs {
		each = append(each, store.AlarmMarks{Jobs: m.Jobs[i : i+1]})
	}
	rand.Shuffle(len(each), func(i, k int) { each[i], each[k] = each[k], each[i] })
	tried, taken := 0, false
	alone, why, err := loop.Halve(each, func(part []store.AlarmMarks) error {
		var all store.AlarmMarks
		for _, one := range part {
			all.Told, all.Jobs, all.Done = append(all.Told, one.Told...), append(all.Jobs, one.Jobs...), append(all.Done, one.Done...)
		}
		err := h.mark(ctx, all)
		taken = taken || err == nil
		if errors.Is(err, store.ErrRefused) && len(part) == 1 {
			if tried++; tried >= loop.RefusedFew && !taken {
				return fmt.Errorf("nothing is taken: %v", err)
			}
		}
		return err
	})
	if err != nil || why == nil {
		return err
	}
	for _, one := range alone {
		giveUp(one)
	}
	if h.rarely.Allow("refused") {
		h.Logger.ErrorContext(ctx, "xxljob: the store refuses to note what became of some alarms", "notes", len(alone), "error", why)
	}
	return nil
}

// Bound makes the node keep no more alarms of a rule than n in memory. It is for tests.
func (h *Notifier) Bound(n int) {
	for _, t := range h.tellers {
		t.book.most = n
	}
}
