package interop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

func timeout(t *testing.T, s *site) {
	req := s.request("sleep", forever)
	req.ExecutorTimeout = 1
	s.accepted(t, req, 1)
	s.resultIs(t, req, s.timeout)
	eventually(t, time.Minute, "the handler is interrupted", func() bool { return len(s.entries(t, req.LogID, "interrupted")) == 1 })
	quick := s.request("sleep", "200")
	quick.ExecutorTimeout = 10
	s.accepted(t, quick, 1)
	s.resultIs(t, quick, success("slept 200"))
}

func kill(t *testing.T, s *site) {
	running := s.request("sleep", forever)
	s.accepted(t, running, 1)
	s.started(t, running)
	queued := s.again(running)
	if s.noQueue == "" {
		s.accepted(t, queued, 0)
	}
	r, err := s.client.Kill(t.Context(), wire.KillRequest{JobID: running.JobID})
	if err != nil || !r.OK() {
		t.Errorf("kill: %+v, %v", r, err)
	}
	s.resultIs(t, running, s.killed)
	eventually(t, time.Minute, "the handler is interrupted", func() bool { return len(s.entries(t, running.LogID, "interrupted")) == 1 })
	switch {
	case s.noQueue != "":
	case s.dropped.code != 0:
		s.resultIs(t, queued, s.dropped)
	default:
		// The next run of the job comes behind it, if it comes at all.
		next := s.again(running)
		next.ExecutorParams = "1"
		s.accepted(t, next, 1)
		s.resultIs(t, next, success("slept 1"))
		if got := s.admin.resultsOf(queued.LogID); len(got) > 0 {
			t.Errorf("the queued run is reported: %+v", got)
		}
	}
}

func killNothing(t *testing.T, s *site) {
	r, err := s.client.Kill(t.Context(), wire.KillRequest{JobID: s.id()})
	if err != nil || r.Code != s.idle.code {
		t.Fatalf("%+v, %v, want code %d", r, err, s.idle.code)
	}
	if r.Msg != s.idle.text && r.Note() != s.idle.text {
		t.Errorf("%+v, want the text %q", r, s.idle.text)
	}
}

func failing(t *testing.T, s *site) {
	for how, text := range map[string]string{"throw": s.thrown, "say": s.said} {
		req := s.request("fail", how+" disk is <full>")
		s.accepted(t, req, 1)
		s.resultIs(t, req, outcome{code: wire.CodeFail, text: fmt.Sprintf(text, "disk is <full>"), part: true})
	}
}
