package scenario_test

// Events: what is told of, in which order, with which names, and what becomes of a reader who
// does not read.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// told reads what is there, a line each.
func told(events <-chan xxljob.Event) (list []string) {
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return append(list, "closed")
			}
			line := string(e.Kind)
			switch {
			case e.Run != nil:
				line += fmt.Sprintf(" %s/%s (%s) %s", e.Run.App, e.Run.JobKey, e.Run.JobName, e.Run.State)
			case e.Job != nil:
				line += fmt.Sprintf(" %s/%s %q", e.Job.App, e.Job.Key, e.Job.StopReason)
			case e.Err != nil:
				line += " " + e.Err.Error()
			case e.Away > 0:
				line += " " + e.Away.String()
			}
			list = append(list, line)
		default:
			return list
		}
	}
}

// eventful is a node that has subscribed to its own events.
func eventful(t *testing.T, st xxljob.Store, tune ...func(*xxljob.Config)) (xxljob.Scheduler, <-chan xxljob.Event) {
	t.Helper()
	cfg := xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog(), Cluster: xxljob.ClusterConfig{Shards: 2}}
	for _, f := range tune {
		f(&cfg)
	}
	s, err := xxljob.New(st, cfg)
	stage.Must(t, err)
	stage.Must(t, s.Handle("work", stage.NothingToDo))
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s, s.Events(t.Context())
}

func requireTold(t *testing.T, what string, events <-chan xxljob.Event, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := told(events); !slices.Equal(got, want) {
		t.Errorf("%s: told of %q, want %q", what, got, want)
	}
}

func TestEventsOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, events := eventful(t, st)
		job := func(key string, schedule xxljob.Schedule) int64 {
			e, err := s.EnsureJob(t.Context(), xxljob.Job{Key: key, Name: "Job " + key, Handler: "work", Schedule: schedule})
			stage.Must(t, err)
			return e.Job.ID
		}
		stage.Must(t, s.Start(t.Context()))
		requireTold(t, "the start", events, "ShardTaken", "ShardTaken")

		rate := job("rate", xxljob.FixedRate(time.Minute))
		time.Sleep(time.Minute + time.Second)
		requireTold(t, "a schedule", events, "RunPlanned app/rate (Job rate) planned", "RunStarted app/rate (Job rate) started", "RunEnded app/rate (Job rate) succeeded")
		stage.Must(t, s.StopJob(t.Context(), rate))
		stage.Must(t, s.StopJob(t.Context(), rate))
		requireTold(t, "a stop, and another one", events, `JobStopped app/rate ""`)

		manual := job("manual", xxljob.Manual())
		_, err := s.Trigger(t.Context(), manual, xxljob.Trigger{})
		stage.Must(t, err)
		requireTold(t, "a trigger", events, "RunPlanned app/manual (Job manual) planned", "RunStarted app/manual (Job manual) started", "RunEnded app/manual (Job manual) succeeded")

		job("once", xxljob.At(time.Now().Add(time.Second)))
		time.Sleep(2 * time.Second)
		requireTold(t, "the last instant", events, "RunPlanned app/once (Job once) planned", "RunStarted app/once (Job once) started",
			"RunEnded app/once (Job once) succeeded", `JobStopped app/once "finished"`)

		job("year", xxljob.Cron(fmt.Sprintf("%d %d %d 1 1 ? %d", 30, time.Now().Minute(), time.Now().Hour(), time.Now().Year())))
		time.Sleep(time.Minute)
		requireTold(t, "a cron expression with a year", events, "RunPlanned app/year (Job year) planned", "RunStarted app/year (Job year) started",
			"RunEnded app/year (Job year) succeeded", `JobStopped app/year "finished"`)

		for what, bounded := range map[string]xxljob.Job{
			"MaxRuns":           {Schedule: xxljob.FixedRate(time.Second), MaxRuns: 2},
			"MaxRuns, a delay":  {Schedule: xxljob.FixedDelay(time.Second), MaxRuns: 2},
			"NotAfter":          {Schedule: xxljob.FixedRate(time.Second)},
			"NotAfter, a delay": {Schedule: xxljob.FixedDelay(time.Second)},
		} {
			bound, _, _ := strings.Cut(what, ",")
			bounded.Key, bounded.Name, bounded.Handler = what, what, "work"
			if bound == "NotAfter" {
				bounded.NotAfter = time.Now().Add(2500 * time.Millisecond)
			}
			_, err := s.EnsureJob(t.Context(), bounded)
			stage.Must(t, err)
			time.Sleep(time.Minute)
			synctest.Wait()
			all := told(events)
			if n := len(all); n == 0 || all[n-1] != fmt.Sprintf("JobStopped app/%s %q", what, "finished: "+bound) || slices.Index(all, all[n-1]) != n-1 {
				t.Errorf("%s: told of %q", what, all)
			}
		}

		lowered, err := st.Job(t.Context(), job("lowered", xxljob.FixedRate(time.Hour)))
		stage.Must(t, err)
		time.Sleep(2*time.Hour + time.Minute)
		told(events)
		lowered.MaxRuns, lowered.Version = 1, 0
		_, err = s.UpdateJob(t.Context(), lowered)
		stage.Must(t, err)
		requireTold(t, "an edit that leaves no run", events, `JobStopped app/lowered "finished: MaxRuns"`)

		stage.Must(t, s.Stop(t.Context()))
		requireTold(t, "the end", events, "ShardLost", "ShardLost", "closed")
		requireTold(t, "after the end", s.Events(t.Context()), "closed")
	})
}

// TestEventsOfSkippedRuns: records of what was not run, and of a job that nobody can run.
func TestEventsOfSkippedRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, events := eventful(t, st)
		definer, err := xxljob.New(st, xxljob.Config{App: "app", Logger: stage.QuietLog(), Cluster: xxljob.ClusterConfig{Shards: 2}})
		stage.Must(t, err)
		_, err = definer.EnsureJob(t.Context(), xxljob.Job{Key: "j", Name: "J", Handler: "nobody's", Schedule: xxljob.FixedRate(time.Minute)})
		stage.Must(t, err)
		time.Sleep(10*time.Minute + 30*time.Second)
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(time.Minute)
		requireTold(t, "ten minutes without a node", events, "ShardTaken", "ShardTaken", "RunSkipped app/j (J) skipped",
			"RunPlanned app/j (J) planned", "TroubleBegan", "RunEnded app/j (J) refused")
	})
}

func TestEventsOfPrunedJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, events := eventful(t, memory.New(), func(c *xxljob.Config) { c.Cluster.PruneAfter = time.Minute })
		stage.Must(t, s.Start(t.Context()))
		list := []xxljob.Job{{Key: "j", Name: "J", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)}}
		for _, jobs := range [][]xxljob.Job{list, nil} {
			_, err := s.EnsureJobs(t.Context(), "", jobs, xxljob.EnsureOptions{Prune: true})
			stage.Must(t, err)
		}
		time.Sleep(3 * time.Minute)
		requireTold(t, "a job that no list names", events, "ShardTaken", "ShardTaken", `JobStopped app/j "pruned"`)
	})
}

// TestEventsOfTheCluster: shards move to a second node and back, and a store that does not
// answer is away until it does.
func TestEventsOfTheCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		faults := storetest.Wrap(st)
		s, events := eventful(t, faults)
		stage.Must(t, s.Start(t.Context()))
		requireTold(t, "the start", events, "ShardTaken", "ShardTaken")
		b := stage.StartNode(t, st, "b", &stage.Journal{}, func(c *xxljob.Config) { c.Cluster.Shards = 2 })
		time.Sleep(time.Minute)
		requireTold(t, "a second node", events, "ShardLost")
		mend := faults.Inject("Beat", storetest.Fault{Before: true})
		time.Sleep(10 * time.Second)
		got := told(events)
		if len(got) == 0 || !strings.HasPrefix(got[0], "StoreAway "+storetest.ErrInjected.Error()) {
			t.Errorf("a store that is away: told of %q", got)
		}
		mend()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		got = told(events)
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "StoreBack ") }) {
			t.Errorf("a store that is back: told of %q", got)
		}
		stage.Stop(t, b)
		time.Sleep(time.Minute)
		requireTold(t, "alone again", events, "ShardTaken")
	})
}

// TestEventsThatNobodyReads: a subscription is bounded and counts what it has dropped; others
// miss nothing, and the scheduler goes on.
func TestEventsThatNobodyReads(t *testing.T) {
	t.Parallel()
	const runs, room = 2000, 1000
	synctest.Test(t, func(t *testing.T) {
		s, read := eventful(t, memory.New())
		idle := s.Events(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		gone := s.Events(ctx)
		seen := make(chan int)
		go func() {
			n := 0
			for e := range read {
				n += 1 + e.Dropped
			}
			seen <- n
		}()
		stage.Must(t, s.Start(t.Context()))
		synctest.Wait()
		cancel()
		id := stage.TriggerNew(t, s, xxljob.Job{Key: "j", Name: "j", Handler: "work"})
		stage.WaitFor(t, s, id, time.Minute)
		job, err := s.EnsureJob(t.Context(), xxljob.Job{Key: "j", Name: "j", Handler: "work"})
		stage.Must(t, err)
		for range runs - 1 {
			_, err := s.Trigger(t.Context(), job.Job.ID, xxljob.Trigger{})
			stage.Must(t, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(idle); n != room {
			t.Errorf("%d events wait for a reader, want %d", n, room)
		}
		for range room {
			if e := <-idle; e.Dropped != 0 {
				t.Fatalf("dropped %d before there was no room", e.Dropped)
			}
		}
		stage.Must(t, s.StopJob(t.Context(), job.Job.ID))
		synctest.Wait()
		next := <-idle
		if e, open := <-gone; !open || e.Kind != xxljob.EventShardTaken {
			t.Errorf("a subscription that has ended begins with %v", e.Kind)
		}
		stage.Must(t, s.Stop(t.Context()))
		all := <-seen - 2 // without those of shards at the end
		if least := 2 + 3*runs; all-1 < least {
			t.Errorf("who reads has read or missed %d events before the stop of the job, want %d or more", all-1, least)
		}
		if next.Kind != xxljob.EventJobStopped || room+next.Dropped+1 != all {
			t.Errorf("behind %d events there comes %s, after %d that were dropped; want %d in all", room, next.Kind, next.Dropped, all)
		}
		var none context.Context
		requireTold(t, "a nil context", s.Events(none), "closed")
	})
}

// TestEventsCallBack: who reads events may call the scheduler, which a hook must not.
func TestEventsCallBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, events := eventful(t, memory.New())
		stage.Must(t, s.Start(t.Context()))
		first, err := s.EnsureJob(t.Context(), xxljob.Job{Key: "first", Name: "first", Handler: "work"})
		stage.Must(t, err)
		_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "second", Name: "second", Handler: "work"})
		stage.Must(t, err)
		chain := make(chan string, 10)
		go func() {
			for e := range events {
				if e.Kind != xxljob.EventRunEnded {
					continue
				}
				chain <- e.Run.JobKey
				if e.Run.JobKey == "first" {
					if _, err := s.TriggerJob(context.Background(), "", "second", xxljob.Trigger{}); err != nil {
						t.Error(err)
					}
				}
			}
		}()
		_, err = s.Trigger(t.Context(), first.Job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		if a, b := <-chain, <-chain; a != "first" || b != "second" {
			t.Errorf("%s, then %s have run", a, b)
		}
	})
}

// jobStops is a Config that sends each job which JobStopped is told of.
func jobStops(told chan<- xxljob.Job) func(*xxljob.Config) {
	return func(c *xxljob.Config) { c.Hooks.JobStopped = func(j xxljob.Job) { told <- j } }
}

// TestJobStoppedByARunOfAnotherNode: the node that ends the last run of a job has not started
// it, and does not have the job in memory.
func TestJobStoppedByARunOfAnotherNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, told, release := memory.New(), make(chan xxljob.Job, 10), make(chan struct{})
		a := stage.StartNode(t, st, "a", &stage.Journal{})
		stage.Must(t, a.Handle("long", func(context.Context, *xxljob.Task) error { <-release; return nil }))
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "long", Schedule: xxljob.FixedRate(time.Minute), MaxRuns: 1})
		stage.Must(t, err)
		time.Sleep(70 * time.Second)
		b := stage.StartNode(t, st, "b", &stage.Journal{}, jobStops(told))
		time.Sleep(time.Minute)
		a.Faults.Pause(true) // b finds its run lost
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		select {
		case j := <-told:
			if j.ID != job.ID || !strings.HasPrefix(j.StopReason, xxljob.StopFinished) {
				t.Errorf("told of job %d, which stopped for %q", j.ID, j.StopReason)
			}
		default:
			t.Error("nobody was told")
		}
		close(release)
		a.Faults.Resume()
		stage.Stop(t, b, a)
	})
}

// TestJobStoppedByABoundOfAnotherNode: the bound that ends a job was set at another node while
// its run was under way.
func TestJobStoppedByABoundOfAnotherNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, told := memory.New(), make(chan xxljob.Job, 10)
		a := stage.StartNode(t, st, "a", &stage.Journal{}, jobStops(told))
		b := stage.StartNode(t, st, "b", &stage.Journal{}, jobStops(told))
		stage.Must(t, a.Handle("long", func(context.Context, *xxljob.Task) error { time.Sleep(30 * time.Second); return nil }))
		time.Sleep(time.Minute)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "long", Schedule: xxljob.FixedRate(time.Minute)})
		stage.Must(t, err)
		time.Sleep(62 * time.Second)
		job.MaxRuns = 1
		_, err = b.UpdateJob(t.Context(), job)
		stage.Must(t, err)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := len(told); n != 1 {
			t.Errorf("JobStopped was told %d times, want once", n)
		}
		stage.Stop(t, a, b)
	})
}

// TestJobStoppedIsToldLater: the store does not say what became of the job when its last run
// has ended, and is asked again.
func TestJobStoppedIsToldLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := make(chan xxljob.Job, 10)
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, jobStops(told))
		_, err := n.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "work", Schedule: xxljob.At(time.Now().Add(time.Minute))})
		stage.Must(t, err)
		time.Sleep(59 * time.Second)
		answers := n.Faults.Inject("Job", storetest.Fault{Before: true})
		time.Sleep(10 * time.Second)
		if len(told) != 0 {
			t.Fatal("JobStopped was told while the store did not answer")
		}
		answers()
		time.Sleep(time.Minute)
		if len(told) != 1 {
			t.Errorf("JobStopped was told %d times, want once", len(told))
		}
		stage.Stop(t, n)
	})
}

// TestEventsOfABoundedJobReadNothing: whether a job has stopped is known by its run, and not by
// a read for each run.
func TestEventsOfABoundedJobReadNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for range n.Events(ctx) {
			}
		}()
		_, err := n.AddJob(ctx, xxljob.Job{Name: "j", Handler: "work", Schedule: xxljob.FixedRate(time.Second), MaxRuns: 4000})
		stage.Must(t, err)
		before := n.Faults.Calls("Job")
		time.Sleep(1000 * time.Second)
		if got := n.Faults.Calls("Job") - before; got > 50 {
			t.Errorf("%d reads of the job for 1,000 runs", got)
		}
		stage.Stop(t, n)
	})
}

// TestAHookThatHangsKeepsNothingFromReaders: hooks have a queue of their own.
func TestAHookThatHangsKeepsNothingFromReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) {
			c.Hooks.RunStarted = func(xxljob.Run) { <-release }
		})
		events := n.Events(t.Context())
		for i := range 5 {
			stage.TriggerNew(t, n, xxljob.Job{Name: fmt.Sprint("j", i), Handler: "work"})
		}
		time.Sleep(10 * time.Second)
		ended := 0
		for _, line := range told(events) {
			if strings.HasPrefix(line, "RunEnded") {
				ended++
			}
		}
		if ended != 5 {
			t.Errorf("a reader was told of %d of 5 ends while a hook hangs", ended)
		}
		close(release)
		stage.Stop(t, n)
	})
}
