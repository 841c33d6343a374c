package interop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// beside runs two runs of two jobs, and checks that both run at a time.
func beside(t *testing.T, s *site, one, two string) (a, b wire.TriggerRequest) {
	t.Helper()
	a, b = s.request(one, meanwhile), s.request(two, meanwhile)
	s.accepted(t, a, 1)
	s.started(t, a)
	s.accepted(t, b, 1)
	s.started(t, b)
	if len(s.entries(t, a.LogID, "")) > 0 {
		t.Errorf("the second began after the end of the first")
	}
	return a, b
}

func parallelJobs(t *testing.T, s *site) {
	a, b := beside(t, s, "sleep", "sleep2")
	s.resultIs(t, a, success(slept))
	s.resultIs(t, b, success(slept))
}

func sharedHandler(t *testing.T, s *site) {
	a, b := beside(t, s, "sleep", "sleep")
	if !s.oneByName {
		s.resultIs(t, a, success(slept))
		s.resultIs(t, b, success(slept))
		return
	}
	eventually(t, time.Minute, "the second run is reported twice", func() bool { return len(s.admin.resultsOf(b.LogID)) == 2 })
	if got := s.admin.resultsOf(a.LogID); len(got) > 0 {
		t.Errorf("the first run is reported: %+v", got)
	}
	// The first job runs for ever, as far as the peer can tell.
	if r, err := s.client.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: a.JobID}); err != nil || r.OK() {
		t.Errorf("the first job: %+v, %v", r, err)
	}
}

func shard(t *testing.T, s *site) {
	for index := range 3 {
		req := s.request("shard", "")
		req.BroadcastIndex, req.BroadcastTotal = index, 3
		s.accepted(t, req, 1)
		s.resultIs(t, req, success(fmt.Sprintf("%d/3", index)))
	}
}

// again makes another run of the same job.
func (s *site) again(req wire.TriggerRequest) wire.TriggerRequest {
	req.LogID, req.LogDateTime = s.id(), time.Now().UnixMilli()
	return req
}

func serial(t *testing.T, s *site) {
	first := s.request("sleep", meanwhile)
	s.accepted(t, first, 1)
	s.started(t, first)
	if s.noQueue != "" {
		s.refused(t, s.again(first), s.noQueue)
		s.resultIs(t, first, success(slept))
		return
	}
	runs := []wire.TriggerRequest{first, s.again(first), s.again(first)}
	for i := range runs[1:] {
		runs[i+1].ExecutorParams = "400"
		s.accepted(t, runs[i+1], 1)
	}
	for _, req := range runs {
		s.resultIs(t, req, success("slept "+req.ExecutorParams))
	}
	for i, req := range runs[1:] {
		if began, ended := s.entries(t, req.LogID, "start")[0], s.entries(t, runs[i].LogID, "end")[0]; began.at < ended.at {
			t.Errorf("run %d began %d ms before the end of its predecessor", i+1, ended.at-began.at)
		}
	}
}

func discardLater(t *testing.T, s *site) {
	req := s.request("sleep", meanwhile)
	req.ExecutorBlockStrategy = "DISCARD_LATER"
	s.accepted(t, req, 1)
	s.started(t, req)
	s.refused(t, s.again(req), s.discard)
	s.resultIs(t, req, success(slept))
}

func coverEarly(t *testing.T, s *site) {
	early := s.request("sleep", forever)
	early.ExecutorBlockStrategy = "COVER_EARLY"
	s.accepted(t, early, 1)
	s.started(t, early)
	late := s.again(early)
	late.ExecutorParams = "300"
	s.accepted(t, late, 1)
	if !s.oneByName {
		s.resultIs(t, early, s.covered)
		s.resultIs(t, late, success("slept 300"))
		return
	}
	// The early one reports itself under the id that is the task's by then.
	var got []result
	eventually(t, time.Minute, "two results", func() bool {
		got = append(s.admin.resultsOf(early.LogID), s.admin.resultsOf(late.LogID)...)
		return len(got) == 2
	})
	for _, r := range got {
		t.Logf("%d: %d %q", r.LogID-early.LogID, r.HandleCode, r.HandleMsg)
	}
}
