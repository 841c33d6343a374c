package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// The reports at the end of each case are equal to a count of the runs, however they have ended
// in it.

// recount compares, where the store has reports and answers questions about many runs.
func recount(e *env, s store.Store) {
	reports, has := s.(store.ReportReader)
	runs, reads := s.(store.RunReader)
	if !has || !reads || e.deletes || e.ctx.Err() != nil {
		return
	}
	from, to := time.Unix(0, 0).UTC(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	var tally store.Tally
	for _, ahead := range []bool{false, true} {
		for q := (store.RunSearch{Ahead: ahead, Limit: 1000}); q.Before != 1; {
			found, err := runs.SearchRuns(e.ctx, q)
			e.must(err)
			for i := range found.Runs {
				if at := found.Runs[i].Instant(); !at.Before(from) && at.Before(to) {
					found.Runs[i].CountEnd(tally.Count)
				}
			}
			q.Before = found.SearchedTo
		}
	}
	found, err := reports.Reports(e.ctx, store.ReportQuery{From: from, To: to, Examine: 200_000})
	e.must(err)
	var counted, reported []string
	for _, r := range tally.Reports() {
		counted = append(counted, fmt.Sprintf("%+v", *r))
	}
	for _, r := range found.Reports {
		if r.Length == store.Quarter { // days were added up on purpose
			reported = append(reported, fmt.Sprintf("%+v", r))
		} else {
			counted = nil
		}
	}
	if counted != nil && !slices.Equal(counted, reported) {
		e.Errorf("the reports are not equal to a count of the runs:\n got %v\nwant %v", reported, counted)
	}
}
