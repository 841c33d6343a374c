package xxljob

// Lines of logs that were written where Config.Logs says. Input: a run, and which lines.
// Output: lines, or that there are none of the run there.

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

const (
	// logPages is how many pages are read at once: as many as an answer has room for.
	logPages = logBytes / pageBytes
	// logReaders bounds the calls of a LogReader that are under way.
	logReaders = 4
)

// logSource has lines of logs.
type logSource interface {
	// read returns the lines of a run from one on or, where from is negative, the last ones.
	// The end of the log is for the caller to see. It reports false where it has none of the run.
	read(ctx context.Context, run Run, from int) (res wire.LogResult, has bool, err error)
}

// newLogSource returns what Config.Logs has to be read, or nil.
func newLogSource(s *shared, panics *guard.Log) logSource {
	if r, ok := s.cfg.Logs.Sink.(LogReader); ok {
		return &sinkSource{reader: r, panics: panics, under: make(chan struct{}, logReaders)}
	}
	if logs, ok := logsIn(s.store); ok && s.cfg.Logs.InStore {
		return &storeSource{logs}
	}
	return nil
}

// storeSource is the store.
type storeSource struct{ store LogStore }

func (s *storeSource) read(ctx context.Context, run Run, from int) (wire.LogResult, bool, error) {
	pages, last, err := s.store.LogPages(ctx, run.ID, from, logPages)
	if err != nil || last == 0 {
		return wire.LogResult{}, false, err
	}
	if from < 0 {
		res, err := s.tail(ctx, run, -from, pages, last)
		return res, true, err
	}
	res := wire.LogResult{FromLineNum: from, ToLineNum: from - 1, IsEnd: from > last}
	var text strings.Builder
	for _, p := range pages {
		lines, err := linesOf(p, res.ToLineNum+1)
		if err != nil {
			return wire.LogResult{}, false, err
		}
		if text.Len() > 0 && (text.Len()+len(lines) > logBytes || p.FirstLine != res.ToLineNum+1) {
			break
		}
		text.WriteString(lines)
		res.ToLineNum = p.LastLine
	}
	if res.LogContent = text.String(); len(res.LogContent) > logBytes {
		a := answerOf(res, res.FromLineNum)
		res.LogContent, res.ToLineNum = a.Content, a.ToLine
	}
	return res, true, nil
}

// tail returns the last n lines, of pages that go on up to the last one. Pages may say anything:
// it ends where no page follows what it has.
func (s *storeSource) tail(ctx context.Context, run Run, n int, pages []store.LogPage, last int) (wire.LogResult, error) {
	var kept tailEnd
	for more := true; more && len(pages) > 0; {
		more = false
		for _, p := range pages {
			if p.FirstLine <= kept.to {
				continue
			}
			lines, err := linesOf(p, p.FirstLine)
			if err != nil {
				return wire.LogResult{}, err
			}
			before := kept.to
			kept = lastLines(kept, wire.LogResult{LogContent: lines, ToLineNum: p.LastLine}, n)
			more = more || kept.to > before
		}
		if kept.to >= last || !more {
			break
		}
		var err error
		if pages, _, err = s.store.LogPages(ctx, run.ID, kept.to+1, logPages); err != nil {
			return wire.LogResult{}, err
		}
	}
	return wire.LogResult{ToLineNum: kept.to, LogContent: kept.lines}, nil
}

// sinkSource is a sink of the user's that can be read.
type sinkSource struct {
	reader LogReader
	panics *guard.Log
	under  chan struct{} // a token for each call under way
}

func (s *sinkSource) read(ctx context.Context, run Run, from int) (wire.LogResult, bool, error) {
	select {
	case s.under <- struct{}{}:
	case <-ctx.Done():
		return wire.LogResult{}, false, ctx.Err()
	}
	type answer struct {
		res wire.LogResult
		err error
	}
	got := make(chan answer, 1)
	var a answer
	guard.Go(func() (err error) {
		if from < 0 {
			a.res, err = s.reader.ReadLogTail(ctx, run.ID, -from)
		} else {
			a.res, err = s.reader.ReadLog(ctx, run.ID, from)
		}
		return err
	}, func(err error) {
		<-s.under
		got <- answer{a.res, s.panics.Note("LogReader", err)}
	})
	select {
	case a := <-got:
		if errors.Is(a.err, ErrNoLog) {
			return wire.LogResult{}, false, nil
		}
		return sinkAnswer(a.res, from), true, a.err
	case <-ctx.Done():
		return wire.LogResult{}, false, ctx.Err()
	}
}

// sinkAnswer is what a sink answered, within logBytes. Lines that follow each other from the one
// that was asked for on have their numbers by that, should the sink not know them; the last
// lines have those that the sink says.
func sinkAnswer(res wire.LogResult, from int) wire.LogResult {
	if from < 0 {
		kept := lastLines(tailEnd{}, wire.LogResult{ToLineNum: res.ToLineNum, LogContent: res.LogContent}, -from)
		return wire.LogResult{ToLineNum: kept.to, LogContent: kept.lines, IsEnd: kept.lines == ""}
	}
	a := answerOf(res, from)
	lines := strings.Count(a.Content, "\n")
	if a.Content != "" && a.Content[len(a.Content)-1] != '\n' {
		lines++
	}
	to := min(max(a.ToLine, from+min(lines, math.MaxInt32-from)-1), math.MaxInt32)
	return wire.LogResult{ToLineNum: to, LogContent: a.Content, IsEnd: a.Content == ""}
}
