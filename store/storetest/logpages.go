package storetest

import (
	"bytes"

	"github.com/xxljob/xxljob/store"
)

// Pages of logs. A store need not keep any: then these cases say nothing.

func logPageCases() []testCase {
	with := func(e *env, s store.LogStore) *logKeeper { return &logKeeper{e, s, e.owner("a")} }
	return optionalCases(with, []optional[*logKeeper]{
		{"PagesInOrder", pagesInOrder},
		{"PagesFromALine", pagesFromALine},
		{"PagesFromTheEnd", pagesFromTheEnd},
		{"APageIsKeptAsItCame", pagesOnce},
		{"PagesOfAnUnknownRun", pagesUnknown},
		{"AJobHasSoManyBytes", pagesFull},
		{"APageIsCountedOnce", pagesCounted},
		{"APageThatIsThereIsNotRefused", pagesRepeated},
		{"PagesAreKeptWhole", pagesWhole},
		{"SoManyPagesAtOnce", pagesMany},
		{"PagesOfWritersAtOnce", pagesRace},
	})
}

// logKeeper is a store that keeps logs, and the owner of all its shards.
type logKeeper struct {
	*env
	logs store.LogStore
	o    *owner
}

// anyBytes is a bound that no case reaches.
const anyBytes = 1 << 40

// page is a page of lines, with content that says which.
func page(run store.Run, first, last int) store.LogPage {
	return store.LogPage{RunID: run.ID, FirstLine: first, LastLine: last, Size: 10 * (last - first + 1), Content: []byte{byte(first), 0, byte(last), 255}}
}

func (e *logKeeper) put(most int64, pages ...store.LogPage) []int64 {
	e.Helper()
	refused, err := e.logs.AddLogPages(e.ctx, pages, most)
	e.must(err)
	return refused
}

// wantPages checks what a read returns.
func (e *logKeeper) wantPages(what string, run store.Run, from, limit, last int, pages ...store.LogPage) {
	e.Helper()
	got, to, err := e.logs.LogPages(e.ctx, run.ID, from, limit)
	e.must(err)
	want(e.env, what, got, pages)
	want(e.env, what+": the last line", to, last)
}

func pagesInOrder(e *logKeeper) {
	run, other := e.o.running(), e.o.running()
	a, b, c, d := page(run, 1, 3), page(run, 4, 4), page(run, 5, 9), page(other, 1, 2)
	want(e.env, "refused", e.put(anyBytes, c, d, a), nil)
	want(e.env, "refused later", e.put(anyBytes, b), nil)
	e.wantPages("all pages", run, 1, 100, 9, a, b, c)
	e.wantPages("those of another run", other, 1, 100, 2, d)
	e.o.one(e.mustFinish(success(run)))
	e.wantPages("those of a run that has ended", run, 1, 100, 9, a, b, c)
	after := page(run, 10, 10)
	e.put(anyBytes, after)
	e.wantPages("what came after its end", run, 10, 100, 10, after)
	want(e.env, "refused of none", e.put(anyBytes), nil)
}

func pagesFromALine(e *logKeeper) {
	run := e.o.running()
	a, b, c := page(run, 1, 3), page(run, 4, 4), page(run, 5, 9)
	e.put(anyBytes, a, b, c)
	for from, pages := range map[int][]store.LogPage{
		0: {a, b, c}, 1: {a, b, c}, 2: {a, b, c}, 3: {a, b, c}, 4: {b, c}, 5: {c}, 8: {c}, 9: {c}, 10: nil, 1<<31 - 1: nil,
	} {
		e.wantPages("pages from a line", run, from, 100, 9, pages...)
	}
	e.wantPages("two pages", run, 1, 2, 9, a, b)
	e.wantPages("one page", run, 4, 1, 9, b)
	e.wantPages("no page", run, 4, 0, 9)
}

func pagesFromTheEnd(e *logKeeper) {
	run := e.o.running()
	a, b, c := page(run, 1, 3), page(run, 4, 4), page(run, 5, 9)
	e.put(anyBytes, a, b, c)
	for from, pages := range map[int][]store.LogPage{
		-1: {c}, -5: {c}, -6: {b, c}, -7: {a, b, c}, -9: {a, b, c}, -10: {a, b, c}, -1 << 31: {a, b, c},
	} {
		e.wantPages("pages of the last lines", run, from, 100, 9, pages...)
	}
	e.wantPages("the first of them", run, -6, 1, 9, b)
}

func pagesOnce(e *logKeeper) {
	run := e.o.running()
	a := page(run, 1, 3)
	e.put(anyBytes, a)
	content := bytes.Clone(a.Content)
	other := page(run, 1, 7)
	want(e.env, "refused", e.put(anyBytes, other, page(run, 8, 8)), nil)
	clear(a.Content) // the caller's
	a.Content = content
	e.wantPages("pages", run, 1, 100, 8, a, page(run, 8, 8))
	got, _, err := e.logs.LogPages(e.ctx, run.ID, 1, 1)
	e.must(err)
	clear(got[0].Content) // the caller's too
	e.wantPages("the first again", run, 1, 1, 8, a)
}

func pagesUnknown(e *logKeeper) {
	run := e.o.running()
	unknown := store.Run{ID: run.ID + 1<<13}
	want(e.env, "refused", e.put(1, page(unknown, 1, 1), page(run, 1, 1)), nil)
	e.wantPages("those of an unknown run", unknown, 1, 100, 0)
	e.wantPages("from its end", unknown, -1, 100, 0)
	e.wantPages("those of a run that is known", run, 1, 100, 1, page(run, 1, 1))
	e.wantPages("those of a run without any", e.o.running(), -1, 100, 0)
}

func pagesFull(e *logKeeper) {
	job := e.newJob()
	first, second := e.o.started(e.mustAddRun(job.ID, store.Trigger{})), e.o.started(e.mustAddRun(job.ID, store.Trigger{}))
	other := e.o.running()
	a := page(first, 1, 3)
	want(e.env, "refused of what fits", e.put(9, a, page(second, 1, 2)), nil)
	want(e.env, "refused of what goes beyond it", e.put(9, page(first, 4, 4)), nil)
	notice := page(first, 5, 5)
	notice.Notice = true
	refused := e.put(9, page(second, 3, 3), page(second, 4, 4), page(other, 1, 1), notice)
	want(e.env, "refused of what is too much", refused, []int64{second.ID})
	notice.Notice = false
	e.wantPages("pages", first, 1, 100, 5, a, page(first, 4, 4), notice)
	e.wantPages("pages of the run that was refused", second, 1, 100, 2, page(second, 1, 2))
	e.wantPages("pages of another job", other, 1, 100, 1, page(other, 1, 1))
	want(e.env, "refused by a greater bound", e.put(1000, page(second, 3, 3)), nil)
	e.wantPages("pages by a greater bound", second, 1, 100, 3, page(second, 1, 2), page(second, 3, 3))
}

func pagesCounted(e *logKeeper) {
	run := e.o.running()
	for range 5 {
		want(e.env, "refused of the same page", e.put(9, page(run, 1, 3)), nil)
	}
	want(e.env, "refused of a second page", e.put(9, page(run, 4, 4)), nil)
	want(e.env, "refused of a third", e.put(9, page(run, 5, 5)), nil)
	want(e.env, "refused of a fourth", e.put(9, page(run, 6, 6)), []int64{run.ID})
}

// pagesRepeated: who has had an error writes again what may be there.
func pagesRepeated(e *logKeeper) {
	run := e.o.running()
	e.put(4, page(run, 1, 3))
	want(e.env, "refused of what is there", e.put(4, page(run, 1, 3)), nil)
	want(e.env, "refused beside what is there", e.put(4, page(run, 1, 3), page(run, 4, 4)), []int64{run.ID})
	e.wantPages("pages", run, 1, 100, 3, page(run, 1, 3))
}

func pagesWhole(e *logKeeper) {
	run := e.o.running()
	empty := store.LogPage{RunID: run.ID, FirstLine: 1, LastLine: 1, Size: 1, Content: []byte{0}}
	big := store.LogPage{RunID: run.ID, FirstLine: 2, LastLine: 1 << 30, Size: 1<<31 - 1, Content: bytes.Repeat([]byte{0, 1, 2, 255}, 1<<18)}
	far := store.LogPage{RunID: run.ID, FirstLine: 1<<30 + 1, LastLine: 1<<31 - 1, Size: 0, Content: []byte("x")}
	e.put(anyBytes, empty, big, far)
	e.wantPages("all pages", run, 1, 100, 1<<31-1, empty, big, far)
	e.wantPages("the last line", run, -1, 100, 1<<31-1, far)
}

func pagesMany(e *logKeeper) {
	run := e.o.running()
	var pages []store.LogPage
	for i := range store.MostLogPages {
		pages = append(pages, page(run, i+1, i+1))
	}
	e.put(anyBytes, pages...)
	e.wantPages("a thousand pages", run, 1, 2000, 1000, pages...)
	_, err := e.logs.AddLogPages(e.ctx, append(pages, page(run, 1001, 1001)), anyBytes)
	e.check(err != nil, "more than %d pages at once are no error", store.MostLogPages)
	e.wantPages("after that", run, 1001, 100, 1000)
}

func pagesRace(e *logKeeper) {
	job := e.newJob()
	runs := []store.Run{e.o.started(e.mustAddRun(job.ID, store.Trigger{})), e.o.started(e.mustAddRun(job.ID, store.Trigger{})), e.o.running()}
	var calls []func()
	errs := make([]error, 8)
	for i := range errs {
		calls = append(calls, func() {
			for n := range 5 {
				var pages []store.LogPage
				for k := range runs { // some of them from the last, and each page by two
					pages = append(pages, page(runs[(i+k)%len(runs)], 5*(i/2)+n+1, 5*(i/2)+n+1))
				}
				if _, err := e.logs.AddLogPages(e.ctx, pages, anyBytes); err != nil {
					errs[i] = err
				}
			}
		})
	}
	e.race(calls...)
	for _, err := range errs {
		e.must(err)
	}
	for _, run := range runs {
		var pages []store.LogPage
		for n := range 20 {
			pages = append(pages, page(run, n+1, n+1))
		}
		e.wantPages("all pages", run, 1, 100, 20, pages...)
	}
}
