package xxljob

// Runs that the store has marked started. Output: flights of this process, to send.go, or
// runs that other nodes take, to watch.go.

import "time"

// startedOK goes on with a run that the store has marked: it is this process's
// to run, or waits in another node's inbox, or was refused.
func (s *starter) startedOK(a attempt, answer Started, began time.Time) {
	if answer.Run.State.Ended() {
		s.engine.giveUp(a)
		s.finisher.ended([]Run{answer.Run})
		return
	}
	s.launch(a, answer.Run, began)
	for _, sibling := range answer.Siblings {
		s.launchSibling(a, sibling, began)
	}
	s.doubts.received(answer.Siblings, -1)
}

// launch moves an entry from the held to the flights, or to the away runs, and
// sends it when its time has come.
func (s *starter) launch(a attempt, run Run, began time.Time) {
	f := s.engine.takeOff(a, run, began)
	s.hooks.started(run)
	if f != nil {
		s.sender.deliverAt(f)
	} else {
		s.watcher.goneAway(run)
	}
}

// launchSibling does the same for a further part of a broadcast. It takes its
// place without asking: the parts of a broadcast start together.
func (s *starter) launchSibling(a attempt, run Run, began time.Time) {
	r := routed{address: run.Address}
	s.router.callees.equip(&r, a.job)
	if r.remote {
		r.lane, r.fanned = laneNone, true // takes its turn in fanOut instead
	}
	s.hooks.started(run)
	if f := s.engine.takeOffSibling(r, run, a.job, began); f != nil {
		s.sender.deliverAt(f)
	} else {
		s.watcher.goneAway(run)
	}
}
