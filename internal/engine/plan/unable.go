package plan

import (
	"errors"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// Unable says why this node cannot work out a job that another one may be able to: it has no data
// of the zone, or does not know the type. The cause is empty where it can, and where the schedule
// is broken, which every node finds.
func Unable(job *store.Job) (cause store.TroubleCause, why string) {
	var fault *schedule.Error
	if !errors.As(job.Schedule.Validate(true), &fault) {
		return "", ""
	}
	switch fault.Code {
	case "zone":
		return store.TroubleUnknownZone, fault.Error()
	case "type", "dst":
		return store.TroubleUnknownSchedule, fault.Error()
	}
	return "", ""
}
