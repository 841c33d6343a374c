package interop_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

func repeatQueued(t *testing.T, s *site) {
	first := s.request("sleep", meanwhile)
	s.accepted(t, first, 1)
	s.started(t, first)
	queued := s.again(first)
	queued.ExecutorParams = "1"
	if s.noQueue != "" { // so that it may be sent again when it can run
		s.refused(t, queued, s.noQueue)
		s.refused(t, queued, s.noQueue)
		s.resultIs(t, first, success(slept))
		s.accepted(t, queued, 1)
		s.resultIs(t, queued, success("slept 1"))
		return
	}
	if s.repeat == "" {
		s.accepted(t, queued, s.twice())
		s.accepted(t, queued, s.twice())
		s.resultsAre(t, queued, s.twice())
		return
	}
	s.accepted(t, queued, 1)
	s.refused(t, queued, s.repeat)
	s.starts[queued.LogID] = 1
	s.resultIs(t, queued, success("slept 1"))
}

// twice is how often a handler runs whose id was accepted twice.
func (s *site) twice() int {
	if s.once {
		return 1
	}
	return 2
}

// resultsAre waits until a run was reported n times.
func (s *site) resultsAre(t *testing.T, req wire.TriggerRequest, n int) {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("%d results of run %d", n, req.LogID), func() bool {
		return len(s.admin.resultsOf(req.LogID)) == n
	})
}

// repeatRunning sends an id again whose handler runs: the executors of others
// have forgotten it, and those with a queue run it again (docs/xxl-job.md, executors).
// That is why an outcome that is unknown must not be sent again to them.
func repeatRunning(t *testing.T, s *site) {
	req := s.request("sleep", meanwhile)
	s.accepted(t, req, 1)
	s.started(t, req)
	if s.noQueue != "" {
		s.refused(t, req, s.repeat)
		s.starts[req.LogID] = 1
		s.resultIs(t, req, success(slept))
		return
	}
	s.accepted(t, req, s.twice())
	s.resultsAre(t, req, s.twice())
}

// repeatAtOnce sends an id twice at the same moment. Whichever way it ends, the
// handler runs as often as the request was accepted, and ours once.
func repeatAtOnce(t *testing.T, s *site) {
	for range 5 {
		req := s.request("count", "")
		other := s.clientWith(t, theToken)
		var both sync.WaitGroup
		answers := make([]wire.Return, 2)
		for i, c := range []*wire.ExecutorClient{s.client, other} {
			both.Go(func() {
				r, err := c.Run(t.Context(), req)
				if err != nil {
					t.Error(err)
				}
				answers[i] = r
			})
		}
		both.Wait()
		n := 0
		for _, r := range answers {
			if r.OK() {
				n++
			}
		}
		if n == 0 {
			t.Fatalf("both were refused: %+v", answers)
		}
		t.Logf("%d of 2 accepted", n)
		if s.once {
			n = 1
		}
		s.starts[req.LogID] = n
		s.resultsAre(t, req, n)
	}
}
