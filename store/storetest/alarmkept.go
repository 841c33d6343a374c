package storetest

import (
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// Rules that are kept: which alarms there are for them, and which node tells.

func ruleCases() []testCase {
	return []testCase{
		{"ARuleIsAboutAppsAndJobs", ruleConcerns},
		{"ARuleReadsWhatItWants", ruleReads},
		{"WhatAllHaveToldIsDone", ruleDone},
		{"WhatOneGaveUpHasFailed", ruleFailed},
		{"RulesAreListed", rulesListed},
		{"NodesThatDifferAreNamed", rulesDiffer},
		{"ARuleInPlaceOfAnother", ruleReplaced},
		{"RulesAreDropped", rulesDropped},
		{"OneHoldsARule", ruleHeld},
		{"AHoldEnds", ruleHoldEnds},
		{"OpenOfRules", ruleOpen},
		{"LateAsFarAsARuleWants", ruleLate},
	}
}

func failedOnly(name string, apps, jobs []string) alarm.Rule {
	return alarm.Rule{Name: name, Apps: apps, Jobs: jobs, Causes: []alarm.Cause{alarm.Failed}}
}

func ruleConcerns(e *env) {
	o := e.owner("a")
	job := e.newJob()
	another := e.newJob()
	e.mustKeep("apps", failedOnly("r", []string{"x", job.App + "x"}, nil))
	o.failed(o.running())
	want(e, "alarms of another app's rule", e.mustAlarms(), nil)
	e.mustKeep("jobs", failedOnly("r", nil, []string{"x/y", job.App + "/" + job.Key}))
	o.failed(o.started(o.planned(another)))
	want(e, "alarms of another job's rule", e.mustAlarms(), nil)
	run := o.started(o.planned(job))
	o.failed(run)
	want(e, "the run of the alarm", e.alarm().RunID, run.ID)
	e.mustKeep("both", failedOnly("r", []string{job.App}, []string{another.App + "/" + another.Key}))
	run = o.started(o.planned(e.mustJob(another.ID)))
	o.failed(run)
	want(e, "the run of the next alarm", e.alarms(2)[1].RunID, run.ID)
	endedAs(store.StateLost)(o, o.planned(e.mustJob(job.ID)))
	want(e, "alarms of a cause that none wants", len(e.mustAlarms()), 2)
}

// readBy are the alarms that rules have to tell of.
func (e *env) readBy(rules ...string) (ids []int64) {
	e.Helper()
	list, err := e.Alarms(e.ctx, everyShard(), rules, 0, 100)
	e.must(err)
	for _, a := range list {
		ids = append(ids, a.ID)
	}
	return ids
}

func ruleReads(e *env) {
	o := e.owner("a")
	rules := e.mustKeep("a", failedOnly("failed", nil, nil), alarm.Rule{Name: "lost", Causes: []alarm.Cause{alarm.Lost}}, failedOnly("else", []string{"x"}, nil))
	endedAs(store.StateFailed)(o, o.planned(e.newJob()))
	endedAs(store.StateLost)(o, o.planned(e.newJob()))
	list := e.alarms(2)
	want(e, "of the one", e.readBy(rules[0].Key), []int64{list[0].ID})
	want(e, "of the other", e.readBy(rules[1].Key), []int64{list[1].ID})
	want(e, "of a third", e.readBy(rules[2].Key), nil)
	want(e, "of one that is not kept", e.readBy("nobody"), nil)
	want(e, "of both", e.readBy(rules[0].Key, rules[1].Key), []int64{list[0].ID, list[1].ID})
	more := e.mustKeep("b", failedOnly("all", nil, nil))
	want(e, "of one that is new", e.readBy(more[0].Key), []int64{list[0].ID})
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: list[0].ID, Rule: rules[0].Key}}})
	want(e, "of one that has told", e.readBy(rules[0].Key), nil)
	want(e, "of one that has not", e.readBy(more[0].Key), []int64{list[0].ID})
}

func ruleDone(e *env) {
	o := e.owner("a")
	rules := append(e.mustKeep("a", failedOnly("one", nil, nil), failedOnly("two", nil, nil)), e.mustKeep("b", failedOnly("elsewhere", []string{"x"}, nil))...)
	o.failed(o.running())
	a := e.alarm()
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: a.ID, Rule: rules[0].Key}}})
	want(e, "the status while one has told", e.mustRun(a.RunID).AlarmStatus, 0)
	want(e, "alarms", len(e.mustAlarms()), 1)
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: a.ID, Rule: rules[1].Key}}})
	want(e, "the status when both have", e.mustRun(a.RunID).AlarmStatus, store.AlarmSent)
	want(e, "alarms", e.mustAlarms(), nil)
	o.failed(o.running())
	a = e.alarm()
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: a.ID, Rule: rules[0].Key}, {ID: a.ID, Rule: rules[1].Key}}})
	want(e, "the status when both have at once", e.mustRun(a.RunID).AlarmStatus, store.AlarmSent)
	o.failed(o.running())
	a = e.alarm()
	e.race(
		func() { e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: a.ID, Rule: rules[0].Key}}}) },
		func() { e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: a.ID, Rule: rules[1].Key}}}) },
	)
	want(e, "the status when both have side by side", e.mustRun(a.RunID).AlarmStatus, store.AlarmSent)
}

func ruleFailed(e *env) {
	o := e.owner("a")
	rules := e.mustKeep("a", failedOnly("one", nil, nil), failedOnly("two", nil, nil))
	o.failed(o.running())
	a := e.alarm()
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: a.ID, Rule: rules[0].Key, GaveUp: true}}})
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: a.ID, Rule: rules[1].Key}}})
	want(e, "the status", e.mustRun(a.RunID).AlarmStatus, store.AlarmFailed)
}

// mustRules are all that are kept.
func (e *env) mustRules() []store.AlarmRule {
	e.Helper()
	list, err := e.Rules(e.ctx)
	e.must(err)
	return list
}

func rulesListed(e *env) {
	e.owner("a")
	want(e, "no rules", e.mustRules(), nil)
	given := alarm.Rule{Name: "r", Apps: []string{"b", "a", "b"}, Jobs: []string{"a/k", "a/错"}, Causes: []alarm.Cause{alarm.Lost, alarm.Failed}}
	rule := e.mustKeep("a", given)[0]
	want(e, "the rule", e.mustRules(), []store.AlarmRule{rule})
	want(e, "apps, causes", [][]string{rule.Apps, rule.Causes}, [][]string{{"a", "b"}, {"failed", "lost"}})
	given.Apps = []string{"a", "b"}
	e.mustKeep("b", given)
	want(e, "the same at another node", e.mustRules(), []store.AlarmRule{rule})
	given.Apps = nil
	e.mustKeep("c", given)
	want(e, "rules", len(e.mustRules()), 2)
}

// keep keeps rules as those of a node, and returns the others of its app as they come.
func (e *env) keep(app, node, incarnation string, rules ...alarm.Rule) []store.RuleKeeper {
	e.Helper()
	k := store.RuleKeeper{App: app, Node: node, Incarnation: incarnation}
	for _, r := range rules {
		k.Rules = append(k.Rules, store.NewAlarmRule(r))
	}
	others, err := e.KeepRules(e.ctx, k)
	e.must(err)
	return others
}

func rulesDiffer(e *env) {
	e.owner("a")
	for _, inc := range []string{"n1-x", "n2-x", "n3-x"} {
		_, err := e.Join(e.ctx, store.Node{ID: inc[:2], Incarnation: inc})
		e.must(err)
	}
	one, two := failedOnly("one", nil, nil), failedOnly("two", nil, nil)
	want(e, "the first", e.keep("app", "n1", "n1-x", one, two), nil)
	want(e, "the same", e.keep("app", "n2", "n2-x", two, one), nil)
	want(e, "of another app", e.keep("another", "n4", "n3-x", one), nil)
	others := e.keep("app", "n3", "n3-x", one)
	for i := range others {
		for _, r := range others[i].Rules {
			e.check(r.Key != "", "a rule without a key")
		}
	}
	if len(others) != 2 {
		e.Fatalf("others %+v, want two", others)
	}
	want(e, "the others", []any{others[0].App, others[0].Node, others[0].Incarnation, len(others[0].Rules), others[1].Node}, []any{"app", "n1", "n1-x", 2, "n2"})
	e.must(e.Leave(e.ctx, "n1-x"))
	want(e, "once one has left", len(e.keep("app", "n3", "n3-x", one)), 1)
	want(e, "once they agree", e.keep("app", "n3", "n3-x", one, two), nil)
}

func ruleReplaced(e *env) {
	e.owner("a")
	for _, inc := range []string{"n1-x", "n2-x"} {
		_, err := e.Join(e.ctx, store.Node{ID: inc[:2], Incarnation: inc})
		e.must(err)
	}
	was, is := failedOnly("r", nil, nil), failedOnly("r", []string{"app"}, nil)
	e.keep("app", "n1", "n1-x", was)
	e.keep("app", "n2", "n2-x", is)
	want(e, "both while both are there", len(e.mustRules()), 2)
	e.must(e.Leave(e.ctx, "n1-x"))
	e.keep("app", "n2", "n2-x", is)
	want(e, "the one that is left", e.mustRules(), []store.AlarmRule{store.NewAlarmRule(is)})
	e.keep("another", "n1", "n1-x", was)
	e.keep("app", "n2", "n2-x", is)
	want(e, "another app's of the same name", len(e.mustRules()), 2)
	e.keep("app", "n2", "n2-x", failedOnly("renamed", nil, nil))
	want(e, "one that has another name", len(e.mustRules()), 3)
}

func rulesDropped(e *env) {
	o := e.owner("a")
	rule := e.mustKeep("a", failedOnly("r", nil, nil))[0]
	drop := func(before time.Time) bool {
		open, err := e.DropRules(e.ctx, before)
		e.must(err)
		return open
	}
	now := e.clock()
	want(e, "open", drop(now.Add(-time.Hour)), false)
	want(e, "a rule that was kept since", e.mustRules(), []store.AlarmRule{rule})
	o.failed(o.running())
	first := e.alarm()
	e.tick()
	want(e, "open", drop(now.Add(time.Hour)), true)
	list := e.mustRules()
	if len(list) != 1 || list[0].Gone.IsZero() {
		e.Fatalf("rules %+v, want one that is gone", list)
	}
	e.tick()
	o.failed(o.running())
	want(e, "an alarm of a rule that is gone", len(e.mustAlarms()), 1)
	all := e.mustKeep("b", failedOnly("all", nil, nil))[0]
	o.failed(o.running())
	second := e.alarms(2)[1]
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: first.ID, Rule: all.Key}, {ID: second.ID, Rule: all.Key}}})
	want(e, "what the rule had wanted before", e.alarm().ID, first.ID)
	e.mustKeep("a", failedOnly("r", nil, nil))
	for _, r := range e.mustRules() {
		e.check(r.Gone.IsZero(), "a rule that is kept again is gone: %+v", r)
	}
	drop(now.Add(72 * time.Hour))
	want(e, "rules after two days more", e.mustRules(), nil)
}

// tick waits for the next millisecond of that clock.
func (e *env) tick() {
	e.Helper()
	for from := e.clock(); e.clock().Sub(from) < 2*time.Millisecond; {
		time.Sleep(time.Millisecond)
	}
}

func (e *env) hold(rule, incarnation string, d time.Duration) store.RuleHold {
	e.Helper()
	got, err := e.HoldRule(e.ctx, rule, incarnation, d)
	e.must(err)
	return got
}

func ruleHeld(e *env) {
	e.owner("a")
	rule := e.mustKeep("a", failedOnly("r", nil, nil))[0].Key
	_, err := e.HoldRule(e.ctx, "nobody", "one", time.Minute)
	e.wantErr("a rule that is not kept", err, store.ErrNotFound)
	want(e, "at first", e.hold(rule, "one", time.Minute), store.RuleHold{Held: true, Anew: true})
	want(e, "again", e.hold(rule, "one", time.Minute), store.RuleHold{Held: true})
	got := e.hold(rule, "two", time.Minute)
	e.check(!got.Held && !got.Anew && got.Left > 30*time.Second && got.Left <= time.Minute, "another one gets %+v", got)
	want(e, "who does not hold it gives it up", e.hold(rule, "two", 0).Held, false)
	want(e, "once more", e.hold(rule, "one", time.Minute), store.RuleHold{Held: true})
	want(e, "given up", e.hold(rule, "one", 0), store.RuleHold{})
	want(e, "by the same", e.hold(rule, "one", time.Minute), store.RuleHold{Held: true})
	e.hold(rule, "one", 0)
	want(e, "by another", e.hold(rule, "two", time.Minute), store.RuleHold{Held: true, Anew: true})
	won := make(chan string, 2)
	e.hold(rule, "two", 0)
	try := func(who string) func() {
		return func() {
			if e.hold(rule, who, time.Minute).Held {
				won <- who
			}
		}
	}
	e.race(try("three"), try("four"))
	want(e, "of two at once", len(won), 1)
}

func ruleHoldEnds(e *env) {
	e.owner("a")
	rule := e.mustKeep("a", failedOnly("r", nil, nil))[0].Key
	e.hold(rule, "one", time.Millisecond)
	for !e.hold(rule, "two", 2*time.Hour).Held {
		time.Sleep(time.Millisecond)
	}
	want(e, "a hold of more than an hour", e.hold(rule, "three", time.Minute), store.RuleHold{Held: true, Anew: true})
}

func ruleOpen(e *env) {
	o := e.owner("a")
	run := o.running()
	o.failed(run)
	e.opened(run, "one")
	e.opened(run, "two")
	for what, n := range map[string]int{"one": 1, "three": 0} {
		list, open, err := e.OpenAlarms(e.ctx, everyShard(), []string{what}, store.JobTold{}, 9)
		e.must(err)
		want(e, what+": open", open, n)
		want(e, what+": recovered", list, nil)
	}
	again := o.started(o.planned(e.mustJob(run.JobID)))
	e.mustFinish(success(again))
	list, open, err := e.OpenAlarms(e.ctx, everyShard(), []string{"two", "three"}, store.JobTold{}, 9)
	e.must(err)
	want(e, "recovered, open", []int{len(list), open}, []int{1, 1})
	want(e, "the rule", list[0].Rule, "two")
}

func ruleLate(e *env) {
	o := e.owner("a")
	job, another := e.newJob(lateAfter(time.Minute)), e.newJob(lateAfter(time.Second))
	e.mustKeep("a", alarm.Rule{Name: "r", Jobs: []string{job.App + "/" + job.Key}, Causes: []alarm.Cause{alarm.Late}})
	o.planned(another)
	o.planned(e.mustJob(another.ID))
	run := o.planned(job)
	late := o.mustLate(61, 1)
	want(e, "alarms, least", late, store.Late{Alarms: 1, Least: time.Minute})
	want(e, "the run", e.alarm().RunID, run.ID)
}
