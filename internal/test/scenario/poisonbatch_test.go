package scenario_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// poisonedJob is a node with a job whose batches its store refuses as poisoned says, and others
// beside it, each with a run a second.
func poisonedJob(t *testing.T, method string, poisoned func(bad int64, member any) bool) (a *stage.Node, bad xxljob.Job, good []xxljob.Job, remove func()) {
	t.Helper()
	a = stage.NewNode(t, memory.New(), "a", &stage.Journal{})
	stage.Must(t, a.Start(t.Context()))
	add := func(name string) xxljob.Job {
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: name, Handler: "work", Schedule: xxljob.FixedRate(time.Second), Block: xxljob.BlockConcurrent})
		stage.Must(t, err)
		return job
	}
	for i := range 40 {
		if i == 20 {
			bad = add("bad")
		}
		good = append(good, add(fmt.Sprint("good", i)))
	}
	time.Sleep(10 * time.Second)
	remove = a.Faults.Inject(method, storetest.Fault{Poison: func(member any) bool { return poisoned(bad.ID, member) }})
	return a, bad, good, remove
}

// requireEach fails where one of the jobs has not had a run that succeeded for each second of the
// last so many, on time.
func requireEach(t *testing.T, a *stage.Node, jobs []xxljob.Job, last time.Duration) {
	t.Helper()
	until := time.Now().Add(-time.Second)
	for _, job := range jobs {
		runs, err := a.Faults.Runs(t.Context(), store.RunFilter{JobID: job.ID, Limit: 1000})
		stage.Must(t, err)
		n := 0
		for _, r := range runs {
			if r.State == xxljob.StateSucceeded && r.Scheduled.After(until.Add(-last)) && !r.Scheduled.After(until) {
				if n++; r.Started.Sub(r.Scheduled) > 100*time.Millisecond {
					t.Errorf("run %d of job %d was started %v late", r.ID, job.ID, r.Started.Sub(r.Scheduled))
				}
			}
		}
		if want := int(last / time.Second); n != want {
			t.Fatalf("job %d has had %d runs in %v, want %d", job.ID, n, last, want)
		}
	}
}

// requireTrouble fails unless it is a trouble that the store refuses what is about that job, and about
// no other. That its runs wait is another one.
func requireTrouble(t *testing.T, a *stage.Node, job xxljob.Job) {
	t.Helper()
	refused := slices.DeleteFunc(a.Troubles(), func(x xxljob.Trouble) bool { return x.Cause != xxljob.TroubleRefused })
	if len(refused) != 1 || refused[0].JobID != job.ID {
		t.Errorf("troubles %v", a.Troubles())
	}
	if err := a.Ready(); err != nil {
		t.Error(err)
	}
}

// TestRefusedClaim: a job whose runs the store refuses for ever is stopped, with the error, and
// holds up no other.
func TestRefusedClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, bad, good, _ := poisonedJob(t, "Claim", func(bad int64, member any) bool {
			p := member.(store.Plan)
			return p.JobID == bad && len(p.Runs) > 0
		})
		time.Sleep(30 * time.Second)
		requireEach(t, a, good, 30*time.Second)
		job, err := a.Faults.Job(t.Context(), bad.ID)
		stage.Must(t, err)
		if !job.Stopped {
			t.Errorf("the job is not stopped")
		}
		stage.RequireText(t, "why it is stopped", job.StopReason, "the store refuses the runs of its schedule")
		time.Sleep(30 * time.Second)
		if all := a.Troubles(); len(all) != 0 {
			t.Errorf("troubles %v", all)
		}
		stage.Stop(t, a)
	})
}

// TestRefusedClaimAndStop: a job of which the store takes nothing at all is a trouble, holds up no
// other, and goes on when it does.
func TestRefusedClaimAndStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, bad, good, remove := poisonedJob(t, "Claim", func(bad int64, member any) bool { return member.(store.Plan).JobID == bad })
		time.Sleep(5 * time.Minute)
		requireEach(t, a, good, 290*time.Second)
		requireTrouble(t, a, bad)
		remove()
		time.Sleep(40 * time.Second) // a refusal is a trouble for half a minute
		requireEach(t, a, append(good, bad), 20*time.Second)
		if all := a.Troubles(); len(all) != 0 {
			t.Errorf("troubles %v", all)
		}
		stage.Stop(t, a)
	})
}

// TestRefusedStart: a run whose start the store refuses for ever ends as refused, with the error,
// and holds up no other.
func TestRefusedStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, bad, good, _ := poisonedJob(t, "Start", func(bad int64, member any) bool {
			s := member.(store.Start)
			return s.JobID == bad && s.State == store.StateStarted
		})
		time.Sleep(time.Minute)
		requireEach(t, a, good, 55*time.Second)
		runs, err := a.Faults.Runs(t.Context(), store.RunFilter{JobID: bad.ID, Limit: 1000})
		stage.Must(t, err)
		n := 0
		for _, r := range runs {
			if r.State == xxljob.StateRefused {
				n++
				stage.RequireText(t, "why it is refused", r.HandleMsg, "the store refuses to start this run")
			}
		}
		if n < 50 {
			t.Errorf("%d runs were refused", n)
		}
		stage.Stop(t, a)
	})
}

// TestRefusedStartAndRefusal: runs of which the store takes nothing at all are a trouble, hold up
// no other, and go on when it does.
func TestRefusedStartAndRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, bad, good, remove := poisonedJob(t, "Start", func(bad int64, member any) bool { return member.(store.Start).JobID == bad })
		time.Sleep(5 * time.Minute)
		requireEach(t, a, good, 290*time.Second)
		requireTrouble(t, a, bad)
		remove()
		time.Sleep(2 * time.Minute)
		requireEach(t, a, append(good, bad), 30*time.Second)
		if all := a.Troubles(); len(all) != 0 {
			t.Errorf("troubles %v", all)
		}
		stage.Stop(t, a)
	})
}

// TestAllIsRefused: a store that refuses everything, for rights that are missing perhaps, says
// nothing about the members of a batch. No job is stopped and no run refused, and all go on when it
// takes something again.
func TestAllIsRefused(t *testing.T) {
	t.Parallel()
	for method, most := range map[string]int{"Claim": 30 * 50, "Start": 30 * 50, "Finish": 30 * 300} { // 40 results come in a second, and each is tried a few times
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, bad, good, remove := poisonedJob(t, method, func(int64, any) bool { return true })
				calls := a.Faults.Calls(method)
				time.Sleep(30 * time.Second)
				if n := a.Faults.Calls(method) - calls; n > most {
					t.Errorf("%d calls in 30 s", n)
				}
				remove()
				time.Sleep(time.Minute)
				requireEach(t, a, append(good, bad), 30*time.Second)
				for _, job := range append(good, bad) {
					got, err := a.Faults.Job(t.Context(), job.ID)
					stage.Must(t, err)
					runs, err := a.Faults.Runs(t.Context(), store.RunFilter{JobID: job.ID, States: []xxljob.State{xxljob.StateRefused}, Limit: 10})
					stage.Must(t, err)
					if got.Stopped || len(runs) > 0 {
						t.Errorf("job %d: stopped %v, refused %v", job.ID, got.Stopped, runs)
					}
				}
				if all := a.Troubles(); len(all) != 0 {
					t.Errorf("troubles %v", all)
				}
				stage.Stop(t, a)
			})
		})
	}
}
