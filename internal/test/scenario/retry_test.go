package scenario_test

// What follows the end of a run, seen from outside: a node, or two, and handlers that fail.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

var errBoom = errors.New("boom")

// failing is a node with a handler that goes by what a test says about each attempt.
type failing struct {
	*stage.Node
	mu    sync.Mutex
	calls []string // job, attempt and second of each
	dead  bool     // its handler has paused it
}

func startFailing(t *testing.T, st xxljob.Store, name string, handler func(ctx context.Context, task *xxljob.Task) error, tune ...func(*xxljob.Config)) *failing {
	t.Helper()
	f := &failing{}
	tune = append(tune, func(c *xxljob.Config) { c.App = "app" })
	f.Node = stage.NewNode(t, st, name, &stage.Journal{}, tune...)
	began := time.Now()
	stage.Must(t, f.Handle("try", func(ctx context.Context, task *xxljob.Task) error {
		f.mu.Lock()
		f.calls = append(f.calls, fmt.Sprintf("%s/%d@%v", task.JobName, task.Attempt, time.Since(began).Round(time.Second)))
		f.mu.Unlock()
		return handler(ctx, task)
	}))
	stage.Must(t, f.Start(context.Background()))
	return f
}

// requireCalls compares the calls so far, and forgets them.
func (f *failing) requireCalls(t *testing.T, what string, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.calls, want) {
		t.Errorf("%s: calls %q, want %q", what, f.calls, want)
	}
	f.calls = nil
}

// tree are the runs of a trigger, as "attempt state".
func tree(t *testing.T, st xxljob.Store, id int64) (list []string) {
	t.Helper()
	runs, err := st.Tree(context.Background(), id)
	stage.Must(t, err)
	for _, r := range runs {
		list = append(list, fmt.Sprintf("%d %s", r.Attempt, r.State))
	}
	return list
}

func requireTree(t *testing.T, what string, st xxljob.Store, id int64, want ...string) {
	t.Helper()
	if got := tree(t, st, id); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestRetriesWithPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return errBoom })
		id := stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try", Retries: 4, RetryBackoff: xxljob.Backoff{First: 2 * time.Second, Max: 6 * time.Second}})
		time.Sleep(time.Minute)
		f.requireCalls(t, "retries", "j/0@0s", "j/1@2s", "j/2@6s", "j/3@12s", "j/4@18s")
		requireTree(t, "the trigger", st, id, "0 failed", "1 failed", "2 failed", "3 failed", "4 failed")
		stage.Stop(t, f.Node)
	})
}

// TestRetryAtOnce: without a pause, as in XXL-JOB, and without ten seconds of waiting.
func TestRetryAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := startFailing(t, st, "a", func(_ context.Context, task *xxljob.Task) error {
			if task.Attempt < 2 {
				return errBoom
			}
			return nil
		})
		id := stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try", Retries: 5})
		time.Sleep(time.Second)
		f.requireCalls(t, "retries", "j/0@0s", "j/1@0s", "j/2@0s")
		requireTree(t, "the trigger", st, id, "0 failed", "1 failed", "2 succeeded")
		stage.Stop(t, f.Node)
	})
}

func TestWhatTheHandlerSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
		job  xxljob.Job
		want []string
	}{
		{"permanent", xxljob.Permanent(errBoom), xxljob.Job{Retries: 3}, []string{"0 failed"}},
		{"when", xxljob.RetryAfter(time.Hour, errBoom), xxljob.Job{Retries: 1}, []string{"0 failed", "1 failed"}},
		{"when, without retries", xxljob.RetryAfter(time.Hour, errBoom), xxljob.Job{}, []string{"0 failed"}},
		{"wrapped", fmt.Errorf("wrapped: %w", xxljob.RetryAfter(time.Hour, errBoom)), xxljob.Job{Retries: 1}, []string{"0 failed", "1 failed"}},
		{"permanent and when", xxljob.Permanent(xxljob.RetryAfter(time.Hour, errBoom)), xxljob.Job{Retries: 1}, []string{"0 failed"}},
		{"a year", xxljob.RetryAfter(365*24*time.Hour, errBoom), xxljob.Job{Retries: 1}, []string{"0 failed", "1 planned"}},
		{"a snooze", xxljob.Snooze(time.Hour), xxljob.Job{MaxSnoozes: 2, Retries: 3}, []string{"0 snoozed", "0 snoozed", "0 failed"}},
		{"a snooze of zero in a loop", xxljob.Snooze(0), xxljob.Job{MaxSnoozes: 3}, []string{"0 snoozed", "0 snoozed", "0 snoozed", "0 failed"}},
		{"a snooze of less than nothing", xxljob.Snooze(-time.Hour), xxljob.Job{MaxSnoozes: 1}, []string{"0 snoozed", "0 failed"}},
		{"nil", xxljob.RetryAfter(time.Hour, nil), xxljob.Job{Retries: 1}, []string{"0 succeeded"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return tt.err })
				tt.job.Name, tt.job.Handler = "j", "try"
				id := stage.TriggerNew(t, f, tt.job)
				time.Sleep(6 * time.Hour)
				requireTree(t, "the trigger", st, id, tt.want...)
				stage.Stop(t, f.Node)
			})
		})
	}
}

func TestSnoozeIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := 0
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error {
			if n++; n < 3 {
				return xxljob.Snooze(10 * time.Minute)
			}
			return nil
		})
		id := stage.TriggerNew(t, f, xxljob.Job{Name: "j", Handler: "try"})
		time.Sleep(time.Hour)
		f.requireCalls(t, "snoozes", "j/0@0s", "j/0@10m0s", "j/0@20m0s")
		requireTree(t, "the trigger", st, id, "0 snoozed", "0 snoozed", "0 succeeded")
		run, err := st.Run(t.Context(), id)
		stage.Must(t, err)
		if err := run.Err(); err != nil {
			t.Errorf("a snoozed run has the error %v", err)
		}
		stage.Stop(t, f.Node)
	})
}

// TestRetriesInOrder: later instants of a serial job wait for the retry of an earlier one, which
// is told the instant that it stands for.
func TestRetriesInOrder(t *testing.T) {
	t.Parallel()
	for _, aside := range []bool{false, true} {
		t.Run(fmt.Sprint("aside=", aside), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				began := time.Now().Truncate(time.Minute)
				var seen []string
				f := startFailing(t, st, "a", func(_ context.Context, task *xxljob.Task) error {
					seen = append(seen, fmt.Sprintf("%v/%d", task.ScheduledAt.Sub(began), task.Attempt))
					if task.ScheduledAt.Sub(began) == 2*time.Minute && task.Attempt == 0 {
						return errBoom
					}
					return nil
				})
				_, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Schedule: xxljob.Cron("0 * * * * ?"),
					Retries: 1, RetryBackoff: xxljob.Backoff{First: 150 * time.Second}, RetryAside: aside})
				stage.Must(t, err)
				time.Sleep(time.Until(began.Add(6*time.Minute + time.Second)))
				synctest.Wait()
				want := []string{"1m0s/0", "2m0s/0", "2m0s/1", "3m0s/0", "4m0s/0", "5m0s/0", "6m0s/0"}
				if aside {
					want = []string{"1m0s/0", "2m0s/0", "3m0s/0", "4m0s/0", "2m0s/1", "5m0s/0", "6m0s/0"}
				}
				if !slices.Equal(seen, want) {
					t.Errorf("handled %q, want %q", seen, want)
				}
				stage.Stop(t, f.Node)
			})
		})
	}
}

// TestAKilledRetryLetsTheOthersPass: whichever node is asked to kill it.
func TestAKilledRetryLetsTheOthersPass(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			var mended atomic.Bool
			handle := func(context.Context, *xxljob.Task) error {
				if !mended.Load() {
					return errBoom
				}
				return nil
			}
			f, g := startFailing(t, st, "a", handle), startFailing(t, st, "b", handle)
			time.Sleep(30 * time.Second)
			job, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Retries: 1, RetryBackoff: xxljob.Backoff{First: time.Hour}})
			stage.Must(t, err)
			first := stage.Trigger(t, f, job)
			time.Sleep(time.Second)
			mended.Store(true)
			later := stage.Trigger(t, f, job)
			time.Sleep(time.Minute)
			requireTree(t, "the later one", st, later, "0 planned")
			by := f.Scheduler
			if elsewhere {
				by = g.Scheduler
			}
			stage.Must(t, by.Kill(t.Context(), first))
			time.Sleep(time.Second)
			requireTree(t, "the killed chain", st, first, "0 failed", "1 cancelled")
			requireTree(t, "the later one", st, later, "0 succeeded")
			stage.Stop(t, f.Node, g.Node)
		})
	}
}

// TestAnEditLetsTheOthersPass: runs that wait behind a retry go by a change of their job, in
// their order; of one that another node has made their own node hears a moment later.
func TestAnEditLetsTheOthersPass(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			var seen []string
			handle := func(_ context.Context, task *xxljob.Task) error {
				if seen = append(seen, task.Param); task.Param == "fails" {
					return errBoom
				}
				return nil
			}
			f := startFailing(t, st, "a", handle)
			job, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Retries: 1, RetryBackoff: xxljob.Backoff{First: time.Hour}})
			stage.Must(t, err)
			trigger := func(param string) int64 {
				id, err := f.TriggerOne(t.Context(), job.ID, xxljob.Trigger{Param: &param})
				stage.Must(t, err)
				time.Sleep(time.Second)
				return id
			}
			first, one, two := trigger("fails"), trigger("one"), trigger("two")
			requireTree(t, "one that waits", st, one, "0 planned")
			edit := xxljob.Edit{Verb: "update", Change: func(j *xxljob.Job) (bool, error) { j.RetryAside = true; return false, nil }}
			if elsewhere {
				_, err = st.EditJob(t.Context(), job.ID, edit)
			} else {
				job.RetryAside = true
				_, err = f.UpdateJob(t.Context(), job)
			}
			stage.Must(t, err)
			if time.Sleep(time.Second); elsewhere {
				time.Sleep(2 * time.Second)
			}
			requireTree(t, "the last one", st, two, "0 succeeded")
			trigger("three")
			synctest.Wait()
			if want := []string{"fails", "one", "two", "three"}; !slices.Equal(seen, want) {
				t.Errorf("edited elsewhere %v: handled %q, want %q", elsewhere, seen, want)
			}
			requireTree(t, "the first", st, first, "0 failed", "1 planned")
			stage.Stop(t, f.Node)
		})
	}
}

// TestOrderOutlivesATakeover: a node that takes the shard lets no later instant pass either.
func TestOrderOutlivesATakeover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		handle := func(_ context.Context, task *xxljob.Task) error {
			if task.Attempt == 0 && task.Param == "fails" {
				return errBoom
			}
			return nil
		}
		f := startFailing(t, st, "a", handle)
		job, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Retries: 1, RetryBackoff: xxljob.Backoff{First: 10 * time.Minute}})
		stage.Must(t, err)
		param := "fails"
		ids, err := f.Trigger(t.Context(), job.ID, xxljob.Trigger{Param: &param})
		stage.Must(t, err)
		time.Sleep(time.Second)
		later := stage.Trigger(t, f, job)
		time.Sleep(time.Minute)
		stage.Stop(t, f.Node)
		g := startFailing(t, st, "b", handle)
		time.Sleep(time.Minute)
		requireTree(t, "the later one", st, later, "0 planned")
		time.Sleep(10 * time.Minute)
		requireTree(t, "the first", st, ids[0], "0 failed", "1 succeeded")
		requireTree(t, "the later one", st, later, "0 succeeded")
		g.requireCalls(t, "the second node", "j/1@8m59s", "j/0@8m59s")
		stage.Stop(t, g.Node)
	})
}

// TestADelayCountsFromTheLastAttempt: FixedDelay, with a retry in between.
func TestADelayCountsFromTheLastAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := 0
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error {
			if n++; n%2 == 1 {
				return errBoom
			}
			return nil
		})
		_, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Schedule: xxljob.FixedDelay(time.Minute), Retries: 1, RetryBackoff: xxljob.Backoff{First: 20 * time.Second}})
		stage.Must(t, err)
		time.Sleep(4*time.Minute + time.Second)
		f.requireCalls(t, "delays", "j/0@1m0s", "j/1@1m20s", "j/0@2m20s", "j/1@2m40s", "j/0@3m40s", "j/1@4m0s")
		stage.Stop(t, f.Node)
	})
}

// TestAnAtJobRetries: its only instant fails, and it is not finished before its last attempt.
func TestAnAtJobRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := startFailing(t, st, "a", func(context.Context, *xxljob.Task) error { return errBoom })
		job, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Schedule: xxljob.At(time.Now().Add(time.Minute)), Retries: 2, RetryBackoff: xxljob.Backoff{First: time.Hour}})
		stage.Must(t, err)
		time.Sleep(90 * time.Minute)
		if j, _ := st.Job(t.Context(), job.ID); j.Stopped {
			t.Errorf("the job is stopped (%s) with a retry to come", j.StopReason)
		}
		time.Sleep(time.Hour)
		f.requireCalls(t, "attempts", "j/0@1m0s", "j/1@1h1m0s", "j/2@2h1m0s")
		if j, _ := st.Job(t.Context(), job.ID); !j.Stopped || j.StopReason != xxljob.StopFinished {
			t.Errorf("the job is stopped: %t (%s), want it finished", j.Stopped, j.StopReason)
		}
		stage.Stop(t, f.Node)
	})
}

// TestAShutdownIsLost: a handler that is cut off at the end of Stop's grace is lost, and what
// follows is the job's to say; one that a person kills is not tried again.
func TestAShutdownIsLost(t *testing.T) {
	t.Parallel()
	for _, onLost := range []xxljob.OnLost{xxljob.OnLostFail, xxljob.OnLostRerun} {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			f := startFailing(t, st, "a", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return ctx.Err() })
			cut := stage.TriggerNew(t, f, xxljob.Job{Name: "cut", Handler: "try", OnLost: onLost})
			killed := stage.TriggerNew(t, f, xxljob.Job{Name: "killed", Handler: "try", OnLost: onLost, Retries: 2})
			time.Sleep(time.Second)
			stage.Must(t, f.Kill(t.Context(), killed))
			time.Sleep(time.Second)
			stage.StopShort(f.Node)
			requireTree(t, "killed by a person", st, killed, "0 killed")
			g := startFailing(t, st, "b", func(context.Context, *xxljob.Task) error { return nil })
			time.Sleep(time.Minute)
			if onLost == xxljob.OnLostRerun {
				requireTree(t, "cut off, to be run again", st, cut, "0 lost", "1 succeeded")
			} else {
				requireTree(t, "cut off", st, cut, "0 lost")
			}
			stage.Stop(t, g.Node)
		})
	}
}

// TestAHandlerThatKillsItsNode: it is run again three times, and not once more.
func TestAHandlerThatKillsItsNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var nodes []*failing
		gone := make(chan struct{})
		start := func(name string) {
			var f *failing
			f = startFailing(t, st, name, func(context.Context, *xxljob.Task) error {
				f.Pause()
				f.dead = true
				<-gone
				return errBoom
			})
			nodes = append(nodes, f)
		}
		for i := range 6 {
			start(strconv.Itoa(i))
		}
		time.Sleep(time.Minute)
		id := stage.TriggerNew(t, nodes[5], xxljob.Job{Name: "j", Handler: "try", OnLost: xxljob.OnLostRerun, Retries: 9})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		requireTree(t, "the trigger", st, id, "0 lost", "1 lost", "2 lost", "3 lost")
		for _, f := range nodes {
			if f.dead {
				f.Resume()
			}
		}
		close(gone)
		time.Sleep(time.Minute)
		requireTree(t, "the trigger, after all", st, id, "0 lost", "1 lost", "2 lost", "3 lost")
		for _, f := range nodes {
			stage.StopShort(f.Node)
		}
	})
}

func TestAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var params []string
		f := startFailing(t, st, "a", func(_ context.Context, task *xxljob.Task) error {
			params = append(params, fmt.Sprintf("%s %d/%d", task.Param, task.ShardIndex, task.ShardTotal))
			return errBoom
		})
		job, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Param: "first"})
		stage.Must(t, err)
		id, err := f.TriggerOne(t.Context(), job.ID, xxljob.Trigger{Shard: xxljob.Sharding{Index: 1, Total: 3}})
		stage.Must(t, err)
		time.Sleep(time.Second)
		job.Param = "second"
		job, err = f.UpdateJob(t.Context(), job)
		stage.Must(t, err)
		again, err := f.Again(t.Context(), id)
		stage.Must(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []string{"first 1/3", "first 1/3"}; !slices.Equal(params, want) {
			t.Errorf("parameters and parts %q, want %q", params, want)
		}
		run, err := st.Run(t.Context(), again)
		stage.Must(t, err)
		if run.TriggerID != again || run.Attempt != 0 || run.Type != xxljob.TriggerManual {
			t.Errorf("again is %+v, want a trigger of its own", run)
		}
		stage.Must(t, f.RemoveJob(t.Context(), job.ID))
		for what, id := range map[string]int64{"a run whose job is gone": id, "no run": 4711} {
			if _, err := f.Again(t.Context(), id); !errors.Is(err, xxljob.ErrNotFound) {
				t.Errorf("again of %s: %v, want ErrNotFound", what, err)
			}
		}
		stage.Stop(t, f.Node)
	})
}

// TestRetriesOfManyJobs: every chain has exactly its attempts, at its times.
func TestRetriesOfManyJobs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("five hundred jobs for two days; leave out -short")
	}
	const jobs, seed = 500, 4
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, seed))
		st := memory.New(memory.Retain(1_000, 1_000_000), memory.RetainBytes(1<<30))
		backoff := xxljob.Backoff{First: time.Minute, Max: 4 * time.Hour}
		var bad [jobs]int // how many attempts of a job fail
		var mu sync.Mutex
		calls := map[string][]time.Time{}
		f := startFailing(t, st, "a", func(_ context.Context, task *xxljob.Task) error {
			mu.Lock()
			defer mu.Unlock()
			calls[task.JobName] = append(calls[task.JobName], time.Now())
			if i, _ := strconv.Atoi(task.JobName); task.Attempt < bad[i] {
				return errBoom
			}
			return nil
		}, func(c *xxljob.Config) { c.Limits.MaxHeld = 200_000 })
		list, due := make([]xxljob.Job, jobs), make([]time.Time, jobs)
		for i := range list {
			due[i] = time.Now().Add(time.Duration(60+rnd.IntN(20*3600)) * time.Second)
			bad[i] = rnd.IntN(12)
			list[i] = xxljob.Job{Key: strconv.Itoa(i), Name: strconv.Itoa(i), Handler: "try", Schedule: xxljob.At(due[i]), Retries: 9, RetryBackoff: backoff}
		}
		_, err := f.EnsureJobs(t.Context(), "", list, xxljob.EnsureOptions{})
		stage.Must(t, err)
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		for i := range list {
			at, want := due[i], []time.Time{}
			for n := range min(bad[i], 9) + 1 {
				want = append(want, at)
				at = at.Add(min(time.Minute<<n, 4*time.Hour))
			}
			if got := calls[list[i].Name]; !slices.EqualFunc(got, want, func(a, b time.Time) bool { return !a.Before(b) && a.Sub(b) < time.Second }) {
				t.Errorf("seed %d: job %d, of which %d attempts fail, was called at %v, want %v", seed, i, bad[i], got, want)
			}
		}
		stage.Stop(t, f.Node)
	})
}
