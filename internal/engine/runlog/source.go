package runlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Questions to one executor for lines of a run's log. Input: the run, and which lines.
// Output: an answer within bounds, whatever the executor says.

const (
	// maxTail bounds the lines of a tail.
	maxTail = 10_000
	// tailFar is behind the last line of any log. Executors that do not know of tails are
	// asked from there on: most say then how many lines there are.
	tailFar = math.MaxInt32
	// tailCalls bounds the calls for the tail of one log: executors of ours that do not know
	// of tails return a long one in pages of LogBytes.
	tailCalls = 32
)

// calls asks executors, a few times at once for one app.
type calls struct{ desk *Desk }

// ask asks for the lines from one on or, where from is negative, for so many of the last ones.
// What the executor says beside them, how far the run is, goes to said.
func (c *calls) ask(ctx context.Context, exec wire.Executor, run store.Run, from int, said *wire.Progress) (store.Answer, error) {
	if from < 0 {
		return c.tail(ctx, exec, run, -from, said)
	}
	ret, refusal, err := c.call(ctx, exec, run, wire.LogRequest{FromLineNum: from}, said)
	if err != nil || refusal != "" {
		return store.Answer{Refusal: refusal}, err
	}
	return answerOf(ret, from), nil
}

// call makes one call within ctx even where the executor ignores it: its goroutine is
// left behind then, and holds its token until the executor answers.
func (c *calls) call(ctx context.Context, exec wire.Executor, run store.Run, req wire.LogRequest, said *wire.Progress) (res wire.LogResult, refusal string, err error) {
	calls := c.desk.callsOf(run.App)
	select {
	case calls <- struct{}{}:
	case <-ctx.Done():
		return res, "", ctx.Err()
	}
	type answer struct {
		ret wire.LogReturn
		err error
	}
	req.LogDateTim, req.LogID = run.Created.UnixMilli(), run.ID
	got := make(chan answer, 1)
	go func() {
		ret, err := exec.Log(ctx, req)
		<-calls
		got <- answer{ret, err}
	}()
	select {
	case a := <-got:
		switch {
		case a.err != nil:
			return res, fmt.Sprintf(executorFailed, errs.PlainText(a.err.Error())), nil
		case !a.ret.OK():
			return res, fmt.Sprintf(executorRefused, errs.PlainText(a.ret.Msg)), nil
		}
		if p := a.ret.Result.Progress; p != (wire.Progress{}) {
			said.Percent, said.Text = core.BoundProgress(p)
		}
		return a.ret.Result, "", nil
	case <-ctx.Done():
		return res, "", ctx.Err()
	}
}

// answerOf is what an executor answered, cut to LogBytes.
func answerOf(res wire.LogResult, from int) store.Answer {
	a := store.Answer{ToLine: min(max(res.ToLineNum, 0), math.MaxInt32), IsEnd: res.IsEnd, Content: errs.PlainText(res.LogContent)}
	if len(a.Content) > core.LogBytes {
		a.Content = cutLines(a.Content)
		a.ToLine, a.IsEnd = from+min(strings.Count(a.Content, "\n")-1, math.MaxInt32-from), false
	}
	return a
}

// cutLines keeps the lines that fit into LogBytes. Of a single line that does not
// fit it keeps the beginning: the next question goes on behind it.
func cutLines(s string) string {
	if end := strings.LastIndexByte(s[:core.LogBytes], '\n'); end >= 0 {
		return s[:end+1]
	}
	end := core.LogBytes - 1
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "\n"
}

// tail asks for the last n lines. One of ours has them ready. Of another one the number of its
// lines is asked for, and then the last ones; where it does not say how many there are, all are
// read from the first on, of which the last ones are kept.
func (c *calls) tail(ctx context.Context, exec wire.Executor, run store.Run, n int, said *wire.Progress) (store.Answer, error) {
	res, refusal, err := c.call(ctx, exec, run, wire.LogRequest{FromLineNum: tailFar, Tail: n}, said)
	switch {
	case err != nil || refusal != "":
		return store.Answer{Refusal: refusal}, err
	case res.Tail || res.IsEnd && res.LogContent == wire.MsgNoLog:
		kept := lastLines(tailEnd{}, res, n)
		return store.Answer{ToLine: kept.to, Content: kept.lines, IsEnd: res.IsEnd}, nil
	}
	from := 1
	if res.LogContent == "" && res.ToLineNum < tailFar-1 {
		from = max(1, res.ToLineNum-n+1)
	}
	var kept tailEnd
	for i := range tailCalls {
		res, refusal, err = c.call(ctx, exec, run, wire.LogRequest{FromLineNum: from}, said)
		if err != nil || refusal != "" {
			return store.Answer{Refusal: refusal}, err
		}
		if i > 0 && res.ToLineNum < from {
			break
		}
		kept = lastLines(kept, res, n)
		// Whoever returns less than half a page has returned all there was.
		if len(res.LogContent) < core.LogBytes/2 || res.ToLineNum < from || res.ToLineNum >= tailFar-1 {
			break
		}
		from = res.ToLineNum + 1
	}
	return store.Answer{ToLine: kept.to, Content: kept.lines, IsEnd: res.IsEnd}, nil
}

// tailEnd is the end of a log, as far as it was read.
type tailEnd struct {
	lines string // each ended by a line feed
	to    int    // the number of the last
}

// lastLines are the last n lines of what was read and what follows it, within LogBytes, but
// for the end of a single line that does not fit.
func lastLines(t tailEnd, res wire.LogResult, n int) tailEnd {
	text := errs.PlainText(res.LogContent)
	if text == wire.MsgNoLog && res.IsEnd {
		return tailEnd{lines: text}
	}
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	text = t.lines + text
	lines := min(strings.Count(text, "\n"), math.MaxInt32-1)
	to := min(max(res.ToLineNum, t.to, lines), math.MaxInt32-1)
	at := len(text)
	for range min(n, lines) {
		begin := strings.LastIndexByte(text[:at-1], '\n') + 1
		if len(text)-begin > core.LogBytes {
			if at == len(text) { // the last line alone
				return tailEnd{cutLines(text[begin:]), to}
			}
			break
		}
		at = begin
	}
	return tailEnd{strings.Clone(text[at:]), to}
}

// tailResult is an answer to the question for the last lines as the caller of LogTail gets it.
// The run was read before it was asked for: where it had ended by then, these are its last.
func tailResult(run store.Run, n int, a store.Answer) wire.LogResult {
	kept := lastLines(tailEnd{}, wire.LogResult{LogContent: a.Content, ToLineNum: a.ToLine}, n)
	lines := strings.Count(kept.lines, "\n")
	return wire.LogResult{FromLineNum: kept.to - lines + 1, ToLineNum: kept.to, LogContent: kept.lines, IsEnd: run.State.Ended()}
}

// Lines of logs that were written where Config.Logs says. Input: a run, and which lines.
// Output: lines, or that there are none of the run there.

const (
	// logPages is how many pages are read at once: as many as an answer has room for.
	logPages = core.LogBytes / pageBytes
	// logReaders bounds the calls of a LogReader that are under way.
	logReaders = 4
)

// logSource has lines of logs.
type logSource interface {
	// read returns the lines of a run from one on or, where from is negative, the last ones.
	// The end of the log is for the caller to see. It reports false where it has none of the run.
	read(ctx context.Context, run store.Run, from int) (res wire.LogResult, has bool, err error)
}

// newSource returns what Config.Logs has to be read, or nil.
func newSource(s *core.Core, panics *guard.Log) logSource {
	if r, ok := s.Cfg.Logs.Sink.(core.LogReader); ok {
		return &sinkSource{reader: r, panics: panics, under: make(chan struct{}, logReaders)}
	}
	if logs, ok := core.LogsIn(s.Store); ok && s.Cfg.Logs.InStore {
		return &storeSource{logs}
	}
	return nil
}

// storeSource is the store.
type storeSource struct{ store store.LogStore }

func (s *storeSource) read(ctx context.Context, run store.Run, from int) (wire.LogResult, bool, error) {
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
		if text.Len() > 0 && (text.Len()+len(lines) > core.LogBytes || p.FirstLine != res.ToLineNum+1) {
			break
		}
		text.WriteString(lines)
		res.ToLineNum = p.LastLine
	}
	if res.LogContent = text.String(); len(res.LogContent) > core.LogBytes {
		a := answerOf(res, res.FromLineNum)
		res.LogContent, res.ToLineNum = a.Content, a.ToLine
	}
	return res, true, nil
}

// tail returns the last n lines, of pages that go on up to the last one. Pages may say anything:
// it ends where no page follows what it has.
func (s *storeSource) tail(ctx context.Context, run store.Run, n int, pages []store.LogPage, last int) (wire.LogResult, error) {
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
	reader core.LogReader
	panics *guard.Log
	under  chan struct{} // a token for each call under way
}

func (s *sinkSource) read(ctx context.Context, run store.Run, from int) (wire.LogResult, bool, error) {
	select {
	case s.under <- struct{}{}:
	case <-ctx.Done():
		return wire.LogResult{}, false, ctx.Err()
	}
	call := guard.Start(s.panics, "LogReader", func() (wire.LogResult, error) {
		if from < 0 {
			return s.reader.ReadLogTail(ctx, run.ID, -from)
		}
		return s.reader.ReadLog(ctx, run.ID, from)
	}, func(wire.LogResult, error) { <-s.under })
	if !call.Wait(ctx) {
		return wire.LogResult{}, false, ctx.Err()
	}
	res, err := call.Answer()
	if errors.Is(err, errs.ErrNoLog) {
		return wire.LogResult{}, false, nil
	}
	return sinkAnswer(res, from), true, err
}

// sinkAnswer is what a sink answered, within LogBytes. Lines that follow each other from the one
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

// Why there is no log of a run.

// logless is an ErrNoLog with its reason. It says that as a ScheduleError does, in the language
// of who reads it.
type logless struct{ why errs.Texts }

func (e *logless) Error() string { return errs.ErrNoLog.Error() + ": " + e.why.In("en") }

func (e *logless) Unwrap() error { return errs.ErrNoLog }

// In returns the reason alone.
func (e *logless) In(lang string) string { return e.why.In(lang) }

func errNotStarted() error {
	return &logless{errs.Texts{"the run was not started", "该运行记录未启动", "該執行記錄未啟動"}}
}

func errNoneThere() error {
	return &logless{errs.Texts{"its executor has none", "执行器中没有该日志", "執行器中沒有此日誌"}}
}

func errSeveral() error {
	return &logless{errs.Texts{
		"its address stands for several processes, and those that were asked have no log of it",
		"其地址代表多个进程，被询问的进程没有该日志", "其位址代表多個處理程序，被詢問的處理程序沒有此日誌",
	}}
}

func errNodeGone(incarnation string) error {
	return &logless{errs.Texts{"node " + incarnation + " is gone", "节点 " + incarnation + " 已不存在", "節點 " + incarnation + " 已不存在"}}
}

// noLog is a reason that another node, or another part of this one, has said, in English.
func noLog(why string) error { return &logless{inLanguages(why)} }

// What nodes answer each other in place of lines. An answer is kept in the store as a text, and the node that
// reads it may be of another release, so it is known by its words.
const (
	notAttached     = "app %s is not attached any more"
	executorSilent  = "its executor has not answered within %s"
	executorFailed  = "its executor failed: %s"
	executorRefused = "its executor refused: %s"
)

// inLanguages is a reason in all languages: what comes from an executor, or is not known, stays as it is.
func inLanguages(why string) errs.Texts {
	for _, form := range []errs.Texts{
		{notAttached, "执行器 %s 已不在该节点上", "執行器 %s 已不在該節點上"},
		{executorSilent, "其执行器在 %s 内没有响应", "其執行器在 %s 內沒有回應"},
		{executorFailed, "其执行器出错：%s", "其執行器出錯：%s"},
		{executorRefused, "其执行器拒绝了请求：%s", "其執行器拒絕了請求：%s"},
		{"%s is not an address of app %s any more", "%s 已不是执行器 %s 的地址", "%s 已不是執行器 %s 的位址"},
	} {
		if values, is := valuesIn(why, form[0]); is {
			return errs.Texts{why, fmt.Sprintf(form[1], values...), fmt.Sprintf(form[2], values...)}
		}
	}
	return errs.Texts{why, why, why}
}

// valuesIn are what a text has where the form has %s, if it is of that form.
func valuesIn(text, form string) (values []any, is bool) {
	parts := strings.Split(form, "%s")
	rest, is := strings.CutPrefix(text, parts[0])
	for i, part := range parts[1:] {
		if !is {
			return nil, false
		}
		var value string
		if i == len(parts)-2 {
			value, is = strings.CutSuffix(rest, part)
		} else {
			value, rest, is = strings.Cut(rest, part)
		}
		values = append(values, value)
	}
	return values, is
}

// late is an error of a log that has not come in time. Beside its own words, which are for logs, it says that
// in the languages of people.
type late struct {
	err error
	why errs.Texts
}

func (e *late) Error() string { return e.err.Error() }

func (e *late) Unwrap() error { return e.err }

// In returns the reason alone.
func (e *late) In(lang string) string { return e.why.In(lang) }

// inTime has an error say in the languages of people that a time is over, where that is all there is to it.
func inTime(err error) error {
	var said interface{ In(lang string) string }
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &said) {
		return err
	}
	return &late{err, errs.Texts{"no answer in time", "未及时响应", "未及時回應"}}
}
