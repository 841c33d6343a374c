package xxljob

// What a job's further attempts come to.

import (
	"fmt"
	"time"

	"github.com/xxljob/xxljob/store"
)

// retriesFit refuses pauses that together are longer than what a trigger may take: its first
// run is dropped at its age, whatever follows it.
func (j *Job) retriesFit(retention time.Duration) error {
	f := faults{what: called(*j)}
	if most, may := j.mostRetried(), store.PlannedFor(retention); j.RetryBackoff.First > 0 && most > may {
		f.add("RetryBackoff", j.RetryBackoff, fmt.Errorf("the pauses of %d retries may take %v, and runs are kept for %v (Config.RunRetention): at most %v", j.Retries, most, retention, may))
	}
	return f.err()
}

// reruns and snoozes are how many a trigger of the job may have.
func (j *Job) reruns() int {
	if j.MaxReruns == 0 {
		return defaultReruns
	}
	return j.MaxReruns
}

func (j *Job) snoozes() int {
	if j.MaxSnoozes == 0 {
		return store.DefaultSnoozes
	}
	return j.MaxSnoozes
}

// mostRetried is the longest that the pauses of one trigger's retries can take. A lost run's
// pauses count as those of Retries or beside them.
func (j *Job) mostRetried() time.Duration {
	most := j.RetryBackoff.most(j.Retries)
	if j.OnLost == OnLostRerun {
		most += j.RetryBackoff.most(j.reruns())
	}
	return most
}
