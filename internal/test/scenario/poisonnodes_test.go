package scenario_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
	"github.com/xxljob/xxljob/xxljobtest"
)

// goodAndBad adds a job that is to be poisoned, and others, each with a run a second.
func goodAndBad(t *testing.T, s xxljob.Scheduler, app string) (bad xxljob.Job, good []xxljob.Job) {
	t.Helper()
	for i := range 21 {
		job, err := s.AddJob(t.Context(), xxljob.Job{App: app, Name: fmt.Sprint("job", i), Handler: "work", Schedule: xxljob.FixedRate(time.Second), Block: xxljob.BlockConcurrent, Route: route.Round})
		stage.Must(t, err)
		if good = append(good, job); i == 10 {
			bad, good = job, good[:10]
		}
	}
	return bad, good
}

// jobOf is the job of a run, as the store has it.
func jobOf(st xxljob.Store, run int64) int64 {
	r, _ := st.Run(context.Background(), run)
	return r.JobID
}

// twoNodes are a, which has all jobs, and b, to which every other run goes.
func twoNodes(t *testing.T) (st *memory.Store, j *stage.Journal, a, b *stage.Node) {
	t.Helper()
	st, j = memory.New(), &stage.Journal{}
	oneShard := func(c *xxljob.Config) { c.Cluster.Shards = 1 }
	a = stage.StartNode(t, st, "a", j, oneShard)
	time.Sleep(time.Second)
	b = stage.StartNode(t, st, "b", j, oneShard)
	time.Sleep(2 * time.Second)
	return st, j, a, b
}

// requireAllOnce fails where a run was called twice, or one of the job has not succeeded that was due
// before so long.
func requireAllOnce(t *testing.T, st xxljob.Store, j *stage.Journal, job xxljob.Job, before time.Duration) {
	t.Helper()
	calls := map[int64]int{}
	for _, s := range j.All() {
		if calls[s.Run]++; calls[s.Run] > 1 {
			t.Errorf("run %d was called twice", s.Run)
		}
	}
	for _, r := range stage.AllOf(t, st, store.RunFilter{JobID: job.ID}) {
		if time.Since(r.Scheduled) > before && r.State != xxljob.StateSucceeded {
			t.Errorf("run %d, due at %v, is %v", r.ID, r.Scheduled, r.State)
		}
	}
}

// TestRefusedTake: a run that a node may not take, as its store says, stays in its inbox, holds up
// no other, and is run once when the store lets it.
func TestRefusedTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j, a, b := twoNodes(t)
		bad, good := goodAndBad(t, a, "app")
		time.Sleep(10 * time.Second)
		remove := b.Faults.Inject("Take", storetest.Fault{Poison: func(member any) bool { return jobOf(st, member.(int64)) == bad.ID }})
		time.Sleep(time.Minute)
		requireEach(t, b, good, 50*time.Second)
		requireTrouble(t, b, bad)
		if j.By("b") < 10*30 {
			t.Errorf("b has had %d runs", j.By("b"))
		}
		remove()
		time.Sleep(time.Minute)
		requireEach(t, b, append(good, bad), 40*time.Second)
		requireAllOnce(t, st, j, bad, 5*time.Second)
		if all := b.Troubles(); len(all) != 0 {
			t.Errorf("troubles %v", all)
		}
		stage.Stop(t, a, b)
	})
}

// TestRefusedVerdict: a run of a node that is gone, about which the store lets nobody decide, holds
// up no other, and is run once when it does.
func TestRefusedVerdict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j, a, b := twoNodes(t)
		one, all := goodAndBad(t, a, "app")
		all = append(all, one)
		var judged atomic.Int64 // the job of the first run that is judged: that is poisoned
		time.Sleep(10 * time.Second)
		remove := a.Faults.Inject("Settle", storetest.Fault{Poison: func(member any) bool {
			job := jobOf(st, member.(store.Verdict).RunID)
			return judged.CompareAndSwap(0, job) || judged.Load() == job
		}})
		time.Sleep(500 * time.Millisecond) // between two instants: a run that b has begun is lost with it
		b.Pause()
		time.Sleep(2 * time.Minute)
		var bad xxljob.Job
		var good []xxljob.Job
		for _, job := range all {
			if job.ID == judged.Load() {
				bad = job
			} else {
				good = append(good, job)
			}
		}
		requireEach(t, a, good, 60*time.Second)
		for _, job := range good {
			requireAllOnce(t, st, j, job, 30*time.Second)
		}
		requireTrouble(t, a, bad)
		remove()
		time.Sleep(time.Minute)
		requireAllOnce(t, st, j, bad, 5*time.Second)
		b.Resume()
		stage.Stop(t, a)
		stage.StopShort(b)
	})
}

// TestRefusedMark: a run at an executor elsewhere of which the store does not note that it was
// accepted goes on there, and holds up no other.
func TestRefusedMark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Int64 // the job that is to be poisoned
		faults := storetest.Wrap(memory.New())
		e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Answer: func(_ context.Context, run xxljobtest.ExecutorRun) xxljobtest.Answer {
			if run.JobID == slow.Load() {
				return xxljobtest.Succeed("").After(20 * time.Second)
			}
			return xxljobtest.Succeed("").After(3 * time.Second)
		}})
		s := xxljobtest.NewWith(t, xxljobtest.Options{Store: faults, Config: xxljob.Config{Logger: stage.QuietLog()}, Executors: []*xxljobtest.Executor{e}})
		bad, good := goodAndBad(t, s, "far")
		slow.Store(bad.ID)
		time.Sleep(10 * time.Second)
		remove := faults.Inject("Dispatched", storetest.Fault{Poison: func(member any) bool { return jobOf(faults, member.(store.Dispatch).RunID) == bad.ID }})
		time.Sleep(time.Minute + 300*time.Millisecond)
		marked := func(jobs ...xxljob.Job) (yes, no int) {
			for _, job := range jobs {
				for _, r := range stage.AllOf(t, faults, store.RunFilter{JobID: job.ID}) {
					switch {
					case r.State == xxljob.StateDispatched:
						yes++
					case r.State == xxljob.StateStarted && time.Since(r.Started) > time.Second:
						no++
					}
				}
			}
			return yes, no
		}
		if yes, no := marked(good...); yes < 40 || no > 0 {
			t.Errorf("%d of the others are marked, %d are not", yes, no)
		}
		if yes, no := marked(bad); yes > 0 || no < 18 {
			t.Errorf("%d of the job are marked, %d are not", yes, no)
		}
		if all := s.Troubles(); len(all) != 1 || all[0].Cause != xxljob.TroubleRefused || all[0].JobID != bad.ID {
			t.Errorf("troubles %v", all)
		}
		remove()
		time.Sleep(5 * time.Second)
		if yes, no := marked(bad); yes < 18 || no > 0 {
			t.Errorf("then %d of the job are marked, %d are not", yes, no)
		}
		for _, r := range stage.AllOf(t, faults, store.RunFilter{}) {
			if time.Since(r.Scheduled) > 25*time.Second && r.State != xxljob.StateSucceeded {
				t.Errorf("run %d is %v", r.ID, r.State)
			}
		}
	})
}

// TestRefusedReport: results of executors elsewhere that the store refuses for ever, for their texts
// or as they are, hold up no other in the same callback or behind it.
func TestRefusedReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Int64 // the job that is to be poisoned
		faults := storetest.Wrap(memory.New())
		e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Answer: func(_ context.Context, run xxljobtest.ExecutorRun) xxljobtest.Answer {
			if run.JobID == slow.Load() {
				return xxljobtest.Fail("bad").After(time.Second)
			}
			return xxljobtest.Succeed("").After(time.Second)
		}})
		s := xxljobtest.NewWith(t, xxljobtest.Options{Store: faults, Config: xxljob.Config{Logger: stage.QuietLog()}, Executors: []*xxljobtest.Executor{e}})
		bad, good := goodAndBad(t, s, "far")
		slow.Store(bad.ID)
		time.Sleep(5 * time.Second)
		since := time.Now()
		remove := faults.Inject("Finish", storetest.Fault{Poison: func(member any) bool { return member.(store.Result).HandleMsg == "bad" }})
		time.Sleep(30 * time.Second)
		requireReported := func(job xxljob.Job, state xxljob.State, text string) {
			t.Helper()
			for _, r := range stage.AllOf(t, faults, store.RunFilter{JobID: job.ID}) {
				if age := time.Since(r.Scheduled); r.Scheduled.After(since) && age > 5*time.Second && (r.State != state || text != "" && r.HandleMsg != text) {
					t.Errorf("run %d of job %d, %v old, is %v (%q)", r.ID, job.ID, age, r.State, r.HandleMsg)
				}
			}
		}
		requireReported(bad, xxljob.StateFailed, "(the store refuses the text of this result)")
		for _, job := range good {
			requireReported(job, xxljob.StateSucceeded, "")
		}
		remove()
		time.Sleep(5 * time.Second)
		since = time.Now()
		faults.Inject("Finish", storetest.Fault{Poison: func(member any) bool { return jobOf(faults, member.(store.Result).RunID) == bad.ID }})
		time.Sleep(30 * time.Second)
		requireReported(bad, xxljob.StateDispatched, "")
		for _, job := range good {
			requireReported(job, xxljob.StateSucceeded, "")
		}
		faults.Clear()
	})
}

// TestRefusedAttachment: a node keeps its shards of whose beats the store refuses one app, says
// which, and says that app too once the store takes it.
func TestRefusedAttachment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, _, a, b := twoNodes(t)
		_, good := goodAndBad(t, a, "app")
		stage.Must(t, a.Attach(&stage.SlowExecutor{Of: "x", Delay: func(wire.TriggerRequest) time.Duration { return 0 }}))
		remove := a.Faults.Inject("Beat", storetest.Fault{Poison: func(member any) bool { return member.(store.Attachment).App == "x" }})
		time.Sleep(time.Minute)
		requireEach(t, a, good, 50*time.Second)
		if all := a.Troubles(); len(all) != 1 || all[0].Cause != xxljob.TroubleRefused || all[0].App != "x" {
			t.Errorf("troubles %v", all)
		}
		stage.Must(t, a.Ready())
		said := func() (apps []string) {
			view, err := st.View(t.Context())
			stage.Must(t, err)
			for _, n := range view.Nodes {
				for _, e := range n.Attached {
					apps = append(apps, e.App)
				}
			}
			slices.Sort(apps)
			return apps
		}
		if apps := said(); !slices.Equal(apps, []string{"app", "app"}) {
			t.Errorf("the nodes have %v", apps)
		}
		remove()
		time.Sleep(20 * time.Minute)
		if apps, all := said(), a.Troubles(); !slices.Equal(apps, []string{"app", "app", "x"}) || len(all) > 0 {
			t.Errorf("then the nodes have %v, troubles %v", apps, all)
		}
		stage.Stop(t, a, b)
	})
}

// TestRefusedServed: of apps that are served the store knows all but the one that it refuses to note, and
// that one with the next news once it takes it.
func TestRefusedServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := stage.StartNode(t, memory.New(), "a", &stage.Journal{})
		remove := a.Faults.Inject("NoteServed", storetest.Fault{Poison: func(member any) bool { return member.(store.Served).App == "x7" }})
		var apps []string
		attach := func(app string) {
			apps = append(apps, app)
			stage.Must(t, a.Attach(&stage.SlowExecutor{Of: app, Delay: func(wire.TriggerRequest) time.Duration { return 0 }}))
		}
		for i := range 20 {
			attach(fmt.Sprint("x", i))
		}
		requireServed := func(what string, not ...string) {
			t.Helper()
			time.Sleep(time.Minute)
			served, err := a.Faults.Served(t.Context(), apps)
			stage.Must(t, err)
			for _, app := range apps {
				if is := slices.ContainsFunc(served, func(s store.Served) bool { return s.App == app && s.Gone.IsZero() }); is == slices.Contains(not, app) {
					t.Errorf("%s: that %s is served is known: %v", what, app, is)
				}
			}
		}
		requireServed("while one is refused", "x7")
		remove()
		attach("x20")
		requireServed("then")
		stage.Stop(t, a)
	})
}
