package dispatch

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Runs whose executors are asked about them: those in doubt (indoubt.go), and those that were accepted
// and that nobody has reported (unreported.go). When to ask about which, what was heard, and the
// question.

const (
	// askFirst and askMost space the questions about one run.
	askFirst = time.Second
	askMost  = 10 * time.Second
)

const (
	// askWidth is how many addresses are asked at once.
	askWidth = 64
	// openTurn is how many runs of one address are asked about in one go, and
	// askPatience how long that may take before the rest has to wait.
	openTurn    = 8
	askPatience = 2 * time.Second
)

// askedRuns are such runs of this node, of the one kind or the other. It is safe for concurrent use.
type askedRuns struct {
	mu     sync.Mutex
	runs   map[int64]*askedRun           // guarded by mu; as many as inDoubtMost or unreportedMost says
	asking map[registry.SiteKey]bool     // guarded by mu: addresses that are being asked
	again  map[queue.WaitKey][]*askedRun // guarded by mu: those that may be sent again, by their place
	turn   int                           // how many runs of one address are taken at a time; zero for openTurn
}

func (o *askedRuns) add(r *askedRun) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs == nil {
		o.runs, o.asking, o.again = map[int64]*askedRun{}, map[registry.SiteKey]bool{}, map[queue.WaitKey][]*askedRun{}
	}
	was := o.runs[r.run.ID]
	if was != nil && was.run.Token >= r.run.Token {
		return
	}
	if was != nil {
		o.notAgain(was)
	}
	o.runs[r.run.ID] = r // a later start takes the place of one that is over
	if r.again && r.serial.IsJobPlace() {
		o.again[r.serial] = append(o.again[r.serial], r)
	}
}

// notAgain has a run asked about only. mu is held.
func (o *askedRuns) notAgain(r *askedRun) {
	if !r.again {
		return
	}
	r.again = false
	if o.again[r.serial] = slices.DeleteFunc(o.again[r.serial], func(other *askedRun) bool { return other == r }); len(o.again[r.serial]) == 0 {
		delete(o.again, r.serial)
	}
}

// askOnly has a run asked about only.
func (o *askedRuns) askOnly(r *askedRun) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notAgain(r)
}

// overtake is called before a run is sent that has a place: what is in doubt there is asked about
// only from then on, for it would arrive behind a later run of its job.
func (o *askedRuns) overtake(at queue.WaitKey) {
	if !at.IsJobPlace() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.again[at] {
		r.again = false
	}
	delete(o.again, at)
}

// mayGoAgain reports whether a run may be sent again, by what was sent and said since.
func (o *askedRuns) mayGoAgain(r *askedRun) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return r.again
}

// drop forgets a run, unless a later start of it is in doubt by now.
func (o *askedRuns) drop(r *askedRun) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notAgain(r)
	if o.runs[r.run.ID] == r {
		delete(o.runs, r.run.ID)
	}
}

func (o *askedRuns) has(id int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.runs[id] != nil
}

// take returns the runs to ask about now, by address, those first that have waited
// longest. Their addresses count as being asked until asked is called.
func (o *askedRuns) take(now time.Time) map[registry.SiteKey][]*askedRun {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due []*askedRun
	for _, r := range o.runs {
		if !r.next.After(now) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *askedRun) int {
		return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.run.ID, b.run.ID))
	})
	groups := map[registry.SiteKey][]*askedRun{}
	for _, r := range due {
		k := registry.SiteKey{App: r.run.App, Address: r.run.Address}
		switch {
		case groups[k] == nil && (o.asking[k] || len(o.asking) >= askWidth), len(groups[k]) >= max(o.turn, openTurn):
			continue
		}
		o.asking[k] = true
		groups[k] = append(groups[k], r)
	}
	return groups
}

// asked ends what take began.
func (o *askedRuns) asked(k registry.SiteKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.asking, k)
}

// wait is the time until there is something to ask that can be asked.
func (o *askedRuns) wait(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait := time.Duration(loop.Forever)
	for _, r := range o.runs {
		if !o.asking[registry.SiteKey{App: r.run.App, Address: r.run.Address}] && len(o.asking) < askWidth {
			wait = min(wait, max(r.next.Sub(now), time.Millisecond))
		}
	}
	return wait
}

// later puts off the next question about a run. One that was not asked about, after no pause, is
// behind those that have waited longer.
func (o *askedRuns) later(r *askedRun, pause time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.next = time.Now().Add(pause)
	if pause > 0 {
		r.tries++
	}
}

// askedRun is one of them. While its address is being asked it is owned by who asks.
type askedRun struct {
	run   store.Run
	since time.Time  // monotonic: from when on what is heard counts
	next  time.Time  // when to ask again
	job   *store.Job // nil while it was not needed

	// What was heard.
	lackedSince time.Time // since when the job is idle, or the executor does not have the run, by what it said
	lacks       int       // how often in a row it did not have the run
	firstLack   time.Time // the first of those
	lastIdle    time.Time // when the job was last said to be idle; zero when it was busy since then
	unavailable time.Time // since when each question was answered with the status 503

	// Of a run in doubt.
	req    wire.TriggerRequest // as it was sent
	serial queue.WaitKey       // its place, where the runs of its job are sent one after the other
	again  bool                // guarded by askedRuns.mu: it may be sent again, since that process knows ids that it was sent before
	from   time.Time           // since, by the store's clock, or a little earlier
	tries  int
	turns  int // how often the job was busy after it was idle, though nothing was sent there

	// Of one that was accepted.
	known  time.Time       // since when this node looks after the run
	left   time.Time       // when its shard went to another node; zero while it is this node's
	heard  time.Time       // when something was said of it last
	deaf   time.Time       // since when nobody has answered; zero while somebody does
	denied map[string]bool // the processes of an address that is theirs together which have said that they do not have it
	warned time.Time       // when the log was told that the run is overdue
}

// is reports whether a run, as it now is, is still the one in doubt that is asked about here: neither
// over nor somebody else's.
func (o *askedRun) is(r store.Run) bool {
	return r.State == store.StateStarted && r.Owner == o.run.Owner && r.Token == o.run.Token && r.Address == o.run.Address
}

// unavailableFor is for how long the status 503 is not taken for an answer to a question: a
// balancer gives it while executors come and go behind it.
const unavailableFor = 15 * time.Second

// justUnavailable takes in how a question has ended, and reports whether it was with the status
// 503, as those before it, if any, and for less than unavailableFor.
func (o *askedRun) justUnavailable(err error, now time.Time) bool {
	var failed *wire.CallError
	if !errors.As(err, &failed) || failed.Status != http.StatusServiceUnavailable {
		o.unavailable = time.Time{}
		return false
	}
	errs.SetDefault(&o.unavailable, now)
	return now.Sub(o.unavailable) < unavailableFor
}

// What an executor elsewhere says of a run, when it is asked.

// answerAbout is what an executor has said about a run: of the run itself, where it
// is one of ours, otherwise of its job.
type answerAbout struct {
	state wire.RunState // empty from third-party executors
	boot  string        // of the process that says so
	busy  bool          // the job is, with whatever run
}

// askAboutRun asks about a run. Where its executor has said that it is not there the question goes
// on a connection of its own: one that is kept leads to the same process of several for ever.
func askAboutRun(ctx context.Context, s *core.Core, exec wire.Executor, r store.Run, anew bool) (answerAbout, error) {
	if anew {
		ctx = wire.OnNewConn(ctx)
	}
	// The estimate of the store's time may be late, and this call takes its time.
	ago := s.Clock.Now().Sub(r.Started) + 2*s.Cfg.HTTP.CallTimeout
	ret, err := exec.IdleBeat(ctx, wire.IdleBeatRequest{
		JobID: r.JobID, LogID: r.ID, LogDateTime: r.Created.UnixMilli(), StartToken: r.Token,
		StartedAgo: max(ago, 1).Milliseconds(), BootID: r.BootID,
	})
	if err == nil && ret.Unauthorized() {
		err = refusedBy(r.Address, ret.Msg)
	}
	if err != nil {
		return answerAbout{}, err
	}
	return answerAbout{state: ret.RunState, boot: bootOf(ret), busy: !ret.OK()}, nil
}
