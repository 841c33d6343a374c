package wire

// A remote executor, and what its answers show of its generation.

import (
	"context"
	"strings"
	"sync/atomic"
)

// ExecutorClient is a remote executor, called over HTTP. It is safe for
// concurrent use, starts no goroutine of its own, and needs no closing.
//
// Its errors are *CallError. A status of HTTP other than 200, an answer that is no message,
// and one that is too long or does not end in time are unknown outcomes, but for the statuses
// of TurnedAway. No redirect is followed.
type ExecutorClient struct {
	peer    *peer
	trigger atomic.Bool // the executor is of G4: it has shown that it knows no /run
	seen    observed
}

var _ Executor = (*ExecutorClient)(nil)

// NewExecutorClient makes a client for the executor at a base address, such as
// http://10.0.0.7:9999/, with or without the slash. The error says what is
// wrong with the address, the token or the app, without repeating them.
func NewExecutorClient(addr string, cfg ClientConfig) (*ExecutorClient, error) {
	p, err := newPeer(addr, cfg)
	if err != nil {
		return nil, err
	}
	return &ExecutorClient{peer: p}, nil
}

// beatBody is a body that every generation and non-Java executors accept: those
// of 3.3 on take none too, others insist on a Content-Length (docs/xxl-job.md,
// bodies).
const beatBody = `""`

// Beat implements Executor.
func (c *ExecutorClient) Beat(ctx context.Context) (Return, error) {
	return c.call(ctx, "beat", []byte(beatBody))
}

// IdleBeat implements Executor.
func (c *ExecutorClient) IdleBeat(ctx context.Context, req IdleBeatRequest) (Return, error) {
	ret, err := c.call(ctx, "idleBeat", req.Encode(nil))
	if err == nil && (ret.BootID != "" || req.LogID != 0) { // it says who it is where it is asked about a run
		c.seen.ours.Store(ret.BootID != "")
	}
	return ret, err
}

// Kill implements Executor.
func (c *ExecutorClient) Kill(ctx context.Context, req KillRequest) (Return, error) {
	return c.call(ctx, "kill", req.Encode(nil))
}

// Run implements Executor. Executors of G4 have /trigger for /run. One that
// answers that it does not know the path has done nothing with the request, so it
// gets it at the other path, which is remembered when it is known there.
func (c *ExecutorClient) Run(ctx context.Context, req TriggerRequest) (Return, error) {
	ctx, cancel := c.peer.within(ctx) // for both
	defer cancel()
	buf := c.peer.cfg.Transport.buffers.take()
	body := &payload{bytes: req.Encode(buf.empty())}
	defer func() {
		if body.held == 0 {
			c.peer.cfg.Transport.buffers.give(buf)
		}
	}()
	isG4 := c.trigger.Load()
	first, err := c.peer.callWithin(ctx, c.peer.base, runPath(isG4), body)
	if err != nil || !unknownPath(first, runPath(isG4)) {
		if err == nil && !first.Unauthorized() {
			c.seen.sawPath(isG4)
		}
		return first, err
	}
	second, err := c.peer.callWithin(ctx, c.peer.base, runPath(!isG4), body)
	switch {
	case err != nil:
		return second, err
	case unknownPath(second, runPath(!isG4)):
		return first, nil
	}
	c.trigger.Store(!isG4)
	if !second.Unauthorized() {
		c.seen.sawPath(!isG4)
	}
	return second, nil
}

func runPath(isG4 bool) string {
	if isG4 {
		return "trigger"
	}
	return "run"
}

// unknownPath reports whether an answer says that an endpoint does not exist,
// under whatever prefix.
func unknownPath(r Return, endpoint string) bool {
	before, after, _ := strings.Cut(MsgURINotFound, "%s")
	return !r.OK() && strings.HasPrefix(r.Msg, before) && strings.HasSuffix(r.Msg, "/"+endpoint+after)
}

// Log implements Executor. It asks with the date under both spellings and reads
// the lines from either key.
func (c *ExecutorClient) Log(ctx context.Context, req LogRequest) (LogReturn, error) {
	ctx, cancel := c.peer.within(ctx)
	defer cancel()
	to, err := c.peer.target(c.peer.base, "log")
	if err != nil {
		return LogReturn{}, err
	}
	answer, err := c.peer.post(ctx, to, &payload{bytes: req.Encode(nil)}, c.peer.cfg.MaxLog, nil)
	if err != nil {
		return LogReturn{}, err
	}
	var r LogReturn
	keys, err := r.decode(answer)
	if err != nil {
		return LogReturn{}, c.peer.garbled(to.text, answer, err)
	}
	c.peer.outfit().tokens.hideIn(&r.Msg, &r.Result.LogContent)
	c.seen.sawLog(keys)
	return r, nil
}

func (c *ExecutorClient) call(ctx context.Context, endpoint string, body []byte) (Return, error) {
	return c.peer.call(ctx, c.peer.base, endpoint, body)
}

// What an executor has shown of its generation. Input: its answers. Output: words.

// observed is what the answers of one executor have shown so far. It is safe for concurrent
// use.
type observed struct {
	path atomic.Int32 // under which it knows triggers; see the constants
	logs atomic.Int32 // under which key it has lines of logs
	ours atomic.Bool  // it has named its boot id
}

// What observed.path and observed.logs are: nothing yet, as earlier generations have it, or as
// later ones.
const (
	unobserved int32 = iota
	asEarlier        // /run; "content" alone
	asLater          // /trigger; "data" alone
)

// sawPath notes the path at which a trigger was understood. An executor that has another one
// than before has been replaced: what else was seen of it counts no more.
func (o *observed) sawPath(trigger bool) {
	now := asEarlier
	if trigger {
		now = asLater
	}
	if was := o.path.Swap(now); was != unobserved && was != now {
		o.logs.Store(unobserved)
		o.ours.Store(false)
	}
}

// sawLog notes under which key lines of a log came. Under both they say nothing.
func (o *observed) sawLog(keys logKeys) {
	switch keys {
	case logKeys{content: true}:
		o.logs.Store(asEarlier)
	case logKeys{data: true}:
		o.logs.Store(asLater)
	}
}

// words are those of ExecutorClient.Generation.
func (o *observed) words() string {
	path, logs := o.path.Load(), o.logs.Load()
	switch {
	case o.ours.Load():
		return "xxljob"
	case path == asLater:
		return "3.5"
	case logs == asEarlier:
		return "2.2 to 3.2"
	case path == asEarlier && logs == asLater:
		return "3.3 or 3.4"
	case logs == asLater:
		return "3.3 to 3.5"
	case path == asEarlier:
		return "2.2 to 3.4"
	}
	return ""
}

// Generation returns which releases of XXL-JOB the executor speaks like, as far as its answers
// to this client have shown: "2.2 to 3.4" or "3.5" after a trigger, which also "2.2 to 3.2",
// "3.3 or 3.4" and "3.3 to 3.5" are told from by a log that was asked for; "xxljob" for an
// executor of this module that was asked about a run; "" while nothing is known. Executors that
// others wrote count as what they speak like.
func (c *ExecutorClient) Generation() string { return c.seen.words() }
