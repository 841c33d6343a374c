package runlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Lines of runs' logs, which stay with the executors that ran the runs. Input:
// calls of Log. Output: lines, of executors of this process or, through the store,
// of those attached at other nodes.

const (
	// logPatience is how long Log waits where its ctx has no deadline, and how long
	// an executor here has for the question of another node.
	logPatience = 5 * time.Second
	// askKept is how long stores keep a question.
	askKept = time.Minute
	// askPoll is how often Log looks for its answer while no loop of this node
	// hears of it, and askGap the least time between two looks: most signals are
	// about something else.
	askPoll = 100 * time.Millisecond
	askGap  = 20 * time.Millisecond
)

// Reader reads lines of runs' logs, wherever the run was sent.
type Reader struct {
	*core.Core
	Desk     *Desk
	calls    *calls
	attached *registry.AttachedSet
	book     *registry.Addresses
	Heard    func(store.Run, wire.Progress) // how far a run is, by its executor
	written  logSource                      // nil for none
}

// NewReader makes it, with a desk at which answers of other nodes arrive.
func NewReader(s *core.Core, attached *registry.AttachedSet, book *registry.Addresses, panics *guard.Log) *Reader {
	desk := newDesk()
	return &Reader{Core: s, Desk: desk, calls: &calls{desk: desk}, attached: attached, book: book, written: newSource(s, panics)}
}

func (l *Reader) Log(ctx context.Context, runID int64, fromLine int) (wire.LogResult, error) {
	return l.read(ctx, runID, min(max(fromLine, 1), math.MaxInt32))
}

func (l *Reader) LogTail(ctx context.Context, runID int64, n int) (wire.LogResult, error) {
	return l.read(ctx, runID, -min(max(n, 1), maxTail))
}

// read returns lines of a run's log: those from a line on or, where from is negative, so many
// of the last ones.
func (l *Reader) read(ctx context.Context, runID int64, from int) (wire.LogResult, error) {
	if ctx == nil {
		return wire.LogResult{}, errs.ErrNoContext
	}
	_, bounded := ctx.Deadline()
	if !bounded {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, logPatience)
		defer cancel()
	}
	run, err := l.Store.Run(ctx, runID)
	var a store.Answer
	said := wire.Progress{Percent: run.Progress, Text: run.ProgressText}
	if err == nil {
		a, err = l.logOf(ctx, run, from, &said)
	}
	var res wire.LogResult
	if err == nil {
		res, err = logResult(run, from, a)
		res.Progress = said
	}
	switch {
	case errs.IsNotFound(err):
		return wire.LogResult{}, errs.Missing("log", fmt.Sprintf("run %d", runID), err)
	case err != nil:
		if !bounded && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %v: %w", logPatience, err)
		}
		err = inTime(err)
		return wire.LogResult{}, errs.In(fmt.Sprintf("log of run %d", runID), err)
	}
	return res, nil
}

// logOf asks where the run was sent. What its executor says beside the lines, how far the run
// is, goes to said.
func (l *Reader) logOf(ctx context.Context, run store.Run, from int, said *wire.Progress) (store.Answer, error) {
	inc, local := store.LocalIncarnation(run.Address)
	if local && l.written != nil {
		if res, has, err := l.written.read(ctx, run, from); has || err != nil {
			return store.Answer{ToLine: res.ToLineNum, Content: res.LogContent, IsEnd: res.IsEnd}, err
		}
	}
	switch {
	case run.Address == "":
		return store.Answer{}, errNotStarted()
	case !local:
		return l.logElsewhere(ctx, run, from, said)
	case inc == l.Leases.Incarnation:
		return l.logHere(ctx, run, from, said)
	}
	return l.AskNode(ctx, store.Ask{Incarnation: inc, Run: run, FromLine: from})
}

// logResult is an answer as the caller of Log gets it. The run was read before it
// was asked for: where it had ended by then, all its lines were there. Whatever the
// executor says, the caller goes on behind ToLineNum, and misses and repeats nothing.
func logResult(run store.Run, from int, a store.Answer) (wire.LogResult, error) {
	none := a.IsEnd && a.Content == wire.MsgNoLog
	switch {
	case a.Refusal != "":
		return wire.LogResult{}, noLog(a.Refusal)
	case none && run.State.Ended():
		return wire.LogResult{}, errNoneThere()
	case none: // on its way to the executor
		from = max(from, 1)
		return wire.LogResult{FromLineNum: from, ToLineNum: from - 1}, nil
	case from < 0:
		return tailResult(run, -from, a), nil
	}
	if a.Content == "" && (a.ToLine == 0 || a.ToLine >= from) {
		a.ToLine = from - 1 // some peers say zero there, some from
	}
	// Of peers, some never say that it is the end, and some at the end of what is there.
	end := run.State.Ended() && (a.IsEnd || from > a.ToLine)
	return wire.LogResult{FromLineNum: from, ToLineNum: a.ToLine, LogContent: a.Content, IsEnd: end}, nil
}

// logElsewhere reads lines at the remote executor that the run was sent to.
func (l *Reader) logElsewhere(ctx context.Context, run store.Run, from int, said *wire.Progress) (store.Answer, error) {
	exec, err := l.book.CalledAt(ctx, run)
	if err != nil {
		return store.Answer{}, noLog(err.Error())
	}
	a, err := l.calls.ask(ctx, exec, run, from, said)
	for try := 1; err == nil && !hasLines(a) && l.book.IsShared(run); try++ {
		if try >= logTries {
			return store.Answer{}, errSeveral()
		}
		a, err = l.calls.ask(wire.OnNewConn(ctx), exec, run, from, said)
	}
	if err == nil {
		l.Heard(run, *said)
	}
	return a, err
}

// logTries is how often an address that stands for several processes is asked for the log of a run.
const logTries = 10

// hasLines reports whether an executor has a log of the run that it was asked about.
func hasLines(a store.Answer) bool {
	return a.Refusal == "" && (!a.IsEnd || a.Content != wire.MsgNoLog)
}

// logHere reads lines at the executor of this process.
func (l *Reader) logHere(ctx context.Context, run store.Run, from int, said *wire.Progress) (store.Answer, error) {
	exec := l.attached.Get(run.App)
	if exec == nil {
		return store.Answer{Refusal: fmt.Sprintf(notAttached, run.App)}, nil
	}
	return l.calls.ask(ctx, exec, run, from, said)
}

// AskNode puts a question to another node and waits for the answer. It tries
// until ctx ends or the node is gone: an error of the store, or a question that
// the store has dropped, is followed by another attempt.
func (l *Reader) AskNode(ctx context.Context, ask store.Ask) (store.Answer, error) {
	if err := l.SetShards(ctx); err != nil {
		return store.Answer{}, err
	}
	heard := l.Desk.listen()
	defer l.Desk.leave(heard)
	began := time.Now()
	if !l.Leases.IsLive(ask.Incarnation) {
		l.Life.Wakes.Lease.Poke() // look at once whether it is gone
	}
	var backoff loop.Backoff
	for {
		if l.Leases.IsGone(ask.Incarnation, began) {
			return store.Answer{}, errNodeGone(ask.Incarnation)
		}
		gap, wait := time.Duration(0), l.askWait()
		if ask.ID != 0 {
			gap = askGap
		}
		a, answered, err := l.askOnce(ctx, &ask)
		switch {
		case answered:
			return a, nil
		case errs.IsNotFound(err) && ask.ID == 0: // the run's record is dropped
			return store.Answer{}, err
		case err != nil:
			backoff.N++
			wait = backoff.Delay()
		}
		if !loop.Sleep(ctx, gap) || !loop.Sleep(ctx, wait-gap, heard) {
			return store.Answer{}, noAnswer(ask.Incarnation, ctx.Err(), err)
		}
	}
}

// noAnswer says why an answer has not come: ctx has ended, and perhaps the store
// has failed before.
func noAnswer(incarnation string, ended, err error) error {
	why := errs.Texts{"no answer from node " + incarnation + " in time", "节点 " + incarnation + " 未及时响应", "節點 " + incarnation + " 未及時回應"}
	if err == nil {
		return &late{fmt.Errorf("no answer from node %s: %w", incarnation, ended), why}
	}
	for i := range why {
		why[i] += ": " + err.Error()
	}
	return &late{fmt.Errorf("no answer from node %s: %w: %w", incarnation, ended, err), why}
}

// askOnce asks where the store has no question yet, and then looks for the answer.
func (l *Reader) askOnce(ctx context.Context, ask *store.Ask) (a store.Answer, answered bool, err error) {
	if ask.ID == 0 {
		asked, err := loop.Call(ctx, func(ctx context.Context) (store.Ask, error) { return l.Store.AskLog(ctx, *ask) })
		if err == nil {
			ask.ID = asked.ID
		}
		return store.Answer{}, false, err
	}
	a, err = loop.Call(ctx, func(ctx context.Context) (store.Answer, error) {
		var a store.Answer
		a, answered, err = l.Store.LogAnswer(ctx, ask.ID)
		return a, err
	})
	if errs.IsNotFound(err) {
		ask.ID = 0
		return store.Answer{}, false, nil
	}
	return a, answered && err == nil, err
}

// askWait is how long Log may go without looking for its answer, or after its node.
func (l *Reader) askWait() time.Duration {
	_, poll := l.Store.Poll()
	switch {
	case !l.Life.Running():
		return askPoll
	case poll > 0:
		return poll
	}
	return core.WatchPoll
}

// AnswerLogs has questions of other nodes answered, each by a goroutine that Stop
// waits for. What there is no room for stays in the inbox.
func (l *Reader) AnswerLogs(asks []store.Ask) {
	for _, ask := range asks {
		if l.Desk.begin(ask) {
			l.Life.Loops.Work.Aside(func(ctx context.Context) {
				l.answerLog(ctx, ask)
				l.Life.Wakes.Inbox.PokeIf(l.Desk.end(ask))
			})
		}
	}
}

// answerLog answers one question. An answer whose outcome is unknown is sent
// again, for as long as the store keeps the question.
func (l *Reader) answerLog(ctx context.Context, ask store.Ask) {
	kept, done := context.WithTimeout(ctx, askKept)
	defer done()
	quick, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	a, err := l.logHere(quick, ask.Run, ask.FromLine, new(wire.Progress)) // this node stores it anyway
	if err != nil {
		a = store.Answer{Refusal: fmt.Sprintf(executorSilent, logPatience.String())}
	}
	backoff := loop.Backoff{Log: l.Logger, What: "answering a question for a run's log"}
	tell := func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Store.AnswerLog(ctx, ask.ID, a) }
	_, _ = loop.CallUntil(kept, &backoff, tell, tell) // whoever asked has given up after that
}

// Questions for lines of logs. Input: those of other nodes, from the inbox. Output:
// answers, in the store, a few at a time. And the books about all that is asked for
// at this node.

// logWidth bounds the questions of other nodes that are answered at once for
// one app, and the calls that are under way at its executor.
const logWidth = 4

// Desk keeps the books about logs that are asked for. It is safe for concurrent
// use.
type Desk struct {
	mu        sync.Mutex
	calls     map[string]chan struct{} // guarded by mu: of each app, a token for each call under way
	answering map[int64]bool           // guarded by mu: questions of other nodes
	busy      map[string]int           // guarded by mu: how many of them, by app
	left      bool                     // guarded by mu: one was left in the inbox
	listeners map[loop.Wake]bool       // guarded by mu: those here who wait for answers
}

func newDesk() *Desk {
	return &Desk{calls: map[string]chan struct{}{}, answering: map[int64]bool{}, busy: map[string]int{}, listeners: map[loop.Wake]bool{}}
}

func (d *Desk) callsOf(app string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls[app] == nil {
		d.calls[app] = make(chan struct{}, logWidth)
	}
	return d.calls[app]
}

// begin takes on a question, unless it is being answered or there is no room: an
// executor that hangs does not keep others from being asked.
func (d *Desk) begin(ask store.Ask) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.answering[ask.ID] {
		return false
	}
	if d.busy[ask.Run.App] >= logWidth {
		d.left = true
		return false
	}
	d.answering[ask.ID] = true
	d.busy[ask.Run.App]++
	return true
}

// end is done with a question. It reports whether others wait for the room.
func (d *Desk) end(ask store.Ask) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.answering, ask.ID)
	if d.busy[ask.Run.App]--; d.busy[ask.Run.App] == 0 {
		delete(d.busy, ask.Run.App)
	}
	left := d.left
	d.left = false
	return left
}

func (d *Desk) listen() loop.Wake {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := loop.NewWake()
	d.listeners[w] = true
	return w
}

func (d *Desk) leave(w loop.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.listeners, w)
}

// Tell makes all who wait for answers look.
func (d *Desk) Tell() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.listeners {
		w.Poke()
	}
}
