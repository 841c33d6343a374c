package executor

import "time"

// gatherTime is how long results gather, between two callbacks to a cluster, while they come
// faster than callbacks are answered.
const gatherTime = 4 * time.Millisecond

// gather lets results come together after a callback that has brought several of them, so that
// there are fewer callbacks under load, which cost both sides more than what is in them. It does
// not where a callback was full, and not when Stop is in a hurry. A result that comes alone waits
// for nothing.
func (o *outbox) gather(sent batch) {
	if o.limit.gather == 0 || len(sent.results) < 2 || sent.full {
		return
	}
	t := time.NewTimer(o.limit.gather)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.hurry:
	}
}
