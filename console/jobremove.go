package console

// Removing a job, which asks for its name.

import (
	"net/http"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// removeView is the page that asks.
type removeView struct {
	Job     xxljob.Job
	Typed   string
	Fault   string
	Planned int  // runs that would be cancelled, as far as they are counted
	More    bool // than that
}

// mostPlanned is how many planned runs are counted before a job is removed.
const mostPlanned = 100

// removeForm asks whether the job is to go, and for its name.
func (q *request) removeForm() error { return q.showRemove(http.StatusOK, "", "") }

func (q *request) showRemove(status int, typed, fault string) error {
	planned, err := q.Store.Runs(store.WithShortTexts(q.ctx, 0), xxljob.RunFilter{JobID: q.job.ID, States: []xxljob.State{xxljob.StatePlanned}, Limit: mostPlanned + 1})
	if err != nil {
		return err
	}
	return q.show("remove", status, removeView{q.job, typed, fault, min(len(planned), mostPlanned), len(planned) > mostPlanned})
}

func (q *request) removeJob() error {
	if typed := strings.TrimSpace(q.Field("name")); typed != strings.TrimSpace(q.job.Name) {
		return q.showRemove(http.StatusUnprocessableEntity, typed, q.text("remove.other"))
	}
	if err := q.Scheduler.RemoveJob(q.ctx, q.job.ID); err != nil {
		return err
	}
	return q.Redirect("jobs?said=removed")
}
