package interop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/route"
)

// failsOver routes by beats: to the first peer while it is there. See
// killedAndRestarted for the time when it is not.
func failsOver(t *testing.T, s *stage) {
	id := s.trigger(t, s.job(t, "count", "", routed(route.Failover)), 1)
	s.wellEnded(t, id, "")
	run := s.now(t, id)
	if s.at(t, run) != s.peers[0] || !strings.Contains(run.TriggerMsg, "probed:\n"+run.Address+": ok") {
		t.Errorf("run at %s:\n%s", run.Address, run.TriggerMsg)
	}
}

// busiesOver routes by idle beats: a job that runs at the first peer goes to the
// second one, and then nowhere.
func busiesOver(t *testing.T, s *stage) {
	job := s.job(t, "sleep", meanwhile, routed(route.Busyover))
	var ids []int64
	for _, p := range s.peers {
		id := s.trigger(t, job, 1)
		p.hasStarted(t, id)
		ids = append(ids, id)
	}
	s.turnedAway(t, s.trigger(t, job, 0), xxljob.StateRefused, s.busy)
	for i, id := range ids {
		s.wellEnded(t, id, slept)
		if at := s.at(t, s.now(t, id)); at != s.peers[i] {
			t.Errorf("run %d was at %s", i, at.registers())
		}
	}
}

// broadcasts sends each peer its part, by the place of its address among all.
func broadcasts(t *testing.T, s *stage) {
	job := s.job(t, "shard", "", routed(route.ShardingBroadcast))
	first := s.trigger(t, job, 1)
	s.ended(t, first)
	parts, err := s.store.Runs(t.Context(), xxljob.RunFilter{JobID: job.ID})
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) != len(s.peers) {
		t.Fatalf("%d parts: %+v", len(parts), parts)
	}
	for _, p := range parts {
		s.starts[p.ID] = 1
		if p.TriggerID != first || p.Sharding.Total != len(s.peers) {
			t.Errorf("part %+v", p)
		}
		s.wellEnded(t, p.ID, fmt.Sprintf("%d/%d", p.Sharding.Index, len(s.peers)))
		at := s.at(t, s.now(t, p.ID))
		if at != s.peers[p.Sharding.Index] || len(at.entries(t, p.ID, "end")) != 1 {
			t.Errorf("part %v was at %s", p.Sharding, at.registers())
		}
	}
}

// runsBeside has one peer run two jobs at a time.
func runsBeside(t *testing.T, s *stage) {
	a := s.begun(t, s.job(t, "sleep", meanwhile))
	b := s.begun(t, s.job(t, "sleep2", meanwhile))
	if len(s.peers[0].entries(t, a, "")) > 0 {
		t.Errorf("the second began after the end of the first")
	}
	for _, id := range []int64{a, b} {
		s.wellEnded(t, id, slept)
	}
}

// runsBehind sends one job three times to the same peer, whose queue it is.
func runsBehind(t *testing.T, s *stage) {
	job := s.job(t, "sleep", "400")
	runs := []int64{s.begun(t, job, meanwhile)}
	if s.noQueue != "" {
		s.turnedAway(t, s.trigger(t, job, 0), refusalState(s.noQueue), s.noQueue)
		s.wellEnded(t, runs[0], slept)
		return
	}
	for range 2 {
		runs = append(runs, s.trigger(t, job, 1))
	}
	s.wellEnded(t, runs[0], slept)
	for i, id := range runs[1:] {
		s.wellEnded(t, id, "slept 400")
		if began, ended := s.peers[0].entries(t, id, "start")[0], s.peers[0].entries(t, runs[i], "end")[0]; began.at < ended.at {
			t.Errorf("run %d began %d ms before the end of its predecessor", i+1, ended.at-began.at)
		}
	}
}
