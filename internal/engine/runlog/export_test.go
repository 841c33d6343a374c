package runlog

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// FullLogBook has so many runs write a line each, and end, while nothing is written. It returns
// what is kept of them, and of how many.
func FullLogBook(room, runs int) (stats core.LogStats, open, fed int) {
	b := NewBook(core.LogConfig{QueueBytes: room, RunBytes: 1 << 20})
	for i := range runs {
		r := b.of(&core.StartLog{}, int64(i+1), 0, "")
		r.write(store.LogLine{Text: "a line"})
		r.end()
	}
	return b.State(), len(b.runs), len(b.fed)
}

// DrainLogBook is FullLogBook, after which everything is written.
func DrainLogBook(room, runs int) (stats core.LogStats, open int, lines map[int64]int) {
	b := NewBook(core.LogConfig{QueueBytes: room, RunBytes: 1 << 20})
	for i := range runs {
		r := b.of(&core.StartLog{}, int64(i+1), 0, "")
		r.write(store.LogLine{Text: "a line"})
		r.end()
	}
	lines = map[int64]int{}
	for b.due(time.Now()) < loop.Forever {
		batch := b.take()
		for _, c := range batch {
			lines[c.RunID] += len(c.Lines)
			if !c.End {
				lines[c.RunID] += 1000
			}
		}
		b.written(batch, nil, time.Now())
	}
	return b.State(), len(b.runs), lines
}

// AliasedLines writes a record to a log that nobody reads, and returns how many of its lines
// wait, and how many of these lie in the memory of the record although they are not all of it.
func AliasedLines(record string) (waiting, aliased int) {
	b := NewBook(core.LogConfig{QueueBytes: 1 << 30, RunBytes: 1 << 30})
	r := b.of(&core.StartLog{}, 1, 0, "")
	r.write(store.LogLine{Text: record})
	begin := uintptr(unsafe.Pointer(unsafe.StringData(record)))
	for _, line := range r.lines {
		at := uintptr(unsafe.Pointer(unsafe.StringData(line.Text)))
		if at >= begin && at < begin+uintptr(len(record)) && len(line.Text) > 0 && len(line.Text)+1 < len(record) {
			aliased++
		}
	}
	return len(r.lines), aliased
}

// LinesOfPage are the lines from one on of a page that has these, and says that they are others.
func LinesOfPage(text string, first, last, from int) (string, error) {
	var w pageWriter
	pages, err := w.pages(store.RunLines{Lines: []store.LogLine{{Text: text}}}, false)
	if err != nil {
		return "", err
	}
	pages[0].FirstLine, pages[0].LastLine = first, last
	return linesOf(pages[0], from)
}

// Logless are the errors that say why there is no log of a run.
func Logless() []error {
	return []error{errNotStarted(), errNoneThere(), errNodeGone("n1"), noLog("as others say it"),
		noLog(fmt.Sprintf(notAttached, "orders")), noLog(fmt.Sprintf(executorSilent, logPatience.String())), noLog(fmt.Sprintf(executorFailed, "disk: full")),
		noLog(fmt.Sprintf(executorRefused, "not mine")), noLog("10.0.0.1:9 is not an address of app orders any more")}
}

// Late are the errors of a log that has not come in time: at this node, and of another one with a store that
// answers and one that does not.
func Late() []error {
	return []error{inTime(fmt.Errorf("reading: %w", context.DeadlineExceeded)),
		inTime(noAnswer("n1", context.DeadlineExceeded, nil)), noAnswer("n1", context.DeadlineExceeded, errors.New("store is away"))}
}
