package alarms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Rules in the store. Input: the rules of this node. Output: what they are about, kept in the store; which
// of them this node holds; and what becomes of alarms that nobody tells of.

const (
	// keepEvery is how often a node has its rules kept anew.
	keepEvery = 10 * time.Minute
	// rulesKept is for how long rules are kept that no node has any more.
	rulesKept = 24*time.Hour + keepEvery
	// differEvery is how often at most it is said that nodes of this app have other rules.
	differEvery = time.Hour
	// longestHold bounds for how long a node that has died keeps others from telling.
	longestHold = time.Minute
	// refusedRests is how long a rule rests that the store refuses to keep.
	refusedRests = 10 * time.Second
	// givenUpAge is when alarms are given up that nobody has told of: nodes that try do so for
	// alarmAge themselves.
	givenUpAge = alarmAge + 15*time.Minute
	// untoldKept is for how long that is a trouble.
	untoldKept = time.Hour
)

// ruleHold is what this node knows of who holds a rule. It is safe for concurrent use.
type ruleHold struct {
	mu    sync.Mutex
	gains int64     // guarded by mu; how often it has come to hold it anew
	held  bool      // guarded by mu; as it has last heard
	renew time.Time // guarded by mu; until when it relies on that, half of the time that it has
	retry time.Time // guarded by mu; until when another one holds it, or the store refuses to keep it
}

func (l *ruleHold) times() (renew, retry time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renew, l.retry
}

// gained is how often this node has come to hold the rule anew.
func (l *ruleHold) gained() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gains
}

// end reports whether the rule was held, which is over.
func (l *ruleHold) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.held
	l.held, l.renew = false, time.Time{}
	return was
}

// rest keeps it from being held until then.
func (l *ruleHold) rest(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.renew, l.retry = false, time.Time{}, until
}

func (l *ruleHold) renewIn() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(time.Until(l.renew), time.Millisecond)
}

// holdRule has this node hold the rule at a place, and reports whether it does, or in how long to
// ask again.
func (h *Notifier) holdRule(ctx context.Context, at int) (held bool, wait time.Duration, err error) {
	l, now, d := &h.tellers[at].hold, time.Now(), min(h.Cfg.Cluster.LeaseTTL, longestHold)
	switch renew, retry := l.times(); {
	case now.Before(renew):
		return true, 0, nil
	case now.Before(retry):
		return false, retry.Sub(now), nil
	}
	key := h.Rules[at].kept.Key
	got, err := loop.Call(ctx, func(ctx context.Context) (store.RuleHold, error) {
		return h.Store.HoldRule(ctx, key, h.Leases.Incarnation, d)
	})
	switch {
	case errors.Is(err, errs.ErrNotFound):
		err := h.Keep(ctx)
		_, retry := l.times()
		return false, max(time.Until(retry), time.Second), err
	case err != nil:
		return false, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !got.Held {
		left := max(got.Left, time.Millisecond)
		l.held, l.renew, l.retry = false, time.Time{}, now.Add(left)
		return false, left, nil
	}
	if got.Anew {
		l.gains++
	}
	l.held, l.renew = true, now.Add(d/2)
	return true, 0, nil
}

// letGo gives up what this node holds, so that others need not wait.
func (h *Notifier) letGo(ctx context.Context) {
	for i, t := range h.tellers {
		if t.hold.end() {
			_, _ = loop.Call(ctx, func(ctx context.Context) (store.RuleHold, error) { // else it ends by itself
				return h.Store.HoldRule(ctx, h.Rules[i].kept.Key, h.Leases.Incarnation, 0)
			})
		}
	}
}

// Keep has the store keep what the rules are about, and warns where nodes of the same app have
// others. It is called before the node joins: a run that starts later is told of, whoever ends it.
// Rules that the store refuses alone tell of nothing, and are tried again when they have rested.
func (h *Notifier) Keep(ctx context.Context) error {
	if len(h.Rules) == 0 {
		return nil
	}
	all := make([]store.AlarmRule, len(h.Rules))
	for i := range h.Rules {
		all[i] = h.Rules[i].kept
	}
	rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] }) // refused ones in front are not all that there is
	own := store.RuleKeeper{App: h.Cfg.App, Node: h.Cfg.Node, Incarnation: h.Leases.Incarnation}
	var others []store.RuleKeeper
	keep := func(rules []store.AlarmRule) (err error) {
		own.Rules = rules
		others, err = loop.Call(ctx, func(ctx context.Context) ([]store.RuleKeeper, error) { return h.Store.KeepRules(ctx, own) })
		return err
	}
	alone, taken := 0, false
	refused, why, err := loop.Halve(all, func(part []store.AlarmRule) error {
		err := keep(part)
		taken = taken || err == nil
		if errors.Is(err, errs.ErrRefused) && len(part) == 1 {
			if alone++; alone >= loop.RefusedFew && !taken {
				return noneKept{err}
			}
		}
		return err
	})
	switch none := (noneKept{}); {
	case errors.As(err, &none):
		refused, why, err = all, none.error, nil
	case err == nil && len(refused) > 0 && taken: // what was kept last is what the node has
		err = keep(slices.DeleteFunc(slices.Clone(all), func(r store.AlarmRule) bool { return hasRule(refused, r.Key) }))
	}
	if err != nil {
		return err
	}
	if len(refused) > 0 {
		h.keptNot(refused, why)
	}
	if len(others) > 0 {
		h.differ(own, others)
	}
	return nil
}

// noneKept is why none of the rules is kept, as it seems.
type noneKept struct{ error }

func hasRule(rules []store.AlarmRule, key string) bool {
	return slices.ContainsFunc(rules, func(r store.AlarmRule) bool { return r.Key == key })
}

// keptNot says that the store refuses to keep these rules, and lets them rest.
func (h *Notifier) keptNot(refused []store.AlarmRule, why error) {
	var names []string
	for i, t := range h.tellers {
		if rule := &h.Rules[i]; hasRule(refused, rule.kept.Key) {
			names = append(names, rule.Name)
			t.hold.rest(time.Now().Add(refusedRests))
		}
	}
	if h.rarely.Allow("keep") {
		h.Logger.Error("xxljob: the store refuses to keep rules of Config.Alarms: they tell of nothing", "rules", names, "error", why)
	}
	h.Core.Troubles.Refused(h.Clock.Now(), h.Cfg.App, 0, store.SeenRefusesRules, 0, fmt.Errorf("%s: %w", strings.Join(names, ", "), why))
}

// differ warns of nodes with other rules.
func (h *Notifier) differ(own store.RuleKeeper, others []store.RuleKeeper) {
	if said := h.differed.Load(); said != nil && time.Since(*said) < differEvery {
		return
	}
	h.differed.Store(new(time.Now()))
	of := make([]string, len(others))
	for i, o := range others {
		of[i] = fmt.Sprintf("%s: %s", o.Node, strings.Join(differences(own.Rules, o.Rules), ", "))
	}
	h.Logger.Warn("xxljob: nodes of the same app have other rules in Config.Alarms; each rule tells of what it wants, so something may be told twice; while a release is under way this is no fault", "app", own.App, "nodes", of)
}

// differences names the rules that one of two nodes has: a rule of the same name that is about
// something else is another one.
func differences(own, others []store.AlarmRule) (names []string) {
	only := func(a, b []store.AlarmRule, what string) {
		for i := range a {
			if !hasRule(b, a[i].Key) {
				names = append(names, what+" "+a[i].Name)
			}
		}
	}
	only(others, own, "has")
	only(own, others, "lacks")
	return names
}

// KeepDuty has the rules kept anew now and then.
func (h *Notifier) KeepDuty() loop.Duty {
	first := true // it was done before the node has joined
	return loop.Duty{What: "keeping rules of alarms", Aside: true, Once: func(ctx context.Context) (time.Duration, error) {
		if first {
			first = false
			return keepEvery, nil
		}
		return keepEvery, h.Keep(ctx)
	}}
}

// UntoldDuty forgets rules that no node has had for a day, and gives up alarms that no node has told
// of for that long. The node that owns the first shard does, whatever rules it has.
func (h *Notifier) UntoldDuty() loop.Duty {
	refused := map[int64]bool{}
	return loop.Duty{What: "looking for alarms that nobody tells of", Aside: true, Once: func(ctx context.Context) (time.Duration, error) {
		_, mine := h.Leases.Epoch(0)
		if why, _ := h.Clock.Doubt(); why != "" || !mine {
			return keepEvery, nil
		}
		now := h.Clock.Now()
		open, err := loop.Call(ctx, func(ctx context.Context) (bool, error) { return h.Store.DropRules(ctx, now.Add(-rulesKept)) })
		if err != nil || !open {
			return keepEvery, err
		}
		return keepEvery, h.giveUp(ctx, now, refused)
	}}
}

// giveUp gives up what is too old, and says of what some rule has not told. refused are the alarms of which
// the store does not note that: they are too old the next time as well, and not counted again.
func (h *Notifier) giveUp(ctx context.Context, now time.Time, refused map[int64]bool) error {
	rules, err := loop.Call(ctx, h.Store.Rules)
	if err != nil {
		return err
	}
	lost := map[string]*untold{}
	err = h.giveUpAll(ctx, now, rules, lost, refused)
	for app, of := range lost { // also where the store has failed behind some
		h.Logger.Warn("xxljob: alarms were given up that nobody has told of for a day: no node has the rule, or it could not", "app", app, "alarms", of.alarms, "rules", of.rules, "first_run", of.run)
		h.Core.Troubles.Saw(store.TroubleUntold, now, untoldKept, store.Trouble{
			App: app, Late: of.alarms,
			Seen:   store.Seen{What: store.SeenUntold, Names: strings.Join(of.rules, ", ")},
			Remedy: "start a node whose Config.Alarms has the rule; what was given up is in the console, as runs whose alarm has failed",
		})
	}
	return err
}

// giveUpAll gives up what is too old, page after page, and notes in lost what was.
func (h *Notifier) giveUpAll(ctx context.Context, now time.Time, rules []store.AlarmRule, lost map[string]*untold, refused map[int64]bool) error {
	all := make([]store.Shard, h.Cfg.Cluster.Shards)
	for i := range all {
		all[i].ID = i
	}
	again := map[int64]bool{}
	for after := int64(0); ; {
		page, err := loop.Call(ctx, func(ctx context.Context) ([]store.Alarm, error) {
			return h.Store.Alarms(ctx, all, nil, after, loop.StoreBatch)
		})
		if err != nil {
			return err
		}
		var old []*store.Alarm
		var missing [][]string
		var m store.AlarmMarks
		for i := range page {
			a := &page[i]
			if after = a.ID; now.Sub(a.At) < givenUpAge {
				continue
			}
			status, names := lostOf(rules, a)
			m.Done = append(m.Done, store.AlarmDone{ID: a.ID, Status: status})
			old, missing = append(old, a), append(missing, names)
		}
		if len(old) > 0 {
			if err := h.mark(ctx, m); errors.Is(err, errs.ErrRefused) {
				err = h.markHalves(ctx, m, func(alone store.AlarmMarks) { again[alone.Done[0].ID] = true })
				if err != nil {
					return err
				}
			} else if err != nil {
				return err
			}
		}
		for i, a := range old {
			if len(missing[i]) > 0 && !refused[a.ID] {
				noteLost(lost, a, missing[i])
			}
			if again[a.ID] {
				refused[a.ID] = true
			}
		}
		if len(page) < loop.StoreBatch {
			break
		}
	}
	maps.DeleteFunc(refused, func(id int64, _ bool) bool { return !again[id] })
	return nil
}

// untold is what was given up of an app.
type untold struct {
	alarms int
	run    int64 // the first
	rules  []string
}

// lostOf is what an alarm ends as that is too old, and which rules have not told of it.
func lostOf(rules []store.AlarmRule, a *store.Alarm) (status int, missing []string) {
	for i := range rules {
		if r := &rules[i]; (r.Gone.IsZero() || !r.Gone.Before(a.At)) && r.Wants(a) && !slices.Contains(a.Told, r.Key) {
			missing = append(missing, r.Name)
		}
	}
	switch {
	case len(missing) == 0 && len(a.Told) == 0:
		return store.AlarmNotNeeded, nil
	case len(missing) == 0 && !a.GaveUp:
		return store.AlarmSent, nil
	}
	return store.AlarmFailed, missing
}

// noteLost notes an alarm that was given up, of which these rules have not told.
func noteLost(lost map[string]*untold, a *store.Alarm, missing []string) {
	of := lost[a.App]
	if of == nil {
		of = &untold{run: a.RunID}
		lost[a.App] = of
	}
	of.alarms++
	for _, name := range missing {
		if !slices.Contains(of.rules, name) {
			of.rules = append(of.rules, name)
		}
	}
}
