package xxljob

// The inbox of a node. Input: runs that other nodes have started at an executor
// attached here, requests to kill, and questions for lines of logs (log.go). A run
// is taken, by a committed compare-and-set, before its handler is called.

import (
	"context"
	"errors"
	"time"

	"github.com/xxljob/xxljob/store"
)

// inboxLimit is how many runs are taken at once.
const inboxLimit = 500

// inbox takes what other nodes have left for this one.
type inbox struct {
	*shared
	engine *engine
	killer *killer
	logs   *logs
	taker  *taker
}

// inboxDuty looks into the inbox at each hint, and by itself where hints can be lost.
func (b *inbox) inboxDuty(signals store.Signals) duty {
	return duty{
		what: "looking into the inbox", wakes: []<-chan struct{}{signals.Inbox, b.life.wakes.inbox},
		once: func(ctx context.Context) (time.Duration, error) {
			wait := time.Duration(forever)
			if _, poll := b.store.Poll(); poll > 0 {
				wait = poll
			}
			return wait, b.lookIntoInbox(ctx)
		},
	}
}

// lookIntoInbox goes through the inbox: it kills what is to be killed, has questions
// answered, and takes what there is room for.
func (b *inbox) lookIntoInbox(ctx context.Context) error {
	if !b.leases.trusted(time.Now()) {
		return nil
	}
	full := false
	var failed error
	for after := int64(0); ; {
		box, err := call(ctx, func(ctx context.Context) (Inbox, error) {
			return b.store.Inbox(ctx, b.leases.incarnation, after, inboxLimit)
		})
		if err != nil {
			return err
		}
		for _, r := range box.Kills {
			b.killer.killHere(ctx, r)
		}
		if after == 0 {
			b.logs.answerLogs(box.Asks)
		}
		some, err := b.taker.takeSome(ctx, box.Runs)
		full = full || some
		b.engine.inboxFull.Store(full)
		failed = errors.Join(failed, err)
		if len(box.Runs) < inboxLimit {
			return failed
		}
		after = box.Runs[len(box.Runs)-1].ID
	}
}
