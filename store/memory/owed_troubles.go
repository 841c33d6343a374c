package memory

// Troubles that a node passes on to rules of others: alarms without a run.

import (
	"context"
	"maps"
	"slices"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

var _ store.TroubleNoter = (*Store)(nil)

// mostNoted is how many troubles are remembered whose nodes may not live any more.
const mostNoted = 1000

// openTrouble is one that lasts.
type openTrouble struct {
	by    []string     // the incarnations that have noted it
	alarm *store.Alarm // the last about it; once that is done with, its ID and who need not be told any more
}

// isForLater reports whether a live node has a rule that wants the alarm of a trouble which lasts.
func (s *Store) isForLater(a *store.Alarm) bool {
	for _, n := range s.ruleNodes {
		if s.lives(n.Incarnation) && slices.ContainsFunc(n.Rules, func(own store.AlarmRule) bool {
			r := s.rules[own.Key]
			return r != nil && r.Gone.IsZero() && r.untold(a)
		}) {
			return true
		}
	}
	return false
}

// NoteTroubles inserts the alarms of troubles that have begun or are over.
func (s *Store) NoteTroubles(ctx context.Context, notes store.TroubleNotes) ([]bool, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	mine := make([]bool, len(notes.List))
	if len(s.noted) > mostNoted {
		maps.DeleteFunc(s.noted, func(_ string, o openTrouble) bool { return !slices.ContainsFunc(o.by, s.lives) })
	}
	for i := range notes.List {
		n := &notes.List[i]
		key := n.Key()
		open := s.noted[key]
		was := slices.Contains(open.by, notes.Incarnation)
		by := slices.DeleteFunc(copied(open.by), func(by string) bool { return by == notes.Incarnation || !s.lives(by) })
		switch {
		case n.Over && !was:
			continue
		case n.Over && len(by) == 0:
			s.putAlarm(s.alarmOfTrouble(n, notes.Told))
		case n.Over:
		case was, len(by) > 0:
			if s.alarms[open.alarm.ID] == nil {
				again := s.alarmOfTrouble(n, slices.Concat(open.alarm.Told, notes.Told))
				slices.Sort(again.Told)
				again.Told = slices.Compact(again.Told)
				if s.isForLater(&again) && s.putAlarm(again) {
					open.alarm = s.alarms[s.lastAlarm]
				} else if !was {
					open.alarm = &store.Alarm{ID: open.alarm.ID, Told: again.Told}
				}
			}
			by = append(by, notes.Incarnation)
		case s.putAlarm(s.alarmOfTrouble(n, notes.Told)):
			open.alarm, by = s.alarms[s.lastAlarm], append(by, notes.Incarnation)
		default:
			continue
		}
		open.by = by
		if s.noted[key], mine[i] = open, true; len(by) == 0 {
			delete(s.noted, key)
		}
	}
	return mine, nil
}

// lives reports whether a node has joined and not left.
func (s *Store) lives(incarnation string) bool {
	p := s.peers[incarnation]
	return p != nil && p.joined && !p.left
}

func (s *Store) alarmOfTrouble(n *store.TroubleNote, told []string) store.Alarm {
	a := store.Alarm{
		App: store.PlainText(n.App), JobID: n.JobID, Cause: string(alarm.Trouble), Text: store.PlainText(n.Text), At: s.clock(), Told: copied(told),
		Trouble: store.TroubleCause(store.PlainText(string(n.Cause))), Address: store.PlainText(n.Address), Over: n.Over,
	}
	if j := s.live(n.JobID); j != nil {
		if a.App == "" {
			a.App = j.app
		}
		a.JobKey, a.JobName, a.Email = j.def.key, j.def.name, j.def.common.Value().email
	}
	return a
}
