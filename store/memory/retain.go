package memory

// retention bounds what is kept of what is over: ended runs of a job and of all, and bytes of
// the logs of all.
type retention struct {
	perJob, total int
	logs          int64
}

// Bounds of the audit. Entries of a job that exists are kept up to the first
// bound; those of removed jobs for as many jobs as the second says.
const (
	auditPerJob  = 100
	auditRemoved = 10_000
)

// Retain bounds the ended runs that the store keeps: perJob of each job and
// total of all. Those that ended first go first; runs that have not ended are
// always kept. The default is 10,000 and 200,000; less than one counts as one.
func Retain(perJob, total int) Option {
	return func(s *Store) { s.keep.perJob, s.keep.total = max(perJob, 1), max(total, 1) }
}

// RetainLogs bounds the lines of runs' logs that the store keeps (xxljob.LogConfig.InStore):
// pages of all runs together may take so many bytes, at 128 bytes a page more than their
// compressed lines. Beyond it further logs are cut, as those of a job are that has had its
// share of the day, until runs are dropped with theirs. The default is 256 MiB; with less
// than one nothing is kept but that a log was cut.
func RetainLogs(bytes int64) Option {
	return func(s *Store) { s.keep.logs = max(bytes, 0) }
}

// retire notes that a run has ended and evicts what is then over the bounds.
// That is never r itself, so the caller may go on using r, but no run that
// ended before. The first run of a trigger counts as ended once all runs of it have.
func (s *Store) retire(r *run) {
	first := r.first
	r.first = nil // it may be evicted from now on
	first.unended--
	if first != r && first.unended == 0 { // r is the last of them; it goes behind, so that it stays
		s.keepEnded(first)
	}
	if first != r || first.unended == 0 {
		s.keepEnded(r)
	}
}

// keepEnded keeps a run among those that have ended.
func (s *Store) keepEnded(r *run) {
	j := r.job
	j.ended.push(r)
	s.ended.push(r)
	if j.ended.n > s.keep.perJob {
		s.evict(j.ended.head)
	}
	if s.ended.n > s.keep.total {
		s.evict(s.ended.head)
	}
}

// evict forgets an ended run.
func (s *Store) evict(r *run) {
	j := r.job
	j.ended.remove(r)
	s.ended.remove(r)
	j.runs.remove(r)
	if r.extras != nil {
		s.dropExtras(r)
	}
	s.runs.drop(r)
	s.rest(j)
	s.forgetJob(j)
}

// dropExtras forgets what else is known by a run that is evicted.
func (s *Store) dropExtras(r *run) {
	s.unbear(r)
	s.dropPages(r)
	if key := r.extras.key; key != "" {
		delete(s.keys, triggerKey{r.job.id, key})
	}
}

// forgetJob lets go of a removed job of which nothing is kept any more.
func (s *Store) forgetJob(j *job) {
	if j.removed && j.runs.n == 0 && j.audit == nil {
		delete(s.jobs, j.id)
		if !s.jobIDs.given(j.id) {
			s.jobIDs.give(j.id)
		}
	}
}

// forgetAudits drops the audit of the jobs that were removed first.
func (s *Store) forgetAudits() {
	if len(s.removed) <= auditRemoved {
		return
	}
	j := s.jobs[s.removed[0]]
	s.removed = s.removed[1:]
	j.forgetAudit()
	s.forgetJob(j)
}
