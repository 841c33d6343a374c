package scenario_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// served is a store that services share, with what their handlers have run.
type served struct {
	*testing.T
	st   *memory.Store
	keep time.Duration // how long runs are kept, where that is not as usual
	ran  []string
	mu   sync.Mutex // of what handlers note
}

// nowhere is a network in which nobody answers.
func nowhere() *wire.Transport {
	return wire.NewTransport(wire.TransportConfig{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }})
}

func (w *served) start(app string, jobs ...xxljob.Job) xxljob.Scheduler {
	w.Helper()
	s, err := xxljob.New(w.st, xxljob.Config{App: app, Logger: stage.QuietLog(), RunRetention: w.keep, HTTP: xxljob.HTTPConfig{Transport: nowhere(), Insecure: true}})
	stage.Must(w.T, err)
	stage.Must(w.T, s.Handle("h", func(_ context.Context, k *xxljob.Task) error {
		w.mu.Lock()
		w.ran = append(w.ran, fmt.Sprint(k.TriggerType, " of ", k.ScheduledAt.Format("15:04:05"), " at ", time.Now().Format("15:04:05")))
		w.mu.Unlock()
		return nil
	}))
	for _, job := range jobs {
		job.Handler = "h"
		_, err := s.EnsureJob(w.Context(), job)
		stage.Must(w.T, err)
	}
	stage.Must(w.T, s.Start(w.Context()))
	synctest.Wait()
	w.Cleanup(func() { stage.Must(w.T, s.Stop(context.WithoutCancel(w.Context()))) })
	return s
}

// stop stops a scheduler of which nothing runs.
func (w *served) stop(s xxljob.Scheduler) {
	w.Helper()
	stage.Must(w.T, s.Stop(w.Context()))
}

func (w *served) requireRan(want ...string) {
	w.Helper()
	synctest.Wait()
	if !slices.Equal(w.ran, want) {
		w.Errorf("ran %q, want %q", w.ran, want)
	}
}

// requireRows compares all runs, the oldest first, as type, state and, of those that stand for several,
// the number of instants.
func (w *served) requireRows(want ...string) {
	w.Helper()
	var rows []string
	for _, r := range stage.AllRuns(w.T, w.st) {
		row := fmt.Sprint(r.Type, " ", r.State)
		if r.Count > 1 {
			row += fmt.Sprint(" x", r.Count)
		}
		rows = append(rows, row)
	}
	if !slices.Equal(rows, want) {
		w.Errorf("the rows are %q, want %q", rows, want)
	}
}

// sleepUntil goes on at a time of the bubble's first day.
func sleepUntil(clock string) {
	at, err := time.Parse(time.DateTime, "2000-01-01 "+clock)
	if err != nil {
		panic(err)
	}
	time.Sleep(time.Until(at))
	synctest.Wait()
}

// inServices calls f with a store that other services use too, or not.
func inServices(t *testing.T, f func(w *served)) {
	for _, beside := range []string{"alone", "beside another service"} {
		t.Run(beside, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &served{T: t, st: memory.New()}
				if beside != "alone" {
					w.start("orders")
				}
				f(w)
			})
		})
	}
}

// TestServiceDownOverItsInstant: what its schedule says of an outage is done when it is back, whoever
// else is up meanwhile.
func TestServiceDownOverItsInstant(t *testing.T) {
	t.Parallel()
	job := xxljob.Job{Key: "nightly", Name: "Nightly", Schedule: xxljob.Crontab("30 0 * * *"), Misfire: xxljob.MisfireFireOnceNow, Retries: 3}
	inServices(t, func(w *served) {
		billing := w.start("billing", job)
		sleepUntil("00:15:00")
		w.stop(billing)
		sleepUntil("01:30:00")
		w.requireRows()
		w.start("billing", job)
		sleepUntil("02:00:00")
		w.requireRan("MISFIRE of 00:30:00 at 01:30:00")
		w.requireRows("MISFIRE succeeded")
	})
}

// TestRestartOverAnInstantLosesNothing: a few seconds without an executor are a few seconds late, for
// executors inside schedulers, whatever the job says, and for those that register.
func TestRestartOverAnInstantLosesNothing(t *testing.T) {
	t.Parallel()
	for _, on := range []xxljob.OnNoExecutor{"", xxljob.OnNoExecutorWait, xxljob.OnNoExecutorRefuse} {
		for _, down := range []string{"00:14:50", "00:14:59"} { // before the quarter is planned, and after
			t.Run(fmt.Sprintf("%s/%s", on, down), func(t *testing.T) {
				if stage.Detector && on != "" {
					t.Skip("nobody is away for long enough that this matters: the race detector has nothing more to say of it")
				}
				inServices(t, func(w *served) {
					job := xxljob.Job{Key: "quarter", Name: "Quarter", Schedule: xxljob.Crontab("15 0 * * *"), OnNoExecutor: on}
					billing := w.start("billing", job)
					sleepUntil(down)
					w.stop(billing)
					sleepUntil("00:15:02")
					w.start("billing", job)
					sleepUntil("00:45:00")
					w.requireRan("CRON of 00:15:00 at 00:15:02")
					w.requireRows("CRON succeeded")
				})
			})
		}
	}
}

// TestOutageCostsAJobOneRow, however often it is due: an hour of a job of every second, beyond what
// was planned when its only executor went.
func TestOutageCostsAJobOneRow(t *testing.T) {
	t.Parallel()
	for misfire, row := range map[xxljob.Misfire]string{xxljob.MisfireDoNothing: "CRON skipped x", xxljob.MisfireFireOnceNow: "MISFIRE succeeded x"} {
		t.Run(string(misfire), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &served{T: t, st: memory.New()}
				orders := w.start("orders")
				job := xxljob.Job{Key: "second", Name: "Second", Schedule: xxljob.Cron("* * * * * ?"), Misfire: misfire}
				billing := w.start("billing", job)
				time.Sleep(time.Minute)
				w.stop(billing)
				before := stage.AllRuns(t, w.st)
				time.Sleep(time.Minute)
				if troubles := orders.Troubles(); len(troubles) != 1 || troubles[0].Cause != xxljob.TroubleNoExecutor || troubles[0].App != "billing" {
					t.Errorf("after a minute there are %v, want that billing has no executor", troubles)
				}
				time.Sleep(time.Hour)
				if now := stage.AllRuns(t, w.st); len(now) != len(before) {
					t.Errorf("%d rows, and %d when the last executor went", len(now), len(before))
				}
				w.start("billing", job)
				time.Sleep(time.Second / 2)
				var many []string
				for _, r := range stage.AllRuns(t, w.st) {
					if r.Count > 1 {
						many = append(many, fmt.Sprint(r.Type, " ", r.State, " x"))
						if from, to := r.First, r.Last; r.Count != store.CountCap || to.Sub(from) < 3600*time.Second || to.Sub(from) > 3665*time.Second {
							t.Errorf("a row for %d instants from %v to %v, want those of an hour and a minute", r.Count, from, to)
						}
					}
				}
				if !slices.Equal(many, []string{row}) {
					t.Errorf("rows for the outage: %q, want %q", many, row)
				}
				instants := map[time.Time]bool{}
				for _, r := range stage.AllRuns(t, w.st) {
					if r.Count == 0 && instants[r.Scheduled] {
						t.Errorf("two runs for %v", r.Scheduled)
					}
					instants[r.Scheduled] = true
					if r.State == xxljob.StateRefused {
						t.Errorf("run %d was refused: %s", r.ID, r.HandleMsg)
					}
				}
				time.Sleep(time.Minute)
				if troubles := orders.Troubles(); len(troubles) > 0 {
					t.Errorf("somebody is there, and still there are %v", troubles)
				}
			})
		})
	}
}

// TestFixedDelayWaitsLikeACron: it goes on with its delay when somebody is there.
func TestFixedDelayWaitsLikeACron(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &served{T: t, st: memory.New()}
		w.start("orders")
		job := xxljob.Job{Key: "delay", Name: "Delay", Schedule: xxljob.FixedDelay(10 * time.Minute)}
		billing := w.start("billing", job)
		sleepUntil("00:15:00")
		w.stop(billing)
		sleepUntil("02:00:00")
		w.start("billing", job)
		sleepUntil("02:25:00")
		w.requireRan("FIX_DELAY of 00:10:00 at 00:10:00", "FIX_DELAY of 02:10:00 at 02:10:00", "FIX_DELAY of 02:20:00 at 02:20:00")
		w.requireRows("FIX_DELAY succeeded", "FIX_DELAY skipped x11", "FIX_DELAY succeeded", "FIX_DELAY succeeded")
	})
}

// TestRunsThatExistWaitForAnExecutor: triggers, retries, children and broadcasts, for days if need be.
func TestRunsThatExistWaitForAnExecutor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &served{T: t, st: memory.New()}
		orders := w.start("orders")
		var ran []string
		start := func() xxljob.Scheduler {
			s, err := xxljob.New(w.st, xxljob.Config{App: "billing", Logger: stage.QuietLog()})
			stage.Must(t, err)
			for _, name := range []string{"plain", "child", "wide", "again"} {
				stage.Must(t, s.Handle(name, func(_ context.Context, k *xxljob.Task) error {
					w.mu.Lock()
					ran = append(ran, name)
					w.mu.Unlock()
					if name == "again" && k.Attempt == 0 {
						return io.ErrUnexpectedEOF
					}
					return nil
				}))
				job := xxljob.Job{Key: name, Name: name, Handler: name}
				switch name {
				case "wide":
					job.Route = route.ShardingBroadcast
				case "again":
					job.Retries, job.RetryBackoff = 1, xxljob.Backoff{First: time.Hour}
				}
				_, err := s.EnsureJob(t.Context(), job)
				stage.Must(t, err)
			}
			stage.Must(t, s.Start(t.Context()))
			return s
		}
		billing := start()
		parent, err := orders.AddJob(t.Context(), xxljob.Job{Key: "parent", Name: "parent", Handler: "h", ChildKeys: []string{"billing/child"}})
		stage.Must(t, err)
		trigger := func(app, key string) int64 {
			id, err := orders.TriggerJob(t.Context(), app, key, xxljob.Trigger{})
			stage.Must(t, err)
			return id[0]
		}
		trigger("billing", "again")
		time.Sleep(time.Minute)
		w.stop(billing)
		for _, key := range []string{"plain", "plain", "wide"} {
			trigger("billing", key)
		}
		_, err = orders.Trigger(t.Context(), parent.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(72 * time.Hour)
		if want := []string{"again"}; !slices.Equal(ran, want) {
			t.Fatalf("ran %q, want %q", ran, want)
		}
		// The second run of the serial job may wait for its turn behind the first.
		if waiting := orders.Stats().Waiting; waiting["executor"] < 4 || waiting["executor"]+waiting["order"] != 5 {
			t.Errorf("these wait: %v, want 5 for an executor", waiting)
		}
		if err := orders.Ready(); err != nil {
			t.Errorf("another service's node is not ready: %v", err)
		}
		billing = start()
		time.Sleep(time.Second)
		synctest.Wait()
		slices.Sort(ran)
		if want := []string{"again", "again", "child", "plain", "plain", "wide"}; !slices.Equal(ran, want) {
			t.Errorf("ran %q, want %q", ran, want)
		}
		w.stop(billing)
	})
}

// TestWaitEndsADayBeforeRetention: a run that waits is refused before it would be dropped.
func TestWaitEndsADayBeforeRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &served{T: t, st: memory.New(), keep: 3 * 24 * time.Hour}
		orders := w.start("orders")
		job := xxljob.Job{Key: "k", Name: "n"}
		w.stop(w.start("billing", job))
		id, err := orders.TriggerJob(t.Context(), "billing", "k", xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(w.keep - 24*time.Hour - 2*time.Hour)
		run, err := w.st.Run(t.Context(), id[0])
		stage.Must(t, err)
		if run.State != xxljob.StatePlanned {
			t.Fatalf("after nearly two days the run is %v", run.State)
		}
		time.Sleep(3 * time.Hour)
		run, err = w.st.Run(t.Context(), id[0])
		stage.Must(t, err)
		if run.State != xxljob.StateRefused || !strings.Contains(run.HandleMsg, "no live executor") {
			t.Errorf("after two days the run is %v: %s", run.State, run.HandleMsg)
		}
	})
}

// TestAddressesOfTheCallerDoNotWait: who has said where a run is to go hears at once that nobody is.
func TestAddressesOfTheCallerDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &served{T: t, st: memory.New()}
		orders := w.start("orders")
		w.stop(w.start("billing", xxljob.Job{Key: "k", Name: "n", OnNoExecutor: xxljob.OnNoExecutorWait}))
		id, err := orders.TriggerJob(t.Context(), "billing", "k", xxljob.Trigger{Addresses: []string{"http://10.0.0.1:9999"}})
		stage.Must(t, err)
		synctest.Wait()
		if run, err := w.st.Run(t.Context(), id[0]); err != nil || run.State != xxljob.StateRefused {
			t.Errorf("the run is %v (%v), want refused", run.State, err)
		}
	})
}

// TestRefuseOnceNobodyWasThereForAWhile: executors that register are waited for as long as they may be
// silent, those inside schedulers as long as a node may be, and an app that never had one not at all.
func TestRefuseOnceNobodyWasThereForAWhile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		by   store.ServedBy
		on   xxljob.OnNoExecutor
		wait time.Duration
	}{
		{"registered", store.ServedRegistered, "", 90 * time.Second},
		{"attached", store.ServedAttached, xxljob.OnNoExecutorRefuse, 30 * time.Second},
		{"never", "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &served{T: t, st: memory.New()}
				orders := w.start("orders")
				stage.Must(t, orders.SaveGroup(t.Context(), xxljob.Group{App: "billing"}))
				job, err := orders.AddJob(t.Context(), xxljob.Job{App: "billing", Key: "k", Name: "n", Handler: "h", OnNoExecutor: tt.on})
				stage.Must(t, err)
				switch tt.by {
				case store.ServedAttached:
					w.stop(w.start("billing"))
				case store.ServedRegistered:
					reg := []store.Registration{{App: "billing", Address: "http://10.0.0.1:9999"}}
					stage.Must(t, w.st.PutAddresses(t.Context(), reg))
					stage.Must(t, w.st.NoteServed(t.Context(), []store.Served{{App: "billing", By: store.ServedRegistered}}))
					stage.Must(t, w.st.DropAddresses(t.Context(), reg))
				}
				began := time.Now()
				for range 2 { // the second finds that it has been so for long enough
					id, err := orders.Trigger(t.Context(), job.ID, xxljob.Trigger{})
					stage.Must(t, err)
					run, err := orders.Wait(t.Context(), id[0])
					stage.Must(t, err)
					if waited := time.Since(began); run.State != xxljob.StateRefused || waited < tt.wait || waited > tt.wait+2*time.Second {
						t.Errorf("%v after %v: %s; want refused after %v", run.State, waited, run.HandleMsg, tt.wait)
					}
				}
			})
		})
	}
}

// TestATroubleOfAnAppSaysHowManyWait: the runs behind the first of a serial job too, and those that come
// later, within moments.
func TestATroubleOfAnAppSaysHowManyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &served{T: t, st: memory.New()}
		orders := w.start("orders")
		w.stop(w.start("billing"))
		var jobs []xxljob.Job
		for _, block := range []string{xxljob.BlockSerial, xxljob.BlockConcurrent} {
			added, err := orders.EnsureJob(t.Context(), xxljob.Job{App: "billing", Key: block, Name: block, Handler: "h", Block: block})
			stage.Must(t, err)
			jobs = append(jobs, added.Job)
		}
		for waits := 6; waits <= 18; waits += 6 {
			for i := range 6 {
				stage.Trigger(t, orders, jobs[i%2])
			}
			time.Sleep(90 * time.Second)
			synctest.Wait()
			all := orders.Troubles()
			if len(all) != 1 || all[0].Cause != xxljob.TroubleNoExecutor || all[0].App != "billing" || all[0].Late != waits || !strings.Contains(all[0].Detail, fmt.Sprint(" ", waits, " due runs")) {
				t.Errorf("while %d runs wait: %+v", waits, all)
			}
		}
		w.start("billing")
		time.Sleep(time.Minute)
		synctest.Wait()
		if all := orders.Troubles(); len(all) != 0 || len(w.ran) != 18 {
			t.Errorf("afterwards %d runs have run, and the troubles are %+v", len(w.ran), all)
		}
	})
}

// TestRefusedRunsDoNotWait: while the trouble of an app says how many runs wait for an executor, runs of it
// that are refused are not added to these, and do not take the words of the trouble.
func TestRefusedRunsDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &served{T: t, st: memory.New()}
		orders := w.start("orders")
		w.stop(w.start("billing"))
		add := func(key string, on xxljob.OnNoExecutor) xxljob.Job {
			job, err := orders.AddJob(t.Context(), xxljob.Job{App: "billing", Key: key, Name: key, Handler: "h", OnNoExecutor: on})
			stage.Must(t, err)
			return job
		}
		waits, refuses := add("waits", xxljob.OnNoExecutorWait), add("refuses", xxljob.OnNoExecutorRefuse)
		stage.Trigger(t, orders, waits)
		time.Sleep(2 * time.Minute)
		for round := range 5 {
			id := stage.Trigger(t, orders, refuses)
			time.Sleep(time.Second)
			if run, err := w.st.Run(t.Context(), id); err != nil || run.State != xxljob.StateRefused {
				t.Fatalf("run %v, %v", run.State, err)
			}
			all := orders.Troubles()
			if len(all) != 1 || all[0].Late != 1 || all[0].Seen.What != store.SeenNobody {
				t.Errorf("round %d: while one run waits: %+v", round, all)
			}
			time.Sleep(20 * time.Second)
		}
		w.start("billing")
		time.Sleep(time.Minute)
	})
}

// TestAnAppThatNobodyHasServedYet: it waits if a node has ensured jobs of it, since such an app has its
// executors inside schedulers: also what somebody has added to it. What is added to another is refused.
// Jobs that are ensured later count from then on, be it that their app has many.
func TestAnAppThatNobodyHasServedYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &served{T: t, st: memory.New()}
		orders := w.start("orders")
		job := xxljob.Job{App: "billing", Key: "added", Name: "n", Handler: "h", Schedule: xxljob.Crontab("* * * * *"), Misfire: xxljob.MisfireDoNothing}
		add := func(app, key string) {
			t.Helper()
			job.App, job.Key = app, key
			_, err := orders.AddJob(t.Context(), job)
			stage.Must(t, err)
		}
		ensure := func(app, key string) {
			t.Helper()
			_, err := orders.EnsureJob(t.Context(), xxljob.Job{App: app, Key: key, Name: "n", Handler: "h"})
			stage.Must(t, err)
		}
		add("billing", "added")
		add("java", "added")
		add("later", "added")
		for i := range 1200 {
			_, err := orders.AddJob(t.Context(), xxljob.Job{App: "later", Key: fmt.Sprint(i), Name: "n", Handler: "h"})
			stage.Must(t, err)
		}
		ensure("billing", "ensured")
		require := func(want map[string]string) {
			t.Helper()
			for app, want := range want {
				j, err := w.st.JobByKey(t.Context(), app, "added")
				stage.Must(t, err)
				if got := fmt.Sprint(stage.CountStates(stage.AllOf(t, w.st, xxljob.RunFilter{JobID: j.ID}))); got != want {
					t.Errorf("%s: %s, want %s", app, got, want)
				}
			}
		}
		sleepUntil("00:02:30")
		ensure("later", "ensured")
		sleepUntil("00:05:30")
		require(map[string]string{"billing": "map[]", "java": "map[refused:5]", "later": "map[refused:2]"})
		id, err := orders.TriggerJob(t.Context(), "billing", "added", xxljob.Trigger{})
		stage.Must(t, err)
		sleepUntil("00:05:50")
		if run, err := w.st.Run(t.Context(), id[0]); err != nil || run.State != xxljob.StatePlanned {
			t.Errorf("a run by hand of the app that waits is %v (%v)", run.State, err)
		}
		for _, app := range []string{"billing", "java", "later"} {
			w.start(app)
		}
		sleepUntil("00:08:30")
		require(map[string]string{"billing": "map[succeeded:4 skipped:1]", "java": "map[succeeded:3 refused:5]", "later": "map[succeeded:3 refused:2 skipped:1]"})
	})
}

// addressBook is a registry of the user's.
type addressBook struct {
	mu    sync.Mutex
	addrs map[string][]string
}

func (b *addressBook) Register(_ context.Context, app, address string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.addrs == nil {
		b.addrs = map[string][]string{}
	}
	if !slices.Contains(b.addrs[app], address) {
		b.addrs[app] = append(b.addrs[app], address)
	}
	return nil
}

func (b *addressBook) Deregister(_ context.Context, app, address string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addrs[app] = slices.DeleteFunc(b.addrs[app], func(a string) bool { return a == address })
	return nil
}

func (b *addressBook) Lookup(_ context.Context, app string) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.addrs[app]), nil
}

// TestOutagesByARegistry: an app whose executors run inside schedulers waits as such where a registry of
// the user's says who is there, in its first outage and in later ones.
func TestOutagesByARegistry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, reg := &served{T: t, st: memory.New()}, &addressBook{}
		start := func(app string) xxljob.Scheduler {
			s, err := xxljob.New(w.st, xxljob.Config{App: app, Logger: stage.QuietLog(), Registry: reg})
			stage.Must(t, err)
			stage.Must(t, s.Handle("h", func(_ context.Context, k *xxljob.Task) error {
				w.mu.Lock()
				w.ran = append(w.ran, k.ScheduledAt.Format("15:04"))
				w.mu.Unlock()
				return nil
			}))
			stage.Must(t, s.Start(t.Context()))
			return s
		}
		orders, billing := start("orders"), start("billing")
		_, err := billing.AddJob(t.Context(), xxljob.Job{Key: "k", Name: "n", Handler: "h", Schedule: xxljob.Crontab("30 * * * *"), Misfire: xxljob.MisfireFireOnceNow})
		stage.Must(t, err)
		time.Sleep(time.Hour)
		for range 2 {
			time.Sleep(20 * time.Minute)
			w.stop(billing)
			time.Sleep(20 * time.Minute)
			billing = start("billing")
			time.Sleep(20 * time.Minute)
		}
		w.requireRan("00:30", "01:30", "02:30")
		w.stop(billing)
		w.stop(orders)
	})
}

// TestRestartOfAnExecutorThatIsOnlyTriggered: that it is registered is known from its runs, though no
// schedule asks for it.
func TestRestartOfAnExecutorThatIsOnlyTriggered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &served{T: t, st: memory.New()}
		orders := w.start("orders")
		stage.Must(t, orders.SaveGroup(t.Context(), xxljob.Group{App: "java"}))
		job, err := orders.AddJob(t.Context(), xxljob.Job{App: "java", Key: "k", Name: "n", Handler: "h"})
		stage.Must(t, err)
		reg := []store.Registration{{App: "java", Address: "http://10.0.0.1:9999"}}
		trigger := func() xxljob.Run {
			id, err := orders.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			time.Sleep(3 * time.Second)
			run, err := w.st.Run(t.Context(), id[0])
			stage.Must(t, err)
			return run
		}
		stage.Must(t, w.st.PutAddresses(t.Context(), reg))
		if run := trigger(); run.Address != reg[0].Address {
			t.Fatalf("the run is %v at %q", run.State, run.Address)
		}
		stage.Must(t, w.st.DropAddresses(t.Context(), reg))
		time.Sleep(time.Minute)
		if run := trigger(); run.State != xxljob.StatePlanned {
			t.Errorf("three seconds after it was asked for the run is %v: %s", run.State, run.HandleMsg)
		}
	})
}

// TestRegistrationEndsTheWait of a job that is to wait, whichever node hears of it: another one than
// that which has the job's shard, too. So does an address that somebody enters.
func TestRegistrationEndsTheWait(t *testing.T) {
	t.Parallel()
	const java = "http://10.0.0.1:9999"
	registers := func(t *testing.T, s xxljob.Scheduler) {
		h, err := s.AdminHandler()
		stage.Must(t, err)
		if ret := stage.Post(t, h, "default_token", "java", "registry", fmt.Appendf(nil, `{"registryGroup":"EXECUTOR","registryKey":"java","registryValue":%q}`, java)); ret.Code != 200 {
			t.Fatalf("the registration was answered %+v", ret)
		}
	}
	for name, comes := range map[string]func(t *testing.T, owner, other xxljob.Scheduler){
		"registers here":      func(t *testing.T, owner, _ xxljob.Scheduler) { registers(t, owner) },
		"registers elsewhere": func(t *testing.T, _, other xxljob.Scheduler) { registers(t, other) },
		"is entered": func(t *testing.T, owner, _ xxljob.Scheduler) {
			stage.Must(t, owner.SaveGroup(t.Context(), xxljob.Group{App: "java", Manual: true, Addresses: []string{java}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &served{T: t, st: memory.New()}
				owner := w.start("orders")
				stage.Must(t, owner.SaveGroup(t.Context(), xxljob.Group{App: "java"}))
				_, err := owner.AddJob(t.Context(), xxljob.Job{App: "java", Key: "k", Name: "n", Handler: "h", Schedule: xxljob.Crontab("5 0 * * *"), OnNoExecutor: xxljob.OnNoExecutorWait, Misfire: xxljob.MisfireFireOnceNow})
				stage.Must(t, err)
				other := w.start("stock")
				sleepUntil("01:05:00")
				w.requireRows()
				comes(t, owner, other)
				time.Sleep(3 * time.Second)
				if runs := stage.AllRuns(t, w.st); len(runs) != 1 || runs[0].Type != xxljob.TriggerMisfire || runs[0].Address != java {
					t.Errorf("there are %+v, want one for what was missed, at the address", runs)
				}
			})
		})
	}
}

// TestAnExecutorThatComesWhileItIsNotedThatNobodyIsThere is not missed: it has registered after the node
// was told that there is none, and before the node has noted it.
func TestAnExecutorThatComesWhileItIsNotedThatNobodyIsThere(t *testing.T) {
	t.Parallel()
	const java = "http://10.0.0.1:9999"
	for _, late := range []time.Duration{50 * time.Millisecond, 150 * time.Millisecond, 299 * time.Millisecond, 301 * time.Millisecond, 599 * time.Millisecond, 700 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults := storetest.Wrap(memory.New())
				s, err := xxljob.New(faults, xxljob.Config{App: "orders", Logger: stage.QuietLog(), HTTP: xxljob.HTTPConfig{Transport: nowhere(), Insecure: true}})
				stage.Must(t, err)
				stage.Must(t, s.SaveGroup(t.Context(), xxljob.Group{App: "java"}))
				saved, err := s.EnsureJob(t.Context(), xxljob.Job{App: "java", Key: "k", Name: "n", Handler: "h"})
				stage.Must(t, err)
				stage.Must(t, s.Start(t.Context()))
				time.Sleep(time.Minute)
				faults.Inject("Served", storetest.Fault{Delay: 300 * time.Millisecond})
				ids, err := s.Trigger(t.Context(), saved.Job.ID, xxljob.Trigger{})
				stage.Must(t, err)
				time.Sleep(late)
				h, err := s.AdminHandler()
				stage.Must(t, err)
				if ret := stage.Post(t, h, "default_token", "java", "registry", fmt.Appendf(nil, `{"registryGroup":"EXECUTOR","registryKey":"java","registryValue":%q}`, java)); ret.Code != 200 {
					t.Fatalf("the registration was answered %+v", ret)
				}
				time.Sleep(5 * time.Second)
				if run, err := faults.Run(t.Context(), ids[0]); err != nil || run.Address != java {
					t.Errorf("five seconds after an executor has come the run is %v, %v", run.State, err)
				}
				stage.Must(t, s.Stop(t.Context()))
			})
		})
	}
}

// TestCrashLoopingExecutor: what waits is run in the moments in which somebody is there.
func TestCrashLoopingExecutor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &served{T: t, st: memory.New()}
		orders := w.start("orders")
		job := xxljob.Job{Key: "k", Name: "n", Schedule: xxljob.Cron("0/5 * * * * ?")}
		for range 50 {
			billing := w.start("billing", job)
			time.Sleep(2 * time.Second)
			w.stop(billing)
			time.Sleep(10 * time.Second)
		}
		ran := len(w.ran)
		if ran < 45 {
			t.Errorf("in ten minutes, a fifth of which somebody was there, %d runs were run", ran)
		}
		for _, r := range stage.AllRuns(t, w.st) {
			if r.State != xxljob.StateSucceeded && r.State != xxljob.StatePlanned && r.State != xxljob.StateSkipped {
				t.Errorf("run %d of %v is %v: %s", r.ID, r.Scheduled, r.State, r.HandleMsg)
			}
		}
		if troubles := orders.Troubles(); len(troubles) > 1 {
			t.Errorf("the troubles are %v", troubles)
		}
	})
}

// TestManyJobsThatWaitHoldUpNobody: ten thousand are looked at every few seconds, and not with each
// scan.
func TestManyJobsThatWaitHoldUpNobody(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("ten thousand jobs: leave out -short")
	}
	if stage.Detector {
		t.Skip("ten thousand jobs are too much for the race detector")
	}
	synctest.Test(t, func(t *testing.T) {
		scans := &countedScans{st: memory.New()}
		s, err := xxljob.New(bent.StoreOf(scans.st, scans), xxljob.Config{App: "orders", Logger: stage.QuietLog()})
		stage.Must(t, err)
		ran := 0
		stage.Must(t, s.Handle("h", func(context.Context, *xxljob.Task) error { ran++; return nil }))
		for _, app := range []string{"orders", "gone"} {
			stage.Must(t, s.SaveGroup(t.Context(), xxljob.Group{App: app}))
		}
		const n = 10_000
		for i := range n {
			_, err := s.AddJob(t.Context(), xxljob.Job{App: "gone", Key: fmt.Sprint(i), Name: "n", Handler: "h", Schedule: xxljob.Cron("0 * * * * ?"), OnNoExecutor: xxljob.OnNoExecutorWait})
			stage.Must(t, err)
		}
		_, err = s.AddJob(t.Context(), xxljob.Job{Key: "mine", Name: "n", Handler: "h", Schedule: xxljob.Cron("* * * * * ?")})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(2*time.Minute + time.Second/2) // no run is due at the very moment at which it is counted
		synctest.Wait()
		scans.jobs, ran = 0, 0
		time.Sleep(time.Minute)
		synctest.Wait()
		if ran != 60 {
			t.Errorf("the job of every second was run %d times in a minute", ran)
		}
		if most := (60/5 + 2) * n; scans.jobs > most {
			t.Errorf("scans have read %d jobs in a minute, of which %d wait; want at most %d", scans.jobs, n, most)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// countedScans counts the jobs that scans have read.
type countedScans struct {
	st   xxljob.Store
	jobs int
}

func (c *countedScans) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	res, err := c.st.Scan(ctx, dst, q)
	c.jobs += len(res.Jobs)
	return res, err
}
