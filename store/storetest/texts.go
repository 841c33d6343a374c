package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

func textCases() []testCase {
	return []testCase{
		{"OfDefinitionsAreRefused", textsOfJobs},
		{"OfGroupsAreRefused", textsOfGroups},
		{"OfTriggersAreRefused", textsOfTriggers},
		{"OfTheRecordAreRefused", textsOfChanges},
		{"OfStartsAreMadeValid", textsOfStarts},
		{"OfResultsAreMadeValid", textsOfResults},
		{"OfProgressAreMadeValid", textsOfProgress},
		{"OfOtherWordsAboutRunsAreMadeValid", textsOfRuns},
		{"OfStopsAndAlarmsAreMadeValid", textsOfStops},
		{"OfAlarmMarksAreMadeValid", textsOfMarks},
		{"OfAnswersAreMadeValid", textsOfAnswers},
		{"OfRegistrationsAreMadeValid", textsOfRegistrations},
		{"OfAttachmentsAreMadeValid", textsOfAttachments},
		{"OfRulesAreMadeValid", textsOfRules},
		{"OfNodesAreMadeValid", textsOfNodes},
		{"OfQuestionsAreMadeValid", textsOfQuestions},
		{"OfTroublesAreMadeValid", textsOfTroubles},
		{"OfMutesAreRefused", textsOfMutes},
		{"OfAppTokensAreRefused", textsOfAppTokens},
		{"OfNobodysNamesAreLookedUp", textsOfNobody},
	}
}

// Narrow is a store of a test that cannot hold every text, as a database cannot that is not in
// UTF-8. KeptText is what it keeps of what a running program says, though a call may return that as
// it was given; what it is asked for by name it refuses where that would be another text.
type Narrow interface {
	store.Store
	KeptText(text string) string
}

// poor are texts that no store keeps, with what is kept of them; the last is kept as it is where
// the store holds every text.
func (e *env) poor() []struct{ given, kept string } {
	list := []struct{ given, kept string }{
		{"a\x00b", "a\uFFFDb"}, {"\xc4\xe3\xba\xc3", "\uFFFD"}, {"cut \xe9\x94", "cut \uFFFD"}, {"half \xed\xa0\x80", "half \uFFFD"}, {"𝄞 漢字 é\u0085", "𝄞 漢字 é\u0085"},
	}
	for i := range list {
		list[i].kept = e.kept(list[i].kept)
	}
	return list
}

// kept is what the store keeps of a text that others hold.
func (e *env) kept(text string) string {
	if narrow, is := e.Store.(Narrow); is {
		return narrow.KeptText(text)
	}
	return text
}

// asStored is a run that was returned; as it is stored, where that may have other texts.
func (e *env) asStored(run store.Run) store.Run {
	if _, is := e.Store.(Narrow); is {
		return e.mustRun(run.ID)
	}
	return run
}

// names are poor texts of what is asked for by name.
func (e *env) names() []struct{ given, kept string } {
	list := e.poor()
	if _, is := e.Store.(Narrow); is {
		list = list[:len(list)-1]
	}
	return list
}

// poisoned calls with the value that has a poor text in one place after the other.
func poisoned[T any](e *env, value T, do func(field string, poisoned T)) {
	v := reflect.ValueOf(&value).Elem()
	each := func(name string, text reflect.Value) {
		was := text.String()
		for _, p := range e.poor()[:len(e.poor())-1] {
			text.SetString(p.given)
			do(fmt.Sprintf("%s %q", name, p.given), value)
		}
		text.SetString(was)
	}
	var walk func(name string, v reflect.Value)
	walk = func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			each(name, v)
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.String {
				was := reflect.ValueOf(v.Interface())
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
				each(name, v.Index(0))
				v.Set(was)
			}
		case reflect.Pointer:
			if v.Type().Elem().Kind() == reflect.String {
				v.Set(reflect.New(v.Type().Elem()))
				each(name, v.Elem())
				v.SetZero()
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(name+"."+v.Type().Field(i).Name, v.Field(i))
				}
			}
		}
	}
	walk("", v)
}

// wantTextRefused checks that nothing was done, by the caller's fault.
func (e *env) wantTextRefused(what string, err error) {
	e.Helper()
	list := store.FieldErrors(err)
	e.check(len(list) == 1 && list[0].Code == "text", "%s: error %v, want one about a text", what, err)
}

func textsOfJobs(e *env) {
	job := e.newJob()
	def := job.Definition()
	fields := 0
	poisoned(e, def, func(field string, bad store.Job) {
		fields++
		_, err := e.AddJob(e.ctx, bad, nil)
		e.wantTextRefused("AddJob with "+field, err)
		_, err = e.EditJob(e.ctx, job.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) {
			id, version := j.ID, j.Version
			*j = bad
			j.ID, j.Version = id, version
			return false, nil
		}})
		e.wantTextRefused("EditJob with "+field, err)
	})
	e.check(fields > 60, "only %d definitions", fields)
	want(e, "the job", e.mustJob(job.ID), job)
	jobs, err := e.Jobs(e.ctx, store.JobFilter{})
	e.must(err)
	want(e, "number of jobs", len(jobs), 1)
}

func textsOfGroups(e *env) {
	e.must(e.EnsureGroup(e.ctx, "app"))
	before := e.mustGroup("app")
	poisoned(e, store.Group{App: "app", Title: "title"}, func(field string, bad store.Group) {
		e.wantTextRefused("SaveGroup with "+field, e.SaveGroup(e.ctx, bad))
	})
	want(e, "the group", e.mustGroup("app"), before)
}

func textsOfTriggers(e *env) {
	job := e.newJob()
	at, move := e.far(1)
	poisoned(e, store.Trigger{}, func(field string, bad store.Trigger) {
		_, err := e.AddRun(e.ctx, job.ID, bad)
		e.wantTextRefused("AddRun with "+field, err)
		bad.At = at
		_, err = e.AddAhead(e.ctx, job.ID, bad, move)
		e.wantTextRefused("AddAhead with "+field, err)
	})
	want(e, "runs", len(e.runsOf(job.ID)), 0)
}

func textsOfChanges(e *env) {
	record, ok := e.Store.(store.ChangeRecord)
	if !ok {
		return // the rule is for stores that have a record
	}
	for _, p := range e.poor()[:len(e.poor())-1] {
		for _, c := range []store.Change{
			{Verb: p.given, Object: "user"}, {Verb: "login", Object: p.given}, {Verb: "login", Object: "user", ObjectID: p.given},
			{Verb: "login", Object: "user", App: p.given}, {Verb: "login", Object: "user", Before: p.given}, {Verb: "login", Object: "user", After: p.given},
		} {
			_, err := record.RecordChange(e.ctx, c)
			e.wantTextRefused(fmt.Sprintf("RecordChange of %+v", c), err)
		}
	}
}

func textsOfStarts(e *env) {
	o := e.owner("a")
	for _, p := range e.poor() {
		start := func(s *store.Start) {
			s.Address, s.BootID, s.Handler, s.Block, s.Param, s.Msg = "http://"+p.given, p.given, p.given, p.given, p.given, p.given
		}
		for _, knows := range []bool{false, true} {
			planned := o.planned(e.newJob())
			run := e.asStored(o.started(planned, start, func(s *store.Start) {
				if knows {
					s.Known = &planned
				}
			}))
			want(e, fmt.Sprintf("started with %q", p.given), []string{run.Address, run.BootID, run.Handler, run.Block, run.Param, run.TriggerMsg},
				[]string{"http://" + p.kept, p.kept, p.kept, p.kept, p.kept, p.kept})
			e.wantRun("after the start", run)
		}
		answer := o.tryStart(o.startOf(o.planned(e.newJob()), start, refused, func(s *store.Start) { s.HandleMsg = p.given }))
		answer.Run = e.asStored(answer.Run)
		want(e, "refused", answer.Run.State, store.StateRefused)
		want(e, "why", answer.Run.HandleMsg, p.kept)
		e.wantRun("after a refusal", answer.Run)
		parts := o.tryStart(o.startOf(o.planned(e.newJob()), start, func(s *store.Start) {
			s.Targets, s.TargetBoots = []string{s.Address, s.Address + "2"}, []string{p.given, p.given}
		}))
		parts.Run, parts.Siblings[0] = e.asStored(parts.Run), e.asStored(o.one(parts.Siblings))
		e.wantRun("part 0", parts.Run)
		e.wantRun("part 1", o.one(parts.Siblings))
		want(e, "where part 1 is", parts.Siblings[0].Address, "http://"+p.kept+"2")
	}
}

func textsOfResults(e *env) {
	o := e.owner("a")
	for _, p := range e.poor() {
		for _, state := range []store.State{store.StateSucceeded, store.StateFailed, store.StateTimedOut, store.StateKilled, store.StateSnoozed} {
			for _, knows := range []bool{false, true} {
				run, other := o.running(), o.running()
				bad := success(run)
				bad.State, bad.HandleMsg, bad.TriggerMsg, bad.Progress, bad.ProgressText = state, p.given, p.given, 50, p.given
				if knows {
					bad.Known = &run
				}
				ended := e.mustFinish(bad, success(other))
				want(e, "results that were accepted", len(ended), 2)
				got := e.mustRun(run.ID)
				e.check(got.HandleMsg == p.kept && got.ProgressText == p.kept && strings.HasSuffix(got.TriggerMsg, p.kept), "%v with %q: %+v", state, p.given, got)
				want(e, "as returned", ended[0], got)
			}
		}
	}
}

func textsOfProgress(e *env) {
	run := e.owner("a").running()
	for i, p := range e.poor() {
		e.mustProgress(progressOf(run, 10*i+1, p.given))
		want(e, fmt.Sprintf("progress of %q", p.given), e.mustRun(run.ID).ProgressText, p.kept)
	}
}

func textsOfRuns(e *env) {
	o := e.owner("a")
	for _, p := range e.poor() {
		p.given, p.kept = "x"+p.given, "x"+p.kept
		cancelled := o.planned(e.newJob())
		want(e, "reason of a cancelled run", e.mustKill(cancelled.ID, p.given).Reason, p.kept)
		killed := o.running()
		want(e, "KillReason", e.mustKill(killed.ID, p.given).KillReason, p.kept)
		run := o.running(to(remote))
		move := o.readdress(run, "http://"+p.given)
		move.BootID, move.Msg = p.given, p.given
		e.check(o.tryReaddress(move), "not readdressed to %q", p.given)
		run = e.mustRun(run.ID)
		want(e, "readdressed", []string{run.Address, run.BootID}, []string{"http://" + p.kept, p.kept})
		accept := accepted(run)
		accept.Msg, accept.BootID = p.given, "y"+p.given
		run = o.one(e.mustDispatched(accept))
		e.check(strings.HasSuffix(run.TriggerMsg, p.kept) && run.BootID == "y"+p.kept, "dispatched with %q", p.given)
		v := o.verdict(o.running(), store.StateLost)
		v.Msg = p.given
		e.check(strings.HasSuffix(o.one(e.mustSettle(v)).TriggerMsg, p.kept), "settled with %q", p.given)
		skip := o.skip(e.newJob())
		skip.Runs[0].Reason = p.given
		want(e, "reason of a record", e.asStored(o.one(o.claim(skip))).Reason, p.kept)
	}
}

func textsOfStops(e *env) {
	e.everyAlarm()
	o := e.owner("a")
	for _, p := range e.poor() {
		p.given, p.kept = "x"+p.given, "x"+p.kept
		job := e.newJob()
		plan := o.plan(job)
		plan.Next, plan.Stop = time.Time{}, p.given
		o.claim(plan)
		want(e, "why it has stopped", e.mustJob(job.ID).StopReason, p.kept)
		alarms := e.mustAlarms()
		want(e, "text of the alarm", alarms[len(alarms)-1].Text, e.kept(store.AlarmText(p.given)))
	}
}

func textsOfMarks(e *env) {
	e.everyAlarm()
	o := e.owner("a")
	run := o.failed(o.running())
	for _, p := range e.names() {
		id := e.mustAlarms()[0].ID
		e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: id, Rule: p.given}},
			Jobs: []store.JobTold{{JobID: run.JobID, Shard: run.Shard, Rule: p.given, At: e.now}}})
		told := e.mustAlarms()[0].Told
		want(e, "who has told", told[len(told)-1], p.kept)
		there := false
		for _, t := range e.mustTold(run.JobID) {
			there = there || t.Rule == p.kept
		}
		e.check(there, "nothing is told by %q: %+v", p.kept, e.mustTold(run.JobID))
	}
}

func textsOfAnswers(e *env) {
	run := e.owner("a").handedOver()
	for _, p := range e.poor() {
		ask := e.mustAsk("b", run, 1)
		e.mustAnswer(ask.ID, store.Answer{Content: p.given, Refusal: p.given})
		got, _ := e.mustLogAnswer(ask.ID)
		want(e, "answer", got, store.Answer{Content: p.kept, Refusal: p.kept})
	}
}

func textsOfRegistrations(e *env) {
	for i, p := range e.names() {
		app := fmt.Sprint("app", i, p.given)
		for range 2 {
			e.put(store.Registration{App: app, Address: "http://" + p.given, BootID: p.given, Capabilities: []string{p.given}}, registered("good", fmt.Sprint("http://", i)))
		}
		reg := e.mustAddresses(fmt.Sprint("app", i, p.kept), time.Hour)
		e.check(len(reg) == 1 && reg[0].Address == "http://"+p.kept && reg[0].BootID == p.kept && reg[0].Capabilities[0] == p.kept, "registered with %q: %+v", p.given, reg)
		e.drop(store.Registration{App: app, Address: "http://" + p.given, BootID: p.given})
		want(e, "registrations after the drop", len(e.mustAddresses(fmt.Sprint("app", i, p.kept), time.Hour)), 0)
	}
	want(e, "good ones", len(e.mustAddresses("good", time.Hour)), len(e.names()))
}

func textsOfAttachments(e *env) {
	for _, p := range e.poor() {
		want := []store.Attachment{{App: p.kept, Handlers: []string{p.kept}}}
		given := []store.Attachment{{App: p.given, Handlers: []string{p.given}}}
		v, err := e.Join(e.ctx, store.Node{ID: "n", Incarnation: "n-1", Attached: given})
		e.must(err)
		e.check(reflect.DeepEqual(e.mustNode(v, "n-1").Attached, want), "joined with %q: %+v", p.given, e.mustNode(v, "n-1").Attached)
		v, err = e.Beat(e.ctx, "n-1", given)
		e.must(err)
		e.check(reflect.DeepEqual(e.mustNode(v, "n-1").Attached, want), "beat with %q: %+v", p.given, e.mustNode(v, "n-1").Attached)
		e.must(e.Leave(e.ctx, "n-1"))
	}
}

func textsOfRules(e *env) {
	for i, p := range e.poor() {
		p.given, p.kept = "x"+p.given, "x"+p.kept
		for _, inc := range []string{"n-1", "m-1"} {
			_, err := e.Join(e.ctx, store.Node{ID: "n", Incarnation: inc})
			e.must(err)
		}
		key := fmt.Sprint("key-", i)
		k := store.RuleKeeper{App: "app", Node: p.given, Incarnation: "n-1", Rules: []store.AlarmRule{{Key: key, Name: p.given, Causes: []string{"failed"}}}}
		if _, narrow := e.Store.(Narrow); !narrow { // what is asked for by name is no other there
			k.Rules[0].Apps, k.Rules[0].Jobs = []string{p.given}, []string{p.given}
		}
		for range 2 {
			_, err := e.KeepRules(e.ctx, k)
			e.must(err)
		}
		rules := e.mustRules()
		e.check(len(rules) == 1 && rules[0].Name == p.kept && (k.Rules[0].Apps == nil || rules[0].Apps[0] == p.kept && rules[0].Jobs[0] == p.kept), "kept with %q: %+v", p.given, rules)
		others, err := e.KeepRules(e.ctx, store.RuleKeeper{App: "app", Node: "m", Incarnation: "m-1"})
		e.must(err)
		e.check(len(others) == 1 && others[0].Node == p.kept && others[0].Rules[0].Name == p.kept, "the node %q: %+v", p.given, others)
		for _, inc := range []string{"n-1", "m-1"} {
			e.must(e.Leave(e.ctx, inc))
		}
		k.Rules[0].Key = key + "-gone"
		_, err = e.KeepRules(e.ctx, k)
		e.must(err)
		rules = e.mustRules()
		e.check(len(rules) == 1 && rules[0].Key == k.Rules[0].Key, "another rule of the same name %q: %+v", p.given, rules)
		_, err = e.DropRules(e.ctx, e.clock().Add(time.Hour))
		e.must(err)
		_, err = e.DropRules(e.ctx, e.clock().AddDate(0, 0, 3))
		e.must(err)
		want(e, "rules that are dropped", e.mustRules(), nil)
	}
}

// textsOfNodes are the names of routers, zones and a release, as programs say them.
func textsOfNodes(e *env) {
	zones, knows := e.Store.(store.ZoneNoter)
	process, says := e.Store.(store.ProcessNoter)
	for _, p := range e.poor() {
		v, err := e.Join(e.ctx, store.Node{ID: "n", Incarnation: "n-1", Routers: []string{p.given, "b"}})
		e.must(err)
		want(e, fmt.Sprintf("routers %q of a node that joins", p.given), e.mustNode(v, "n-1").Routers, []string{p.kept, "b"})
		if knows {
			e.must(zones.NoteUnknownZones(e.ctx, "n-1", []string{p.given, "b"}))
		}
		if says {
			e.must(process.NoteProcess(e.ctx, "n-1", store.Process{Version: p.given}))
		}
		for range 2 {
			n := e.mustNode(e.mustBeat("n-1"), "n-1")
			want(e, fmt.Sprintf("routers %q", p.given), n.Routers, []string{p.kept, "b"})
			if knows {
				want(e, fmt.Sprintf("zones %q", p.given), n.UnknownZones, []string{p.kept, "b"})
			}
			if says {
				want(e, fmt.Sprintf("the release %q", p.given), n.Version, e.kept(store.Shown(p.given, store.MostVersion)))
			}
		}
		e.must(e.Leave(e.ctx, "n-1"))
	}
}

func textsOfQuestions(e *env) {
	run := e.owner("a").handedOver()
	for _, p := range e.poor() {
		p.given, p.kept = "x"+p.given, "x"+p.kept
		ask, err := e.AskLog(e.ctx, store.Ask{Incarnation: "b", Run: run, Route: p.given, Addresses: []string{"http://" + p.given, "b"}})
		e.must(err)
		asks := e.mustInbox("b").Asks
		got := asks[len(asks)-1]
		want(e, fmt.Sprintf("a question for %q", p.given), []any{got.ID, got.Route, got.Addresses}, []any{ask.ID, p.kept, []string{"http://" + p.kept, "b"}})
		e.mustAnswer(ask.ID, store.Answer{Content: "b"})
	}
}

func textsOfTroubles(e *env) {
	noter, ok := e.Store.(store.TroubleNoter)
	if !ok {
		return
	}
	e.owner("a")
	e.mustKeep("of", troublesOnly("r", nil, nil))
	for i, p := range e.poor() {
		p.given, p.kept = fmt.Sprint(i, p.given), fmt.Sprint(i, p.kept)
		mine, err := noter.NoteTroubles(e.ctx, store.TroubleNotes{Incarnation: "a-1", List: []store.TroubleNote{
			{Cause: store.TroubleCause(p.given), App: "app", Address: p.given, Text: p.given}, {Cause: store.TroubleRefused, App: "app" + p.kept, Text: "good"},
		}})
		e.must(err)
		want(e, fmt.Sprintf("whose %q is", p.given), mine, []bool{true, true})
		there := 0
		for _, a := range e.mustAlarms() {
			if string(a.Trouble) == p.kept && a.Address == p.kept && a.Text == p.kept || a.App == "app"+p.kept && a.Text == "good" {
				there++
			}
		}
		want(e, fmt.Sprintf("alarms of %q", p.given), there, 2)
	}
}

// textsOfMutes: who asks for a mute is told what is wrong with it, and what was muted stays as it was.
func textsOfMutes(e *env) {
	keeper, ok := e.Store.(store.MuteKeeper)
	if !ok {
		return
	}
	until := e.storeNow().Add(time.Hour)
	_, err := keeper.PutMute(e.ctx, store.Mute{Key: "good", App: "app", Until: until, Note: "good"})
	e.must(err)
	for _, p := range e.poor()[:len(e.poor())-1] {
		for _, m := range []store.Mute{{Key: p.given, App: "app"}, {Key: "good", App: p.given}, {Key: "good", App: "app", Note: p.given}} {
			m.Until = until
			_, err := keeper.PutMute(e.ctx, m)
			e.wantTextRefused(fmt.Sprintf("a mute of %q", p.given), err)
		}
		err := keeper.DropMute(e.ctx, p.given)
		e.check(errors.Is(err, store.ErrNotFound), "the mute %q is ended: %v", p.given, err)
		_, err = keeper.PutMute(store.WithActor(e.ctx, "x"+p.given), store.Mute{Key: "of-somebody", Until: until})
		e.must(err)
	}
	list, err := keeper.Mutes(e.ctx)
	e.must(err)
	e.check(len(list) == 2 && list[0].Key == "good" && list[0].Note == "good", "muted is %+v", list)
}

func textsOfAppTokens(e *env) {
	keeper, ok := e.Store.(store.AppTokenKeeper)
	if !ok {
		return
	}
	expires, hash := e.storeNow().Add(time.Hour), strings.Repeat("h", 32)
	for _, p := range e.poor()[:len(e.poor())-1] {
		for _, t := range []store.AppToken{{Name: p.given, Apps: []string{"app"}}, {Name: "good", Apps: []string{"app", p.given}}} {
			t.Hash, t.Expires = hash, expires
			_, err := keeper.AddAppToken(e.ctx, t)
			e.wantTextRefused(fmt.Sprintf("a token with %q", p.given), err)
		}
		err := keeper.RemoveAppToken(e.ctx, p.given)
		e.check(errors.Is(err, store.ErrNotFound), "the token %q is removed: %v", p.given, err)
		e.must(keeper.UseAppToken(e.ctx, p.given, hash))
		e.must(keeper.UseAppToken(e.ctx, "good", p.given))
	}
	list, err := keeper.AppTokens(e.ctx)
	e.must(err)
	want(e, "number of tokens", len(list), 0)
}

// textsOfNobody: a name that nobody can have is that of nobody, and no fault of the store.
func textsOfNobody(e *env) {
	accounts, ok := e.Store.(store.AccountStore)
	if !ok {
		return
	}
	for _, p := range e.poor()[:len(e.poor())-1] {
		_, err := accounts.User(e.ctx, p.given)
		e.check(errors.Is(err, store.ErrNotFound), "the user %q: %v", p.given, err)
		err = accounts.SaveSettings(e.ctx, p.given, "{}")
		e.check(errors.Is(err, store.ErrNotFound), "settings of the user %q: %v", p.given, err)
		_, err = accounts.Users(e.ctx, p.given, 10)
		e.must(err)
		list, err := accounts.Sessions(e.ctx, p.given, store.SessionLimits{Idle: time.Hour, Most: time.Hour})
		e.must(err)
		want(e, fmt.Sprintf("sessions of %q", p.given), len(list), 0)
	}
}
