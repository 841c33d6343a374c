package scenario_test

// Stores whose clock is moved, and set right again.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// movedClock is a clock that can be moved.
type movedClock struct {
	mu sync.Mutex
	by time.Duration // guarded by mu
}

func (c *movedClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func (c *movedClock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = by
}

// goingBy is a store in memory that goes by the clock.
func (c *movedClock) goingBy() *memory.Store {
	st := memory.New()
	st.GoBy(c.now)
	return st
}

// clockSteps are those that a clock takes by mistake.
var clockSteps = map[string]time.Duration{"an hour": time.Hour, "31 days": 31 * 24 * time.Hour, "10 years": 3653 * 24 * time.Hour}

// marking is a store that keeps a mark of its clock.
type marking struct {
	*retaining
	mark time.Time // guarded by mu
}

func (s *marking) ClockMark(context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mark, nil
}

func (s *marking) SetClockMark(_ context.Context, mark time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark = mark
	return nil
}

// dropped is how often something was dropped, by the local clock that of so long ago.
func (s *retaining) dropped(t *testing.T, kept time.Duration) int {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ago := range s.before {
		if (ago - kept).Abs() > time.Second {
			t.Errorf("dropped what is older than %v, want %v", ago, kept)
		}
	}
	return len(s.before)
}

func clockTroubles(s xxljob.Scheduler) (all []xxljob.Trouble) {
	for _, x := range s.Troubles() {
		if x.Cause == xxljob.TroubleClock {
			all = append(all, x)
		}
	}
	return all
}

// TestRetentionWaitsForTheClock: while the store's clock is ahead, and for an hour after it was set
// right, nothing is dropped, reports are not added up, and the node says so.
func TestRetentionWaitsForTheClock(t *testing.T) {
	t.Parallel()
	for name, step := range clockSteps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock movedClock
				st := &retaining{Store: clock.goingBy()}
				lines := &lockedLines{}
				s, err := xxljob.New(st, xxljob.Config{App: "app", Node: "a", Logger: slog.New(slog.NewTextHandler(lines, nil)), RunRetention: 48 * time.Hour})
				stage.Must(t, err)
				stage.Must(t, s.Start(t.Context()))
				time.Sleep(30 * time.Second)
				clock.move(step)
				began := time.Now()
				time.Sleep(40 * time.Second) // longer than it is not believed, and past the first go
				if ts := clockTroubles(s); len(ts) != 1 || !strings.Contains(ts[0].Detail, "ahead by "+step.String()) || ts[0].Since.Sub(began).Abs() > 5*time.Second+step {
					t.Errorf("while the clock is ahead: %v", ts)
				}
				clock.move(0)
				time.Sleep(time.Hour - time.Minute)
				if n := st.dropped(t, 48*time.Hour); n != 0 || st.folds != 0 {
					t.Errorf("dropped %d times, added up %d times while the clock was not to be trusted", n, st.folds)
				}
				if ts := clockTroubles(s); len(ts) != 1 || !strings.Contains(ts[0].Detail, "back by "+step.String()) {
					t.Errorf("after it was set right: %v", ts)
				}
				time.Sleep(5 * time.Minute)
				if n := st.dropped(t, 48*time.Hour); n != 1 || st.folds == 0 || len(clockTroubles(s)) != 0 {
					t.Errorf("an hour later: dropped %d times, added up %d times, %v", n, st.folds, clockTroubles(s))
				}
				stage.Must(t, s.Stop(t.Context()))
				if n := len(lines.with("cause=clock")); n < 2 {
					t.Errorf("%d lines of the clock", n)
				}
			})
		})
	}
}

// TestRetentionGoesByTheMark: a node that starts while the store's clock is far ahead of the mark
// waits for an hour; where the clock is set right meanwhile, for an hour from then on.
func TestRetentionGoesByTheMark(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		ahead time.Duration // of the mark, at the start
		right bool          // it is set right after ten seconds
		waits bool
	}{
		{"it is as it was", 0, false, false},
		{"nobody was there for a night", 12 * time.Hour, false, false},
		{"it is 31 days ahead", 31 * 24 * time.Hour, true, true},
		{"nobody was there for a month", 31 * 24 * time.Hour, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if stage.Detector && !tt.right {
				t.Skip("the same hour, in which the clock is not set: the race detector has nothing more to say of it")
			}
			synctest.Test(t, func(t *testing.T) {
				var clock movedClock
				st := &marking{retaining: &retaining{Store: clock.goingBy()}}
				st.mark = time.Now()
				clock.move(tt.ahead)
				s, err := xxljob.New(st, xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog(), RunRetention: 48 * time.Hour})
				stage.Must(t, err)
				stage.Must(t, s.Start(t.Context()))
				time.Sleep(10 * time.Second)
				kept := 48*time.Hour - tt.ahead
				if tt.right {
					clock.move(0)
					kept = 48 * time.Hour
				}
				time.Sleep(59 * time.Minute)
				early := st.dropped(t, kept)
				if early > 0 == tt.waits || len(clockTroubles(s)) > 0 != tt.waits {
					t.Errorf("within an hour: dropped %d times, %v", early, clockTroubles(s))
				}
				time.Sleep(6 * time.Minute)
				if n := st.dropped(t, kept); n == 0 || len(clockTroubles(s)) != 0 {
					t.Errorf("after it: dropped %d times, %v", n, clockTroubles(s))
				}
				if off := st.mark.Sub(clock.now()); off.Abs() > 2*time.Minute {
					t.Errorf("the mark is off by %v", off)
				}
				stage.Must(t, s.Stop(t.Context()))
			})
		})
	}
}

// TestRetentionNeverGoesByAFalseClock: nodes are there throughout while the store's clock is a month ahead for
// hours. Nothing is dropped by it, and an hour after it was set right retention goes on.
func TestRetentionNeverGoesByAFalseClock(t *testing.T) {
	t.Parallel()
	if stage.Detector {
		t.Skip("TestRetentionGoesByTheMark does the same for an hour")
	}
	synctest.Test(t, func(t *testing.T) {
		var clock movedClock
		st := &marking{retaining: &retaining{Store: clock.goingBy()}}
		s, err := xxljob.New(st, xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog(), RunRetention: 48 * time.Hour})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(2 * time.Hour)
		before := st.dropped(t, 48*time.Hour)
		clock.move(31 * 24 * time.Hour)
		time.Sleep(3 * time.Hour)
		if n := st.dropped(t, 48*time.Hour); n != before {
			t.Errorf("dropped %d times by a clock that is a month ahead", n-before)
		}
		if ts := clockTroubles(s); len(ts) != 1 || ts[0].Seen.What != store.SeenClockJumped || !strings.Contains(ts[0].Remedy, "restart") {
			t.Errorf("meanwhile: %v", ts)
		}
		clock.move(0)
		time.Sleep(2*time.Hour + time.Minute)
		if n := st.dropped(t, 48*time.Hour); n == before || len(clockTroubles(s)) != 0 {
			t.Errorf("two hours after it was set right: dropped %d times, %v", n-before, clockTroubles(s))
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// stepTally counts the runs of jobs by their instants.
type stepTally struct {
	mu  sync.Mutex
	ran map[string]map[time.Time]int // guarded by mu: by parameter and instant
	at  map[string][]time.Time       // guarded by mu: by parameter, by the local clock
}

func (c *stepTally) note(task *xxljob.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ran == nil {
		c.ran, c.at = map[string]map[time.Time]int{}, map[string][]time.Time{}
	}
	if c.ran[task.Param] == nil {
		c.ran[task.Param] = map[time.Time]int{}
	}
	c.ran[task.Param][task.ScheduledAt.UTC()]++
	c.at[task.Param] = append(c.at[task.Param], time.Now())
}

// since is how many runs of a job began in so long after a time.
func (c *stepTally) since(param string, from time.Time, within time.Duration) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.at[param] {
		if !at.Before(from) && at.Sub(from) <= within {
			n++
		}
	}
	return n
}

// once reports instants that were run more than once, and those of each so many seconds, from and to
// given times, that were not.
func (c *stepTally) once(t *testing.T, param string, every time.Duration, from, to time.Time) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, n := range c.ran[param] {
		if n > 1 {
			t.Errorf("%s: %v was run %d times", param, at, n)
		}
	}
	if every == 0 {
		return
	}
	for at := from.UTC().Truncate(every).Add(every); at.Before(to); at = at.Add(every) {
		if c.ran[param][at] == 0 {
			t.Errorf("%s: %v was not run", param, at)
		}
	}
}

// steppedNode is a node whose jobs are noted; those with the parameter "retry" fail the first time.
func (c *stepTally) steppedNode(t *testing.T, st xxljob.Store, name string) xxljob.Scheduler {
	t.Helper()
	s, err := xxljob.New(st, xxljob.Config{App: "app", Node: name, Logger: stage.QuietLog()})
	stage.Must(t, err)
	stage.Must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
		c.note(task)
		if task.Param == "retry" && task.Attempt == 0 {
			return errors.New("not yet")
		}
		return nil
	}))
	stage.Must(t, s.Start(t.Context()))
	return s
}

func stepJob(name string, sched xxljob.Schedule) xxljob.Job {
	return xxljob.Job{Key: name, Name: name, Handler: "work", Param: name, Schedule: sched}
}

// TestClockAheadForSeconds: while the store's clock is ahead for some seconds, and after it was set
// right, all jobs go on as if nothing had happened, those that were planned by the false clock
// within ten seconds. No instant is run twice.
func TestClockAheadForSeconds(t *testing.T) {
	t.Parallel()
	for name, step := range clockSteps {
		for _, lasts := range []time.Duration{5 * time.Second, 10 * time.Second} {
			t.Run(name+" for "+lasts.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var clock movedClock
					var ran stepTally
					st := clock.goingBy()
					a, b := ran.steppedNode(t, st, "a"), ran.steppedNode(t, st, "b")
					for _, j := range []xxljob.Job{
						stepJob("cron", xxljob.Cron("0/2 * * * * ?")), stepJob("rate", xxljob.FixedRate(time.Second)), stepJob("delay", xxljob.FixedDelay(time.Second)),
						stepJob("edited", xxljob.Cron("0/2 * * * * ?")), stepJob("restarted", xxljob.FixedRate(time.Second)),
					} {
						_, err := a.EnsureJob(t.Context(), j)
						stage.Must(t, err)
					}
					time.Sleep(time.Minute + 300*time.Millisecond)
					began := time.Now()
					clock.move(step)
					time.Sleep(2 * time.Second)
					edited := stepJob("edited", xxljob.Cron("0/3 * * * * ?"))
					_, err := a.EnsureJob(t.Context(), edited)
					stage.Must(t, err)
					_, err = b.EnsureJob(t.Context(), stepJob("added", xxljob.Cron("0/2 * * * * ?")))
					stage.Must(t, err)
					restarted, err := st.JobByKey(t.Context(), "app", "restarted")
					stage.Must(t, err)
					stage.Must(t, a.StopJob(t.Context(), restarted.ID))
					stage.Must(t, b.StartJob(t.Context(), restarted.ID))
					retried := stepJob("retry", xxljob.Manual())
					retried.Retries, retried.RetryBackoff = 1, xxljob.Backoff{First: 20 * time.Second}
					tried, err := a.EnsureJob(t.Context(), retried)
					stage.Must(t, err)
					manual, err := a.EnsureJob(t.Context(), stepJob("manual", xxljob.Manual()))
					stage.Must(t, err)
					for _, job := range []int64{tried.Job.ID, manual.Job.ID} {
						_, err = b.Trigger(t.Context(), job, xxljob.Trigger{})
						stage.Must(t, err)
					}
					time.Sleep(lasts - 2*time.Second)
					clock.move(0)
					back := time.Now()
					time.Sleep(time.Minute)
					for _, param := range []string{"cron", "rate", "delay", "edited", "added", "restarted"} {
						if n := ran.since(param, back, 10*time.Second); n == 0 {
							t.Errorf("%s was not run within ten seconds after the clock was set right, within a minute %d times", param, ran.since(param, back, time.Minute))
						}
						ran.once(t, param, 0, began, began)
					}
					if n := ran.since("manual", back, 10*time.Second); n != 1 {
						t.Errorf("what was triggered meanwhile was run %d times within ten seconds", n)
					}
					if first, again := ran.since("retry", back, 10*time.Second), ran.since("retry", back.Add(10*time.Second), 30*time.Second); first != 1 || again != 1 {
						t.Errorf("what is to be tried again was run %d times within ten seconds, %d times within forty", first, again)
					}
					ran.once(t, "cron", 2*time.Second, began, time.Now().Add(-time.Second))
					if n := ran.since("rate", began, time.Hour); n < int(time.Since(began)/time.Second)-1 {
						t.Errorf("the job of each second was run %d times in %v", n, time.Since(began))
					}
					stage.Must(t, a.Stop(t.Context()))
					stage.Must(t, b.Stop(t.Context()))
				})
			})
		}
	}
}

// TestRestartAfterAStep: what a false clock has planned is worked out again by a node that starts
// when the clock is right again, and has seen nothing of it.
func TestRestartAfterAStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var clock movedClock
		var ran stepTally
		st := clock.goingBy()
		clock.move(time.Hour)
		// It is not started: what it had planned would be of the false hour, and jobs wait until that is over.
		a, err := xxljob.New(st, xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog()})
		stage.Must(t, err)
		for _, j := range []xxljob.Job{stepJob("cron", xxljob.Cron("0/2 * * * * ?")), stepJob("rate", xxljob.FixedRate(time.Second)), stepJob("delay", xxljob.FixedDelay(time.Second)), stepJob("daily", xxljob.Cron("0 0 3 * * ?"))} {
			_, err := a.EnsureJob(t.Context(), j)
			stage.Must(t, err)
		}
		daily, err := st.JobByKey(t.Context(), "app", "daily")
		stage.Must(t, err)
		clock.move(0)
		b := ran.steppedNode(t, st, "b")
		time.Sleep(10 * time.Second)
		for _, param := range []string{"cron", "rate", "delay"} {
			if n := ran.since(param, time.Time{}, math.MaxInt64); n < 4 {
				t.Errorf("%s was run %d times", param, n)
			}
		}
		if j, err := st.Job(t.Context(), daily.ID); err != nil || !j.Next.Equal(daily.Next) || j.Version != daily.Version {
			t.Errorf("a job whose next instant is right was changed: %v, %v", j, err)
		}
		stage.Must(t, b.Stop(t.Context()))
	})
}

// refusesCorrections is a store that does not let one job, nor some run, be worked out anew.
type refusesCorrections struct {
	st  *memory.Store
	job atomic.Int64 // zero for none
}

func (s *refusesCorrections) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	for i := range plans {
		if plans[i].JobID == s.job.Load() && len(plans[i].Runs) == 0 {
			return nil, fmt.Errorf("poisoned: %w", store.ErrRefused)
		}
	}
	return s.st.Claim(ctx, dst, plans)
}

func (s *refusesCorrections) RedateRuns(ctx context.Context, q store.RedateQuery) (int, error) {
	n, err := s.st.RedateRuns(ctx, q)
	if err == nil && s.job.Load() != 0 {
		err = fmt.Errorf("poisoned: %w", store.ErrRefused)
	}
	return n, err
}

// TestRefusedCorrections: a job that a false clock has planned, and that the store does not let a node
// work out anew, is a trouble, keeps no other silent, and goes on when the store lets it.
func TestRefusedCorrections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var clock movedClock
		var ran stepTally
		refuses := &refusesCorrections{st: clock.goingBy()}
		st := bent.AllOf(refuses.st, refuses)
		clock.move(time.Hour)
		a, err := xxljob.New(st, xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog()})
		stage.Must(t, err)
		for i := range 20 {
			_, err := a.EnsureJob(t.Context(), stepJob(fmt.Sprint("job", i), xxljob.FixedRate(time.Second)))
			stage.Must(t, err)
		}
		bad, err := st.JobByKey(t.Context(), "app", "job7")
		stage.Must(t, err)
		manual, err := a.EnsureJob(t.Context(), stepJob("manual", xxljob.Manual()))
		stage.Must(t, err)
		_, err = st.AddRun(t.Context(), manual.Job.ID, store.Trigger{})
		stage.Must(t, err)
		clock.move(0)
		refuses.job.Store(bad.ID)
		b := ran.steppedNode(t, st, "b")
		time.Sleep(time.Minute)
		for i := range 20 {
			least := 50
			if i == 7 {
				least = 0
			}
			if n := ran.since(fmt.Sprint("job", i), time.Time{}, math.MaxInt64); n < least || i == 7 && n > 0 {
				t.Errorf("job%d was run %d times", i, n)
			}
		}
		if n := ran.since("manual", time.Time{}, math.MaxInt64); n != 1 {
			t.Errorf("what was triggered by the false clock was run %d times", n)
		}
		said := map[int64]string{}
		for _, x := range b.Troubles() {
			if x.Cause == xxljob.TroubleRefused {
				said[x.JobID] = x.Detail
			}
		}
		stage.RequireText(t, "what is said of the job", said[bad.ID], "refuses to plan its runs")
		stage.RequireText(t, "what is said of runs", said[0], "a clock which was ahead has dated")
		refuses.job.Store(0)
		time.Sleep(time.Minute)
		if n := ran.since("job7", time.Time{}, math.MaxInt64); n < 40 {
			t.Errorf("then the job was run %d times", n)
		}
		for _, x := range b.Troubles() {
			if x.Cause == xxljob.TroubleRefused {
				t.Errorf("then there is %v", x)
			}
		}
		stage.Must(t, b.Stop(t.Context()))
	})
}
