package mutant

import (
	"context"
	"slices"
	"sync"

	"github.com/xxljob/xxljob/store"
)

// logPageMutants break rules about pages of logs.
func logPageMutants() []Mutant {
	added := func(change func(*bentPages, []store.LogPage) []store.LogPage) func(whole) any {
		return func(s whole) any {
			return &bentPages{st: s, seen: map[int64]int{}, add: change}
		}
	}
	most := func(change func(int64) int64) func(whole) any {
		return func(s whole) any {
			return &bentPages{st: s, most: change}
		}
	}
	asked := func(change func(from, limit int) (int, int)) func(whole) any {
		return func(s whole) any {
			return &bentPages{st: s, ask: change}
		}
	}
	read := func(change func([]store.LogPage, int) ([]store.LogPage, int)) func(whole) any {
		return func(s whole) any {
			return &bentPages{st: s, read: change}
		}
	}
	return []Mutant{
		{"PagesNewestFirst", read(func(l []store.LogPage, last int) ([]store.LogPage, int) { slices.Reverse(l); return l, last }), []string{"Log/PagesInOrder", "Log/SoManyPagesAtOnce"}},
		{"PagesOfAnEndedRunAreRefused", func(s whole) any { return &strictPages{s} }, []string{"Log/PagesInOrder"}},
		{"TheLastLineOfWhatIsReturned", read(func(l []store.LogPage, last int) ([]store.LogPage, int) {
			if len(l) > 0 {
				last = l[len(l)-1].LastLine
			}
			return l, last
		}), []string{"Log/PagesFromALine", "Log/PagesFromTheEnd"}},
		{"NoLastLineWithoutPages", read(func(l []store.LogPage, last int) ([]store.LogPage, int) { return l, min(last, len(l)<<31) }), []string{"Log/PagesFromALine"}},
		{"PagesFromTheNext", asked(func(from, limit int) (int, int) {
			if from > 1 {
				from++
			}
			return from, limit
		}), []string{"Log/PagesFromALine"}},
		{"PagesFromTheFirst", asked(func(from, limit int) (int, int) { return min(from, 1), limit }), []string{"Log/PagesFromALine"}},
		{"PagesWithoutLimit", asked(func(from, limit int) (int, int) { return from, 1000 }), []string{"Log/PagesFromALine", "Log/PagesFromTheEnd"}},
		{"TheEndIsTheBeginning", asked(func(from, limit int) (int, int) { return max(from, 0), limit }), []string{"Log/PagesFromTheEnd"}},
		{"TheEndIsALineShort", asked(func(from, limit int) (int, int) {
			if from < -1 {
				from++
			}
			return from, limit
		}), []string{"Log/PagesFromTheEnd"}},
		{"TheLastPageStays", func(s whole) any {
			return &lastPages{st: s, pages: map[[2]int64]store.LogPage{}}
		}, []string{"Log/APageIsKeptAsItCame"}},
		{"PagesAreTheCallers", func(s whole) any {
			return &lastPages{st: s, pages: map[[2]int64]store.LogPage{}, first: true}
		}, []string{"Log/APageIsKeptAsItCame"}},
		{"UnknownRunsAreRefused", func(s whole) any { return &strictPages{s} }, []string{"Log/PagesOfAnUnknownRun"}},
		{"AJobHasNoBound", most(func(int64) int64 { return 1 << 40 }), []string{"Log/AJobHasSoManyBytes", "Log/APageIsCountedOnce"}},
		{"TheBoundIsForGood", most(func(n int64) int64 { return min(n, 9) }), []string{"Log/AJobHasSoManyBytes"}},
		{"NoticesAreRefused", added(func(_ *bentPages, l []store.LogPage) []store.LogPage {
			for i := range l {
				l[i].Notice = false
			}
			return l
		}), []string{"Log/AJobHasSoManyBytes"}},
		{"RepeatsAreCounted", added(func(b *bentPages, l []store.LogPage) []store.LogPage {
			for i := range l {
				b.seen[l[i].RunID]++
				l[i].FirstLine, l[i].LastLine = b.seen[l[i].RunID], b.seen[l[i].RunID]
			}
			return l
		}), []string{"Log/APageIsCountedOnce"}},
		{"RepeatsAreRefused", func(s whole) any {
			return &forgetfulPages{st: s, bytes: map[int64]int64{}}
		}, []string{"Log/APageThatIsThereIsNotRefused", "Drop/ThePagesOfALogGoWithItsRun"}},
		{"PagesAreText", added(func(_ *bentPages, l []store.LogPage) []store.LogPage {
			for i := range l {
				l[i].Content, _, _ = cutAtZero(l[i].Content)
			}
			return l
		}), []string{"Log/PagesAreKeptWhole"}},
		{"LinesOf16Bits", read(func(l []store.LogPage, last int) ([]store.LogPage, int) { return l, last & 0xFFFF }), []string{"Log/PagesAreKeptWhole"}},
		{"AnyNumberOfPages", func(s whole) any { return &patientPages{s} }, []string{"Log/SoManyPagesAtOnce"}},
		{"ForgetsPages", added(func(_ *bentPages, l []store.LogPage) []store.LogPage { return l[:min(len(l), 1)] }), []string{"Log/SoManyPagesAtOnce", "Log/PagesOfWritersAtOnce"}},
	}
}

func cutAtZero(b []byte) (before, after []byte, found bool) {
	if i := slices.Index(b, 0); i >= 0 {
		return b[:i], b[i:], true
	}
	return b, nil, false
}

// bentPages changes pages and questions.
type bentPages struct {
	st   whole
	mu   sync.Mutex
	seen map[int64]int
	add  func(*bentPages, []store.LogPage) []store.LogPage
	most func(int64) int64
	ask  func(from, limit int) (int, int)
	read func([]store.LogPage, int) ([]store.LogPage, int)
}

func (b *bentPages) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) ([]int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.add != nil {
		pages = b.add(b, slices.Clone(pages))
	}
	if b.most != nil {
		jobBytes = b.most(jobBytes)
	}
	return b.st.AddLogPages(ctx, pages, jobBytes)
}

func (b *bentPages) LogPages(ctx context.Context, runID int64, from, limit int) ([]store.LogPage, int, error) {
	if b.ask != nil {
		from, limit = b.ask(from, limit)
	}
	pages, last, err := b.st.LogPages(ctx, runID, from, limit)
	if b.read != nil {
		pages, last = b.read(pages, last)
	}
	return pages, last, err
}

// strictPages refuses pages of runs that are unknown, or have ended.
type strictPages struct {
	st whole
}

func (s *strictPages) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) (refused []int64, err error) {
	var rest []store.LogPage
	for _, p := range pages {
		if run, err := s.st.Run(ctx, p.RunID); err != nil || run.State.Ended() {
			refused = append(refused, p.RunID)
			continue
		}
		rest = append(rest, p)
	}
	more, err := s.st.AddLogPages(ctx, rest, jobBytes)
	return append(refused, more...), err
}

// lastPages returns of each page what came last, or what came first as the caller has it now.
type lastPages struct {
	st    whole
	first bool
	pages map[[2]int64]store.LogPage
}

func (l *lastPages) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) ([]int64, error) {
	for _, p := range pages {
		key := [2]int64{p.RunID, int64(p.FirstLine)}
		if _, has := l.pages[key]; !has || !l.first {
			l.pages[key] = p
		}
	}
	return l.st.AddLogPages(ctx, pages, jobBytes)
}

func (l *lastPages) LogPages(ctx context.Context, runID int64, from, limit int) ([]store.LogPage, int, error) {
	pages, last, err := l.st.LogPages(ctx, runID, from, limit)
	for i, p := range pages {
		pages[i] = l.pages[[2]int64{p.RunID, int64(p.FirstLine)}]
	}
	return pages, last, err
}

// patientPages takes any number of pages at once.
type patientPages struct {
	st whole
}

func (p *patientPages) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) (refused []int64, err error) {
	for part := range slices.Chunk(pages, store.MostLogPages) {
		no, err := p.st.AddLogPages(ctx, part, jobBytes)
		if err != nil {
			return nil, err
		}
		refused = append(refused, no...)
	}
	return refused, nil
}

// forgetfulPages looks how much there is before it looks whether a page is there, and counts
// what has gone.
type forgetfulPages struct {
	st    whole
	bytes map[int64]int64
}

func (f *forgetfulPages) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) (refused []int64, err error) {
	for _, p := range pages {
		run, err := f.st.Run(ctx, p.RunID)
		if err != nil {
			return nil, err
		}
		if f.bytes[run.JobID] >= jobBytes && !p.Notice {
			return []int64{p.RunID}, nil
		}
		f.bytes[run.JobID] += int64(len(p.Content))
	}
	return f.st.AddLogPages(ctx, pages, jobBytes)
}
