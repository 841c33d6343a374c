package xxljob

// The state of this node, put together from its books.

import "time"

func (s *scheduler) Stats() Stats {
	out := Stats{Node: s.cfg.Node, Incarnation: s.leases.incarnation, At: s.clock.now(), ClockOffset: s.clock.offset(), Calls: s.store.(*storeMeter).stats()}
	out.Shards, out.LeaseLeft = s.leases.state(time.Now())
	s.engine.state(&out)
	s.life.mishaps.fill(&out.FaultStats)
	out.EventsDropped = s.teller.hooks.queue.dropped() + s.teller.readers.queue.dropped()
	if s.keeper != nil {
		out.Logs = s.keeper.book.state()
	}
	out.ResultsRefused, out.RegistrationsRefused = s.results.intake.refused.Load(), s.registrar.changes.refused.Load()
	out.Untraced = untraced(s.cfg.Tracer)
	out.Panics = s.attacher.panics.Counts()
	return out
}

func (s *scheduler) Speaks(app, address string) string { return s.remotes.generation(app, address) }
