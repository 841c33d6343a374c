package mutant

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/xxljob/xxljob/store"
)

// logMutants break rules about questions for lines of logs.
func logMutants() []Mutant {
	return []Mutant{
		{"TheLastAnswerStays", func(s whole) any { return &lastAnswer{st: s, answers: map[int64]store.Answer{}} },
			[]string{"Log/TheFirstAnswerStays"}},
		{"AsksGoToAll", inboxOf(func(asks []store.Ask, all []store.Ask) []store.Ask { return all }),
			[]string{"Log/InboxHoldsOpenAsksInOrder"}},
		{"AsksNewestFirst", inbox(func(in store.Inbox) store.Inbox { slices.Reverse(in.Asks); return in }),
			[]string{"Log/InboxHoldsOpenAsksInOrder", "Log/LimitHoldsForAsks"}},
		{"AnsweredAsksStay", inboxOf(func(asks []store.Ask, all []store.Ask) []store.Ask {
			return slices.DeleteFunc(all, func(a store.Ask) bool { return a.Incarnation != "b" })
		}), []string{"Log/InboxHoldsOpenAsksInOrder", "Faults/AnswerLog"}},
		{"AsksOfTheFirstPageOnly", func(s whole) any { return pagedAsks{s} }, []string{"Log/AsksAreWhateverAfterIs"}},
		{"AsksAboutAnything", func(s whole) any { return lenientAsks{s} }, []string{"Log/AskForAnUnknownRun"}},
		{"UnknownAsksAreErrors", func(s whole) any { return strictAnswers{s} }, []string{"Log/AnswerToAnUnknownAsk"}},
		{"UnknownAsksAreOpen", func(s whole) any { return openAnswers{s} }, []string{"Log/AnswerToAnUnknownAsk"}},
	}
}

// lastAnswer returns the last answer to a question.
type lastAnswer struct {
	st      whole
	mu      sync.Mutex
	answers map[int64]store.Answer
}

func (l *lastAnswer) AnswerLog(ctx context.Context, id int64, a store.Answer) error {
	l.mu.Lock()
	l.answers[id] = a
	l.mu.Unlock()
	return l.st.AnswerLog(ctx, id, a)
}

func (l *lastAnswer) LogAnswer(ctx context.Context, id int64) (store.Answer, bool, error) {
	_, answered, err := l.st.LogAnswer(ctx, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[id], answered, err
}

// inboxOf changes the questions in an inbox, seeing all that were asked.
func inboxOf(change func(asks, all []store.Ask) []store.Ask) func(whole) any {
	return func(s whole) any { return &askKeeper{st: s, change: change} }
}

type askKeeper struct {
	st     whole
	change func(asks, all []store.Ask) []store.Ask
	mu     sync.Mutex
	all    []store.Ask
}

func (k *askKeeper) AskLog(ctx context.Context, ask store.Ask) (store.Ask, error) {
	ask, err := k.st.AskLog(ctx, ask)
	if err == nil {
		k.mu.Lock()
		k.all = append(k.all, ask)
		k.mu.Unlock()
	}
	return ask, err
}

func (k *askKeeper) Inbox(ctx context.Context, incarnation string, after int64, limit int) (store.Inbox, error) {
	in, err := k.st.Inbox(ctx, incarnation, after, limit)
	k.mu.Lock()
	defer k.mu.Unlock()
	in.Asks = k.change(in.Asks, slices.Clone(k.all))
	return in, err
}

type pagedAsks struct{ st whole }

func (p pagedAsks) Inbox(ctx context.Context, incarnation string, after int64, limit int) (store.Inbox, error) {
	in, err := p.st.Inbox(ctx, incarnation, after, limit)
	if after > 0 {
		in.Asks = nil
	}
	return in, err
}

type lenientAsks struct{ st whole }

func (l lenientAsks) AskLog(ctx context.Context, ask store.Ask) (store.Ask, error) {
	asked, err := l.st.AskLog(ctx, ask)
	if errors.Is(err, store.ErrNotFound) {
		return ask, nil
	}
	return asked, err
}

type strictAnswers struct{ st whole }

func (s strictAnswers) AnswerLog(ctx context.Context, id int64, a store.Answer) error {
	if _, _, err := s.st.LogAnswer(ctx, id); err != nil {
		return err
	}
	return s.st.AnswerLog(ctx, id, a)
}

type openAnswers struct{ st whole }

func (o openAnswers) LogAnswer(ctx context.Context, id int64) (store.Answer, bool, error) {
	a, answered, err := o.st.LogAnswer(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return a, answered, err
}
