package xxljob

// What a started scheduler does again and again. The table of it is in duties.go.

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
	// aside is set where what it asks of the store may wait: no run waits for it, and nothing is
	// missed for good.
	aside bool
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
	backoff := backoff{log: log, what: d.what}
	for {
		wait, err := d.once(ctx)
		if backoff.failed(ctx, err) {
			wait = backoff.delay()
		}
		if !sleep(ctx, wait, d.wakes...) {
			return
		}
	}
}
