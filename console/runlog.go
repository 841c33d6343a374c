package console

// The log of a run: the last of it on its page, further lines as they are written, and all of it
// as a file.

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
)

const (
	linesAtOnce = 400      // of a log on a page
	mostOfALine = 8 << 10  // bytes of a line on a page
	mostOfALog  = 64 << 20 // bytes of a file
	logPatience = 5 * time.Second
)

// logView is a part of a log.
type logView struct {
	Run      int64
	Lines    []logLine
	From, To int    // the numbers of the first and the last line
	End      bool   // nothing more will come
	Fault    string // why there is none
	Retry    bool
	Earlier  string // the address of the lines before
	Later    string // and of those that follow
	Whole    string // and of the file
}

// logLine is a line of a log.
type logLine struct {
	No    int
	Parts []logPart
	Cut   bool
}

// logPart is a part of a line in one color.
type logPart struct{ Text, Class string }

// runLog answers with a part of the log: the lines from a number on, or those after one, which
// is what a page asks for that follows it.
func (q *request) runLog() error {
	from := -1
	if s := q.query("from"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return badRequest(fmt.Errorf("from %q", s))
		}
		from = n
	}
	v, err := q.logView(from)
	if err != nil {
		return err
	}
	h := q.w.Header()
	h.Set("X-Log-Next", strconv.Itoa(v.To+1))
	if v.End {
		h.Set("X-Log-End", "true")
	}
	if q.isPart() && len(v.Lines) == 0 && v.Fault == "" {
		q.wrote = true
		q.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return q.show("log", http.StatusOK, v)
}

// logView reads lines of the log of the request's run, from a number on; -1 stands for the last.
func (q *request) logView(from int) (v logView, err error) {
	id := q.run.ID
	v = logView{Run: id, From: from}
	here := "runs/" + strconv.FormatInt(id, 10) + "/log"
	if q.Scheduler == nil {
		v.Fault = q.text("log.noscheduler")
		return v, nil
	}
	ctx, cancel := q.within(logPatience)
	defer cancel()
	var content string
	if from < 0 {
		res, err := q.Scheduler.LogTail(ctx, id, linesAtOnce)
		if err != nil {
			return q.noLog(v, err)
		}
		v.From, v.To, v.End, content = res.FromLineNum, res.ToLineNum, res.IsEnd, res.LogContent
	} else {
		res, err := q.Scheduler.Log(ctx, id, from)
		if err != nil {
			return q.noLog(v, err)
		}
		v.From, v.To, v.End, content = res.FromLineNum, res.ToLineNum, res.IsEnd, res.LogContent
	}
	v.Lines = q.lines(v.From, q.redacted(q.run.App, FieldLog, content))
	if n := len(v.Lines); n > linesAtOnce {
		v.Lines, v.To, v.End = v.Lines[:linesAtOnce], v.From+linesAtOnce-1, false
	}
	if v.To < v.From {
		v.To = max(v.From-1, 0)
	}
	if v.From > 1 {
		v.Earlier = q.root() + here + "?from=" + strconv.Itoa(max(1, v.From-linesAtOnce))
	}
	if !v.End {
		v.Later = q.root() + here + "?from=" + strconv.Itoa(v.To+1)
	}
	v.Whole = q.root() + here + "/file"
	return v, nil
}

// noLog says why there is no log. That it cannot be had is no fault of the page.
func (q *request) noLog(v logView, err error) (logView, error) {
	v.Retry = true
	switch {
	case errors.Is(err, xxljob.ErrNoLog):
		v.Fault, v.Retry = strings.TrimPrefix(err.Error(), "xxljob: "), !q.run.State.Ended()
	case q.ctx.Err() == nil:
		v.Fault = q.text("log.silent", "why", err.Error())
	default:
		return v, err
	}
	return v, nil
}

// lines are the lines of a text, the first with the given number.
func (q *request) lines(from int, content string) (list []logLine) {
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\r\n")
		l := logLine{No: from + len(list)}
		if len(line) > mostOfALine {
			line, l.Cut = strings.ToValidUTF8(line[:mostOfALine], "\uFFFD"), true
		}
		l.Parts = colored(line)
		list = append(list, l)
	}
	return list
}

// logFile answers with the whole log as a file of text.
func (q *request) logFile() error {
	if q.Scheduler == nil {
		return errNotThere
	}
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(5 * time.Minute)) // where the server has one
	res, err := q.Scheduler.Log(q.ctx, q.run.ID, 1)
	if err != nil {
		if errors.Is(err, xxljob.ErrNoLog) {
			return &problem{status: http.StatusNotFound, key: "log.none", cause: err}
		}
		return err
	}
	h := q.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="run-%d.log"`, q.run.ID))
	q.wrote = true
	for written := 0; ; {
		text := q.redacted(q.run.App, FieldLog, res.LogContent)
		if written += len(text); written > mostOfALog {
			_, err = io.WriteString(q.w, "… "+q.text("log.cut")+"\n")
			return err
		}
		if _, err := io.WriteString(q.w, text); err != nil || res.IsEnd || res.ToLineNum < res.FromLineNum || q.ctx.Err() != nil {
			return err
		}
		if res, err = q.Scheduler.Log(q.ctx, q.run.ID, res.ToLineNum+1); err != nil {
			_, err = io.WriteString(q.w, "… "+err.Error()+"\n")
			return err
		}
	}
}
