package xxljob_test

// Results that executors elsewhere report.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestTrap12And14CallbackWithoutEffect: what no run of the caller waits for is acknowledged, so that
// no executor sends it for ever, and changes nothing (traps 12 and 14).
func TestTrap12And14CallbackWithoutEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := map[string][]string{"": {stage.Token}, "mine": {"of-mine"}, "far": {"of-far"}}
		e := newElsewhere(t, nil, xxljob.Config{App: "here", HTTP: xxljob.HTTPConfig{Tokens: tokens}}, map[string]*peer{at1: {token: "of-far"}})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		hold := make(chan struct{})
		stage.Must(t, e.Handle("work", func(ctx context.Context, _ *xxljob.Task) error { <-hold; return nil }))

		far := e.trigger(xxljob.Job{App: "far", Name: "far"})
		local := e.trigger(xxljob.Job{App: "here", Name: "local"})
		later, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "later", Handler: "work"})
		stage.Must(t, err)
		planned, err := e.Trigger(t.Context(), later.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)})
		stage.Must(t, err)
		synctest.Wait()
		say := func(token, app string, runs ...int64) {
			t.Helper()
			var list []wire.CallbackRequest
			for _, id := range runs {
				list = append(list, wire.CallbackRequest{LogID: id, HandleCode: 500, HandleMsg: "forged"})
			}
			if ret := stage.Post(t, e.admin, token, app, "callback", wire.EncodeCallback(nil, wire.CallbackList, list)); !ret.OK() {
				t.Errorf("callback of %v: %+v", runs, ret)
			}
		}
		say("of-far", "", 1<<40, -1, 0, planned[0], local)
		say("of-mine", "", far)          // another app's
		say("of-mine", "mine", far)      // the same, named
		say(stage.Token, "", far, local) // a token that all share is none of an app with its own
		e.mustBe(far, xxljob.StateDispatched)
		e.mustBe(local, xxljob.StateStarted)
		e.mustBe(planned[0], xxljob.StatePlanned)

		// In a batch with all that, the one result that matters is stored; repeated, and in
		// many copies, it stays as it is.
		if ret := stage.Post(t, e.admin, "of-far", "far", "callback", wire.EncodeCallback(nil, wire.CallbackObject, []wire.CallbackRequest{
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

// TestTrap10And24CallbackStates: how codes and texts of all makers are read (traps 10 and 24).
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
				if ret := stage.Post(t, e.admin, stage.Token, "", "callback", fmt.Appendf(nil, c.body, id)); !ret.OK() {
					t.Fatalf("%+v", ret)
				}
				if run := e.mustBe(id, c.want); run.HandleMsg != c.msg {
					t.Errorf("%.200q", run.HandleMsg)
				}
			})
		})
	}
}

// TestTrap13CallbackIsDurable: results are acknowledged after they are stored (trap 13). Those
// that could not be stored are tried again, also where nobody sends them again.
func TestTrap13CallbackIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := newElsewhere(t, faults, xxljob.Config{}, map[string]*peer{at1: {}})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		n := 0
		run := func() (id int64, result wire.CallbackRequest) {
			n++
			id = e.trigger(xxljob.Job{App: "far", Name: fmt.Sprint(n)})
			synctest.Wait()
			return id, wire.CallbackRequest{LogID: id, HandleCode: 200}
		}
		for _, f := range []storetest.Fault{{Before: true}, {Err: store.ErrLocked, Before: true}, {Hang: make(chan struct{})}} {
			id, result := run()
			faults.Inject("Finish", f)
			began := time.Now()
			if ret := e.callback(result); ret.OK() || time.Since(began) > 3*time.Second {
				t.Errorf("%+v after %v", ret, time.Since(began))
			}
			e.mustBe(id, xxljob.StateDispatched)
			faults.Clear()
			time.Sleep(10 * time.Second)
			if f.Err == nil { // some executors never send a result again
				e.mustBe(id, xxljob.StateSucceeded)
			}
			if ret := e.callback(result); !ret.OK() {
				t.Errorf("%+v", ret)
			}
			e.mustBe(id, xxljob.StateSucceeded)
		}
		id, result := run()
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

// TestCallbackAtAnotherNode: Wait hears of a result that comes to another node.
func TestCallbackAtAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, peers := memory.New(), map[string]*peer{at1: {}}
		a, b := newElsewhere(t, st, xxljob.Config{Node: "a"}, peers), newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
		a.register("far", at1)
		time.Sleep(5 * time.Second)
		id := a.trigger(xxljob.Job{App: "far"})
		time.Sleep(time.Second)
		go func() { time.Sleep(3 * time.Second); b.report(id, 200, "") }()
		if run := stage.WaitFor(t, a, id, 5*time.Second); run.State != xxljob.StateSucceeded {
			t.Errorf("%v", run.State)
		}
	})
}

// TestFixedDelayElsewhere: a job that waits for its run goes on when the result comes.
func TestFixedDelayElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		_, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", Handler: "work", Schedule: xxljob.FixedDelay(10 * time.Second)})
		stage.Must(t, err)
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
