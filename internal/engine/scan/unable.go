package scan

import (
	"errors"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// Which due jobs this node cannot work out. Input: what the planner could not plan. Output: jobs that
// are neither stopped nor planned, for another node may know better (core/unable.go).

// unableEvery is how often it is looked whether jobs are forgotten of which runs were sent all the same.
const unableEvery = time.Minute

// unable says why this node cannot work out a job that another one may be able to: it has no data
// of the zone, or does not know the type. It reports false where it can, and where the schedule is
// broken, which every node finds.
func unable(job *store.Job) (core.UnableJob, bool) {
	var fault *schedule.Error
	if !errors.As(job.Schedule.Validate(true), &fault) {
		return core.UnableJob{}, false
	}
	found := core.UnableJob{Shard: job.Shard, App: job.App, JobID: job.ID, Cause: store.TroubleUnknownSchedule, Detail: fault.Error()}
	switch fault.Code {
	case "zone":
		return core.UnknownZone(job.Shard, job.App, job.ID, job.Schedule.Zone, fault), true
	case "type":
		found.Seen = store.Seen{What: store.SeenUnknownType, Names: string(job.Schedule.Type)}
	case "dst":
		found.Seen = store.Seen{What: store.SeenUnknownDST, Names: string(job.Schedule.DST)}
	default:
		return core.UnableJob{}, false
	}
	return found, true
}
