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
	found map[UnableFrom][]UnableJob // in shards that this node had then
	sent  map[int64]sentUnable       // by job, in whosever shards
	tells bool                       // somebody says them
	anew  bool                       // and is to do so again, since there was more meanwhile
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
	if len(jobs)+len(u.found[from])+len(u.sent) == 0 {
		u.mu.Unlock()
		return // as with nearly every scan
	}
	if u.found == nil {
		u.found = make(map[UnableFrom][]UnableJob)
	}
	u.found[from] = jobs
	u.mu.Unlock()
	c.tellUnable(now)
}

// SentUnable says that a run of a job was sent without what this node could not work out. The job may be in a
// shard of another node, which can: then it is no reason to give a shard away.
func (c *Core) SentUnable(now time.Time, job UnableJob) {
	u := &c.Unable
	u.mu.Lock()
	if u.sent == nil {
		u.sent = make(map[int64]sentUnable)
	}
	_, known := u.sent[job.JobID]
	kept := known || len(u.sent) < troublesKept
	if kept {
		u.sent[job.JobID] = sentUnable{job, time.Now().Add(unableSent)}
	}
	u.mu.Unlock()
	if kept && !known {
		if job.Zone != "" {
			c.Leases.Miss([]string{job.Zone})
		}
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

// all are those that are known: what was found in shards that are this node's, and what was sent.
func (u *Unable) all(mine map[int]bool) (all []UnableJob) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, from := range []UnableFrom{UnableDue, UnableOwed} {
		for _, job := range u.found[from] {
			if mine[job.Shard] {
				all = append(all, job)
			}
		}
	}
	for id, job := range u.sent {
		if !time.Now().Before(job.until) {
			delete(u.sent, id)
			continue
		}
		all = append(all, job.UnableJob)
	}
	return all
}

// toTell reports whether the caller is to say them, at first or, where it has done so, again: one does at a
// time, else what was looked up first might be said last.
func (u *Unable) toTell(again bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !again && u.tells {
		u.anew = true
		return false
	}
	u.tells = !again || u.anew
	u.anew = false
	return u.tells
}

// tellUnable says all of them: as troubles, and to the lease loop. Where another goroutine does so at this
// moment, that one says them anew.
func (c *Core) tellUnable(now time.Time) {
	for tell := c.Unable.toTell(false); tell; tell = c.Unable.toTell(true) {
		mine := map[int]bool{}
		for _, sh := range c.Leases.Owned() {
			mine[sh.ID] = true
		}
		all := c.Unable.all(mine)
		troubles := troublesOf(all)
		for _, cause := range []store.TroubleCause{store.TroubleUnknownZone, store.TroubleUnknownSchedule} {
			c.Troubles.Set(cause, now, troubles[cause]...)
		}
		all = slices.DeleteFunc(all, func(job UnableJob) bool { return !mine[job.Shard] })
		c.Life.Wakes.Lease.PokeIf(c.Leases.Lack(lacksOf(all)))
	}
}

// troublesOf are the troubles of jobs, by cause, one for each job.
func troublesOf(all []UnableJob) map[store.TroubleCause][]store.Trouble {
	type key struct {
		cause store.TroubleCause
		job   int64
	}
	troubles := map[store.TroubleCause][]store.Trouble{}
	at := make(map[key]int, len(all))
	for _, job := range all {
		k, some := key{job.Cause, job.JobID}, troubles[job.Cause]
		i, known := at[k]
		if !known {
			i, at[k] = len(some), len(some)
			some = append(some, store.Trouble{App: job.App, JobID: job.JobID, Seen: job.Seen, Detail: job.Detail, Remedy: unableRemedy(job.Cause)})
			troubles[job.Cause] = some
		}
		some[i].Late += job.Late
	}
	return troubles
}

// lacksOf is what this node lacks for the jobs of each shard, nil for nothing.
func lacksOf(all []UnableJob) (shards map[int]lease.Lack) {
	for _, job := range all {
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
	}
	return shards
}

func unableRemedy(cause store.TroubleCause) string {
	if cause == store.TroubleUnknownZone {
		return `give each node of this schema the time zones: import _ "time/tzdata" in its program, or install tzdata in its image; where no node has this zone, correct the job`
	}
	return "upgrade this node, if a newer release has made the schedule; where no node knows it, correct the job"
}
