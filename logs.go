package xxljob

// Where the lines of runs' logs go beside where the run ran.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// LogConfig says where else the lines of runs go than to the executor that runs them, which
// keeps them as its own LogConfig says. It is about executors of this process that are made by
// package executor; the logs of executors elsewhere stay there. The zero value is complete:
// nothing goes anywhere else.
//
// Lines are gathered in memory and written each second, a full batch at once, and at the end
// of a run before its result is stored. So a process that dies loses the last second of its
// runs' lines. Where QueueBytes are full, handlers that log wait for room. Nothing is lost of a
// run that has ended normally, but for what is beyond RunBytes and JobBytes, as long as the
// store, or the sink, takes something in every two seconds. After two seconds without that,
// lines for which there is no room are dropped, and the log says how many; results are stored
// without waiting for lines.
type LogConfig struct {
	// InStore keeps lines in the store, which has to be a LogStore, for as long as it keeps the
	// run: both stores of this module are one. Scheduler.Log and Scheduler.LogTail read them
	// there, at each node that has InStore too, also after the executor and the node are gone.
	InStore bool
	// Sink takes the lines instead of the store. Where it is a LogReader, they are read there.
	Sink LogSink
	// RunBytes is how many bytes of lines are written of one run. The line that reaches it is
	// cut there, and a last line says so; a line of more than 1 MiB is cut in any case. 1 KiB
	// to 1 GiB; zero means 1 MiB.
	RunBytes int
	// JobBytes is how many bytes of compressed lines the store takes of the runs of one job that
	// were planned on one day, in UTC; the logs that reach it say so in their last line. What
	// several nodes write at once may be beyond it by one batch each, of 2 MiB of lines at
	// most. 64 KiB to 1 TiB; zero means 64 MiB. A sink is not bounded so.
	JobBytes int64
	// QueueBytes is how much memory lines take at this node until they are written, at 64 bytes
	// a line and its text. Handlers wait once seven eighths of it are taken, or an eighth by
	// one run; the last eighth is for what says that lines are missing, and for ends of runs.
	// 2 MiB to 1 GiB; zero means 16 MiB.
	QueueBytes int
	// BytesPerSecond bounds what this node writes: of the compressed lines in the store, of the
	// text in a sink. While it rests for that, handlers wait for room and nothing is dropped;
	// results wait for rests of up to two seconds. 256 KiB to 1 GiB; zero means 4 MiB.
	BytesPerSecond int
	// FailuresEvery is how often at most Config.Logger gets a line at level WARN about one job's
	// runs that have failed at their last attempt, were refused or were lost, and another about
	// its skipped instants; the next line says how many had none, or, where no other end follows, one
	// that comes soon after that time, or at Stop. The node that stores the end says it, and so do
	// others that have executors of the app attached, within half a minute. Zero means a minute;
	// negative means no lines.
	FailuresEvery time.Duration
}

// LogSink takes the lines of runs: see Config.Logs. One call is made at a time. A batch is
// handed over again until the sink has returned nil for it, so a sink returns nil also for what
// it will never take, and after an error may get lines for a second time: RunLines.First tells.
// A call has five seconds, by its context. While one that ignores it has not returned, no other
// is made; lines wait, and then are dropped, and nothing else is held up. A panic is an error.
type LogSink interface {
	// WriteLogs takes lines of one or more runs, each run once, in the order of its lines. The
	// batch is the sink's to keep.
	WriteLogs(ctx context.Context, batch []RunLines) error
}

// LogReader is what a LogSink is as well that can be read. Its methods may be called at any
// time, four calls at once, which have until Scheduler.Log's context is over.
type LogReader interface {
	// ReadLog returns lines of a run's log that follow each other from the line on, each with a
	// line feed, as many as it likes: of more than 1 MiB the rest is read by another call.
	// ToLineNum is the number of the last, and less than fromLine where there is none. The
	// other fields are not looked at. ErrNoLog means that the sink has no lines of the run at
	// all, which is asked for where it ran then.
	ReadLog(ctx context.Context, runID int64, fromLine int) (wire.LogResult, error)
	// ReadLogTail returns the last n lines in the same way.
	ReadLogTail(ctx context.Context, runID int64, n int) (wire.LogResult, error)
}

// LogStats is about lines that go where Config.Logs says.
type LogStats struct {
	// Waiting is how many bytes of memory the lines take that are not written, and Peak how
	// many they have taken at most.
	Waiting, Peak int
	// Written, Cut and Dropped count lines: those that were written, those that were beyond
	// RunBytes or JobBytes, and those that there was no room for.
	Written, Cut, Dropped uint64
}

// RunLines, for a LogSink, are lines of one run that follow each other: Lines from First on, and
// whether that is the End. See [store.RunLines].
type RunLines = store.RunLines

// LogLine is one line of a run's log: its Text, and Time and Level of the record that it is of.
// See [store.LogLine].
type LogLine = store.LogLine
