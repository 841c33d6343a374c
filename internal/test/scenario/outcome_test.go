package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// ending is how a run has to end: the codes follow from the state and are held
// against the table by themselves. An empty text is not looked at.
type ending struct {
	state           xxljob.State
	trigger, handle int
	handleMsg       string // is HandleMsg, or is in it behind a "~"
	triggerMsg      string // is in TriggerMsg
	reason          string // is Reason
	noRetry         bool
}

func (e ending) check(t *testing.T, what string, r xxljob.Run) {
	t.Helper()
	trigger, handle := r.State.Codes()
	if r.State != e.state || trigger != e.trigger || handle != e.handle {
		t.Errorf("%s: %v %d/%d, want %v %d/%d\n%s\n%s", what, r.State, trigger, handle, e.state, e.trigger, e.handle, r.TriggerMsg, r.HandleMsg)
	}
	if part, in := strings.CutPrefix(e.handleMsg, "~"); in && !strings.Contains(r.HandleMsg, part) || !in && e.handleMsg != "" && r.HandleMsg != e.handleMsg {
		t.Errorf("%s: HandleMsg %.200q, want %q", what, r.HandleMsg, e.handleMsg)
	}
	if !strings.Contains(r.TriggerMsg, e.triggerMsg) {
		t.Errorf("%s: TriggerMsg %q does not say %q", what, r.TriggerMsg, e.triggerMsg)
	}
	if e.reason != "" && r.Reason != e.reason {
		t.Errorf("%s: Reason %q, want %q", what, r.Reason, e.reason)
	}
	if r.NoRetry != e.noRetry {
		t.Errorf("%s: NoRetry is %t", what, r.NoRetry)
	}
	if r.Ended.IsZero() || !r.State.Ended() {
		t.Errorf("%s has not ended", what)
	}
}

// Endings that several rows share.
var (
	fine         = ending{state: xxljob.StateSucceeded, trigger: 200, handle: 200}
	killedAtWork = ending{state: xxljob.StateKilled, trigger: 200, handle: 500, handleMsg: "scheduling center kill job. [job running, killed]"}
	killedBefore = ending{state: xxljob.StateCancelled, trigger: 200, handle: 200, reason: "scheduling center kill job."}
	covered      = ending{state: xxljob.StateKilled, trigger: 200, handle: 500, handleMsg: "block strategy effect：Cover Early [job running, killed]"}
	discarded    = ending{state: xxljob.StateDiscarded, trigger: 500, handle: 0, handleMsg: "block strategy effect：Discard Later", triggerMsg: "block strategy effect：Discard Later"}
)

// outcomeWorld is a scheduler with handlers of every kind.
type outcomeWorld struct {
	xxljob.Scheduler
	t     *testing.T
	store *memory.Store
	block string
	jobs  int
}

func newOutcomeWorld(t *testing.T, strategy string, start bool) *outcomeWorld {
	t.Helper()
	w := &outcomeWorld{t: t, store: memory.New(), block: strategy}
	s, err := xxljob.New(w.store, xxljob.Config{App: "app", Node: "node", Logger: slog.New(slog.DiscardHandler)})
	stage.Must(t, err)
	w.Scheduler = s
	for name, h := range map[string]xxljob.Handler{
		"ok":     stage.NothingToDo,
		"result": func(_ context.Context, task *xxljob.Task) error { task.SetResult("done: " + task.Param); return nil },
		"error":  func(context.Context, *xxljob.Task) error { return errors.New("disk full") },
		"fail":   func(context.Context, *xxljob.Task) error { return executor.Permanent(errors.New("no such customer")) },
		"panic":  func(context.Context, *xxljob.Task) error { panic("out of range") },
		// For ten seconds, or until it is cancelled.
		"slow": func(ctx context.Context, _ *xxljob.Task) error {
			select {
			case <-time.After(10 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
		"stubborn": func(context.Context, *xxljob.Task) error { time.Sleep(time.Minute); return nil },
	} {
		stage.Must(t, s.Handle(name, h))
	}
	if start {
		stage.Must(t, s.Start(t.Context()))
	}
	return w
}

// add makes a job of the world's block strategy without a schedule.
func (w *outcomeWorld) add(handler string, set ...func(*xxljob.Job)) int64 {
	w.t.Helper()
	w.jobs++
	job := xxljob.Job{Name: fmt.Sprint(handler, w.jobs), Handler: handler, Block: w.block, Param: "p"}
	for _, f := range set {
		f(&job)
	}
	add := w.AddJob
	if handler == "nobody" { // the scheduler would say that it has none of that name
		add = stage.Elsewhere(w.t, w.store, "app").AddJob
	}
	added, err := add(w.t.Context(), job)
	stage.Must(w.t, err)
	return added.ID
}

// run triggers the job and lets the run come as far as it comes at once.
func (w *outcomeWorld) run(job int64) int64 {
	w.t.Helper()
	ids, err := w.Trigger(w.t.Context(), job, xxljob.Trigger{})
	stage.Must(w.t, err)
	synctest.Wait()
	return ids[0]
}

func (w *outcomeWorld) row(run int64) xxljob.Run {
	w.t.Helper()
	r, err := w.store.Run(w.t.Context(), run)
	stage.Must(w.t, err)
	return r
}

func (w *outcomeWorld) wait(run int64) xxljob.Run {
	w.t.Helper()
	r, err := w.Wait(w.t.Context(), run)
	stage.Must(w.t, err)
	return r
}

// TestOutcomes is the table of state, XXL-JOB's codes and messages for every
// block strategy and outcome, through a whole scheduler on the memory store. The
// rows with one run hold for every strategy; those with two say how each
// strategy treats the second.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	type world = *outcomeWorld
	seconds := func(n int) func(*xxljob.Job) {
		return func(j *xxljob.Job) { j.Timeout = time.Duration(n) * time.Second }
	}
	for _, tt := range []struct {
		name string
		act  func(w world)
	}{
		{"ok", func(w world) {
			r := w.wait(w.run(w.add("ok")))
			fine.check(w.t, "the run", r)
			if r.Handler != "ok" || r.Block != w.block || r.Param != "p" || r.JobVersion != 1 || r.Type != xxljob.TriggerManual || r.Taken.IsZero() {
				w.t.Errorf("the row does not say what was run: %+v", r)
			}
			for _, line := range []string{"type: MANUAL", "node: node", "route: NEAREST, block: " + w.block, "addresses: local://"} {
				stage.RequireText(w.t, "TriggerMsg", r.TriggerMsg, line)
			}
		}},
		{"result", func(w world) {
			ending{xxljob.StateSucceeded, 200, 200, "done: p", "", "", false}.check(w.t, "the run", w.wait(w.run(w.add("result"))))
		}},
		{"error", func(w world) {
			ending{xxljob.StateFailed, 200, 500, "disk full", "", "", false}.check(w.t, "the run", w.wait(w.run(w.add("error"))))
		}},
		{"fail", func(w world) {
			ending{xxljob.StateFailed, 200, 500, "no such customer", "", "", true}.check(w.t, "the run", w.wait(w.run(w.add("fail"))))
		}},
		{"panic", func(w world) {
			r := w.wait(w.run(w.add("panic")))
			ending{xxljob.StateFailed, 200, 500, "~panic: out of range", "", "", false}.check(w.t, "the run", r)
			stage.RequireText(w.t, "HandleMsg", r.HandleMsg, "outcome_test.go") // the stack
		}},
		{"timeout", func(w world) {
			r := w.wait(w.run(w.add("slow", seconds(2))))
			ending{xxljob.StateTimedOut, 200, 502, "job execute timeout after 2s", "", "", false}.check(w.t, "the run", r)
			if took := r.Ended.Sub(r.Started); took != 2*time.Second {
				w.t.Errorf("ended after %v", took)
			}
		}},
		{"timeout of a handler that ignores it", func(w world) {
			job := w.add("stubborn", seconds(2))
			r := w.wait(w.run(job))
			ending{xxljob.StateTimedOut, 200, 502, "job execute timeout after 2s", "", "", false}.check(w.t, "the run", r)
			if took := r.Ended.Sub(r.Started); took != 2*time.Second {
				w.t.Errorf("recorded after %v", took)
			}
		}},
		{"killed while it runs", func(w world) {
			id := w.run(w.add("slow"))
			time.Sleep(time.Second)
			stage.Must(w.t, w.Kill(w.t.Context(), id))
			r := w.wait(id)
			killedAtWork.check(w.t, "the run", r)
			if took := r.Ended.Sub(r.Started); took != time.Second {
				w.t.Errorf("ended after %v", took)
			}
			stage.Must(w.t, w.Kill(w.t.Context(), id)) // it has ended: left alone
			killedAtWork.check(w.t, "killed again", w.row(id))
		}},
		{"killed while it ignores that", func(w world) {
			id := w.run(w.add("stubborn"))
			stage.Must(w.t, w.Kill(w.t.Context(), id))
			killedAtWork.check(w.t, "the run", w.wait(id))
		}},
		{"killed before its time", func(w world) {
			job := w.add("ok")
			ids, err := w.Trigger(w.t.Context(), job, xxljob.Trigger{At: time.Now().Add(3 * time.Second)})
			stage.Must(w.t, err)
			synctest.Wait()
			stage.Must(w.t, w.Kill(w.t.Context(), ids[0]))
			killedBefore.check(w.t, "the run", w.row(ids[0]))
			time.Sleep(10 * time.Second)
			if r := w.row(ids[0]); r.State != xxljob.StateCancelled || !r.Started.IsZero() {
				w.t.Errorf("later: %v, started %v", r.State, r.Started)
			}
		}},
		{"stopped before its time", func(w world) {
			job := w.add("ok", func(j *xxljob.Job) { j.Schedule = xxljob.At(time.Now().Add(3 * time.Second)) })
			synctest.Wait()
			runs := stage.AllOf(w.t, w.store, xxljob.RunFilter{JobID: job})
			if len(runs) != 1 {
				w.t.Fatalf("%d runs are planned", len(runs))
			}
			stage.Must(w.t, w.StopJob(w.t.Context(), job))
			ending{state: xxljob.StateCancelled, trigger: 200, handle: 200, reason: "stop"}.check(w.t, "the run", w.row(runs[0].ID))
		}},
		{"no handler", func(w world) {
			ending{xxljob.StateRefused, 500, 0, "job handler [nobody] not found.", "job handler [nobody] not found.", "", false}.check(w.t, "the run", w.wait(w.run(w.add("nobody"))))
		}},
		{"no address", func(w world) {
			r := w.wait(w.run(w.add("ok", func(j *xxljob.Job) { j.App = "elsewhere" })))
			ending{xxljob.StateRefused, 500, 0, "~no address: app elsewhere has no live executor", "no address: app elsewhere has no live executor", "", false}.check(w.t, "the run", r)
		}},
		{"a script", func(w world) {
			r := w.wait(w.run(w.add("ok", func(j *xxljob.Job) { j.GlueType, j.GlueSource = "GLUE_SHELL", "echo" })))
			ending{xxljob.StateRefused, 500, 0, "glueType[GLUE_SHELL] is not valid.", "glueType[GLUE_SHELL] is not valid.", "", false}.check(w.t, "the run", r)
		}},
		{"an address that is gone", func(w world) {
			job := w.add("ok")
			ids, err := w.Trigger(w.t.Context(), job, xxljob.Trigger{Addresses: []string{"local://nobody-12345"}})
			stage.Must(w.t, err)
			ending{state: xxljob.StateRefused, trigger: 500, handle: 0, handleMsg: "~none of the addresses of app app can be reached", triggerMsg: "none of the addresses of app app can be reached"}.check(w.t, "the run", w.wait(ids[0]))
		}},
		{"stopped within its grace", func(w world) {
			id := w.run(w.add("slow"))
			stage.Must(w.t, w.Stop(w.t.Context()))
			fine.check(w.t, "the run", w.row(id))
		}},
		{"interrupted by Stop", func(w world) {
			id := w.run(w.add("slow"))
			ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Second)
			defer cancel()
			if err := w.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
				w.t.Errorf("Stop: %v", err)
			}
			r := w.row(id)
			ending{state: xxljob.StateLost, trigger: 200, handle: 500, handleMsg: "~stopped [job running, killed]"}.check(w.t, "the run", r)
			if took := r.Ended.Sub(r.Started); took != 3*time.Second {
				w.t.Errorf("recorded after %v", took)
			}
		}},
		{"a second run while the first runs", func(w world) {
			job := w.add("slow")
			one := w.run(job)
			time.Sleep(2 * time.Second)
			two := w.run(job)
			switch a, b := w.wait(one), w.wait(two); w.block {
			case block.DiscardLater:
				fine.check(w.t, "the first", a)
				discarded.check(w.t, "the second", b)
			case block.CoverEarly:
				covered.check(w.t, "the first", a)
				fine.check(w.t, "the second", b)
				if took := a.Ended.Sub(a.Started); took != 2*time.Second {
					w.t.Errorf("the first was covered after %v", took)
				}
			default:
				fine.check(w.t, "the first", a)
				fine.check(w.t, "the second", b)
				if beside := b.Started.Before(a.Ended); beside != (w.block == block.Concurrent) {
					w.t.Errorf("the second started at %v, and the first ended at %v", b.Started, a.Ended)
				}
			}
		}},
		{"a second run killed behind the first", func(w world) {
			job := w.add("slow")
			one := w.run(job)
			two := w.run(job)
			stage.Must(w.t, w.Kill(w.t.Context(), two))
			switch a, b := w.wait(one), w.wait(two); w.block {
			case block.DiscardLater:
				fine.check(w.t, "the first", a)
				discarded.check(w.t, "the second", b) // it had ended before
			case block.CoverEarly:
				covered.check(w.t, "the first", a)
				killedAtWork.check(w.t, "the second", b)
			case block.Concurrent:
				fine.check(w.t, "the first", a)
				killedAtWork.check(w.t, "the second", b)
			default:
				fine.check(w.t, "the first", a)
				killedBefore.check(w.t, "the second", b) // it waits in the store
			}
		}},
		{"the first killed, the second goes on", func(w world) {
			job := w.add("slow")
			one := w.run(job)
			two := w.run(job)
			stage.Must(w.t, w.Kill(w.t.Context(), one))
			switch a, b := w.wait(one), w.wait(two); w.block {
			case block.DiscardLater:
				killedAtWork.check(w.t, "the first", a)
				discarded.check(w.t, "the second", b)
			case block.CoverEarly:
				covered.check(w.t, "the first", a) // it had ended before
				fine.check(w.t, "the second", b)
			default:
				killedAtWork.check(w.t, "the first", a)
				fine.check(w.t, "the second", b)
			}
		}},
		{"three runs at once", func(w world) {
			job := w.add("slow")
			runs := []int64{w.run(job), w.run(job), w.run(job)}
			for i, want := range map[string][]ending{
				block.SerialExecution: {fine, fine, fine},
				block.DiscardLater:    {fine, discarded, discarded},
				block.CoverEarly:      {covered, covered, fine},
				block.Concurrent:      {fine, fine, fine},
			}[w.block] {
				want.check(w.t, fmt.Sprintf("run %d", i), w.wait(runs[i]))
			}
		}},
		{"a run behind one that ignores its timeout", func(w world) {
			job := w.add("stubborn", seconds(2))
			one := w.run(job)
			time.Sleep(3 * time.Second) // the first is recorded, its handler still runs
			timedOut := ending{xxljob.StateTimedOut, 200, 502, "job execute timeout after 2s", "", "", false}
			timedOut.check(w.t, "the first", w.row(one))
			r := w.wait(w.run(job))
			if w.block == block.DiscardLater {
				discarded.check(w.t, "the second", r)
				return
			}
			// It waits for the grace of ten seconds that the handler has to return, but for a
			// concurrent one, which was triggered a second after the first had ended.
			timedOut.check(w.t, "the second", r)
			wait := 10 * time.Second
			if w.block == block.Concurrent {
				wait = time.Second
			}
			if want := w.row(one).Ended.Add(wait + 2*time.Second); !r.Ended.Equal(want) {
				w.t.Errorf("the second ended at %v, want %v", r.Ended, want)
			}
		}},
		{"the handler is edited while it runs", func(w world) {
			job := w.add("slow")
			one := w.run(job)
			time.Sleep(2 * time.Second)
			had, err := w.store.Job(w.t.Context(), job)
			stage.Must(w.t, err)
			had.Handler = "result"
			_, err = w.UpdateJob(w.t.Context(), had)
			stage.Must(w.t, err)
			two := w.run(job)
			a, b := w.wait(one), w.wait(two)
			if a.Handler != "slow" || b.Handler != "result" {
				w.t.Errorf("handlers %q and %q", a.Handler, b.Handler)
			}
			// XXL-JOB's executors kill the first one for the edit, whatever the strategy says.
			switch w.block {
			case block.DiscardLater:
				fine.check(w.t, "the first", a)
				discarded.check(w.t, "the second", b)
			case block.CoverEarly:
				covered.check(w.t, "the first", a)
				fine.check(w.t, "the second", b)
			default:
				fine.check(w.t, "the first", a)
				fine.check(w.t, "the second", b)
				if took := a.Ended.Sub(a.Started); took != 10*time.Second {
					w.t.Errorf("the first ended after %v", took)
				}
			}
		}},
		{"interrupted by Stop with a run behind", func(w world) {
			job := w.add("slow")
			one := w.run(job)
			two := w.run(job)
			ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Second)
			defer cancel()
			if err := w.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
				w.t.Errorf("Stop: %v", err)
			}
			stopped := ending{state: xxljob.StateLost, trigger: 200, handle: 500, handleMsg: "~stopped [job running, killed]"}
			switch w.block {
			case block.DiscardLater:
				stopped.check(w.t, "the first", w.row(one))
				discarded.check(w.t, "the second", w.row(two))
			case block.CoverEarly:
				covered.check(w.t, "the first", w.row(one))
				stopped.check(w.t, "the second", w.row(two))
			case block.Concurrent:
				stopped.check(w.t, "the first", w.row(one))
				stopped.check(w.t, "the second", w.row(two))
			default:
				stopped.check(w.t, "the first", w.row(one))
				if r := w.row(two); r.State != xxljob.StatePlanned {
					w.t.Errorf("the second is %v, want planned: it is for the next owner", r.State)
				}
			}
		}},
	} {
		for _, strategy := range block.Names() {
			t.Run(tt.name+"/"+strategy, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newOutcomeWorld(t, strategy, true)
					tt.act(w)
					if err := w.Stop(t.Context()); err != nil && !strings.Contains(tt.name, "Stop") {
						t.Errorf("Stop: %v", err)
					}
					time.Sleep(2 * time.Minute) // for abandoned handlers to return
				})
			})
		}
	}
}

// TestOutcomesOfMissedInstants: a scheduler that starts late leaves a skipped
// record, or one MISFIRE run, with first, last and count; XXL-JOB reads both as
// over.
func TestOutcomesOfMissedInstants(t *testing.T) {
	t.Parallel()
	for _, misfire := range []xxljob.Misfire{xxljob.MisfireDoNothing, xxljob.MisfireFireOnceNow} {
		t.Run(string(misfire), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newOutcomeWorld(t, block.SerialExecution, false)
				began := time.Now()
				job := w.add("ok", func(j *xxljob.Job) {
					j.Schedule, j.Misfire = xxljob.Cron("0/10 * * * * ?"), misfire
				})
				time.Sleep(time.Minute + 5*time.Second)
				stage.Must(t, w.Start(t.Context()))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				runs := stage.AllOf(t, w.store, xxljob.RunFilter{JobID: job})
				if len(runs) < 2 {
					t.Fatalf("%d runs", len(runs))
				}
				record := runs[0]
				if misfire == xxljob.MisfireDoNothing {
					ending{state: xxljob.StateSkipped, trigger: 200, handle: 200, reason: xxljob.ReasonMisfire}.check(t, "the record", record)
				} else {
					fine.check(t, "the misfire run", record)
					if record.Type != xxljob.TriggerMisfire {
						t.Errorf("its type is %s", record.Type)
					}
				}
				if record.Count != 6 || !record.First.Equal(began.Add(10*time.Second)) || !record.Last.Equal(began.Add(time.Minute)) {
					t.Errorf("%d instants from %v to %v", record.Count, record.First, record.Last)
				}
				fine.check(t, "the run after it", runs[1])
				if !runs[1].Started.Equal(began.Add(70 * time.Second)) {
					t.Errorf("the next run is at %v", runs[1].Started)
				}
				stage.Must(t, w.Stop(t.Context()))
			})
		})
	}
}

// TestRecordsNeedNoAlarm: XXL-JOB's codes of skipped and cancelled runs are those
// of a success; that no alarm is wanted is said by alarm_status 1, and why they
// did not run by a message.
func TestRecordsNeedNoAlarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newOutcomeWorld(t, block.SerialExecution, false)
		w.add("ok", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("0/10 * * * * ?") })
		ids, err := w.Trigger(t.Context(), w.add("ok"), xxljob.Trigger{At: time.Now().Add(time.Hour)})
		stage.Must(t, err)
		stage.Must(t, w.Kill(t.Context(), ids[0]))
		time.Sleep(time.Minute)
		stage.Must(t, w.Start(t.Context()))
		synctest.Wait()
		over := stage.AllOf(t, w.store, xxljob.RunFilter{States: []xxljob.State{xxljob.StateSkipped, xxljob.StateCancelled}})
		if len(over) != 2 {
			t.Fatalf("%d records, want a skipped and a cancelled one", len(over))
		}
		for _, r := range over {
			if r.AlarmStatus != 1 || r.Reason == "" {
				t.Errorf("%v: alarm status %d, reason %q", r.State, r.AlarmStatus, r.Reason)
			}
		}
		stage.Must(t, w.Stop(t.Context()))
	})
}

// TestHooks: RunStarted, RunEnded and RunSkipped are called once for each run that this node
// has marked started, whose final state it has stored, refused ones included, and that is a
// record of instants that were not run.
func TestHooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var started, ended, skipped atomic.Int64
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "here", Logger: slog.New(slog.DiscardHandler), Hooks: xxljob.Hooks{
			RunStarted: func(r xxljob.Run) {
				if r.State != xxljob.StateStarted {
					t.Errorf("RunStarted: %v", r.State)
				}
				started.Add(1)
			},
			RunEnded: func(r xxljob.Run) {
				if !r.State.Ended() || r.State == xxljob.StateSkipped {
					t.Errorf("RunEnded: %v", r.State)
				}
				ended.Add(1)
			},
			RunSkipped: func(r xxljob.Run) {
				if r.State != xxljob.StateSkipped || r.Reason != xxljob.ReasonMisfire {
					t.Errorf("RunSkipped: %v, %q", r.State, r.Reason)
				}
				skipped.Add(1)
			},
		}})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", stage.NothingToDo))
		for _, j := range []xxljob.Job{
			{Name: "ok", Handler: "work", Schedule: xxljob.FixedRate(10 * time.Second)},
			{Name: "refused", Handler: "nobody", Schedule: xxljob.FixedRate(10 * time.Second)},
		} {
			_, err := stage.Elsewhere(t, st, "here").AddJob(t.Context(), j)
			stage.Must(t, err)
		}
		time.Sleep(time.Minute) // both miss six instants
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(25 * time.Second)
		synctest.Wait()
		states := stage.CountStates(stage.AllRuns(t, st))
		if states[xxljob.StateSucceeded] != 2 || states[xxljob.StateRefused] != 2 || states[xxljob.StateSkipped] != 2 {
			t.Errorf("runs by state: %v", states)
		}
		if started.Load() != 2 || ended.Load() != 4 || skipped.Load() != 2 {
			t.Errorf("%d started, %d ended, %d skipped; want 2, 4 and 2", started.Load(), ended.Load(), skipped.Load())
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestErrorThatReadsLikeAKill: an error of the handler fails the run, whatever its
// text.
func TestErrorThatReadsLikeAKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{})
		stage.Must(t, s.Handle("relay", func(context.Context, *xxljob.Task) error {
			return errors.New("remote said: backup [job running, killed]")
		}))
		stage.Must(t, s.Start(t.Context()))
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "relay", Handler: "relay"})
		stage.Must(t, err)
		ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		if run, err := s.Wait(t.Context(), ids[0]); err != nil || run.State != xxljob.StateFailed {
			t.Errorf("%v, %v, want failed", run.State, err)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}
