package memory

import "github.com/xxljob/xxljob/store"

// terms are what a run was started with, as it mostly has in common with other runs of its job.
// They are never changed, only replaced.
type terms struct {
	app                    string // when the run was inserted
	handler, block, param  string
	address, owner, bootID string
	jobVersion             int64
	retries                int
}

func termsOf(r *store.Run, app string) terms {
	return terms{
		app: app, handler: r.Handler, block: r.Block, param: r.Param, address: r.Address, owner: r.Owner, bootID: r.BootID,
		jobVersion: r.JobVersion, retries: r.Retries,
	}
}

func (t *terms) put(out *store.Run) {
	out.App, out.Handler, out.Block, out.Param = t.app, t.handler, t.block, t.param
	out.Address, out.Owner, out.BootID = t.address, t.owner, t.bootID
	out.JobVersion, out.Retries = t.jobVersion, t.retries
}

// agree gives the run its terms: those that another run of the job had last, where they are the
// same.
func (r *run) agree(t terms) {
	last := &r.job.started
	if t.owner == "" {
		last = &r.job.plain
	}
	if *last == nil || **last != t {
		own := t // so that t itself need not be on the heap
		*last = &own
	}
	r.terms = *last
}

// agreePlain gives a run of which there is nothing to say but that it is planned its terms: those
// that all such runs of the app have.
func (s *Store) agreePlain(r *run) {
	j, plain := r.job, terms{app: r.job.app, retries: retriesOfJob}
	if j.plain == nil || *j.plain != plain {
		j.plain = s.plainOf(plain)
	}
	r.terms = j.plain
}

func (s *Store) plainOf(t terms) *terms {
	a := s.apps[t.app]
	if a == nil || a.plain == nil {
		own := t
		if a == nil {
			return &own
		}
		a.plain = &own
	}
	return a.plain
}
