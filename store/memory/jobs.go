package memory

// Jobs: what is kept of one, how it is added and removed, and the index of an app's jobs.

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// job is a job with its places in the sets it is in. All of it is guarded by
// Store.mu. It outlives the job while runs or audit are kept.
type job struct {
	jobState
	*work
	id      int64
	app     string
	shard   *shard
	removed bool

	startedFor int64  // latest instant a schedule-born run was started or refused for
	named      *int64 // generation of the list that named it last; nil for none
	audit      *noted // the newest entry about it

	count  int32 // raised when made begins anew: runs of an earlier count are not in it
	member int32 // place in shard.idle
}

// jobState is what a snapshot of the job is made from. A scan copies it under
// the lock and makes the snapshots afterwards.
type jobState struct {
	def        *definition
	version    int64
	shardID    int32
	stopped    bool
	manual     bool // def has no schedule
	stopReason string
	next, last int64 // milliseconds; noTime for none
	waitRun    int64
	made       int // Job.Runs
	updated    int64
}

// place is an attached address with the number of the job's runs there that are
// started and have not ended. A job has few, so they are searched in turn.
type place struct {
	address string
	n       int
}

func (j *job) slot() *int32 { return &j.member }

// snapshot is the job as callers get it.
func (j *jobState) snapshot() (out store.Job) {
	j.put(&out)
	return out
}

// put makes a job that is empty the snapshot.
func (j *jobState) put(out *store.Job) {
	j.def.put(out)
	out.Shard, out.Version, out.Stopped, out.StopReason = int(j.shardID), j.version, j.stopped, j.stopReason
	out.Next, out.Last, out.WaitRun, out.Runs = fromMilli(j.next), fromMilli(j.last), j.waitRun, j.made
	out.Updated = fromMilli(j.updated)
}

// define sets the definition and what is derived from it.
func (j *job) define(def *store.Job) {
	j.def, j.manual = defined(def), def.Schedule.IsManual()
	j.app = j.def.app()
	j.version, j.stopped, j.stopReason = def.Version, def.Stopped, def.StopReason
	j.next, j.waitRun, j.made = toMilli(def.Next), def.WaitRun, def.Runs
	j.updated = toMilli(def.Updated)
}

// unscheduled reports that no schedule makes runs of the job: it has none, or is stopped.
func (j *jobState) unscheduled() bool { return j.stopped || j.manual }

// index puts an enabled job into the due index, or among those without a next
// instant. Whatever changes next, stopped or removed calls unindex before.
func (j *job) index() {
	switch {
	case j.unscheduled() || j.removed:
	case j.next == noTime:
		j.shard.idle.add(j)
	default:
		j.shard.due.insert(j.next, j.id, j)
	}
}

func (j *job) unindex() {
	switch {
	case j.unscheduled() || j.removed:
	case j.next == noTime:
		j.shard.idle.remove(j)
	default:
		j.shard.due.remove(j.next, j.id)
	}
}

// occupy counts the runs at an attached address.
func (j *job) occupy(address string, by int) {
	for i := range j.busy {
		if p := &j.busy[i]; p.address == address {
			if p.n += by; p.n == 0 {
				last := len(j.busy) - 1
				*p = j.busy[last]
				j.busy[last] = place{}
				j.busy = j.busy[:last]
			}
			return
		}
	}
	j.busy = append(j.busy, place{address, by})
}

// occupies reports whether a run of the job is at the attached address.
func (j *job) occupies(address string) bool {
	for i := range j.busy {
		if j.busy[i].address == address {
			return true
		}
	}
	return false
}

// live returns the job unless it is absent or removed.
func (s *Store) live(id int64) *job {
	if j := s.jobs[id]; j != nil && !j.removed {
		return j
	}
	return nil
}

// AddJob inserts the job. Its ID is made of its App and Key, or Name where it has no Key:
// see jobIDs. The function is called before anything is written, with the store locked.
func (s *Store) AddJob(ctx context.Context, def store.Job, instant store.FirstInstant) (store.Job, error) {
	if err := s.begin(ctx); err != nil {
		return store.Job{}, err
	}
	defer s.done()
	def.ID = 0
	if err := store.CheckTexts("job", def); err != nil {
		return store.Job{}, failed(err, "add job")
	}
	if err := s.keyFree(&def); err != nil {
		return store.Job{}, failed(err, "add job %q of %q", def.Key, def.App)
	}
	j, err := s.newJob(&def, instant, s.clock())
	if err != nil {
		return store.Job{}, err
	}
	s.addJob(ctx, j, &def)
	return j.snapshot(), nil
}

// newJob fills in what is the store's of a job that is about to be added. Nothing of it
// is stored yet.
func (s *Store) newJob(def *store.Job, instant store.FirstInstant, now time.Time) (*job, error) {
	id, ok := s.jobIDs.free(def)
	if !ok {
		return nil, errors.New("memory: add job: no ids are left")
	}
	j := &job{work: s.noWork, id: id, shard: s.shards[id%int64(len(s.shards))], startedFor: noTime}
	j.last, j.shardID = noTime, int32(j.shard.id)
	def.ID, def.Shard, def.Version = id, j.shard.id, 1
	def.Next, def.Last, def.WaitRun, def.Runs = stored(def.Next), time.Time{}, 0, 0
	def.NotBefore, def.NotAfter = stored(def.NotBefore), stored(def.NotAfter)
	def.Added, def.Updated = now, now
	def.GlueUpdated = glueUpdated(store.Job{}, *def, now)
	return j, setNext(def, instant)
}

// addJob takes in a job.
func (s *Store) addJob(ctx context.Context, j *job, def *store.Job) {
	s.jobs[j.id] = j
	j.define(def)
	s.list(j)
	s.indexLinks(j, true)
	j.index()
	s.noteAdded(ctx, j)
	s.tellScan(j)
}

// setNext gives a job that is added its first instant. The function gets a copy.
func setNext(def *store.Job, instant store.FirstInstant) error {
	if instant == nil {
		return nil
	}
	given := def.Clone()
	at, err := instant(given, def.Added)
	def.Next = stored(at)
	return err
}

// keyFree checks that no other job of the app has the job's key.
func (s *Store) keyFree(def *store.Job) error {
	if other := s.withKey(def.App, def.Key); other != nil && other.id != def.ID {
		return store.ErrDuplicateKey
	}
	return nil
}

// glueUpdated is when the script of after last changed.
func glueUpdated(before, after store.Job, now time.Time) time.Time {
	if before.GlueSource == after.GlueSource {
		return before.GlueUpdated
	}
	return now
}

// RemoveJob deletes the job and cancels its planned runs.
func (s *Store) RemoveJob(ctx context.Context, id int64) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	j := s.live(id)
	if j == nil {
		return failed(store.ErrNotFound, "remove job %d", id)
	}
	now, was := s.clock(), j.snapshot()
	j.unindex()
	s.unlist(j)
	s.indexLinks(j, false)
	j.removed, j.waitRun = true, 0
	maps.DeleteFunc(s.told, func(of jobRule, _ store.JobTold) bool { return of.job == id })
	s.cancelPlanned(j, "remove", now, func(*run) bool { return true })
	s.note(ctx, j, "remove", &was, nil, now)
	s.removed = append(s.removed, id)
	s.forgetAudits()
	return nil
}

// cancelPlanned ends those of the job's planned runs that are chosen.
func (s *Store) cancelPlanned(j *job, reason string, now time.Time, chosen func(*run) bool) {
	var cancelled []*run
	for _, planned := range []bag[*run]{j.planned, j.ahead} {
		for _, r := range planned.members {
			if chosen(r) {
				cancelled = append(cancelled, r)
			}
		}
	}
	slices.SortFunc(cancelled, func(a, b *run) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range cancelled {
		r.setReason(reason)
		s.end(r, store.StateCancelled, toMilli(now))
	}
}

// Job returns one job.
func (s *Store) Job(ctx context.Context, id int64) (store.Job, error) {
	if err := s.look(ctx); err != nil {
		return store.Job{}, err
	}
	defer s.mu.Unlock()
	j := s.live(id)
	if j == nil {
		return store.Job{}, failed(store.ErrNotFound, "job %d", id)
	}
	return j.snapshot(), nil
}

// JobByKey returns the job with the key.
func (s *Store) JobByKey(ctx context.Context, app, key string) (store.Job, error) {
	if err := s.look(ctx); err != nil {
		return store.Job{}, err
	}
	defer s.mu.Unlock()
	if j := s.withKey(app, key); j != nil {
		return j.snapshot(), nil
	}
	return store.Job{}, failed(store.ErrNotFound, "job %q of %q", key, app)
}

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
