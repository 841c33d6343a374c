package scenario_test

// Storms of alarms, and stores that fail meanwhile.

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// tally is an alarmer that counts.
type tally struct {
	mu       sync.Mutex
	messages map[string]int // by job
	events   map[string]int // by job, what the counts add up to
	runs     map[int64]int
	calls    int // under way
	most     int // at once
	listed   int // events of a message, at most
	took     time.Duration
}

func newTally(took time.Duration) *tally {
	return &tally{messages: map[string]int{}, events: map[string]int{}, runs: map[int64]int{}, took: took}
}

func (c *tally) Alarm(_ context.Context, m alarm.Message) error {
	c.mu.Lock()
	c.messages[m.JobName]++
	c.events[m.JobName] += m.Count
	for _, e := range m.Events {
		c.runs[e.RunID]++
	}
	c.calls++
	c.most, c.listed = max(c.most, c.calls), max(c.listed, len(m.Events))
	c.mu.Unlock()
	time.Sleep(c.took)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls--
	return nil
}

// TestManyJobsFailAtOnce: one message of each, eight at a time, and no goroutine for each.
func TestManyJobsFailAtOnce(t *testing.T) {
	jobs := 10_000
	if stage.Detector {
		jobs = 1_000
	}
	synctest.Test(t, func(t *testing.T) {
		st, c := memory.New(), newTally(10*time.Millisecond)
		f := startFailing(t, st, "a", failsAlways, withRule(alarm.Rule{Name: "tally", To: c}))
		list := make([]xxljob.Job, jobs)
		at := time.Now().Add(time.Minute)
		for i := range list {
			list[i] = xxljob.Job{Key: fmt.Sprint(i), Name: fmt.Sprint(i), Handler: "try", Schedule: xxljob.At(at)}
		}
		_, err := f.EnsureJobs(t.Context(), "", list, xxljob.EnsureOptions{})
		stage.Must(t, err)
		time.Sleep(50 * time.Second)
		idle := runtime.NumGoroutine()
		time.Sleep(20 * time.Second)
		if n := runtime.NumGoroutine() - idle; n > 500 {
			t.Errorf("%d goroutines more than before", n)
		}
		time.Sleep(3 * time.Minute)
		c.mu.Lock()
		if len(c.messages) != jobs || c.most > 8 {
			t.Errorf("told of %d jobs, want %d; %d calls at once, want 8 at most", len(c.messages), jobs, c.most)
		}
		for name, n := range c.messages {
			if n != 1 || c.events[name] != 1 {
				t.Errorf("job %s: %d messages of %d failures, want one of each", name, n, c.events[name])
				break
			}
		}
		c.mu.Unlock()
		requireNoAlarms(t, st)
		stage.Stop(t, f.Node)
	})
}

// TestAStormOfOneJob: 50,000 alarms of one job are a few messages, whose counts add up.
func TestAStormOfOneJob(t *testing.T) {
	const batch = 1000
	batches := 50
	if stage.Detector {
		batches = 10 // the others are made on the same goroutine
	}
	synctest.Test(t, func(t *testing.T) {
		st, c := memory.New(), newTally(10*time.Millisecond)
		f := startFailing(t, st, "a", failsAlways, withRule(alarm.Rule{Name: "tally", To: c}))
		job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: "j", Name: "j", Handler: "try", Schedule: xxljob.FixedRate(time.Hour), Next: time.Now().Add(2 * time.Hour)}, nil)
		stage.Must(t, err)
		time.Sleep(10 * time.Second)
		for range batches {
			job, err = st.Job(t.Context(), job.ID)
			stage.Must(t, err)
			plan := store.Plan{JobID: job.ID, Shard: job.Shard, Epoch: stage.Observe(t, st).Shards[job.Shard].Epoch, Version: job.Version, Due: job.Next, Next: job.Next.Add(time.Hour)}
			for range batch {
				plan.Runs = append(plan.Runs, store.NewRun{At: job.Next, Type: xxljob.TriggerFixRate, State: xxljob.StateSkipped, First: job.Next, Last: job.Next, Count: 1, Reason: xxljob.ReasonBacklog})
			}
			made, err := st.Claim(t.Context(), nil, []store.Plan{plan})
			if stage.Must(t, err); len(made) != batch {
				t.Fatalf("%d records were made, want %d", len(made), batch)
			}
			time.Sleep(500 * time.Millisecond)
		}
		heap := stage.Heap()
		time.Sleep(20 * time.Minute)
		c.mu.Lock()
		if c.messages["j"] != 2 || c.events["j"] != batches*batch || c.listed != 10 {
			t.Errorf("%d messages of %d records, want two of %d; with %d events, want ten", c.messages["j"], c.events["j"], batches*batch, c.listed)
		}
		c.mu.Unlock()
		requireNoAlarms(t, st)
		if grown := stage.Heap() - heap; grown > 1<<20 {
			t.Errorf("the heap has grown by %d bytes since the storm", grown)
		}
		stage.Must(t, f.RemoveJob(t.Context(), job.ID))
		stage.Stop(t, f.Node)
	})
}

// TestEachAlarmOnItsOwnInAStorm: without a window each event is told in full, in order, once.
func TestEachAlarmOnItsOwnInAStorm(t *testing.T) {
	t.Parallel()
	const runs = 300
	synctest.Test(t, func(t *testing.T) {
		st, c := memory.New(), newTally(time.Second)
		s := &sink{began: time.Now()}
		f := startFailing(t, st, "a", failsAlways, withRule(alarm.Rule{Name: "tally", To: c, Window: -1}), withRule(alarm.Rule{Name: "sink", To: s, Window: -1}))
		job := addJob(t, f, xxljob.Job{Name: "j"})
		var ids []int64
		for range runs {
			ids = append(ids, stage.Trigger(t, f, job))
		}
		time.Sleep(10 * time.Minute)
		c.mu.Lock()
		for _, id := range ids {
			if c.runs[id] != 1 {
				t.Errorf("run %d was told %d times, want once", id, c.runs[id])
			}
		}
		if c.most > 1 {
			t.Errorf("%d messages of one job were under way at once", c.most)
		}
		c.mu.Unlock()
		s.mu.Lock()
		for i, m := range s.all {
			if len(m.Events) != 1 || m.Events[0].RunID != ids[min(i, runs-1)] || len(s.all) != runs {
				t.Errorf("message %d of %d is %+v, want one of run %d", i, len(s.all), m, ids[min(i, runs-1)])
				break
			}
		}
		s.mu.Unlock()
		requireNoAlarms(t, st)
		stage.Stop(t, f.Node)
	})
}

// TestAlarmsOfAStoreThatFails: whatever the store fails to read or to note, before or after the
// fact, each alarm is told at least once, and its row is done with in the end.
func TestAlarmsOfAStoreThatFails(t *testing.T) {
	t.Parallel()
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for _, window := range []time.Duration{-1, time.Minute} {
		for seed := range seeds {
			inBubble(t, fmt.Sprintf("window %v, seed %d", window, seed), func(t *testing.T) {
				st, c := memory.New(), newTally(10*time.Millisecond)
				var nodes []*failing
				for i := range 2 {
					name := string(rune('a' + i))
					faults := storetest.WrapSeed(st, seed*2+uint64(i))
					f := startFailing(t, faults, name, failsAlways, withRule(alarm.Rule{Name: "tally", To: c, Window: window, Causes: []alarm.Cause{alarm.Failed, alarm.Attempt}}))
					for _, method := range []string{"Alarms", "MarkAlarms", "ToldJobs", "OpenAlarms", "AddLate"} {
						faults.Inject(method, storetest.Fault{Before: true, Rate: 0.3})
						faults.Inject(method, storetest.Fault{After: true, Rate: 0.3})
					}
					nodes = append(nodes, f)
				}
				for i := range 10 {
					addJob(t, nodes[0], xxljob.Job{Name: fmt.Sprint("j", i), Schedule: xxljob.FixedRate(time.Duration(5+i) * time.Second), Retries: i % 2})
				}
				time.Sleep(2 * time.Minute)
				jobs, err := st.Jobs(t.Context(), xxljob.JobFilter{})
				stage.Must(t, err)
				for _, job := range jobs {
					stage.Must(t, nodes[0].StopJob(t.Context(), job.ID))
				}
				time.Sleep(10 * time.Minute)
				failed := map[string]int{}
				for _, r := range stage.AllOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StateFailed}}) {
					failed[r.JobName]++
					if c.mu.Lock(); window < 0 && c.runs[r.ID] < 1 || r.AlarmStatus != store.AlarmSent {
						t.Errorf("seed %d: run %d was told %d times, its status is %d", seed, r.ID, c.runs[r.ID], r.AlarmStatus)
					}
					c.mu.Unlock()
				}
				c.mu.Lock()
				for _, job := range jobs {
					if n := failed[job.Name]; n == 0 || c.events[job.Name] < n {
						t.Errorf("seed %d: told of %d failures of %s, want %d at least", seed, c.events[job.Name], job.Name, n)
					}
				}
				c.mu.Unlock()
				requireNoAlarms(t, st)
				stage.Stop(t, nodes[0].Node, nodes[1].Node)
			})
		}
	}
}
