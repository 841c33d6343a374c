package xxljob

// The state of this node, put together from its books.

import "time"

func (s *scheduler) Stats() Stats {
	out := Stats{Node: s.cfg.Node, Incarnation: s.leases.incarnation, At: s.clock.now(), ClockOffset: s.clock.offset(), Calls: s.store.(*storeMeter).stats()}
	out.Shards, out.LeaseLeft = s.leases.state(time.Now())
	s.engine.state(&out)
	out.EventsDropped = s.teller.hooks.queue.dropped() + s.teller.readers.queue.dropped()
	if s.keeper != nil {
		out.Logs = s.keeper.book.state()
	}
	return out
}
