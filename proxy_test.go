package xxljob_test

// What stands between a scheduler and an executor: proxies, balancers, firewalls.

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/wire"
)

// answersStatus is a peer in front of which something answers triggers with a status.
func answersStatus(status int) *peer {
	return &peer{run: func(int, wire.TriggerRequest) (wire.Return, error) {
		return wire.Return{}, &wire.CallError{URL: at1 + "run", Sent: true, Status: status, From: "Server: gate"}
	}}
}

// TestTurnedAwayIsRefused: a status that no executor gives is a refusal at once, which says the
// status and where it came from. A result that comes all the same is noted, and the address is
// named as a trouble for a while, with nothing of what a secret job's run has ended with.
func TestTurnedAwayIsRefused(t *testing.T) {
	for _, status := range []int{302, 401, 403, 404, 413, 429} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := answersStatus(status)
				e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
				stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
				secret := status == 403
				id := e.trigger(xxljob.Job{App: "far", Secret: secret})
				time.Sleep(time.Second)
				run := e.mustBe(id, xxljob.StateRefused)
				if !strings.Contains(run.HandleMsg, fmt.Sprintf("HTTP status %d, by", status)) || !strings.Contains(run.HandleMsg, at1) || len(p.sent()) != 1 {
					t.Errorf("sent %d times: %q", len(p.sent()), run.HandleMsg)
				}
				if all := e.Troubles(); len(all) != 0 {
					t.Errorf("troubles before anything came: %v", all)
				}
				for range 2 {
					e.report(id, 200, "has run all the same")
				}
				run = e.mustBe(id, xxljob.StateRefused)
				if strings.Count(run.TriggerMsg, "a result came after the run was refused: succeeded") != 1 {
					t.Errorf("%q", run.TriggerMsg)
				}
				all := e.Troubles()
				if len(all) != 1 || all[0].Cause != xxljob.TroubleFalseRefusal || all[0].App != "far" || all[0].Address != at1 || strings.Contains(all[0].Detail, "HTTP status") == secret {
					t.Errorf("troubles %v", all)
				}
				time.Sleep(15 * time.Minute)
				if all := e.Troubles(); len(all) != 0 {
					t.Errorf("troubles after a while: %v", all)
				}
			})
		})
	}
}

// TestOtherStatusIsInDoubt: what an executor may be behind stays in doubt, and an executor that
// knows ids it was sent before is sent the run again.
func TestOtherStatusIsInDoubt(t *testing.T) {
	for _, status := range []int{400, 408, 500, 502, 503, 504} {
		synctest.Test(t, func(t *testing.T) {
			p := answersStatus(status)
			p.idle = func() (wire.Return, error) { return wire.Failf(wire.MsgBusy), nil }
			ours := answersStatus(status)
			e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p, at2: ours})
			e.register("far", at1)
			e.registerOurs("near", at2, "boot-1")
			id, again := e.trigger(xxljob.Job{App: "far"}), e.trigger(xxljob.Job{Name: "n", App: "near"})
			time.Sleep(30 * time.Second)
			e.mustBe(id, xxljob.StateStarted)
			if len(p.sent()) != 1 || len(ours.sent()) < 2 || ours.sent()[1].LogID != again {
				t.Errorf("%d: sent %d times, and %d times to one of ours", status, len(p.sent()), len(ours.sent()))
			}
		})
	}
}

// TestUnavailableIsNoAnswer: the status 503 to a question counts as nobody there when it has been
// the answer for fifteen seconds, and not before.
func TestUnavailableIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first time.Time
		p := &peer{idle: func() (wire.Return, error) {
			if first.IsZero() {
				first = time.Now()
			}
			return wire.Return{}, &wire.CallError{URL: at1, Sent: true, Status: 503}
		}}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		id := e.trigger(xxljob.Job{App: "far"})
		time.Sleep(5 * time.Minute)
		run := e.mustBe(id, xxljob.StateLost)
		if after := run.Ended.Sub(first); first.IsZero() || after < 105*time.Second {
			t.Errorf("lost %v after the first question: %q", after, run.HandleMsg)
		}
	})
}
