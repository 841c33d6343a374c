package memory

import (
	"fmt"
	"reflect"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Consistent walks all jobs and runs and reports the first set that holds
// something else than what the walk says.
func (s *Store) Consistent() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if r := s.runs.find(j.waitRun); j.waitRun != 0 && (r == nil || r.State.Ended()) {
			return fmt.Errorf("job %d waits for run %d, which is over", j.id, j.waitRun)
		}
	}
	if !reflect.DeepEqual(s.noWork, newWork()) {
		return fmt.Errorf("the work of jobs that have none: %+v", s.noWork)
	}
	got, want := s.counted(), s.walked()
	for what, n := range want {
		if got[what] != n {
			return fmt.Errorf("%s: %d, the walk says %d", what, got[what], n)
		}
		delete(got, what)
	}
	for what, n := range got {
		if n != 0 {
			return fmt.Errorf("%s: %d, the walk says none", what, n)
		}
	}
	return nil
}

// Asks returns the number of questions for logs that are kept.
func (s *Store) Asks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asks)
}

// Sizes returns the numbers of runs and of segments, and that of removed jobs
// of which something is kept.
func (s *Store) Sizes() (runs, segments, removed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.removed {
			removed++
		}
	}
	for _, seg := range s.runs.segments {
		runs += seg.n
	}
	return runs, len(s.runs.segments), removed
}

// CountEnd counts that a run of an app for an instant was cancelled.
func (s *Store) CountEnd(app string, instant time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports.count(app, instant).Ended[store.StateCancelled]++
}

// Watchers returns how many calls of Watch have not ended.
func (s *Store) Watchers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watchers)
}

// counted is the size of every set.
func (s *Store) counted() map[string]int {
	n := map[string]int{"ended": s.ended.n, "keys": len(s.keys), "bytes of texts": int(s.texts), "bytes of logs": int(s.logs), "bytes of the record": int(s.changes.bytes)}
	for _, sh := range s.shards {
		n[fmt.Sprint("due of shard ", sh.id)] = count(&sh.due)
		n[fmt.Sprint("idle of shard ", sh.id)] = len(sh.idle.members)
		n[fmt.Sprint("planned of shard ", sh.id)] = count(&sh.planned)
		n[fmt.Sprint("foreign of shard ", sh.id)] = count(&sh.foreign)
		n[fmt.Sprint("ahead of shard ", sh.id)] = count(&sh.ahead)
		n[fmt.Sprint("started of shard ", sh.id)] = len(sh.started.members)
		n[fmt.Sprint("dispatched of shard ", sh.id)] = count(&sh.dispatched)
	}
	for name, a := range s.apps {
		n["jobs of app "+name] = count(&a.jobs)
		n["keys of app "+name] = len(a.keys)
	}
	for _, j := range s.jobs {
		n[fmt.Sprint("open of job ", j.id)] = j.open
		n[fmt.Sprint("planned of job ", j.id)] = len(j.planned.members)
		n[fmt.Sprint("ahead of job ", j.id)] = len(j.ahead.members)
		n[fmt.Sprint("runs of job ", j.id)] = j.runs.n
		n[fmt.Sprint("ended of job ", j.id)] = j.ended.n
		for _, p := range j.busy {
			n[fmt.Sprint("busy of job ", j.id)] += p.n
		}
	}
	for _, p := range s.peers {
		n["unended of "+p.incarnation] = p.unended
		n["inbox of "+p.incarnation] = count(&p.inbox)
		n["kills of "+p.incarnation] = count(&p.kills)
	}
	return n
}

func count[T any](o *order[T]) int {
	n := 0
	for c := o.after(noID, noID); c.peek() != nil; c.next() {
		n++
	}
	return n
}

// walked is what every set should hold.
func (s *Store) walked() map[string]int {
	n := map[string]int{"keys": 0, "bytes of texts": 0, "bytes of logs": 0, "bytes of the record": 0}
	params := map[*terms]bool{}
	for _, e := range s.record {
		n["bytes of the record"] += int(e.bytes())
	}
	for _, j := range s.jobs {
		if !j.removed {
			n["jobs of app "+j.def.app()]++
			if key := j.def.key; key != "" {
				n["keys of app "+j.def.app()]++
				if s.withKey(j.def.app(), key) != j {
					n["keys that lead to another job"]++
				}
			}
		}
		switch {
		case j.removed || j.unscheduled():
		case j.next == noTime:
			n[fmt.Sprint("idle of shard ", j.shard.id)]++
		default:
			n[fmt.Sprint("due of shard ", j.shard.id)]++
		}
	}
	for r := s.runs.before(s.runs.last + 1); r != nil; r = s.runs.before(r.ID) {
		walk(n, r)
		if r.State.Ended() && r.unended == 0 {
			n["bytes of texts"] += int(r.textBytes())
			if !params[r.terms] {
				n["bytes of texts"] += len(r.terms.param)
			}
			params[r.terms] = true
		}
		for i := range r.extra().pages {
			n["bytes of logs"] += len(r.extra().pages[i].Content) + 128
		}
	}
	return n
}

func walk(n map[string]int, r *run) {
	n[fmt.Sprint("runs of job ", r.job.id)]++
	if r.extra().key != "" {
		n["keys"]++
	}
	if r.State.Ended() {
		if r.unended > 0 {
			return // the first run of a trigger, which is kept for the others
		}
		n["ended"]++
		n[fmt.Sprint("ended of job ", r.job.id)]++
		return
	}
	if r.Type.ScheduleBorn() {
		n[fmt.Sprint("open of job ", r.job.id)]++
	}
	switch r.State {
	case store.StatePlanned:
		if r.ahead {
			n[fmt.Sprint("ahead of job ", r.job.id)]++
			n[fmt.Sprint("ahead of shard ", r.job.shard.id)]++
			return
		}
		n[fmt.Sprint("planned of job ", r.job.id)]++
		n[fmt.Sprint("planned of shard ", r.job.shard.id)]++
		if r.PlanEpoch != r.job.shard.epoch {
			n[fmt.Sprint("foreign of shard ", r.job.shard.id)]++
		}
		return
	case store.StateStarted:
		n[fmt.Sprint("started of shard ", r.job.shard.id)]++
	case store.StateDispatched:
		n[fmt.Sprint("dispatched of shard ", r.job.shard.id)]++
	}
	n["unended of "+r.terms.owner]++
	incarnation, attached := store.LocalIncarnation(r.terms.address)
	if !attached {
		return
	}
	n["unended of "+incarnation]++
	if r.State == store.StateStarted {
		n[fmt.Sprint("busy of job ", r.job.id)]++
		if r.taken == noTime {
			n["inbox of "+incarnation]++
		}
	}
	if r.extra().killReason != "" && r.taken != noTime {
		n["kills of "+incarnation]++
	}
}
