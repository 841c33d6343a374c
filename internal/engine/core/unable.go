package core

import (
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/store"
)

// Jobs that this node cannot work out: in a zone that it has no data of, or with a schedule of a
// newer release. Another node may know better, so they are left as they are. Input: what those who
// plan, pay what is owed and send have found. Output: a trouble for each job, and to room lease which
// shards have such jobs, so that it gives these to a node that can (lease/abilities.go).

// Unable are those that are known. It is safe for concurrent use, and its zero value is ready.
type Unable struct {
	mu    sync.Mutex
	found map[UnableFrom][]UnableJob
	sent  map[int64]sentUnable // by job
}

// UnableFrom is who has found them. Each says all that it finds, each time that it looks.
type UnableFrom int

const (
	UnableDue  UnableFrom = iota // among the due jobs
	UnableOwed                   // among the jobs behind others, which something is owed to
)

// UnableJob is one of them.
type UnableJob struct {
	Shard  int // that is to be given to another node
	App    string
	JobID  int64
	Cause  store.TroubleCause
	Zone   string // where this node has no data of it
	Seen   store.Seen
	Detail string
	Late   int // how much waits for it
}

// sentUnable is one of which a run was sent, without what could not be worked out.
type sentUnable struct {
	UnableJob
	until time.Time
}

// unableSent is for how long such a job is remembered.
const unableSent = 5 * time.Minute

// UnknownZone is a job in a zone that this node has no data of.
func UnknownZone(shard int, app string, jobID int64, zone string, why error) UnableJob {
	return UnableJob{Shard: shard, App: app, JobID: jobID, Cause: store.TroubleUnknownZone, Zone: zone,
		Seen: store.Seen{What: store.SeenUnknownZone, Names: zone}, Detail: why.Error()}
}

// TellUnable says which jobs one has found, in place of those that it had.
func (c *Core) TellUnable(from UnableFrom, now time.Time, jobs []UnableJob) {
	u := &c.Unable
	u.mu.Lock()
	if u.found == nil {
		u.found = make(map[UnableFrom][]UnableJob)
	}
	u.found[from] = jobs
	u.mu.Unlock()
	c.tellUnable(now)
}

// SentUnable says that a run of a job was sent without what this node could not work out.
func (c *Core) SentUnable(now time.Time, job UnableJob) {
	u := &c.Unable
	u.mu.Lock()
	if u.sent == nil {
		u.sent = make(map[int64]sentUnable)
	}
	_, known := u.sent[job.JobID]
	if known || len(u.sent) < troublesKept {
		u.sent[job.JobID] = sentUnable{job, time.Now().Add(unableSent)}
	}
	u.mu.Unlock()
	if !known {
		c.tellUnable(now)
		c.Life.Wakes.Scan.Poke() // which says them anew until they are forgotten
	}
}

// HasSent reports whether such jobs are remembered.
func (u *Unable) HasSent() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.sent) > 0
}

// all are those that are known in shards of this node.
func (u *Unable) all(owned func() []store.Shard) (all []UnableJob) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.found[UnableDue])+len(u.found[UnableOwed])+len(u.sent) == 0 {
		return nil
	}
	mine := map[int]bool{}
	for _, sh := range owned() {
		mine[sh.ID] = true
	}
	for _, from := range []UnableFrom{UnableDue, UnableOwed} {
		for _, job := range u.found[from] {
			if mine[job.Shard] {
				all = append(all, job)
			}
		}
	}
	for id, job := range u.sent {
		if !time.Now().Before(job.until) || !mine[job.Shard] {
			delete(u.sent, id)
			continue
		}
		all = append(all, job.UnableJob)
	}
	return all
}

// tellUnable says all of them: as troubles, and to the lease loop.
func (c *Core) tellUnable(now time.Time) {
	var shards map[int]lease.Lack
	troubles := map[store.TroubleCause][]store.Trouble{}
	for _, job := range c.Unable.all(c.Leases.Owned) {
		if shards == nil {
			shards = make(map[int]lease.Lack)
		}
		if had := shards[job.Shard]; had.Cause != store.TroubleUnknownSchedule { // of both, what is rarer decides
			lack := lease.Lack{Cause: job.Cause}
			if job.Cause == store.TroubleUnknownZone {
				if lack.Zones = had.Zones; !slices.Contains(lack.Zones, job.Zone) {
					lack.Zones = append(lack.Zones, job.Zone)
				}
			}
			shards[job.Shard] = lack
		}
		some := troubles[job.Cause]
		i := slices.IndexFunc(some, func(t store.Trouble) bool { return t.JobID == job.JobID })
		if i < 0 {
			i, some = len(some), append(some, store.Trouble{App: job.App, JobID: job.JobID, Seen: job.Seen, Detail: job.Detail, Remedy: unableRemedy(job.Cause)})
			troubles[job.Cause] = some
		}
		some[i].Late += job.Late
	}
	for _, cause := range []store.TroubleCause{store.TroubleUnknownZone, store.TroubleUnknownSchedule} {
		c.Troubles.Set(cause, now, troubles[cause]...)
	}
	c.Life.Wakes.Lease.PokeIf(c.Leases.Lack(shards))
}

func unableRemedy(cause store.TroubleCause) string {
	if cause == store.TroubleUnknownZone {
		return `give each node of this schema the time zones: import _ "time/tzdata" in its program, or install tzdata in its image; where no node has this zone, correct the job`
	}
	return "upgrade this node, if a newer release has made the schedule; where no node knows it, correct the job"
}
