package interop_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// idsBeginAnew sends ids again with later dates, as an admin does whose table of runs
// was truncated: each is another run. What is sent again as it was is none.
func idsBeginAnew(t *testing.T, s *site) {
	for range 5 {
		before := s.request("echo", "before")
		s.accepted(t, before, 1)
		s.resultIs(t, before, success("before"))
		after := before
		after.ExecutorParams, after.LogDateTime = "after", before.LogDateTime+time.Minute.Milliseconds()
		s.accepted(t, after, 1)
		s.reported(t, after, 2)
		s.starts[before.LogID] = 2
	}

	ended := s.request("count", "")
	s.accepted(t, ended, s.twice())
	s.reported(t, ended, 1)
	s.accepted(t, ended, s.twice())
	s.reported(t, ended, s.twice())
	// Behind it, a last one of the job: what ran twice would be reported by then.
	last := s.again(ended)
	s.accepted(t, last, 1)
	s.resultIs(t, last, success(""))
	if got := s.admin.resultsOf(ended.LogID); len(got) != s.twice() {
		t.Errorf("%d results of an id that was sent again: %+v", len(got), got)
	}
}

// reported waits until an id was reported n times, the last time well, with the
// parameter and with the date of that run.
func (s *site) reported(t *testing.T, req wire.TriggerRequest, n int) {
	t.Helper()
	var got []result
	eventually(t, time.Minute, fmt.Sprintf("%d results of run %d", n, req.LogID), func() bool {
		got = s.admin.resultsOf(req.LogID)
		return len(got) >= n
	})
	last := got[len(got)-1]
	if last.HandleCode != wire.CodeSuccess || last.HandleMsg != req.ExecutorParams {
		t.Errorf("run %d has the result %d %q, want %q", req.LogID, last.HandleCode, last.HandleMsg, req.ExecutorParams)
	}
	if !s.ownDate && last.LogDateTim != req.LogDateTime {
		t.Errorf("the result of run %d has the date %d, want %d", req.LogID, last.LogDateTim, req.LogDateTime)
	}
}

// TestAnew has a scheduler forget all that it has given to a peer, which lives on.
func TestAnew(t *testing.T) {
	t.Parallel()
	for _, k := range kinds(t) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, k, memory.New(), 1)
			for _, p := range renewals {
				t.Run(p.name, func(t *testing.T) {
					p.run(t, s)
					s.counted(t)
				})
			}
		})
	}
}

var renewals = []struct {
	name string
	run  func(t *testing.T, s *stage)
}{
	{"another scheduler knows nothing", forgotten},
	{"the result of an earlier process", earlierResult},
}

// forgotten puts another scheduler with an empty store in memory in the place of one
// that had its peer run many runs. What it has the peer run has to run, under ids that
// the peer has not seen; the job is the same, and so has the same id.
func forgotten(t *testing.T, s *stage) {
	const n = 25
	all := func(when string) (job xxljob.Job, ids []int64) {
		job = s.job(t, "echo", "", func(j *xxljob.Job) { j.Name = "the same" })
		for i := range n {
			text := fmt.Sprintf("%d %s", i, when)
			ids = append(ids, s.trigger(t, job, 1, text))
			s.wellEnded(t, ids[i], text)
		}
		return job, ids
	}
	job, before := all("before")
	s.replaced(t, func() { s.store = memory.New() })
	s.jobs = 0             // so are its keys
	s.there(t, s.peers[0]) // it registers again when it is time
	again, after := all("after")
	if again.ID != job.ID {
		t.Errorf("the job is %d, and was %d", again.ID, job.ID)
	}
	if slices.Min(after) <= slices.Max(before) {
		t.Errorf("runs have the ids %v, after %v", after, before)
	}
}

// earlierResult has the peer run something under the id that the next run will have,
// with an earlier date: so did the scheduler of an earlier process. Where results carry
// the date of their run, that run's is not taken for the next run's.
func earlierResult(t *testing.T, s *stage) {
	p := s.peers[0]
	c, err := wire.NewExecutorClient(p.registers(), wire.ClientConfig{App: theApp, Token: theToken})
	if err != nil {
		t.Fatal(err)
	}
	job := s.job(t, "sleep2", meanwhile)
	before := s.trigger(t, s.job(t, "count", ""), 1)
	s.wellEnded(t, before, "")
	early := wire.TriggerRequest{
		JobID: 1 << 30, LogID: before + 1, LogDateTime: time.Now().Add(-time.Hour).UnixMilli(),
		ExecutorHandler: "sleep", ExecutorParams: "1500", ExecutorBlockStrategy: "SERIAL_EXECUTION",
		GlueType: wire.GlueBean, BroadcastTotal: 1,
	}
	if r, err := c.Run(t.Context(), early); err != nil || !r.OK() {
		t.Fatalf("the earlier run: %+v, %v", r, err)
	}
	s.starts[early.LogID]++
	id := s.trigger(t, job, 1)
	if id != early.LogID {
		t.Fatalf("the next run is %d, want %d", id, early.LogID)
	}
	if s.anyDate {
		s.wellEnded(t, id, "slept "+early.ExecutorParams)
		eventually(t, time.Minute, "both handlers end", func() bool { return len(p.entries(t, id, "end")) == 2 })
		return
	}
	s.wellEnded(t, id, slept)
}
