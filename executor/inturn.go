package executor

// A registration with one node of an admin, the first that takes it. Comes in: beats,
// from register.go. Goes out: calls of wire.Admin, side by side where some hang.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// askedWithin is how long it takes until all nodes have been asked, where none answers.
const askedWithin = 1500 * time.Millisecond

// answer is what a node has said to a registration.
type answer struct {
	at  int // which node
	ret wire.Return
	err error
}

// register asks one node after the other, like ask; but one that hangs does not keep the
// next one waiting for longer than its share of askedWithin. Every awayBackoff all are asked
// once more, beside the calls that are open: a node that is back never answers what it got
// while it was away, and one that is slow answers nothing sooner for being cut off. Once
// quit is closed no further node is asked. It returns when a node has taken the
// registration, or all that were asked have answered, and leaves no call behind: those that
// another node has forestalled are cancelled.
func (c *cluster) register(ctx context.Context, quit <-chan struct{}, req wire.RegistryRequest) (wire.Return, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	share := time.NewTicker(askedWithin / time.Duration(max(1, len(c.nodes)-1)))
	defer share.Stop()
	anew := time.NewTicker(awayBackoff)
	defer anew.Stop()
	failed := failures{admin: c.name, nodes: len(c.nodes)}
	answers := make(chan answer)
	first, asked, most, open := int(c.first.Load()), 0, len(c.nodes), 0
	next := func() {
		if asked == most || asked > 0 && (ctx.Err() != nil || closed(quit)) {
			return
		}
		at := (first + asked) % len(c.nodes)
		asked, open = asked+1, open+1
		go func() {
			ret, err := c.nodes[at].admin.Registry(ctx, req)
			answers <- answer{at, ret, err}
		}()
	}
	var taken *answer
	for next(); open > 0; {
		select {
		case a := <-answers:
			open--
			switch {
			case taken != nil: // it was forestalled
			case failed.add(c.nodes[a.at].addr, a.ret, a.err):
				taken = &a
				c.first.Store(int32(a.at))
				cancel()
			default:
				next()
			}
		case <-share.C:
			next()
		case <-anew.C:
			most += len(c.nodes)
			next()
		}
	}
	if taken != nil {
		return taken.ret, nil
	}
	return wire.Return{}, failed.err()
}

// closed reports whether a channel is closed; one that is nil is not.
func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
