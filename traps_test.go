package xxljob_test

// The traps of XXL-JOB's protocol that only show in the whole scheduler; those of single
// messages are tested in package wire. The numbers are those of the list in section 8.

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/wire"
)

// TestTrap8Spelling: peers and their users match on these texts, odd as they are.
func TestTrap8Spelling(t *testing.T) {
	for got, want := range map[string]string{
		block.MsgDiscard:           "block strategy effect\uFF1ADiscard Later",
		block.MsgCover:             "block strategy effect\uFF1ACover Early",
		wire.MsgRepeat:             "repeat trigger job, logId:%d",
		wire.MsgTimeout:            "job execute timeout ",
		wire.MsgBusy:               "job thread is running or has trigger queue.",
		wire.MsgAlreadyKilled:      "job thread already killed.",
		wire.MsgKilledQueued:       "%s [job not executed, in the job queue, killed.]",
		wire.StopShutdown:          "web container destroy and kill the job.",
		wire.MsgHandlerNotFound:    "job handler [%s] not found.",
		wire.MsgMethod:             "invalid request, HttpMethod not support.",
		wire.MsgIllegalArgument:    "Illegal Argument.",
		wire.MsgIdentityInvalid:    "invalid request, accessToken or appname invalid.",
		wire.MsgNoLog:              "readLog fail, logFile not exists",
		string(xxljob.TriggerCron): "CRON",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTrap16ShardsByPosition: addresses sort as strings, the index of a part is the
// place in that list, and a part beyond a list that has shrunk goes to the first.
func TestTrap16ShardsByPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := map[string]*peer{"http://10.0.0.10:9999/": {}, "http://10.0.0.9:9999/": {}}
		e := newElsewhere(t, nil, xxljob.Config{}, peers)
		e.register("far", "http://10.0.0.9:9999/", "http://10.0.0.10:9999/")
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", Handler: "work", Route: "SHARDING_BROADCAST"})
		stage.Must(t, err)
		stage.Trigger(t, e, job)
		synctest.Wait()
		for i, a := range []string{"http://10.0.0.10:9999/", "http://10.0.0.9:9999/"} {
			if sent := peers[a].sent(); len(sent) != 1 || sent[0].BroadcastIndex != i || sent[0].BroadcastTotal != 2 {
				t.Errorf("%s was sent %+v", a, sent)
			}
		}
		_, err = e.Trigger(t.Context(), job.ID, xxljob.Trigger{Shard: xxljob.Sharding{Index: 2, Total: 3}})
		stage.Must(t, err)
		synctest.Wait()
		if sent := peers["http://10.0.0.10:9999/"].sent(); len(sent) != 2 || sent[1].BroadcastIndex != 2 || sent[1].BroadcastTotal != 3 {
			t.Errorf("the part beyond the list: %+v", sent)
		}
	})
}

// TestTrap17SharedAddresses: one address may serve two apps, and one process be registered
// under two addresses.
func TestTrap17SharedAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p, at2: p})
		e.register("one", at1, at2)
		e.register("two", at1)
		for _, app := range []string{"one", "two"} {
			id := e.trigger(xxljob.Job{App: app, Name: app, Route: "FIRST"})
			synctest.Wait()
			e.mustBe(id, xxljob.StateDispatched)
		}
		e.deregister("one", at1)
		id := e.trigger(xxljob.Job{App: "two", Name: "again", Route: "FIRST"})
		synctest.Wait()
		if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at1 {
			t.Errorf("app two lost its address with app one: %s", run.Address)
		}
	})
}

// TestTrap18ScriptVersions: two edits of a script within a second are two versions.
func TestTrap18ScriptVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", GlueType: "GLUE_PYTHON", GlueSource: "print(0)", GlueRemark: "zero"})
		stage.Must(t, err)
		for _, source := range []string{"print(1)", "print(2)"} {
			time.Sleep(2 * time.Millisecond)
			job.GlueSource = source
			job, err = e.UpdateJob(t.Context(), job)
			stage.Must(t, err)
			stage.Trigger(t, e, job)
			synctest.Wait()
		}
		sent := p.sent()
		if len(sent) != 2 || sent[0].GlueUpdatetime >= sent[1].GlueUpdatetime || sent[1].GlueSource != "print(2)" || sent[1].GlueType != "GLUE_PYTHON" {
			t.Errorf("sent %+v", sent)
		}
	})
}

// TestTrap20Params: a parameter given by hand, the empty one too, takes the place of the
// job's; a schedule sends the job's.
func TestTrap20Params(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", Handler: "work", Param: "own", Schedule: xxljob.Cron("0 0 0/1 * * ?")})
		stage.Must(t, err)
		given, empty := "given", ""
		for _, param := range []*string{nil, &given, &empty} {
			_, err := e.Trigger(t.Context(), job.ID, xxljob.Trigger{Param: param})
			stage.Must(t, err)
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		var got []string
		for _, r := range p.sent() {
			got = append(got, r.ExecutorParams)
		}
		if want := []string{"own", "given", "", "own"}; !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
	})
}

// TestTrap29Discarded: a run that a block strategy has discarded is a failed one.
func TestTrap29Discarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{run: func(int, wire.TriggerRequest) (wire.Return, error) { return wire.Failf(block.MsgDiscard), nil }}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far", Block: block.DiscardLater})
		synctest.Wait()
		if trigger, handle := e.mustBe(id, xxljob.StateDiscarded).State.Codes(); trigger != wire.CodeFail || handle != 0 {
			t.Errorf("codes %d and %d", trigger, handle)
		}
	})
}

// TestTrap30KillOfNothing: a kill that finds nothing to kill is answered 200 all the same,
// and ends the run.
func TestTrap30KillOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{kill: func(wire.KillRequest) (wire.Return, error) { return wire.Noted(wire.MsgAlreadyKilled), nil }}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far"})
		synctest.Wait()
		stage.Must(t, e.Kill(t.Context(), id))
		e.mustBe(id, xxljob.StateKilled)
	})
}
