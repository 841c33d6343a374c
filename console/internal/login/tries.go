package console

// How often somebody may try to log in. What is counted where is bounded: networks in this process,
// all else in the store's buckets.

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/xxljob/xxljob/internal/slots"
)

// aloneCounters is by how many counters in turn tries for a name are counted, wherever they come
// from: each has store.FreeTries, and waits of its own. So a name has twenty times as many as a name
// and a network have.
const aloneCounters = 20

// try is a try to log in, and what it counts for.
type try struct {
	name   string
	at     time.Time
	from   netip.Prefix
	secret string   // of a cookie of an earlier login as that user; empty without one
	keys   []string // what it was counted by in the store
}

// hashesFor is for whom a place for hashing counts: strangers share half of them, each network having
// one at a time, and those who have logged in before have others left.
func (q *request) hashesFor(t *try) slots.Holder {
	switch {
	case t.secret != "":
		return slots.Holder{Proved: "user " + t.name}
	case q.failures.HasPassed(t.from):
		return slots.Holder{Proved: "network " + t.from.String()}
	}
	return slots.Holder{Named: t.from.String()}
}

// mayTry says how long a try has to wait. It goes by the browser alone where that has logged in as
// the user before, so that nobody else keeps the user out; else by the network that it comes from, by
// the name and the network, and by the name alone. It counts for the network while the store is asked,
// so that of many at once no more are counted there than may try; one that has to wait was none, and
// counts for nothing before it.
func (q *request) mayTry(t *try) (wait time.Duration, err error) {
	if t.secret != "" {
		return q.count(t, t.name+"\x00browser\x00"+hashOf(t.secret))
	}
	if wait := q.failures.Wait(t.from, t.at); wait > 0 {
		return wait, nil
	}
	wait, err = q.count(t, pairKey(t.name, t.from))
	if wait == 0 && err == nil {
		wait, err = q.count(t, fmt.Sprintf("%s\x00%d", t.name, q.alone.Add(1)%aloneCounters))
	}
	if wait > 0 {
		q.failures.TakeBack(t.from, t.at)
		if passErr := q.forget(t); err == nil {
			err = passErr
		}
	}
	return wait, err
}

// pairKey is what tries for a name from a network are counted by.
func pairKey(name string, from netip.Prefix) string { return name + "\x00network\x00" + from.String() }

// count counts a try by a key, unless it has to wait.
func (q *request) count(t *try, key string) (time.Duration, error) {
	wait, err := q.accounts.TryLogin(q.ctx, key)
	if wait == 0 && err == nil {
		t.keys = append(t.keys, key)
	}
	return wait, err
}

// passed says that the try has succeeded.
func (q *request) passed(t *try) error {
	if t.secret == "" {
		q.failures.TakeBack(t.from, t.at)
	}
	q.failures.Pass(t.from, t.at)
	return q.forget(t)
}

// forget forgets what the store has counted for the try.
func (q *request) forget(t *try) error {
	for _, key := range t.keys {
		if err := q.accounts.PassLogin(q.ctx, key); err != nil {
			return err
		}
	}
	return nil
}
