package interop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/wire"
)

func discards(t *testing.T, s *stage) {
	job := s.job(t, "sleep", meanwhile, blocked(block.DiscardLater))
	first := s.begun(t, job)
	s.turnedAway(t, s.trigger(t, job, 0), refusalState(s.discard), s.discard)
	s.wellEnded(t, first, slept)
}

func covers(t *testing.T, s *stage) {
	job := s.job(t, "sleep", forever, blocked(block.CoverEarly))
	early := s.begun(t, job)
	late := s.trigger(t, job, 1, "300")
	if s.oneByName {
		// The early one reports its end under the late one's id, whose own result
		// comes too late; of the early one nothing is ever heard.
		s.is(t, late, xxljob.StateFailed, s.killed)
		s.peers[0].hasPhase(t, late, "end")
		s.staysDispatched(t, early)
		return
	}
	s.wellEnded(t, late, "slept 300")
	s.is(t, early, recorded(s.covered), s.covered)
}

// firstIsSlow: a run that is asked for while the trigger of the one before is on its way comes behind
// it: it is the one that is discarded, or that covers the other.
func firstIsSlow(t *testing.T, s *stage) {
	pair := func(strategy, param string, starts int) (first, second int64) {
		job := s.job(t, "sleep", param, blocked(strategy))
		s.slow.Store(true)
		first = s.trigger(t, job, 1)
		time.Sleep(700 * time.Millisecond)
		return first, s.trigger(t, job, starts, "300")
	}
	first, second := pair(block.DiscardLater, meanwhile, 0)
	s.turnedAway(t, second, refusalState(s.discard), s.discard)
	s.wellEnded(t, first, slept)
	if s.oneByName {
		return // see covers
	}
	first, second = pair(block.CoverEarly, forever, 1)
	s.wellEnded(t, second, "slept 300")
	if run := s.ended(t, first); run.State == xxljob.StateSucceeded {
		t.Errorf("the first run succeeded: %q", run.HandleMsg)
	}
	s.starts[first] = 0 // it may be covered before its handler is called
	for _, e := range s.peers[0].journal(t) {
		if e.run == first && e.phase == "start" {
			s.starts[first]++
		}
	}
}

func timesOut(t *testing.T, s *stage) {
	id := s.trigger(t, s.job(t, "sleep", forever, within(time.Second)), 1)
	want := s.timeout
	if want.text == wire.MsgTimeout {
		want.text += "after 1s" // the scheduler knows which it was
	}
	s.is(t, id, recorded(s.timeout), want)
	s.peers[0].hasPhase(t, id, "interrupted")
	s.wellEnded(t, s.trigger(t, s.job(t, "sleep", "200", within(30*time.Second)), 1), "slept 200")
}

// killedByUs is what is recorded of a run that Kill was called for: the reason, or
// what the peer says where that is quicker.
func (s *stage) killedByUs(t *testing.T, id int64, quicker outcome) {
	t.Helper()
	s.is(t, id, xxljob.StateKilled, outcome{text: wire.StopKill}, quicker)
}

func (s *stage) kill(t *testing.T, id int64) {
	t.Helper()
	if err := s.Kill(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// killsRunning kills a run with another one of its job behind it. Peers that know
// kills of jobs only end that one too.
func killsRunning(t *testing.T, s *stage) {
	job := s.job(t, "sleep", forever)
	running := s.begun(t, job)
	queued := int64(0)
	switch {
	case s.noQueue != "":
	case s.killRun:
		queued = s.trigger(t, job, 1, "200")
	default:
		queued = s.trigger(t, job, 0, "200")
	}
	for _, id := range []int64{running, queued} {
		if id != 0 {
			s.isDispatched(t, id)
		}
	}
	s.kill(t, running)
	s.killedByUs(t, running, s.killed)
	s.peers[0].hasPhase(t, running, "interrupted")
	switch {
	case queued == 0:
	case s.killRun:
		s.wellEnded(t, queued, "slept 200")
	case s.dropped.code != 0:
		s.is(t, queued, recorded(s.dropped), s.dropped)
	default: // nothing is ever heard of it; the next run comes behind it
		s.wellEnded(t, s.trigger(t, job, 1, "1"), "slept 1")
		s.staysDispatched(t, queued)
		s.kill(t, queued) // which ends its record
		s.killedByUs(t, queued, s.dropped)
	}
}

// killsQueued kills a run that waits behind another one of its job.
func killsQueued(t *testing.T, s *stage) {
	job := s.job(t, "sleep", meanwhile)
	running := s.begun(t, job)
	if s.noQueue != "" {
		s.turnedAway(t, s.trigger(t, job, 0), refusalState(s.noQueue), s.noQueue)
		s.wellEnded(t, running, slept)
		return
	}
	queued := s.trigger(t, job, 0, "1")
	s.isDispatched(t, queued)
	s.kill(t, queued)
	s.killedByUs(t, queued, s.dropped)
	if s.killRun {
		s.wellEnded(t, running, slept)
		return
	}
	s.is(t, running, recorded(s.killed), s.killed)
	s.peers[0].hasPhase(t, running, "interrupted")
}

func fails(t *testing.T, s *stage) {
	job := s.job(t, "fail", "")
	for how, text := range map[string]string{"throw": s.thrown, "say": s.said} {
		id := s.trigger(t, job, 1, how+" disk is <full>")
		s.is(t, id, xxljob.StateFailed, outcome{text: fmt.Sprintf(text, "disk is <full>"), part: true})
	}
}
