package console

// The runs of a job one after the other.

import (
	"context"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// previousRun leads to the run of the job before this one.
func (q *request) previousRun() error {
	reader, ok := q.Store.(xxljob.RunReader)
	if !ok {
		return notOffered("xxljob.RunReader")
	}
	found, err := reader.SearchRuns(store.WithShortTexts(q.ctx, 0), xxljob.RunSearch{JobIDs: []int64{q.run.JobID}, Before: q.run.ID, Limit: 1})
	if err != nil {
		return err
	}
	if len(found.Runs) == 0 || !allowed(q.user, see, found.Runs[0].App) {
		return q.toRun(q.run.ID, "noprevious")
	}
	return q.toRun(found.Runs[0].ID, "")
}

// nextRun leads to the run of the job after this one.
func (q *request) nextRun() error {
	reader, ok := q.Store.(xxljob.RunReader)
	if !ok {
		return notOffered("xxljob.RunReader")
	}
	r, err := runAfter(store.WithShortTexts(q.ctx, 0), reader, &q.run)
	if err != nil {
		return err
	}
	if r == nil || !allowed(q.user, see, r.App) {
		return q.toRun(q.run.ID, "nonext")
	}
	return q.toRun(r.ID, "")
}

// runAfter is the run of the same job with the next greater ID, or nil for none. A search goes
// back from the newest on, so it is asked for what was planned in ever longer times behind the
// run, of which the last that is found is the next; and then for any, since a clock may have been
// set back.
func runAfter(ctx context.Context, reader xxljob.RunReader, r *xxljob.Run) (*xxljob.Run, error) {
	for _, span := range []time.Duration{10 * time.Minute, 26 * time.Hour, 40 * 24 * time.Hour, 0} {
		s := xxljob.RunSearch{JobIDs: []int64{r.JobID}, Limit: 1000}
		if span > 0 {
			s.Since, s.Until = r.Created.Add(-time.Second), r.Created.Add(span)
		}
		found, err := reader.SearchRuns(ctx, s)
		if err != nil {
			return nil, err
		}
		for i := len(found.Runs) - 1; i >= 0; i-- {
			if found.Runs[i].ID > r.ID {
				return &found.Runs[i], nil
			}
		}
	}
	return nil, nil
}

// toRun leads to the page of a run.
func (q *request) toRun(id int64, said string) error {
	to := "runs/" + strconv.FormatInt(id, 10)
	if said != "" {
		to += "?said=" + said
	}
	return q.Redirect(to)
}
