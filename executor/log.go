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

func logKeyOf(k runID, now time.Time) logKey {
	if at, ok := instant(k.date); ok {
		now = at
	}
	return logKey{k, now}
}

// logStore keeps the lines of runs. It is safe for concurrent use.
type logStore interface {
	// writer returns where the lines of one run go. It costs nothing until the
	// first line.
	writer(key logKey) lineWriter
	// handler formats records into a writer.
	handler(w lineWriter) slog.Handler
	// read returns lines from the given one on, and false when there is no log.
	read(key logKey, from int) (wire.LogResult, bool, error)
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
	// not keep them.
	write(lines []byte)
	// close is called when no more lines are expected.
	close()
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
