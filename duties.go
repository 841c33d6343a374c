package xxljob

import (
	"context"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// duties are the loops of a started scheduler. Stop ends those that plan first, then those
// that work, and those of the node's lease last.
func (s *scheduler) duties(signals store.Signals) (plan, work, lease []duty) {
	plan = []duty{s.scanner.scanDuty(signals), aheadDuty(s.shared, signals), (&payer{s.shared}).owedDuty(signals), s.starter.startDuty(), s.starter.deliverer.deliverDuty()}
	work = []duty{
		{loop: s.finisher.finishLoop}, {loop: s.finisher.lockedLoop}, s.watcher.watchDuty(signals), {loop: s.watcher.transitLoop}, s.inbox.inboxDuty(signals), {loop: s.acceptor.dispatchLoop},
		{loop: s.inDoubt.inDoubtLoop}, s.unreported.duty(), {loop: s.results.resultLoop}, {loop: s.registrar.loop}, {loop: s.registrar.regs.forgetLoop, aside: true},
		{loop: s.progress.loop, aside: true},
	}
	if s.keeper != nil {
		work = append(work, duty{loop: s.keeper.loop, aside: true})
	}
	lease = []duty{{loop: func(ctx context.Context) { s.leaser.leaseLoop(ctx, signals.Nodes) }}, s.listDuty()}
	if s.cfg.Registry != nil {
		lease = append(lease, s.publisher.registerDuty())
	}
	lease = append(lease, retainDuties(s.shared)...)
	return plan, append(work, s.alarmDuties(signals)...), lease
}

// alarmDuties are those of the rules, none where there are none.
func (s *scheduler) alarmDuties(signals store.Signals) []duty {
	if len(s.herald.book.rules) == 0 {
		return nil
	}
	list := []duty{s.herald.alarmDuty(signals)}
	if anyWants(s.herald.book.rules, alarm.Late) {
		list = append(list, lateDuty(s.shared))
	}
	return list
}
