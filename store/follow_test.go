package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// everyType are the types of a trigger.
var everyType = []store.TriggerType{
	store.TriggerManual, store.TriggerCron, store.TriggerRetry, store.TriggerParent, store.TriggerAPI, store.TriggerMisfire,
	store.TriggerFixRate, store.TriggerFixDelay, store.TriggerOnce,
}

// ended is a run that has ended, in every way that matters to what follows it.
type ended struct {
	state   store.State
	retries int          // of the job
	onLost  store.OnLost // of the job
	part    bool         // of a broadcast
	kind    store.TriggerType
	attempt int
	reruns  int
}

// want is what follows, worked out in another way than Follow does it: by the kind of the end.
func (c ended) want() (attempt, reruns, snoozes int, follows bool) {
	used := c.attempt - c.reruns
	retry := func() (int, int, int, bool) {
		if used >= c.retries {
			return 0, 0, 0, false
		}
		return c.attempt + 1, c.reruns, 2, true
	}
	switch c.state {
	case store.StateFailed, store.StateTimedOut, store.StateRefused:
		return retry()
	case store.StateSnoozed:
		return c.attempt, c.reruns, 3, true
	case store.StateLost:
		if c.onLost != store.OnLostRerun {
			return retry()
		}
		if c.reruns < 3 {
			return c.attempt + 1, c.reruns + 1, 2, true
		}
	}
	return 0, 0, 0, false
}

// TestFollow is the decider over every state, number of retries, OnLost, broadcast and type.
func TestFollow(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, state := range everyState {
		for _, retries := range []int{0, 1, 2, 30_000} {
			for _, onLost := range []store.OnLost{"", store.OnLostFail, store.OnLostRerun} {
				for _, part := range []bool{false, true} {
					for _, kind := range everyType {
						for _, used := range [][2]int{{0, 0}, {1, 0}, {1, 1}, {2, 1}, {3, 3}, {5, 3}} {
							requireFollows(t, ended{state, retries, onLost, part, kind, used[0], used[1]}, at)
						}
					}
				}
			}
		}
	}
}

func requireFollows(t *testing.T, c ended, at time.Time) {
	t.Helper()
	job := store.Job{ID: 7, Retries: c.retries, OnLost: c.onLost, RetryBackoff: store.Backoff{First: time.Second, Max: 4 * time.Second}}
	run := store.Run{
		ID: 20, JobID: 7, App: "app", Shard: 3, TriggerID: 9, ParentID: 4, Depth: 2, Business: at.Add(-time.Hour), Attempt: c.attempt, Type: c.kind, Born: c.kind.ScheduleBorn(),
		Scheduled: at, State: c.state, Param: "p", ParamSet: true, Addresses: []string{"http://a"}, Retries: 5, Reruns: c.reruns, Snoozes: 2,
		Ended: at.Add(time.Minute), Owner: "node", Token: 3, Handler: "h", HandleMsg: "boom",
	}
	if c.part {
		run.Sharding = store.Sharding{Index: 1, Total: 3}
	}
	got, note := run.Follow(&job, 0, at, 0)
	attempt, reruns, snoozes, follows := c.want()
	if !follows {
		if got.JobID != 0 {
			t.Errorf("%+v: %+v follows, want nothing", c, got)
		}
		return
	}
	pause := min(time.Second<<max(c.attempt-c.reruns, 0), 4*time.Second)
	switch {
	case c.state == store.StateSnoozed:
		pause = time.Millisecond
	case reruns > c.reruns:
		pause = min(time.Second<<c.reruns, 4*time.Second)
	}
	want := store.Run{
		JobID: 7, App: "app", Shard: 3, TriggerID: 9, ParentID: 4, Depth: 2, Business: at.Add(-time.Hour), Attempt: attempt, Type: store.TriggerRetry, Born: run.Born,
		Scheduled: run.Ended.Add(pause), State: store.StatePlanned, Sharding: run.Sharding, Param: "p", ParamSet: true,
		Addresses: run.Addresses, Retries: -1, Reruns: reruns, Snoozes: snoozes, First: at, Last: at,
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || note != "" {
		t.Errorf("%+v:\n got %+v, %q\nwant %+v", c, got, note, want)
	}
}

// TestFollowOneByOne has what does not go by the table above.
func TestFollowOneByOne(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name   string
		run    func(*store.Run)
		job    func(*store.Job) *store.Job
		after  time.Duration
		keep   time.Duration
		pause  time.Duration // 0: nothing follows
		note   string
		jitter bool
	}{
		{name: "no pause", pause: 0, job: func(j *store.Job) *store.Job { j.Retries = 0; return j }},
		{name: "a fixed pause", pause: time.Minute},
		{name: "the handler's comes first", after: 3 * time.Second, pause: 3 * time.Second},
		{name: "permanent", run: func(r *store.Run) { r.NoRetry = true }},
		{name: "permanent though it was lost", run: func(r *store.Run) { r.NoRetry, r.State = true, store.StateLost }},
		{name: "somebody wanted it killed", run: func(r *store.Run) { r.KillReason = "unwanted" }, note: "killed"},
		{name: "the job is removed", run: func(r *store.Run) { r.Retries = 1 }, job: func(*store.Job) *store.Job { return nil }, note: "removed"},
		{name: "nothing was to follow, the job is removed", job: func(*store.Job) *store.Job { return nil }},
		{name: "nothing was to follow, the job is stopped", run: func(r *store.Run) { r.Born = true }, job: func(j *store.Job) *store.Job { j.Stopped, j.Retries = true, 0; return j }},
		{name: "nothing was to follow, it was to be killed", run: func(r *store.Run) { r.KillReason, r.RetriesSet = "unwanted", true }},
		{name: "what the handler says is cut to the millisecond", after: 1500 * time.Microsecond, pause: time.Millisecond},
		{name: "the job is stopped, its schedule's", run: func(r *store.Run) { r.Born = true }, job: func(j *store.Job) *store.Job { j.Stopped = true; return j }, note: "stopped"},
		{name: "the job is stopped, a trigger's", job: func(j *store.Job) *store.Job { j.Stopped = true; return j }, pause: time.Minute},
		{name: "the trigger's number is used up", run: func(r *store.Run) { r.RetriesSet, r.Retries = true, 0 }},
		{name: "the trigger's number wins", run: func(r *store.Run) { r.RetriesSet, r.Retries = true, 1 }, job: func(j *store.Job) *store.Job { j.Retries = 0; return j }, pause: time.Minute},
		{name: "a year is cut to the retention less a day", after: 365 * day, keep: 10 * day, pause: 9*day - time.Minute},
		{name: "of 30 days where it is not known", after: 365 * day, pause: 29*day - time.Minute},
		{name: "a snooze of a year too", run: func(r *store.Run) { r.State = store.StateSnoozed }, after: 365 * day, keep: 10 * day, pause: 9*day - time.Minute},
		{name: "behind it there is no more", run: func(r *store.Run) { r.Ended = at.Add(9 * day) }, keep: 10 * day, note: "nothing follows"},
		{name: "just before it there is one more", run: func(r *store.Run) { r.Ended = at.Add(9*day - 1e6) }, keep: 10 * day, pause: time.Millisecond},
		{name: "jitter", job: func(j *store.Job) *store.Job { j.RetryBackoff.Jitter = 50; return j }, jitter: true},
		{name: "reruns are used up, and retries are not for that", run: func(r *store.Run) { r.State, r.Reruns, r.Attempt = store.StateLost, 3, 3 },
			job: func(j *store.Job) *store.Job { j.OnLost = store.OnLostRerun; return j }, note: "3 times"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job := &store.Job{ID: 7, Retries: 3, RetryBackoff: store.Backoff{First: time.Minute}}
			run := store.Run{ID: 20, JobID: 7, TriggerID: 20, State: store.StateFailed, Type: store.TriggerManual, Created: at, Ended: at.Add(time.Minute)}
			if tt.run != nil {
				tt.run(&run)
			}
			if tt.job != nil {
				job = tt.job(job)
			}
			next, note := run.Follow(job, tt.after, at, tt.keep)
			pause := next.Scheduled.Sub(run.Ended)
			switch {
			case tt.jitter:
				if again, _ := run.Follow(job, tt.after, at, tt.keep); pause < 30*time.Second || pause > 90*time.Second || !again.Scheduled.Equal(next.Scheduled) {
					t.Errorf("a pause of %v, then %v: want the same one from 30 s to 90 s", pause, again.Scheduled.Sub(run.Ended))
				}
			case tt.pause == 0 && next.JobID != 0, tt.pause != 0 && (next.JobID == 0 || pause != tt.pause):
				t.Errorf("%+v follows after %v, want %v", next, pause, tt.pause)
			}
			if (tt.note == "") != (note == "") || !strings.Contains(note, tt.note) {
				t.Errorf("note %q, want one with %q", note, tt.note)
			}
		})
	}
}

// TestFailedForGood: what the row of a run that has ended says of whether it is the end of its trigger in
// failure, with what its end makes of Retries, agrees with what follows it.
func TestFailedForGood(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, state := range everyState {
		for bits := range 1 << 7 {
			bit := func(n int) bool { return bits&(1<<n) != 0 }
			job := &store.Job{ID: 7, Retries: 2 * btoi(bit(0)), Stopped: bit(1)}
			run := store.Run{ID: 20, JobID: 7, TriggerID: 20, State: state, Type: store.TriggerCron, Born: true, Created: at, Ended: at.Add(time.Minute),
				Retries: 3 * btoi(bit(2)), RetriesSet: bit(3), NoRetry: bit(4), Attempt: btoi(bit(5))}
			if bit(5) {
				run.Type = store.TriggerRetry
			}
			if bit(6) {
				run.KillReason = "unwanted"
			}
			next, note := run.Follow(job, 0, at, 0)
			followed := next.JobID != 0
			stored := run
			stored.TriggerMsg, stored.Retries = note, run.RetriesLeft(job, followed)
			if run.RetriesSet && stored.Retries != run.Retries {
				t.Errorf("%+v: the trigger's number became %d", run, stored.Retries)
			}
			cause := ""
			if a, ok := stored.Alarm(followed, false); ok {
				cause = a.Cause
			}
			if got, want := stored.FailedForGood(), cause == "failed" || cause == "lost"; got != want {
				t.Errorf("%+v of %+v, followed by %d: failed for good %v, and its alarm is %q", stored, *job, next.JobID, got, cause)
			}
		}
	}
	snoozed := store.Run{State: store.StateDiscarded, Type: store.TriggerRetry, Snoozes: 1}
	if snoozed.FailedForGood() {
		t.Error("what comes behind a snooze alone, and is discarded, has failed")
	}
	lost := store.Run{State: store.StateLost, Reruns: 3, Attempt: 3, Retries: 2}
	if left := lost.RetriesLeft(&store.Job{ID: 7, Retries: 2, OnLost: store.OnLostRerun}, false); left != 0 {
		t.Errorf("a lost run that is run again no more has %d retries left", left)
	}
}

// TestJitterSpreads: pauses of many runs fill the whole span, and none is outside.
func TestJitterSpreads(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	job := store.Job{ID: 7, Retries: 1, RetryBackoff: store.Backoff{First: 100 * time.Second, Jitter: 20}}
	tenths := map[int]int{}
	for id := range int64(10_000) {
		run := store.Run{ID: id<<13 + 1, JobID: 7, State: store.StateFailed, Ended: at, Created: at}
		next, _ := run.Follow(&job, 0, at, 0)
		tenths[int(next.Scheduled.Sub(at.Add(80*time.Second))/(4*time.Second))]++
	}
	for i := range 10 {
		if n := tenths[i]; n < 700 || n > 1300 {
			t.Errorf("of 10,000 pauses from 80 s to 120 s there are %d in the tenth that begins at %d s, want about 1,000", n, 80+4*i)
		}
	}
	if len(tenths) > 11 || tenths[10] > 5 {
		t.Errorf("pauses outside of 80 s to 120 s: %v", tenths)
	}
}

// TestRetriesFitTheRetention: pauses that together are longer than a trigger may take are
// refused when the job is saved.
func TestRetriesFitTheRetention(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name    string
		retries int
		backoff store.Backoff
		onLost  store.OnLost
		fits    bool
	}{
		{"no pauses", 30_000, store.Backoff{}, "", true},
		{"nine of a day", 9, store.Backoff{First: day}, "", true},
		{"ten of a day", 10, store.Backoff{First: day}, "", false},
		{"nine with jitter", 9, store.Backoff{First: day, Jitter: 1}, "", false},
		{"six that double", 6, store.Backoff{First: time.Hour, Max: 100 * time.Hour}, "", true},
		{"eight that double", 8, store.Backoff{First: time.Hour, Max: 100 * time.Hour}, "", false},
		{"eight that double up to 24 hours", 8, store.Backoff{First: time.Hour, Max: 24 * time.Hour}, "", true},
		{"absurd", 30_000, store.Backoff{First: 10_000 * time.Hour, Max: 10_000 * time.Hour, Jitter: 100}, "", false},
		{"nine, and three reruns", 9, store.Backoff{First: day}, store.OnLostRerun, false},
		{"six, and three reruns", 6, store.Backoff{First: day}, store.OnLostRerun, true},
	} {
		job := store.Job{Name: "job", Handler: "work", Schedule: schedule.Manual(), Retries: tt.retries, RetryBackoff: tt.backoff, OnLost: tt.onLost}
		if _, err := store.Complete(job, store.Rules{App: "app", Routes: route.Names(), RunRetention: 10 * day}); (err == nil) != tt.fits {
			t.Errorf("%s: %v, want it to fit: %t", tt.name, err, tt.fits)
		}
	}
}
