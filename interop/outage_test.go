package interop_test

import (
	"testing"
	"time"
)

// adminAway has a run end while the admin is not there.
func adminAway(t *testing.T, s *site) {
	req := s.request("sleep", meanwhile)
	s.accepted(t, req, 1)
	s.started(t, req)
	s.admin.down()
	time.Sleep(20 * time.Second)
	if len(s.entries(t, req.LogID, "end")) != 1 {
		t.Errorf("the handler has not ended")
	}
	s.admin.up()
	back := time.Now()
	if s.forgets {
		// A later run is reported: the earlier one will not be.
		next := s.request("count", "")
		s.accepted(t, next, 1)
		s.resultIs(t, next, success(""))
		if got := s.admin.resultsOf(req.LogID); len(got) > 0 {
			t.Errorf("reported in spite of the outage: %+v", got)
		}
		return
	}
	s.resultWithin(t, 45*time.Second, req, success(slept))
	t.Logf("reported %v after the admin was back", time.Since(back).Round(time.Second))
}

// heartbeat looks at the registrations so far; by now there have been several.
func heartbeat(t *testing.T, s *site) {
	close := func() bool {
		all := s.admin.asked("registry")
		for i, r := range all[1:] {
			if gap := r.at.Sub(all[i].at); gap > s.heartbeat-2*time.Second && gap < s.heartbeat+2*time.Second {
				return true
			}
		}
		return false
	}
	eventually(t, 2*s.heartbeat+5*time.Second, "two registrations at the peer's own distance", close)
	for _, r := range s.admin.asked("registry") {
		if r.body != s.admin.asked("registry")[0].body {
			t.Errorf("registered %s after %s", r.body, s.admin.asked("registry")[0].body)
		}
	}
}

// restart kills the peer while a handler runs and starts another process at the
// same address. Nobody reports the run that was lost.
func restart(t *testing.T, s *site) {
	lost := s.request("sleep", forever)
	s.accepted(t, lost, 1)
	s.started(t, lost)
	before, client := s.address, s.client
	s.process.kill()
	if r, err := client.Beat(t.Context()); err == nil {
		t.Errorf("a dead peer answers %+v", r)
	}
	s.run(t)
	if s.address != before {
		t.Errorf("registered %q after %q", s.address, before)
	}
	s.client = client // its kept connections have ended with the process
	req := s.request("echo", "after")
	s.accepted(t, req, 1)
	s.resultIs(t, req, success("after"))
	if got := s.admin.resultsOf(lost.LogID); len(got) > 0 {
		t.Errorf("the lost run is reported: %+v", got)
	}
}

// leaves ends the peer as a deployment does.
func leaves(t *testing.T, s *site) {
	s.process.terminate(t)
	eventually(t, time.Minute, "the peer takes its registration back", func() bool { return len(s.admin.left()) > 0 })
	if got := s.admin.left()[0]; got != s.address {
		t.Errorf("took back %q, had registered %q", got, s.address)
	}
}
