//go:build unix

package siege

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/test/siege/judge"
	"github.com/xxljob/xxljob/wire"
)

// finished is a run that has ended and is to be reported.
type finished struct {
	result wire.CallbackRequest
	at     time.Duration
}

// honestExecutor accepts each run at once, and has one goroutine that reports, as a Java
// executor has one thread.
type honestExecutor struct {
	*honest
	done chan finished

	randMu sync.Mutex
	rand   *rand.Rand // guarded by randMu
}

// Run accepts a run, which ends a little later.
func (e *honestExecutor) Run(_ context.Context, req wire.TriggerRequest) (wire.Return, error) {
	now := time.Since(e.began)
	e.starts.Add(judge.Sample{From: min(time.UnixMilli(req.ScheduledAt).Sub(e.began), now), To: now})
	e.randMu.Lock()
	takes := time.Duration(e.rand.Int64N(int64(workMost)))
	e.randMu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accepted[req.LogID]++
	e.open++
	time.AfterFunc(takes, func() {
		e.done <- finished{wire.CallbackRequest{LogID: req.LogID, LogDateTim: req.LogDateTime, HandleCode: wire.CodeSuccess}, time.Since(e.began)}
	})
	return wire.Success(), nil
}

// report sends what has ended, a page after the other, each again until it is
// acknowledged.
func (e *honestExecutor) report(ctx context.Context) {
	for first := range e.done {
		batch := []finished{first}
		for more := true; more && len(batch) < javaPage; {
			select {
			case next := <-e.done:
				batch = append(batch, next)
			default:
				more = false
			}
		}
		results := make([]wire.CallbackRequest, len(batch))
		for i, b := range batch {
			results[i] = b.result
		}
		for body := wire.EncodeCallback(nil, wire.CallbackList, results); !e.deliver(ctx, body); {
			pause(ctx, retryAfter)
		}
		e.acknowledged(batch)
	}
}

// deliver sends a page once.
func (e *honestExecutor) deliver(ctx context.Context, body []byte) bool {
	from := time.Since(e.began)
	outcome := e.post(ctx, "callback", body)
	e.attempts.Add(judge.Sample{From: from, To: time.Since(e.began), Outcome: outcome})
	return outcome == judge.OK
}

func (e *honestExecutor) acknowledged(batch []finished) {
	now := time.Since(e.began)
	for _, b := range batch {
		e.results.Add(judge.Sample{From: b.at, To: now})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open -= len(batch)
}

func (e *honestExecutor) Beat(context.Context) (wire.Return, error) { return wire.Success(), nil }

// IdleBeat says busy: that leaves a run open of which the scheduler does not know whether
// it is here, until its result tells.
func (e *honestExecutor) IdleBeat(context.Context, wire.IdleBeatRequest) (wire.Return, error) {
	return wire.Failf(wire.MsgBusy), nil
}

func (e *honestExecutor) Kill(context.Context, wire.KillRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (e *honestExecutor) Log(context.Context, wire.LogRequest) (wire.LogReturn, error) {
	return wire.LogReturn{Code: wire.CodeFail, Msg: wire.MsgNoLog}, nil
}
