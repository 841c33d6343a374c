package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

var everyState = []store.State{
	store.StatePlanned, store.StateStarted, store.StateDispatched, store.StateSucceeded,
	store.StateFailed, store.StateTimedOut, store.StateKilled, store.StateLost,
	store.StateRefused, store.StateDiscarded, store.StateSkipped, store.StateCancelled,
	store.StateSnoozed,
}

// TestStateMatrix is the state function as a whole: a row is a state, a column
// what it may become, in the order of everyState.
func TestStateMatrix(t *testing.T) {
	for i, row := range []string{
		//        PSDSFTKLRDSCZ
		/* planned    */ ".x......xx.x.", // discarded: a later cover is started
		/* started    */ "x.xxxxxxxx.xx", // cancelled: put back to a job that is stopped
		/* dispatched */ "...xxxxxxx..x",
		/* succeeded  */ ".............",
		/* failed     */ ".............",
		/* timed out  */ ".............",
		/* killed     */ ".............",
		/* lost       */ ".............",
		/* refused    */ ".............",
		/* discarded  */ ".............",
		/* skipped    */ ".............",
		/* cancelled  */ ".............",
		/* snoozed    */ ".............",
	} {
		for k, next := range everyState {
			if got, want := everyState[i].CanBecome(next), row[k] == 'x'; got != want {
				t.Errorf("%v can become %v: %t, want %t", everyState[i], next, got, want)
			}
		}
	}
}

// TestStateCodes holds the projections on XXL-JOB's trigger_code and handle_code
// against the table of the design, and with them names and finality.
func TestStateCodes(t *testing.T) {
	for _, tt := range []struct {
		state           store.State
		name            string
		trigger, handle int
		ended           bool
	}{
		{store.StatePlanned, "planned", 0, 0, false},
		{store.StateStarted, "started", 0, 0, false},
		{store.StateDispatched, "dispatched", 200, 0, false},
		{store.StateSucceeded, "succeeded", 200, 200, true},
		{store.StateFailed, "failed", 200, 500, true},
		{store.StateTimedOut, "timed out", 200, 502, true},
		{store.StateKilled, "killed", 200, 500, true},
		{store.StateLost, "lost", 200, 500, true},
		{store.StateRefused, "refused", 500, 0, true},
		{store.StateDiscarded, "discarded", 500, 0, true},
		{store.StateSkipped, "skipped", 200, 200, true},
		{store.StateCancelled, "cancelled", 200, 200, true},
		{store.StateSnoozed, "snoozed", 200, 200, true},
	} {
		trigger, handle := tt.state.Codes()
		if trigger != tt.trigger || handle != tt.handle {
			t.Errorf("%s: codes %d/%d, want %d/%d", tt.name, trigger, handle, tt.trigger, tt.handle)
		}
		if tt.state.String() != tt.name || tt.state.Ended() != tt.ended {
			t.Errorf("%v, ended %t; want %s, %t", tt.state, tt.state.Ended(), tt.name, tt.ended)
		}
	}
	if got := store.State(99).String(); got != "State(99)" {
		t.Errorf("a state that does not exist is %q", got)
	}
}

// TestTriggerTypes: the first six are XXL-JOB's stored names; those that a
// schedule makes are known as such.
func TestTriggerTypes(t *testing.T) {
	for typ, born := range map[store.TriggerType]bool{
		"MANUAL": false, "CRON": true, "RETRY": false, "PARENT": false, "API": false, "MISFIRE": true,
		"FIX_RATE": true, "FIX_DELAY": true, "ONCE": true, "": false, "cron": false,
	} {
		if got := typ.ScheduleBorn(); got != born {
			t.Errorf("%q is born of a schedule: %t", typ, got)
		}
	}
	for typ, want := range map[store.TriggerType]string{
		store.TriggerManual: "MANUAL", store.TriggerCron: "CRON", store.TriggerRetry: "RETRY",
		store.TriggerParent: "PARENT", store.TriggerAPI: "API", store.TriggerMisfire: "MISFIRE",
		store.TriggerFixRate: "FIX_RATE", store.TriggerFixDelay: "FIX_DELAY", store.TriggerOnce: "ONCE",
	} {
		if string(typ) != want {
			t.Errorf("%q, want %q", typ, want)
		}
	}
}

// TestSharding: the text is XXL-JOB's executor_sharding_param.
func TestSharding(t *testing.T) {
	if got := (store.Sharding{Index: 2, Total: 3}).String(); got != "2/3" {
		t.Errorf("%q", got)
	}
}

// TestLateness counts from the instant to the start, and is zero before.
func TestLateness(t *testing.T) {
	r := store.Run{Scheduled: planNow}
	if d := r.Lateness(); d != 0 {
		t.Errorf("not started: %v", d)
	}
	r.Started = planNow.Add(3 * time.Millisecond)
	if d := r.Lateness(); d != 3*time.Millisecond {
		t.Errorf("started: %v", d)
	}
}

// TestTriggerFaults: every fault of a Trigger at once, each with field and
// value.
func TestTriggerFaults(t *testing.T) {
	long, minus := strings.Repeat("p", 64<<10+1), -1
	err := store.Trigger{
		Key: strings.Repeat("k", 256), Type: "CRON", Param: &long, Shard: store.Sharding{Index: 3, Total: 3}, Retries: &minus,
		Addresses: make([]string, 1001),
	}.Validate()
	requireFaults(t, err, "trigger", map[string]string{
		"Key": "kkkk", "Type": "CRON", "Param": "pppp", "Shard": "3/3", "Retries": "-1", "Addresses": "at most 1000",
	})
	requireFaults(t, store.Trigger{Addresses: []string{"http://a", long[:64<<10-7]}}.Validate(), "trigger", map[string]string{"Addresses": "65537 bytes, at most 65536"})
	addresses := slices.Repeat([]string{long[:65]}, 1000)
	if err := (store.Trigger{Addresses: slices.Repeat(addresses, 2)}).Repeating(&store.Run{}).Validate(); err != nil {
		t.Errorf("a run that was there before the bound, once more: %v", err)
	}
	for _, tr := range []store.Trigger{{}, {Type: store.TriggerAPI}, {Shard: store.Sharding{Index: 2, Total: 3}}, {Param: new(string)}, {Addresses: addresses}, {Addresses: []string{long[:64<<10]}}} {
		if err := tr.Validate(); err != nil {
			t.Errorf("%+v: %v", tr, err)
		}
	}
}

// requireFaults checks an error of many faults: one for each field, which names
// the field and its value, and no more.
func requireFaults(t *testing.T, err error, what string, fields map[string]string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	faults := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		faults = joined.Unwrap()
	}
	if len(faults) != len(fields) {
		t.Errorf("%d faults, want %d:\n%v", len(faults), len(fields), err)
	}
	for field, value := range fields {
		found := false
		for _, f := range faults {
			rest, ok := strings.CutPrefix(f.Error(), "xxljob: "+what+": "+field+" ")
			found = found || ok && strings.Contains(rest, value)
		}
		if !found {
			t.Errorf("no fault of %s names %q:\n%v", field, value, err)
		}
	}
}

// TestStatesThatDoNotExist: no run becomes a state that there is not.
func TestStatesThatDoNotExist(t *testing.T) {
	for _, s := range everyState {
		if s.CanBecome(store.StateSnoozed + 1) {
			t.Errorf("%v can become %v", s, store.StateSnoozed+1)
		}
	}
}

// planNow is the instant that tests of values go by.
var planNow = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
