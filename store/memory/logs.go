package memory

// Lines of runs' logs: pages, which are dropped with their runs, and questions to the node that
// has the lines.

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/xxljob/xxljob/store"
)

var _ store.LogStore = (*Store)(nil)

// Lines of runs' logs, in pages. They are dropped with their runs.

// logPages are the pages of one run, in order of their lines.
type logPages []store.LogPage

// from returns where the pages begin that have the line, or a later one.
func (l logPages) from(line int) int {
	return sort.Search(len(l), func(i int) bool { return l[i].LastLine >= line })
}

// last is the number of the last line, zero for none.
func (l logPages) last() int {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].LastLine
}

// AddLogPages stores pages of runs.
func (s *Store) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) (refused []int64, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	if len(pages) > store.MostLogPages {
		return nil, fmt.Errorf("memory: add pages of logs: %d of them, at most %d", len(pages), store.MostLogPages)
	}
	full, seen := map[logDay]bool{}, map[int64]bool{}
	for i := range pages {
		if r := s.runs.find(pages[i].RunID); r != nil && !r.hasPage(pages[i].FirstLine) {
			day := dayOf(r)
			if _, known := full[day]; !known {
				full[day] = r.job.logged[day.day] >= jobBytes
			}
			if (full[day] || s.logs >= s.keep.logs) && !pages[i].Notice {
				if !seen[r.ID] {
					refused = append(refused, r.ID)
				}
				seen[r.ID] = true
				continue
			}
			s.addPage(r, pages[i], day.day)
		}
	}
	return refused, nil
}

// logDay is what pages are counted by.
type logDay struct{ job, day int64 }

// dayOf is the day, since 1970, on which a run was planned.
func dayOf(r *run) logDay {
	return logDay{r.job.id, r.plannedAt().Unix() / int64(24*time.Hour/time.Second)}
}

// place is where the page belongs that begins at the line.
func (l logPages) place(first int) int {
	return sort.Search(len(l), func(i int) bool { return l[i].FirstLine >= first })
}

// hasPage reports whether there is a page that begins at the line.
func (r *run) hasPage(first int) bool {
	pages := r.extra().pages
	i := pages.place(first)
	return i < len(pages) && pages[i].FirstLine == first
}

// addPage keeps a page of which there is none that begins where it does.
func (s *Store) addPage(r *run, p store.LogPage, day int64) {
	x := r.own()
	p.Content = copied(p.Content)
	x.pages = slices.Insert(x.pages, x.pages.place(p.FirstLine), p)
	if r.job.logged == nil {
		r.job.logged = map[int64]int64{}
	}
	r.job.logged[day] += int64(len(p.Content))
	s.logs += pageBytes(&p)
}

// pageBytes is the memory that a page takes.
func pageBytes(p *store.LogPage) int64 { return int64(len(p.Content)) + 128 }

// dropPages forgets the pages of a run that is evicted.
func (s *Store) dropPages(r *run) {
	pages := r.extra().pages
	if len(pages) == 0 {
		return
	}
	j, day := r.job, dayOf(r).day
	for i := range pages {
		j.logged[day] -= int64(len(pages[i].Content))
		s.logs -= pageBytes(&pages[i])
	}
	if j.logged[day] == 0 {
		delete(j.logged, day)
	}
	r.own().pages = nil
}

// LogPages returns pages of a run.
func (s *Store) LogPages(ctx context.Context, runID int64, fromLine, limit int) (pages []store.LogPage, last int, err error) {
	if err := s.look(ctx); err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	r := s.runs.find(runID)
	if r == nil {
		return nil, 0, nil
	}
	kept := r.extra().pages
	last = kept.last()
	if fromLine < 0 {
		fromLine = last + 1 + fromLine
	}
	at := kept.from(fromLine)
	for _, p := range kept[at:min(at+max(limit, 0), len(kept))] {
		p.Content = copied(p.Content)
		p.Notice = false
		pages = append(pages, p)
	}
	return pages, last, nil
}

// question is a question for lines of a run's log, and its answer.
type question struct {
	id, run     int64
	incarnation string
	from        int
	route       string
	addresses   []string
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
			out = append(out, store.Ask{ID: q.id, Incarnation: incarnation, Run: r.snapshot(), FromLine: q.from, Route: q.route, Addresses: slices.Clone(q.addresses)})
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
	s.asks = append(s.asks, &question{id: ask.ID, run: r.ID, incarnation: ask.Incarnation, from: ask.FromLine, route: store.PlainText(ask.Route), addresses: plain(ask.Addresses), asked: time.Now()})
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
		answer.Content, answer.Refusal = store.PlainText(answer.Content), store.PlainText(answer.Refusal)
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
