package store

// What nodes leave for each other in the store: runs to take and to kill, and questions for
// lines of logs.

import (
	"context"
	"log/slog"
	"time"
)

// Inbox, for authors of stores, is what waits for a node.
type Inbox struct {
	Runs  []Run
	Kills []Run
	Asks  []Ask
}

// Ask, for authors of stores, is a question for lines of a run's log or, where Route is set, for the
// address that a routing strategy of the asked node chooses for a run.
type Ask struct {
	// ID is given by the store: positive, and greater than those of earlier
	// questions.
	ID int64
	// Incarnation is the node that is asked.
	Incarnation string
	// Run is the run as it now is. AskLog goes by its ID only, and a question whose
	// run is gone is in no Inbox.
	Run Run
	// FromLine is the first line wanted, from 1, 32 bits wide; a negative one wants so many of
	// the last lines. It means nothing where Route is set.
	FromLine int
	// Route is the name of that strategy, and Addresses are those among which it is to choose, in
	// order. Answer.Content is the address then.
	Route     string
	Addresses []string
}

// LogStore is what a Store is as well that keeps lines of runs' logs, in pages that it need not
// understand. It drops them with their runs.
type LogStore interface {
	// AddLogPages stores pages of any runs, at most MostLogPages. A page that begins at a
	// line at which one of the run begins already changes nothing, nor does one of a run that
	// the store does not have, and neither is refused. Pages of a job and a day, in UTC, on
	// which their runs were planned are refused once those that are there have jobBytes of
	// Content, unless they are a Notice: refused are the runs whose pages were refused. What was
	// deleted with its run (RunDropper) does not count any more. A store that has no more room
	// for pages of any run refuses them in the same way. After an error all or none of them may
	// be stored.
	AddLogPages(ctx context.Context, pages []LogPage, jobBytes int64) (refused []int64, err error)
	// LogPages returns pages of a run in order of FirstLine, from the one on that has the line,
	// at most limit, and the LastLine of the run's last page: zero where there is none, or no
	// such run. A fromLine below zero means the line that has so many lines up to the last,
	// itself included.
	LogPages(ctx context.Context, runID int64, fromLine, limit int) (pages []LogPage, last int, err error)
}

// RunLines are lines of one run that follow each other.
type RunLines struct {
	RunID, JobID int64
	App          string
	// First is the number of the first line, from 1.
	First int
	Lines []LogLine
	// End says that the handler has returned, so that no line follows. There may be no lines
	// with it. Of runs that end while there is no room even for that, it is not said.
	End bool
}

// LogLine is one line of a run's log.
type LogLine struct {
	// Time and Level are those of the record that the line is of, as the handler has logged it,
	// with all digits of the time.
	Time  time.Time
	Level slog.Level
	// Text is the line as Scheduler.Log returns it, without its line feed: valid UTF-8 without
	// NUL. The first line of a record begins with its time, to the second, and its level: see
	// Task.Log.
	Text string
}

// Answer is what a node says to an Ask: lines, or why it has none.
type Answer struct {
	// ToLine is the number of the last line, 32 bits wide; IsEnd says that none
	// will follow.
	ToLine int
	IsEnd  bool
	// Content holds the lines, as UTF-8 without NUL. The node that answers keeps
	// it to 1 MiB.
	Content string
	// Refusal, when not empty, says why there are no lines.
	Refusal string
}

// MostLogPages is how many pages one call of LogStore.AddLogPages brings at most.
const MostLogPages = 1000

// LogPage is some lines of a run's log that follow each other.
type LogPage struct {
	RunID int64
	// FirstLine and LastLine are the numbers of its lines, from 1, 32 bits wide.
	FirstLine, LastLine int
	// Size is how many bytes its lines have, 32 bits wide; Content are the lines, compressed.
	Size    int
	Content []byte
	// Notice says that the page is stored whatever the job has, for it says that the log is cut.
	// It is not kept.
	Notice bool
}
