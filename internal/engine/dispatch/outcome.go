package dispatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// What a callback, or this node itself, says about the end of a run. All of it is pure.

// ResultOf is a callback as a result, without what fences it.
func ResultOf(r *wire.CallbackRequest) store.Result {
	state := stateOf(r)
	percent, text := core.BoundProgress(r.Progress)
	return store.Result{
		RunID: r.LogID, State: state, HandleMsg: errs.PlainText(r.HandleMsg), After: afterOf(r), Progress: percent, ProgressText: text,
		// Nothing is to follow a failure. An executor that says so of a run that is to come again
		// is taken at the latter: otherwise work that was not done would look harmless.
		NoRetry: r.NoRetry && state != store.StateSnoozed,
	}
}

// reportedResult is the result of a flight of this process by its callback. known is its run.
func reportedResult(f *queue.Flight, known *store.Run, r *wire.CallbackRequest) store.Result {
	res := ResultOf(r)
	res.Incarnation, res.Token, res.Known = mustLocal(f.Run.Address), f.Run.Token, known
	return WithTimeout(res, f.Job)
}

// afterOf is how long after its end a run is to come again, by its handler.
func afterOf(r *wire.CallbackRequest) time.Duration {
	const most = int64(store.MaxPause / time.Millisecond)
	return time.Duration(max(min(max(r.RetryIn, r.SnoozeIn), most), 0)) * time.Millisecond
}

// WithTimeout has a result say which timeout was over. Executors do not: their text is
// XXL-JOB's, and fixed.
func WithTimeout(res store.Result, job *store.Job) store.Result {
	if res.State == store.StateTimedOut && strings.TrimSpace(res.HandleMsg) == strings.TrimSpace(wire.MsgTimeout) && job.Timeout > 0 {
		res.HandleMsg = fmt.Sprintf("%safter %v", wire.MsgTimeout, job.Timeout)
	}
	return res
}

func mustLocal(addr string) string {
	inc, _ := store.LocalIncarnation(addr)
	return inc
}

// concluded is a result that a node has come to about a start at a remote executor,
// fenced by that very start: a later one is none of its business.
func concluded(r store.Run, res store.Result) store.Result {
	res.RunID, res.Incarnation, res.Owner, res.Token = r.ID, "", r.Owner, r.Token
	return res
}

// refusalOf is what an executor's answer says about its refusal. Some say nothing.
func refusalOf(ret wire.Return) string {
	if ret.Msg == "" {
		return fmt.Sprintf("refused with code %d, and no word about it", ret.Code)
	}
	return ret.Msg
}

// stateOf reads the state out of a callback.
func stateOf(r *wire.CallbackRequest) store.State {
	switch {
	case r.HandleCode == wire.CodeSuccess:
		return store.StateSucceeded
	case r.HandleCode == wire.CodeTimeout:
		return store.StateTimedOut
	case r.Killed && r.Shutdown: // nobody wanted it ended: its process went, as it does in a crash
		return store.StateLost
	case r.Killed:
		return store.StateKilled
	case r.SnoozeIn > 0:
		return store.StateSnoozed
	}
	return store.StateFailed
}

// SameDate reports whether a date of the wire, in ms, is that of the run's trigger. One
// that is missing may be.
func SameDate(date int64, run *store.Run) bool { return date == 0 || date == run.Created.UnixMilli() }

// resultForgotten is the handle_msg of a run whose result the store has acknowledged, and
// has not any more: it has failed over.
const resultForgotten = "the run has ended, and the store has lost its result"

// refusedBy is the error for a refusal.
func refusedBy(address, msg string) error {
	return fmt.Errorf("%s refused: %s", address, errs.PlainText(errs.Shorten(msg, core.MaxAnswer)))
}

// killOnce asks an executor to kill a run, and returns which process has agreed, where it says so.
func killOnce(ctx context.Context, exec wire.Executor, r store.Run) (boot string, err error) {
	ret, err := exec.Kill(ctx, wire.KillRequest{JobID: r.JobID, LogID: r.ID, LogDateTime: r.Created.UnixMilli(), Reason: killReason(r)})
	if err == nil && !ret.OK() {
		err = refusedBy(r.Address, ret.Msg)
	}
	return bootOf(ret), err
}

func killReason(r store.Run) string {
	reason := r.KillReason
	errs.SetDefault(&reason, wire.StopKill)
	return reason
}
