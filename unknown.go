package xxljob

// Runs whose remote executor may or may not have them: the call had an error, or the
// node that made it is gone. Unknown is neither a failure nor a success: it is ended by
// a reply, a callback, or evidence that the run is lost. Input: flights, from
// dispatch.go, and runs of nodes that are gone, from lost.go. Output: dispatched runs,
// to dispatch.go, or lost ones.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xxljob/xxljob/wire"
)

const (
	// openWidth is how many addresses are asked at once.
	openWidth = 16
	// openFirst and openMost space the questions about one run.
	openFirst = time.Second
	openMost  = 10 * time.Second
	// resendFor is how long a run is sent again: half of what an executor of ours
	// remembers the ids of runs that have ended.
	resendFor = 5 * time.Minute
	// openAtMost is how long a run stays open that nothing is heard of, though its
	// address is still registered (XXL-JOB section 4.8: ten minutes).
	openAtMost = 10 * time.Minute
)

// openRun is a run in that state.
type openRun struct {
	run   Run
	req   wire.TriggerRequest
	again bool      // req may be sent again: the executor knows ids that it was sent before
	since time.Time // monotonic
	idle  time.Time // when the executor first said that the job is idle
	tries int
	next  time.Time // when to ask again
}

// openRuns are those of this node. It is safe for concurrent use.
type openRuns struct {
	mu   sync.Mutex
	runs map[int64]*openRun // guarded by mu
}

func (o *openRuns) add(r *openRun) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs == nil {
		o.runs = map[int64]*openRun{}
	}
	if o.runs[r.run.ID] == nil {
		o.runs[r.run.ID] = r
	}
}

func (o *openRuns) drop(id int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.runs, id)
}

func (o *openRuns) has(id int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.runs[id] != nil
}

// due returns the runs to ask about, in order of time, at most n, and when the next
// one is to be asked about.
func (o *openRuns) due(now time.Time, n int) (due []*openRun, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait = forever
	for _, r := range o.runs {
		if d := r.next.Sub(now); d > 0 {
			wait = min(wait, d)
		} else {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *openRun) int { return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.run.ID, b.run.ID)) })
	if len(due) > n {
		due, wait = due[:n], 0
	}
	return due, wait
}

// leaveOpen turns a flight into an open run.
func (s *scheduler) leaveOpen(f *flight, cause error) {
	s.log.Warn("xxljob: not known whether the executor has the run", "run", f.run.ID, "job", f.run.JobID, "err", cause)
	req := s.requestOf(f)
	now := time.Now()
	s.open.add(&openRun{run: f.run, req: req, again: req.BootID != "", since: now, next: now.Add(openFirst)})
	s.landed(f.run.ID)
	s.openWake.poke()
}

// adoptOpen takes over a run of a node that is gone: it may have been sent, and is not
// sent by this one.
func (s *scheduler) adoptOpen(r Run) {
	now := time.Now()
	s.open.add(&openRun{run: r, since: now, next: now})
	s.openWake.poke()
}

// openLoop asks about open runs until ctx ends.
func (s *scheduler) openLoop(ctx context.Context) {
	retry := backoff{log: s.log, what: "looking after runs whose executor did not answer"}
	for {
		wait, err := s.openOnce(ctx)
		if retry.failed(ctx, err) {
			wait = retry.delay()
		}
		if !sleep(ctx, wait, s.openWake) {
			return
		}
	}
}

// openOnce asks about the runs that it is time to ask about, and returns how long
// there is nothing more to do. The questions about one address are asked one after the
// other, and end with the first that has no answer.
func (s *scheduler) openOnce(ctx context.Context) (time.Duration, error) {
	if !s.leases.trusted(time.Now()) {
		return time.Second, nil // others may have taken them over
	}
	due, wait := s.open.due(time.Now(), startBatch)
	due, err := s.stillOpen(ctx, due)
	if err != nil || len(due) == 0 {
		return wait, err
	}
	byAddress := map[addressKey][]*openRun{}
	for _, r := range due {
		k := addressKey{r.run.App, r.run.Address}
		byAddress[k] = append(byAddress[k], r)
	}
	group := errgroup.Group{}
	group.SetLimit(openWidth)
	for _, runs := range byAddress {
		group.Go(func() error { s.askAbout(ctx, runs); return nil })
	}
	_ = group.Wait() // errors are about single runs, and kept with them
	_, wait = s.open.due(time.Now(), startBatch)
	return wait, nil
}

// stillOpen leaves out, and forgets, runs that have ended or are somebody else's by now.
func (s *scheduler) stillOpen(ctx context.Context, due []*openRun) ([]*openRun, error) {
	if len(due) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(due))
	for i, r := range due {
		ids[i] = r.run.ID
	}
	runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return s.store.RunsByID(ctx, ids) })
	if err != nil {
		return nil, err
	}
	now := make(map[int64]Run, len(runs))
	for _, r := range runs {
		now[r.ID] = r
	}
	return slices.DeleteFunc(due, func(o *openRun) bool {
		r, ok := now[o.run.ID]
		if ok && r.State == StateStarted && r.Owner == o.run.Owner && r.Token == o.run.Token && r.Address == o.run.Address {
			return false
		}
		s.open.drop(o.run.ID)
		s.landed(o.run.ID)
		if r.State.Ended() {
			s.notify(r)
		}
		return true
	}), nil
}

// askAbout asks about the open runs of one address.
func (s *scheduler) askAbout(ctx context.Context, runs []*openRun) {
	exec, err := s.calledAt(ctx, runs[0].run)
	for _, o := range runs {
		var busy bool
		if err == nil {
			busy, err = s.askOne(ctx, exec, o)
		}
		if ctx.Err() != nil {
			return
		}
		if lost := s.lost(ctx, o, err); lost != "" {
			s.finishLater(Result{RunID: o.run.ID, State: StateLost, HandleMsg: lost})
			s.open.drop(o.run.ID)
			continue
		}
		if busy {
			s.open.drop(o.run.ID)
			continue
		}
		s.open.later(o)
	}
}

// later puts off the next question, for longer each time.
func (o *openRuns) later(r *openRun) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.next = time.Now().Add(min(openFirst<<min(r.tries, 10), openMost))
	r.tries++
}

// askOne sends the run again where that is safe, and otherwise asks whether its job is
// idle. It reports whether the executor has the run.
func (s *scheduler) askOne(ctx context.Context, exec wire.Executor, o *openRun) (has bool, err error) {
	if o.again && time.Since(o.since) < resendFor && s.book.boot(o.run.App, o.run.Address) == o.req.BootID {
		ret, err := exec.Run(ctx, o.req)
		switch {
		case err != nil:
			return false, err
		case ret.OK():
			s.dispatchedLater(o.run, "accepted, asked again: "+ret.Msg)
			return true, nil
		}
		o.again = false // whether the first attempt has reached it, a refusal does not tell
	}
	ret, err := exec.IdleBeat(ctx, wire.IdleBeatRequest{JobID: o.run.JobID})
	switch {
	case err != nil:
		return false, err
	case ret.Unauthorized():
		return false, refusedBy(o.run.Address, ret.Msg)
	case !ret.OK():
		s.dispatchedLater(o.run, "no answer to the trigger; idle beat: "+ret.Msg)
		return true, nil
	}
	if o.idle.IsZero() {
		o.idle = time.Now()
	}
	return false, nil
}

// lost says why a run is lost, "" while it may not be. The job was idle, so what may
// come is the callback of a run that is over; or nobody answers at an address.
func (s *scheduler) lost(ctx context.Context, o *openRun, err error) string {
	open := time.Since(o.since).Round(time.Second)
	switch {
	case !o.idle.IsZero() && time.Since(o.idle) >= s.cfg.Dead:
		return fmt.Sprintf("lost: no answer to the trigger, the job was idle, and no result within %v", s.cfg.Dead)
	case err != nil && open >= s.cfg.Dead && s.unregistered(ctx, o.run):
		return fmt.Sprintf("lost: no answer to the trigger, and the executor is gone: %s", plainText(shorten(err.Error(), maxAnswer)))
	case err != nil && open >= openAtMost:
		return fmt.Sprintf("lost: no answer from the executor for %v: %s", open, plainText(shorten(err.Error(), maxAnswer)))
	}
	return ""
}

// unregistered reports whether it is certain that the run's address is none of its
// app's any more.
func (s *scheduler) unregistered(ctx context.Context, r Run) bool {
	known, err := s.book.knows(ctx, r.App, r.Address)
	return err == nil && !known
}
