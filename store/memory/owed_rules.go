package memory

// Rules of alarms: what those of all nodes are about, and who tells of what each of them wants.

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// keptRule is a rule that some node has, or has had.
type keptRule struct {
	store.AlarmRule
	kept   time.Time // last
	holder string    // the incarnation that tells of what it wants
	until  time.Time // for so long
}

// ruleNode is a node of an app that has rules.
type ruleNode struct{ app, node string }

// ruleNodeKept is what it has kept last.
type ruleNodeKept struct {
	store.RuleKeeper
	kept time.Time
}

// longestHold is the longest hold that counts, and ruleForgotten how long after a rule is Gone it is
// forgotten.
const (
	longestHold   = time.Hour
	ruleForgotten = 48 * time.Hour
)

// untold reports whether the rule has to tell of the alarm.
func (r *keptRule) untold(a *store.Alarm) bool { return r.Wants(a) && !slices.Contains(a.Told, r.Key) }

func (s *Store) anyWants(wants func(*keptRule) bool) bool {
	for _, r := range s.rules {
		if wants(r) {
			return true
		}
	}
	return false
}

// tellAlarms tells all who watch that there are alarms: any of them may have the rule.
func (s *Store) tellAlarms() {
	for _, w := range s.watchers {
		tell(w.alarms)
	}
}

func copiedRule(r store.AlarmRule) store.AlarmRule {
	r.Name, r.Apps, r.Jobs, r.Causes = store.PlainText(r.Name), plain(r.Apps), plain(r.Jobs), plain(r.Causes)
	return r
}

func keysOf(rules []store.AlarmRule) (keys []string) {
	for i := range rules {
		keys = append(keys, rules[i].Key)
	}
	slices.Sort(keys)
	return keys
}

// KeepRules keeps the rules as those of the node.
func (s *Store) KeepRules(ctx context.Context, k store.RuleKeeper) ([]store.RuleKeeper, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	k.App, k.Node = store.PlainText(k.App), store.PlainText(k.Node)
	now, at := s.clock(), ruleNode{k.App, k.Node}
	had := map[string]bool{} // of the app
	for n, was := range s.ruleNodes {
		for _, r := range was.Rules {
			had[r.Key] = had[r.Key] || n.app == k.App
		}
	}
	names := map[string]bool{}
	for i, r := range k.Rules {
		k.Rules = slices.Clone(k.Rules)
		r = copiedRule(r)
		r.Gone, k.Rules[i], names[r.Name] = time.Time{}, r, true
		if s.rules[r.Key] == nil {
			s.rules[r.Key] = &keptRule{}
		}
		s.rules[r.Key].AlarmRule, s.rules[r.Key].kept = r, now
	}
	s.ruleNodes[at] = ruleNodeKept{k, now}
	live := map[string]bool{} // or another app's
	var others []store.RuleKeeper
	for n, kept := range s.ruleNodes {
		p := s.peers[kept.Incarnation]
		there := n == at || p != nil && p.joined && !p.left
		for _, r := range kept.Rules {
			live[r.Key] = live[r.Key] || there || n.app != k.App
		}
		if there && n.app == k.App && n != at && !slices.Equal(keysOf(kept.Rules), keysOf(k.Rules)) {
			other := kept.RuleKeeper
			other.Rules = nil
			for _, r := range kept.Rules {
				other.Rules = append(other.Rules, store.AlarmRule{Key: r.Key, Name: r.Name})
			}
			slices.SortFunc(other.Rules, func(a, b store.AlarmRule) int { return cmp.Compare(a.Key, b.Key) })
			others = append(others, other)
		}
	}
	maps.DeleteFunc(s.rules, func(key string, r *keptRule) bool { return had[key] && names[r.Name] && !live[key] })
	slices.SortFunc(others, func(a, b store.RuleKeeper) int { return cmp.Compare(a.Node, b.Node) })
	return others, nil
}

// HoldRule makes the incarnation the one who tells of what a rule wants.
func (s *Store) HoldRule(ctx context.Context, rule, incarnation string, d time.Duration) (store.RuleHold, error) {
	if err := s.begin(ctx); err != nil {
		return store.RuleHold{}, err
	}
	defer s.done()
	r, now := s.rules[rule], s.clock()
	if r == nil {
		return store.RuleHold{}, failed(store.ErrNotFound, "hold rule %q", rule)
	}
	left := r.until.Sub(now)
	switch {
	case r.holder != incarnation && left > 0 && left <= longestHold:
		return store.RuleHold{Left: left}, nil
	case d <= 0:
		if r.holder == incarnation {
			r.until = time.Time{}
			s.tellAlarms()
		}
		return store.RuleHold{}, nil
	}
	hold := store.RuleHold{Held: true, Anew: r.holder != incarnation}
	r.holder, r.until = incarnation, now.Add(d)
	return hold, nil
}

// Rules returns the rules that are kept.
func (s *Store) Rules(ctx context.Context) ([]store.AlarmRule, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []store.AlarmRule
	for _, key := range slices.Sorted(maps.Keys(s.rules)) {
		list = append(list, copiedRule(s.rules[key].AlarmRule))
	}
	return list, nil
}

// DropRules makes rules Gone that no node has kept for a while.
func (s *Store) DropRules(ctx context.Context, before time.Time) (open bool, err error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.done()
	for _, r := range s.rules {
		if r.Gone.IsZero() && r.kept.Before(before) {
			r.Gone = s.clock()
		}
	}
	forgotten := before.Add(-ruleForgotten)
	maps.DeleteFunc(s.rules, func(_ string, r *keptRule) bool { return r.kept.Before(forgotten) })
	maps.DeleteFunc(s.ruleNodes, func(_ ruleNode, n ruleNodeKept) bool { return n.kept.Before(forgotten) })
	return len(s.alarms) > 0, nil
}
