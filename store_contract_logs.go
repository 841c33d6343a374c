package xxljob

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// LogStore is what a Store is as well that keeps lines of runs' logs, in pages that it need not
// understand. It drops them with their runs.
type LogStore interface {
	// AddLogPages stores pages of any runs, at most store.MostLogPages. A page that begins at a
	// line at which one of the run begins already changes nothing, nor does one of a run that
	// the store does not have, and neither is refused. Pages of a job and a day, in UTC, on
	// which their runs were planned are refused once those that are there have jobBytes of
	// Content, unless they are a Notice: refused are the runs whose pages were refused. What was
	// deleted with its run (RunDropper) does not count any more. A store that has no more room
	// for pages of any run refuses them in the same way. After an error all or none of them may
	// be stored.
	AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) (refused []int64, err error)
	// LogPages returns pages of a run in order of FirstLine, from the one on that has the line,
	// at most limit, and the LastLine of the run's last page: zero where there is none, or no
	// such run. A fromLine below zero means the line that has so many lines up to the last,
	// itself included.
	LogPages(ctx context.Context, runID int64, fromLine, limit int) (pages []store.LogPage, last int, err error)
}
