package console

// Which jobs the list shows. The store chooses by most filters; by the type of the schedule, by
// who has stopped a job, and by how the last runs have gone, it is done here, over so many jobs at most.

import (
	"slices"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

const (
	jobsExamined = 2000 // where the store cannot choose
	jobsAtOnce   = 500
	badExamined  = 1000 // runs that have failed, whose jobs may be failing
	failingAfter = 3    // runs in a row that have
	mostFailing  = 200
)

// jobsFound is what a search has come to.
type jobsFound struct {
	jobs     []xxljob.Job
	after    *xxljob.Job // where the list goes on, if it does
	examined int         // how many were looked at, where the search stopped early
	more     bool        // there may be more, and the list does not go on
}

// findJobs returns a page of jobs.
func (q *request) findJobs(reader xxljob.JobReader, f *jobFilter, search xxljob.JobSearch) (found jobsFound, err error) {
	if f.Failing != "" {
		found.jobs, found.more, err = q.failing(f, &search)
		return found, err
	}
	if f.Type == "" && f.State != "self" && f.State != "hand" {
		search.Limit = f.rows + 1
		if found.jobs, err = reader.SearchJobs(q.ctx, search); err == nil && len(found.jobs) > f.rows {
			found.jobs = found.jobs[:f.rows]
			found.after = &found.jobs[f.rows-1]
		}
		return found, err
	}
	search.Limit = jobsAtOnce
	for looked := 0; ; {
		jobs, err := reader.SearchJobs(q.ctx, search)
		if err != nil {
			return found, err
		}
		for i := range jobs {
			looked++
			if !f.chooses(&jobs[i]) {
				continue
			}
			if len(found.jobs) == f.rows {
				found.after = &found.jobs[f.rows-1]
				return found, nil
			}
			found.jobs = append(found.jobs, jobs[i])
		}
		if len(jobs) < jobsAtOnce {
			return found, nil
		}
		search.After = jobs[len(jobs)-1]
		if looked >= jobsExamined {
			found.after, found.examined = &search.After, looked
			return found, nil
		}
	}
}

// chooses reports whether a job is one of those that the filter is for, as far as the store does
// not know.
func (f *jobFilter) chooses(j *xxljob.Job) bool {
	self := j.StopReason != ""
	return (f.Type == "" || j.Schedule.Type == xxljob.ScheduleType(f.Type)) && (f.State != "self" || self) && (f.State != "hand" || !self)
}

// failing are the jobs whose last runs have all failed, of those that the newest bad runs are of;
// more says that there may be others.
func (q *request) failing(f *jobFilter, search *xxljob.JobSearch) (list []xxljob.Job, more bool, err error) {
	reader, ok := q.Store.(xxljob.RunReader)
	if !ok {
		return nil, false, notOffered("xxljob.RunReader")
	}
	bad, _ := statesOf("bad")
	runs, err := reader.SearchRuns(q.ctx, xxljob.RunSearch{Apps: search.Apps, States: bad, Limit: badExamined})
	if err != nil {
		return nil, false, err
	}
	var ids []int64
	for _, r := range runs.Runs {
		switch {
		case slices.Contains(ids, r.JobID):
		case len(ids) == mostFailing:
			more = true
		default:
			ids = append(ids, r.JobID)
		}
	}
	more = more || runs.SearchedTo > 1
	if len(ids) == 0 {
		return nil, more, nil
	}
	last, err := reader.LastRuns(q.ctx, ids, failingAfter)
	if err != nil {
		return nil, false, err
	}
	fine := map[int64]bool{}
	for _, r := range last {
		fine[r.JobID] = fine[r.JobID] || !slices.Contains(bad, r.State)
	}
	ids = slices.DeleteFunc(ids, func(id int64) bool { return fine[id] })
	found, err := q.jobsByID(ids)
	for _, id := range ids {
		if j, there := found[id]; there && fits(&j, f, search) {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b xxljob.Job) int { return strings.Compare(a.Name, b.Name) })
	return list[:min(len(list), f.rows)], more || len(list) > f.rows, err
}

// fits reports whether a job is one that the store would have chosen.
func fits(j *xxljob.Job, f *jobFilter, search *xxljob.JobSearch) bool {
	part := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(f.Text)) }
	switch {
	case len(search.Apps) > 0 && !slices.Contains(search.Apps, j.App),
		f.Handler != "" && f.Handler != j.Handler,
		f.Author != "" && f.Author != j.Author,
		f.Tag != "" && !slices.Contains(j.Tags, f.Tag),
		!f.chooses(j),
		search.Stopped != nil && *search.Stopped != j.Stopped,
		search.Order == store.ByNext && j.Next.IsZero():
		return false
	}
	return f.Text == "" || part(j.Name) || part(j.Key) || part(j.Handler) || slices.ContainsFunc(j.Tags, part)
}

// running counts the runs of jobs that are under way; more says that there may be others, which
// the search has not come to.
func (q *request) running(lines []jobLine, ids []int64) (more bool, err error) {
	reader, ok := q.Store.(xxljob.RunReader)
	if !ok || len(ids) == 0 {
		return false, nil
	}
	open, err := reader.SearchRuns(q.ctx, xxljob.RunSearch{JobIDs: ids, States: []xxljob.State{xxljob.StatePlanned, xxljob.StateStarted, xxljob.StateDispatched}, Limit: 1000})
	if err != nil {
		return false, err
	}
	for _, r := range open.Runs {
		switch l := &lines[slices.Index(ids, r.JobID)]; {
		case r.State != xxljob.StatePlanned:
			l.Running++
		case isNext(&r) && (l.Next.IsZero() || r.Scheduled.Before(l.Next)):
			l.Next = r.Scheduled
		}
	}
	return open.SearchedTo > 1, nil
}
