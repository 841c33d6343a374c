package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestHandlerNeedsAToken: no token, no handler, unless the config says so in so many
// words; the default token of the samples is refused.
func TestHandlerNeedsAToken(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  xxljob.Config
		made bool
		ok   bool
	}{
		{"none", xxljob.Config{}, true, false},
		{"insecure", xxljob.Config{Insecure: true}, true, true},
		{"one", xxljob.Config{Tokens: map[string][]string{"": {hush}}}, true, true},
		{"the default", xxljob.Config{Tokens: map[string][]string{"": {"default_token"}}}, false, false},
		{"the default, allowed", xxljob.Config{Tokens: map[string][]string{"": {"default_token"}}, AllowDefaultToken: true}, true, true},
	} {
		s, err := xxljob.New(memory.New(), c.cfg)
		if (err == nil) != c.made {
			t.Errorf("%s: New: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		if h, err := s.Handler(); (err == nil) != c.ok || (h != nil) != c.ok {
			t.Errorf("%s: Handler: %v", c.name, err)
		}
	}
}

// TestRegistryAtOnce: an executor that registers gets the next run, and one that leaves
// does not, on the node that has heard of it; the others follow within seconds.
func TestRegistryAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, peers := memory.New(), map[string]*peer{at1: {}, at2: {}}
		a, b := newElsewhere(t, st, xxljob.Config{Node: "a"}, peers), newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
		time.Sleep(10 * time.Second)
		n := 0
		// route runs a job on both nodes' shards, and returns where it went.
		route := func() (went []string) {
			for range 8 { // in shards of both nodes
				n++
				id := a.trigger(xxljob.Job{App: "far", Name: fmt.Sprint(n), Route: "FIRST"})
				synctest.Wait()
				time.Sleep(time.Millisecond)
				went = append(went, a.state(id).Address)
			}
			slices.Sort(went)
			return slices.Compact(went)
		}
		a.register("far", at2)
		time.Sleep(2 * time.Second)
		if got := route(); !slices.Equal(got, []string{at2}) {
			t.Errorf("after the registration: %v", got)
		}
		a.register("far", at1)
		if got := route(); !slices.Contains(got, at1) {
			t.Errorf("a new executor is not there: %v", got)
		}
		time.Sleep(2 * time.Second)
		if got := route(); !slices.Equal(got, []string{at1}) {
			t.Errorf("two seconds later: %v", got)
		}
		b.deregister("far", strings.TrimSuffix(at1, "/")) // in another spelling
		time.Sleep(2 * time.Second)
		if got := route(); !slices.Equal(got, []string{at2}) {
			t.Errorf("after the removal: %v", got)
		}
	})
	// On the node itself there is nothing to wait for.
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {}, at2: {}})
		for i := range 10 { // flapping
			e.register("far", at1, at2)
			id := e.trigger(xxljob.Job{App: "far", Name: fmt.Sprint("with ", i), Route: "FIRST"})
			synctest.Wait()
			if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at1 {
				t.Fatalf("round %d: sent to %s", i, run.Address)
			}
			e.deregister("far", at1)
			id = e.trigger(xxljob.Job{App: "far", Name: fmt.Sprint("without ", i), Route: "FIRST"})
			synctest.Wait()
			if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at2 {
				t.Fatalf("round %d: sent to %s, which has left", i, run.Address)
			}
		}
	})
}

// TestRegistryDies: an executor that beats every 30 s stays; one that is silent for 90 s
// is not routed to, and is still to be seen in the store.
func TestRegistryDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {}, at2: {}})
		e.register("far", at1, at2)
		for range 20 {
			time.Sleep(30 * time.Second)
			e.register("far", at2)
		}
		synctest.Wait()
		regs, err := e.store.Addresses(t.Context(), "far", 90*time.Second)
		must(t, err)
		if len(regs) != 1 || regs[0].Address != at2 || time.Since(regs[0].Updated) > time.Second {
			t.Errorf("alive: %+v", regs)
		}
		id := e.trigger(xxljob.Job{App: "far", Route: "FIRST"})
		synctest.Wait()
		if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at2 {
			t.Errorf("sent to %s", run.Address)
		}
		regs, err = e.store.Registrations(t.Context(), xxljob.RegistrationFilter{})
		must(t, err)
		if len(regs) != 2 { // the app has no group
			t.Errorf("to be seen: %+v", regs)
		}
		if _, err := e.store.Group(t.Context(), "far"); err == nil {
			t.Error("a registration has made a group")
		}
	})
}

// TestRegistryForgets: what has been dead for a day is dropped by the next registration.
func TestRegistryForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, nil)
		for i := range 100 {
			e.register("far", fmt.Sprintf("http://10.1.0.%d/", i))
		}
		time.Sleep(25 * time.Hour)
		e.register("far", at1)
		time.Sleep(time.Second)
		regs, err := e.store.Registrations(t.Context(), xxljob.RegistrationFilter{Limit: 1000})
		must(t, err)
		if len(regs) != 1 {
			t.Errorf("%d registrations are left", len(regs))
		}
	})
}

// TestRegistryOfAnOldProcess: an executor that stops while its successor has registered at
// the same address does not take the successor away.
func TestRegistryOfAnOldProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {}})
		e.registerOurs("far", at1, "old")
		e.registerOurs("far", at1, "new")
		e.call("registryRemove", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "far", RegistryValue: at1, BootID: "old"})
		id := e.trigger(xxljob.Job{App: "far"})
		synctest.Wait()
		e.mustBe(id, xxljob.StateDispatched)
	})
}

// TestManualAddresses: a manual group goes by its own list, whatever registers.
func TestManualAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := map[string]*peer{at1: {}, at2: {}}
		e := newElsewhere(t, nil, xxljob.Config{}, peers)
		must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at2}}))
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far", Route: "FIRST"})
		synctest.Wait()
		if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at2 {
			t.Errorf("sent to %s", run.Address)
		}
	})
}

// countedStore counts what is asked of the registry.
type countedStore struct {
	xxljob.Store
	mu    sync.Mutex
	calls int
	most  int // registrations of one call
}

func (s *countedStore) PutAddresses(ctx context.Context, regs []xxljob.Registration) error {
	s.mu.Lock()
	s.calls++
	s.most = max(s.most, len(regs))
	s.mu.Unlock()
	return s.Store.PutAddresses(ctx, regs)
}

// TestTenThousandExecutors: beats are stored in batches, at most twenty a second, and all
// of them arrive.
func TestTenThousandExecutors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &countedStore{Store: memory.New()}
		e := newElsewhere(t, st, xxljob.Config{}, nil)
		const n, beat = 10_000, 30 * time.Second
		address := func(i int) string { return fmt.Sprintf("http://10.%d.%d.1:9999/", i/100, i%100) }
		for range 4 {
			for i := range n {
				go e.register("far", address(i))
				time.Sleep(beat / n)
			}
		}
		time.Sleep(time.Second)
		regs, err := st.Addresses(t.Context(), "far", beat+2*time.Second)
		must(t, err)
		if perSecond := float64(st.calls) / (4 * beat.Seconds()); len(regs) != n || perSecond > 20 {
			t.Errorf("%d registrations; %.1f calls a second, %d in one", len(regs), perSecond, st.most)
		}
	})
}

// TestRegistryStoreAway: a registration that cannot be stored is not acknowledged, but for
// the beat of an executor that is known; when the store is back so is everything.
func TestRegistryStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := newElsewhere(t, faults, xxljob.Config{}, nil)
		e.register("far", at1)
		faults.Inject("PutAddresses", storetest.Fault{Before: true})
		if ret := post(t, e.admin, hush, "", "registry", wire.RegistryRequest{RegistryGroup: "EXECUTOR", RegistryKey: "far", RegistryValue: at2}.Encode(nil)); ret.OK() {
			t.Error("acknowledged though it is not stored")
		}
		time.Sleep(time.Second)
		e.register("far", at1) // answered from memory
		time.Sleep(time.Second)
		if ret := post(t, e.admin, hush, "", "registry", wire.RegistryRequest{RegistryGroup: "EXECUTOR", RegistryKey: "far", RegistryValue: at1}.Encode(nil)); ret.OK() {
			t.Error("acknowledged again though the last one was not stored")
		}
		faults.Clear()
		e.register("far", at1, at2)
	})
	synctest.Test(t, func(t *testing.T) { // a store that hangs
		faults := storetest.Wrap(memory.New())
		hang := make(chan struct{})
		e := newElsewhere(t, faults, xxljob.Config{}, nil)
		faults.Inject("PutAddresses", storetest.Fault{Hang: hang})
		began := time.Now()
		if ret := post(t, e.admin, hush, "", "registry", wire.RegistryRequest{RegistryGroup: "EXECUTOR", RegistryKey: "far", RegistryValue: at2}.Encode(nil)); ret.OK() || time.Since(began) > 3*time.Second {
			t.Errorf("%+v after %v: its peer waits for 3 s", ret, time.Since(began))
		}
		close(hang)
	})
}

// TestCallbackWithoutEffect: what no run of the caller waits for is acknowledged, so that
// no executor sends it for ever, and changes nothing (traps 12 and 14).
func TestTrap12And14CallbackWithoutEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := map[string][]string{"": {hush}, "mine": {"of-mine"}, "far": {"of-far"}}
		e := newElsewhere(t, nil, xxljob.Config{App: "here", Tokens: tokens}, map[string]*peer{at1: {token: "of-far"}})
		must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		hold := make(chan struct{})
		must(t, e.Handle("work", func(ctx context.Context, _ *xxljob.Task) error { <-hold; return nil }))

		far := e.trigger(xxljob.Job{App: "far", Name: "far"})
		local := e.trigger(xxljob.Job{App: "here", Name: "local"})
		later, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "later", Handler: "work"})
		must(t, err)
		planned, err := e.Trigger(t.Context(), later.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)})
		must(t, err)
		synctest.Wait()
		say := func(token, app string, runs ...int64) {
			t.Helper()
			var list []wire.CallbackRequest
			for _, id := range runs {
				list = append(list, wire.CallbackRequest{LogID: id, HandleCode: 500, HandleMsg: "forged"})
			}
			if ret := post(t, e.admin, token, app, "callback", wire.EncodeCallback(nil, wire.CallbackList, list)); !ret.OK() {
				t.Errorf("callback of %v: %+v", runs, ret)
			}
		}
		say("of-far", "", 1<<40, -1, 0, planned[0], local)
		say("of-mine", "", far)     // another app's
		say("of-mine", "mine", far) // the same, named
		say(hush, "", far, local)   // a token that all share is none of an app with its own
		e.mustBe(far, xxljob.StateDispatched)
		e.mustBe(local, xxljob.StateStarted)
		e.mustBe(planned[0], xxljob.StatePlanned)

		// In a batch with all that, the one result that matters is stored; repeated, and in
		// many copies, it stays as it is.
		if ret := post(t, e.admin, "of-far", "far", "callback", wire.EncodeCallback(nil, wire.CallbackObject, []wire.CallbackRequest{
			{LogID: 1 << 40, HandleCode: 200}, {LogID: far, HandleCode: 200, HandleMsg: "first"}, {LogID: far, HandleCode: 500, HandleMsg: "second"},
			{LogID: planned[0], HandleCode: 200}})); !ret.OK() {
			t.Errorf("%+v", ret)
		}
		say("of-far", "", far, far)
		if run := e.mustBe(far, xxljob.StateSucceeded); run.HandleMsg != "first" {
			t.Errorf("%q", run.HandleMsg)
		}
		e.mustBe(planned[0], xxljob.StatePlanned)
		close(hold)
	})
}

// TestCallbackStates: how codes and texts of all makers are read (traps 10 and 24).
func TestTrap10And24CallbackStates(t *testing.T) {
	for _, c := range []struct {
		name string
		body string
		want xxljob.State
		msg  string
	}{
		{"success", `[{"logId":%d,"logDateTim":1,"handleCode":200}]`, xxljob.StateSucceeded, ""},
		{"failure", `[{"logId":%d,"handleCode":500,"handleMsg":"boom"}]`, xxljob.StateFailed, "boom"},
		{"timeout", `[{"logId":%d,"handleCode":502,"handleMsg":"job execute timeout "}]`, xxljob.StateTimedOut, "job execute timeout "},
		{"odd code", `[{"logId":%d,"handleCode":1}]`, xxljob.StateFailed, ""},
		{"no code", `[{"logId":%d}]`, xxljob.StateFailed, wire.MsgResultLost},
		{"code 0", `[{"logId":%d,"handleCode":0,"handleMsg":"eh"}]`, xxljob.StateFailed, "eh"},
		{"G1", `[{"logId":%d,"executeResult":{"code":200,"msg":"one"}}]`, xxljob.StateSucceeded, "one"},
		{"G4", `{"callbackList":[{"logId":%d,"logDateTime":1,"handleCode":200,"handleMsg":"four"}]}`, xxljob.StateSucceeded, "four"},
		{"killed running", `[{"logId":%d,"handleCode":500,"handleMsg":"scheduling center kill job. [job running, killed]"}]`, xxljob.StateKilled, "scheduling center kill job. [job running, killed]"},
		{"killed queued", `[{"logId":%d,"handleCode":500,"handleMsg":"x [job not executed, in the job queue, killed.]"}]`, xxljob.StateKilled, "x [job not executed, in the job queue, killed.]"},
		{"NUL", `[{"logId":%d,"handleCode":500,"handleMsg":"a\u0000b"}]`, xxljob.StateFailed, "a\uFFFDb"},
		{"long", `[{"logId":%d,"handleCode":500,"handleMsg":"` + strings.Repeat("语", 300_000) + `"}]`, xxljob.StateFailed, strings.Repeat("语", 5000) + "..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {}})
				e.register("far", at1)
				id := e.trigger(xxljob.Job{App: "far"})
				synctest.Wait()
				if ret := post(t, e.admin, hush, "", "callback", fmt.Appendf(nil, c.body, id)); !ret.OK() {
					t.Fatalf("%+v", ret)
				}
				if run := e.mustBe(id, c.want); run.HandleMsg != c.msg {
					t.Errorf("%.200q", run.HandleMsg)
				}
			})
		})
	}
}

// TestCallbackIsDurable: results are acknowledged after they are stored (trap 13).
func TestTrap13CallbackIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := newElsewhere(t, faults, xxljob.Config{}, map[string]*peer{at1: {}})
		must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		id := e.trigger(xxljob.Job{App: "far"})
		synctest.Wait()
		result := wire.CallbackRequest{LogID: id, HandleCode: 200}
		for _, f := range []storetest.Fault{{Before: true}, {Err: xxljob.ErrLocked, Before: true}, {Hang: make(chan struct{})}} {
			faults.Inject("Finish", f)
			began := time.Now()
			if ret := e.callback(result); ret.OK() || time.Since(began) > 3*time.Second {
				t.Errorf("%+v after %v", ret, time.Since(began))
			}
			e.mustBe(id, xxljob.StateDispatched)
			faults.Clear()
			time.Sleep(10 * time.Second)
		}
		faults.Inject("Finish", storetest.Fault{After: true, Calls: 1}) // stored, but nobody knows
		if ret := e.callback(result); ret.OK() {
			t.Errorf("%+v", ret)
		}
		if ret := e.callback(result); !ret.OK() {
			t.Errorf("%+v", ret)
		}
		e.mustBe(id, xxljob.StateSucceeded)
	})
}

// TestCallbackWakesWaiters: Wait hears of a result that comes to another node.
func TestCallbackAtAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, peers := memory.New(), map[string]*peer{at1: {}}
		a, b := newElsewhere(t, st, xxljob.Config{Node: "a"}, peers), newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
		a.register("far", at1)
		time.Sleep(5 * time.Second)
		id := a.trigger(xxljob.Job{App: "far"})
		time.Sleep(time.Second)
		go func() { time.Sleep(3 * time.Second); b.report(id, 200, "") }()
		if run := waitFor(t, a, id, 5*time.Second); run.State != xxljob.StateSucceeded {
			t.Errorf("%v", run.State)
		}
	})
}

// TestFixedDelayElsewhere: a job that waits for its run goes on when the result comes.
func TestFixedDelayElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		_, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", Handler: "work", Schedule: xxljob.FixedDelay(10 * time.Second)})
		must(t, err)
		for i := range 3 {
			time.Sleep(11 * time.Second)
			sent := p.sent()
			if len(sent) != i+1 {
				t.Fatalf("sent %d times", len(sent))
			}
			time.Sleep(30 * time.Second) // it runs for so long
			e.report(sent[i].LogID, 200, "")
		}
	})
}

// manage calls one of the verbs that manage jobs, as G4 does.
func manage(t *testing.T, h http.Handler, app, verb string, msg encoder) wire.Return {
	t.Helper()
	return post(t, h, "of-"+app, app, verb, msg.Encode(nil))
}

func definition(name string) wire.JobDefinition {
	return wire.JobDefinition{Name: name, Author: "ann", ScheduleType: "CRON", ScheduleConf: "0 0 3 * * ?", MisfireStrategy: "DO_NOTHING",
		ExecutorRouteStrategy: "FIRST", ExecutorHandler: "work", ExecutorParam: "p", ExecutorBlockStrategy: "SERIAL_EXECUTION",
		ExecutorTimeout: 3, ExecutorFailRetryCount: 2, GlueType: "BEAN"}
}

// TestJobAdmin: an app manages its own jobs over the wire, and sees no others.
func TestJobAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{Tokens: map[string][]string{"far": {"of-far"}, "other": {"of-other"}, "": {hush}}},
			map[string]*peer{at1: {token: "of-far"}})
		must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		added := manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobGroup: 99, JobDefinition: definition("nightly")})
		id, err := strconv.ParseInt(added.Data, 10, 64)
		if !added.OK() || err != nil || added.Content != added.Data {
			t.Fatalf("%+v: %v", added, err)
		}
		job := func() xxljob.Job {
			j, err := e.store.Job(t.Context(), id)
			must(t, err)
			return j
		}
		j := job()
		if !j.Stopped || j.App != "far" || j.Key != "" || j.Schedule != xxljob.Cron("0 0 3 * * ?") || j.Timeout != 3*time.Second || j.Retries != 2 || j.Author != "ann" {
			t.Errorf("added %+v", j)
		}
		if again := manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: definition("nightly")}); !again.OK() || again.Data == added.Data {
			t.Errorf("a second one of the same name: %+v", again)
		}

		one := wire.JobRequest{ID: id}
		changed := wire.UpdateJobRequest{ID: id, JobDefinition: definition("daily")}
		all := []struct {
			verb string
			msg  encoder
		}{{"updateJob", changed}, {"startJob", one}, {"stopJob", one}, {"triggerJob", wire.TriggerJobRequest{ID: id}}, {"removeJob", one}}
		for _, c := range all {
			want := wire.Failf("job %d not found.", id)
			if c.verb == "removeJob" {
				want = wire.Success() // it is not there: what was asked for is so
			}
			if ret := manage(t, e.admin, "other", c.verb, c.msg); ret != want {
				t.Errorf("%s by another app: %+v", c.verb, ret)
			}
			if ret := post(t, e.admin, hush, "", c.verb, c.msg.Encode(nil)); ret.OK() {
				t.Errorf("%s by nobody in particular: %+v", c.verb, ret)
			}
		}
		if got := job(); got.Version != j.Version {
			t.Errorf("changed by another app: %+v", got)
		}

		// Children, which a request cannot name, stay.
		withChild := job()
		withChild.Children = []int64{7}
		withChild.Schedule = withChild.Schedule.In("Asia/Shanghai")
		_, err = e.UpdateJob(t.Context(), withChild)
		must(t, err)
		if ret := manage(t, e.admin, "far", "updateJob", changed); !ret.OK() {
			t.Errorf("%+v", ret)
		}
		if got := job(); got.Name != "daily" || !slices.Equal(got.Children, []int64{7}) || got.Schedule.Zone != "Asia/Shanghai" || !got.Stopped {
			t.Errorf("updated %+v", got)
		}
		if ret := manage(t, e.admin, "far", "startJob", one); !ret.OK() || job().Stopped {
			t.Errorf("%+v", ret)
		}
		if ret := manage(t, e.admin, "far", "stopJob", one); !ret.OK() || !job().Stopped {
			t.Errorf("%+v", ret)
		}
		if ret := manage(t, e.admin, "far", "triggerJob", wire.TriggerJobRequest{ID: id, AddressList: "http://10.0.0.1:9999, "}); !ret.OK() {
			t.Errorf("%+v", ret)
		}
		synctest.Wait()
		if sent := e.peers[at1].sent(); len(sent) != 1 || sent[0].ExecutorParams != "" {
			t.Errorf("sent %+v", sent)
		}
		if runs := allOf(t, e.store, xxljob.RunFilter{JobID: id}); len(runs) != 1 || runs[0].Type != xxljob.TriggerAPI {
			t.Errorf("%+v", runs)
		}
		for range 2 { // the second time is a client's retry
			if ret := manage(t, e.admin, "far", "removeJob", one); ret != wire.Success() {
				t.Errorf("%+v", ret)
			}
		}
		if ret := manage(t, e.admin, "far", "removeJob", wire.JobRequest{}); ret != wire.Success() {
			t.Errorf("of no job: %+v", ret)
		}
		if j, err := e.store.Job(t.Context(), id); !errors.Is(err, xxljob.ErrNotFound) {
			t.Errorf("removed: %+v, %v", j, err)
		}
		log, err := e.store.Changes(t.Context(), id, 100)
		must(t, err)
		for _, c := range log {
			if c.Actor != "app:far" && c.Verb != "update" {
				t.Errorf("%s by %q", c.Verb, c.Actor)
			}
		}
	})
}

// TestJobAdminScripts: a script is added as a shell can read it, and no update of the
// rest of its job's definition touches it.
func TestJobAdminScripts(t *testing.T) {
	const script = "#!/bin/sh\r\necho a\rb\n"
	for _, c := range []struct {
		glue, stored string // the type, and what is stored of script
	}{
		{"GLUE_SHELL", "#!/bin/sh\necho ab\n"}, {"GLUE_PYTHON", script}, {"GLUE_GROOVY", script}, {"BEAN", script},
	} {
		t.Run(c.glue, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newElsewhere(t, nil, xxljob.Config{Tokens: map[string][]string{"far": {"of-far"}}}, nil)
				def := definition("script")
				def.GlueType, def.GlueSource, def.GlueRemark = c.glue, script, "first"
				if c.glue != "BEAN" {
					def.ExecutorHandler = ""
				}
				added := manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: def})
				id, err := strconv.ParseInt(added.Data, 10, 64)
				if err != nil {
					t.Fatalf("%+v", added)
				}
				before, err := e.store.Job(t.Context(), id)
				must(t, err)
				if before.GlueType != c.glue || before.GlueSource != c.stored || before.GlueRemark != "first" {
					t.Errorf("added %q %q %q", before.GlueType, before.GlueSource, before.GlueRemark)
				}
				time.Sleep(time.Minute)
				for i, change := range []func(*wire.JobDefinition){
					func(d *wire.JobDefinition) { d.GlueType, d.GlueSource, d.GlueRemark = "", "", "" },
					func(d *wire.JobDefinition) { d.GlueSource, d.GlueRemark = "exit 1", "second" },
					func(d *wire.JobDefinition) { d.GlueType = "GLUE_PHP" },
					func(d *wire.JobDefinition) { d.GlueType = "LISP" },
				} {
					to := def
					to.Name = fmt.Sprint("name ", i)
					change(&to)
					if ret := manage(t, e.admin, "far", "updateJob", wire.UpdateJobRequest{ID: id, JobDefinition: to}); !ret.OK() {
						t.Errorf("update %d: %+v", i, ret)
					}
					after, err := e.store.Job(t.Context(), id)
					must(t, err)
					if after.Name != to.Name || after.GlueType != before.GlueType || after.GlueSource != before.GlueSource ||
						after.GlueRemark != before.GlueRemark || !after.GlueUpdated.Equal(before.GlueUpdated) {
						t.Errorf("update %d: %q, %q %q %q of %v", i, after.Name, after.GlueType, after.GlueSource, after.GlueRemark, after.GlueUpdated)
					}
				}
			})
		})
	}
}

// TestJobAdminFaults: what is wrong with a request is said to its sender, and stores
// nothing; an error of the store is not.
func TestJobAdminFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := newElsewhere(t, faults, xxljob.Config{Tokens: map[string][]string{"far": {"of-far"}}}, nil)
		bad := definition("")
		bad.ScheduleConf, bad.ExecutorRouteStrategy, bad.ExecutorParam = "* * * * *", "NORTH", strings.Repeat("x", 1<<17)
		ret := manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: bad})
		for _, field := range []string{"Name", "Schedule", "Route", "Param"} {
			if ret.OK() || !strings.Contains(ret.Msg, field) {
				t.Errorf("%s is not named: %+v", field, ret)
			}
		}
		none := definition("manual")
		none.ScheduleType, none.ScheduleConf = "NONE", ""
		added := manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: none})
		id, _ := strconv.ParseInt(added.Data, 10, 64)
		if ret := manage(t, e.admin, "far", "startJob", wire.JobRequest{ID: id}); ret.OK() || !strings.Contains(ret.Msg, "no schedule") {
			t.Errorf("start of a manual job: %+v", ret)
		}
		faults.Inject("AddJob", storetest.Fault{Before: true})
		if ret := manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: definition("x")}); ret.OK() || !strings.HasSuffix(ret.Msg, "internal error") {
			t.Errorf("an error of the store: %+v", ret)
		}
		faults.Clear()
		jobs, err := e.store.Jobs(t.Context(), xxljob.JobFilter{})
		must(t, err)
		if len(jobs) != 1 {
			t.Errorf("%d jobs", len(jobs))
		}
	})
}

// TestJobAdminQuota: 100 calls in 30 s for each app.
func TestJobAdminQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{Tokens: map[string][]string{"far": {"of-far"}, "other": {"of-other"}}}, nil)
		one := wire.JobRequest{ID: 1}
		for i := range 100 {
			if ret := manage(t, e.admin, "far", "startJob", one); ret.Code != wire.CodeFail {
				t.Fatalf("call %d: %+v", i, ret)
			}
		}
		if ret := manage(t, e.admin, "far", "startJob", one); ret.Code != wire.CodeTimeout || ret.Msg != wire.MsgTooMany {
			t.Errorf("one more: %+v", ret)
		}
		if ret := manage(t, e.admin, "other", "startJob", one); ret.Code != wire.CodeFail {
			t.Errorf("another app: %+v", ret)
		}
		time.Sleep(30 * time.Second)
		if ret := manage(t, e.admin, "far", "startJob", one); ret.Code != wire.CodeFail {
			t.Errorf("30 s later: %+v", ret)
		}
	})
}

// TestRegistryFirst: a registration may be the first thing that a store hears of, before
// Start too.
func TestRegistryFirst(t *testing.T) {
	s, err := xxljob.New(memory.New(), xxljob.Config{Tokens: map[string][]string{"": {hush}}, Logger: quietLog()})
	must(t, err)
	h, err := s.Handler()
	must(t, err)
	msg := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "far", RegistryValue: at1}
	if ret := post(t, h, hush, "", "registry", msg.Encode(nil)); !ret.OK() {
		t.Errorf("%+v", ret)
	}
}
