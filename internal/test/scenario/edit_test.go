package scenario_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// TestEditsWhileRunning edits a one-second job 1,000 times without touching its
// schedule: no instant is missed or doubled, and each run sees the definition
// that was current at its start.
func TestEditsWhileRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j)
		job := stage.AddSeconds(t, n, 1)[0]
		job.Version = 0 // the edits are unconditional
		var mu sync.Mutex
		param := ""
		stage.Must(t, n.Handle("check", func(_ context.Context, task *xxljob.Task) error {
			mu.Lock()
			defer mu.Unlock()
			if task.Param != param {
				t.Errorf("run of %v has param %q, the job has %q", task.ScheduledAt, task.Param, param)
			}
			j.Note("a", task)
			return nil
		}))
		job.Handler = "check"
		from := time.Now()
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range 1000 {
			time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
			synctest.Wait()
			job.Param, job.Author, job.Timeout = fmt.Sprint(i), fmt.Sprint("author ", i), time.Duration(i%10+1)*time.Second
			mu.Lock()
			_, err := n.UpdateJob(t.Context(), job)
			param = job.Param
			mu.Unlock()
			stage.Must(t, err)
		}
		to := time.Now()
		time.Sleep(2 * time.Second)
		stage.Stop(t, n)
		if got := stage.AuditSeconds(t, st, j, []xxljob.Job{job}, from, to); got != (stage.Audit{}) {
			t.Errorf("audit: %+v", got)
		}
		got, err := st.Job(t.Context(), job.ID)
		stage.Must(t, err)
		if got.Version != 1001 || got.Param != "999" {
			t.Errorf("version %d, param %q", got.Version, got.Param)
		}
	})
}

// TestScheduleEdits changes the schedule 100 times between two expressions that
// are due at every second: what changes is planned anew, and still no instant
// is missed or doubled.
func TestScheduleEdits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		time.Sleep(10 * time.Second)
		job := stage.AddSeconds(t, a, 1)[0]
		job.Version = 0 // the edits are unconditional
		from := time.Now()
		rnd := rand.New(rand.NewPCG(3, 4))
		for i := range 100 {
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			synctest.Wait()
			job.Schedule = xxljob.Cron([]string{"0/1 * * * * ?", "* * * * * ?"}[i%2])
			_, err := []*stage.Node{a, b}[i%2].UpdateJob(t.Context(), job)
			stage.Must(t, err)
		}
		to := time.Now()
		time.Sleep(2 * time.Second)
		stage.Stop(t, a, b)
		if got := stage.AuditSeconds(t, st, j, []xxljob.Job{job}, from, to); got != (stage.Audit{}) {
			t.Errorf("audit: %+v", got)
		}
	})
}

// TestScheduleEditsBetweenTwo changes the schedule 100 times between every second
// second and every third: each instant of the schedule that was current then is
// run once, and no other. The edits are never on a second: there, either schedule
// would be right.
func TestScheduleEditsBetweenTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		time.Sleep(10 * time.Second)
		rnd := rand.New(rand.NewPCG(7, 8))
		want := map[int64]bool{}
		// pass lets time go by until some milliseconds behind a second, and notes
		// which instants are due meanwhile.
		pass := func(every, seconds int64) {
			began := time.Now()
			until := began.Truncate(time.Second).Add(time.Duration(seconds)*time.Second + time.Duration(1+rnd.IntN(999))*time.Millisecond)
			for at := began.Unix() + 1; at <= until.Unix(); at++ {
				if every > 0 && at%60%every == 0 {
					want[at] = true
				}
			}
			time.Sleep(time.Until(until))
			synctest.Wait()
		}
		pass(0, 1)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Schedule: xxljob.Cron("0/2 * * * * ?")})
		stage.Must(t, err)
		pass(2, 7)
		job.Version = 0 // the edits are unconditional
		for i := range 100 {
			every := []int64{3, 2}[i%2]
			job.Schedule = xxljob.Cron(fmt.Sprintf("0/%d * * * * ?", every))
			_, err := []*stage.Node{a, b}[i%2].UpdateJob(t.Context(), job)
			stage.Must(t, err)
			pass(every, 1+rnd.Int64N(12))
		}
		stage.Must(t, a.StopJob(t.Context(), job.ID))
		time.Sleep(20 * time.Second)
		stage.Stop(t, a, b)

		got := map[int64]int{}
		for _, s := range j.All() {
			got[s.Due.Unix()]++
			if !s.At.Equal(s.Due) {
				t.Errorf("the run for %v is at %v", s.Due, s.At)
			}
		}
		missing, extra, double := 0, 0, 0
		for at := range want {
			missing += stage.One(got[at] == 0)
		}
		for at, n := range got {
			extra += stage.One(!want[at])
			double += stage.One(n > 1)
		}
		if missing+extra+double > 0 || len(want) < 200 {
			t.Errorf("%d instants: %d missing, %d extra, %d double", len(want), missing, extra, double)
		}
		if n := len(stage.AllOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StateSucceeded}})); n != len(want) {
			t.Errorf("%d runs are recorded as succeeded, want %d", n, len(want))
		}
	})
}

// TestStopStart stops and starts a one-second job 100 times: it runs at each
// instant at which it is started, once, and at none at which it is stopped.
func TestStopStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j)
		job := stage.AddSeconds(t, n, 1)[0]
		job.Version = 0 // the edits are unconditional
		rnd := rand.New(rand.NewPCG(5, 6))
		want := map[int64]bool{}
		for range 100 {
			// Never on the second: there, either would be right.
			on, off := time.Duration(rnd.IntN(5))*time.Second+500*time.Millisecond, time.Duration(rnd.IntN(5))*time.Second+500*time.Millisecond
			for at := time.Now().Truncate(time.Second).Add(time.Second); !at.After(time.Now().Add(on)); at = at.Add(time.Second) {
				want[at.Unix()] = true
			}
			time.Sleep(on)
			stage.Must(t, n.StopJob(t.Context(), job.ID))
			time.Sleep(off)
			stage.Must(t, n.StartJob(t.Context(), job.ID))
		}
		stage.Must(t, n.StopJob(t.Context(), job.ID))
		time.Sleep(10 * time.Second)

		t.Log("manual runs of a stopped job start")
		before := len(j.All())
		ids, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		run, err := n.Wait(t.Context(), ids[0])
		stage.Must(t, err)
		if run.State != xxljob.StateSucceeded || run.Type != xxljob.TriggerManual {
			t.Errorf("manual run of a stopped job: %v %v", run.Type, run.State)
		}
		stage.Stop(t, n)
		got := map[int64]int{}
		for _, s := range j.All()[:before] {
			got[s.Due.Unix()]++
		}
		for at := range want {
			if got[at] != 1 {
				t.Errorf("at %v: %d runs, want 1", time.Unix(at, 0).UTC(), got[at])
			}
		}
		for at := range got {
			if !want[at] {
				t.Errorf("at %v the job was stopped, and ran", time.Unix(at, 0).UTC())
			}
		}
	})
}

// TestManualJob runs a job without a schedule.
func TestManualJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "manual", Handler: "work"})
		stage.Must(t, err)
		param := "given"
		ids, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{Param: &param, Key: "once"})
		stage.Must(t, err)
		again, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{Param: &param, Key: "once"})
		stage.Must(t, err)
		if again[0] != ids[0] {
			t.Errorf("the same key gave run %d, then %d", ids[0], again[0])
		}
		later, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)})
		stage.Must(t, err)
		run, err := n.Wait(t.Context(), ids[0])
		stage.Must(t, err)
		if run.State != xxljob.StateSucceeded || run.Param != "given" {
			t.Errorf("run: %v, param %q", run.State, run.Param)
		}
		run, err = n.Wait(t.Context(), later[0])
		stage.Must(t, err)
		if run.Lateness() != 0 || !run.Scheduled.Equal(time.Now()) {
			t.Errorf("the run in an hour: started %v for %v, ended at %v", run.Started, run.Scheduled, time.Now())
		}
		stage.Stop(t, n)
	})
}

// TestFixedDelay counts from the end of the previous run; a manual run in
// between does not touch it.
func TestFixedDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j)
		stage.Must(t, n.Handle("slow", func(_ context.Context, task *xxljob.Task) error {
			j.Note("a", task)
			time.Sleep(7 * time.Second)
			return nil
		}))
		start := time.Now()
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "delay", Handler: "slow", Schedule: xxljob.FixedDelay(3 * time.Second)})
		stage.Must(t, err)
		time.Sleep(11 * time.Second) // it runs from 3 to 10, next at 13
		_, err = n.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(40 * time.Second)
		stage.Must(t, n.StopJob(t.Context(), job.ID))
		time.Sleep(time.Minute)
		stage.Stop(t, n)
		var got []int
		for _, s := range j.All() {
			got = append(got, int(s.At.Sub(start).Seconds()))
		}
		// 3–10; the manual one 11–18 holds the serial place, so the one due at 13
		// starts at 18 and ends at 25; then every 10 s.
		if fmt.Sprint(got) != "[3 11 18 28 38 48]" {
			t.Errorf("started at %v s", got)
		}
	})
}

// TestOnce runs At once, then the job is finished; another time starts it again.
func TestOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j)
		at := time.Now().Add(90 * time.Minute)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "work", Schedule: xxljob.At(at)})
		stage.Must(t, err)
		time.Sleep(2 * time.Hour)
		job, err = st.Job(t.Context(), job.ID)
		stage.Must(t, err)
		if !job.Stopped || job.StopReason != xxljob.StopFinished {
			t.Errorf("after its run: stopped %v, reason %q", job.Stopped, job.StopReason)
		}
		job.Schedule, job.Version = xxljob.At(time.Now().Add(time.Hour)), 0
		_, err = n.UpdateJob(t.Context(), job)
		stage.Must(t, err)
		time.Sleep(2 * time.Hour)
		stage.Stop(t, n)
		if starts := j.All(); len(starts) != 2 || !starts[0].At.Equal(at) {
			t.Errorf("starts: %v", starts)
		}
		runs := stage.AllRuns(t, st)
		if len(runs) != 2 || runs[0].Type != xxljob.TriggerOnce {
			t.Errorf("runs: %+v", runs)
		}
	})
}

// TestEnsureFromMany ensures one list from eight schedulers at once, with
// changes and Prune.
func TestEnsureFromMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var all []xxljob.Scheduler
		for i := range 8 {
			s, err := xxljob.New(st, xxljob.Config{App: "app", Node: fmt.Sprint("n", i), Logger: stage.QuietLog()})
			stage.Must(t, err)
			all = append(all, s)
		}
		list := func(names ...string) []xxljob.Job {
			var jobs []xxljob.Job
			for _, n := range names {
				jobs = append(jobs, xxljob.Job{Name: n, Handler: "work", Schedule: xxljob.FixedRate(time.Minute)})
			}
			return jobs
		}
		ensure := func(jobs []xxljob.Job) map[xxljob.Outcome]int {
			var mu sync.Mutex
			var wg sync.WaitGroup
			outcomes := map[xxljob.Outcome]int{}
			for _, s := range all {
				wg.Go(func() {
					done, err := s.EnsureJobs(t.Context(), "", jobs, xxljob.EnsureOptions{Prune: true})
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					for _, d := range done {
						outcomes[d.Outcome]++
					}
				})
			}
			wg.Wait()
			return outcomes
		}
		if got := ensure(list("a", "b", "c")); got[xxljob.Created] != 3 || got[xxljob.Unchanged] != 21 || len(got) != 2 {
			t.Errorf("first: %v", got)
		}
		if got := ensure(list("a", "b", "c")); got[xxljob.Unchanged] != 24 || len(got) != 1 {
			t.Errorf("again: %v", got)
		}
		jobs, err := st.Jobs(t.Context(), xxljob.JobFilter{App: "app"})
		stage.Must(t, err)
		for _, j := range jobs {
			if j.Version != 1 {
				t.Errorf("job %s was written again: version %d", j.Name, j.Version)
			}
		}
		changed := list("a", "b")
		changed[0].Param = "new"
		if got := ensure(changed); got[xxljob.Changed] != 1 || got[xxljob.Unchanged] != 15 || len(got) != 2 {
			t.Errorf("changed: %v", got)
		}
		for _, s := range all {
			stage.Must(t, s.Start(t.Context()))
		}
		time.Sleep(12 * time.Minute) // PruneAfter, and a look or two
		c, err := st.JobByKey(t.Context(), "app", "c")
		stage.Must(t, err)
		if !c.Stopped || c.StopReason != xxljob.StopPruned || c.Version != 2 {
			t.Errorf("pruned job: %+v", c)
		}
		stage.Must(t, all[0].StopJob(t.Context(), jobs[1].ID))
		ensure(list("a", "b", "c"))
		b, err := st.JobByKey(t.Context(), "app", "b")
		stage.Must(t, err)
		c, err = st.JobByKey(t.Context(), "app", "c")
		stage.Must(t, err)
		if !b.Stopped || c.Stopped || c.Next.IsZero() {
			t.Errorf("b, stopped by hand, stays so: %v; c, back in the list, runs: %v next %v", b.Stopped, !c.Stopped, c.Next)
		}
		groups, err := st.Groups(t.Context())
		stage.Must(t, err)
		if len(groups) != 1 || groups[0].App != "app" || groups[0].Manual {
			t.Errorf("groups: %+v", groups)
		}
	})
}
