package core

// Where the lines of runs' logs go beside where the run ran.

import (
	"context"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// LogConfig is xxljob.LogConfig.
type LogConfig struct {
	InStore        bool
	Sink           LogSink
	RunBytes       int
	JobBytes       int64
	QueueBytes     int
	BytesPerSecond int
}

// LogSink is xxljob.LogSink.
type LogSink interface {
	WriteLogs(ctx context.Context, batch []store.RunLines) error
}

// LogReader is xxljob.LogReader.
type LogReader interface {
	ReadLog(ctx context.Context, runID int64, fromLine int) (wire.LogResult, error)
	ReadLogTail(ctx context.Context, runID int64, n int) (wire.LogResult, error)
}

// LogStats is xxljob.LogStats.
type LogStats struct {
	Waiting, Peak         int
	Written, Cut, Dropped uint64
}
