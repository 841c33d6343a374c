package scan

import (
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// Jobs that this node cannot work out: in a zone that it has no data of, or with a schedule of a
// newer release. Another node may know better, so they are left as they are: neither stopped nor
// planned. Input: what the planner could not plan. Output: a trouble for each, and to room lease which
// shards have such jobs, so that it gives these to a node that can (lease/abilities.go).

// unableJobs are those among the due jobs of one scan, by cause.
type unableJobs struct {
	now          time.Time
	zones, types []store.Trouble
	shards       map[int]lease.Lack
}

// add takes in a job that could not be planned. It reports false where that is the schedule's
// own fault.
func (u *unableJobs) add(job *store.Job) bool {
	cause, seen, why := unable(job)
	t := store.Trouble{App: job.App, JobID: job.ID, Seen: seen, Detail: why}
	if !job.Next.After(u.now) {
		t.Late = 1
	}
	if cause != "" && u.shards[job.Shard].Cause != store.TroubleUnknownSchedule { // of both, what is rarer decides
		if u.shards == nil {
			u.shards = map[int]lease.Lack{}
		}
		lack := lease.Lack{Cause: cause}
		if cause == store.TroubleUnknownZone {
			if lack.Zones = u.shards[job.Shard].Zones; !slices.Contains(lack.Zones, job.Schedule.Zone) {
				lack.Zones = append(lack.Zones, job.Schedule.Zone)
			}
		}
		u.shards[job.Shard] = lack
	}
	switch cause {
	case store.TroubleUnknownZone:
		t.Remedy = `give each node of this schema the time zones: import _ "time/tzdata" in its program, or install tzdata in its image; where no node has this zone, correct the job`
		u.zones = append(u.zones, t)
	case store.TroubleUnknownSchedule:
		t.Remedy = "upgrade this node, if a newer release has made the schedule; where no node knows it, correct the job"
		u.types = append(u.types, t)
	}
	return cause != ""
}

func (u *unableJobs) count() int { return len(u.zones) + len(u.types) }

// tell says which there are, and which there are no more: as troubles, and to the lease loop, which
// gives their shards to a node that can work them out.
func (u *unableJobs) tell(c *core.Core) {
	c.Troubles.Set(store.TroubleUnknownZone, u.now, u.zones...)
	c.Troubles.Set(store.TroubleUnknownSchedule, u.now, u.types...)
	c.Life.Wakes.Lease.PokeIf(c.Leases.Lack(u.shards))
}

// unable says why this node cannot work out a job that another one may be able to: it has no data
// of the zone, or does not know the type. The cause is empty where it can, and where the schedule
// is broken, which every node finds.
func unable(job *store.Job) (cause store.TroubleCause, seen store.Seen, why string) {
	var fault *schedule.Error
	if !errors.As(job.Schedule.Validate(true), &fault) {
		return "", seen, ""
	}
	switch fault.Code {
	case "zone":
		return store.TroubleUnknownZone, store.Seen{What: store.SeenUnknownZone, Names: job.Schedule.Zone}, fault.Error()
	case "type":
		return store.TroubleUnknownSchedule, store.Seen{What: store.SeenUnknownType, Names: string(job.Schedule.Type)}, fault.Error()
	case "dst":
		return store.TroubleUnknownSchedule, store.Seen{What: store.SeenUnknownDST, Names: string(job.Schedule.DST)}, fault.Error()
	}
	return "", seen, ""
}
