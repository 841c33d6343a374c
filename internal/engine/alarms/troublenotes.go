package alarms

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Troubles that a node passes on to rules of others. Input: troubles of this node that a rule would be told
// of, and those that other nodes have noted. Output: alarms in the store; which of them a rule of this node
// tells from memory already.

// noteRule is the rule by which a node passes its troubles on: all of them, each as often as a message
// would tell of it.
func noteRule() alarmRule {
	return alarmRule{Rule: alarm.Rule{Causes: []alarm.Cause{alarm.Trouble}}, window: core.DefaultWindow}
}

// passOn has the book pass on troubles, too.
func (b *troubleBook) passOn() {
	b.notes = len(b.rules)
	b.rules = append(b.rules[:b.notes:b.notes], noteRule())
}

// overAfter is for how long a trouble has to be over before that is told, or noted: who has the shards of
// this node by then notes before that what it sees of it, so that what moves does not end.
func (b *troubleBook) overAfter(rule int) time.Duration {
	if rule == b.notes {
		return 2 * troubleLasts
	}
	return troubleLasts
}

// Came has notes of others told: what this node has found when it came is told by itself.
func (h *Notifier) Came() {
	h.came.Store(true)
	h.Life.Wakes.Alarms.Poke()
}

// Notes reports whether troubles are passed on.
func (h *Notifier) Notes() bool { return h.troubles.notes >= 0 }

// noteAll passes on those of the messages that are notes, all beginnings in one call and all ends in another,
// sends the others, and reports whether there were any notes: when the next is due is for the book to say
// anew. The others go first, since the store may be what is in trouble.
func (h *Notifier) noteAll(ctx context.Context, messages []alarmMessage) bool {
	var notes []*alarmMessage
	for i := range messages {
		m := &messages[i]
		if m.rule != h.troubles.notes {
			h.sender.send(*m)
		} else if at := slices.IndexFunc(notes, func(o *alarmMessage) bool { return o.troubles.over == m.troubles.over }); at >= 0 {
			notes[at].troubles.keys = append(notes[at].troubles.keys, m.troubles.keys...)
		} else {
			notes = append(notes, m)
		}
	}
	for _, m := range notes {
		h.note(ctx, m)
	}
	return len(notes) > 0
}

// note passes on the troubles of a message, whichever their causes and apps. Of those that the store
// refuses together each half goes by itself, in any order, until it seems to refuse all: one that it
// refuses alone is tried again later, and holds up no other.
func (h *Notifier) note(ctx context.Context, m *alarmMessage) {
	keys := m.troubles.keys
	rand.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	ended := func(n int, mine []bool, err error) { // of the first
		h.troubles.ended(&alarmMessage{rule: m.rule, troubles: &troublesOf{keys[:n], m.troubles.over}}, time.Now(), mine, err)
		keys = keys[n:]
	}
	alone, taken := 0, false
	refused, why, err := loop.Halve(keys, func(part []troubleKey) error {
		mine, err := h.noteSome(ctx, part, m.troubles.over)
		switch {
		case err == nil:
			taken = true
			ended(len(part), mine, nil)
		case errors.Is(err, errs.ErrRefused) && len(part) == 1:
			if alone++; alone >= loop.RefusedFew && !taken {
				return fmt.Errorf("nothing is taken: %v", err)
			}
			ended(1, nil, err)
		}
		return err
	})
	if ended(len(keys), nil, err); err != nil && h.rarely.Allow("note") {
		h.Logger.Warn("xxljob: troubles could not be passed on to rules that other nodes have; it is tried again", "error", err)
	}
	if len(refused) > 0 && h.rarely.Allow("refused note") {
		h.Logger.ErrorContext(ctx, "xxljob: the store refuses to pass some troubles on to rules that other nodes have", "troubles", len(refused), "error", why)
	}
}

// noteSome passes on some troubles, and returns which of these stand as this node's.
func (h *Notifier) noteSome(ctx context.Context, keys []troubleKey, over bool) ([]bool, error) {
	notes := store.TroubleNotes{Incarnation: h.Leases.Incarnation}
	for i := range h.Rules {
		notes.Told = append(notes.Told, h.Rules[i].kept.Key)
	}
	for _, key := range keys {
		t := h.troubles.known[key]
		text := fmt.Sprintf("%s\nseen by node %s, since %s", t.words(over), h.Cfg.Node, t.x.Since.UTC().Format(time.RFC3339))
		notes.List = append(notes.List, store.TroubleNote{
			Cause: t.x.Cause, App: t.x.App, JobID: t.x.JobID, Address: t.x.Address, Over: over, Text: store.AlarmText(text),
		})
	}
	return loop.Call(ctx, func(ctx context.Context) ([]bool, error) {
		return core.Given(h.Store).(store.TroubleNoter).NoteTroubles(ctx, notes)
	})
}

// noteKey is a rule and a trouble, metNote the alarm by which another node has passed that on, and whether
// it is told by that alarm, since this node had not told of it yet.
type (
	noteKey struct {
		rule int
		of   troubleKey
	}
	metNote struct {
		id   int64
		told bool
		over bool // that it is over was passed on, too
	}
)

// mostMet is how many of them are remembered.
const mostMet = 1000

// endKept is for how long it is remembered that an end was told: others may note it later.
const endKept = 10 * time.Minute

// toldEnd is when the end of a trouble was told, and when that was, by the store's clock.
type toldEnd struct{ told, ended time.Time }

// end notes that this node has told that a trouble is over.
func (b *troubleBook) end(key noteKey, at toldEnd) {
	if len(b.ends) >= mostMet {
		clear(b.ends)
	}
	b.ends[key] = at
}

// hasEnded reports whether this node has told the end of a trouble shortly before.
func (b *troubleBook) hasEnded(key noteKey, now time.Time) bool {
	at, told := b.ends[key]
	return told && now.Sub(at.told) < endKept
}

// awaits reports whether this node tells a rule from memory of what another one may still pass on that it is
// over: so long it holds the rule.
func (b *troubleBook) awaits(rule int, now time.Time) bool {
	for key, m := range b.met {
		if key.rule == rule && !m.over && (b.known[key.of] != nil || b.hasEnded(key, now)) {
			return true
		}
	}
	return false
}

// tells reports whether this node tells the rule from memory of what another one has passed on.
func (b *troubleBook) tells(rule int, a *store.Alarm, now time.Time) bool {
	key := noteKey{rule, troubleKey{a.Trouble, a.App, a.Address, a.JobID}}
	met, known := b.met[key], b.known[key.of]
	switch {
	case a.ID <= met.id:
		return a.ID == met.id && !met.told
	case a.Over:
		if met.id != 0 {
			met.over = true
			b.met[key] = met
			return true
		}
		return b.hasEnded(key, now)
	case known == nil && b.hasEnded(key, now) && !a.At.After(b.ends[key].ended): // its end has said all
		b.met[key] = metNote{id: a.ID}
		return true
	case known == nil:
		delete(b.met, key)
		delete(b.ends, key)
		return false
	}
	s := &known.rules[rule]
	met = metNote{id: a.ID, told: !s.begun && !s.flying}
	if s.begun = s.begun || met.told; len(b.met) >= mostMet {
		clear(b.met)
	}
	b.met[key] = met
	return !met.told
}

// bookID is the job in whose place a book has the alarm: of troubles those of a kind and app are told
// together.
func bookID(a *store.Alarm) int64 {
	if a.Trouble == "" {
		return a.JobID
	}
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%s %s", a.Trouble, a.App)
	return -1 - int64(sum.Sum64()>>1)
}

// sayTroubles sets what a message says that tells of noted troubles.
func (m *alarmMessage) sayTroubles() {
	m.said.Trouble, m.said.Cause = string(m.last.Trouble), alarm.Cause(m.last.Cause)
	if m.last.Over {
		m.said.Cause = alarm.TroubleOver
	}
	for i := range m.found {
		if m.found[i].JobID != m.last.JobID {
			m.last = store.Alarm{ID: m.last.ID, Shard: m.last.Shard, App: m.last.App, Trouble: m.last.Trouble, Over: m.last.Over, Cause: m.last.Cause}
		}
	}
	m.said.ID = fmt.Sprintf("xxljob-t%d-%s", m.last.ID, m.key)
}
