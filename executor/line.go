package executor

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

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
