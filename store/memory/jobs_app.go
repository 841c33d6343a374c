package memory

// app is the jobs of an app, those that were removed not among them. It is there while there is
// one. All of it is guarded by Store.mu.
type app struct {
	jobs order[job]      // by id
	keys map[string]*job // those with a key

	plain *terms // see agreePlain; nil until a run of them is planned
}

// list adds a job to those of its app, unlist takes it out. Whatever changes its definition, or
// removes it, unlists it before.
func (s *Store) list(j *job) {
	a := s.apps[j.app]
	if a == nil {
		a = &app{keys: map[string]*job{}}
		s.apps[j.app] = a
	}
	a.jobs.insert(0, j.id, j)
	if j.def.key != "" {
		a.keys[j.def.key] = j
	}
}

func (s *Store) unlist(j *job) {
	a := s.apps[j.app]
	a.jobs.remove(0, j.id)
	if j.def.key != "" {
		delete(a.keys, j.def.key)
	}
	if a.jobs.empty() {
		delete(s.apps, j.app)
	}
}

// withKey returns the job of the app that has the key, or nil. Jobs without one are not found.
func (s *Store) withKey(app, key string) *job {
	if a := s.apps[app]; a != nil && key != "" {
		return a.keys[key]
	}
	return nil
}

// jobsAfter walks the jobs of an app, or of all where it is "", in order of their ids from behind
// the given one. It is over when jobs are added or removed.
func (s *Store) jobsAfter(of string, id int64) *merged[job] {
	m := &merged[job]{}
	if of == "" {
		for _, a := range s.apps {
			m.add(&a.jobs, 0, id)
		}
	} else if a := s.apps[of]; a != nil {
		m.add(&a.jobs, 0, id)
	}
	return m
}
