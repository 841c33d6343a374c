package mutant

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// readJobMutants break lists of jobs, and counts.
func readJobMutants() []Mutant {
	of := func(b bentJobReads) func(whole) any {
		return func(s whole) any {
			bent := b // each case has its own: they run side by side
			bent.st = s
			return &bent
		}
	}
	search := func(change func(*store.JobSearch)) func(whole) any {
		return of(bentJobReads{search: change})
	}
	jobs := func(change func([]store.Job) []store.Job) func(whole) any {
		return of(bentJobReads{jobs: change})
	}
	return []Mutant{
		{"JobsForgetApps", search(func(q *store.JobSearch) { q.Apps = nil }), []string{"Read/JobsByEachField"}},
		{"JobsForgetTags", search(func(q *store.JobSearch) { q.Tags = nil }), []string{"Read/JobsByEachField"}},
		{"OneTagIsEnough", search(func(q *store.JobSearch) { q.Tags = q.Tags[:min(len(q.Tags), 1)] }), []string{"Read/JobsByEachField"}},
		{"JobsForgetTheHandler", search(func(q *store.JobSearch) { q.Handler = "" }), []string{"Read/JobsByEachField"}},
		{"JobsForgetTheAuthor", search(func(q *store.JobSearch) { q.Author = "" }), []string{"Read/JobsByEachField"}},
		{"JobsForgetTheReason", search(func(q *store.JobSearch) { q.StopReason = "" }), []string{"Read/JobsByEachField"}},
		{"JobsForgetStopped", search(func(q *store.JobSearch) { q.Stopped = nil }), []string{"Read/JobsByEachField", "Read/JobsInEachOrder"}},
		{"JobsForgetTheText", search(func(q *store.JobSearch) { q.Text = "" }), []string{"Read/JobsForAText"}},
		{"JobsInOneOrder", search(func(q *store.JobSearch) { q.Order = store.ByID }), []string{"Read/JobsInEachOrder", "Read/JobsByEachField"}},
		{"JobsFromTheFirstOn", search(func(q *store.JobSearch) { q.After = store.Job{} }), []string{"Read/JobsInEachOrder", "Read/JobsRefusesWhatIsAbsurd"}},
		{"JobsBehindTheID", search(func(q *store.JobSearch) { q.After.Name = "" }), []string{"Read/JobsInEachOrder", "Read/JobsRefusesWhatIsAbsurd"}},
		{"JobsWithoutEnd", search(func(q *store.JobSearch) { q.Limit = 1000 }), []string{"Read/JobsAtMost"}},
		{"JobsBackwards", jobs(func(l []store.Job) []store.Job { slices.Reverse(l); return l }), []string{"Read/JobsInEachOrder", "Read/SchedulesThatAreNotStopped"}},
		{"JobsWithoutNext", jobs(func(l []store.Job) []store.Job {
			for i := range l {
				l[i].Next = l[i].Added
			}
			return l
		}), []string{"Read/SchedulesThatAreNotStopped"}},
		{"CountsOfAll", of(bentJobReads{counts: func(l []store.JobCount) []store.JobCount {
			for i := range l {
				l[i].Enabled, l[i].Stopped = l[i].Enabled+l[i].Stopped, 0
			}
			return l
		}}), []string{"Read/JobsAreCounted"}},
		{"CountsOutOfOrder", of(bentJobReads{counts: func(l []store.JobCount) []store.JobCount { slices.Reverse(l); return l }}), []string{"Read/JobsAreCounted"}},
		{"ValuesOfAnyPrefix", of(bentJobReads{prefix: func(string) string { return "" }}), []string{"Read/ValuesByPrefix"}},
	}
}

// bentJobReads changes questions and answers about jobs.
type bentJobReads struct {
	st     whole
	search func(*store.JobSearch)
	jobs   func([]store.Job) []store.Job
	counts func([]store.JobCount) []store.JobCount
	prefix func(string) string
}

func (b *bentJobReads) changed(list []store.Job, err error) ([]store.Job, error) {
	if b.jobs != nil {
		list = b.jobs(list)
	}
	return list, err
}

func (b *bentJobReads) SearchJobs(ctx context.Context, q store.JobSearch) ([]store.Job, error) {
	if b.search != nil {
		b.search(&q)
	}
	return b.changed(b.st.SearchJobs(ctx, q))
}

func (b *bentJobReads) Schedules(ctx context.Context, after int64, limit int) ([]store.Job, error) {
	return b.changed(b.st.Schedules(ctx, after, limit))
}

func (b *bentJobReads) CountJobs(ctx context.Context) ([]store.JobCount, error) {
	list, err := b.st.CountJobs(ctx)
	if b.counts != nil {
		list = b.counts(list)
	}
	return list, err
}

func (b *bentJobReads) JobValues(ctx context.Context, field, prefix string, limit int) ([]string, error) {
	if b.prefix != nil {
		prefix = b.prefix(prefix)
	}
	return b.st.JobValues(ctx, field, prefix, limit)
}
