package xxljobtest

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// Answer is what a fake executor does with a run. It is made by [Accept], [Succeed], [Fail],
// [TimeOut], [Refuse] or [Busy]; its methods return changed copies. The zero Answer is
// Accept().
type Answer struct {
	refuse  bool
	refused string        // why
	result  result        // reported without being asked for
	after   time.Duration // from the answer until the result
	late    time.Duration // from the request until the answer
	lost    loss
}

// result is the result of a run.
type result struct {
	code int // of wire, zero for none
	msg  string
}

// loss says what happens to an answer.
type loss int

const (
	sent loss = iota
	cut
	hung
)

// AnswerFunc decides what a fake executor does with a run. It is called concurrently, and not
// on the test's goroutine, so it must not call Fatal; nor may it call Executor.Close, which
// waits for it. The caller waits until it returns; ctx ends when the caller hangs up or the
// executor is closed. A panic fails the test.
type AnswerFunc func(ctx context.Context, run ExecutorRun) Answer

// orSucceed returns f, or the default if f is nil.
func (f AnswerFunc) orSucceed() AnswerFunc {
	if f == nil {
		return func(context.Context, ExecutorRun) Answer { return Succeed("") }
	}
	return f
}

// Accept accepts the run and reports nothing. The test may call [Executor.Report] later.
func Accept() Answer { return Answer{} }

// Succeed accepts the run and reports success, with a text that may be empty.
func Succeed(msg string) Answer { return reported(wire.CodeSuccess, msg) }

// Fail accepts the run and reports that it failed.
func Fail(msg string) Answer { return reported(wire.CodeFail, msg) }

// TimeOut accepts the run and reports, with XXL-JOB's code and text, that it took too long. It
// does so at once, whatever the timeout of the run; see Answer.After.
func TimeOut() Answer { return reported(wire.CodeTimeout, wire.MsgTimeout) }

func reported(code int, msg string) Answer { return Answer{result: result{code, msg}} }

// Refuse refuses the run, for a reason that may be empty. It has not been executed, so the
// scheduler may ask another executor.
func Refuse(msg string) Answer { return Answer{refuse: true, refused: msg} }

// msgDiscard is XXL-JOB's answer to a run that its block strategy discards.
const msgDiscard = "block strategy effect：Discard Later"

// Busy refuses the run with the text that XXL-JOB uses when the job is still running and its
// block strategy is DISCARD_LATER.
func Busy() Answer { return Refuse(msgDiscard) }

// Late delays the answer. The run is under way meanwhile, even if the caller has hung up.
func (a Answer) Late(d time.Duration) Answer {
	a.late = d
	return a
}

// After delays the result: it is reported this long after the answer. Until then the run is
// under way, so its job is busy and it can be killed.
func (a Answer) After(d time.Duration) Answer {
	a.after = d
	return a
}

// Cut closes the connection instead of answering. Everything else stays as it was:
// Accept().Cut() has the run, Succeed("").Cut() even reports its result, and Refuse("").Cut()
// does not have it. The scheduler cannot tell which.
func (a Answer) Cut() Answer {
	a.lost = cut
	return a
}

// Hang never answers: the connection stays open until the caller hangs up or the executor is
// closed. Everything else stays as it was, as with Cut.
func (a Answer) Hang() Answer {
	a.lost = hung
	return a
}
