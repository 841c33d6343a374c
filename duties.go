package xxljob

import (
	"context"
	"log/slog"
	"time"
)

// duty is what a started scheduler does again and again, in a loop of its own.
type duty struct {
	what  string            // as it is said in the log of an error: "scanning for due jobs"
	wakes []<-chan struct{} // two at most: any of them ends a wait
	// once does it, and says how long to wait for the next time. After an error, which is
	// logged, the next time is soon.
	once func(context.Context) (wait time.Duration, err error)
	// loop is in the place of all these where that is not its shape.
	loop func(context.Context)
	// aside is set where no run waits for what it asks of the store.
	aside bool
}

// duties are the loops of a started scheduler. Stop ends those that plan first, then those
// that work, and those of the node's lease last.
func (s *scheduler) duties(signals Signals) (plan, work, lease []duty) {
	plan = []duty{s.scanDuty(signals), s.startDuty()}
	work = []duty{
		{loop: s.finisher.finishLoop}, {loop: s.finisher.lockedLoop}, s.watcher.watchDuty(signals), s.watcher.transitDuty(), s.inboxDuty(signals), {loop: s.dispatchLoop},
		{loop: s.openLoop}, {loop: s.reportLoop}, {loop: s.registrar.loop}, {loop: s.registrar.forgetLoop, aside: true},
	}
	lease = []duty{{loop: s.leaseLoop}, s.listDuty()}
	if s.cfg.Registry != nil {
		lease = append(lease, s.registerDuty())
	}
	if store, ok := s.store.(Retainer); ok {
		lease = append(lease, retainDuty(s.shared, store))
	}
	return plan, work, lease
}

// start starts duties.
func (l loops) start(log *slog.Logger, duties []duty) {
	for _, d := range duties {
		run := d.loop
		if run == nil {
			run = func(ctx context.Context) { d.repeat(ctx, log) }
		}
		if d.aside {
			l.aside(run)
		} else {
			l.run(run)
		}
	}
}

// repeat does a duty until ctx ends.
func (d duty) repeat(ctx context.Context, log *slog.Logger) {
	retry := backoff{log: log, what: d.what}
	for {
		wait, err := d.once(ctx)
		if retry.failed(ctx, err) {
			wait = retry.delay()
		}
		if !sleep(ctx, wait, d.wakes...) {
			return
		}
	}
}
