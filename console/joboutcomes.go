package console

// How the last runs of a job have gone.

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob"
)

const runsOfOutcomes = 500

// outcomes are how the last runs of a job have ended, how long they took and how late they were.
type outcomes struct {
	Runs       int
	Counts     []stateCount // in the order of the states
	Took, Late [2]time.Duration
	Measured   int // of how many runs that is known
	Since      time.Time
}

// stateCount is how many runs ended in a state, and their share in percent.
type stateCount struct {
	State string
	N     int
	Share int
}

// outcomesOf reads the last runs of a job.
func (q *request) outcomesOf(id int64) (o outcomes, err error) {
	reader, ok := q.Store.(xxljob.RunReader)
	if !ok {
		return o, nil
	}
	runs, err := reader.LastRuns(q.ctx, []int64{id}, runsOfOutcomes)
	if err != nil {
		return o, err
	}
	return sumUp(runs), nil
}

// sumUp is what runs, the newest first, come to.
func sumUp(runs []xxljob.Run) (o outcomes) {
	counts := map[xxljob.State]int{}
	var took, late []time.Duration
	for i := range runs {
		r := &runs[i]
		o.Since = r.Scheduled
		counts[r.State]++
		if !r.Started.IsZero() {
			took, late = append(took, r.Ended.Sub(r.Started)), append(late, r.Lateness())
		}
	}
	o.Runs, o.Measured = len(runs), len(took)
	for s := xxljob.StatePlanned; s <= xxljob.StateSnoozed; s++ {
		if n := counts[s]; n > 0 {
			o.Counts = append(o.Counts, stateCount{stateKey(s), n, (n*100 + o.Runs/2) / o.Runs})
		}
	}
	o.Took, o.Late = quantiles(took), quantiles(late)
	return o
}

// quantiles are the median and the 95th percentile.
func quantiles(list []time.Duration) [2]time.Duration {
	if len(list) == 0 {
		return [2]time.Duration{}
	}
	slices.Sort(list)
	at := func(percent int) time.Duration { return list[(len(list)-1)*percent/100] }
	return [2]time.Duration{at(50), at(95)}
}
