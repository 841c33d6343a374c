package console

// What a host is told of pages that somebody has seen.

import (
	"context"
	"net/http"
	"slices"

	"github.com/xxljob/xxljob/console/internal/web"
)

// View is what Config.Viewed is told of: somebody has been answered with what is not recorded.
type View struct {
	// User is the name of who it was, as in the record of changes: for a token, "token NAME of USER".
	User string
	// Kind is what was answered with.
	Kind ViewKind
	// App, JobID and RunID are of what it was about: empty and zero where there were several, and
	// RunID is zero for a job.
	App          string
	JobID, RunID int64
	// Client is where the request came from, RequestID by which it is found in the log.
	Client, RequestID string
}

// ViewKind is a kind of answers that have parameters, results or logs in them.
type ViewKind string

// The kinds of answers.
const (
	ViewJob     ViewKind = "job"     // a job's page or a form of it: its parameter
	ViewRun     ViewKind = "run"     // a run's page: its parameter, its result and the end of its log
	ViewLog     ViewKind = "log"     // a page of a run's log, or what was looked for in it
	ViewLogFile ViewKind = "logfile" // a run's log as a file
	ViewExport  ViewKind = "export"  // jobs as a file, with their parameters
	ViewRuns    ViewKind = "runs"    // a list of runs with a column of parameters or of results
	ViewChanges ViewKind = "changes" // the list of changes, with parameters before and after them
)

// serveRoute has a route answer, and tells the host of what was seen then.
func (q *request) serveRoute(rt *route) error {
	if q.Viewed == nil || rt.views == "" || q.R.Method == http.MethodHead || q.IsPart() {
		return rt.serve(q)
	}
	a := &web.StatusWriter{ResponseWriter: q.W}
	q.W = a
	if err := rt.serve(q); err != nil {
		return err
	}
	if a.Status == http.StatusOK && q.shows(rt) {
		q.tellViewed(rt.views)
	}
	return nil
}

// shows reports whether the answer has anything of what the route may show.
func (q *request) shows(rt *route) bool {
	switch rt.views {
	case ViewJob:
		return q.job.ID != 0 // and no form for a new one
	case ViewRuns:
		p := q.page("runs", nil)
		return slices.ContainsFunc([]string{"param", "result"}, func(column string) bool { return p.Shown("runs")[column] })
	}
	return true
}

// tellViewed tells the host. A panic of it is the log's.
func (q *request) tellViewed(kind ViewKind) {
	defer func() {
		if v := recover(); v != nil {
			q.Logger.Error("console: Config.Viewed has panicked", "request", q.ID, "panic", v)
		}
	}()
	v := View{User: q.user.actor(), Kind: kind, App: q.job.App, JobID: q.job.ID, Client: q.Client.Text, RequestID: q.ID}
	if q.run.ID != 0 {
		v.App, v.JobID, v.RunID = q.run.App, q.run.JobID, q.run.ID
	}
	q.Viewed(context.WithoutCancel(q.R.Context()), v)
}
