package interop_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

// beginInOrder triggers a serial job often, without a pause.
func beginInOrder(t *testing.T, s *stage) {
	job := s.job(t, "count", "")
	var ids []int64
	for range 30 {
		ids = append(ids, s.trigger(t, job, 1))
	}
	s.beganInOrder(t, ids)
	if s.starts[ids[0]] != 1 {
		t.Errorf("the first run, %d, was refused", ids[0])
	}
}

// caughtUpInOrder has a serial job that is due ten times a second wait for a scheduler
// for three seconds.
func caughtUpInOrder(t *testing.T, s *stage) {
	job := s.job(t, "count", "", func(j *xxljob.Job) { j.Schedule = xxljob.FixedRate(100 * time.Millisecond) })
	eventually(t, time.Minute, "the job runs", func() bool {
		runs := s.runsOf(t, job)
		return len(runs) > 5 && runs[5].State.Ended()
	})
	closing := time.Now()
	eventually(t, time.Minute, "what was due has ended", func() bool {
		return !slices.ContainsFunc(s.runsOf(t, job), func(run xxljob.Run) bool { return !run.Scheduled.After(closing) && !run.State.Ended() })
	})
	var from, to time.Time
	s.replaced(t, func() {
		from = time.Now()
		time.Sleep(3 * time.Second)
		to = time.Now()
	})
	// A run that is under way as the scheduler goes has nobody to tell its result to.
	lost := func(run xxljob.Run) bool {
		return s.forgets && run.State == xxljob.StateDispatched && run.Scheduled.After(closing) && !run.Scheduled.After(from)
	}
	eventually(t, time.Minute, "the job has caught up", func() bool {
		ended := 0
		for _, run := range s.runsOf(t, job) {
			switch {
			case lost(run):
			case !run.Scheduled.After(to) && !run.State.Ended():
				return false
			case run.Scheduled.After(to) && run.State.Ended():
				ended++
			}
		}
		return ended > 0
	})
	if err := s.StopJob(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	var late []int64
	for _, run := range s.runsOf(t, job) {
		if lost(run) {
			s.starts[run.ID] = 1
			continue
		}
		if run = s.ended(t, run.ID); run.State != xxljob.StateSucceeded {
			s.starts[run.ID] = 0 // planned before the stop, for afterwards, or refused
		} else {
			s.starts[run.ID] = 1
		}
		if run.Scheduled.After(from) && run.Scheduled.Before(to) {
			late = append(late, run.ID)
		}
	}
	if len(late) < 25 {
		t.Errorf("%d runs are caught up, want 30", len(late))
	}
	s.beganInOrder(t, late)
}

// runsOf are the runs of a job so far, in the order of their instants and ids.
func (s *stage) runsOf(t *testing.T, job xxljob.Job) []xxljob.Run {
	t.Helper()
	runs, err := s.store.Runs(t.Context(), xxljob.RunFilter{JobID: job.ID, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(runs, func(a, b xxljob.Run) int {
		return cmp.Or(a.Scheduled.Compare(b.Scheduled), cmp.Compare(a.ID, b.ID))
	})
	return runs
}

// refusedAsBusy reports whether a peer without a queue has refused a run.
func refusedAsBusy(k kind, run xxljob.Run) bool {
	return k.noQueue != "" && run.State == refusalState(k.noQueue)
}

// beganInOrder waits until runs have ended, and compares the order in which the first
// peer has begun them with theirs. A peer without a queue may refuse some, which began
// nowhere, but not all.
func (s *stage) beganInOrder(t *testing.T, ids []int64) {
	t.Helper()
	var want []int64
	for _, id := range ids {
		run := s.ended(t, id)
		if refusedAsBusy(s.kind, run) {
			s.turnedAway(t, id, run.State, s.noQueue)
			s.starts[id] = 0
			continue
		}
		s.wellEnded(t, id, "")
		want = append(want, id)
	}
	if len(want) == 0 {
		t.Errorf("none of %v began", ids)
	}
	var got []int64
	for _, e := range s.peers[0].journal(t) {
		if e.phase == "start" && slices.Contains(ids, e.run) {
			got = append(got, e.run)
		}
	}
	reversed := 0
	for i := range len(got) - 1 {
		if slices.Index(ids, got[i]) > slices.Index(ids, got[i+1]) {
			reversed++
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d of %d pairs began reversed: %v, want %v", reversed, len(got)-1, got, want)
	}
}
