package executor

// Logs of runs: which one a run or a request means, how a record becomes a line, and which lines
// a request gets. Where they are kept is in logfile.go and logmem.go.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// logKey names the log of a run, or a request for it.
type logKey struct {
	runID
	at time.Time // in its day; the present one where the date is missing or absurd
}

// askedLog is the key of a request for a log.
func askedLog(k runID, now time.Time) logKey {
	if at, ok := instant(k.date); ok {
		now = at
	}
	return logKey{k, now}
}

// maxLogOff is how far a run's date may be from the clock of its executor for its log to
// be in the directory of that day. The clocks of honest admins are off by less.
const maxLogOff = 48 * time.Hour

// newLog is the key of the log of a run that is accepted now. The date is the caller's to
// choose, but not the day of the directory, or the retention might never come to it.
func newLog(k runID, now time.Time) logKey {
	key := askedLog(k, now)
	if off := key.at.Sub(now); off > maxLogOff {
		key.at = now.Add(maxLogOff)
	} else if off < -maxLogOff {
		key.at = now.Add(-maxLogOff)
	}
	return key
}

// logStore keeps the lines of runs. It is safe for concurrent use.
type logStore interface {
	// writer returns where the lines of one run go. It costs nothing until the
	// first line.
	writer(key logKey) lineWriter
	// handler formats records into a writer.
	handler(w lineWriter) slog.Handler
	// read returns lines, and false when there is no log.
	read(key logKey, part logPart) (wire.LogResult, bool, error)
	// of returns a store for the logs of one cluster, which shares with this one
	// what bounds all logs together.
	of(cfg Config, cluster string) (logStore, error)
	// close releases what the store holds. Lines written later are lost.
	close() error
}

// lineWriter takes lines of one run, and keeps or loses them: nothing a handler
// logs may make it fail. It is safe for concurrent use.
type lineWriter interface {
	// write takes one or more whole lines, each ended by a line feed, and does
	// not keep them. They are of a record of that time and level.
	write(at time.Time, level slog.Level, lines []byte)
	// close is called when no more lines are expected.
	close()
}

// twoWriters write the same lines: where the executor keeps them, and where its admin wants
// them.
type twoWriters struct {
	lineWriter
	more func(at time.Time, level slog.Level, lines string)
}

func (w *twoWriters) write(at time.Time, level slog.Level, lines []byte) {
	w.lineWriter.write(at, level, lines)
	w.more(at, level, string(lines))
}

// logFormat makes the handlers of a store.
type logFormat struct {
	level slog.Leveler
	loc   *time.Location
}

func (f logFormat) handler(w lineWriter) slog.Handler {
	return &lineHandler{out: w, format: f}
}

// newLogStore makes the store a Config asks for.
func newLogStore(cfg Config) (logStore, error) {
	format := logFormat{level: cfg.Log.Level, loc: cfg.Location}
	if cfg.Log.Dir == "" {
		return newMemLogs(format, cfg.Log.MaxBytes, cfg.Log.TotalBytes), nil
	}
	return newFileLogs(format, cfg, cfg.Log.Dir)
}

// lineHandler is a slog.Handler that writes lines like
//
//	2006-01-02 15:04:05 INFO message key=value group.key="two words"
type lineHandler struct {
	out    lineWriter
	format logFormat
	group  string // prefix of the keys to come, with its dot
	attrs  string // what WithAttrs has added, formatted
}

func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool {
	return l >= h.format.level.Level()
}

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	b := []byte(h.attrs)
	for _, a := range attrs {
		b = appendAttr(b, h.group, a)
	}
	sub := *h
	sub.attrs = string(b)
	return &sub
}

func (h *lineHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	sub := *h
	sub.group += name + "."
	return &sub
}

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	b := make([]byte, 0, 128)
	if !r.Time.IsZero() {
		b = r.Time.In(h.format.loc).AppendFormat(b, time.DateTime)
		b = append(b, ' ')
	}
	b = append(b, r.Level.String()...)
	b = append(b, ' ')
	b = append(b, strings.TrimRight(r.Message, "\r\n")...)
	b = append(b, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		b = appendAttr(b, h.group, a)
		return true
	})
	h.out.write(r.Time, r.Level, append(b, '\n'))
	return nil
}

// appendAttr appends " key=value", or all members of a group.
func appendAttr(b []byte, prefix string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if a.Key == "" && v.Kind() != slog.KindGroup {
		if v.Any() == nil {
			return b // the empty Attr, which handlers ignore
		}
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, m := range v.Group() {
			b = appendAttr(b, prefix, m)
		}
		return b
	}
	b = append(b, ' ')
	b = appendText(b, prefix+a.Key)
	b = append(b, '=')
	if v.Kind() == slog.KindTime {
		return v.Time().AppendFormat(b, time.RFC3339Nano)
	}
	if err, ok := v.Any().(error); ok {
		return appendText(b, fmt.Sprint(err)) // Sprint survives an Error that panics
	}
	return appendText(b, v.String())
}

// appendText appends s, quoted when it would not read back as one word.
func appendText(b []byte, s string) []byte {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r == '=' || !strconv.IsPrint(r) }) {
		return strconv.AppendQuote(b, s)
	}
	return append(b, s...)
}

// cutNotice is the last line of a log that has reached its bound.
func cutNotice(max int) string {
	return fmt.Sprintf("(the log is cut here: no more than %d bytes are kept of a run)\n", max)
}

// logPart is which lines of a log are asked for: those from one on, or the last ones.
type logPart struct {
	from int // from 1
	tail int // so many of the last ones, if not zero
}

// maxTail bounds the lines of a logPart's tail.
const maxTail = 10_000

// partOf is what a request asks for.
func partOf(req wire.LogRequest) logPart {
	return logPart{from: max(req.FromLineNum, 1), tail: min(max(req.Tail, 0), maxTail)}
}

// none is the answer where there are no lines.
func (p logPart) none() wire.LogResult {
	if p.tail > 0 {
		return wire.LogResult{FromLineNum: 1, Tail: true}
	}
	return wire.LogResult{FromLineNum: p.from}
}

// of returns the lines of a log.
func (p logPart) of(r io.ReadSeeker) (wire.LogResult, error) {
	if p.tail == 0 {
		return readLines(r, p.from)
	}
	res, err := readTail(r, p.tail)
	res.Tail = true
	return res, err
}

// maxPage is about how many bytes of lines one log request is answered with.
const maxPage = 1 << 20

// readLines returns the lines of r from the given one on, as many as a page holds.
// A last line without its end is being written and not returned. Past the end,
// the result's ToLineNum is the last line there is.
func readLines(r io.Reader, from int) (wire.LogResult, error) {
	res := wire.LogResult{FromLineNum: from}
	var page strings.Builder
	var line []byte
	for in := bufio.NewReader(r); page.Len() < maxPage; {
		part, err := in.ReadSlice('\n')
		if wanted := res.ToLineNum+1 >= from; wanted {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			res.ToLineNum++
			page.Write(line)
			line = line[:0]
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			res.LogContent = page.String()
			return res, nil
		default:
			return wire.LogResult{}, err
		}
	}
	res.LogContent = page.String()
	return res, nil
}

// readTail returns the last lines of r, at most n and as many as a page holds, but one at
// least. It reads r once for where its lines begin, of which it keeps n, and once more for
// those that it returns.
func readTail(r io.ReadSeeker, n int) (wire.LogResult, error) {
	begins := make([]int64, 0, min(n, 64)) // of the last lines, a ring once there are n
	in := bufio.NewReader(r)
	end, lines := int64(0), 0
	for at := int64(0); ; {
		part, err := in.ReadSlice('\n')
		at += int64(len(part))
		switch {
		case err == nil:
			if len(begins) < n {
				begins = append(begins, end)
			} else {
				begins[lines%n] = end
			}
			lines++
			end = at
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case !errors.Is(err, io.EOF):
			return wire.LogResult{}, err
		}
		break
	}
	first := lines - len(begins)
	begin := func(line int) int64 { return begins[line%max(len(begins), 1)] }
	for first < lines-1 && end-begin(first) > maxPage {
		first++
	}
	res := wire.LogResult{FromLineNum: first + 1, ToLineNum: lines}
	if first == lines {
		return res, nil
	}
	if _, err := r.Seek(begin(first), io.SeekStart); err != nil {
		return wire.LogResult{}, err
	}
	text := make([]byte, end-begin(first))
	_, err := io.ReadFull(r, text)
	res.LogContent = string(text)
	return res, err
}
