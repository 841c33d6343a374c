package memory

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// question is a question for lines of a run's log, and its answer.
type question struct {
	id, run     int64
	incarnation string
	from        int
	asked       time.Time // with a monotonic reading
	answer      *store.Answer
}

// askKept is how long a question is kept.
const askKept = time.Minute

// dropAsks drops the questions that are too old. Nothing ticks for it: every method
// that looks at questions calls it first.
func (s *Store) dropAsks() {
	i := 0
	for i < len(s.asks) && time.Since(s.asks[i].asked) >= askKept {
		i++
	}
	s.asks = slices.Delete(s.asks, 0, i)
}

// ask returns a question, or nil.
func (s *Store) ask(id int64) *question {
	s.dropAsks()
	if i := slices.IndexFunc(s.asks, func(q *question) bool { return q.id == id }); i >= 0 {
		return s.asks[i]
	}
	return nil
}

// asksOf returns the first open questions put to the incarnation.
func (s *Store) asksOf(incarnation string, limit int) []store.Ask {
	s.dropAsks()
	var out []store.Ask
	for _, q := range s.asks {
		if len(out) >= limit {
			break
		}
		r := s.runs.find(q.run)
		if q.incarnation == incarnation && q.answer == nil && r != nil {
			out = append(out, store.Ask{ID: q.id, Incarnation: incarnation, Run: r.snapshot(), FromLine: q.from})
		}
	}
	return out
}

// AskLog puts a question to an incarnation.
func (s *Store) AskLog(ctx context.Context, ask store.Ask) (store.Ask, error) {
	if err := s.begin(ctx); err != nil {
		return store.Ask{}, err
	}
	defer s.done()
	r := s.runs.find(ask.Run.ID)
	if r == nil {
		return store.Ask{}, failed(store.ErrNotFound, "ask for the log of run %d", ask.Run.ID)
	}
	s.dropAsks()
	s.lastAsk++
	ask.ID, ask.Run = s.lastAsk, r.snapshot()
	s.asks = append(s.asks, &question{id: ask.ID, run: r.ID, incarnation: ask.Incarnation, from: ask.FromLine, asked: time.Now()})
	s.tellNode(ask.Incarnation)
	return ask, nil
}

// AnswerLog answers a question that has no answer.
func (s *Store) AnswerLog(ctx context.Context, id int64, answer store.Answer) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	if q := s.ask(id); q != nil && q.answer == nil {
		q.answer = &answer
		s.tellEnded()
	}
	return nil
}

// LogAnswer returns the answer to a question.
func (s *Store) LogAnswer(ctx context.Context, id int64) (answer store.Answer, answered bool, err error) {
	if err := s.look(ctx); err != nil {
		return answer, false, err
	}
	defer s.mu.Unlock()
	q := s.ask(id)
	switch {
	case q == nil:
		return answer, false, failed(store.ErrNotFound, "answer to question %d", id)
	case q.answer == nil:
		return answer, false, nil
	}
	return *q.answer, true, nil
}
