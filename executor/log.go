package executor

import (
	"log/slog"
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
