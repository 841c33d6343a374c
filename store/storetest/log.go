package storetest

import (
	"slices"
	"strings"

	"github.com/xxljob/xxljob/store"
)

// logCases are about questions for lines of logs. That they are dropped after a
// minute is for the tests of a store, which can turn its clock.
func logCases() []testCase {
	return []testCase{
		{"AskGivesAnID", askID},
		{"AskForAnUnknownRun", askUnknown},
		{"InboxHoldsOpenAsksInOrder", askInbox},
		{"InboxShowsTheRunAsItIs", askRun},
		{"LimitHoldsForAsks", askLimit},
		{"AsksAreWhateverAfterIs", askAfter},
		{"AsksToAnybody", askAnybody},
		{"TheFirstAnswerStays", answerFirst},
		{"OfConcurrentAnswersOneStays", answerRace},
		{"AnswersAreKeptWhole", answerWhole},
		{"AnswerToAnUnknownAsk", answerUnknown},
	}
}

// mustAsk asks for a run's log.
func (e *env) mustAsk(incarnation string, run store.Run, from int) store.Ask {
	e.Helper()
	ask, err := e.AskLog(e.ctx, store.Ask{Incarnation: incarnation, Run: run, FromLine: from})
	e.must(err)
	return ask
}

func (e *env) mustAnswer(id int64, a store.Answer) {
	e.Helper()
	e.must(e.AnswerLog(e.ctx, id, a))
}

func (e *env) mustLogAnswer(id int64) (store.Answer, bool) {
	e.Helper()
	a, answered, err := e.LogAnswer(e.ctx, id)
	e.must(err)
	return a, answered
}

// askIDs returns the ids of questions in their order.
func askIDs(asks []store.Ask) []int64 {
	var list []int64
	for _, a := range asks {
		list = append(list, a.ID)
	}
	return list
}

func askID(e *env) {
	run := e.owner("a").handedOver()
	last := int64(0)
	for _, from := range []int{5, 1<<31 - 1, -10_000} {
		ask := e.mustAsk("b", run, from)
		e.check(ask.ID > last, "question %d after %d", ask.ID, last)
		want(e, "question", ask, store.Ask{ID: ask.ID, Incarnation: "b", Run: run, FromLine: from})
		last = ask.ID
	}
	for _, addresses := range [][]string{nil, {"http://10.0.0.1", "local://b"}} {
		ask := store.Ask{Incarnation: "b", Run: run, Route: "CANARY", Addresses: addresses}
		got, err := e.AskLog(e.ctx, ask)
		e.must(err)
		ask.ID = got.ID
		want(e, "question for an address", got, ask)
		list := e.mustInbox("b").Asks
		want(e, "question for an address in the inbox", list[len(list)-1], ask)
	}
	e.wantRun("after it", run)
}

func askUnknown(e *env) {
	e.owner("a")
	_, err := e.AskLog(e.ctx, store.Ask{Incarnation: "b", Run: store.Run{ID: 1<<53 - 1}, FromLine: 1})
	e.wantErr("a question about an unknown run", err, store.ErrNotFound)
	want(e, "questions", len(e.mustInbox("b").Asks), 0)
}

func askInbox(e *env) {
	o := e.owner("a")
	run := o.handedOver()
	first, other, second, third := e.mustAsk("b", run, 1), e.mustAsk("c", run, 1), e.mustAsk("b", o.running(), 2), e.mustAsk("b", run, 3)
	got := e.mustInbox("b")
	want(e, "questions", got.Asks, []store.Ask{first, second, third})
	want(e, "runs beside them", ids(got.Runs), []int64{run.ID})
	want(e, "questions to another", e.mustInbox("c").Asks, []store.Ask{other})
	want(e, "questions to the asker", e.mustInbox("a"), store.Inbox{})
	e.mustAnswer(second.ID, store.Answer{Refusal: "none"})
	want(e, "questions after one was answered", askIDs(e.mustInbox("b").Asks), []int64{first.ID, third.ID})
}

func askRun(e *env) {
	o := e.owner("a")
	run := o.handedOver()
	ask := e.mustAsk("b", store.Run{ID: run.ID, App: "spoilt"}, 1)
	want(e, "run of a new question", ask.Run, run)
	e.mustTake("b", run.ID)
	ended := o.one(e.mustFinish(success(e.mustRun(run.ID))))
	got := e.mustInbox("b")
	want(e, "questions about an ended run", askIDs(got.Asks), []int64{ask.ID})
	want(e, "run of a question", got.Asks[0].Run, ended)
	want(e, "runs and kills beside it", len(got.Runs)+len(got.Kills), 0)
}

func askLimit(e *env) {
	run := e.owner("a").handedOver()
	var all []int64
	for range 5 {
		all = append(all, e.mustAsk("b", run, 1).ID)
	}
	in, err := e.Inbox(e.ctx, "b", 0, 2)
	e.must(err)
	want(e, "questions in an inbox of 2", askIDs(in.Asks), all[:2])
	want(e, "runs beside them", ids(in.Runs), []int64{run.ID})
}

func askAfter(e *env) {
	run := e.owner("a").handedOver()
	ask := e.mustAsk("b", run, 1)
	in, err := e.Inbox(e.ctx, "b", 1<<53-1, 2)
	e.must(err)
	want(e, "questions behind the last run", askIDs(in.Asks), []int64{ask.ID})
	want(e, "runs behind the last", len(in.Runs), 0)
}

// askAnybody: nobody has to be there to be asked.
func askAnybody(e *env) {
	run := e.owner("a").running()
	ask := e.mustAsk("nobody", run, 1)
	want(e, "questions to nobody", askIDs(e.mustInbox("nobody").Asks), []int64{ask.ID})
}

func answerFirst(e *env) {
	run := e.owner("a").handedOver()
	ask, other := e.mustAsk("b", run, 1), e.mustAsk("b", run, 1)
	got, answered := e.mustLogAnswer(ask.ID)
	want(e, "answer before any", got, store.Answer{})
	want(e, "answered before any", answered, false)
	first := store.Answer{ToLine: 2, Content: "one\ntwo\n"}
	e.mustAnswer(ask.ID, first)
	for range 2 {
		got, answered = e.mustLogAnswer(ask.ID)
		want(e, "answer", got, first)
		want(e, "answered", answered, true)
		e.mustAnswer(ask.ID, store.Answer{Refusal: "second"})
	}
	_, answered = e.mustLogAnswer(other.ID)
	want(e, "another question is answered", answered, false)
}

func answerRace(e *env) {
	ask := e.mustAsk("b", e.owner("a").handedOver(), 1)
	var calls []func()
	errs, seen := make([]error, 8), make([]store.Answer, 8)
	for i := range errs {
		calls = append(calls, func() {
			errs[i] = e.AnswerLog(e.ctx, ask.ID, store.Answer{ToLine: i + 1})
			if errs[i] == nil {
				seen[i], _, errs[i] = e.LogAnswer(e.ctx, ask.ID)
			}
		})
	}
	e.race(calls...)
	for _, err := range errs {
		e.must(err)
	}
	last, _ := e.mustLogAnswer(ask.ID)
	e.check(!slices.ContainsFunc(seen, func(a store.Answer) bool { return a != last }), "answers %+v, at last %+v", seen, last)
}

func answerWhole(e *env) {
	run := e.owner("a").handedOver()
	for _, a := range []store.Answer{
		{},
		{ToLine: 1<<31 - 1, IsEnd: true, Content: "é\t\u4e16\n"},
		{ToLine: 1, Content: strings.Repeat("x", 1<<20-1) + "\n"},
		{Refusal: "the app is not attached"},
	} {
		ask := e.mustAsk("b", run, 1)
		e.mustAnswer(ask.ID, a)
		got, answered := e.mustLogAnswer(ask.ID)
		e.check(answered && got == a, "answer %.200v, want %.200v", got, a)
	}
}

func answerUnknown(e *env) {
	last := e.mustAsk("b", e.owner("a").handedOver(), 1).ID
	e.mustAnswer(last+1000, store.Answer{Content: "x"})
	_, answered, err := e.LogAnswer(e.ctx, last+1000)
	e.wantErr("the answer to an unknown question", err, store.ErrNotFound)
	want(e, "answered", answered, false)
	_, answered = e.mustLogAnswer(last)
	want(e, "a question that was not meant is answered", answered, false)
}
