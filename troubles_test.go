package xxljob_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// lockedStore passes by what others have locked, as the one in Postgres does.
type lockedStore struct {
	*memory.Store
	claims, starts atomic.Bool
}

func (s *lockedStore) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	if s.claims.Load() {
		return dst, nil
	}
	return s.Store.Claim(ctx, dst, plans)
}

func (s *lockedStore) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	if s.starts.Load() {
		return append(dst, slices.Repeat([]store.Started{{Status: store.StartLocked}}, len(starts))...), nil
	}
	return s.Store.Start(ctx, dst, starts)
}

func (s *lockedStore) LockHolders(context.Context, store.LockQuery) ([]string, error) {
	return []string{"pid 7, user backup"}, nil
}

// TestLockedRowsAreToldOf: while somebody's transaction holds rows, so that jobs are not planned
// or runs not started, the node says so within a LeaseTTL and three seconds, with who it is, in
// Troubles, Stats, its log, a hook and an event; Ready only where it is asked to; and that it is
// over.
func TestLockedRowsAreToldOf(t *testing.T) {
	for _, what := range []string{"claims", "starts"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &lockedStore{Store: memory.New()}
				var log bytes.Buffer
				var hooked []string
				cfg := xxljob.Config{App: "app", Logger: slog.New(slog.NewTextHandler(&log, nil)), Hooks: xxljob.Hooks{
					TroubleBegan: func(x xxljob.Trouble) { hooked = append(hooked, "began "+string(x.Cause)) },
					TroubleOver:  func(x xxljob.Trouble) { hooked = append(hooked, "over "+string(x.Cause)) },
				}}
				s, err := xxljob.New(st, cfg)
				stage.Must(t, err)
				events := s.Events(t.Context())
				stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
				_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(time.Second)})
				stage.Must(t, err)
				stage.Must(t, s.Start(t.Context()))
				time.Sleep(20 * time.Second)
				if all := s.Troubles(); len(all) != 0 {
					t.Fatalf("before: %v", all)
				}
				st.claims.Store(what == "claims")
				st.starts.Store(what == "starts")
				locked := time.Now()
				time.Sleep(18 * time.Second) // LeaseTTL and three seconds, by default
				all := s.Troubles()
				if len(all) != 1 || all[0].Cause != xxljob.TroubleLockedRows || all[0].Late < 1 || all[0].Holder != "pid 7, user backup" ||
					all[0].Since.Before(locked) || all[0].Since.After(locked.Add(6*time.Second)) || all[0].Remedy == "" {
					t.Fatalf("while rows are locked: %+v", all)
				}
				if n := s.Stats().Troubles["locked-rows"]; n != 1 {
					t.Errorf("Stats has %d", n)
				}
				if err := s.Ready(); err != nil {
					t.Errorf("nobody has asked Ready for it: %v", err)
				}
				st.claims.Store(false)
				st.starts.Store(false)
				time.Sleep(20 * time.Second)
				if all := s.Troubles(); len(all) != 0 {
					t.Errorf("afterwards: %v", all)
				}
				stage.Must(t, s.Stop(t.Context()))
				if want := []string{"began locked-rows", "over locked-rows"}; !slices.Equal(hooked, want) {
					t.Errorf("hooks were told %q, want %q", hooked, want)
				}
				var told []string
				for e := range events {
					if e.Trouble != nil {
						told = append(told, string(e.Kind))
					}
				}
				if want := []string{"TroubleBegan", "TroubleOver"}; !slices.Equal(told, want) {
					t.Errorf("events %q, want %q", told, want)
				}
				if s := log.String(); strings.Count(s, `level=WARN msg="xxljob: trouble"`) != 1 || strings.Count(s, "a trouble is over") != 1 || !strings.Contains(s, "user backup") {
					t.Errorf("log: %s", s)
				}
			})
		})
	}
}

// TestJobsThatANodeCannotWorkOut are left as they are, neither stopped nor planned, and are
// troubles; all others run, however many there are of them.
func TestJobsThatANodeCannotWorkOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler), Limits: xxljob.Limits{ScanLimit: 10}})
		stage.Must(t, err)
		var ran atomic.Int64
		stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { ran.Add(1); return nil }))
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(time.Second)
		due := time.Now().Add(time.Minute)
		add := func(key string, schedule xxljob.Schedule) xxljob.Job {
			job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: key, Name: key, Handler: "work", Schedule: schedule, Next: due}, nil)
			stage.Must(t, err)
			return job
		}
		var untouched []xxljob.Job
		for i := range 12 { // more than a scan reads
			untouched = append(untouched, add("newer"+strconv.Itoa(i), xxljob.Schedule{Type: "LUNAR", Conf: "1"}))
		}
		untouched = append(untouched, add("elsewhere", xxljob.Cron("* * * * * ?").In("Mars/Olympus")))
		_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "good", Name: "good", Handler: "work", Schedule: xxljob.FixedRate(time.Second)})
		stage.Must(t, err)
		broken := add("broken", xxljob.Cron("broken"))
		time.Sleep(5 * time.Minute)

		for _, was := range untouched {
			job, err := st.Job(t.Context(), was.ID)
			stage.Must(t, err)
			if job.Stopped || !job.Next.Equal(due) || job.Version != was.Version {
				t.Errorf("job %s was touched: stopped %v %q, next %v, version %d", job.Key, job.Stopped, job.StopReason, job.Next, job.Version)
			}
		}
		if n := ran.Load(); n < 290 {
			t.Errorf("the others ran %d times in five minutes", n)
		}
		if job, err := st.Job(t.Context(), broken.ID); err != nil || !job.Stopped {
			t.Errorf("a job whose schedule is broken is not stopped: %v %v", job.Next, err)
		}
		counts := s.Stats().Troubles
		if counts["unknown-schedule"] != 12 || counts["unknown-zone"] != 1 || len(counts) != 2 {
			t.Errorf("troubles: %v", counts)
		}
		for _, x := range s.Troubles() {
			if x.Late != 1 || x.App != "app" || x.JobID == 0 || x.Remedy == "" {
				t.Errorf("trouble: %+v", x)
			}
		}
		if scans := s.Stats().Calls["Scan"].Calls; scans > 1000 {
			t.Errorf("%d scans in five minutes", scans)
		}
		if err := s.Ready(); err != nil {
			t.Errorf("another process would do no better: %v", err)
		}
		for _, job := range untouched {
			stage.Must(t, s.StopJob(t.Context(), job.ID))
		}
		time.Sleep(time.Minute)
		if all := s.Troubles(); len(all) != 0 {
			t.Errorf("afterwards: %v", all)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestWindowsThatANodeCannotWorkOut: what is owed to a job behind others in a zone that this node has no data of
// waits, and is a trouble; it holds up nothing else, and is paid once the windows are known. A run of it that
// somebody asks for is told no window, and no wrong one.
func TestWindowsThatANodeCannotWorkOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "app", Node: "a", Logger: slog.New(slog.DiscardHandler)})
		stage.Must(t, err)
		var mu sync.Mutex
		windows := map[string][]*executor.Window{} // guarded by mu while handlers run
		stage.Must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
			mu.Lock()
			defer mu.Unlock()
			windows[task.Param] = append(windows[task.Param], task.Window)
			return nil
		}))
		stage.Must(t, s.Start(t.Context()))
		add := func(key, zone string, after ...string) xxljob.Job {
			job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: key, Name: key, Handler: "work", Param: key, Route: "FIRST", AfterKeys: after, AfterZone: zone, Schedule: xxljob.Schedule{Type: "NONE"}}, nil)
			stage.Must(t, err)
			return job
		}
		one := add("one", "")
		mars := add("mars", "Mars/Olympus", "app/one")
		add("utc", "", "app/one")
		for range 2 {
			_, err = s.Trigger(t.Context(), one.ID, xxljob.Trigger{})
			stage.Must(t, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(windows["mars"]) != 0 || len(windows["utc"]) != 1 || windows["utc"][0] == nil {
			t.Errorf("%d runs in no zone, and %d in UTC", len(windows["mars"]), len(windows["utc"]))
		}
		if all := s.Troubles(); len(all) != 1 || all[0].Cause != xxljob.TroubleUnknownZone || all[0].JobID != mars.ID || all[0].Late != 2 || all[0].Remedy == "" {
			t.Errorf("troubles: %+v", all)
		}
		v, err := st.View(t.Context())
		stage.Must(t, err)
		if zones := v.Nodes[0].UnknownZones; len(zones) != 1 || zones[0] != "Mars/Olympus" {
			t.Errorf("the node says that it has no data of %v", zones)
		}
		_, err = s.Trigger(t.Context(), mars.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := windows["mars"]; len(got) != 1 || got[0] != nil {
			t.Errorf("by hand: %v", got)
		}
		_, err = st.EditJob(t.Context(), mars.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) { j.AfterZone = "Asia/Shanghai"; return true, nil }})
		stage.Must(t, err)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := windows["mars"]; len(got) != 2 || got[1] == nil || got[1].End.Sub(got[1].Start) != 24*time.Hour {
			t.Errorf("once the zone is known: %v", got)
		}
		if all := s.Troubles(); len(all) != 0 {
			t.Errorf("afterwards: %+v", all)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestWindowsUnknownWhereTheExecutorIs: a run of a job behind others is sent by the node at which the executor is
// attached. Where that has no data of the zone, and the shard is another node's, it says so all the same, once and
// not with each run, until none was sent for a while.
func TestWindowsUnknownWhereTheExecutorIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		node := func(app, name string) xxljob.Scheduler {
			s, err := xxljob.New(st, xxljob.Config{App: app, Node: name, Logger: slog.New(slog.DiscardHandler)})
			stage.Must(t, err)
			return s
		}
		a, b := node("other", "a"), node("app", "b")
		var ran atomic.Int64
		stage.Must(t, b.Handle("work", func(_ context.Context, task *xxljob.Task) error {
			if task.Window == nil {
				ran.Add(1)
			}
			return nil
		}))
		stage.Must(t, a.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		stage.Must(t, a.Start(t.Context()))
		stage.Must(t, b.Start(t.Context()))
		time.Sleep(time.Minute)
		owners := map[int]string{}
		v, err := st.View(t.Context())
		stage.Must(t, err)
		for _, sh := range v.Shards {
			for _, n := range v.Nodes {
				if n.Incarnation == sh.Owner {
					owners[sh.ID] = n.ID
				}
			}
		}
		var mars xxljob.Job
		for i := 0; owners[mars.Shard] != "a" || i == 0; i++ {
			key := "mars" + strconv.Itoa(i)
			mars, err = st.AddJob(t.Context(), xxljob.Job{App: "app", Key: key, Name: key, Handler: "work", Route: "FIRST", AfterKeys: []string{"app/none"}, AfterZone: "Mars/Olympus", Schedule: xxljob.Schedule{Type: "NONE"}}, nil)
			stage.Must(t, err)
		}
		trigger := func() {
			_, err := a.Trigger(t.Context(), mars.ID, xxljob.Trigger{})
			stage.Must(t, err)
			time.Sleep(10 * time.Second)
		}
		trigger()
		before := b.Stats().Calls["Scan"].Calls
		for range 100 {
			trigger()
		}
		if n := b.Stats().Calls["Scan"].Calls - before; n > 60 {
			t.Errorf("%d scans in a thousand seconds", n)
		}
		if n := ran.Load(); n != 101 {
			t.Errorf("%d runs without a window", n)
		}
		if all := b.Troubles(); len(all) != 1 || all[0].Cause != xxljob.TroubleUnknownZone || all[0].JobID != mars.ID {
			t.Errorf("troubles where they are sent: %+v", all)
		}
		if all := a.Troubles(); len(all) != 0 {
			t.Errorf("troubles of the owner: %+v", all)
		}
		v, err = st.View(t.Context())
		stage.Must(t, err)
		for _, n := range v.Nodes {
			if n.ID == "b" && !slices.Contains(n.UnknownZones, "Mars/Olympus") {
				t.Errorf("the node says that it has no data of %v", n.UnknownZones)
			}
		}
		time.Sleep(10 * time.Minute)
		if all := b.Troubles(); len(all) != 0 {
			t.Errorf("afterwards: %+v", all)
		}
		stage.Must(t, a.Stop(t.Context()))
		stage.Must(t, b.Stop(t.Context()))
	})
}

// TestReadyGoesByTroubles: only by those that it is asked to go by.
func TestReadyGoesByTroubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &lockedStore{Store: memory.New()}
		s, err := xxljob.New(st, xxljob.Config{App: "app", Ready: xxljob.ReadyConfig{Troubles: []xxljob.TroubleCause{xxljob.TroubleLockedRows}}})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(time.Second)})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(20 * time.Second)
		stage.Must(t, s.Ready())
		st.claims.Store(true)
		time.Sleep(25 * time.Second)
		var not *xxljob.NotReadyError
		if err := s.Ready(); !errors.As(err, &not) || !slices.Equal(not.Reasons, []string{"locked-rows"}) {
			t.Errorf("Ready: %v", err)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
	_, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Ready: xxljob.ReadyConfig{Troubles: []xxljob.TroubleCause{"lock"}}})
	if err == nil || !strings.Contains(err.Error(), "Ready.Troubles") || !strings.Contains(err.Error(), "locked-rows") {
		t.Errorf("a cause that there is not: %v", err)
	}
}

// TestDueRunsThatGoNowhere: an app without executors, a handler that nobody has and a routing
// strategy that the node does not know are troubles, told at once and once each, until somebody is
// there; and so they are in the log.
func TestDueRunsThatGoNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		log := new(stage.LogLines)
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.NewTextHandler(log, nil))})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(time.Second)
		add := func(app, key, handler, route string) xxljob.Job { // their runs do not wait for each other
			job, err := st.AddJob(t.Context(), xxljob.Job{App: app, Key: key, Name: key, Handler: handler, Route: route, Block: "DISCARD_LATER", Schedule: xxljob.FixedRate(time.Second), Next: time.Now().Add(time.Second)}, nil)
			stage.Must(t, err)
			return job
		}
		one := add("far", "one", "work", "FIRST")
		two := add("far", "two", "work", "FIRST")
		absent := add("app", "absent", "absent", "FIRST")
		routed := add("app", "routed", "work", "PARITY")
		add("app", "good", "work", "FIRST")
		time.Sleep(30*time.Second + 500*time.Millisecond) // between two instants
		all := s.Troubles()
		if len(all) != 3 {
			t.Fatalf("troubles: %v", all)
		}
		for _, x := range all {
			want := map[xxljob.TroubleCause]map[string]int64{xxljob.TroubleNoExecutor: {"far": 0, "app": absent.ID}, xxljob.TroubleUnknownRouter: {"app": routed.ID}}
			if id, ok := want[x.Cause][x.App]; !ok || x.JobID != id || x.Late < 20 || x.Remedy == "" || x.Detail == "" {
				t.Errorf("trouble %+v", x)
			}
		}
		if err := s.Ready(); err != nil {
			t.Errorf("another process would do no better: %v", err)
		}
		far, err := xxljob.New(st, xxljob.Config{App: "far", Node: "far", Logger: slog.New(slog.DiscardHandler)})
		stage.Must(t, err)
		stage.Must(t, far.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		stage.Must(t, far.Start(t.Context()))
		stage.Must(t, s.StopJob(t.Context(), absent.ID))
		stage.Must(t, s.StopJob(t.Context(), routed.ID))
		time.Sleep(30 * time.Second)
		for _, x := range slices.Concat(s.Troubles(), far.Troubles()) {
			t.Errorf("afterwards: %+v", x)
		}
		stage.Must(t, s.StopJob(t.Context(), one.ID))
		stage.Must(t, s.StopJob(t.Context(), two.ID))
		time.Sleep(time.Second) // what was due at this moment has gone
		stage.Must(t, far.Stop(t.Context()))
		stage.Must(t, s.Stop(t.Context()))
		if n := len(log.With(`msg="xxljob: trouble"`)); n != 3 {
			t.Errorf("%d lines: %s", n, log.With("trouble"))
		}
	})
}

// TestAnAppIsAbsentForAllOrForNobody: where a registry knows an address for a moment, jobs that wait for
// an executor are tried there, or the app is still named as one that has none: it is not over for one part
// of the scheduler alone, which would be silent for an hour then.
func TestAnAppIsAbsentForAllOrForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := &flashing{}
		s, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Registry: reg, RegistryApps: []string{"far"}, Logger: slog.New(slog.DiscardHandler)})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		_, err = s.AddJob(t.Context(), xxljob.Job{App: "far", Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(time.Second), OnNoExecutor: xxljob.OnNoExecutorWait})
		stage.Must(t, err)
		time.Sleep(2 * time.Minute)
		for round := range 20 {
			if all := s.Troubles(); len(all) != 1 || all[0].Cause != xxljob.TroubleNoExecutor || all[0].App != "far" {
				t.Fatalf("round %d: troubles %v", round, all)
			}
			reg.flash.Store(true)
			time.Sleep(2*time.Minute + time.Duration(round)*700*time.Millisecond)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// flashing is a registry that knows an address at one question after flash was set, and none otherwise.
type flashing struct{ flash atomic.Bool }

func (*flashing) Register(context.Context, string, string) error   { return nil }
func (*flashing) Deregister(context.Context, string, string) error { return nil }
func (f *flashing) Lookup(context.Context, string) ([]string, error) {
	if f.flash.CompareAndSwap(true, false) {
		return []string{"http://127.0.0.1:1/"}, nil
	}
	return nil, nil
}

// TestSkippedInstantsHaveALine: one for each record, and at most one a job and minute, which says
// how many records had none.
func TestSkippedInstantsHaveALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		log := new(stage.LogLines)
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.NewTextHandler(log, nil)), Limits: xxljob.Limits{MaxPlanned: 1}})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { time.Sleep(30 * time.Second); return nil }))
		_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(time.Second)})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(10 * time.Minute)
		stage.Must(t, s.Stop(t.Context()))
		records := 0
		runs, err := st.Runs(t.Context(), xxljob.RunFilter{Limit: 1000})
		stage.Must(t, err)
		for _, r := range runs {
			if r.State == xxljob.StateSkipped {
				records++
			}
		}
		lines := log.With(`msg="xxljob: instants were skipped"`, "reason=backlog", "records_without_line=")
		if records < 20 || len(lines) < 8 || len(lines) > 11 {
			t.Errorf("%d records, %d lines: %s", records, len(lines), lines)
		}
	})
}

// TestTroublesAreAlarms: what lasts is told of once as it begins and once when it is over, with the
// cause, since when, how many, who and what to do; what comes and goes is not, and what cannot be
// told is tried again.
func TestTroublesAreAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &lockedStore{Store: memory.New()}
		told, refused := &tolds{}, &tolds{fails: 3}
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler), Alarms: []alarm.Rule{
			{Name: "all", To: told}, {Name: "troubles", To: refused, Causes: []alarm.Cause{alarm.Trouble}}, {Name: "jobs", To: told, Jobs: []string{"app/other"}},
			{Name: "others", To: told, Causes: []alarm.Cause{alarm.Failed}},
		}})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(time.Second), Misfire: xxljob.MisfireFireOnceNow})
		stage.Must(t, err)
		stage.Must(t, s.Start(t.Context()))
		lock := func(d time.Duration) {
			st.starts.Store(true)
			time.Sleep(d)
			st.starts.Store(false)
			time.Sleep(10 * time.Minute)
		}
		time.Sleep(20 * time.Second)
		lock(40 * time.Second)
		if n := len(told.all()); n != 0 {
			t.Errorf("told of what came and went: %+v", told.all())
		}
		lock(5 * time.Minute)
		stage.Must(t, s.Stop(t.Context()))
		for name, all := range map[string][]alarm.Message{"all": told.all(), "troubles": refused.all()} {
			if len(all) != 2 || all[0].Cause != alarm.Trouble || all[1].Cause != alarm.TroubleOver {
				t.Fatalf("%s: %d messages: %+v", name, len(all), all)
			}
			for _, m := range all {
				if m.Trouble != "locked-rows" || m.Count != 1 || m.Node == "" || m.ID == all[(len(all)-1)].ID && m.Cause == alarm.Trouble || m.JobID != 0 {
					t.Errorf("%s: %+v", name, m)
				}
			}
			if text := all[0].Events[0].Text; !strings.Contains(text, "held by: pid 7, user backup") || !strings.Contains(text, "what to do: end that transaction") {
				t.Errorf("%s: %s", name, text)
			}
			if lasted := all[1].Last.Sub(all[0].Last); lasted < 4*time.Minute || lasted > 6*time.Minute {
				t.Errorf("%s: lasted %v", name, lasted)
			}
		}
	})
}

// tolds keeps messages, and refuses the first few.
type tolds struct {
	mu    sync.Mutex
	fails int
	list  []alarm.Message
}

func (l *tolds) Alarm(_ context.Context, m alarm.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails > 0 {
		l.fails--
		return errors.New("away")
	}
	l.list = append(l.list, m)
	return nil
}

func (l *tolds) all() []alarm.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// brokenRegistry has the one address that was registered, and no answer while it is broken.
type brokenRegistry struct {
	broken  atomic.Bool
	address atomic.Value
}

func (r *brokenRegistry) Register(_ context.Context, _, address string) error {
	r.address.Store(address)
	return nil
}

func (r *brokenRegistry) Deregister(context.Context, string, string) error { return nil }

func (r *brokenRegistry) Lookup(context.Context, string) ([]string, error) {
	if r.broken.Load() {
		return nil, errors.New("the registry is away")
	}
	return []string{r.address.Load().(string)}, nil
}

// TestWhatRunsWaitForIsToldOf: due runs that wait for something with a bound are told of within
// LeaseTTL and three seconds, with what it is; those that wait for places of handlers that run, and
// for runs of their own job, are not, however long.
func TestWhatRunsWaitForIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := &brokenRegistry{}
		s, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler), Registry: registry, Executor: executor.Config{Places: 2}})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		stage.Must(t, s.Handle("long", func(context.Context, *xxljob.Task) error { time.Sleep(2 * time.Minute); return nil }))
		stage.Must(t, s.Start(t.Context()))
		serial, err := s.EnsureJob(t.Context(), xxljob.Job{Key: "serial", Name: "serial", Handler: "long", Schedule: xxljob.FixedRate(10 * time.Second)})
		stage.Must(t, err)
		places, err := s.EnsureJob(t.Context(), xxljob.Job{Key: "places", Name: "places", Handler: "long", Block: xxljob.BlockConcurrent, Schedule: xxljob.FixedRate(10 * time.Second)})
		stage.Must(t, err)
		for range 600 {
			time.Sleep(time.Second)
			if all := s.Troubles(); len(all) != 0 {
				t.Fatalf("what is in order: %v", all)
			}
		}
		stage.Must(t, s.StopJob(t.Context(), serial.Job.ID))
		stage.Must(t, s.StopJob(t.Context(), places.Job.ID))
		_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "k", Name: "k", Handler: "work", Block: xxljob.BlockConcurrent, Schedule: xxljob.FixedRate(time.Second)})
		stage.Must(t, err)
		time.Sleep(10 * time.Minute)
		if all := s.Troubles(); len(all) != 0 {
			t.Fatalf("before: %v", all)
		}
		registry.broken.Store(true)
		broken := time.Now()
		for len(s.Troubles()) == 0 && time.Since(broken) < 2*time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		all := s.Troubles()
		if len(all) != 1 || all[0].Cause != xxljob.TroubleStuckRuns || all[0].App != "app" || all[0].Late < 5 || !strings.Contains(all[0].Detail, "addresses") || all[0].Remedy == "" {
			t.Fatalf("while the registry is away: %+v", all)
		}
		if waited := time.Since(all[0].Since); waited > 5*time.Second+3*time.Second {
			t.Errorf("told of after %v", waited)
		}
		if err := s.Ready(); err != nil {
			t.Errorf("%v", err)
		}
		registry.broken.Store(false)
		time.Sleep(time.Minute)
		if all := s.Troubles(); len(all) != 0 {
			t.Errorf("afterwards: %v", all)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestPlacesOfOneAppHideNoOtherTrouble: while abandoned handlers hold all places of one app, for which Ready is an
// error, it is told of all the same what due runs of another app wait for.
func TestPlacesOfOneAppHideNoOtherTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := &brokenRegistry{}
		s, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler), Registry: registry, RegistryApps: []string{"app"}})
		stage.Must(t, err)
		deaf, err := executor.New(executor.Config{App: "deaf", Logger: slog.New(slog.DiscardHandler), Places: 1, Grace: 500 * time.Millisecond})
		stage.Must(t, err)
		ends := make(chan struct{})
		stage.Must(t, deaf.Handle("work", func(context.Context, *xxljob.Task) error { <-ends; return nil }))
		stage.Must(t, s.Attach(deaf))
		stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
		stage.Must(t, s.Start(t.Context()))
		for _, app := range []string{"app", "deaf"} {
			_, err := s.EnsureJob(t.Context(), xxljob.Job{App: app, Key: "k", Name: "k", Handler: "work", Timeout: time.Second, Schedule: xxljob.FixedRate(time.Second)})
			stage.Must(t, err)
		}
		time.Sleep(time.Minute)
		if got := reasons(s.Ready()); !slices.Equal(got, []string{"places"}) || len(s.Troubles()) != 0 {
			t.Fatalf("before: not ready for %q, %v", got, s.Troubles())
		}
		registry.broken.Store(true)
		time.Sleep(2 * time.Minute)
		if all := s.Troubles(); len(all) != 1 || all[0].Cause != xxljob.TroubleStuckRuns || all[0].App != "app" {
			t.Errorf("while the registry is away: %+v", all)
		}
		close(ends)
		stage.Must(t, s.Stop(t.Context()))
	})
}
