package alarms

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// Troubles that last, told of by the node that has them. Input: the list of troubles as it is, the
// ends of messages. Output: messages that are due. All of it is in memory: a node that starts again
// sees its troubles anew.

// troubleLasts is how long a trouble has to last before it is told of, and to be over before that
// is: what comes and goes is one trouble.
const troubleLasts = time.Minute

// troubleBook has the troubles of a node, and what the rules have told of them. It belongs to the
// alarm loop, and is pure.
type troubleBook struct {
	rules []alarmRule
	notes int // the place of the rule by which they are passed on (troublenotes.go), -1 for none
	node  string
	known map[troubleKey]*troubleTold
	ends  map[noteKey]toldEnd // that this node has told
	met   map[noteKey]metNote // those that others have passed on, and this node has as well
	mutes []store.Mute        // that are not over, as they were read last
}

// troubleKey is what makes two troubles the same one.
type troubleKey struct {
	cause        store.TroubleCause
	app, address string
	job          int64
}

func (k troubleKey) compare(o troubleKey) int {
	return cmp.Or(cmp.Compare(k.cause, o.cause), cmp.Compare(k.app, o.app), cmp.Compare(k.job, o.job), cmp.Compare(k.address, o.address))
}

// troubleTold is a trouble. Times are of this process but for ended, which is the store's.
type troubleTold struct {
	x     store.Trouble
	job   *store.Job // that it is about, once it is read
	read  bool
	seen  time.Time // first
	over  time.Time // since when it is not there; zero while it is
	muted bool      // somebody knows of it: its beginning is not told meanwhile
	past  bool      // it was over before this node was there
	ended time.Time
	rules []troubleState // by the place of the rule
}

// troubleState is a rule and a trouble.
type troubleState struct {
	begun, ended bool // told
	flying       bool
	fails        int
	tried        time.Time // first, of the message that fails
	next         time.Time // not before
	again        time.Time // of a note: when it is noted anew, for rules that are kept since
}

// idle reports whether the rule has nothing to tell of a trouble that is over.
func (s *troubleState) idle() bool { return !s.flying && s.begun == s.ended }

// troubleGroup is what one message may tell of.
type troubleGroup struct {
	cause store.TroubleCause
	app   string
	over  bool
}

func (g troubleGroup) compare(o troubleGroup) int {
	return cmp.Or(cmp.Compare(g.cause, o.cause), cmp.Compare(g.app, o.app))
}

// troublesOf is what a message tells of: the beginning of troubles, or their end.
type troublesOf struct {
	keys []troubleKey
	over bool
}

func newTroubleBook(rules []alarmRule, node string) *troubleBook {
	return &troubleBook{rules: rules, notes: -1, node: node, known: map[troubleKey]*troubleTold{}, met: map[noteKey]metNote{}, ends: map[noteKey]toldEnd{}}
}

// note takes in the troubles that there are. at is the store's time.
func (b *troubleBook) note(all []store.Trouble, now, at time.Time) {
	there := make(map[troubleKey]bool, len(all))
	for _, x := range all {
		key := troubleKey{x.Cause, x.App, x.Address, x.JobID}
		there[key] = true
		t := b.known[key]
		switch {
		case t == nil:
			t = &troubleTold{seen: now, rules: make([]troubleState, len(b.rules))}
			b.known[key] = t
		case !t.over.IsZero() && now.Sub(t.over) >= troubleLasts:
			t.seen = now
			for i := range t.rules {
				if t.rules[i].idle() {
					t.rules[i] = troubleState{next: t.rules[i].next}
				}
			}
		}
		t.x, t.over, t.past, t.muted = x, time.Time{}, false, finding.MutedTrouble(b.mutes, x) != nil
	}
	maps.DeleteFunc(b.known, func(key troubleKey, t *troubleTold) bool {
		if there[key] {
			return false
		}
		if t.over.IsZero() {
			t.over, t.ended = now, at
		}
		return now.Sub(t.over) >= troubleLasts && !slices.ContainsFunc(t.rules, func(s troubleState) bool { return !s.idle() })
	})
}

// was takes in a trouble that was over before this node was there: that it is over is what there is to
// tell.
func (b *troubleBook) was(x store.Trouble, now, at time.Time) {
	key := troubleKey{x.Cause, x.App, x.Address, x.JobID}
	if b.known[key] != nil {
		return
	}
	t := &troubleTold{x: x, seen: now, over: now.Add(-troubleLasts), ended: at, past: true, rules: make([]troubleState, len(b.rules))}
	for i := range t.rules {
		t.rules[i].begun = i != b.notes && b.rules[i].wants(alarm.Trouble) && b.rules[i].concernsTrouble(t)
	}
	b.known[key] = t
}

// unread are the jobs that troubles are about, as far as they are not known.
func (b *troubleBook) unread() (ids []int64) {
	for key, t := range b.known {
		if key.job != 0 && !t.read {
			ids = append(ids, key.job)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (b *troubleBook) know(ids []int64, jobs map[int64]*store.Job) {
	for key, t := range b.known {
		if _, asked := slices.BinarySearch(ids, key.job); asked {
			t.job, t.read = jobs[key.job], true
		}
	}
}

// due returns the messages that are to be sent now, as far as there is room, which it takes, and in
// how long to look again. Those of one cause and app are told together, and their end when all of
// them are over.
func (b *troubleBook) due(now time.Time, room func(rule int) bool) (list []alarmMessage, wait time.Duration) {
	wait = 24 * time.Hour
	for i := range b.rules {
		if !b.rules[i].wants(alarm.Trouble) {
			continue
		}
		ready, lasts := map[troubleGroup][]troubleKey{}, map[troubleGroup]bool{}
		for key, t := range b.known {
			at, over, has := t.tell(i, b.overAfter(i), i == b.notes)
			if t.muted && t.over.IsZero() && (!t.rules[i].begun || i == b.notes) {
				wait = min(wait, mutedAgain)
			}
			if t.rules[i].begun && t.over.IsZero() || t.rules[i].flying {
				lasts[troubleGroup{key.cause, key.app, true}] = true
			}
			group := troubleGroup{key.cause, key.app, over}
			switch {
			case !has || !b.rules[i].concernsTrouble(t):
			case at.After(now):
				wait = min(wait, at.Sub(now))
				lasts[group] = lasts[group] || over
			default:
				ready[group] = append(ready[group], key)
			}
		}
		for _, group := range slices.SortedFunc(maps.Keys(ready), troubleGroup.compare) {
			if lasts[group] {
				continue
			}
			if !room(i) {
				break // the end of a call wakes the loop
			}
			keys := ready[group]
			slices.SortFunc(keys, troubleKey.compare)
			list = append(list, b.message(i, troublesOf{keys, group.over}))
		}
	}
	return list, wait
}

// tell is when a rule may tell of a trouble, and whether of its end; has is false where it has
// nothing to tell. A note is made again while the trouble lasts.
func (t *troubleTold) tell(rule int, overAfter time.Duration, note bool) (at time.Time, over, has bool) {
	s := &t.rules[rule]
	switch {
	case s.flying:
		return at, false, false
	case t.over.IsZero() && t.muted:
		return at, false, false
	case t.over.IsZero() && s.begun:
		return core.Later(s.again, s.next), false, note
	case t.over.IsZero():
		return core.Later(t.seen.Add(troubleLasts), s.next), false, true
	}
	return core.Later(t.over.Add(overAfter), s.next), true, s.begun && !s.ended
}

// concernsTrouble reports whether a rule is about a trouble: one about certain jobs is about theirs
// alone, and one about certain apps about none that is of all apps.
func (r *alarmRule) concernsTrouble(t *troubleTold) bool {
	if t.job != nil {
		return r.concerns(t.job.App, t.job.Key)
	}
	return len(r.Jobs) == 0 && r.concerns(t.x.App, "")
}

func (b *troubleBook) message(rule int, of troublesOf) alarmMessage {
	m := alarmMessage{rule: rule, troubles: &of}
	said := &m.said
	said.Cause, said.Count, said.Node = alarm.Trouble, len(of.keys), b.node
	if of.over {
		said.Cause = alarm.TroubleOver
	}
	id := sha256.New()
	for _, key := range of.keys {
		t := b.known[key]
		t.rules[rule].flying = true
		at := t.x.Since
		if of.over {
			at = t.ended
		}
		if t.past { // which each node says that comes at the same moment
			fmt.Fprintf(id, "%v %d", key, t.x.Since.UnixNano())
		} else {
			fmt.Fprintf(id, "%q %v %d", b.node, key, at.UnixNano())
		}
		if said.First.IsZero() || at.Before(said.First) {
			said.First = at
		}
		said.Last = core.Later(said.Last, at)
		said.Events = append(said.Events, alarm.Event{Cause: said.Cause, At: at, Text: t.words(of.over)})
		said.App, said.Trouble = t.x.App, string(t.x.Cause)
		if len(of.keys) == 1 && t.job != nil {
			m.fill(&store.Alarm{App: t.job.App, JobID: t.job.ID, JobKey: t.job.Key, JobName: t.job.Name, Email: t.job.AlarmEmail})
		}
	}
	slices.SortStableFunc(said.Events, func(a, b alarm.Event) int { return b.At.Compare(a.At) })
	said.Events = said.Events[:min(len(said.Events), alarmEvents)]
	said.ID = fmt.Sprintf("xxljob-t%s-%s", hex.EncodeToString(id.Sum(nil)[:8]), b.rules[rule].Name)
	return m
}

// words say what there is to say of a trouble.
func (t *troubleTold) words(over bool) string {
	var lines []string
	add := func(what string, v any, set bool) {
		if set {
			lines = append(lines, fmt.Sprintf("%s%v", what, v))
		}
	}
	add("", t.x.Cause, true)
	if t.job != nil {
		add("job ", t.job.App+"/"+t.job.Key, true)
	} else {
		add("job ", t.x.JobID, t.x.JobID != 0)
	}
	add("address ", t.x.Address, t.x.Address != "")
	lines = []string{strings.Join(lines, ", ")}
	if t.x.Detail != "" {
		lines[0] += ": " + t.x.Detail
	}
	if over {
		add("lasted ", t.ended.Sub(t.x.Since).Round(time.Second), true)
	} else {
		add("late or refused: ", t.x.Late, t.x.Late > 0)
		add("held by: ", t.x.Holder, t.x.Holder != "")
		add("what to do: ", t.x.Remedy, t.x.Remedy != "")
	}
	return store.AlarmText(strings.Join(lines, "\n"))
}

// sent takes in the end of a message.
func (b *troubleBook) sent(m *alarmMessage, now time.Time, err error) { b.ended(m, now, nil, err) }

// ended takes in the end of a message, or of a note and which of its troubles stand as this node's: one that
// nobody wants to know is noted again later.
func (b *troubleBook) ended(m *alarmMessage, now time.Time, mine []bool, err error) {
	for i, key := range m.troubles.keys {
		t := b.known[key]
		s := &t.rules[m.rule]
		s.flying = false
		switch over := m.troubles.over; {
		case err == nil && mine != nil && !over && !mine[i]:
			*s = troubleState{next: now.Add(b.rules[m.rule].window)}
		case err == nil && over && t.over.IsZero(): // it is back, which is to be told
			*s = troubleState{next: now.Add(b.rules[m.rule].window)}
		case err == nil && s.begun && !over: // noted again, which keeps no end from being noted
			*s = troubleState{begun: true, next: s.next, again: now.Add(b.rules[m.rule].window)}
		case err == nil:
			window := now.Add(b.rules[m.rule].window)
			if *s = (troubleState{begun: true, ended: over, next: window, again: window}); over && m.rule != b.notes {
				b.end(noteKey{m.rule, key}, toldEnd{now, t.ended})
			}
		case s.begun && !over: // it stays noted: what its end has as time is its own
			s.again = now.Add(b.rules[m.rule].window)
		default:
			if s.tried.IsZero() {
				s.tried = now
			}
			s.fails++
			s.next = now.Add(min(alarmBackoff<<min(s.fails-1, 20), alarmBackoffs))
			s.ended = over && now.Sub(s.tried) >= alarmAge // it is given up
		}
	}
}

// troublesDue are the messages about troubles that are to be sent now, and in how long to look
// again.
func (h *Notifier) troublesDue(ctx context.Context) ([]alarmMessage, time.Duration) {
	if !AnyWants(h.troubles.rules, alarm.Trouble) {
		return nil, 24 * time.Hour
	}
	h.readTroubleMutes(ctx)
	h.troubles.note(h.Core.Troubles.List(), time.Now(), h.Clock.Now())
	for _, x := range h.Core.Troubles.TakePast() {
		h.troubles.was(x, time.Now(), h.Clock.Now())
	}
	if ids := h.troubles.unread(); len(ids) > 0 {
		if jobs, err := h.ReadJobs(ctx, ids); err == nil { // else it is told without their names
			h.troubles.know(ids, jobs)
		}
	}
	return h.troubles.due(time.Now(), func(rule int) bool { return rule == h.troubles.notes || h.sender.flights.begin(rule) })
}

// readTroubleMutes reads the mutes, where there are troubles. The store may be what is in trouble.
func (h *Notifier) readTroubleMutes(ctx context.Context) {
	k, ok := core.Given(h.Store).(store.MuteKeeper)
	if !ok || len(h.Core.Troubles.List()) == 0 || time.Since(h.muteAsked) < troubleMutesFor {
		return
	}
	h.muteAsked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	list, err := k.Mutes(store.WithTrustedTime(ctx, h.Clock.Trusted()))
	if err != nil {
		h.troubles.mutes = h.unread(h.troubles.mutes, h.muted, err)
		return
	}
	h.troubles.mutes, h.muted = list, h.muteAsked
}

const (
	// troubleMutesFor is for how long mutes are known that were read.
	troubleMutesFor = 10 * time.Second
	// mutedAgain is how often it is looked whether troubles are still muted.
	mutedAgain = time.Minute
)
