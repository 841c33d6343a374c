package scenario_test

// Jobs with NotBefore, NotAfter and MaxRuns: what they run, how they end, and what the verbs
// that change them do.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// boundedWorld is a node with a job of the handler "work".
type boundedWorld struct {
	*stage.Node
	t   *testing.T
	st  *memory.Store
	job xxljob.Job
}

// bounded runs a test with a job in a bubble, half a second behind a full minute.
func bounded(t *testing.T, job xxljob.Job, test func(w *boundedWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &boundedWorld{t: t, st: memory.New()}
		w.Node = stage.StartNode(t, w.st, "n", &stage.Journal{})
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second/2)))
		job.Name, job.Handler = "job", "work"
		var err error
		w.job, err = w.AddJob(t.Context(), job)
		stage.Must(t, err)
		test(w)
		stage.Stop(t, w.Node)
	})
}

// update changes the job's definition.
func (w *boundedWorld) update(change func(*xxljob.Job)) error {
	w.t.Helper()
	_, err := w.updated(change)
	return err
}

// updated returns the job as the edit leaves it: the scan may plan its runs at once.
func (w *boundedWorld) updated(change func(*xxljob.Job)) (xxljob.Job, error) {
	w.t.Helper()
	changed := w.now()
	changed.Version = 0
	change(&changed)
	return w.UpdateJob(w.t.Context(), changed)
}

func (w *boundedWorld) mustUpdate(change func(*xxljob.Job)) {
	w.t.Helper()
	stage.Must(w.t, w.update(change))
}

func (w *boundedWorld) now() xxljob.Job {
	w.t.Helper()
	job, err := w.st.Job(w.t.Context(), w.job.ID)
	stage.Must(w.t, err)
	return job
}

// ran are the seconds since the job was added for which it has run, as "1 2 3".
func (w *boundedWorld) ran() string {
	w.t.Helper()
	var list []string
	for _, r := range stage.Succeeded(w.t, w.st, w.job.ID) {
		list = append(list, fmt.Sprint(r.Scheduled.Sub(w.job.Added).Round(time.Second).Seconds()))
	}
	return strings.Join(list, " ")
}

// want checks what has run so far, and why the job is stopped; "-" if it is not.
func (w *boundedWorld) want(what, ran, reason string) {
	w.t.Helper()
	synctest.Wait()
	job := w.now()
	got := job.StopReason
	if !job.Stopped {
		got = "-"
	}
	if w.ran() != ran || got != reason {
		w.t.Errorf("%s: ran at %s, want %s; stopped for %q, want %q", what, w.ran(), ran, got, reason)
	}
}

func (w *boundedWorld) wantNever(what string, err error, words ...string) {
	w.t.Helper()
	if !errors.Is(err, xxljob.ErrNeverFires) {
		w.t.Errorf("%s: %v", what, err)
		return
	}
	requireWords(w.t, what, err, append(words, `job "job"`)...)
}

// TestMaxRuns: so many runs are made, whatever is edited, and then the job is finished; it
// goes on when there are more to make, and not before.
func TestMaxRuns(t *testing.T) {
	t.Parallel()
	bounded(t, xxljob.Job{Schedule: xxljob.Cron("* * * * * ?"), MaxRuns: 4}, func(w *boundedWorld) {
		time.Sleep(2 * time.Second)
		w.want("half way", "1 2", "-")
		stage.Must(t, w.StopJob(t.Context(), w.job.ID))
		w.mustUpdate(func(j *xxljob.Job) { j.Param = "x" })
		time.Sleep(5 * time.Second)
		if n := w.now().Runs; n != 2 {
			t.Errorf("stopped, Runs is %d: what was planned was taken back", n)
		}
		stage.Must(t, w.StartJob(t.Context(), w.job.ID))
		time.Sleep(time.Second)
		w.mustUpdate(func(j *xxljob.Job) { j.Param = "y" })
		w.want("one is left", "1 2 8", "-")
		time.Sleep(time.Minute)
		w.want("all are made", "1 2 8 9", "finished: MaxRuns")
		w.wantNever("StartJob", w.StartJob(t.Context(), w.job.ID), "MaxRuns 4", "has made 4 runs")

		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 3 })
		w.mustUpdate(func(j *xxljob.Job) { j.NotAfter = time.Now().Add(time.Hour) })
		w.want("edits that leave none to make", "1 2 8 9", "finished: MaxRuns")
		if job, err := w.updated(func(j *xxljob.Job) { j.MaxRuns = 6 }); err != nil || job.Stopped || job.Next.IsZero() {
			t.Errorf("two more are left, and the job is %+v: %v", job, err)
		}
		time.Sleep(time.Minute)
		w.want("two more", "1 2 8 9 69 70", "finished: MaxRuns")
		w.mustUpdate(func(j *xxljob.Job) { j.Schedule = xxljob.Cron("0/2 * * * * ?") })
		time.Sleep(time.Minute)
		w.want("another schedule", "1 2 8 9 69 70 130 132 134 136 138 140", "finished: MaxRuns")
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 0 })
		time.Sleep(3 * time.Second)
		w.want("no bound any more", "1 2 8 9 69 70 130 132 134 136 138 140 190", "-")
	})
}

// TestLoweredMaxRuns: what is planned beyond it is taken back; what has run has run.
func TestLoweredMaxRuns(t *testing.T) {
	t.Parallel()
	bounded(t, xxljob.Job{Schedule: xxljob.Cron("* * * * * ?")}, func(w *boundedWorld) {
		time.Sleep(3 * time.Second)
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 5 })
		time.Sleep(time.Minute)
		w.want("two more", "1 2 3 4 5", "finished: MaxRuns")
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 0 })
		time.Sleep(3 * time.Second)
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 2 })
		w.want("at once", "1 2 3 4 5 64 65 66", "finished: MaxRuns")
		time.Sleep(time.Minute)
		w.want("later", "1 2 3 4 5 64 65 66", "finished: MaxRuns")
	})
}

// TestNotBeforeAndNotAfter: both are instants of the job, those outside leave no trace, and
// a change of the bounds is a change of what exists.
func TestNotBeforeAndNotAfter(t *testing.T) {
	t.Parallel()
	second := func(w *boundedWorld, n int) time.Time {
		return w.job.Added.Truncate(time.Second).Add(time.Duration(n) * time.Second)
	}
	bounded(t, xxljob.Job{Schedule: xxljob.Cron("* * * * * ?")}, func(w *boundedWorld) {
		// As the update has left it: a moment later all instants may be planned.
		job, err := w.updated(func(j *xxljob.Job) { j.NotBefore, j.NotAfter = second(w, 4), second(w, 6) })
		if err != nil || !job.Next.Equal(second(w, 4)) {
			t.Errorf("Next is %v: %v", job.Next, err)
		}
		time.Sleep(20 * time.Second)
		w.want("within the bounds", "4 5 6", "finished: NotAfter")
		w.wantNever("StartJob", w.StartJob(t.Context(), w.job.ID), "NotAfter, 2000-01-01T", "is past")
		w.wantNever("an earlier NotAfter", w.update(func(j *xxljob.Job) { j.NotAfter = second(w, 5) }), "is past")
		w.wantNever("none between", w.update(func(j *xxljob.Job) {
			j.NotBefore, j.NotAfter = second(w, 30).Add(time.Millisecond), second(w, 31).Add(-time.Millisecond)
		}), "no instant within its bounds", "NotBefore 2000-", "NotAfter 2000-")
		w.want("refused edits", "4 5 6", "finished: NotAfter")
		w.mustUpdate(func(j *xxljob.Job) { j.NotBefore, j.NotAfter = second(w, 25), second(w, 26) })
		time.Sleep(20 * time.Second)
		w.want("other bounds", "4 5 6 25 26", "finished: NotAfter")
		w.mustUpdate(func(j *xxljob.Job) { j.NotBefore, j.NotAfter = time.Time{}, time.Time{} })
		time.Sleep(3 * time.Second)
		w.mustUpdate(func(j *xxljob.Job) { j.NotAfter = second(w, 44) })
		time.Sleep(20 * time.Second)
		w.want("a NotAfter within what was planned", "4 5 6 25 26 41 42 43 44", "finished: NotAfter")
		for _, r := range stage.AllOf(t, w.st, xxljob.RunFilter{JobID: w.job.ID}) {
			if r.State == xxljob.StateSkipped {
				t.Errorf("a record: %+v", r)
			}
		}
	})
}

// TestSomebodysStopOutlivesBounds: only a job that its bounds may have stopped is started
// by other bounds.
func TestSomebodysStopOutlivesBounds(t *testing.T) {
	t.Parallel()
	bounded(t, xxljob.Job{Schedule: xxljob.Cron("* * * * * ?"), MaxRuns: 2}, func(w *boundedWorld) {
		stage.Must(t, w.StopJob(t.Context(), w.job.ID))
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 3 })
		w.want("stopped by somebody", "", "")
		stage.Must(t, w.StartJob(t.Context(), w.job.ID))
		time.Sleep(10 * time.Second)
		w.want("started", "1 2 3", "finished: MaxRuns")
		stage.Must(t, w.StopJob(t.Context(), w.job.ID)) // takes the place of the job's own stop
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 30 })
		time.Sleep(10 * time.Second)
		w.want("stopped by somebody, finished before", "1 2 3", "")
	})
}

// TestRatesKeepStep: a change of the bounds does not move the instants of a rate, nor what
// a delay has come to.
func TestRatesKeepStep(t *testing.T) {
	t.Parallel()
	bounded(t, xxljob.Job{Schedule: xxljob.FixedRate(10 * time.Second)}, func(w *boundedWorld) {
		time.Sleep(13 * time.Second)
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 3 })
		time.Sleep(5 * time.Second) // what is due at 20 is planned
		w.mustUpdate(func(j *xxljob.Job) { j.NotAfter = time.Now().Add(time.Hour) })
		time.Sleep(time.Minute)
		w.want("three", "10 20 30", "finished: MaxRuns")
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 4 })
		time.Sleep(time.Minute)
		w.want("one more, in step", "10 20 30 80", "finished: MaxRuns")
		w.mustUpdate(func(j *xxljob.Job) {
			j.MaxRuns, j.NotBefore, j.NotAfter = 6, time.Now().Add(15*time.Second), time.Now().Add(22*time.Second)
		})
		time.Sleep(time.Minute)
		w.want("the one within its bounds", "10 20 30 80 160", "finished: NotAfter")
	})
	bounded(t, xxljob.Job{Schedule: xxljob.FixedDelay(10 * time.Second)}, func(w *boundedWorld) {
		time.Sleep(13 * time.Second)
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 30 })
		time.Sleep(5 * time.Second) // the run of 20 is planned, and waited for
		if w.now().WaitRun == 0 {
			t.Error("the job waits for no run")
		}
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 3 })
		time.Sleep(time.Minute)
		w.want("delays", "10 20 30", "finished: MaxRuns")
	})
}

// TestADelayWaitsForItsRunAndNotBefore: a NotBefore that is set while a run is under way makes
// no second one beside it, and the delay still counts from its end.
func TestADelayWaitsForItsRunAndNotBefore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		notBefore time.Duration // after the edit, at 13
		want      string
	}{
		{"before the end", 5 * time.Second, "10 50"},
		{"before the delay is over", 30 * time.Second, "10 50"},
		{"behind it", 70 * time.Second, "10 83"},
	} {
		bounded(t, xxljob.Job{Schedule: xxljob.Manual(), Block: xxljob.BlockConcurrent}, func(w *boundedWorld) {
			stage.Must(t, w.Handle("long", func(context.Context, *xxljob.Task) error { time.Sleep(30 * time.Second); return nil }))
			w.mustUpdate(func(j *xxljob.Job) { j.Handler, j.Schedule, j.MaxRuns = "long", xxljob.FixedDelay(10*time.Second), 2 })
			time.Sleep(13 * time.Second)
			w.mustUpdate(func(j *xxljob.Job) { j.NotBefore = time.Now().Add(c.notBefore) })
			time.Sleep(29 * time.Second) // the run has ended, and the delay has begun
			next, err := w.NextFire(t.Context(), w.job.ID)
			stage.Must(t, err)
			time.Sleep(3 * time.Minute)
			w.want(c.name, c.want, "finished: MaxRuns")
			if want := w.job.Added.Add(50 * time.Second); c.want == "10 50" && !next.Equal(want) || c.want != "10 50" && !next.Equal(w.now().NotBefore) {
				t.Errorf("%s: NextFire said %v", c.name, next)
			}
		})
	}
}

// TestADelayKeepsAPlannedRunToNotBefore: a run that is planned and not due yet when the job
// gets a NotBefore behind it makes way for one at NotBefore; one that is not before it stays.
func TestADelayKeepsAPlannedRunToNotBefore(t *testing.T) {
	t.Parallel()
	edits := map[string]func(*boundedWorld, func(*xxljob.Job)){
		"UpdateJob": (*boundedWorld).mustUpdate,
		"EnsureJob": func(w *boundedWorld, change func(*xxljob.Job)) {
			job := w.now()
			change(&job)
			_, err := w.EnsureJob(w.t.Context(), xxljob.Job{
				Key: job.Key, Name: job.Name, Handler: job.Handler, Schedule: job.Schedule, NotBefore: job.NotBefore, MaxRuns: job.MaxRuns,
			})
			stage.Must(w.t, err)
		},
	}
	for verb, edit := range edits {
		for notBefore, want := range map[time.Duration]string{8 * time.Second: "10 20", 10 * time.Second: "10 20", time.Minute: "60 70"} {
			bounded(t, xxljob.Job{Key: "job", Schedule: xxljob.FixedDelay(10 * time.Second), MaxRuns: 2}, func(w *boundedWorld) {
				time.Sleep(7 * time.Second)
				if job := w.now(); job.WaitRun == 0 || !job.Last.Equal(job.Added.Add(10*time.Second)) {
					t.Fatalf("no run is planned for 10: the job waits for %d, of %v", job.WaitRun, job.Last)
				}
				edit(w, func(j *xxljob.Job) { j.NotBefore = w.job.Added.Add(notBefore) })
				time.Sleep(3 * time.Minute)
				w.want(fmt.Sprintf("%s, NotBefore at %v", verb, notBefore), want, "finished: MaxRuns")
			})
		}
	}
}

// TestDelaysWithBounds: a delay counts from the end of its run, and so it is by then that
// its bounds are looked at, those that it has by then.
func TestDelaysWithBounds(t *testing.T) {
	t.Parallel()
	bounded(t, xxljob.Job{Schedule: xxljob.Manual()}, func(w *boundedWorld) {
		busy := 4 * time.Second
		stage.Must(t, w.Handle("busy", func(context.Context, *xxljob.Task) error { time.Sleep(busy); return nil }))
		w.mustUpdate(func(j *xxljob.Job) {
			j.Handler, j.Schedule, j.NotBefore, j.MaxRuns = "busy", xxljob.FixedDelay(time.Second), w.job.Added.Add(3*time.Second), 3
		})
		time.Sleep(8500 * time.Millisecond) // at 8 the second began
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns = 2 })
		w.want("under way", "3", "-")
		time.Sleep(time.Minute)
		w.want("it was the last", "3 8", "finished: MaxRuns")
		w.mustUpdate(func(j *xxljob.Job) { j.MaxRuns, j.NotAfter = 0, time.Now().Add(9*time.Second) })
		time.Sleep(time.Minute) // at 69.5 and 74.5; 79.5 is too late
		w.want("up to NotAfter", "3 8 70 75", "finished: NotAfter")

		w.mustUpdate(func(j *xxljob.Job) { j.NotAfter = time.Time{} })
		time.Sleep(2 * time.Second) // one has begun
		w.mustUpdate(func(j *xxljob.Job) { j.NotAfter = time.Now() })
		time.Sleep(time.Minute)
		w.want("NotAfter while it runs", "3 8 70 75 130", "finished: NotAfter")
		w.mustUpdate(func(j *xxljob.Job) { j.NotAfter = time.Time{} })
		time.Sleep(2 * time.Second)
		later := time.Now().Add(10 * time.Second)
		w.mustUpdate(func(j *xxljob.Job) { j.NotBefore, j.NotAfter = later, later }) // what runs is outside of them
		time.Sleep(time.Minute)
		w.want("one instant", "3 8 70 75 130 192 203", "finished: NotAfter")
	})
}

// TestKilledRunsCount: whoever kills a planned run does not want it made up for.
func TestKilledRunsCount(t *testing.T) {
	t.Parallel()
	bounded(t, xxljob.Job{Schedule: xxljob.Cron("* * * * * ?"), MaxRuns: 4}, func(w *boundedWorld) {
		synctest.Wait()
		planned := stage.AllOf(t, w.st, xxljob.RunFilter{JobID: w.job.ID, States: []xxljob.State{xxljob.StatePlanned}})
		for _, r := range planned[1:3] {
			stage.Must(t, w.Kill(t.Context(), r.ID))
		}
		stage.Trigger(t, w, w.job)
		synctest.Wait()
		time.Sleep(time.Minute)
		w.want("two were killed, and one was triggered", "1 4 0", "finished: MaxRuns")
	})
}

// TestBroadcastsCountOnce: a broadcast is one run of its schedule.
func TestBroadcastsCountOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		time.Sleep(10 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Schedule: xxljob.Cron("* * * * * ?"), MaxRuns: 3, Route: xxljob.RouteShardingBroadcast})
		stage.Must(t, err)
		time.Sleep(time.Minute)
		job, err = st.Job(t.Context(), job.ID)
		stage.Must(t, err)
		if len(j.All()) != 6 || j.By("a") != 3 || job.Runs != 3 || job.StopReason != "finished: MaxRuns" {
			t.Errorf("%d parts, %d of them at a; %d runs, %q", len(j.All()), j.By("a"), job.Runs, job.StopReason)
		}
		stage.Stop(t, a, b)
	})
}

// TestRefusedRunsCount: a run that found no address has used its instant up.
func TestRefusedRunsCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := stage.StartNode(t, st, "n", &stage.Journal{})
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", App: "nobody", Handler: "work", Schedule: xxljob.Cron("* * * * * ?"), MaxRuns: 3})
		stage.Must(t, err)
		time.Sleep(time.Minute)
		job, err = st.Job(t.Context(), job.ID)
		stage.Must(t, err)
		if states := stage.CountStates(stage.AllRuns(t, st)); states[xxljob.StateRefused] != 3 || len(states) != 1 || job.StopReason != "finished: MaxRuns" {
			t.Errorf("%v, %q", states, job.StopReason)
		}
		stage.Stop(t, n)
	})
}

// TestEnsureBoundedJobs: a list may name jobs whose instants have passed, as long as they
// are the same, and jobs whose runs are made, whatever their MaxRuns.
func TestEnsureBoundedJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := stage.StartNode(t, st, "n", &stage.Journal{})
		ensure := func(generation int64, jobs ...xxljob.Job) error {
			_, err := n.EnsureJobs(t.Context(), "", jobs, xxljob.EnsureOptions{Generation: generation})
			return err
		}
		began := time.Now()
		few := xxljob.Job{Name: "few", Handler: "work", Schedule: xxljob.Cron("* * * * * ?"), MaxRuns: 3}
		short := xxljob.Job{Name: "short", Handler: "work", Schedule: xxljob.Cron("* * * * * ?"), NotAfter: began.Add(3 * time.Second)}
		rate := xxljob.Job{Name: "rate", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)}
		stage.Must(t, ensure(1, few, short, rate))
		time.Sleep(50 * time.Minute)
		reasons := func() (list []string) {
			jobs, err := st.Jobs(t.Context(), xxljob.JobFilter{})
			stage.Must(t, err)
			for _, j := range jobs {
				list = append(list, fmt.Sprintf("%s %v %s", j.Name, j.Stopped, j.StopReason))
			}
			slices.Sort(list)
			return list
		}
		want := []string{"few true finished: MaxRuns", "rate false ", "short true finished: NotAfter"}
		if got := reasons(); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		few.MaxRuns, few.Param, short.Param = 2, "x", "y"
		rate.NotAfter = began.Add(time.Hour) // it is in step for one more, though an hour from now is later
		stage.Must(t, ensure(2, few, short, rate))
		if got := reasons(); !slices.Equal(got, want) {
			t.Errorf("with other parameters: %q, want %q", got, want)
		}
		short.NotAfter = began.Add(4 * time.Second)
		err := ensure(3, few, short, rate)
		requireWords(t, "another NotAfter that is past", err, "job 2 of the list", "short", "NotAfter", "is past")
		_, err = n.EnsureJob(t.Context(), short)
		requireWords(t, "EnsureJob", err, "short", "NotAfter", "is past")
		short.Name = "new"
		requireWords(t, "a new job that is past", ensure(3, short), "job 1 of the list", "new", "is past")
		few.MaxRuns = 5
		stage.Must(t, ensure(3, few, rate))
		time.Sleep(time.Hour)
		want = []string{"few true finished: MaxRuns", "rate true finished: NotAfter", "short true finished: NotAfter"}
		if got := reasons(); !slices.Equal(got, want) {
			t.Errorf("with more runs: %q, want %q", got, want)
		}
		runs := map[string]int{}
		for _, r := range stage.Succeeded(t, st, 0) {
			job, err := st.Job(t.Context(), r.JobID)
			stage.Must(t, err)
			runs[job.Name]++
		}
		if runs["few"] != 5 || runs["short"] != 3 || runs["rate"] != 1 {
			t.Errorf("%v", runs)
		}
		stage.Stop(t, n)
	})
}
