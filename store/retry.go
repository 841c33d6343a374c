package store

// What a job says about attempts that follow a failure.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Backoff is how long after the end of a failed run the next attempt is due. The zero value is
// no pause, as in XXL-JOB. A First alone is the same pause each time; with a Max the pause
// doubles with each attempt, from First up to Max.
type Backoff struct {
	// First is the pause before the first retry: 0 to 10,000 hours, to the millisecond.
	First time.Duration `json:",omitzero"`
	// Max bounds a pause that doubles. It is First at least, and 10,000 hours at most; zero
	// keeps the pause at First.
	Max time.Duration `json:",omitzero"`
	// Jitter is by how much a pause may be shorter or longer, in percent of it, 0 to 100, so
	// that runs which failed together do not come again together. Which of these it is depends
	// on the run's id alone.
	Jitter int `json:",omitzero"`
}

const (
	mostRetries = 30_000 // what the column of the attempt holds, less what reruns may add
	mostReruns  = 1_000
	mostSnoozes = 30_000
	MaxPause    = 10_000 * time.Hour

	defaultReruns = 3
)

// OnLost says what follows a lost run: one whose process has gone, and of which nobody knows
// how far it came.
type OnLost string

const (
	// OnLostFail, the default, takes it for a failure: it uses one of Job.Retries, and where
	// there is none it stays lost.
	OnLostFail OnLost = "FAIL"
	// OnLostRerun has it run again without using Retries, at most Job.MaxReruns times for one
	// trigger; after that it stays lost. It is for handlers that may run twice.
	OnLostRerun OnLost = "RERUN"
)

// pause is the pause behind so many earlier ones; seed is what its jitter depends on.
func (b Backoff) pause(before int, seed int64) time.Duration {
	pause := b.First
	if b.Max > 0 {
		for ; before > 0 && pause < b.Max; before-- {
			pause *= 2
		}
		pause = min(pause, b.Max)
	}
	if b.Jitter > 0 && pause > 0 {
		pause += time.Duration(float64(pause) * float64(b.Jitter) / 100 * (2*rand.New(rand.NewPCG(uint64(seed), 0)).Float64() - 1))
	}
	return pause.Round(time.Millisecond)
}

// most is the longest that so many pauses can take together.
func (b Backoff) most(pauses int) (sum time.Duration) {
	plain := Backoff{First: b.First, Max: b.Max}
	for n := range pauses {
		pause := plain.pause(n, 0)
		longest := pause + time.Duration(float64(pause)*float64(b.Jitter)/100)
		if longest > 0 && sum > 100*MaxPause-longest {
			return 100 * MaxPause // no bound is as long
		}
		sum += longest
	}
	return sum
}

// checkRetries adds what is wrong with what a job says about further attempts.
func (f *Faults) checkRetries(retries int, b Backoff, onLost OnLost, reruns, snoozes int) {
	if retries < 0 || retries > mostRetries {
		f.Add("Retries", retries, fmt.Errorf("want 0 to %d", mostRetries))
	}
	switch {
	case b.First < 0 || b.First > MaxPause || b.First%time.Millisecond != 0:
		f.Add("RetryBackoff.First", b.First, fmt.Errorf("want whole milliseconds, from 0 (no pause) to %v", MaxPause))
	case b.Max != 0 && b.First == 0:
		f.Add("RetryBackoff.Max", b.Max, errors.New("is for a pause that doubles, and First is 0"))
	case b.Max != 0 && (b.Max < b.First || b.Max > MaxPause || b.Max%time.Millisecond != 0):
		f.Add("RetryBackoff.Max", b.Max, fmt.Errorf("want whole milliseconds, from First (%v) to %v, or 0 for a pause that stays the same", b.First, MaxPause))
	}
	if b.Jitter < 0 || b.Jitter > 100 {
		f.Add("RetryBackoff.Jitter", b.Jitter, errors.New("want 0 to 100 percent"))
	}
	f.OneOf("OnLost", string(onLost), "", string(OnLostFail), string(OnLostRerun))
	if reruns < 0 || reruns > mostReruns {
		f.Add("MaxReruns", reruns, fmt.Errorf("want 1 to %d, or 0 for %d", mostReruns, defaultReruns))
	}
	if snoozes < 0 || snoozes > mostSnoozes {
		f.Add("MaxSnoozes", snoozes, fmt.Errorf("want 1 to %d, or 0 for %d", mostSnoozes, DefaultSnoozes))
	}
}

// What a job's further attempts come to.

// retriesFit refuses pauses that together are longer than what a trigger may take: its first
// run is dropped at its age, whatever follows it.
func (j *Job) retriesFit(retention time.Duration) error {
	f := Faults{Of: Called(*j)}
	if most, may := j.mostRetried(), PlannedFor(retention); j.RetryBackoff.First > 0 && most > may {
		f.Add("RetryBackoff", j.RetryBackoff, fmt.Errorf("the pauses of %d retries may take %v, and runs are kept for %v (Config.RunRetention): at most %v", j.Retries, most, retention, may))
	}
	return f.Err()
}

// TooManySnoozes is the HandleMsg of a run that was to be snoozed once too often.
const TooManySnoozes = "snoozed too often: see Job.MaxSnoozes"

// DefaultSnoozes is what a Job.MaxSnoozes of zero stands for.
const DefaultSnoozes = 100

// reruns and snoozes are how many a trigger of the job may have.
func (j *Job) reruns() int {
	if j.MaxReruns == 0 {
		return defaultReruns
	}
	return j.MaxReruns
}

func (j *Job) snoozes() int {
	if j.MaxSnoozes == 0 {
		return DefaultSnoozes
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
