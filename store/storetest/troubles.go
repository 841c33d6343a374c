package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// Troubles that nodes pass on to rules of others. A store need not: then these cases say nothing.

func troubleCases() []testCase {
	with := func(e *env, n store.TroubleNoter) *noting { return &noting{env: e, noter: n} }
	return optionalCases(with, []optional[*noting]{
		{"ANoteIsAnAlarm", notesAnAlarm},
		{"ANoteIsForRulesOfOthers", notesForOthers},
		{"TheFirstAndTheLastNoteIt", notesOnce},
		{"OfNodesAtOnceOneIsTheFirst", notesAtOnce},
		{"WhoIsDeadHasNotedNothing", notesAnew},
		{"ANoteIsDoneWithAsAnAlarm", notesDone},
		{"ARuleThatCameLaterIsTold", notesForLater},
		{"TextsAreMadeValid", notesTexts},
	})
}

// noting is a store that passes troubles on.
type noting struct {
	*env
	noter store.TroubleNoter
}

func troublesOnly(name string, apps, jobs []string) alarm.Rule {
	return alarm.Rule{Name: name, Apps: apps, Jobs: jobs, Causes: []alarm.Cause{alarm.Trouble}}
}

// note notes troubles as a node's.
func (e *noting) note(node string, told []string, list ...store.TroubleNote) []bool {
	e.Helper()
	mine, err := e.noter.NoteTroubles(e.ctx, store.TroubleNotes{Incarnation: node, Told: told, List: list})
	e.must(err)
	return mine
}

func ofApp(app string, over bool) store.TroubleNote {
	return store.TroubleNote{Cause: store.TroubleNoExecutor, App: app, Over: over, Text: "nobody\nthere 错"}
}

func notesAnAlarm(e *noting) {
	e.owner("a")
	job := e.newJob(func(j *store.Job) { j.AlarmEmail = "ops@example.org" })
	rule := e.mustKeep("of", troublesOnly("r", nil, nil))[0]
	before := e.storeNow()
	list := []store.TroubleNote{
		{Cause: store.TroubleUnknownZone, JobID: job.ID, Text: "no zone"}, {Cause: store.TroubleSharedAddress, App: "应用", Address: "http://10.0.0.1", Text: "shared"}, ofApp("x", false),
	}
	for _, n := range list { // one at a time, and so in this order
		want(e.env, "whose it is", e.note("a", []string{"own"}, n), []bool{true})
	}
	for _, n := range list {
		n.Over, n.Text = true, "over"
		want(e.env, "whose its end is", e.note("a", nil, n), []bool{true})
	}
	all := e.alarms(6)
	for i, a := range all {
		n := list[i%3]
		e.check(!a.At.Before(before.Add(-time.Second)), "alarm %d is of %v, before %v", i, a.At, before)
		if i >= 3 {
			n.Text = "over"
		}
		is := store.Alarm{ID: a.ID, Shard: a.Shard, App: n.App, JobID: n.JobID, Cause: "trouble", Text: n.Text, At: a.At, Trouble: n.Cause, Address: n.Address, Over: i >= 3}
		if i < 3 {
			is.Told = []string{"own"}
		}
		if n.JobID != 0 {
			is.App, is.JobKey, is.JobName, is.Email = job.App, job.Key, job.Name, job.AlarmEmail
		}
		want(e.env, "a note", a, is)
	}
	want(e.env, "what the rule reads", len(e.readBy(rule.Key)), 6)
	want(e.env, "no notes", e.note("a", nil), nil)
}

func notesForOthers(e *noting) {
	e.owner("a")
	job := e.newJob()
	want(e.env, "without a rule", e.note("a", nil, ofApp("x", false)), []bool{false})
	own := e.mustKeep("own", troublesOnly("own", []string{"x"}, nil))[0]
	e.mustKeep("else", troublesOnly("else", []string{"y"}, nil), troublesOnly("job", nil, []string{job.App + "/" + job.Key}), failedOnly("failed", nil, nil))
	want(e.env, "of an own rule", e.note("a", []string{own.Key}, ofApp("x", false)), []bool{false})
	want(e.env, "of nobody's", e.note("a", nil, ofApp("z", false), ofApp("", false)), []bool{false, false})
	want(e.env, "alarms of none", e.mustAlarms(), nil)
	want(e.env, "of another's", e.note("a", []string{own.Key}, ofApp("y", false), ofApp("x", false)), []bool{true, false})
	want(e.env, "of a job", e.note("a", []string{own.Key}, store.TroubleNote{Cause: store.TroubleRefused, App: job.App, JobID: job.ID}), []bool{true})
	want(e.env, "its app", e.alarms(2)[0].App, "y")
	want(e.env, "an end that was not noted before", e.note("a", nil, ofApp("x", true)), []bool{false})
	want(e.env, "of who does not tell it", e.note("a", nil, ofApp("x", false)), []bool{true})
	want(e.env, "alarms", len(e.mustAlarms()), 3)
}

func notesOnce(e *noting) {
	e.owner("a")
	e.join("b")
	e.mustKeep("of", troublesOnly("r", nil, nil))
	is := func(what, node string, over bool, mine bool, alarms int) {
		e.Helper()
		want(e.env, what, e.note(node, nil, ofApp("x", over)), []bool{mine})
		want(e.env, what+": alarms", len(e.mustAlarms()), alarms)
	}
	is("the first", "a", false, true, 1)
	is("again", "a", false, true, 1)
	is("an end by another, which has not noted it", "b", true, false, 1)
	is("by another", "b", false, true, 1)
	is("its end by the first", "a", true, true, 1)
	is("that again", "a", true, false, 1)
	is("its end by the last", "b", true, true, 2)
	is("that again", "b", true, false, 2)
	is("it begins anew", "b", false, true, 3)
	want(e.env, "one about another address", e.note("a", nil, store.TroubleNote{Cause: store.TroubleNoExecutor, App: "x", Address: "http://b"}), []bool{true})
}

func notesAtOnce(e *noting) {
	e.owner("a")
	e.join("b")
	e.mustKeep("of", troublesOnly("r", nil, nil))
	var of [2]bool
	e.race(func() { of[0] = e.note("a", nil, ofApp("x", false), ofApp("y", false))[0] }, func() { of[1] = e.note("b", nil, ofApp("y", false), ofApp("x", false))[1] })
	want(e.env, "whose they are", of, [2]bool{true, true})
	var apps []string
	for _, a := range e.mustAlarms() {
		apps = append(apps, a.App)
	}
	slices.Sort(apps)
	want(e.env, "alarms", apps, []string{"x", "y"})
}

func notesAnew(e *noting) {
	e.owner("a")
	e.join("b")
	e.mustKeep("of", troublesOnly("r", nil, nil))
	want(e.env, "the first", e.note("a", nil, ofApp("x", false)), []bool{true})
	e.must(e.Leave(e.ctx, "a"))
	want(e.env, "an end by another", e.note("b", nil, ofApp("x", true)), []bool{false})
	want(e.env, "by another, when it has left", e.note("b", nil, ofApp("x", false)), []bool{true})
	want(e.env, "alarms", len(e.mustAlarms()), 2)
	want(e.env, "an end by the former one", e.note("a", nil, ofApp("x", true)), []bool{false})
	want(e.env, "its end", e.note("b", nil, ofApp("x", true)), []bool{true})
	want(e.env, "alarms", len(e.mustAlarms()), 3)
	e.join("c")
	want(e.env, "by two", append(e.note("b", nil, ofApp("x", false)), e.note("c", nil, ofApp("x", false))...), []bool{true, true})
	e.must(e.Leave(e.ctx, "b"))
	want(e.env, "its end by the one that is left", e.note("c", nil, ofApp("x", true)), []bool{true})
	want(e.env, "alarms", len(e.mustAlarms()), 5)
}

func notesDone(e *noting) {
	e.owner("a")
	rules := e.mustKeep("of", troublesOnly("r", nil, nil), troublesOnly("own", nil, nil))
	e.note("a", []string{rules[1].Key}, ofApp("x", false))
	a := e.alarm()
	want(e.env, "of the one who tells it by itself", e.readBy(rules[1].Key), nil)
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: a.ID, Rule: rules[0].Key}}})
	want(e.env, "alarms", e.mustAlarms(), nil)
	want(e.env, "noted again", e.note("a", []string{rules[1].Key}, ofApp("x", false)), []bool{true})
	want(e.env, "alarms", e.mustAlarms(), nil)
	want(e.env, "its end", e.note("a", nil, ofApp("x", true)), []bool{true})
	want(e.env, "it is over", e.alarm().Over, true)
}

func notesForLater(e *noting) {
	e.owner("a")
	e.join("b")
	e.join("of-1")
	e.join("later-1")
	e.join("joined-1")
	key := func(r store.AlarmRule) string { return r.Key }
	first := key(e.mustKeep("of", troublesOnly("first", nil, nil))[0])
	is := func(what, node string, told []string, mine bool, alarms int) {
		e.Helper()
		want(e.env, what, e.note(node, told, ofApp("x", false)), []bool{mine})
		want(e.env, what+": alarms that are open", len(e.mustAlarms()), alarms)
	}
	done := func(rule string) {
		e.Helper()
		for _, a := range e.readBy(rule) {
			e.must(e.Store.MarkAlarms(e.ctx, store.AlarmMarks{Told: []store.AlarmTold{{ID: a, Rule: rule}}}))
		}
		want(e.env, "alarms that are open once they are told", len(e.mustAlarms()), 0)
	}
	is("it begins", "a", []string{"own"}, true, 1)
	done(first)
	is("nothing has changed", "a", []string{"own"}, true, 0)
	is("another node", "b", nil, true, 0)
	e.mustKeep("dead", troublesOnly("dead", nil, nil)) // which has not joined
	e.mustKeep("later", troublesOnly("else", []string{"y"}, nil), failedOnly("failed", nil, nil))
	is("rules that do not want it, or of no live node", "a", []string{"own"}, true, 0)
	later := key(e.mustKeep("later", troublesOnly("later", []string{"x"}, nil))[0])
	is("a rule of the node that notes it", "a", []string{"own", later}, true, 0)
	is("a rule that came later", "b", nil, true, 1)
	is("that again", "a", []string{"own"}, true, 1)
	for _, a := range e.mustAlarms() {
		want(e.env, "who was told of it before", slices.Sorted(slices.Values(a.Told)), slices.Sorted(slices.Values([]string{"own", first})))
	}
	want(e.env, "what the first rule reads", len(e.readBy(first)), 0)
	want(e.env, "what the later rule reads", len(e.readBy(later)), 1)
	for _, a := range e.readBy(later) {
		e.must(e.Store.MarkAlarms(e.ctx, store.AlarmMarks{Told: []store.AlarmTold{{ID: a, Rule: later}, {ID: a, Rule: key(e.mustKeep("dead", troublesOnly("dead", nil, nil))[0])}}}))
	}
	is("all were told", "a", []string{"own"}, true, 0)
	is("all were told, as another node has it", "b", nil, true, 0)
	joined := key(e.mustKeep("joined", troublesOnly("joined", nil, nil))[0])
	is("a node that joins, and tells a later rule by itself", "joined-1", []string{joined}, true, 0)
	is("that again, by a node that knows nothing of the rule", "a", []string{"own"}, true, 0)
	want(e.env, "the end of the first", e.note("a", nil, ofApp("x", true)), []bool{true})
	want(e.env, "the end of one that has joined", e.note("joined-1", nil, ofApp("x", true)), []bool{true})
	want(e.env, "alarms, as one more has noted it", len(e.mustAlarms()), 0)
	want(e.env, "the end of the last", e.note("b", nil, ofApp("x", true)), []bool{true})
	want(e.env, "what the first rule reads of the end", len(e.readBy(first)), 1)
	want(e.env, "what the later rule reads of the end", len(e.readBy(later)), 1)
	want(e.env, "what the rule of the node that joined reads of the end", len(e.readBy(joined)), 1)
}

func notesTexts(e *noting) {
	e.owner("a")
	e.mustKeep("of", troublesOnly("r", nil, nil))
	for i, p := range e.poor() {
		n := store.TroubleNote{Cause: store.TroubleCause("c" + p.given), App: "app" + p.given, Address: "http://" + p.given, Text: p.given}
		want(e.env, fmt.Sprintf("whose %q is", p.given), e.note("a", nil, n, ofApp(fmt.Sprint("good", i), false)), []bool{true, true})
		there := false
		for _, a := range e.alarms(2 * (i + 1)) {
			there = there || a.Text == p.kept && a.Address == "http://"+p.kept && a.Trouble == store.TroubleCause("c"+p.kept) && a.App == "app"+p.kept
		}
		e.check(there, "no note with %q", p.kept)
		n.Over = true
		want(e.env, "whose its end is", e.note("a", nil, n, ofApp(fmt.Sprint("good", i), true)), []bool{true, true})
		var done []store.AlarmDone
		for _, a := range e.mustAlarms() {
			if a.Over {
				done = append(done, store.AlarmDone{ID: a.ID, Status: store.AlarmSent})
			}
		}
		e.mustMark(store.AlarmMarks{Done: done})
	}
}
