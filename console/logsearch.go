package console

// All of a log: to look for something in it, and as a file.

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
)

const (
	mostOfALog  = 64 << 20 // bytes of a file, and of a search
	searchTime  = 8 * time.Second
	foundAtOnce = 200 // lines
	mostSought  = 256 // bytes
)

// logFound is how far the log was looked through.
type logFound struct {
	N       int
	To      int  // the last line that was looked at
	GoOn    int  // the line to go on from, or 0 where all of it was looked through
	Growing bool // the run has not ended: there may be more lines
}

// searchLog looks through the log for lines with a text in them, regardless of case, from a line
// on. It looks at what the user is shown, and stops after so many bytes, lines or seconds.
func (q *request) searchLog(text string, from int) (v logView, err error) {
	v = logView{Run: q.run.ID, Search: !q.hidesTexts(), Find: text, From: from, End: true}
	switch {
	case !v.Search:
		return v, &web.Problem{Status: http.StatusForbidden, Key: "log.hidden"}
	case len(text) > mostSought:
		return v, web.BadRequest(errors.New("the text is too long"))
	case q.Scheduler == nil:
		v.Fault = q.text("log.noscheduler")
		return v, nil
	}
	found := &logFound{Growing: !q.run.State.Ended()}
	v.Found = found
	begun, next, parts := time.Now(), from, web.MostParts
	sought := strings.ToLower(text)
	for read := 0; ; {
		res, err := q.linesFrom(next)
		if err != nil {
			if next > from && !errors.Is(err, xxljob.ErrNoLog) { // what was found is of use
				found.GoOn = next
				break
			}
			return q.noLog(v, err)
		}
		read += len(res.text)
		full := q.foundIn(&v, res.from, res.text, sought, &parts)
		if !full {
			found.To = max(res.to, found.To)
		}
		next = found.To + 1
		if full || res.end || res.to < res.from {
			if full {
				found.GoOn = next
			}
			break
		}
		if read >= mostOfALog || time.Since(begun) >= searchTime-logPatience/2 || q.ctx.Err() != nil {
			found.GoOn = next
			break
		}
	}
	found.N, v.To = len(v.Lines), found.To
	return v, nil
}

// foundIn adds the lines of a text that have what is sought. It reports whether there is room for
// no more of them; found.To is then the last one that was looked at. left is how many parts the page has left.
func (q *request) foundIn(v *logView, from int, content, sought string, left *int) (full bool) {
	no := from
	for line := range strings.Lines(q.redacted(q.run.App, FieldLog, content)) {
		if strings.Contains(strings.ToLower(line), sought) {
			if len(v.Lines) == foundAtOnce {
				return true
			}
			v.Lines = append(v.Lines, q.lines(no, line, 1, left)...)
		}
		v.Found.To = no
		no++
	}
	return false
}

// logFile answers with the whole log as a file of text.
func (q *request) logFile() error {
	if q.Scheduler == nil {
		return errNotThere
	}
	res, err := q.linesFrom(1)
	if err != nil {
		if errors.Is(err, xxljob.ErrNoLog) {
			return &web.Problem{Status: http.StatusNotFound, Key: "log.none", Values: []any{"why", why(err)}}
		}
		return err
	}
	h := q.W.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="run-%d.log"`, q.run.ID))
	packs := q.PacksFile()
	q.Wrote = true
	if q.R.Method == http.MethodHead {
		return nil
	}
	file := q.sender()
	if !packs {
		return q.writeLog(file, file, res)
	}
	out, end := web.Gzipping(file)
	err = q.writeLog(out, file, res)
	if endErr := end(); err == nil {
		err = endErr
	}
	return err
}

// writeLog writes the log from the lines on that were read, on its way to file. Who takes that is not to blame
// for the time in which further lines are read.
func (q *request) writeLog(out io.Writer, file *sender, res logText) (err error) {
	for written := 0; ; {
		text := q.redacted(q.run.App, FieldLog, res.text)
		if written += len(text); written > mostOfALog {
			_, err = io.WriteString(out, "… "+q.text("log.cut")+"\n")
			return err
		}
		if _, err := io.WriteString(out, text); err != nil || res.end || res.to < res.from || q.ctx.Err() != nil {
			return err
		}
		reads := time.Now()
		file.waits(logPatience)
		res, err = q.linesFrom(res.to + 1)
		file.began = file.began.Add(time.Since(reads))
		if err != nil {
			_, err = io.WriteString(out, "… "+q.text("log.silent", "why", q.whyOf(err))+"\n")
			return err
		}
	}
}
