// Package log tells a log of alarms: one structured line a message.
package log

import (
	"context"
	"log/slog"

	"github.com/xxljob/xxljob/alarm"
)

// New makes an alarmer that writes a line to a logger for each message, at level Error, or at
// level Info where a job has recovered or a trouble is over. Its attributes are id, app, job (the key), job_id,
// job_name, cause, count, first, last and node, trouble where it is about one, and those of the newest event: run, state,
// attempt (from 0), instant and text, of which all but text are left out where the event is
// about no run. Texts are what alarm.Clean leaves of them. Nil means slog.Default at the time
// of the message.
//
// The alarmer never fails, as a logger says nothing of lines that it did not write. It is safe
// for concurrent use.
func New(logger *slog.Logger) alarm.Alarmer { return alarmer{logger} }

type alarmer struct{ logger *slog.Logger }

// Alarm writes the line.
func (a alarmer) Alarm(ctx context.Context, m alarm.Message) error {
	logger := a.logger
	if logger == nil {
		logger = slog.Default()
	}
	m = alarm.Clean(m)
	level, says := slog.LevelError, "xxljob: alarm"
	switch m.Cause {
	case alarm.Recovered:
		level, says = slog.LevelInfo, "xxljob: job has recovered"
	case alarm.TroubleOver:
		level, says = slog.LevelInfo, "xxljob: a trouble is over"
	}
	attrs := []slog.Attr{
		slog.String("id", m.ID), slog.String("app", m.App), slog.String("job", m.JobKey), slog.Int64("job_id", m.JobID),
		slog.String("job_name", m.JobName), slog.String("cause", string(m.Cause)), slog.Int("count", m.Count),
		slog.Time("first", m.First), slog.Time("last", m.Last), slog.String("node", m.Node),
	}
	if m.Trouble != "" {
		attrs = append(attrs, slog.String("trouble", m.Trouble))
	}
	logger.LogAttrs(ctx, level, says, append(attrs, newest(m)...)...)
	return nil
}

// newest are the attributes of the newest event.
func newest(m alarm.Message) []slog.Attr {
	if len(m.Events) == 0 {
		return nil
	}
	e := m.Events[0]
	text := slog.String("text", e.Text)
	if e.RunID == 0 {
		return []slog.Attr{text}
	}
	return []slog.Attr{
		slog.Int64("run", e.RunID), slog.String("state", e.State), slog.Int("attempt", e.Attempt+1),
		slog.Time("instant", e.Instant), text,
	}
}
