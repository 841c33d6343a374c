package console

// The log of a run: the last of it on its page, lines before and behind them, and lines as they
// are written.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
)

const (
	linesAtOnce = 400     // of a log on a page
	mostOfALine = 8 << 10 // bytes of a line on a page
	mostOfLines = 1 << 20 // bytes of all lines on a page: where they have more, long ones are cut shorter
	lineContext = 20      // lines before one that a link leads to
	logPatience = 5 * time.Second

	pagePatience = time.Second // for what a page can do without
)

// logView is a part of a log.
type logView struct {
	Run      int64
	Lines    []logLine
	From, To int    // the numbers of the first and the last line
	Total    int    // lines that there are by now, or 0 where that is not known
	End      bool   // nothing more will come
	Fault    string // why there is none
	Retry    bool
	Tail     bool // these were the last lines when it was read
	Earlier  int  // the first of the lines before, or 0
	Search   bool // one can look for something in it
	Find     string
	Found    *logFound // what was found
	Zone     logZone   // that of the times in the lines
}

// logLine is a line of a log.
type logLine struct {
	No    int
	Parts []web.Part
	Cut   bool // a page of its own has more of it
	Omits bool // the file has more of it
}

// logText are lines as the scheduler has answered.
type logText struct {
	from, to int
	text     string
	end      bool
}

// runLog answers with a part of the log: the lines from a number on, or those after one, which
// is what a page asks for that follows it.
func (q *request) runLog() error {
	from, err := q.lineNo("from")
	if err != nil {
		return err
	}
	to, err := q.lineNo("to")
	if err != nil {
		return err
	}
	one, err := q.lineNo("line")
	if err != nil {
		return err
	}
	var v logView
	switch {
	case q.Query("find") != "":
		if err := q.limitRate(wholes); err != nil {
			return err
		}
		v, err = q.searchLog(q.Query("find"), max(from, 1))
	case one > 0:
		v, err = q.oneLine(one)
	case from > 0:
		v, err = q.logFrom(from, to)
	default:
		v, err = q.logTail(logPatience)
	}
	if err != nil {
		return err
	}
	h := q.W.Header()
	h.Set("X-Read", time.Now().In(q.look.Zone).Format("15:04:05"))
	h.Set("X-Log-Next", strconv.Itoa(v.To+1))
	if v.End {
		h.Set("X-Log-End", "true")
	}
	if q.IsPart() && len(v.Lines) == 0 && v.Fault == "" {
		return q.NothingNew()
	}
	return q.show("log", http.StatusOK, v)
}

// lineNo is the number of a line in the query; 0 for none.
func (q *request) lineNo(name string) (int, error) {
	s := q.Query(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, web.BadRequest(fmt.Errorf("%s %q", name, s))
	}
	return n, nil
}

// logTail are the last lines.
func (q *request) logTail(patience time.Duration) (logView, error) {
	v, err := q.readLog(func() (logText, error) {
		ctx, cancel := q.within(patience)
		defer cancel()
		res, err := q.Scheduler.LogTail(ctx, q.run.ID, linesAtOnce)
		return logText{res.FromLineNum, res.ToLineNum, res.LogContent, res.IsEnd}, err
	}, linesAtOnce)
	v.Tail, v.Total = true, v.To
	return v, err
}

// logFrom are lines from a number on, up to another where there is one.
func (q *request) logFrom(from, to int) (logView, error) {
	most := linesAtOnce
	if to > 0 {
		most = max(0, min(most, to-from+1))
	}
	v, err := q.readLog(func() (logText, error) { return q.linesFrom(from) }, most)
	if err == nil && len(v.Lines) > 0 && !q.IsPart() {
		v.Total = q.totalOf(&v)
	}
	return v, err
}

// totalOf is how many lines there are of the log of which a part was read, or 0 where the store
// does not have the lines, or does not say so at once.
func (q *request) totalOf(v *logView) int {
	if v.End {
		return v.To
	}
	kept, keeps := q.Store.(xxljob.LogStore)
	if !keeps {
		return 0
	}
	ctx, cancel := q.within(pagePatience)
	defer cancel()
	if _, last, err := kept.LogPages(ctx, q.run.ID, 1, 0); err == nil && last >= v.To {
		return last
	}
	return 0
}

// LogLines says which lines are shown, and of how many.
func (p *page) LogLines(v logView) string {
	key := "log.lines"
	switch {
	case v.Total == 0:
	case p.q.run.State.Ended():
		key = "log.lines.of"
	default:
		key = "log.lines.sofar"
	}
	return p.T(key, "from", v.From, "to", v.To, "total", v.Total)
}

// linesFrom asks for lines from a number on. Those who follow a log side by side ask once; what
// they get is of a run that each of them was found to see.
func (q *request) linesFrom(from int) (logText, error) {
	ctx, cancel := q.within(logPatience)
	defer cancel()
	id := q.run.ID
	read := func(ctx context.Context) (any, error) {
		res, err := q.Scheduler.Log(ctx, id, from)
		return logText{res.FromLineNum, res.ToLineNum, res.LogContent, res.IsEnd}, err
	}
	ask := q.live.Once
	if !q.IsPart() {
		ask = func(ctx context.Context, _ string, read func(context.Context) (any, error)) (any, error) {
			return read(ctx)
		}
	}
	v, err := ask(ctx, fmt.Sprintf("log %d %d %v", id, from, q.run.State.Ended()), read)
	if err != nil {
		return logText{}, err
	}
	return v.(logText), nil
}

// oneLine is a line, as much of it as a page of lines may have.
func (q *request) oneLine(no int) (logView, error) {
	v, err := q.logFrom(no, no)
	if err != nil || v.Fault != "" || len(v.Lines) == 0 || !v.Lines[0].Cut {
		return v, err
	}
	res, err := q.linesFrom(no)
	if err != nil {
		return q.noLog(v, err)
	}
	line, _, _ := strings.Cut(q.redacted(q.run.App, FieldLog, res.text), "\n")
	left, n := web.MostParts, web.VisibleFit(line, mostOfLines)
	v.Lines[0] = logLine{No: no, Parts: web.Colored(line[:n], &left), Omits: n < len(line)}
	return v, nil
}

// readLog reads lines of the log of the request's run, of which so many are shown.
func (q *request) readLog(read func() (logText, error), most int) (v logView, err error) {
	v = logView{Run: q.run.ID, Search: !q.hidesTexts()}
	if q.Scheduler == nil {
		v.Fault = q.text("log.noscheduler")
		return v, nil
	}
	res, err := read()
	if err != nil {
		return q.noLog(v, err)
	}
	v.From, v.To, v.End = res.from, res.to, res.end
	parts := web.MostParts
	v.Lines = q.lines(v.From, q.redacted(q.run.App, FieldLog, res.text), most, &parts)
	if n := len(v.Lines); n > most {
		v.Lines, v.To, v.End = v.Lines[:most], v.From+most-1, false
	}
	if v.To < v.From {
		v.To = max(v.From-1, 0)
	}
	if v.From > 1 {
		v.Earlier = max(1, v.From-linesAtOnce)
	}
	if !q.IsPart() {
		v.Zone = q.zoneOfLog(v.From, res.text)
	}
	return v, nil
}

// noLog says why there is no log. That it cannot be had is no fault of the page.
func (q *request) noLog(v logView, err error) (logView, error) {
	v.Retry = true
	switch {
	case errors.Is(err, xxljob.ErrNoLog) && q.run.Address == "" && !q.run.State.Ended():
		v.From, v.To, v.Retry = 1, 0, false // it is followed from its first line on
	case errors.Is(err, xxljob.ErrNoLog):
		v.Fault, v.Retry = q.text("log.none", "why", why(err)), !q.run.State.Ended()
	case q.ctx.Err() == nil:
		v.Fault = q.text("log.silent", "why", q.whyOf(err))
	default:
		return v, err
	}
	return v, nil
}

// lines are the lines of a text, the first with the given number: one more than most, where
// there are more. left is how many parts the page has left for them.
func (q *request) lines(from int, content string, most int, left *int) (list []logLine) {
	long := mostOfALine
	if len(content) > mostOfLines {
		long = mostOfLines / linesAtOnce
	}
	for line := range strings.Lines(content) {
		if len(list) > most {
			break
		}
		line = strings.TrimRight(line, "\r\n")
		l := logLine{No: from + len(list)}
		if n := web.VisibleFit(line, long); n < len(line) {
			line, l.Cut = line[:n], true
		}
		l.Parts = web.Colored(line, left)
		list = append(list, l)
	}
	return list
}

// Before is the first of the lines that are shown with one that a link leads to.
func (p *page) Before(no int) int { return max(1, no-lineContext) }

// LastBefore is the last of the lines before one.
func (p *page) LastBefore(no int) int { return no - 1 }
