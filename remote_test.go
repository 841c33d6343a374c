package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

const at1, at2, at3 = "http://10.0.0.1:9999/", "http://10.0.0.2:9999/", "http://10.0.0.3:9999/"

// TestRemoteTimes: an executor elsewhere is told the zone, with its distance from UTC, and of a
// retry which trigger it belongs to.
func TestRemoteTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shanghai, err := time.LoadLocation("Asia/Shanghai")
		stage.Must(t, err)
		p := &peer{}
		e := newElsewhere(t, nil, xxljob.Config{Location: shanghai}, map[string]*peer{at1: p})
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far", Name: "j", Key: "k", Handler: "demo", Retries: 1})
		synctest.Wait()
		e.report(id, 500, "no")
		time.Sleep(time.Minute)
		synctest.Wait()
		sent := p.sent()
		if len(sent) != 2 {
			t.Fatalf("sent %+v", sent)
		}
		for i, r := range sent {
			if r.Zone != "Asia/Shanghai" || r.ZoneOffset != 8*3600 || r.TriggerID != id*int64(i) || r.BusinessTime != 0 || r.Count != 0 || r.ParentID != 0 {
				t.Errorf("sent %+v", r)
			}
		}
	})
}

// TestRemotePastInstant: an executor elsewhere is told the past instant that a run was asked for, the
// zone's distance from UTC at that instant, and the same when the run is asked for again.
func TestRemotePastInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", Key: "k", Handler: "demo", Schedule: xxljob.Cron("0 0 0 1 1 ?").In("America/New_York")})
		stage.Must(t, err)
		at := time.Date(1999, 7, 1, 16, 0, 0, 0, time.UTC)
		id, err := e.TriggerOne(t.Context(), job.ID, xxljob.Trigger{At: at})
		stage.Must(t, err)
		synctest.Wait()
		e.report(id, 200, "done")
		again, err := e.Again(t.Context(), id)
		stage.Must(t, err)
		synctest.Wait()
		e.report(again, 200, "done")
		sent := p.sent()
		if len(sent) != 2 {
			t.Fatalf("sent %+v", sent)
		}
		for _, r := range sent {
			if r.ScheduledAt != at.UnixMilli() || r.Zone != "America/New_York" || r.ZoneOffset != -4*3600 || r.BusinessTime != 0 || r.Count != 0 {
				t.Errorf("sent %+v", r)
			}
		}
	})
}

// TestRemoteWindow: an executor elsewhere is told the window of a job behind others, be the run one that
// somebody has asked for, its retry, or one again.
func TestRemoteWindow(t *testing.T) {
	for _, ours := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
			e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
			before, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "a", Key: "a", Handler: "demo"})
			stage.Must(t, err)
			job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", Key: "k", Handler: "demo", After: []int64{before.ID}, Retries: 1})
			stage.Must(t, err)
			today := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
			past := time.Date(1999, 7, 1, 16, 0, 0, 0, time.UTC)
			for at, day := range map[time.Time]time.Time{{}: today, past: past.Truncate(24 * time.Hour)} {
				if ours { // again, since two rounds are longer than a registration lasts
					e.registerOurs("far", at1, "b-1")
				} else {
					e.register("far", at1)
				}
				already := len(p.sent())
				id, err := e.TriggerOne(t.Context(), job.ID, xxljob.Trigger{At: at})
				stage.Must(t, err)
				synctest.Wait()
				e.report(id, 500, "no")
				time.Sleep(time.Minute)
				synctest.Wait()
				for _, retry := range p.sent()[already+1:] {
					e.report(retry.LogID, 200, "done")
				}
				again, err := e.Again(t.Context(), id)
				stage.Must(t, err)
				synctest.Wait()
				e.report(again, 200, "done")
				sent := p.sent()[already:]
				if len(sent) != 3 {
					t.Fatalf("sent %+v", sent)
				}
				for i, r := range sent {
					if r.WindowStart != day.UnixMilli() || r.WindowEnd != day.AddDate(0, 0, 1).UnixMilli() {
						t.Errorf("call %d for %v: the window from %v to %v, want that of %v", i, at, time.UnixMilli(r.WindowStart).UTC(), time.UnixMilli(r.WindowEnd).UTC(), day)
					}
				}
			}
		})
	}
}

// TestRemoteInstants: an executor elsewhere of ours is told the instants that a run makes up for and
// the one before them; one of others is not.
func TestRemoteInstants(t *testing.T) {
	for _, ours := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
			e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
			job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", Key: "k", Handler: "demo", Schedule: xxljob.Cron("0 0 6 * * ?").In("America/New_York")})
			stage.Must(t, err)
			if ours {
				e.registerOurs("far", at1, "b-1")
			} else {
				e.register("far", at1)
			}
			day := func(d int) time.Time { return time.Date(1999, 12, d, 11, 0, 0, 0, time.UTC) }
			missed := xxljob.Run{Type: xxljob.TriggerMisfire, Scheduled: day(12), First: day(10), Last: day(12), Count: 3}
			_, err = e.store.AddRun(t.Context(), job.ID, xxljob.Trigger{}.Repeating(&missed))
			stage.Must(t, err)
			time.Sleep(time.Second)
			synctest.Wait()
			sent := p.sent()
			if len(sent) != 1 || sent[0].Count != 3 || sent[0].ScheduledAt != day(12).UnixMilli() || sent[0].FirstAt != day(10).UnixMilli() {
				t.Fatalf("sent %+v", sent)
			}
			list, before := fmt.Sprintf("%d,%d,%d", day(10).UnixMilli(), day(11).UnixMilli(), day(12).UnixMilli()), day(9).UnixMilli()
			if !ours {
				list, before = "", 0
			}
			if sent[0].Instants != list || sent[0].PreviousAt != before {
				t.Errorf("sent %q and %d, want %q and %d", sent[0].Instants, sent[0].PreviousAt, list, before)
			}
		})
	}
}

// TestRemoteRun: a run goes to a registered executor with all that the job says, is
// dispatched when it is accepted, and ends with the callback.
func TestRemoteRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		before := time.Now()
		id := e.trigger(xxljob.Job{App: "far", Name: "j", Key: "k", Handler: "demo", Param: `a=<b>&'`, Timeout: 7 * time.Second, Block: block.CoverEarly,
			GlueType: "GLUE_SHELL", GlueSource: "echo", GlueRemark: "first"})
		synctest.Wait()
		run := e.mustBe(id, xxljob.StateDispatched)
		if tr, h := run.State.Codes(); tr != 200 || h != 0 {
			t.Errorf("codes %d/%d", tr, h)
		}
		job, err := e.store.Job(t.Context(), run.JobID)
		stage.Must(t, err)
		if job.GlueUpdated.IsZero() {
			t.Error("the job has no GlueUpdated")
		}
		want := wire.TriggerRequest{
			JobID: run.JobID, ExecutorHandler: "demo", ExecutorParams: `a=<b>&'`, ExecutorBlockStrategy: block.CoverEarly, ExecutorTimeout: 7,
			LogID: id, LogDateTime: run.Created.UnixMilli(), GlueType: "GLUE_SHELL", GlueSource: "echo", GlueUpdatetime: job.GlueUpdated.UnixMilli(),
			BroadcastTotal: 1, ScheduledAt: run.Scheduled.UnixMilli(), StartToken: run.Token, DueAt: run.Scheduled.UnixMilli(),
			JobName: "j", JobKey: "k", App: "far", Route: route.Nearest, JobVersion: 1, TriggerType: "MANUAL",
		}
		if got := p.sent(); len(got) != 1 || got[0] != want {
			t.Errorf("sent %+v\nwant %+v", got, want)
		}
		if run.Created.Before(before.Truncate(time.Millisecond)) {
			t.Errorf("created %v", run.Created)
		}
		e.report(id, 200, "done")
		run = e.mustBe(id, xxljob.StateSucceeded)
		if run.HandleMsg != "done" || !strings.Contains(run.TriggerMsg, at1+": accepted") {
			t.Errorf("%q %q", run.HandleMsg, run.TriggerMsg)
		}
		if got := stage.WaitFor(t, e, id, time.Second); got.State != xxljob.StateSucceeded {
			t.Errorf("Wait: %v", got.State)
		}
	})
}

// TestRemoteRefusals: an executor's refusal ends the run, in its words; so does an
// executor that certainly was not reached.
func TestRemoteRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		ret  wire.Return
		err  error
		want xxljob.State
		msg  string
	}{
		{"refused", wire.Failf(wire.MsgHandlerNotFound, "work"), nil, xxljob.StateRefused, "job handler [work] not found."},
		{"discarded", wire.Failf(block.MsgDiscard), nil, xxljob.StateDiscarded, block.MsgDiscard},
		{"code 0", wire.Return{}, nil, xxljob.StateRefused, "refused with code 0"},
		{"not reached", wire.Return{}, errNoRoute, xxljob.StateRefused, "connection refused"},
		{"with NUL", wire.Failf("a\x00b"), nil, xxljob.StateRefused, "a\uFFFDb"},
		{"too long", wire.Failf("%s", strings.Repeat("x", 1<<20)), nil, xxljob.StateRefused, "xxx..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{run: func(int, wire.TriggerRequest) (wire.Return, error) { return c.ret, c.err }}
				e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
				e.register("far", at1)
				id := e.trigger(xxljob.Job{App: "far"})
				synctest.Wait()
				run := e.mustBe(id, c.want)
				if !strings.Contains(run.TriggerMsg, at1+": ") || !strings.Contains(run.TriggerMsg, c.msg) || len(run.TriggerMsg) > 4000 {
					t.Errorf("%d bytes: %.300q", len(run.TriggerMsg), run.TriggerMsg)
				}
				if !strings.Contains(run.HandleMsg, c.msg) || len(run.HandleMsg) > 3000 {
					t.Errorf("HandleMsg of %d bytes: %.300q", len(run.HandleMsg), run.HandleMsg)
				}
				if n := len(p.sent()); n != 1 {
					t.Errorf("sent %d times", n)
				}
			})
		})
	}
}

// TestResultBeforeTheAnswer: that a run was accepted stands in its TriggerMsg also where
// the result is there before the answer to the trigger, and stands there once.
func TestResultBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *elsewhere
		p := &peer{run: func(_ int, r wire.TriggerRequest) (wire.Return, error) {
			e.report(r.LogID, 200, "done")
			time.Sleep(time.Second)
			return wire.Success(), nil
		}}
		e = newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far"})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		run := e.mustBe(id, xxljob.StateSucceeded)
		if n := strings.Count(run.TriggerMsg, "\n"+at1+": accepted"); n != 1 {
			t.Errorf("accepted %d times: %q", n, run.TriggerMsg)
		}
	})
}

// marking notes which runs are marked dispatched, and counts the reads of runs.
type marking struct {
	st xxljob.Store

	takes  time.Duration // each call that marks
	mu     sync.Mutex
	marked []int64
	reads  int
}

func (s *marking) Dispatched(ctx context.Context, accepted []store.Dispatch) ([]xxljob.Run, error) {
	s.mu.Lock()
	for _, a := range accepted {
		s.marked = append(s.marked, a.RunID)
	}
	s.mu.Unlock()
	time.Sleep(s.takes)
	return s.st.Dispatched(ctx, accepted)
}

func (s *marking) RunsByID(ctx context.Context, ids []int64) ([]xxljob.Run, error) {
	s.mu.Lock()
	s.reads++
	s.mu.Unlock()
	return s.st.RunsByID(ctx, ids)
}

// TestQuickResultIsAllThatIsStored: where a result is stored before the answer to the trigger
// comes, nothing is stored for the answer, and the run is read for a result that is no success
// only. One whose result comes later is marked, and read.
func TestQuickResultIsAllThatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *elsewhere
		p := &peer{run: func(_ int, r wire.TriggerRequest) (wire.Return, error) {
			switch r.ExecutorParams {
			case "quick":
				e.report(r.LogID, 200, "done")
			case "bad":
				e.report(r.LogID, 500, "not done")
			}
			return wire.Success(), nil
		}}
		st := &marking{st: memory.New()}
		e = newElsewhere(t, bent.StoreOf(st.st, st), xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		slow := e.trigger(xxljob.Job{App: "far", Name: "slow"})
		quick := e.trigger(xxljob.Job{App: "far", Name: "quick", Param: "quick"})
		synctest.Wait()
		expect := func(reads int) {
			t.Helper()
			st.mu.Lock()
			defer st.mu.Unlock()
			if !slices.Equal(st.marked, []int64{slow}) || st.reads != reads {
				t.Errorf("%v are marked, and runs are read %d times, want %d alone, and %d", st.marked, st.reads, slow, reads)
			}
		}
		if run := e.mustBe(quick, xxljob.StateSucceeded); !strings.HasSuffix(run.TriggerMsg, at1+": accepted, and the result was reported at once") {
			t.Errorf("%q", run.TriggerMsg)
		}
		e.mustBe(slow, xxljob.StateDispatched)
		expect(0)
		bad := e.trigger(xxljob.Job{App: "far", Name: "bad", Param: "bad"})
		synctest.Wait()
		e.mustBe(bad, xxljob.StateFailed)
		expect(1)
		e.report(slow, 200, "done")
		if run := e.mustBe(slow, xxljob.StateSucceeded); strings.Contains(run.TriggerMsg, "at once") {
			t.Errorf("%q", run.TriggerMsg)
		}
		expect(2)
	})
}

// TestAcceptedRunsGather: where several runs were accepted at a time, the next are marked 20 ms
// later, and not where their results are stored by then.
func TestAcceptedRunsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &marking{st: memory.New(), takes: time.Second}
		e := newElsewhere(t, bent.StoreOf(st.st, st), xxljob.Config{}, map[string]*peer{at1: {}})
		e.register("far", at1)
		var ids []int64
		accept := func() int64 {
			ids = append(ids, e.trigger(xxljob.Job{App: "far", Name: fmt.Sprint("j", len(ids))}))
			synctest.Wait()
			return ids[len(ids)-1]
		}
		expect := func(when string, want ...int64) {
			t.Helper()
			st.mu.Lock()
			defer st.mu.Unlock()
			if !slices.Equal(st.marked, want) {
				t.Fatalf("%s: %v are marked, want %v", when, st.marked, want)
			}
		}
		first := accept()
		second, third := accept(), accept()
		expect("while the first is being marked", first)
		time.Sleep(time.Second)
		synctest.Wait()
		expect("then", first, second, third)
		quick, slow := accept(), accept()
		time.Sleep(time.Second + 10*time.Millisecond)
		e.report(quick, 200, "done")
		synctest.Wait()
		expect("while the next gather", first, second, third)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		expect("when they have gathered", first, second, third, slow)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		e.mustBe(quick, xxljob.StateSucceeded)
		alone := []int64{accept()}
		time.Sleep(10 * time.Second)
		alone = append(alone, accept())
		expect("one that comes alone", append([]int64{first, second, third, slow}, alone...)...)
	})
}

// TestRemoteTimeout: a timeout names its length, also where a Java executor says just
// that there was one; its own words about it stay.
func TestRemoteTimeout(t *testing.T) {
	for text, want := range map[string]string{
		"job execute timeout ": "job execute timeout after 7s",
		"too slow":             "too slow",
	} {
		synctest.Test(t, func(t *testing.T) {
			e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {}})
			e.register("far", at1)
			id := e.trigger(xxljob.Job{App: "far", Timeout: 7 * time.Second})
			synctest.Wait()
			e.report(id, 502, text)
			if run := e.mustBe(id, xxljob.StateTimedOut); run.HandleMsg != want {
				t.Errorf("%q, want %q", run.HandleMsg, want)
			}
		})
	}
}

// TestRemoteFailover: FAILOVER asks for a beat, and after a refusal goes on along the
// list and never back; an attached executor may be on the list too.
func TestRemoteFailover(t *testing.T) {
	refuse := func(int, wire.TriggerRequest) (wire.Return, error) { return wire.Failf("full"), nil }
	dead := func() (wire.Return, error) { return wire.Return{}, errHungUp }
	for _, c := range []struct {
		name  string
		peers map[string]*peer
		sent  [3]int
		want  xxljob.State
	}{
		{"the first is dead", map[string]*peer{at1: {beat: dead}, at2: {}, at3: {}}, [3]int{0, 1, 0}, xxljob.StateDispatched},
		{"two refuse", map[string]*peer{at1: {run: refuse}, at2: {run: refuse}, at3: {}}, [3]int{1, 1, 1}, xxljob.StateDispatched},
		{"all refuse", map[string]*peer{at1: {run: refuse}, at2: {run: refuse}, at3: {run: refuse}}, [3]int{1, 1, 1}, xxljob.StateRefused},
		{"all are dead", map[string]*peer{at1: {beat: dead}, at2: {beat: dead}, at3: {beat: dead}}, [3]int{}, xxljob.StateRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newElsewhere(t, nil, xxljob.Config{}, c.peers)
				e.register("far", at1, at2, at3)
				id := e.trigger(xxljob.Job{App: "far", Route: "FAILOVER"})
				time.Sleep(10 * time.Second)
				e.mustBe(id, c.want)
				for i, a := range []string{at1, at2, at3} {
					if n := len(c.peers[a].sent()); n != c.sent[i] {
						t.Errorf("%s was sent %d, want %d", a, n, c.sent[i])
					}
				}
			})
		})
	}
	t.Run("attached at the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newElsewhere(t, nil, xxljob.Config{App: "far", HTTP: xxljob.HTTPConfig{Tokens: tokensOf("far")}}, map[string]*peer{at1: {run: refuse}})
			stage.Must(t, e.Handle("work", stage.NothingToDo))
			e.register("far", at1)
			id := e.trigger(xxljob.Job{App: "far", Route: "FAILOVER"})
			time.Sleep(5 * time.Second)
			run := e.mustBe(id, xxljob.StateSucceeded)
			if _, local := store.LocalIncarnation(run.Address); !local {
				t.Errorf("ran at %s", run.Address)
			}
		})
	})
}

// TestRemoteBusyover: a busy executor is passed over.
func TestRemoteBusyover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := func() (wire.Return, error) { return wire.Failf(wire.MsgBusy), nil }
		peers := map[string]*peer{at1: {idle: busy}, at2: {}}
		e := newElsewhere(t, nil, xxljob.Config{}, peers)
		e.register("far", at1, at2)
		id := e.trigger(xxljob.Job{App: "far", Route: "BUSYOVER"})
		time.Sleep(5 * time.Second)
		if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at2 {
			t.Errorf("sent to %s", run.Address)
		}
	})
}

// TestRemoteBroadcast: each executor gets its part, once, also one that has registered
// in two spellings; parts end on their own.
func TestRemoteBroadcast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := map[string]*peer{at1: {}, at2: {}, "http://10.0.0.2:9999": {}}
		e := newElsewhere(t, nil, xxljob.Config{App: "far", HTTP: xxljob.HTTPConfig{Tokens: tokensOf("far")}}, peers)
		stage.Must(t, e.Handle("work", stage.NothingToDo))
		e.register("far", at2, "http://10.0.0.2:9999", at1)
		id := e.trigger(xxljob.Job{App: "far", Route: "SHARDING_BROADCAST"})
		time.Sleep(time.Second)
		for _, r := range stage.AllOf(t, e.store, xxljob.RunFilter{TriggerID: id}) {
			if r.Sharding.Total != 3 {
				t.Errorf("part %v", r.Sharding)
			}
			if _, local := store.LocalIncarnation(r.Address); local {
				e.mustBe(r.ID, xxljob.StateSucceeded)
				continue
			}
			e.mustBe(r.ID, xxljob.StateDispatched)
			e.report(r.ID, 200, fmt.Sprint("part ", r.Sharding.Index))
			e.mustBe(r.ID, xxljob.StateSucceeded)
		}
		for a, p := range peers {
			for _, r := range p.sent() {
				if r.BroadcastTotal != 3 {
					t.Errorf("%s was sent %d/%d", a, r.BroadcastIndex, r.BroadcastTotal)
				}
			}
		}
		if n, twin := len(peers[at2].sent()), len(peers["http://10.0.0.2:9999"].sent()); n+twin != 1 || len(peers[at1].sent()) != 1 {
			t.Errorf("sent %d, %d and %d times", len(peers[at1].sent()), n, twin)
		}
	})
}

// TestTokenRotation: of two tokens the first is sent, and the other where an executor
// refuses that; what it has accepted is used from then on.
func TestTokenRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		old := &peer{token: "the-old-one"}
		s := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"far": {"the-new-one", "the-old-one"}, "": {stage.Token}}}}, map[string]*peer{at1: old})
		xxljob.DialWith(s.Scheduler, func(app, address, token string) (wire.Executor, error) {
			return countingPeer{peerClient{old, token}, &tries}, nil
		})
		if ret := stage.Post(t, s.admin, "the-old-one", "", "registry", wire.RegistryRequest{RegistryGroup: "EXECUTOR", RegistryKey: "far", RegistryValue: at1}.Encode(nil)); !ret.OK() {
			t.Fatal(ret)
		}
		for i := range 3 {
			id := s.trigger(xxljob.Job{App: "far", Name: fmt.Sprint(i)})
			synctest.Wait()
			s.mustBe(id, xxljob.StateDispatched)
		}
		if tries != 4 { // the new one once, then the old one
			t.Errorf("%d calls for three runs", tries)
		}
	})
}

type countingPeer struct {
	peerClient
	n *int
}

func (c countingPeer) Run(ctx context.Context, r wire.TriggerRequest) (wire.Return, error) {
	*c.n++
	return c.peerClient.Run(ctx, r)
}

// TestTokenOfTheApp: an executor is sent the tokens of its app, and only where it has
// none those that all share.
func TestTokenOfTheApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, shared := &peer{token: "of-far"}, &peer{token: stage.Token}
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"far": {"of-far"}, "": {stage.Token}}}}, map[string]*peer{at1: own, at2: shared})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "wide", Manual: true, Addresses: []string{at2}}))
		a, b := e.trigger(xxljob.Job{App: "far"}), e.trigger(xxljob.Job{App: "wide"})
		synctest.Wait()
		e.mustBe(a, xxljob.StateDispatched)
		e.mustBe(b, xxljob.StateDispatched)
	})
}

// TestGivenAddresses: a trigger may name addresses of its app, in whatever spelling, and
// no others: a token would go there.
func TestGivenAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := map[string]*peer{at1: {}, at2: {}, "http://evil.example:80/": {}}
		e := newElsewhere(t, nil, xxljob.Config{}, peers)
		e.register("far", at1, at2)
		e.register("other", at3)
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", Handler: "work", Route: "FIRST"})
		stage.Must(t, err)
		for _, c := range []struct {
			given string
			want  xxljob.State
		}{{"HTTP://10.0.0.2:9999", xxljob.StateDispatched}, {"http://evil.example:80/", xxljob.StateRefused}, {at3, xxljob.StateRefused}} {
			ids, err := e.Trigger(t.Context(), job.ID, xxljob.Trigger{Addresses: []string{c.given}})
			stage.Must(t, err)
			synctest.Wait()
			run := e.mustBe(ids[0], c.want)
			if c.want == xxljob.StateRefused && !strings.Contains(run.TriggerMsg, c.given) {
				t.Errorf("%q does not name %s", run.TriggerMsg, c.given)
			}
		}
		if len(peers[at2].sent()) != 1 || len(peers[at1].sent()) != 0 || len(peers["http://evil.example:80/"].sent()) != 0 {
			t.Error("sent elsewhere")
		}
	})
}

// TestRemoteKill: a kill is passed on with the run's id, and recorded when it is
// answered; one that is refused, or not answered, is an error and changes nothing.
func TestRemoteKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ret wire.Return
		var err error
		p := &peer{kill: func(wire.KillRequest) (wire.Return, error) { return ret, err }}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far"})
		synctest.Wait()
		ret = wire.Failf("not now")
		if err := e.Kill(t.Context(), id); err == nil || !strings.Contains(err.Error(), "not now") {
			t.Errorf("a refused kill: %v", err)
		}
		err = errHungUp
		if got := e.Kill(t.Context(), id); !errors.Is(got, errHungUp.Err) {
			t.Errorf("an unanswered kill: %v", got)
		}
		e.mustBe(id, xxljob.StateDispatched)
		ret, err = wire.Success(), nil
		stage.Must(t, e.Kill(t.Context(), id))
		run := e.mustBe(id, xxljob.StateKilled)
		if got := p.killed(); len(got) != 3 || got[2] != (wire.KillRequest{JobID: run.JobID, LogID: id, LogDateTime: run.Created.UnixMilli(), Reason: wire.StopKill}) || run.HandleMsg != wire.StopKill {
			t.Errorf("asked for %+v, recorded %q", got, run.HandleMsg)
		}
		// What the executor itself says of it comes too late, and is acknowledged.
		e.report(id, 500, fmt.Sprintf(wire.MsgKilledRunning, wire.StopKill))
		e.mustBe(id, xxljob.StateKilled)

		e.deregister("far", at1)
		time.Sleep(2 * time.Minute) // longer than Dead, for which nobody knows that it does not come back
		id2, jobID := e.trigger(xxljob.Job{App: "far", Name: "2"}), run.JobID
		synctest.Wait()
		e.mustBe(id2, xxljob.StateRefused)
		_ = jobID
	})
}

// TestKillReportedQuickly: the report of a killed run may be quicker than the answer to
// the kill. Third-party executors have their own words for it, or none; one of ours
// says that it was a kill, and what it does not say so of has failed by itself.
func TestKillReportedQuickly(t *testing.T) {
	for _, c := range []struct {
		name, msg string
		exact     bool
		code      int
		want      xxljob.State
	}{
		{"Java", fmt.Sprintf(wire.MsgKilledRunning, wire.StopKill), false, wire.CodeFail, xxljob.StateKilled},
		{"Python", "CancelledError", false, wire.CodeFail, xxljob.StateKilled},
		{"Go", "task panic:context canceled", false, wire.CodeFail, xxljob.StateKilled},
		{"had ended well", "done", false, wire.CodeSuccess, xxljob.StateSucceeded},
		{"ours, failed by itself", "disk full", true, wire.CodeFail, xxljob.StateFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e *elsewhere
				p := &peer{kill: func(r wire.KillRequest) (wire.Return, error) {
					e.callback(wire.CallbackRequest{LogID: r.LogID, HandleCode: c.code, HandleMsg: c.msg, Exact: c.exact})
					return wire.Success(), nil
				}}
				e = newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
				e.register("far", at1)
				id := e.trigger(xxljob.Job{App: "far"})
				synctest.Wait()
				stage.Must(t, e.Kill(t.Context(), id))
				if run := e.mustBe(id, c.want); run.HandleMsg != c.msg {
					t.Errorf("recorded %q", run.HandleMsg)
				}
			})
		})
	}
}

// TestKillTooLate: an executor that refuses to kill what it does not have is right when
// the run has ended meanwhile.
func TestKillTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *elsewhere
		p := &peer{kill: func(r wire.KillRequest) (wire.Return, error) {
			e.report(r.LogID, wire.CodeSuccess, "done")
			return wire.Failf("Task kill err"), nil
		}}
		e = newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far"})
		synctest.Wait()
		stage.Must(t, e.Kill(t.Context(), id))
		e.mustBe(id, xxljob.StateSucceeded)
	})
}

// TestKillOnTheWay: a run that is killed while its executor has not answered the trigger
// is killed there when it has; one that is killed before it is sent is not sent.
func TestKillOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		p := &peer{}
		p.run = func(int, wire.TriggerRequest) (wire.Return, error) { <-answer; return wire.Success(), nil }
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far"})
		synctest.Wait()
		stage.Must(t, e.Kill(t.Context(), id)) // answered "already killed": it is not there yet
		close(answer)
		time.Sleep(time.Second)
		e.mustBe(id, xxljob.StateKilled)
		if n := len(p.killed()); n != 2 {
			t.Errorf("%d kills: the run goes on", n)
		}
	})
}

// TestRemoteLog: lines are read at the executor, with the date that it was sent; not
// from an address that is its app's no more.
func TestRemoteLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked wire.LogRequest
		p := &peer{log: func(r wire.LogRequest) (wire.LogReturn, error) {
			asked = r
			res := wire.LogResult{FromLineNum: r.FromLineNum, ToLineNum: 2, LogContent: "one\ntwo\n"}
			if r.FromLineNum > 2 {
				res = wire.LogResult{FromLineNum: r.FromLineNum} // as 3.3 and later say that there is no more
			}
			return wire.LogReturn{Code: 200, Result: res}, nil
		}}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far"})
		synctest.Wait()
		res, err := e.Log(t.Context(), id, 1)
		stage.Must(t, err)
		if res != (wire.LogResult{FromLineNum: 1, ToLineNum: 2, LogContent: "one\ntwo\n"}) {
			t.Errorf("running: %+v", res)
		}
		if want := (wire.LogRequest{LogDateTim: p.sent()[0].LogDateTime, LogID: id, FromLineNum: 1}); asked != want {
			t.Errorf("asked %+v, want %+v", asked, want)
		}
		e.report(id, 200, "")
		if res, err = e.Log(t.Context(), id, 3); err != nil || !res.IsEnd || res.LogContent != "" {
			t.Errorf("at the end: %+v, %v", res, err)
		}
		e.deregister("far", at1)
		if _, err := e.Log(t.Context(), id, 1); err != nil { // it lets its runs end
			t.Errorf("from an executor that has just said good-bye: %v", err)
		}
		time.Sleep(2 * time.Minute)
		asked = wire.LogRequest{}
		if _, err := e.Log(t.Context(), id, 1); !errors.Is(err, xxljob.ErrNoLog) || !strings.Contains(err.Error(), "not an address of app far any more") {
			t.Errorf("from a gone executor: %v", err)
		}
		if asked != (wire.LogRequest{}) {
			t.Error("a gone executor was asked, and sent the token")
		}
	})
}

// TestRemoteLogIsFollowed: third-party executors say different things at the end of
// the lines that are there. Whoever goes on behind ToLineNum, until IsEnd, gets each line
// once.
func TestRemoteLogIsFollowed(t *testing.T) {
	for _, c := range []struct {
		name   string
		early  bool                     // IsEnd at the end of what is there
		behind func(from, last int) int // ToLineNum behind it
	}{
		{"2.x", false, func(_, last int) int { return last }},
		{"3.3", false, func(int, int) int { return 0 }},
		{"Python", true, func(from, _ int) int { return from }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				p := &peer{log: func(r wire.LogRequest) (wire.LogReturn, error) {
					res := wire.LogResult{FromLineNum: r.FromLineNum, IsEnd: c.early}
					if r.FromLineNum > len(lines) {
						res.ToLineNum = c.behind(r.FromLineNum, len(lines))
					} else {
						res.ToLineNum, res.LogContent = len(lines), strings.Join(lines[r.FromLineNum-1:], "")
					}
					return wire.LogReturn{Code: 200, Result: res}, nil
				}}
				e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
				e.register("far", at1)
				id := e.trigger(xxljob.Job{App: "far"})
				synctest.Wait()
				var got strings.Builder
				next, ended := 1, false
				pull := func() {
					res, err := e.Log(t.Context(), id, next)
					stage.Must(t, err)
					got.WriteString(res.LogContent)
					next, ended = res.ToLineNum+1, res.IsEnd
				}
				for i := range 3 {
					lines = append(lines, fmt.Sprintf("%d one\n", i), fmt.Sprintf("%d two\n", i))
					for range 3 {
						if pull(); ended {
							t.Fatalf("it is said to end at line %d, and the run goes on", next-1)
						}
					}
				}
				lines = append(lines, "last\n")
				e.report(id, 200, "")
				for range 3 {
					if pull(); ended {
						break
					}
				}
				if got.String() != strings.Join(lines, "") || !ended {
					t.Errorf("ended: %v, read:\n%s", ended, got.String())
				}
			})
		})
	}
}

// TestStopLeavesRemoteRuns: Stop neither kills what runs elsewhere nor waits for it, and
// puts back what was started and not sent.
func TestStopLeavesRemoteRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		st := memory.New()
		e := newElsewhere(t, st, xxljob.Config{Node: "a"}, map[string]*peer{at1: p})
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far"})
		synctest.Wait()
		began := time.Now()
		stage.Must(t, e.Stop(t.Context()))
		if took := time.Since(began); took > time.Second {
			t.Errorf("Stop took %v", took)
		}
		e.mustBe(id, xxljob.StateDispatched)
		if len(p.killed()) > 0 {
			t.Error("killed")
		}
		// The result comes to another node, or to this one, which serves on.
		e.report(id, 200, "late")
		e.mustBe(id, xxljob.StateSucceeded)
		next := newElsewhere(t, st, xxljob.Config{Node: "b"}, e.peers)
		id = next.trigger(xxljob.Job{App: "far", Name: "2"})
		synctest.Wait()
		next.report(id, 200, "")
		next.mustBe(id, xxljob.StateSucceeded)
	})
}
