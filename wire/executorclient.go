package wire

import (
	"context"
	"strings"
	"sync/atomic"
)

// ExecutorClient is a remote executor, called over HTTP. It is safe for
// concurrent use, starts no goroutine of its own, and needs no closing.
//
// Its errors are *CallError. A status of HTTP other than 200, a redirect too, an
// answer that is no message, and one that is too long or does not end in time are
// unknown outcomes.
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
	c.peer.tokens.hideIn(&r.Msg, &r.Result.LogContent)
	c.seen.sawLog(keys)
	return r, nil
}

func (c *ExecutorClient) call(ctx context.Context, endpoint string, body []byte) (Return, error) {
	return c.peer.call(ctx, c.peer.base, endpoint, body)
}
